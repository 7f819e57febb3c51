//! Waits for several files to reach the disk at the same time.
//!
//! To sync a file takes milliseconds, nearly all of which is waiting. A disk takes hardly longer for
//! ten files at a time than for one, and meanwhile the rest of a segment is encoded.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};

use crate::error::StoreError;

/// Files that are being written to the disk in the background.
#[derive(Default)]
pub(crate) struct PendingSyncs {
    begun: Vec<(PathBuf, Sync)>,
}

/// A sync that runs in a thread, or the result of one for which there was no thread.
enum Sync {
    Running(JoinHandle<io::Result<()>>),
    Done(io::Result<()>),
}

impl PendingSyncs {
    /// Begins to sync `file`, which is at `path` and written completely, or a folder.
    pub(crate) fn begin(&mut self, path: PathBuf, file: &File) {
        let thread =
            file.try_clone().and_then(|handle| Builder::new().spawn(move || handle.sync_all()));
        let sync = match thread {
            Ok(thread) => Sync::Running(thread),
            Err(_) => Sync::Done(file.sync_all()),
        };
        self.begun.push((path, sync));
    }

    /// Returns when all files are on disk.
    ///
    /// # Errors
    /// Fails with the first file that could not be synced.
    pub(crate) fn wait(self) -> Result<(), StoreError> {
        for (path, sync) in self.begun {
            let synced = match sync {
                Sync::Running(thread) => thread.join().unwrap_or_else(|_| {
                    Err(io::Error::other("the thread that synced it panicked"))
                }),
                Sync::Done(synced) => synced,
            };
            synced.map_err(StoreError::io(&path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_file_that_cannot_be_synced_is_named() {
        let dir = tempfile::tempdir().expect("tempdir");
        let good = dir.path().join("good");
        let mut file = File::create(&good).expect("creates");
        file.write_all(b"content").expect("writes");
        let mut syncs = PendingSyncs::default();
        syncs.begin(good, &file);
        syncs.wait().expect("syncs");

        #[cfg(target_os = "linux")]
        {
            let full = PathBuf::from("/dev/full");
            let mut syncs = PendingSyncs::default();
            syncs.begin(full.clone(), &File::open(&full).expect("opens"));
            let error = syncs.wait().expect_err("a device cannot be synced");
            assert!(error.to_string().contains("/dev/full"), "{error}");
        }
    }
}
