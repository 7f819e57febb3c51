//! Drops the texts of sessions again that the retention dropped before, when their log is read again.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};
use ingest::run::remask::without_line_state;
use ingest::stream::batch::{SessionRows, rows_by_session};
use schemas::session::{SessionRow, SourceRow};
use schemas::table::EventColumn;

use super::error::StoreError;
use super::reduce::{reduce_batch, reduce_session};
use super::reduced_sessions::{ReducedSession, ReducedSessions};
use super::segment::event_reader::{number_column, value_at};

/// What a writer drops of the sessions that it reads again.
#[derive(Debug, Default)]
pub(super) struct ReducedInForce {
    pub(super) reduced: ReducedSessions,
    /// The sessions that are read again to have their texts back.
    pub(super) restored: Mutex<HashSet<String>>,
}

impl ReducedInForce {
    pub(super) fn read(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { reduced: ReducedSessions::read(dir)?, restored: Mutex::default() })
    }

    /// Returns what was dropped of a session; `None` if it is kept or read whole.
    fn find(&self, session_id: &str) -> Option<&ReducedSession> {
        let reduced = self.reduced.sessions.get(session_id)?;
        let restored = self.restored.lock().unwrap_or_else(PoisonError::into_inner);
        (!restored.contains(session_id)).then_some(reduced)
    }

    /// Returns rows that were read without the texts that were dropped of their sessions before.
    /// These are the rows of `batch` in their order, in one or more batches.
    pub(super) fn reduce_written(
        &self,
        batch: &RecordBatch,
    ) -> Result<Vec<RecordBatch>, StoreError> {
        if self.reduced.sessions.is_empty() {
            return Ok(vec![batch.clone()]);
        }
        let mut written = Vec::new();
        for SessionRows { session_id, rows } in rows_by_session(batch) {
            let rows = batch.slice(rows.start, rows.len());
            written.push(match self.find(session_id) {
                Some(reduced) => reduce_session_rows(&rows, reduced)?,
                None => rows,
            });
        }
        Ok(written)
    }

    /// Returns the row of a session without what was dropped.
    pub(super) fn reduce_session(&self, row: Box<SessionRow>) -> Box<SessionRow> {
        match self.find(&row.session_id) {
            Some(reduced) => Box::new(reduce_session(&row, reduced.level)),
            None => row,
        }
    }

    /// Returns the row of a file. If its session has nothing new since its texts were dropped, the
    /// state of the decoder goes, because it may hold some of them.
    pub(super) fn reduce_source(
        &self,
        session: &SessionRow,
        row: Box<SourceRow>,
    ) -> Box<SourceRow> {
        let reduced = self.find(&session.session_id);
        if reduced.is_some_and(|reduced| session.events <= reduced.events) {
            Box::new(without_line_state(*row))
        } else {
            row
        }
    }
}

/// Drops texts of rows of one session that were read again.
fn reduce_session_rows(
    rows: &RecordBatch,
    reduced: &ReducedSession,
) -> Result<RecordBatch, StoreError> {
    let indexes = number_column::<Int32Type>(rows, EventColumn::EventIndex);
    let times = number_column::<TimestampMicrosecondType>(rows, EventColumn::Timestamp);
    let is_old = |row: usize| {
        let time = value_at(times, row);
        value_at(indexes, row).is_some_and(|index| i64::from(index) < reduced.events)
            || time.zip(reduced.until).is_some_and(|(time, until)| time <= until)
    };
    reduce_batch(rows, reduced.level, &is_old)
}
