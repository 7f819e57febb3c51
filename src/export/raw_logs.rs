//! Opens the logs of exported sessions again.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use ingest::discover::RawLog;
use schemas::{ErrorCode, ToolError};

use store::{Snapshot, StoredSession};
use tools::error::store_error;

/// The paths of the logs of this machine, by session id.
pub(super) struct RawLogs(HashMap<String, String>);

impl RawLogs {
    /// Reads which logs the store knows.
    pub(super) fn read(snapshot: &Snapshot) -> Result<Self, ToolError> {
        let sources = snapshot.read_sources(false).map_err(store_error)?;
        let paths = sources.into_iter().filter_map(|row| Some((row.session_id?, row.path)));
        Ok(Self(paths.collect()))
    }

    /// Opens the log of a session.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::NotFound`] if the log is not on this machine, as for sessions that were
    /// pulled, or no longer exists.
    pub(super) fn open(&self, session_id: &str) -> io::Result<RawLog> {
        RawLog::open(self.0.get(session_id).ok_or(io::ErrorKind::NotFound)?)
    }

    /// Returns the extension for a copy of the log of a session.
    pub(super) fn extension(&self, session_id: &str) -> &'static str {
        let path = self.0.get(session_id).map(Path::new);
        let extension = path.and_then(Path::extension);
        if extension.is_some_and(|extension| extension == "jsonl") { "jsonl" } else { "json" }
    }
}

/// Returns the error for a log that cannot be opened.
pub(super) fn log_error(session: &StoredSession, error: &io::Error) -> ToolError {
    let (id, path) = (session.id(), &session.source_path);
    let message = if error.kind() == io::ErrorKind::NotFound {
        format!(
            "The log of session {id} is not on this machine: {path}. Export what the store has of it: \
             `sessions export jsonl {id}`"
        )
    } else {
        format!("The log of session {id} cannot be opened: {path}: {error}")
    };
    ToolError::new(ErrorCode::InvalidArgument, message).with_detail("session_id", id)
}
