//! The sessions of a segment. A reader that starts reads a summary of each; a row, which has all
//! columns, is read when a value of it is first needed.
//!
//! At 20 GB of logs the rows of all sessions take five times as long to read as their summaries, and an
//! answer shows a few of them.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use schemas::session::SessionRow;

use super::segment_rows::RowSource;
use super::session_summary::SessionSummary;
use crate::error::StoreError;

/// The sessions of a segment, in the order of their ids.
pub(crate) struct SessionTable {
    summaries: Vec<SessionSummary>,
    /// The row of each session, once it was read.
    rows: Vec<OnceLock<Arc<SessionRow>>>,
    segment: i64,
    source: RowSource,
}

impl SessionTable {
    /// Reads the encoded summaries of the sessions of a segment.
    pub(crate) fn read_bytes(source: &RowSource, segment: i64) -> Result<Vec<u8>, StoreError> {
        source.read_summaries(segment)
    }

    /// Returns the table of the sessions of a segment with these encoded summaries.
    pub(crate) fn decode(
        source: RowSource,
        segment: i64,
        summaries: &[u8],
    ) -> Result<Self, StoreError> {
        let summaries = source.decode_summaries(summaries)?;
        let rows = summaries.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { summaries, rows, segment, source })
    }

    /// Returns the summaries.
    pub(crate) fn summaries(&self) -> &[SessionSummary] {
        &self.summaries
    }

    /// Returns where its rows are.
    pub(crate) fn source(&self) -> &RowSource {
        &self.source
    }

    /// Returns whether some row was read.
    pub(crate) fn has_rows(&self) -> bool {
        self.rows.iter().any(|row| row.get().is_some())
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// Fails if they cannot be read, or are not those of the summaries.
    pub(crate) fn read_rows(&self) -> Result<Vec<Arc<SessionRow>>, StoreError> {
        if self.rows.iter().any(|row| row.get().is_none()) {
            let read = self.source.read_sessions(self.segment, &self.summaries)?;
            for (row, read) in self.rows.iter().zip(read) {
                let _ = row.set(read);
            }
        }
        Ok(self.rows.iter().filter_map(|row| row.get().cloned()).collect())
    }

    /// Returns the row at a position.
    fn row(&self, at: usize) -> Result<&Arc<SessionRow>, StoreError> {
        let row = &self.rows[at];
        match row.get() {
            Some(row) => Ok(row),
            None => {
                let read = self.source.read_session(self.segment, at, &self.summaries[at])?;
                Ok(row.get_or_init(|| read))
            }
        }
    }
}

/// A session of a snapshot. Its row is read when a value of it is first needed.
#[derive(Clone)]
pub struct StoredSession {
    table: Arc<SessionTable>,
    /// Position in the table.
    at: usize,
}

impl StoredSession {
    pub(crate) fn new(table: &Arc<SessionTable>, at: usize) -> Self {
        Self { table: Arc::clone(table), at }
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.session_id
    }

    /// Returns the row, which is read when it is first needed.
    ///
    /// # Errors
    /// Fails if it cannot be read, or is not that of the summary.
    pub fn row(&self) -> Result<&Arc<SessionRow>, StoreError> {
        self.table.row(self.at)
    }
}

impl Deref for StoredSession {
    type Target = SessionSummary;

    fn deref(&self) -> &SessionSummary {
        &self.table.summaries[self.at]
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment_rows::rows_of;
    use super::*;

    fn table(change: impl Fn(&mut Vec<u8>)) -> Arc<SessionTable> {
        let mut rows = rows_of((0..20).map(|number| SessionRow {
            session_id: format!("{number:03}"),
            source_path: format!("/logs/{number}"),
            title: Some(format!("title {number}")),
            project: (number % 2 > 0).then(|| "harbor".to_owned()),
            ended_at: (number % 3 > 0).then_some(number),
            messages: number % 4,
            tool_calls: number,
            relation: (number % 5 > 3).then(|| "subagent_of".to_owned()),
            ..SessionRow::default()
        }));
        change(&mut rows.session_rows[7]);
        let source = RowSource::Memory(Arc::new(rows));
        let summaries = SessionTable::read_bytes(&source, 1).expect("reads");
        Arc::new(SessionTable::decode(source, 1, &summaries).expect("decodes"))
    }

    #[test]
    fn rows_are_read_when_needed_and_fit_their_summaries() {
        let table = table(|_| {});
        let session = StoredSession::new(&table, 7);
        assert_eq!((session.source_path.as_str(), session.ended_at), ("/logs/7", Some(7)));
        assert!(!table.has_rows());
        assert_eq!(session.row().expect("reads").tool_calls, 7);
        assert!(table.has_rows());
        let rows = table.read_rows().expect("reads");
        let summaries: Vec<_> = rows.iter().map(|row| SessionSummary::from_row(row)).collect();
        assert_eq!(summaries, table.summaries());
        assert!(
            summaries[4].is_subagent
                && summaries[3].is_conversation
                && !summaries[0].is_conversation
        );
        assert!(Arc::ptr_eq(&table.summaries()[1].origin, &table.summaries()[3].origin), "shared");
    }

    #[test]
    fn a_damaged_row_is_an_error_once_it_is_needed() {
        let damages: [fn(&mut Vec<u8>); 3] =
            [|row| row.clear(), |row| row.truncate(20), |row| row[1] ^= 1];
        for damage in damages {
            let table = table(damage);
            let (good, bad) = (StoredSession::new(&table, 6), StoredSession::new(&table, 7));
            assert_eq!(good.row().expect("reads").tool_calls, 6);
            assert!(matches!(table.read_rows(), Err(StoreError::Damaged { .. })));
            assert!(matches!(bad.row(), Err(StoreError::Damaged { .. })));
        }
    }
}
