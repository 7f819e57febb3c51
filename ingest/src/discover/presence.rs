//! Finds known logs again by the keys under which the store has them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::problem::{Problem, ProblemKind};

use super::reach::{find_file, find_obstacle};
use super::walk::{Discovery, RealFolders, discover};
use crate::provider::assemblies;
use crate::source::candidate::{FileState, LogCandidate};

/// Number of known logs that a thread examines before it takes others.
const LOGS_AT_A_TIME: usize = 1000;

/// Finds the logs that the store knows by these keys, plain or compressed, each at its own path, and
/// keeps those for which `is_unchanged` is false. Logs that do not exist are left out. A database is
/// found with all its sessions.
pub fn discover_known(
    keys: &[&str],
    is_unchanged: &(dyn Fn(&LogCandidate) -> bool + Sync),
) -> Discovery {
    let parts: Vec<_> = keys.chunks(LOGS_AT_A_TIME).collect();
    let next = AtomicUsize::new(0);
    let examine = || {
        let mut found = KnownFiles::default();
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.examine(part, is_unchanged);
        }
        found
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(parts.len());
    let KnownFiles { files, mut others, .. } = std::thread::scope(|scope| {
        let handles: Vec<_> = (1..threads).map(|_| scope.spawn(examine)).collect();
        let mut found = examine();
        for handle in handles {
            let more = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            found.files.extend(more.files);
            found.others.extend(more.others);
        }
        found
    });
    others.sort_unstable();
    others.dedup();
    let mut found = discover(&others);
    found.add_candidates(files);
    found.files.retain(|file| !is_unchanged(file));
    found
}

/// The known logs that a thread found.
#[derive(Default)]
struct KnownFiles {
    /// Plain files at their own paths that changed.
    files: Vec<LogCandidate>,
    /// The paths of the other logs that exist.
    others: Vec<PathBuf>,
    folders: RealFolders,
}

impl KnownFiles {
    /// Examines each log once if it is a plain file at its own path, as most are.
    fn examine(&mut self, keys: &[&str], is_unchanged: &(dyn Fn(&LogCandidate) -> bool + Sync)) {
        for key in keys {
            let path = Path::new(key);
            let is_assembled = || assemblies().any(|assembly| assembly.has_source(path));
            match self.folders.find_real_file(path) {
                Some(metadata) if !is_assembled() => {
                    let state = FileState::of_metadata(&metadata);
                    let file = LogCandidate::new(path.to_owned(), state);
                    if !is_unchanged(&file) {
                        self.files.push(file);
                    }
                }
                Some(_) | None => self.others.extend(find_file(key)),
            }
        }
    }
}

/// Finds the log that the store knows as `key`, plain or compressed. `None` if it does not exist.
pub(crate) fn find_candidate(key: &str) -> Option<LogCandidate> {
    let found = discover(find_file(key).as_slice());
    found.files.into_iter().find(|file| file.key() == key)
}

/// Whether a log exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPresence {
    /// It is where it was.
    Exists,
    /// It is no longer in any of its possible files, or no longer in its database.
    Gone,
    /// Its file exists and cannot be read, for this reason, or cannot be reached.
    Unknown(Option<String>),
}

/// Finds out which known logs exist. Lists each database once, however many of its sessions are asked for:
/// what changes in it later is not seen.
#[derive(Default)]
pub struct LogFinder {
    /// The keys of the logs in each file that could be read.
    listed: HashMap<PathBuf, HashSet<String>>,
}

impl LogFinder {
    /// Returns whether the log that the store knows as `key` exists.
    pub fn find(&mut self, key: &str) -> LogPresence {
        let Some(file) = find_file(key) else {
            return match find_obstacle(key) {
                None => LogPresence::Gone,
                Some(_) => LogPresence::Unknown(None),
            };
        };
        let logs = match self.listed.entry(file) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let found = discover(std::slice::from_ref(unknown.key()));
                let is_unreadable = |problem: &Problem| problem.kind == ProblemKind::Unreadable;
                if let Some(problem) = found.problems.into_iter().find(is_unreadable) {
                    return LogPresence::Unknown(Some(problem.message));
                }
                unknown.insert(found.files.iter().map(LogCandidate::key).collect())
            }
        };
        if logs.contains(key) { LogPresence::Exists } else { LogPresence::Gone }
    }
}

