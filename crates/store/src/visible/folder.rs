//! The private folder of a process for the segments that its readers see besides those of the store.
//!
//! ```text
//! readers/x1y2z3x1y2z3/lock                   held while the process uses the folder
//! readers/x1y2z3x1y2z3/segments/9000000000/   events.parquet skip.idx ...
//! ```
//!
//! It is in the store, so that forgetting a session removes its rows here too. The folder of a killed
//! process is removed by the next process that writes to the store or creates such a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ingest::text::names::encode_hex;

use crate::disk::files;
use crate::disk::held_folder::HeldFolder;
use crate::disk::lock::StoreLock;
use crate::error::StoreError;
use crate::folder::{SEGMENTS_FOLDER, is_real_folder, remove_segment_files};
use crate::segment::segment_writer::SegmentWriter;
use base::random::random_bytes;

/// Number of the first segment. Those of a store never reach it.
pub(super) const FIRST_NUMBER: i64 = 9_000_000_000;

/// Name of the folder with one folder for each process.
const READERS_FOLDER: &str = "readers";

/// Name of the lock file in the folder of a process.
const LOCK: &str = "lock";

/// Random bytes in the name of a folder.
const NAME_BYTES: usize = 6;

/// Number of attempts to create a folder that no other process removes as unused.
const MAX_ATTEMPTS: usize = 8;

/// The folder of this process. It is removed when this is dropped.
pub(super) struct OverlayFolder {
    path: PathBuf,
    segments: Arc<HeldFolder>,
    next_number: AtomicI64,
    lock: StoreLock,
}

/// Which folders are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverlayRemoval {
    /// Those that no process uses.
    Unused,
    /// All of them. Readers that use one fail once, and write their rows again.
    All,
}

impl OverlayFolder {
    /// Creates a folder in the store, and removes those that no process uses.
    ///
    /// # Errors
    /// Fails if it cannot be written, or if something else has the name.
    pub(super) fn create(store: &Path) -> Result<Self, StoreError> {
        remove_overlays(store, OverlayRemoval::Unused)?;
        let readers = store.join(READERS_FOLDER);
        let mut attempt = 1;
        loop {
            match Self::create_in(&readers) {
                // Another process took it for one that is not used.
                Err(
                    StoreError::Busy { .. } | StoreError::Io { .. } | StoreError::Replaced { .. },
                ) if attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                }
                created => return created,
            }
        }
    }

    fn create_in(readers: &Path) -> Result<Self, StoreError> {
        if fs::symlink_metadata(readers).is_err() {
            files::create_private_dir(readers)?;
        }
        if !is_real_folder(readers) {
            let path = readers.parent().unwrap_or(readers).to_owned();
            return Err(StoreError::ForeignFolder { path, entry: READERS_FOLDER.to_owned() });
        }
        let random = random_bytes::<NAME_BYTES>().map_err(io::Error::other);
        let random = random.map_err(StoreError::io(readers))?;
        let path = readers.join(encode_hex(random));
        files::create_private_dir(&path)?;
        let lock = StoreLock::acquire(&path, LOCK)?;
        files::create_private_dir(&path.join(SEGMENTS_FOLDER))?;
        let segments = Arc::new(HeldFolder::open(&path.join(SEGMENTS_FOLDER))?);
        lock.check_not_replaced()?;
        Ok(Self { path, segments, next_number: AtomicI64::new(FIRST_NUMBER), lock })
    }

    /// Returns its path, below which it has segments as a store has.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether it was not removed.
    pub(super) fn is_whole(&self) -> bool {
        self.lock.check_not_replaced().is_ok()
    }

    /// Begins a segment that supersedes all earlier ones.
    pub(super) fn begin_segment(&self) -> SegmentWriter {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        SegmentWriter::new(&self.segments, number)
    }
}

impl Drop for OverlayFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed as that of a killed process.
        let _ = remove_folder(&self.path);
    }
}

/// Removes the folders of processes from a store, with everything in them that a process wrote.
///
/// # Errors
/// Fails if a file cannot be removed.
pub(crate) fn remove_overlays(store: &Path, removal: OverlayRemoval) -> Result<(), StoreError> {
    let readers = store.join(READERS_FOLDER);
    if !is_real_folder(&readers) {
        return Ok(());
    }
    for entry in fs::read_dir(&readers).map_err(StoreError::io(&readers))? {
        let entry = entry.map_err(StoreError::io(&readers))?;
        let path = entry.path();
        if !is_folder_name(&entry.file_name().to_string_lossy()) || !is_real_folder(&path) {
            continue;
        }
        if removal == OverlayRemoval::Unused {
            // The lock is held meanwhile, so that a process that just created the folder notices.
            let Ok(_lock) = StoreLock::acquire(&path, LOCK) else { continue };
            remove_folder(&path)?;
        } else {
            remove_folder(&path)?;
        }
    }
    // It stays if another process has a folder in it.
    let _ = fs::remove_dir(&readers);
    Ok(())
}

fn is_folder_name(name: &str) -> bool {
    name.len() == 2 * NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Removes the folder of a process. What this program did not write stays.
fn remove_folder(path: &Path) -> Result<(), StoreError> {
    let segments = path.join(SEGMENTS_FOLDER);
    if let Ok(entries) = fs::read_dir(&segments) {
        for entry in entries.flatten() {
            if is_real_folder(&entry.path()) {
                remove_segment_files(&entry.path())?;
            }
        }
    }
    let _ = fs::remove_dir(&segments);
    let _ = fs::remove_file(path.join(LOCK));
    let _ = fs::remove_dir(path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use schemas::session::SessionRow;

    use super::*;

    fn write_segment(folder: &OverlayFolder) -> PathBuf {
        let mut writer = folder.begin_segment();
        let row = SessionRow { session_id: "s1".to_owned(), ..SessionRow::default() };
        writer.record_session(Box::new(row));
        let finished = writer.finish().expect("writes").expect("has rows");
        finished.folder.keep();
        folder.path().join(SEGMENTS_FOLDER).join(finished.entry.number.to_string())
    }

    #[test]
    fn a_folder_goes_with_its_process_or_as_unused_or_when_all_go() {
        let store = tempfile::tempdir().expect("tempdir");
        let readers = store.path().join(READERS_FOLDER);
        let used = OverlayFolder::create(store.path()).expect("creates");
        let segment = write_segment(&used);
        assert!(segment.join("rows.copy").is_file());

        // A killed process leaves a folder without a lock.
        let killed = readers.join("0123456789ab");
        fs::create_dir_all(killed.join("segments/9000000000")).expect("creates");
        fs::write(killed.join("segments/9000000000/events.parquet"), "x").expect("writes");
        let theirs = readers.join("notes");
        fs::create_dir(&theirs).expect("creates");
        let other = OverlayFolder::create(store.path()).expect("creates");
        assert!(!killed.exists() && theirs.exists() && used.is_whole() && segment.exists());

        drop(other);
        remove_overlays(store.path(), OverlayRemoval::Unused).expect("removes");
        assert!(used.is_whole());
        remove_overlays(store.path(), OverlayRemoval::All).expect("removes");
        assert!(!used.is_whole() && !segment.exists() && theirs.exists());
        drop(used);
        fs::remove_dir(&theirs).expect("removes");
        remove_overlays(store.path(), OverlayRemoval::All).expect("removes");
        assert!(!readers.exists());
    }
}
