//! The rows of the small tables while a segment is written.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use schemas::session::{SessionRow, SourceRow};
use schemas::table::{SESSIONS, SOURCES};

use super::row_encoder::RowError;
use super::row_file::layout_of;
use super::session_brief::SessionBrief;
use super::source_brief::SourceValues;
use super::table_columns::{EncodedRows, SeparateColumn};
use crate::manifest::{SESSION_BRIEFS, SESSION_ROWS, SOURCE_BRIEFS, SOURCE_ROWS};

/// The states of sessions and files that a segment records.
#[derive(Default)]
pub(super) struct RecordedRows {
    sessions: EncodedRows,
    /// The briefs of `sessions`.
    briefs: EncodedRows,
    /// The sources without the states of their decoders: an ingest that has something to read decodes
    /// the row file, and needs no states.
    sources: EncodedRows,
    /// The briefs of `sources`.
    source_briefs: EncodedRows,
    /// The states of `sources`, as texts of a row; empty if there is none.
    states: EncodedRows,
    /// The rows that were recorded last and are not in the tables yet. A long log has many checkpoints
    /// one after the other, of which only the last one counts.
    last_session: Option<Box<SessionRow>>,
    last_source: Option<Box<SourceRow>>,
}

impl RecordedRows {
    /// Returns whether nothing was recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.last_session.is_none() && self.last_source.is_none()
    }

    /// Returns the number of rows of files, without the last one.
    pub(super) fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Records the state of a session, which replaces an earlier one.
    pub(super) fn record_session(&mut self, row: Box<SessionRow>) -> Result<(), RowError> {
        match self.last_session.replace(row) {
            Some(last) if !self.is_last_session(&last) => self.push_session(&last),
            Some(_) | None => Ok(()),
        }
    }

    /// Records the state of a file, which replaces an earlier one.
    pub(super) fn record_source(&mut self, row: Box<SourceRow>) -> Result<(), RowError> {
        match self.last_source.replace(row) {
            Some(last) if !self.is_last_source(&last) => self.push_source(last),
            Some(_) | None => Ok(()),
        }
    }

    fn is_last_session(&self, row: &SessionRow) -> bool {
        self.last_session.as_ref().is_some_and(|last| last.session_id == row.session_id)
    }

    fn is_last_source(&self, row: &SourceRow) -> bool {
        self.last_source.as_ref().is_some_and(|last| last.path == row.path)
    }

    fn push_session(&mut self, row: &SessionRow) -> Result<(), RowError> {
        self.sessions.push(row)?;
        self.briefs.push(&SessionBrief::from_row(row))
    }

    fn push_source(&mut self, mut row: Box<SourceRow>) -> Result<(), RowError> {
        match row.state.take() {
            Some(state) => self.states.push(&state)?,
            None => self.states.push_bytes(&[])?,
        }
        self.sources.push(&*row)?;
        self.source_briefs.push(&SourceValues::of_row(&row))
    }

    /// Sorts the rows by key. Of several rows with the same key, the last one is kept.
    pub(super) fn finish(mut self) -> Result<FinishedRows, RowError> {
        if let Some(last) = self.last_session.take() {
            self.push_session(&last)?;
        }
        if let Some(last) = self.last_source.take() {
            self.push_source(last)?;
        }
        Ok(FinishedRows {
            session_positions: self.sessions.sorted_positions()?,
            source_positions: self.sources.sorted_positions()?,
            recorded: self,
        })
    }
}

/// The rows of a finished segment, in the order of their keys.
pub(super) struct FinishedRows {
    recorded: RecordedRows,
    session_positions: Vec<usize>,
    source_positions: Vec<usize>,
}

/// The rows of a row file.
pub(super) struct RowFileRows<'r> {
    pub(super) name: &'static str,
    pub(super) layout: String,
    pub(super) rows: &'r EncodedRows,
    /// The positions of the rows in the order of the file.
    pub(super) positions: &'r [usize],
}

impl FinishedRows {
    /// Returns the rows of sessions.
    pub(super) fn sessions(&self) -> Result<RecordBatch, ArrowError> {
        self.recorded.sessions.to_batch(&SESSIONS, &self.session_positions, None)
    }

    /// Returns the rows of files.
    pub(super) fn sources(&self) -> Result<RecordBatch, ArrowError> {
        let states = SeparateColumn { name: "state", texts: &self.recorded.states };
        self.recorded.sources.to_batch(&SOURCES, &self.source_positions, Some(states))
    }

