//! Drops the texts of sessions again that the retention dropped before, when their log is read again.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};
use ingest::run::remask::without_line_state;
use schemas::session::{SessionRow, SourceRow};
use schemas::table::EventColumn;

use super::error::StoreError;
use super::reduce::{reduce_batch, reduce_session};
use super::reduced_sessions::{ReducedSession, ReducedSessions};
use super::segment::event_reader::column_of;

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

    /// Drops texts of rows of one session that were read again.
    pub(super) fn reduce_written(&self, rows: &RecordBatch) -> Result<RecordBatch, StoreError> {
        let ids = column_of(rows, EventColumn::SessionId);
        let ids = ids.and_then(|column| column.as_string_opt::<i32>());
        let session_id = ids.filter(|ids| !ids.is_empty()).map(|ids| ids.value(0));
        let Some(reduced) = session_id.and_then(|id| self.find(id)) else {
            return Ok(rows.clone());
        };
        let indexes = column_of(rows, EventColumn::EventIndex);
        let indexes = indexes.and_then(|column| column.as_primitive_opt::<Int32Type>());
        let times = column_of(rows, EventColumn::Timestamp);
        let times = times.and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
        let is_old = |row: usize| {
            let index = indexes.map(|indexes| i64::from(indexes.value(row)));
            let time = times.filter(|times| times.is_valid(row)).map(|times| times.value(row));
            index.is_some_and(|index| index < reduced.events)
                || time.zip(reduced.until).is_some_and(|(time, until)| time <= until)
        };
        reduce_batch(rows, reduced.level, &is_old)
    }

    /// Returns the row of a session without what was dropped.
    pub(super) fn reduce_session(&self, row: SessionRow) -> SessionRow {
        match self.find(&row.session_id) {
            Some(reduced) => reduce_session(&row, reduced.level),
            None => row,
        }
    }

    /// Returns the row of a file. If its session has nothing new since its texts were dropped, the
    /// state of the decoder goes, because it may hold some of them.
    pub(super) fn reduce_source(&self, session: &SessionRow, row: SourceRow) -> SourceRow {
        let reduced = self.find(&session.session_id);
        if reduced.is_some_and(|reduced| session.events <= reduced.events) {
            without_line_state(row)
        } else {
            row
        }
    }
}
