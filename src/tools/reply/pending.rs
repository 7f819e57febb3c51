//! Finds logs that differ from the store by name, size and time, without opening a file.

use std::collections::{HashMap, HashSet};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use ingest::discover::{Discovery, discover, discover_known};
use ingest::plan::{is_of_this_decoder, is_unchanged};
use ingest::source::candidate::LogCandidate;
use schemas::session::{SourceRow, SourceStatus};

/// The differences between the files on disk and the store.
#[derive(Debug, Default)]
pub(crate) struct PendingLogs {
    /// Files that grew, appeared or were rewritten, or that another version of their decoder read.
    pub changed: Vec<LogCandidate>,
    /// Files that no longer exist.
    pub vanished: Vec<String>,
}

/// Searches `roots` and every file that was ingested from elsewhere. `known` are the files as the
/// store knows them; the folder `store` is skipped.
pub(crate) fn find_pending_logs(
    roots: &[PathBuf],
    store: &Path,
    known: &HashMap<String, SourceRow>,
) -> PendingLogs {
    let mut found = discover(roots);
    found.append(discover_elsewhere(roots, known));
    let found = found.without_folder(store);

    let present: HashSet<String> = found.files.iter().map(LogCandidate::key).collect();
    let mut vanished = Vec::new();
    for row in known.values() {
        let is_missing = row.status != SourceStatus::Gone && !present.contains(&row.path);
        if is_missing && found.has_lost(&row.path) {
            vanished.push(row.path.clone());
        }
    }
    vanished.sort_unstable();
    PendingLogs { changed: select_changed(found.files, known), vanished }
}

/// Finds the known logs that are not below `roots`.
pub(crate) fn discover_elsewhere(
    roots: &[PathBuf],
    known: &HashMap<String, SourceRow>,
) -> Discovery {
    let keys = known.keys().map(String::as_str);
    let elsewhere: Vec<&str> =
        keys.filter(|key| !roots.iter().any(|root| is_below(key, root))).collect();
    discover_known(&elsewhere)
}

/// Returns whether `path` is `folder` or below it. Both are without `.` and `..`.
pub(crate) fn is_below(path: &str, folder: &Path) -> bool {
    // `Path::starts_with` compares part by part, which takes too long for the paths of all logs.
    let Some(rest) = folder.to_str().and_then(|folder| path.strip_prefix(folder)) else {
        return Path::new(path).starts_with(folder);
    };
    rest.is_empty() || rest.starts_with(MAIN_SEPARATOR) || Path::new(path).starts_with(folder)
}

/// Returns those of `files` that differ from the store. `known` are the files as the store knows them;
/// the folder `store` is skipped.
pub(crate) fn find_changed_logs(
    files: &[PathBuf],
    store: &Path,
    known: &HashMap<String, SourceRow>,
) -> Vec<LogCandidate> {
    let found = discover(files).without_folder(store).files;
    select_changed(found, known)
}

/// Returns the files that are not as the store knows them.
pub(crate) fn select_changed(
    files: Vec<LogCandidate>,
    known: &HashMap<String, SourceRow>,
) -> Vec<LogCandidate> {
    let is_new =
        |file: &LogCandidate| known.get(&file.key()).is_none_or(|row| must_be_read(file, row));
    files.into_iter().filter(is_new).collect()
}

/// Returns whether a known file changed, or was read by another version of its decoder.
fn must_be_read(file: &LogCandidate, row: &SourceRow) -> bool {
    !is_unchanged(file, row) || !is_of_this_decoder(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_whole_names_only() {
        let check = |path, folder| is_below(path, Path::new(folder));
        for (path, folder) in [("/a/b", "/a"), ("/a/b/c", "/a/b"), ("/a", "/a"), ("/a", "/")] {
            assert!(check(path, folder), "{path} {folder}");
        }
        for (path, folder) in [("/ab", "/a"), ("/a", "/a/b"), ("/b/a", "/a"), ("a", "/a")] {
            assert!(!check(path, folder), "{path} {folder}");
        }
        assert!(check("/a/b", "/a/") && !check("/ab", "/a/"));
    }
}
