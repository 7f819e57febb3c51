//! The sessions of a segment. A reader that starts reads a brief of each; a row, which has all
//! columns, is read when a value of it is first needed.
//!
//! At 20 GB of logs the rows of all sessions take five times as long to read as their briefs, and an
//! answer shows a few of them.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use schemas::session::SessionRow;

use super::segment_rows::RowSource;
use super::session_brief::SessionBrief;
use crate::error::StoreError;

/// The sessions of a segment, in the order of their ids.
pub(crate) struct SessionTable {
    briefs: Vec<SessionBrief>,
    /// The row of each session, once it was read.
    rows: Vec<OnceLock<Arc<SessionRow>>>,
    segment: i64,
    source: RowSource,
}

impl SessionTable {
    /// Reads the encoded briefs of the sessions of a segment.
    pub(crate) fn read_bytes(source: &RowSource, segment: i64) -> Result<Vec<u8>, StoreError> {
        source.read_briefs(segment)
    }

    /// Returns the table of the sessions of a segment with these encoded briefs.
    pub(crate) fn decode(
        source: RowSource,
        segment: i64,
        briefs: &[u8],
    ) -> Result<Self, StoreError> {
        let briefs = source.decode_briefs(briefs)?;
        let rows = briefs.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { briefs, rows, segment, source })
    }

    /// Returns the briefs.
    pub(crate) fn briefs(&self) -> &[SessionBrief] {
        &self.briefs
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
    /// Fails if they cannot be read, or are not those of the briefs.
    pub(crate) fn read_rows(&self) -> Result<Vec<Arc<SessionRow>>, StoreError> {
        if self.rows.iter().any(|row| row.get().is_none()) {
            let read = self.source.read_sessions(self.segment, &self.briefs)?;
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
                let read = self.source.read_session(self.segment, at, &self.briefs[at])?;
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
    /// Fails if it cannot be read, or is not that of the brief.
    pub fn row(&self) -> Result<&Arc<SessionRow>, StoreError> {
        self.table.row(self.at)
    }
}

impl Deref for StoredSession {
    type Target = SessionBrief;

    fn deref(&self) -> &SessionBrief {
        &self.table.briefs[self.at]
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
        let briefs = SessionTable::read_bytes(&source, 1).expect("reads");
        Arc::new(SessionTable::decode(source, 1, &briefs).expect("decodes"))
    }

    #[test]
    fn rows_are_read_when_needed_and_fit_their_briefs() {
        let table = table(|_| {});
        let session = StoredSession::new(&table, 7);
        assert_eq!((session.source_path.as_str(), session.ended_at), ("/logs/7", Some(7)));
        assert!(!table.has_rows());
        assert_eq!(session.row().expect("reads").tool_calls, 7);
        assert!(table.has_rows());
        let rows = table.read_rows().expect("reads");
        let briefs: Vec<_> = rows.iter().map(|row| SessionBrief::from_row(row)).collect();
        assert_eq!(briefs, table.briefs());
        assert!(briefs[4].is_subagent && briefs[3].is_conversation && !briefs[0].is_conversation);
        assert!(Arc::ptr_eq(&table.briefs()[1].origin, &table.briefs()[3].origin), "shared");
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
