//! Opens the logs of exported sessions again.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use ingest::discover::RawLog;
use ingest::provider::call_arguments::{CallArguments, find_call_arguments};
use ingest::redact::Redactor;
use schemas::session::EventRow;
use schemas::{EventType, ToolError};

use store::Snapshot;
use tools::error::store_error;
use tools::{Call, Tools};

/// The logs of this machine, and what masks their secrets.
pub(crate) struct RawLogs {
    /// The paths of the logs by session id.
    paths: HashMap<String, String>,
    pub(super) redactor: Arc<Redactor>,
}

impl RawLogs {
    /// Reads which logs the store knows.
    pub(crate) fn read(snapshot: &Snapshot, tools: &Tools) -> Result<Self, ToolError> {
        let sources = snapshot.read_sources(false).map_err(store_error)?;
        let paths = sources.into_iter().filter_map(|row| Some((row.session_id?, row.path)));
        Ok(Self { paths: paths.collect(), redactor: tools.create_redactor()? })
    }

    /// Opens the log of a session.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::NotFound`] if the log is not on this machine, as for sessions that were
    /// pulled, or no longer exists.
    pub(super) fn open(&self, session_id: &str) -> io::Result<RawLog> {
        RawLog::open(self.paths.get(session_id).ok_or(io::ErrorKind::NotFound)?)
    }

    /// Finds the arguments of calls in the log of a session, by the indexes of the events. Each record is read
    /// and searched once. Without the log, nothing is found.
    pub(crate) fn find_arguments(
        &self,
        session_id: &str,
        rows: &[EventRow],
        call: &Call<'_>,
    ) -> Result<HashMap<i32, CallArguments>, ToolError> {
        let mut found = HashMap::new();
        let Ok(mut log) = self.open(session_id) else { return Ok(found) };
        let mut records: BTreeMap<(i64, i64), Vec<&EventRow>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.event_type == EventType::ToolCall) {
            records.entry((row.source_offset, row.source_length)).or_default().push(row);
        }
        for ((offset, length), calls) in records {
            call.ensure_running()?;
            let record = log.read_record(offset.cast_unsigned(), length.cast_unsigned());
            let Ok(record) = record else { continue };
            let texts: Vec<&str> = calls.iter().map(|row| row.text.as_str()).collect();
            let by_text = find_call_arguments(&record, &texts, &self.redactor);
            for row in calls {
                if let Some(arguments) = by_text.get(row.text.as_str()) {
                    found.insert(row.event_index, arguments.clone());
                }
            }
        }
        Ok(found)
    }
}
