//! Reads how a session ended: its last prompt, its last answer, and what it left open.

use schemas::session::EventRow;
use schemas::{EventType, ToolError, ToolKind};

use super::action::pair_calls;
use super::ends::find_open_ends;
use crate::store::Snapshot;
use crate::tools::reply::event_predicates::{is_slash_or_shell_command, is_type};
use crate::tools::reply::{convert, rows};

/// Events at the end of a session that are read.
const TAIL_EVENTS: u32 = 120;

/// The words of a plan's text that show an entry that is not done.
const OPEN_STATES: [&str; 4] = ["pending", "in_progress", "in-progress", "todo"];

/// The fields of a plan's entry that say what it is about.
const NAME_FIELDS: [&str; 5] = ["content", "step", "text", "title", "description"];

/// The end of a session. Its texts are untrusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTail {
    /// The last prompt and the last answer, each with the id of its event.
    pub prompt: Option<(String, String)>,
    pub answer: Option<(String, String)>,
    /// What the session left open, in words of this program.
    pub open_ends: Vec<String>,
    /// The entries of its last plan that were not done, with the id of the plan's event.
    pub open_plan: Option<(String, Vec<String>)>,
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
    let findings = find_open_ends(&rows, &actions, false);
    let mut tail = SessionTail {
        prompt: last_of(EventType::User),
        answer: last_of(EventType::Message),
        open_ends: findings.into_iter().map(|finding| finding.reason).collect(),
        ..SessionTail::default()
    };
    for action in actions.iter().rev() {
        if action.kind == ToolKind::Plan && tail.open_plan.is_none() {
            let entries = open_entries(&action.call.text);
            tail.open_plan = entries.map(|entries| (convert::event_id(action.call), entries));
        }
        if action.is_edit() {
            let files = action.files().iter().filter(|file| !tail.edited.contains(file));
            let files: Vec<String> = files.cloned().collect();
            tail.edited.extend(files);
        }
    }
    tail.open_plan = tail.open_plan.filter(|(_, entries)| !entries.is_empty());
    Ok(tail)
}

/// Returns the entries of a plan that are not done, from the text of the call that wrote it; `None`
/// if the call does not write a whole plan. The text lists the entries as follows:
///
/// ```text
/// todos:
///   - content: Add a test
///     status: pending
/// ```
fn open_entries(text: &str) -> Option<Vec<String>> {
    let mut open = Vec::new();
    let mut name: Option<&str> = None;
    let mut is_plan = false;
    for line in text.lines() {
        let line = line.trim_start();
        let field = match line.strip_prefix("- ") {
            Some(field) => {
                name = None;
                field
            }
            None => line,
        };
        let Some((key, value)) = field.split_once(": ") else { continue };
        if NAME_FIELDS.contains(&key) {
            name = Some(value);
        } else if key == "status" {
            is_plan |= name.is_some();
            let is_open = OPEN_STATES.contains(&value.trim());
            open.extend(name.filter(|_| is_open).map(str::to_owned));
        }
    }
    is_plan.then_some(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_are_not_done_are_open() {
        let text = "explanation: x\nplan:\n  - step: a\n    status: completed\n  - step: b: c\n    status: in_progress";
        assert_eq!(open_entries(text), Some(vec!["b: c".to_owned()]));
        let text = "todos:\n  - broken\n  - id: 2\n    content: a\n    status: completed";
        assert_eq!(open_entries(text), Some(Vec::new()));
        assert_eq!(open_entries("taskId: 1\nstatus: pending"), None);
        assert_eq!(open_entries(""), None);
    }
}
