//! Finds logs that differ from the store by name, size and time, without opening a file.

use std::collections::{HashMap, HashSet};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use ingest::discover::{discover, discover_changed, discover_known};
use ingest::source::candidate::LogCandidate;
use schemas::session::SourceStatus;

use store::SourceTable;

/// The differences between the files on disk and the store.
#[derive(Debug, Default)]
pub struct PendingLogs {
    /// Files that grew, appeared or were rewritten, or that another version of their decoder read.
    pub changed: Vec<LogCandidate>,
    /// Files that no longer exist.
    pub vanished: Vec<String>,
}

/// Searches `roots` and every file that was ingested from elsewhere. `known` are the files as the
/// store knows them; the folder `store` is skipped.
pub fn find_pending_logs(roots: &[PathBuf], store: &Path, known: &SourceTable) -> PendingLogs {
    let mut found = discover(roots);
    found.append(discover_known(&paths_elsewhere(roots, known), &|_| false));
    let mut found = found.without_folder(store);

    let present: HashSet<String> = found.files.iter().map(LogCandidate::key).collect();
    let mut vanished = Vec::new();
    for source in known.iter() {
        let path = known.path(source);
        let is_missing = source.status != SourceStatus::Gone && !present.contains(path);
        if is_missing && found.has_lost(path) {
            vanished.push(path.to_owned());
        }
    }
    vanished.sort_unstable();
    found.files.retain(|file| !is_read(file, known));
    PendingLogs { changed: found.files, vanished }
}

/// Returns the files among those of [`find_pending_logs`] that differ from the store.
pub fn find_all_changed_logs(
    roots: &[PathBuf],
    store: &Path,
    known: &SourceTable,
) -> Vec<LogCandidate> {
    let is_unchanged = |file: &LogCandidate| is_read(file, known);
    let mut found = discover_changed(roots, &is_unchanged);
    found.append(discover_known(&paths_elsewhere(roots, known), &is_unchanged));
    found.without_folder(store).files
}

/// Returns the known logs that are not below `roots`, those of a folder one after the other.
pub fn paths_elsewhere<'k>(roots: &[PathBuf], known: &'k SourceTable) -> Vec<&'k str> {
    // Compares folders, because most roots are folders, and there are few folders.
    let is_in_roots = |path: &str| roots.iter().any(|root| is_below(path, root));
    let mut positions: HashMap<&str, Option<usize>> = HashMap::new();
    let mut folders: Vec<Vec<&str>> = Vec::new();
    let mut last: Option<(&str, Option<usize>)> = None;
    for source in known.iter() {
        let path = known.path(source);
        let folder = path.rsplit_once(MAIN_SEPARATOR).map_or("", |(folder, _)| folder);
        let position = match last {
            Some((last, position)) if last == folder => position,
            Some(_) | None => *positions.entry(folder).or_insert_with(|| {
                if is_in_roots(folder) {
                    return None;
                }
                folders.push(Vec::new());
                Some(folders.len() - 1)
            }),
        };
        last = Some((folder, position));
        if let Some(position) = position {
            folders[position].push(path);
        }
    }
    let mut paths = folders.concat();
    // A root may be a file.
    let files: Vec<&PathBuf> = roots.iter().filter(|root| !root.is_dir()).collect();
    paths.retain(|path| !files.iter().any(|file| is_below(path, file)));
    paths
}

/// Returns whether `path` is `folder` or below it. Both are without `.` and `..`.
pub fn is_below(path: &str, folder: &Path) -> bool {
    // `Path::starts_with` compares part by part, which takes too long for the paths of all logs.
    let Some(rest) = folder.to_str().and_then(|folder| path.strip_prefix(folder)) else {
        return Path::new(path).starts_with(folder);
    };
    rest.is_empty() || rest.starts_with(MAIN_SEPARATOR) || Path::new(path).starts_with(folder)
}

/// Returns those of `files` that differ from the store. `known` are the files as the store knows them;
/// the folder `store` is skipped.
pub fn find_changed_logs(
    files: &[PathBuf],
    store: &Path,
    known: &SourceTable,
) -> Vec<LogCandidate> {
    let mut found = discover(files).without_folder(store).files;
    found.retain(|file| !is_read(file, known));
    found
}

/// Returns whether a file is as it was when it was read, by this version of its decoder.
fn is_read(file: &LogCandidate, known: &SourceTable) -> bool {
    let source = file.with_key(|key| known.find(key));
    source.is_some_and(|source| source.state.is_current(file) && source.state.is_of_this_decoder())
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
