//! The paths of the logs of a segment's sessions, which an ingest needs of every session.

use std::ops::Range;
use std::path::Path;

use schemas::table::SESSIONS;

use super::row_columns::RowColumns;
use super::row_file::{layout_of, rows_after_head};
use super::small_files::read_row_file_bytes;
use crate::store::error::StoreError;
use crate::store::manifest::{SESSION_ROWS, SegmentEntry};

/// The ids of some sessions and the paths of their logs.
pub(super) struct SessionPaths {
    /// All ids and paths, one after the other.
    texts: String,
    /// Places of the id and of the path of each session.
    places: Vec<(Range<usize>, Range<usize>)>,
}

impl SessionPaths {
    /// Returns the ids, in the order of the rows.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|(id, _)| &self.texts[id.clone()])
    }

    /// Returns the path of the log of the session at a position.
    pub(super) fn path(&self, at: usize) -> &str {
        &self.texts[self.places[at].1.clone()]
    }
}

/// Reads the paths from the row file of a segment. `None` if it has none, or one of another layout.
pub(super) fn read_session_paths(
    store: &Path,
    entry: &SegmentEntry,
) -> Result<Option<SessionPaths>, StoreError> {
    let Some((file, bytes)) = read_row_file_bytes(store, entry, SESSION_ROWS)? else {
        return Ok(None);
    };
    let Some(rows) = rows_after_head(&layout_of(&SESSIONS), &bytes) else { return Ok(None) };
    let mut paths = SessionPaths { texts: String::new(), places: Vec::new() };
    let columns = RowColumns::new(&SESSIONS, ["session_id", "source_path"]);
    let read = columns.read_rows(rows, |values| {
        let [id, path] = values.map(|value| {
            let start = paths.texts.len();
            paths.texts.push_str(value.text().unwrap_or_default());
            start..paths.texts.len()
        });
        paths.places.push((id, path));
        Ok(())
    });
    read.map_err(|error| StoreError::damaged(&file, error))?;
    Ok(Some(paths))
}
