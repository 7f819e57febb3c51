//! Finds known logs again by the keys under which the store has them.

use std::path::{Path, PathBuf};

use super::reach::{find_file, find_obstacle};
use super::walk::{Discovery, RealFolders, discover};
use crate::provider::assemblies;
use crate::source::candidate::LogCandidate;

/// Number of known logs for which one more thread is started.
const LOGS_PER_THREAD: usize = 1000;

/// Finds the logs that the store knows by these keys, plain or compressed, each at its own path, and
/// keeps those for which `is_unchanged` is false. Logs that do not exist are left out. A database is
/// found with all its sessions.
pub fn discover_known(
    keys: &[&str],
    is_unchanged: &(dyn Fn(&LogCandidate) -> bool + Sync),
) -> Discovery {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(keys.len().div_ceil(LOGS_PER_THREAD))
        .max(1);
    let mut files = Vec::new();
    let mut others = Vec::new();
    std::thread::scope(|scope| {
        let parts = keys.chunks(keys.len().div_ceil(threads).max(1));
        let look = |keys| scope.spawn(move || find_plain_files(keys, is_unchanged));
        let handles: Vec<_> = parts.map(look).collect();
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
    found.files.retain(|file| !is_unchanged(file));
    found
}

/// Examines each log once if it is a plain file at its own path, as most are. Returns those of them that
/// changed, and the paths of the other logs that exist.
fn find_plain_files(
    keys: &[&str],
    is_unchanged: &(dyn Fn(&LogCandidate) -> bool + Sync),
) -> (Vec<LogCandidate>, Vec<PathBuf>) {
    let mut folders = RealFolders::default();
    let mut files = Vec::new();
    let mut others = Vec::new();
    for key in keys {
        let path = Path::new(key);
        let is_assembled = assemblies().any(|assembly| assembly.has_source(path));
        match folders.find_real_file(path) {
            Some(metadata) if !is_assembled => {
                let file = LogCandidate::from_metadata(path.to_owned(), &metadata);
                if !is_unchanged(&file) {
                    files.push(file);
                }
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
        let found = discover_known(&keys, &|_| false);
        assert_eq!(found.files, expected.files);
        assert_eq!(found.files.len(), 3);
        assert_eq!(found.problems.len(), expected.problems.len());
        assert!(discover_known(&[], &|_| false).files.is_empty());
        let found = discover_known(&keys, &|file| file.path.ends_with("a.jsonl"));
        assert_eq!(found.files.len(), 2);
    }
}
