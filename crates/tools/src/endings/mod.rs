//! Describes how a session ended and what it left open: its last calls, calls without a result,
//! to-dos of the agent's plan, what the last compaction names as open, and files that the log shows
//! as uncommitted.

mod compaction;
mod continuation;
mod tail;
mod todos;
mod uncommitted;

use schemas::EventType;
use schemas::session::EventRow;
use schemas::tool::details::{CallGlance, CallState, Excerpt, SessionEnd};

use self::compaction::open_sections;
pub(crate) use self::continuation::{find_predecessor, find_successor};
pub use self::tail::{SessionTail, read_session_tail};
use self::todos::collect_open_todos;
use self::uncommitted::find_uncommitted;
use super::analyze::{
    Action, ActionOutcome, calls_left_open, find_rejected_plan, find_unanswered_prompt, pair_calls,
};
use super::reply::convert;
use super::reply::event_predicates::{is_type, own_rows};
use base::sanitize::{clean_text, cut_for_json, one_line, truncate_for_json};

/// How much of a session's end is described.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndLimits {
    /// Maximum number of last calls, and of calls without a result.
    pub calls: usize,
    /// Maximum size in bytes of the text of a call or of a to-do.
    pub item_bytes: usize,
    /// Maximum number of to-dos.
    pub todos: usize,
    /// Maximum number of files in each list.
    pub files: usize,
    /// Maximum size in bytes of what the last compaction names as open.
    pub compaction_bytes: usize,
}

impl EndLimits {
    /// The limits of the summary of a session.
    pub(crate) const SUMMARY: Self =
        Self { calls: 5, item_bytes: 160, todos: 10, files: 10, compaction_bytes: 900 };

    /// The limits of a handover to another agent.
    pub(crate) const HANDOVER: Self =
        Self { calls: 10, item_bytes: 240, todos: 30, files: 30, compaction_bytes: 3_000 };
}

/// Describes the end of a session. `events` are all its events in order, and `folder` is the
/// session's folder.
pub(crate) fn describe_end(
    events: &[EventRow],
    folder: Option<&str>,
    limits: EndLimits,
) -> SessionEnd {
    let actions = pair_calls(events);
    let own: Vec<&Action<'_>> = actions.iter().filter(|action| !action.call.is_sidechain).collect();
    let last_calls = own.iter().skip(own.len().saturating_sub(limits.calls));
    let rows = own_rows(events);
    let (unfinished, _) = calls_left_open(&rows, &actions);
    let mut todos = collect_open_todos(&own, limits.item_bytes);
    let todos_omitted = todos.len().saturating_sub(limits.todos);
    todos.truncate(limits.todos);
    SessionEnd {
        last_calls: last_calls.map(|action| glance_at(action, limits.item_bytes)).collect(),
        unfinished_calls: unfinished
            .iter()
            .rev()
            .take(limits.calls)
            .map(|action| glance_at(action, limits.item_bytes))
            .collect(),
        unanswered_prompt: find_unanswered_prompt(&rows).map(convert::event_id),
        rejected_plan: find_rejected_plan(&actions).map(|plan| glance_at(plan, limits.item_bytes)),
        todos,
        todos_omitted,
        compaction: describe_compaction(events, limits.compaction_bytes),
        uncommitted: find_uncommitted(&own, folder, limits.files),
    }
}

/// Describes a call in one line.
fn glance_at(action: &Action<'_>, bytes: usize) -> CallGlance {
    let called = action.describe_call().map(|call| one_line(&call));
    let call = called.map(|call| cut_for_json(&call, bytes));
    CallGlance {
        event_id: convert::event_id(action.call),
        turn_index: convert::unsigned_index(action.call.turn_index),
        tool_name: action.tool_name().map(clean_text),
        call,
        state: match action.outcome {
            ActionOutcome::Open => CallState::Open,
            ActionOutcome::Worked => CallState::Worked,
            ActionOutcome::Failed => CallState::Failed,
            ActionOutcome::Stopped(_) => CallState::Stopped,
        },
    }
}

/// Returns what the last compaction with a summary names as open.
fn describe_compaction(events: &[EventRow], bytes: usize) -> Option<Excerpt> {
    let compactions = events.iter().rev().filter(|row| {
        let subtype = row.subtype.as_deref().unwrap_or_default();
        is_type(row, EventType::Notification)
            && !row.is_sidechain
            && (subtype.contains("compact") || subtype.contains("compress"))
    });
    for row in compactions {
        let text = clean_text(&row.text);
        let Some(open) = open_sections(&text) else { continue };
        let (kept, omitted) = truncate_for_json(&open, bytes);
        return Some(Excerpt {
            turn_index: Some(convert::unsigned_index(row.turn_index)),
            text: kept.to_owned(),
            omitted,
            ..convert::text_excerpt(row, 0)
        });
    }
    None
}
