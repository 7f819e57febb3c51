//! Opens the logs of exported sessions again.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use ingest::discover::RawLog;
use ingest::redact::Redactor;
use schemas::ToolError;

use store::Snapshot;
use tools::Tools;
use tools::error::store_error;

/// The logs of this machine, and what masks their secrets.
pub(super) struct RawLogs {
    /// The paths of the logs by session id.
    paths: HashMap<String, String>,
    pub(super) redactor: Arc<Redactor>,
}

impl RawLogs {
    /// Reads which logs the store knows.
    pub(super) fn read(snapshot: &Snapshot, tools: &Tools) -> Result<Self, ToolError> {
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
}
