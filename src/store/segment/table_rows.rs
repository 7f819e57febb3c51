//! Collects the rows of a small table while a segment is written, as columns and as the bytes of its
//! row file. A segment of many small logs has tens of thousands of rows. As structs they take several
//! times as much memory, and are no longer in a near cache when the segment ends.

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use ingest::stream::batch::arrow_schema;
use schemas::session::{SessionRow, SourceRow};
use schemas::table::{SESSIONS, SOURCES, Table};
use serde::Serialize;

use super::row_decoder::first_text;
use super::row_encoder::{RowError, append_row};
use super::session_brief::SessionBrief;
use super::table_columns::TableColumns;

/// The encoded rows of a row file, in the order in which they were added.
#[derive(Default)]
pub(super) struct EncodedRows {
    bytes: Vec<u8>,
    /// The end of each row in `bytes`.
    ends: Vec<usize>,
}

impl EncodedRows {
    /// Adds a row.
    pub(super) fn push<T: Serialize>(&mut self, row: &T) -> Result<(), RowError> {
        append_row(row, &mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Returns the bytes of a row.
    pub(super) fn row(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    /// Returns the positions of the rows in the order of their first field, a text. Of several rows
    /// with the same text, the last one is kept.
    fn sorted_positions(&self) -> Result<Vec<u32>, RowError> {
        let mut keyed = Vec::with_capacity(self.ends.len());
        for at in 0..u32::try_from(self.ends.len()).unwrap_or(u32::MAX) {
            keyed.push((first_text(self.row(at))?, at));
        }
        keyed.sort_unstable();
        keyed.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                earlier.1 = later.1;
            }
            is_same
        });
        Ok(keyed.into_iter().map(|(_, at)| at).collect())
    }
}

/// The rows of a small table, whose first column is their key. Each row is added to both fields.
pub(super) struct TableRows {
    schema: SchemaRef,
    pub(super) columns: TableColumns,
    pub(super) encoded: EncodedRows,
}

/// The rows of a small table in the order of their keys.
pub(super) struct SortedRows {
    pub(super) batch: RecordBatch,
    pub(super) encoded: EncodedRows,
    /// The positions of the rows of the batch in `encoded`.
    pub(super) positions: Vec<u32>,
}

impl TableRows {
    /// Returns no rows of `table`.
    ///
    /// # Panics
    /// Never: the columns of the small tables are of types that rows have.
    pub(super) fn new(table: &Table) -> Self {
        let schema = arrow_schema(table);
        let columns = TableColumns::new(&schema, 0).expect("columns of a small table");
        Self { schema, columns, encoded: EncodedRows::default() }
    }

    /// Sorts the rows by key. Of several rows with the same key, the last one is kept.
    pub(super) fn finish(self) -> Result<SortedRows, ArrowError> {
        let Self { schema, columns, encoded } = self;
        let positions = encoded.sorted_positions();
        let positions = positions.map_err(|error| ArrowError::from_external_error(error.into()))?;
        let mut batch = columns.finish(&schema)?;
        let is_in_order = positions.iter().enumerate().all(|(row, at)| *at as usize == row);
        if !is_in_order || positions.len() < batch.num_rows() {
            batch = take_record_batch(&batch, &UInt32Array::from(positions.clone()))?;
        }
        Ok(SortedRows { batch, encoded, positions })
    }
}

/// The states of sessions and files that a segment records.
pub(super) struct RecordedRows {
    sessions: TableRows,
    /// As many as there are rows in `sessions`.
    briefs: EncodedRows,
    sources: TableRows,
    /// The rows that were recorded last and are not in the tables yet. A long log has many checkpoints
    /// one after the other, of which only the last one counts.
    last_session: Option<Box<SessionRow>>,
    last_source: Option<Box<SourceRow>>,
}

/// The rows of a finished segment.
pub(super) struct FinishedRows {
    pub(super) sessions: SortedRows,
    /// The briefs of the sessions, at the same positions.
    pub(super) briefs: EncodedRows,
    pub(super) sources: SortedRows,
}

