//! The session of the agent that calls: `current` wherever a session id goes.

use std::path::{Path, PathBuf};

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::session::SessionRow;
use schemas::{ErrorCode, ToolError};

use super::{convert, family};
use crate::store::Snapshot;

/// Stands for the id of the calling agent's session.
const CURRENT: &str = "current";

/// What is known of the agent that calls; empty where it cannot be known, as over HTTP.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Ids of sessions that agents passed to the processes they started.
    pub session_ids: Vec<String>,
    /// Where it works.
    pub folders: Vec<PathBuf>,
}

impl Caller {
    /// Position of its session: the one that it named, else the newest of its folder.
    pub(super) fn session(&self, snapshot: &Snapshot) -> Option<usize> {
        let newest = |wanted: &dyn Fn(&SessionRow) -> bool| {
            let sessions = snapshot.sessions().iter().enumerate();
            let sessions = sessions.filter(|(_, row)| wanted(row));
            sessions.max_by_key(|(_, row)| row.ended_at).map(|(at, _)| at)
        };
        let named = |row: &SessionRow| self.session_ids.contains(&row.session_id);
        let here = |row: &SessionRow| {
            let folder = row.cwd.as_deref().map(Path::new);
            row.is_conversation()
                && !family::is_subagent(row)
                && folder.is_some_and(|folder| self.folders.iter().any(|own| own == folder))
        };
        newest(&named).or_else(|| newest(&here))
    }

    /// Finds a session by `current`, its id, or any unique prefix.
    pub(super) fn find(&self, snapshot: &Snapshot, id: &str) -> Result<usize, ToolError> {
        if id.trim() != CURRENT {
            return snapshot.find(id);
        }
        self.session(snapshot).ok_or_else(|| {
            let message = "'current' is not known: no session in the index ran in the folder of this server. list_sessions(limit=1) shows the newest session";
            ToolError::new(ErrorCode::SessionNotFound, message).with("session_id", CURRENT)
        })
    }

    /// Which session `id` was taken to be, if it is `current`.
    pub(super) fn note(&self, id: &str, row: &SessionRow) -> Option<Warning> {
        (id.trim() == CURRENT).then(|| {
            let ended = convert::time(row.ended_at).unwrap_or_else(|| "an unknown time".to_owned());
            let message = format!("'current' is {}, last active at {ended}", row.session_id);
            Warning::new(WarningCode::CurrentSession, Severity::Info, message)
        })
    }
}
