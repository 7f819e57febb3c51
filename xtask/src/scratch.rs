//! A temporary directory that is removed when its value is dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::{Result, TaskFailure};

pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates a new directory inside `parent`, which is created too if it is missing.
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        fs::create_dir_all(parent).map_err(TaskFailure::io("make", parent))?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!(".xtask-{}-{count}", std::process::id()));
        // A directory of that name is left over from a killed process that had the same id.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).map_err(TaskFailure::io("make", &path))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
