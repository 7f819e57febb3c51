//! Resolves names that can be used instead of a session id: `current`, the session of the calling
//! agent, and `last`, the newest session.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::session::SessionRow;
use schemas::{ErrorCode, ToolError};

use super::convert;
use super::interface::Interface;
use super::session_sums::is_subagent;
use crate::store::Snapshot;

/// The name of the calling agent's session.
const CURRENT: &str = "current";

/// The name of the newest session.
pub(crate) const LAST: &str = "last";

/// The known facts about the calling agent; empty if it cannot be known, as over HTTP.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Ids of sessions that agents passed to the processes they started.
    pub session_ids: Vec<String>,
    /// The folders that the agent works in.
    pub folders: Vec<PathBuf>,
    pub interface: Interface,
}

impl Caller {
    /// Returns the position of the agent's session: the one that it named, otherwise the newest of
    /// its folder.
    pub(crate) fn session(&self, snapshot: &Snapshot) -> Option<usize> {
        let newest = |wanted: &dyn Fn(&SessionRow) -> bool| {
            let sessions = snapshot.sessions().iter().enumerate();
            let sessions = sessions.filter(|(_, row)| wanted(row));
            sessions.max_by_key(|(_, row)| row.ended_at).map(|(at, _)| at)
        };
        let named = |row: &SessionRow| self.session_ids.contains(&row.session_id);
        let here = |row: &SessionRow| {
            let folder = row.cwd.as_deref().map(Path::new);
            row.is_conversation()
                && !is_subagent(row)
                && folder.is_some_and(|folder| self.folders.iter().any(|own| own == folder))
        };
        newest(&named).or_else(|| newest(&here))
    }

    /// Finds a session by one of these names, by its id, or by any unique prefix.
    pub(crate) fn find(&self, snapshot: &Snapshot, id: &str) -> Result<usize, ToolError> {
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

    /// Returns a note about which session a name refers to, if `id` is such a name.
    pub(crate) fn note(&self, id: &str, row: &SessionRow) -> Option<Warning> {
        let name = id.trim();
        matches!(name, CURRENT | LAST).then(|| {
            let ended = convert::time(row.ended_at).unwrap_or_else(|| "an unknown time".to_owned());
            let message = format!("'{name}' is {}, last active at {ended}", row.session_id);
            Warning::new(WarningCode::CurrentSession, Severity::Info, message)
        })
    }
}

/// Returns the position of the newest conversation that passes and is not a subagent's.
pub(crate) fn newest(snapshot: &Snapshot, passes: impl Fn(&SessionRow) -> bool) -> Option<usize> {
    let fits = |row: &SessionRow| row.is_conversation() && !is_subagent(row) && passes(row);
    let sessions = snapshot.sessions().iter().enumerate();
    let own = sessions.filter(|(_, row)| fits(row));
    own.max_by_key(|(at, row)| (row.ended_at, Reverse(*at))).map(|(at, _)| at)
}

/// Returns a warning if an id, given with others, is the prefix of several sessions.
pub(crate) fn ambiguous_prefix_warning(error: &ToolError) -> Option<Warning> {
    let ambiguous = error.code == ErrorCode::AmbiguousSessionPrefix;
    ambiguous.then(|| {
        let message = error.message.clone();
        Warning::new(WarningCode::AmbiguousPrefix, Severity::Warning, message)
    })
}
