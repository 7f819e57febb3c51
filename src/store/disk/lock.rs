//! The locks of a store: `write.lock` for its one writer, `labels.lock` for its labels.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::files;
use crate::store::error::StoreError;

/// An advisory lock, held until dropped.
pub(crate) struct StoreLock {
    path: PathBuf,
    file: File,
}

impl StoreLock {
    /// Takes the lock in the file `name` of the store at `dir`.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if another process holds it, [`StoreError::Io`] if the file cannot be
    /// opened or locked.
    pub(crate) fn acquire(dir: &Path, name: &str) -> Result<Self, StoreError> {
        let path = dir.join(name);
        let file = files::open_lock(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Busy { path: dir.to_owned() }),
            Err(TryLockError::Error(source)) => Err(StoreError::Io { path, source }),
        }
    }

    /// Writes `content` into the lock file, if the file is empty.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot be written.
    pub(crate) fn mark(&self, content: &[u8]) -> Result<(), StoreError> {
        let length = self.file.metadata().map_err(StoreError::io(&self.path))?.len();
        if length > 0 {
            return Ok(());
        }
        (&self.file).write_all(content).map_err(StoreError::io(&self.path))
    }

    /// Checks that the store is still the one that was locked. Every commit does so first: a store
    /// may be moved, removed or replaced while its writer runs, and the manifest of this store must
    /// not be written into another one.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] if the lock file is no longer at its path, [`StoreError::Io`] if the
    /// held file cannot be examined.
    pub(crate) fn check_not_replaced(&self) -> Result<(), StoreError> {
        let held = self.file.metadata().map_err(StoreError::io(&self.path))?;
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| is_same_file(&held, &found)) {
            return Ok(());
        }
        let dir = self.path.parent().unwrap_or(Path::new("."));
        Err(StoreError::Replaced { path: dir.to_owned() })
    }
}

/// True if both describe the same file or folder. Systems other than Unix do not let an open file
/// be moved away, so there it is enough that something of the same type has the name.
pub(super) fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        a.dev() == b.dev() && a.ino() == b.ino()
    }
    #[cfg(not(unix))]
    {
        a.file_type() == b.file_type()
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_was_moved_removed_or_replaced_is_noticed() {
        let root = tempfile::tempdir().expect("tempdir");
        let (dir, moved) = (root.path().join("store"), root.path().join("moved"));
        fs::create_dir(&dir).expect("creates");
        let lock = StoreLock::acquire(&dir, "write.lock").expect("locks");
        assert!(matches!(StoreLock::acquire(&dir, "write.lock"), Err(StoreError::Busy { .. })));
        lock.check_not_replaced().expect("is in its place");
        fs::rename(&dir, &moved).expect("moves");
        assert!(matches!(lock.check_not_replaced(), Err(StoreError::Replaced { .. })));
        fs::create_dir(&dir).expect("creates");
        let other = StoreLock::acquire(&dir, "write.lock").expect("another store");
        assert!(matches!(lock.check_not_replaced(), Err(StoreError::Replaced { .. })));
        other.check_not_replaced().expect("is in its place");
        fs::remove_file(dir.join("write.lock")).expect("removes");
        assert!(matches!(other.check_not_replaced(), Err(StoreError::Replaced { .. })));
    }
}
