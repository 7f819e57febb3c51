//! Reads how a session ended: its last prompt, its last answer, and what it left open.

use schemas::session::EventRow;
use schemas::tool::details::Todo;
use schemas::{EventType, ToolError};

use super::todos::collect_open_todos;
use crate::analyze::{Action, find_open_ends, pair_calls};
use crate::reply::event_predicates::{is_slash_or_shell_command, is_type};
use crate::reply::{convert, rows};
use store::Snapshot;

/// Events at the end of a session that are read.
const TAIL_EVENTS: u32 = 120;

/// Maximum size of a to-do in bytes.
const TODO_BYTES: usize = 240;

/// The end of a session. Its texts are untrusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTail {
    /// The last prompt and the last answer, each with the id of its event.
    pub prompt: Option<(String, String)>,
    pub answer: Option<(String, String)>,
    /// What the session left open, in words of this program.
    pub open_ends: Vec<String>,
    /// The to-dos of its plan that were not done.
    pub open_todos: Vec<Todo>,
    /// Paths that its last calls edited, the last one first.
    pub edited: Vec<String>,
}

/// Reads the end of the session at this position, as it was before the time `until`.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub fn read_session_tail(
    snapshot: &Snapshot,
    session: usize,
    until: i64,
) -> Result<SessionTail, ToolError> {
    let end = u32::try_from(snapshot.sessions()[session].events).unwrap_or(u32::MAX);
    let mut rows = rows::read_events(snapshot, session, end.saturating_sub(TAIL_EVENTS), end)?;
    rows.retain(|row| !row.is_replay && row.timestamp.is_none_or(|time| time < until));
    let own: Vec<&EventRow> = rows.iter().filter(|row| !row.is_sidechain).collect();
    let last_of = |kind: EventType| {
        let row = own.iter().rev().find(|row| {
            is_type(row, kind)
                && !row.text.trim().is_empty()
                && !(kind == EventType::User && is_slash_or_shell_command(&row.text))
        })?;
        Some((convert::event_id(row), row.text.clone()))
    };
    let actions = pair_calls(&rows);
    let own_actions: Vec<&Action<'_>> =
        actions.iter().filter(|action| !action.call.is_sidechain).collect();
    let findings = find_open_ends(&rows, &actions, false);
    let mut tail = SessionTail {
        prompt: last_of(EventType::User),
        answer: last_of(EventType::Message),
        open_ends: findings.into_iter().map(|finding| finding.reason).collect(),
        open_todos: collect_open_todos(&own_actions, TODO_BYTES),
        ..SessionTail::default()
    };
    for action in actions.iter().rev().filter(|action| action.is_edit()) {
        let files = action.files().iter().filter(|file| !tail.edited.contains(file));
        let files: Vec<String> = files.cloned().collect();
        tail.edited.extend(files);
    }
    Ok(tail)
}
