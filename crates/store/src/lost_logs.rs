//! Remembers which logs lost rows with a damaged segment, until they are read again.

use std::collections::HashSet;
use std::path::PathBuf;

use ingest::discover::find_file;

use super::error::StoreError;
use super::lake::keys::LAKE_PATH;
use super::manifest::{LostLogs, SegmentEntry};
use super::segment::segment_rows::RowSource;
use super::snapshot::Snapshot;

/// Adds the logs of a damaged segment to `lost`.
pub(super) fn add_segment(lost: &mut LostLogs, rows: &RowSource, segment: &SegmentEntry) {
    match read_log_paths(rows, segment) {
        Some(paths) => {
            lost.paths.extend(paths);
            lost.paths.sort_unstable();
            lost.paths.dedup();
        }
        None => lost.segments.push(segment.number),
    }
}

/// Returns the files to read again: those of the lost logs, and those of sessions with missing
/// rows. Logs that no longer exist are left out.
pub(super) fn find_files(lost: &LostLogs, snapshot: &Snapshot) -> Result<Vec<PathBuf>, StoreError> {
    let incomplete = incomplete_ids(snapshot);
    let mut files: Vec<PathBuf> = lost.paths.iter().filter_map(|path| find_file(path)).collect();
    if !incomplete.is_empty() {
        for row in snapshot.read_sources(false)? {
            if row.session_id.as_deref().is_some_and(|id| incomplete.contains(id)) {
                files.extend(find_file(&row.path));
            }
        }
    }
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// Returns the same without the logs that `snapshot` has again: their file exists, so the ingest
/// that just ended read it, or a pull brought them.
pub(super) fn without_read_again(
    lost: &LostLogs,
    snapshot: &Snapshot,
) -> Result<LostLogs, StoreError> {
    let incomplete = incomplete_ids(snapshot);
    let mut complete = HashSet::new();
    for row in snapshot.read_sources(false)? {
        if row.session_id.as_deref().is_none_or(|id| !incomplete.contains(id)) {
            complete.insert(row.path);
        }
    }
    let mut lost = lost.clone();
    let is_back = |path: &str| path.starts_with(LAKE_PATH) || find_file(path).is_some();
    lost.paths.retain(|path| !complete.contains(path) || !is_back(path));
    Ok(lost)
}

fn incomplete_ids(snapshot: &Snapshot) -> HashSet<&str> {
    snapshot.incomplete_sessions().map(|row| row.session_id.as_str()).collect()
}

/// Returns the paths of the logs with rows in a segment; `None` if they cannot be read.
fn read_log_paths(rows: &RowSource, segment: &SegmentEntry) -> Option<Vec<String>> {
    let rows = rows.read_sources(segment.number).ok()?;
    let logs = rows.into_iter().filter(|row| row.session_id.is_some());
    Some(logs.map(|row| row.path).collect())
}