impl RecordedRows {
    /// Returns no rows.
    pub(super) fn new() -> Self {
        Self {
            sessions: TableRows::new(&SESSIONS),
            briefs: EncodedRows::default(),
            sources: TableRows::new(&SOURCES),
            last_session: None,
            last_source: None,
        }
    }

    /// Returns whether nothing was recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.last_session.is_none() && self.last_source.is_none()
    }

    /// Returns the number of rows of files, without the last one.
    pub(super) fn source_count(&self) -> usize {
        self.sources.encoded.ends.len()
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
        self.sessions.columns.push(row)?;
        self.sessions.encoded.push(row)?;
        self.briefs.push(&SessionBrief::from_row(row))
    }

    fn push_source(&mut self, mut row: Box<SourceRow>) -> Result<(), RowError> {
        self.sources.columns.push(&*row)?;
        // The row file is read at every ingest, which needs no states.
        row.state = None;
        self.sources.encoded.push(&*row)
    }

    /// Returns the rows in the order of the keys.
    pub(super) fn finish(mut self) -> Result<FinishedRows, ArrowError> {
        let external = |error: RowError| ArrowError::from_external_error(error.into());
        if let Some(last) = self.last_session.take() {
            self.push_session(&last).map_err(external)?;
        }
        if let Some(last) = self.last_source.take() {
            self.push_source(last).map_err(external)?;
        }
        let sessions = self.sessions.finish()?;
        Ok(FinishedRows { sessions, briefs: self.briefs, sources: self.sources.finish()? })
    }
}

#[cfg(test)]
mod tests {
    use schemas::session::SourceStatus;

    use super::super::row_decoder::take_row;
    use super::*;

    fn source(path: &str, size: i64) -> SourceRow {
        SourceRow::unread(path.to_owned(), SourceStatus::Empty, size, 0)
    }

    fn check(recorded: &[(&str, i64)], want: &[(&str, i64)]) {
        let mut rows = RecordedRows::new();
        assert!(rows.is_empty());
        for (path, size) in recorded {
            let state = Some(format!("state {size}"));
            let row = SourceRow { state, ..source(path, *size) };
            rows.record_source(Box::new(row)).expect("fits");
            let (session_id, events) = ((*path).to_owned(), *size);
            let row = SessionRow { session_id, events, ..SessionRow::default() };
            rows.record_session(Box::new(row)).expect("fits");
        }

        let FinishedRows { sessions, briefs, sources } = rows.finish().expect("sorts");
        let want_short: Vec<_> = want.iter().map(|(path, size)| source(path, *size)).collect();
        let short = sources.positions.iter().map(|at| take_row(&mut sources.encoded.row(*at)));
        assert_eq!(short.collect::<Result<Vec<SourceRow>, _>>().expect("rows"), want_short);
        let found: Vec<SourceRow> = serde_arrow::from_record_batch(&sources.batch).expect("reads");
        assert!(found.iter().all(|row| row.state == Some(format!("state {}", row.size))));
        let found = found.into_iter().map(|row| SourceRow { state: None, ..row });
        assert_eq!(found.collect::<Vec<_>>(), want_short);

        let found: Vec<SessionRow> =
            serde_arrow::from_record_batch(&sessions.batch).expect("reads");
        for (encoded, brief) in [(&sessions.encoded, false), (&briefs, true)] {
            let rows = sessions.positions.iter().map(|at| encoded.row(*at));
            let ids_and_events = rows.map(|mut row| {
                if brief {
                    let brief: SessionBrief = take_row(&mut row).expect("a brief");
                    (brief.session_id, brief.events)
                } else {
                    let session: SessionRow = take_row(&mut row).expect("a row");
                    (session.session_id, session.events)
                }
            });
            let want = want.iter().map(|(path, size)| ((*path).to_owned(), *size));
            assert!(ids_and_events.eq(want));
        }
        assert!(
            found.iter().map(|row| (row.session_id.as_str(), row.events)).eq(want.iter().copied())
        );
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
