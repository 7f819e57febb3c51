//! A column of texts of a segment's sessions, which is read without their rows: the paths of logs,
//! or the titles.

use std::ops::Range;
use std::path::Path;

use schemas::table::SESSIONS;

use super::row_columns::RowColumns;
use super::row_encoder::RowError;
use super::row_file::{layout_of, rows_after_head};
use super::session_brief::SessionBrief;
use super::small_files::read_row_file_bytes;
use crate::error::StoreError;
use crate::manifest::{SESSION_ROWS, SegmentEntry};

/// The values of a column of texts for some sessions.
pub(super) struct SessionTexts {
    /// All texts, one after the other.
    texts: String,
    /// The place of the text of each session. `None` if it has none.
    places: Vec<Option<Range<usize>>>,
}

impl SessionTexts {
    /// Returns the text of the session at a position.
    pub(super) fn text(&self, at: usize) -> Option<&str> {
        self.places[at].clone().map(|place| &self.texts[place])
    }
}

/// Reads a column from the row file of a segment, whose sessions are those of `briefs`. `None` if
/// the segment has no such file, or one of another layout.
///
/// # Errors
/// Fails if the file cannot be read, is damaged, or has other sessions.
pub(super) fn read_session_texts(
    store: &Path,
    entry: &SegmentEntry,
    column: &str,
    briefs: &[SessionBrief],
) -> Result<Option<SessionTexts>, StoreError> {
    let Some((file, bytes)) = read_row_file_bytes(store, entry, SESSION_ROWS)? else {
        return Ok(None);
    };
    let Some(rows) = rows_after_head(&layout_of(&SESSIONS), &bytes) else { return Ok(None) };
    let mut read = SessionTexts { texts: String::new(), places: Vec::with_capacity(briefs.len()) };
    let columns = RowColumns::new(&SESSIONS, ["session_id", column]);
    let result = columns.read_rows(rows, |[id, value]| {
        let brief = briefs.get(read.places.len());
        if brief.map(|brief| brief.session_id.as_str()) != id {
            return Err(RowError(OTHER_SESSIONS.to_owned()));
        }
        read.places.push(value.map(|text| {
            let start = read.texts.len();
            read.texts.push_str(text);
            start..read.texts.len()
        }));
        Ok(())
    });
    result.map_err(|error| StoreError::damaged(&file, error))?;
    if read.places.len() != briefs.len() {
        return Err(StoreError::damaged(&file, OTHER_SESSIONS));
    }
    read.texts.shrink_to_fit();
    Ok(Some(read))
}

/// The reason of damage if the rows of sessions are not those of their briefs.
pub(super) const OTHER_SESSIONS: &str = "its sessions are not those of their briefs";
