//! Builds level `summary`: what the session was about and how it went.

use std::collections::HashMap;

use schemas::session::{EventRow, SessionRow};
use schemas::tool::details::{Child, Excerpt, SessionEnd, Summary, ToolCount};
use schemas::{EventType, limits};

use crate::endings::{EndLimits, describe_end};
use crate::reply::budget::Budget;
use crate::reply::convert;
use crate::reply::event_predicates::{is_slash_command, shows_compaction};
use base::json_length::json_length;
use base::sanitize::clean_text;
use store::{Snapshot, StoreError};

// Together these limits keep the level under its target.

/// Maximum size in bytes of the excerpt of the first and of the last prompt.
const MAX_PROMPT_BYTES: usize = 800;

/// Maximum size in bytes of the excerpt of the last message.
const MAX_ANSWER_BYTES: usize = 1600;

/// Maximum size in bytes of the excerpt of an error.
const MAX_ERROR_BYTES: usize = 300;

/// Maximum size in bytes of the excerpt of a compaction.
const MAX_COMPACTION_BYTES: usize = 160;

/// Maximum number of tools shown.
const MAX_TOOLS: usize = 20;

/// Maximum number of errors shown.
const MAX_ERRORS: usize = 5;

/// Maximum number of compactions shown.
const MAX_COMPACTIONS: usize = 5;

/// Size in bytes that the end of the session may take even if the rest of the summary is large.
const MIN_END_BYTES: usize = 2_000;

/// Size in bytes of the name of a list of the session's end, counted for every item.
const ITEM_NAME_BYTES: usize = 20;

/// Maximum number of child sessions shown.
const MAX_CHILDREN: usize = 8;

/// Summarizes a session, without the sessions that it continues or is continued by. `frame` is the size
/// in bytes of the rest of the answer.
pub(super) fn summarize_session(
    snapshot: &Snapshot,
    session: &SessionRow,
    events: &[EventRow],
    frame: usize,
) -> Result<Summary, StoreError> {
    let first = own_events(events, EventType::User)
        .find(|event| !is_slash_command(&event.text))
        .or_else(|| own_events(events, EventType::User).next());
    let last = own_events(events, EventType::User)
        .next_back()
        .filter(|last| first.is_some_and(|first| first.event_index != last.event_index));
    let answer =
        own_events(events, EventType::Message).rfind(|event| !event.text.trim().is_empty());
    // The last errors, in their order.
    let mut errors: Vec<_> =
        events.iter().rev().filter(|event| event.is_error == Some(true)).take(MAX_ERRORS).collect();
    errors.reverse();
    let compactions = events.iter().filter(|event| shows_compaction(event)).take(MAX_COMPACTIONS);
    let mut summary = Summary {
        first_prompt: first.map(|event| turn_excerpt(event, MAX_PROMPT_BYTES)),
        last_prompt: last.map(|event| turn_excerpt(event, MAX_PROMPT_BYTES)),
        last_message: answer.map(|event| turn_excerpt(event, MAX_ANSWER_BYTES)),
        tools: count_tools(events),
        errors: errors.into_iter().map(|event| turn_excerpt(event, MAX_ERROR_BYTES)).collect(),
        compactions: compactions.map(|event| turn_excerpt(event, MAX_COMPACTION_BYTES)).collect(),
        since: None,
        end: SessionEnd::default(),
        continues: None,
        continued_by: None,
        children: child_sessions(snapshot, session)?,
    };
    let end = describe_end(events, session.cwd.as_deref(), EndLimits::SUMMARY);
    let room = limits::SUMMARY_BYTES.saturating_sub(frame + json_length(&summary));
    summary.end = fit_end(end, room.max(MIN_END_BYTES));
    Ok(summary)
}

/// Returns as much of a session's end as fits in `bytes`: what is open comes before the last calls.
fn fit_end(end: SessionEnd, bytes: usize) -> SessionEnd {
    let mut budget = Budget::new(bytes);
    let mut fitting = SessionEnd { todos_omitted: end.todos_omitted, ..SessionEnd::default() };
    let mut take = |item: usize| -> bool { budget.take_bytes(item + ITEM_NAME_BYTES) };
    fitting.unanswered_prompt = end.unanswered_prompt.filter(|id| take(id.len()));
    fitting.rejected_plan = end.rejected_plan.filter(|plan| take(json_length(plan)));
    for call in end.unfinished_calls {
        if take(json_length(&call)) {
            fitting.unfinished_calls.push(call);
        }
    }
    for todo in end.todos {
        if take(json_length(&todo)) {
            fitting.todos.push(todo);
        } else {
            fitting.todos_omitted += 1;
        }
    }
    fitting.uncommitted = end.uncommitted.filter(|files| take(json_length(files)));
    fitting.compaction = end.compaction.filter(|text| take(json_length(text)));
    // The last calls that fit, in their order.
    for call in end.last_calls.into_iter().rev() {
        if !take(json_length(&call)) {
            break;
        }
        fitting.last_calls.insert(0, call);
    }
    fitting
}

/// Returns the events of one type that are not in a sidechain.
fn own_events(
    events: &[EventRow],
    event_type: EventType,
) -> impl DoubleEndedIterator<Item = &EventRow> {
    events.iter().filter(move |event| event.event_type == event_type && !event.is_sidechain)
}

/// Returns the beginning of an event's text, with its turn.
fn turn_excerpt(event: &EventRow, max_bytes: usize) -> Excerpt {
    let excerpt = convert::text_excerpt(event, max_bytes);
    Excerpt { turn_index: Some(convert::unsigned_index(event.turn_index)), ..excerpt }
}

/// Counts the calls and the errors of each tool, and returns the most called tools.
fn count_tools(events: &[EventRow]) -> Vec<ToolCount> {
    let mut counts_by_tool: HashMap<&str, (usize, usize)> = HashMap::new();
    for event in events {
        let name = event.tool_name.as_deref().unwrap_or("unknown");
        if event.event_type == EventType::ToolCall {
            counts_by_tool.entry(name).or_default().0 += 1;
        } else if event.event_type == EventType::ToolResult && event.is_error == Some(true) {
            counts_by_tool.entry(name).or_default().1 += 1;
        }
    }
    let mut counts: Vec<_> = counts_by_tool
        .into_iter()
        .map(|(name, (calls, errors))| ToolCount { tool_name: clean_text(name), calls, errors })
        .collect();
    counts.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool_name.cmp(&b.tool_name)));
    counts.truncate(MAX_TOOLS);
    counts
}

/// Returns the sessions whose parent is this one.
fn child_sessions(snapshot: &Snapshot, session: &SessionRow) -> Result<Vec<Child>, StoreError> {
    let id = Some(&session.session_id);
    let children = snapshot.sessions().iter().filter(|row| row.parent_session_id.as_ref() == id);
    children.take(MAX_CHILDREN).map(|child| Ok(convert_child(child.row()?))).collect()
}

fn convert_child(row: &SessionRow) -> Child {
    Child {
        session_id: row.session_id.clone(),
        relation: row.relation.clone().unwrap_or_default(),
        title: convert::short_title(row),
    }
}
