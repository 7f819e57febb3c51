//! Finds logs that differ from the store by name, size and time, without opening a file.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use ingest::discover::{discover, file_of};
use ingest::plan::unchanged;
use ingest::source::candidate::Candidate;
use schemas::session::{SourceRow, SourceStatus};

/// The differences between the files on disk and the store.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Files that grew, appeared or were rewritten.
    pub changed: Vec<Candidate>,
    /// Files that no longer exist.
    pub vanished: Vec<String>,
}

/// Searches `roots` and every file that was ingested from elsewhere. `known` are the files as the
/// store knows them; the folder `store` is skipped.
pub(crate) fn pending(
    roots: &[PathBuf],
    store: &Path,
    known: &BTreeMap<String, SourceRow>,
) -> Pending {
    let mut places = roots.to_vec();
    let elsewhere = |path: &&String| !roots.iter().any(|root| Path::new(path).starts_with(root));
    places.extend(known.keys().filter(elsewhere).filter_map(|path| file_of(path)));
    places.dedup();
    let found = discover(&places).without(store);
    let present: HashSet<String> = found.files.iter().map(Candidate::key).collect();
    let vanished = known
        .values()
        .filter(|row| row.status != SourceStatus::Gone && !present.contains(&row.path))
        .filter(|row| found.has_lost(&row.path))
        .map(|row| row.path.clone())
        .collect();
    let changed = found
        .files
        .into_iter()
        .filter(|file| known.get(&file.key()).is_none_or(|row| !unchanged(file, row)));
    Pending { changed: changed.collect(), vanished }
}
