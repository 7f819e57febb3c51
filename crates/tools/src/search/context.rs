//! Adds to each match the events around it.

use std::collections::HashSet;

use schemas::session::EventRow;
use schemas::tool::search::Match;
use schemas::{ErrorCode, EventType, ToolError, limits};

use crate::reply::budget::Budget;
use crate::reply::rows::read_events;
use base::sanitize::{clean_text, truncate_for_json};
use store::Snapshot;

/// Returns how many events to show before and after each match.
pub(super) fn checked_count(context: Option<u32>) -> Result<u32, ToolError> {
    let count = context.unwrap_or(0);
    if count > limits::SEARCH_CONTEXT_MAX {
        let message = format!("context: {count} is not in 0-{}", limits::SEARCH_CONTEXT_MAX);
        return Err(
            ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "context")
        );
    }
    Ok(count)
}

/// Adds the beginnings of the `count` events before and after each match, as long as there is space
/// in the answer. No event is shown twice: those that match have their own entry.
pub(super) fn add_context(
    snapshot: &Snapshot,
    matches: &mut [Match],
    count: u32,
) -> Result<(), ToolError> {
    if count == 0 {
        return Ok(());
    }
    let mut budget = Budget::new(limits::ANSWER_BYTES);
    let mut shown = HashSet::new();
    for found in matches.iter() {
        budget.take(found);
        let indexes = std::iter::once(&found.event_index).chain(found.context.keys());
        shown.extend(indexes.map(|index| (found.session_id.clone(), *index)));
    }
    for found in matches {
        let Some(session) = snapshot.session_position(&found.session_id) else { continue };
        let first = found.event_index.saturating_sub(count);
        let end = found.event_index.saturating_add(count + 1);
        for event in read_events(snapshot, session, first, end)? {
            let Ok(index) = u32::try_from(event.event_index) else { continue };
            let place = (found.session_id.clone(), index);
            if event.event_type == EventType::TokenUsage || shown.contains(&place) {
                continue;
            }
            let line = describe_event(&event, limits::CONTEXT_BYTES);
            if budget.take(&line) {
                shown.insert(place);
                found.context.insert(index, line);
            }
        }
    }
    Ok(())
}

/// Describes an event in a line: `tool_result Bash error: assertion failed ...`. Its text takes at most
/// `bytes` bytes of JSON.
pub(super) fn describe_event(event: &EventRow, bytes: usize) -> String {
    let mut line = event.event_type.as_str().to_owned();
    if let Some(tool) = &event.tool_name {
        line.push(' ');
        line.push_str(&clean_text(tool));
    }
    if event.is_error == Some(true) {
        line.push_str(" error");
    }
    let text = clean_text(&event.text);
    let (kept, omitted) = truncate_for_json(&text, bytes);
    let words: Vec<&str> = kept.split_whitespace().collect();
    let ellipsis = if omitted > 0 { " ..." } else { "" };
    format!("{line}: {}{ellipsis}", words.join(" "))
}
