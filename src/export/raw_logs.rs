//! Opens the logs of exported sessions again.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use ingest::discover::RawLog;
use ingest::provider::call_arguments::CallArguments;
use ingest::redact::Redactor;
use schemas::session::EventRow;
use schemas::{EventType, ToolError};

use store::Snapshot;
use tools::error::store_error;
use tools::{Call, Tools, find_arguments};

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

    /// Finds the arguments of calls in the log of a session, by the indexes of the events. Without the
    /// log, nothing is found.
    pub(crate) fn find_arguments(
        &self,
        session_id: &str,
        rows: &[EventRow],
        call: &Call<'_>,
    ) -> Result<HashMap<i32, CallArguments>, ToolError> {
        let Ok(mut log) = self.open(session_id) else { return Ok(HashMap::new()) };
        let calls = rows.iter().filter(|row| row.event_type == EventType::ToolCall);
        find_arguments(&mut log, calls, &self.redactor, call)
    }
}
