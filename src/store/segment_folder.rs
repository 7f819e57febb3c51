//! The folder of a segment under construction, which goes away unless the segment is committed.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::lock::is_same_file;
use super::{StoreError, files, folder};

/// Removes itself when dropped, so that a failed write, as on a full disk, leaves no files behind.
pub(super) struct SegmentFolder {
    path: PathBuf,
    /// The folder as it was created; `None` before that and once it is to stay.
    created: Option<Metadata>,
}

impl SegmentFolder {
    /// The folder at `path`, which is not created yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, created: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the folder if this was not done before.
    ///
    /// # Errors
    /// Fails if the folder above it is gone, or if something else has this name.
    pub(super) fn create(&mut self) -> Result<(), StoreError> {
        if self.created.is_none() {
            files::create_private_dir(&self.path)?;
            let created = fs::symlink_metadata(&self.path).map_err(StoreError::io(&self.path))?;
            self.created = Some(created);
        }
        Ok(())
    }

    /// Lets the folder stay: a manifest names the segment.
    pub(super) fn keep(mut self) {
        self.created = None;
    }
}

impl Drop for SegmentFolder {
    fn drop(&mut self) {
        // When the store was replaced by another one, this path is a segment of that one.
        let Some(created) = &self.created else { return };
        if fs::symlink_metadata(&self.path).is_ok_and(|found| is_same_file(created, &found)) {
            folder::remove_segment(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folder_that_was_created_is_removed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("0000000001");
        let file = path.join("events.parquet");
        let create = || {
            let mut folder = SegmentFolder::new(path.clone());
            folder.create().expect("creates");
            folder.create().expect("is there already");
            fs::write(&file, "x").expect("writes");
            folder
        };
        drop(create());
        assert!(!path.exists());
        create().keep();
        assert!(file.exists());
        assert!(SegmentFolder::new(path.clone()).create().is_err(), "it is somebody else's");
        assert!(file.exists());
        fs::remove_dir_all(&path).expect("removes");
        let replaced = create();
        fs::rename(&path, dir.path().join("moved")).expect("moves");
        create().keep();
        drop(replaced);
        assert!(file.exists());
    }
}
