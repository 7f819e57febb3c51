//! Finds known logs again by the keys under which the store has them.

use std::path::{Path, PathBuf};

use super::reach::{find_file, find_obstacle};
use super::walk::{Discovery, RealFolders, discover};
use crate::provider::assemblies;
use crate::source::candidate::LogCandidate;

/// Number of known logs for which one more thread is started.
const LOGS_PER_THREAD: usize = 1000;

/// Finds the logs that the store knows by these keys, plain or compressed, each at its own path. Logs
/// that do not exist are left out. A database is found with all its sessions.
pub fn discover_known(keys: &[&str]) -> Discovery {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(keys.len().div_ceil(LOGS_PER_THREAD))
        .max(1);
    let mut files = Vec::with_capacity(keys.len());
    let mut others = Vec::new();
    std::thread::scope(|scope| {
        let parts = keys.chunks(keys.len().div_ceil(threads).max(1));
        let handles: Vec<_> = parts.map(|keys| scope.spawn(|| find_plain_files(keys))).collect();
        for handle in handles {
            let (plain, rest) =
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            files.extend(plain);
            others.extend(rest);
        }
    });
    others.sort_unstable();
    others.dedup();
    let mut found = discover(&others);
    found.add_candidates(files);
    found
}

/// Examines each log once if it is a plain file at its own path, as most are. Returns them, and the
/// paths of the other logs that exist.
fn find_plain_files(keys: &[&str]) -> (Vec<LogCandidate>, Vec<PathBuf>) {
    let mut folders = RealFolders::default();
    let mut files = Vec::with_capacity(keys.len());
    let mut others = Vec::new();
    for key in keys {
        let path = Path::new(key);
        let is_assembled = assemblies().any(|assembly| (assembly.is_source)(path));
        match folders.find_real_file(path) {
            Some(metadata) if !is_assembled => {
                files.push(LogCandidate::from_metadata(path.to_owned(), &metadata));
            }
            Some(_) | None => others.extend(find_file(key)),
        }
    }
    (files, others)
}

/// Finds the log that the store knows as `key`, plain or compressed. `None` if it does not exist.
pub(crate) fn find_candidate(key: &str) -> Option<LogCandidate> {
    let found = discover(find_file(key).as_slice());
    found.files.into_iter().find(|file| file.key() == key)
}

/// Returns whether the log that the store knows as `key` is no longer in any of its possible files.
/// A file that cannot be reached, as in a folder without permission, is not gone.
pub(crate) fn is_gone(key: &str) -> bool {
    match find_file(key) {
        Some(file) => {
            let found = discover(&[file]);
            found.problems.is_empty() && found.files.iter().all(|candidate| candidate.key() != key)
        }
        None => find_obstacle(key).is_none(),
    }
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
        let found = discover_known(&keys);
        assert_eq!(found.files, expected.files);
        assert_eq!(found.files.len(), 3);
        assert!(!found.problems.is_empty(), "the database is none");
        assert!(discover_known(&[]).files.is_empty());
    }
}
