//! Walks a folder on all cores. Most of the time goes into asking the system about each file, so
//! several threads examine the files of one folder, too. `ignore` and `walkdir` take half as long again
//! on two cores: 142 and 145 ms for 20,000 files instead of 97.

use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::provider::alias::{FolderUse, folder_use};
use crate::provider::{FORMATS, assemblies};
use crate::source::candidate::{Container, FileState, LogCandidate};

/// Number of files that a thread examines before it asks for more work.
const FILES_AT_A_TIME: usize = 256;

/// Maximum number of threads. More of them wait for each other in the system.
const MAX_THREADS: usize = 8;

/// What a walk found.
#[derive(Default)]
pub(super) struct FolderWalk {
    /// The files that may be logs.
    pub(super) files: Vec<LogCandidate>,
    /// The files that hold sessions of an [`Assembly`](crate::source::assembly::Assembly).
    pub(super) assembled: Vec<(PathBuf, Metadata)>,
    /// The files and folders that could not be examined.
    pub(super) errors: Vec<(PathBuf, io::Error)>,
}

/// Decides which files a walk returns.
pub(super) type FileFilter<'f> = &'f (dyn Fn(&LogCandidate) -> bool + Sync);

/// Finds the files below `root` that may be logs by their names and that `is_wanted` accepts. Symbolic
/// links are not followed. Returns the files in no particular order.
pub(super) fn walk_below(root: &Path, is_wanted: FileFilter<'_>) -> FolderWalk {
    let queue = WorkQueue::new(WalkStep::Folder(root.to_owned()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    std::thread::scope(|scope| {
        let others: Vec<_> =
            (1..threads).map(|_| scope.spawn(|| work_off(&queue, is_wanted))).collect();
        let mut walk = work_off(&queue, is_wanted);
        for other in others {
            match other.join() {
                Ok(part) => walk.append(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        walk
    })
}

/// A part of a walk.
enum WalkStep {
    Folder(PathBuf),
    /// Files of one folder that may be logs by their names.
    Files(Vec<FolderFile>),
}

/// A file in a folder that is listed.
struct FolderFile {
    path: PathBuf,
    entry: DirEntry,
}

/// The remaining steps of a walk, which its threads share.
struct WorkQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

struct QueueState {
    steps: Vec<WalkStep>,
    /// Number of threads that work on a step, and may add others.
    busy: usize,
}

/// Marks the thread that holds it as busy.
struct BusyThread<'q>(&'q WorkQueue);

impl WorkQueue {
    fn new(first: WalkStep) -> Self {
        let state = QueueState { steps: vec![first], busy: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, step: WalkStep) {
        self.lock().steps.push(step);
        self.changed.notify_one();
    }

    /// Takes a step; waits while there is none but other threads may add some. `None` at the end.
    fn take(&self) -> Option<(WalkStep, BusyThread<'_>)> {
        let mut state = self.lock();
        loop {
            if let Some(step) = state.steps.pop() {
                state.busy += 1;
                return Some((step, BusyThread(self)));
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for BusyThread<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.busy -= 1;
        if state.busy == 0 && state.steps.is_empty() {
            self.0.changed.notify_all();
        }
    }
}

/// Takes steps until none remains, and returns what they found.
fn work_off(queue: &WorkQueue, is_wanted: FileFilter<'_>) -> FolderWalk {
    let mut walk = FolderWalk::default();
    while let Some((step, _busy)) = queue.take() {
        match step {
            WalkStep::Folder(folder) => walk.list_folder(folder, queue, is_wanted),
            WalkStep::Files(files) => walk.examine_files(files, is_wanted),
        }
    }
    walk
}

impl FolderWalk {
    fn append(&mut self, other: Self) {
        self.files.extend(other.files);
        self.assembled.extend(other.assembled);
        self.errors.extend(other.errors);
    }

    /// Adds the folders and files in a folder to the queue.
    fn list_folder(&mut self, folder: PathBuf, queue: &WorkQueue, is_wanted: FileFilter<'_>) {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => return self.errors.push((folder, error)),
        };
        let has_logs = folder_use(&folder) == FolderUse::Logs;
        let mut files = Vec::new();
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) if kind.is_dir() => {
                    let path = entry.path();
                    if !is_part_folder(&path) {
                        queue.add(WalkStep::Folder(path));
                    }
                }
                Ok((kind, entry)) if kind.is_file() && has_logs => {
                    let path = entry.path();
                    if has_log_name(&path) {
                        files.push(FolderFile { path, entry });
                    }
                }
                Ok(_) => {}
                Err(error) => self.errors.push((folder.clone(), error)),
            }
            if files.len() == FILES_AT_A_TIME {
                queue.add(WalkStep::Files(std::mem::take(&mut files)));
            }
        }
        self.examine_files(files, is_wanted);
    }

    /// Adds the wanted files with their sizes and times.
    fn examine_files(&mut self, files: Vec<FolderFile>, is_wanted: FileFilter<'_>) {
        for FolderFile { path, entry } in files {
            match entry.metadata() {
                Ok(metadata) if assemblies().any(|assembly| assembly.has_source(&path)) => {
                    self.assembled.push((path, metadata));
                }
                Ok(metadata) => {
                    let file = LogCandidate::new(path, FileState::of_metadata(&metadata));
                    if is_wanted(&file) {
                        self.files.push(file);
                    }
                }
                Err(error) => self.errors.push((path, error)),
            }
        }
    }
}

/// Returns whether a file inside a folder may be a log, by its name and its folder.
pub fn is_log_name(path: &Path) -> bool {
    has_log_name(path)
        && path.parent().is_none_or(|folder| folder_use(folder) == FolderUse::Logs)
        && !path.ancestors().skip(1).any(is_other_folder)
}

/// Returns whether a file inside a folder of logs may be a log, by its name.
fn has_log_name(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let (_, plain) = Container::of_name(&name);

    let mut rules = FORMATS.iter().filter_map(|format| format.quirks.is_log_name);
    let by_rule = rules.find_map(|is_log_name| is_log_name(plain));
    let is_log = by_rule.unwrap_or(plain.ends_with(".jsonl") || plain.ends_with(".json"));
    is_log || assemblies().any(|assembly| assembly.has_source(path))
}

/// Returns whether a folder holds no logs: parts of sessions, which are read with their sessions, or
/// other files of an agent.
fn is_part_folder(path: &Path) -> bool {
    assemblies().any(|assembly| (assembly.is_part)(path))
        || folder_use(path) == FolderUse::Other
        || is_other_folder(path)
}

/// Returns whether a folder has no logs, by a rule of a format.
fn is_other_folder(path: &Path) -> bool {
    FORMATS.iter().filter_map(|format| format.quirks.is_other_folder).any(|is_other| is_other(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_large_and_nested_folders_are_found_once() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut written = Vec::new();
        for folder in ["", "a", "a/b", "c"] {
            let folder = dir.path().join(folder);
            std::fs::create_dir_all(&folder).expect("creates");
            for number in 0..FILES_AT_A_TIME + 10 {
                let path = folder.join(format!("{number}.jsonl"));
                std::fs::write(&path, "x").expect("writes");
                written.push(path);
            }
            std::fs::write(folder.join("notes.txt"), "x").expect("writes");
        }
        std::fs::create_dir(dir.path().join("empty")).expect("creates");
        let walk = walk_below(dir.path(), &|_| true);
        let mut found: Vec<PathBuf> = walk.files.into_iter().map(|file| file.path).collect();
        found.sort();
        written.sort();
        assert_eq!(found, written);
        assert!(walk.errors.is_empty() && walk.assembled.is_empty());
        let wanted = walk_below(dir.path(), &|file| file.path.ends_with("a/b/7.jsonl"));
        assert_eq!(wanted.files.len(), 1);
    }

    #[test]
    fn only_the_logs_in_the_folder_of_a_conversation_are_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |path: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
            std::fs::write(path, "x").expect("writes");
        };
        let logs = [
            "conversations/a/conversation.jsonl",
            "elsewhere/logs/x/workspace/train.jsonl",
            "gptme/logs/a/branches/b.jsonl",
            "gptme/logs/a/conversation.jsonl",
            "my/workspace/train.jsonl",
        ];
        let others = [
            "conversations/a/config.toml",
            "conversations/a/workspace/data/train.jsonl",
            "gptme/logs/a/other/train.jsonl",
            "gptme/logs/a/workspace/data/train.jsonl",
        ];
        logs.iter().chain(&others).for_each(|path| write(path));
        let walk = walk_below(dir.path(), &|_| true);
        let mut found: Vec<PathBuf> = walk.files.into_iter().map(|file| file.path).collect();
        found.sort();
        assert_eq!(found, logs.map(|log| dir.path().join(log)));
        assert!(found.iter().all(|log| is_log_name(log)));
        assert!(!others.iter().any(|other| is_log_name(&dir.path().join(other))));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed_and_a_folder_that_is_gone_is_an_error() {
        let dir = tempfile::tempdir().expect("tempdir");
        std::fs::create_dir(dir.path().join("real")).expect("creates");
        std::fs::write(dir.path().join("real/a.jsonl"), "x").expect("writes");
        for (target, name) in [("real", "folder"), (".", "loop"), ("real/a.jsonl", "b.jsonl")] {
            std::os::unix::fs::symlink(target, dir.path().join(name)).expect("links");
        }
        let walk = walk_below(dir.path(), &|_| true);
        let [file] = walk.files.as_slice() else { panic!("one file is expected") };
        assert!(file.path.ends_with("real/a.jsonl"));
        let gone = dir.path().join("nowhere");
        assert_eq!(walk_below(&gone, &|_| true).errors[0].0, gone);
    }
}
