//! Opens the logs of exported sessions again.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ingest::discover::RawLog;
use ingest::redact::Redactor;
use schemas::{ErrorCode, ToolError};

use store::{Snapshot, StoredSession};
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

    /// Opens the log of a session to copy it as a whole. A log that another session was written over
    /// counts as missing.
    pub(super) fn open_copy(&self, session: &StoredSession) -> io::Result<RawLog> {
        let log = self.open(session.id())?;
        if log.is_log_of(session.native_id(), &self.redactor) {
            Ok(log)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    /// Returns the extension for a copy of the log of a session.
    pub(super) fn extension(&self, session_id: &str) -> &'static str {
        let path = self.paths.get(session_id).map(Path::new);
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
