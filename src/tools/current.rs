//! Names that stand for a session wherever an id goes: `current`, that of the agent that calls, and
//! `last`, the newest.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::session::SessionRow;
use schemas::{ErrorCode, ToolError};

use super::interface::Interface;
use super::{convert, family};
use crate::store::Snapshot;

/// Stands for the id of the calling agent's session.
const CURRENT: &str = "current";

/// Stands for the newest session.
pub(super) const LAST: &str = "last";

/// What is known of the agent that calls; empty where it cannot be known, as over HTTP.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Ids of sessions that agents passed to the processes they started.
    pub session_ids: Vec<String>,
    /// Where it works.
    pub folders: Vec<PathBuf>,
    pub interface: Interface,
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

    /// Finds a session by one of these names, its id, or any unique prefix.
    pub(super) fn find(&self, snapshot: &Snapshot, id: &str) -> Result<usize, ToolError> {
        let id = id.trim();
        let found = match id {
            CURRENT => self.session(snapshot),
            LAST => newest(snapshot, |_| true),
            _ => {
                let found = snapshot.find(id);
                return found.map_err(|error| self.interface.lookup_error(id, error));
            }
        };
        found.ok_or_else(|| {
            let message = match id {
                CURRENT => format!(
                    "'current' is not known: no session in the index ran in this folder. {} shows the newest session",
                    self.interface.call("list_sessions", &[("limit", "1")])
                ),
                _ => format!("'{id}' is not known: no session in the index holds a conversation"),
            };
            ToolError::new(ErrorCode::SessionNotFound, message).with("session_id", id)
        })
    }

    /// Which session `id` was taken to be, if it is such a name.
    pub(super) fn note(&self, id: &str, row: &SessionRow) -> Option<Warning> {
        let name = id.trim();
        matches!(name, CURRENT | LAST).then(|| {
            let ended = convert::time(row.ended_at).unwrap_or_else(|| "an unknown time".to_owned());
            let message = format!("'{name}' is {}, last active at {ended}", row.session_id);
            Warning::new(WarningCode::CurrentSession, Severity::Info, message)
        })
    }
}

/// The newest conversation of those that pass and are no subagent's.
pub(super) fn newest(snapshot: &Snapshot, passes: impl Fn(&SessionRow) -> bool) -> Option<usize> {
    let fits = |row: &SessionRow| row.is_conversation() && !family::is_subagent(row) && passes(row);
    let sessions = snapshot.sessions().iter().enumerate();
    let own = sessions.filter(|(_, row)| fits(row));
    own.max_by_key(|(at, row)| (row.ended_at, Reverse(*at))).map(|(at, _)| at)
}

/// Says that an id among others begins several sessions.
pub(super) fn ambiguous(error: &ToolError) -> Option<Warning> {
    let ambiguous = error.code == ErrorCode::AmbiguousSessionPrefix;
    ambiguous.then(|| {
        let message = error.message.clone();
        Warning::new(WarningCode::AmbiguousPrefix, Severity::Warning, message)
    })
}
