//! Finds logs that differ from the store by name, size and time, without opening a file.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use ingest::discover::{discover, find_file};
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
    known: &BTreeMap<String, SourceRow>,
) -> PendingLogs {
    let mut places = roots.to_vec();
    for path in known.keys() {
        let is_in_roots = roots.iter().any(|root| Path::new(path).starts_with(root));
        if !is_in_roots {
            places.extend(find_file(path));
        }
    }
    places.dedup();
    let found = discover(&places).without_folder(store);

    let present: HashSet<String> = found.files.iter().map(LogCandidate::key).collect();
    let mut vanished = Vec::new();
    for row in known.values() {
        let is_missing = row.status != SourceStatus::Gone && !present.contains(&row.path);
        if is_missing && found.has_lost(&row.path) {
            vanished.push(row.path.clone());
        }
    }
    PendingLogs { changed: select_changed(found.files, known), vanished }
}

/// Returns those of `files` that differ from the store. `known` are the files as the store knows them;
/// the folder `store` is skipped.
pub(crate) fn find_changed_logs(
    files: &[PathBuf],
    store: &Path,
    known: &BTreeMap<String, SourceRow>,
) -> Vec<LogCandidate> {
    let found = discover(files).without_folder(store).files;
    select_changed(found, known)
}

/// Returns the files that are not as the store knows them.
fn select_changed(
    files: Vec<LogCandidate>,
    known: &BTreeMap<String, SourceRow>,
) -> Vec<LogCandidate> {
    let is_new =
        |file: &LogCandidate| known.get(&file.key()).is_none_or(|row| must_be_read(file, row));
    files.into_iter().filter(is_new).collect()
}

/// Returns whether a known file changed, or was read by another version of its decoder.
fn must_be_read(file: &LogCandidate, row: &SourceRow) -> bool {
    !is_unchanged(file, row) || !is_of_this_decoder(row)
}
