//! Lists the files below a folder on all cores, because most of the time goes into asking the system.

use std::fmt::Display;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::discovery::{Discovery, is_log_name};
use crate::provider::assemblies;
use crate::source::candidate::LogCandidate;

/// Maximum number of threads that list folders.
const MAX_THREADS: usize = 8;

/// Adds the files below a folder.
pub(super) fn walk_folder(root: &Path, found: &mut Discovery) {
    // A root that cannot be listed is not read: everything below it would count as vanished.
    if let Err(error) = fs::read_dir(root) {
        found.add_unreadable(root, &error);
        return;
    }
    found.roots.push(root.to_owned());

    let folders = FolderQueue::new(root.to_owned());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| list_folders(&folders))).collect();
        let mut parts = vec![list_folders(&folders)];
        for other in others {
            match other.join() {
                Ok(part) => parts.push(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        for part in parts {
            found.files.extend(part.files);
            found.problems.extend(part.problems);
        }
    });
    // The order in which threads find problems is not always the same.
    found.problems.sort_by(|a, b| a.path.cmp(&b.path));
}

/// Folders that are still to be listed.
struct FolderQueue {
    state: Mutex<QueueState>,
    /// Notified when folders were added, and when the last one was listed.
    changed: Condvar,
}

struct QueueState {
    folders: Vec<PathBuf>,
    /// Number of folders that threads are listing.
    listed_now: usize,
}

impl FolderQueue {
    fn new(root: PathBuf) -> Self {
        let state = QueueState { folders: vec![root], listed_now: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a folder, and waits for one while others are being listed. `None` if all are listed.
    fn take(&self) -> Option<ListedFolder<'_>> {
        let mut state = self.lock();
        loop {
            if let Some(path) = state.folders.pop() {
                state.listed_now += 1;
                return Some(ListedFolder { queue: self, path, folders: Vec::new() });
            }
            if state.listed_now == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A folder that a thread is listing. Dropping it passes the folders in it to the queue, also if the
/// thread panics, so that no other thread waits for ever.
struct ListedFolder<'q> {
    queue: &'q FolderQueue,
    path: PathBuf,
    /// The folders found in it.
    folders: Vec<PathBuf>,
}

impl Drop for ListedFolder<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.listed_now -= 1;
        state.folders.append(&mut self.folders);
        drop(state);
        self.queue.changed.notify_all();
    }
}

/// Lists folders until none remains.
fn list_folders(queue: &FolderQueue) -> Discovery {
    let mut found = Discovery::default();
    while let Some(mut folder) = queue.take() {
        let first = found.files.len();
        let entries = match fs::read_dir(&folder.path) {
            Ok(entries) => entries,
            Err(error) => {
                add_unreadable(&folder.path, &error, &mut found);
                continue;
            }
        };
        for entry in entries {
            match entry {
                Ok(entry) => add_entry(&entry, &mut folder.folders, &mut found),
                Err(error) => add_unreadable(&folder.path, &error, &mut found),
            }
        }
        // All files are sorted in the end, which is faster if those of a folder are sorted.
        found.files[first..].sort_by(LogCandidate::compare_bytes);
    }
    found
}

/// Adds an entry of a folder: a folder to `folders`, a file that may be a log by its name to `found`.
/// Symbolic links are not followed.
fn add_entry(entry: &DirEntry, folders: &mut Vec<PathBuf>, found: &mut Discovery) {
    let path = entry.path();
    // Parts are read with their sessions.
    if assemblies().any(|assembly| (assembly.is_part)(&path)) {
        return;
    }
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => folders.push(path),
        Ok(kind) if kind.is_file() && is_log_name(&path) => match entry.metadata() {
            Ok(metadata) => found.add_file(path, &metadata),
            Err(error) => add_unreadable(&path, &error, found),
        },
        Ok(_) => {}
        Err(error) => add_unreadable(&path, &error, found),
    }
}

/// Reports a file or folder below the root that cannot be read.
fn add_unreadable(path: &Path, error: &io::Error, found: &mut Discovery) {
    let message: &dyn Display = &format_args!("{}: {error}", path.display());
    found.add_unreadable(path, message);
}
