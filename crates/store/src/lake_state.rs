//! The file `lakes.json`, in which `push` and `pull` keep what they did. Both may run at once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk::files;
use super::disk::lock::StoreLock;
use super::error::StoreError;
use super::folder::{LAKE_STATE, LAKE_STATE_LOCK};

/// Time to wait for another process that changes the file.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(10);

/// The file while it is locked.
pub struct LakeStateFile {
    dir: PathBuf,
    lock: StoreLock,
}

impl LakeStateFile {
    /// Locks the file of the store in `dir`, which is created if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if another process holds the lock for longer than [`MAX_LOCK_WAIT`],
    /// [`StoreError::Io`] if it cannot be taken.
    pub(super) fn lock(dir: &Path) -> Result<Self, StoreError> {
        files::create_private_dirs(dir)?;
        let lock = StoreLock::acquire_within(dir, LAKE_STATE_LOCK, MAX_LOCK_WAIT)?;
        Ok(Self { dir: dir.to_owned(), lock })
    }

    /// Returns the content; `None` if there is nothing yet.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(&self) -> Result<Option<Vec<u8>>, StoreError> {
        read_lake_state(&self.dir)
    }

    /// Replaces the content.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if the store is no longer at its path.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.dir.join(LAKE_STATE);
        files::remove_temporary_copies(&path);
        self.lock.check_not_replaced()?;
        files::replace_file(&path, bytes)
    }
}

/// Reads the file of the store in `dir`; `None` if there is none.
pub(super) fn read_lake_state(dir: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    files::read_if_exists(&dir.join(LAKE_STATE))
}