/// Returns whether the log that the store knows as `key` is gone. One that cannot be read or reached, as in
/// a folder without permission, is not.
pub fn is_gone(key: &str) -> bool {
    LogFinder::default().find(key) == LogPresence::Gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_logs_are_found_as_one_by_one() {
        let dir = tempfile::tempdir().expect("tempdir");
        let dir = dir.path().canonicalize().expect("there");
        let mut keys = Vec::new();
        for name in ["a.jsonl", "b.jsonl.zst", "c.jsonl", "c.jsonl.gz", "gone.jsonl", "opencode.db"]
        {
            let path = dir.join(name);
            if !name.starts_with("gone") {
                std::fs::write(&path, "x").expect("writes");
            }
            let key = path.to_string_lossy().into_owned();
            keys.push(key.trim_end_matches(".zst").trim_end_matches(".gz").to_owned());
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(dir.join("a.jsonl"), dir.join("link.jsonl")).expect("links");
            keys.push(dir.join("link.jsonl").to_string_lossy().into_owned());
        }
        keys.push(format!("{}#one", dir.join("opencode.db").display()));
        let places: Vec<PathBuf> = keys.iter().filter_map(|key| find_file(key)).collect();
        let expected = discover(&places);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let found = discover_known(&keys, &|_| false);
        assert_eq!(found.files, expected.files);
        assert_eq!(found.files.len(), 3);
        assert_eq!(found.problems.len(), expected.problems.len());
        assert!(discover_known(&[], &|_| false).files.is_empty());
        let found = discover_known(&keys, &|file| file.path.ends_with("a.jsonl"));
        assert_eq!(found.files.len(), 2);
    }

    #[test]
    fn a_database_is_listed_once() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().canonicalize().expect("there").join("crush.db");
        let sample =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-sessions/crush/crush.db");
        std::fs::copy(sample, &path).expect("copies");
        let keys: Vec<String> =
            discover(std::slice::from_ref(&path)).files.iter().map(LogCandidate::key).collect();
        assert!(keys.len() > 1, "{keys:?}");
        let mut finder = LogFinder::default();
        assert_eq!(finder.find(&keys[0]), LogPresence::Exists);
        let connection = rusqlite::Connection::open(&path).expect("opens");
        connection.execute("DELETE FROM sessions", []).expect("deletes");
        for key in &keys {
            assert_eq!(finder.find(key), LogPresence::Exists);
            assert!(is_gone(key));
        }
        assert_eq!(finder.find(&format!("{}#none", path.display())), LogPresence::Gone);
        std::fs::remove_file(&path).expect("removes");
        assert_eq!(finder.find(&keys[0]), LogPresence::Gone);
    }

    #[test]
    fn logs_of_many_folders_are_found_in_any_order() {
        let dir = tempfile::tempdir().expect("tempdir");
        let dir = dir.path().canonicalize().expect("there");
        let mut folders = vec!["one".to_owned(), "two".to_owned(), "nowhere".to_owned()];
        for folder in &folders[..2] {
            std::fs::create_dir(dir.join(folder)).expect("creates");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(dir.join("one"), dir.join("link")).expect("links");
            folders.push("link".to_owned());
        }
        let mut keys = vec!["plain.jsonl".to_owned(), "/root-of-nothing.jsonl".to_owned()];
        for number in 0..LOGS_AT_A_TIME {
            for folder in &folders {
                let path = dir.join(folder).join(format!("{number}.jsonl"));
                if number % 3 > 0 && dir.join(folder).is_dir() {
                    std::fs::write(&path, "x".repeat(number)).expect("writes");
                }
                keys.push(path.to_string_lossy().into_owned());
            }
        }
        let places: Vec<PathBuf> = keys.iter().filter_map(|key| find_file(key)).collect();
        let expected = discover(&places).files;
        assert_eq!(expected.len(), 2 * (LOGS_AT_A_TIME - LOGS_AT_A_TIME.div_ceil(3)));
        let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        for _ in 0..2 {
            assert_eq!(discover_known(&keys, &|_| false).files, expected);
            // The logs of a folder follow each other.
            keys.sort_unstable();
        }
    }
}
