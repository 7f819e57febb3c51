//! The locks of a store: `write.lock` for its one writer, `labels.lock` for its labels, and others for
//! single files.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::files::open_lock;

use super::files;
use crate::error::StoreError;

/// Name of the lock file that a writer holds.
pub(crate) const WRITE_LOCK: &str = "write.lock";

/// Pause between two attempts to take a lock.
const RETRY_PAUSE: Duration = Duration::from_millis(2);

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
        let file = open_lock(&path).map_err(StoreError::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Busy { path: dir.to_owned() }),
            Err(TryLockError::Error(source)) => Err(StoreError::Io { path, source }),
        }
    }

    /// Takes the lock like [`Self::acquire`], and waits up to `max_wait` while another process holds it.
    ///
    /// # Errors
    /// Those of [`Self::acquire`].
    pub(crate) fn acquire_within(
        dir: &Path,
        name: &str,
        max_wait: Duration,
    ) -> Result<Self, StoreError> {
        let until = Instant::now() + max_wait;
        loop {
            match Self::acquire(dir, name) {
                Err(StoreError::Busy { .. }) if Instant::now() < until => {
                    std::thread::sleep(RETRY_PAUSE);
                }
                result => return result,
            }
        }
    }

    /// Writes the name of a file into the lock file, so that it is noticed when that file is
    /// removed. A name that is there already is not written again.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the lock file cannot be read or written.
    pub(crate) fn record_written(&self, file_name: &str) -> Result<(), StoreError> {
        self.append_name(file_name).map_err(StoreError::io(&self.path))
    }

    fn append_name(&self, file_name: &str) -> io::Result<()> {
        let mut file = &self.file;
        let mut names = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut names)?;
        if holds_name(&names, file_name) {
            return Ok(());
        }
        file.write_all(format!("{file_name}\n").as_bytes())
    }

    /// True if a holder of the lock `name` once wrote the file `file_name`.
    pub(crate) fn has_written(dir: &Path, name: &str, file_name: &str) -> bool {
        files::read_file(&dir.join(name)).is_ok_and(|names| holds_name(&names, file_name))
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

fn holds_name(names: &[u8], file_name: &str) -> bool {
    names.split(|byte| *byte == b'\n').any(|name| name == file_name.as_bytes())
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
