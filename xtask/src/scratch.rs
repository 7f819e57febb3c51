//! Temporary directories.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::failure::{Result, TaskFailure};

/// Creates a directory inside `parent`, which is created too if it is missing. It is removed when the
/// value is dropped.
pub(crate) fn create_scratch(parent: &Path) -> Result<TempDir> {
    fs::create_dir_all(parent).map_err(TaskFailure::io("make", parent))?;
    TempDir::new_in(parent).map_err(TaskFailure::io("make a directory in", parent))
}