    /// Returns the rows of the row files.
    pub(super) fn row_files(&self) -> [RowFileRows<'_>; 4] {
        let RecordedRows { sessions, briefs, sources, source_briefs, .. } = &self.recorded;
        [
            RowFileRows {
                name: SESSION_BRIEFS,
                layout: SessionBrief::layout(),
                rows: briefs,
                positions: &self.session_positions,
            },
            RowFileRows {
                name: SESSION_ROWS,
                layout: layout_of(&SESSIONS),
                rows: sessions,
                positions: &self.session_positions,
            },
            RowFileRows {
                name: SOURCE_BRIEFS,
                layout: SourceValues::layout(),
                rows: source_briefs,
                positions: &self.source_positions,
            },
            RowFileRows {
                name: SOURCE_ROWS,
                layout: layout_of(&SOURCES),
                rows: sources,
                positions: &self.source_positions,
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use schemas::session::SourceStatus;
    use serde::de::DeserializeOwned;

    use super::super::row_decoder::{RowDecoder, take_row};
    use super::super::session_brief::RecentOrigins;
    use super::*;

    fn source(path: &str, size: i64) -> SourceRow {
        SourceRow::unread(path.to_owned(), SourceStatus::Empty, size, 0)
    }

    fn check(recorded: &[(&str, i64)], want: &[(&str, i64)]) {
        let mut rows = RecordedRows::default();
        assert!(rows.is_empty());
        for (path, size) in recorded {
            let row = SourceRow { state: state_of(*size), ..source(path, *size) };
            rows.record_source(Box::new(row)).expect("fits");
            let (session_id, events) = ((*path).to_owned(), *size);
            let row = SessionRow { session_id, events, ..SessionRow::default() };
            rows.record_session(Box::new(row)).expect("fits");
        }

        let finished = rows.finish().expect("sorts");
        let want_sources: Vec<_> = want.iter().map(|(path, size)| source(path, *size)).collect();
        let batch = finished.sources().expect("fits");
        let found: Vec<SourceRow> = serde_arrow::from_record_batch(&batch).expect("reads");
        assert!(found.iter().all(|row| row.state == state_of(row.size)));
        let found = found.into_iter().map(|row| SourceRow { state: None, ..row });
        assert_eq!(found.collect::<Vec<_>>(), want_sources);
        let batch = finished.sessions().expect("fits");
        let found: Vec<SessionRow> = serde_arrow::from_record_batch(&batch).expect("reads");
        let want_events = || want.iter().map(|(path, size)| ((*path).to_owned(), *size));
        assert!(found.into_iter().map(|row| (row.session_id, row.events)).eq(want_events()));

        let [briefs, sessions, source_briefs, sources] = finished.row_files();
        assert_eq!(decode::<SourceRow>(&sources), want_sources);
        let rows = decode::<SessionRow>(&sessions).into_iter();
        assert!(rows.map(|row| (row.session_id, row.events)).eq(want_events()));
        let rows = briefs.positions.iter().map(|at| {
            let mut row = briefs.rows.row(*at);
            let brief =
                SessionBrief::take(&mut RowDecoder::new(&mut row), &mut RecentOrigins::new());
            brief.expect("a brief")
        });
        assert!(rows.map(|row| (row.session_id, row.events)).eq(want_events()));
        for (at, want) in source_briefs.positions.iter().zip(&want_sources) {
            let mut row = source_briefs.rows.row(*at);
            let brief = SourceValues::take(&mut RowDecoder::new(&mut row)).expect("a brief");
            assert_eq!(brief, SourceValues::of_row(want));
        }
        assert_eq!(source_briefs.positions.len(), want_sources.len());
    }

    fn decode<T: DeserializeOwned>(file: &RowFileRows<'_>) -> Vec<T> {
        let rows = file.positions.iter().map(|at| take_row(&mut file.rows.row(*at)));
        rows.collect::<Result<_, _>>().expect("rows")
    }

    /// Every third row has no state.
    fn state_of(size: i64) -> Option<String> {
        (size % 3 > 0).then(|| format!("state {size}"))
    }

    #[test]
    fn rows_are_sorted_and_the_last_of_a_key_is_kept() {
        check(&[("/a", 1), ("/b", 2)], &[("/a", 1), ("/b", 2)]);
        check(
            &[("/b", 1), ("/a", 2), ("/b", 3), ("/b", 4), ("/c", 5), ("/a", 6)],
            &[("/a", 6), ("/b", 4), ("/c", 5)],
        );
        check(&[("/a", 1), ("/b", 2), ("/b", 3)], &[("/a", 1), ("/b", 3)]);
        check(&[], &[]);
    }
}
