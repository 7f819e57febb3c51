//! Resolves names that can be used instead of a session id: `current`, the session of the calling
//! agent, and `last`, the newest session.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::{ErrorCode, EventId, ToolError};

use super::convert;
use super::interface::Interface;
use store::{LookupError, SessionSummary, Snapshot, StoreError};

/// The name of the calling agent's session.
const CURRENT: &str = "current";

/// The name of the newest session.
pub const LAST: &str = "last";

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
    pub fn current_session(&self, snapshot: &Snapshot) -> Option<usize> {
        last_active(snapshot, |session| self.session_ids.contains(&session.session_id))
            .or_else(|| last_active(snapshot, |row| self.works_in_folder_of(row)))
    }

    /// Returns true if a session is a conversation in one of the agent's folders, and neither a
    /// subagent's nor an earlier version of another one.
    fn works_in_folder_of(&self, session: &SessionSummary) -> bool {
        let Some(folder) = session.origin.cwd.as_deref().map(Path::new) else { return false };
        session.is_conversation
            && !session.is_subagent
            && !session.is_earlier_version
            && self.folders.iter().any(|own| own == folder)
    }

    /// Finds a session by one of these names, by its id, by any unique prefix, or by the id of one of
    /// its events.
    pub fn find_session(&self, snapshot: &Snapshot, id: &str) -> Result<usize, ToolError> {
        let id = id.trim();
        let found = match id {
            CURRENT => self.current_session(snapshot),
            LAST => newest_conversation(snapshot, |_| true),
            _ => {
                let found =
                    snapshot.find_session(id).or_else(|error| match id.parse::<EventId>() {
                        Ok(EventId { session, .. }) => snapshot.find_session(&session),
                        Err(_) => Err(error),
                    });
                return found.map_err(|error| self.lookup_error(snapshot, id, error));
            }
        };
        found.ok_or_else(|| self.unknown_name_error(id))
    }

    /// Returns the error for an id. If no id is near it, the newest session is named.
    fn lookup_error(&self, snapshot: &Snapshot, id: &str, error: LookupError) -> ToolError {
        let mut error = self.interface.lookup_error(id, error);
        let has_suggestion = error.details.contains_key("did_you_mean");
        if error.code == ErrorCode::SessionNotFound
            && !has_suggestion
            && let Some(newest) = newest_conversation(snapshot, |_| true)
        {
            let newest = snapshot.sessions()[newest].id();
            error.message.push_str(&format!("; the newest is '{newest}'"));
        }
        error
    }

    /// Returns the error for `current` or `last` if there is no such session.
    fn unknown_name_error(&self, name: &str) -> ToolError {
        let message = if name == CURRENT {
            format!(
                "'current' is not known: no session in the index ran in this folder. {} shows the newest session",
                self.interface.format_call("list_sessions", &[("limit", "1")])
            )
        } else {
            format!("'{name}' is not known: no session in the index holds a conversation")
        };
        ToolError::new(ErrorCode::SessionNotFound, message).with_detail("session_id", name)
    }

    /// Returns a note about which session a name refers to, if `id` is such a name.
    pub fn session_note(&self, id: &str, session: &SessionSummary) -> Option<Warning> {
        let name = id.trim();
        if !matches!(name, CURRENT | LAST) {
            return None;
        }
        let ended =
            convert::format_time(session.ended_at).unwrap_or_else(|| "an unknown time".to_owned());
        let message = format!("'{name}' is {}, last active at {ended}", session.session_id);
        Some(Warning::new(WarningCode::CurrentSession, Severity::Info, message))
    }
}

/// Returns the position of the wanted session that ended last; of several, the last one.
fn last_active(snapshot: &Snapshot, is_wanted: impl Fn(&SessionSummary) -> bool) -> Option<usize> {
    let sessions = snapshot.sessions().iter().enumerate();
    let wanted = sessions.filter(|(_, session)| is_wanted(session));
    wanted.max_by_key(|(_, session)| session.ended_at).map(|(at, _)| at)
}

/// Returns the position of the newest conversation that passes and is neither a subagent's nor an
/// earlier version of another one; of several, the first one.
pub fn newest_conversation(
    snapshot: &Snapshot,
    passes: impl Fn(&SessionSummary) -> bool,
) -> Option<usize> {
    own_conversations(snapshot, passes).max().map(|(_, Reverse(at))| at)
}

/// Returns the position of the newest such conversation in which a call failed. Reads no rows of those
/// before it.
pub fn newest_failed_conversation(
    snapshot: &Snapshot,
    passes: impl Fn(&SessionSummary) -> bool,
) -> Result<Option<usize>, StoreError> {
    let mut newest: BinaryHeap<_> = own_conversations(snapshot, passes).collect();
    while let Some((_, Reverse(at))) = newest.pop() {
        if snapshot.sessions()[at].row()?.tool_errors > 0 {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Returns the ends and the positions of the conversations that pass and are neither a subagent's nor
/// an earlier version of another one. The largest is the newest.
fn own_conversations(
    snapshot: &Snapshot,
    passes: impl Fn(&SessionSummary) -> bool,
) -> impl Iterator<Item = (Option<i64>, Reverse<usize>)> {
    let sessions = snapshot.sessions().iter().enumerate();
    let own = sessions.filter(move |(_, session)| {
        let is_part = session.is_subagent || session.is_earlier_version;
        session.is_conversation && !is_part && passes(session)
    });
    own.map(|(at, session)| (session.ended_at, Reverse(at)))
}

/// Returns a warning if an id, given with others, is the prefix of several sessions.
pub fn ambiguous_prefix_warning(error: &ToolError) -> Option<Warning> {
    if error.code != ErrorCode::AmbiguousSessionPrefix {
        return None;
    }
    let message = error.message.as_str();
    Some(Warning::new(WarningCode::AmbiguousPrefix, Severity::Warning, message))
}
