//! Builds level `steps`: every model response with its calls and results, shortened.

use schemas::session::EventRow;
use schemas::tool::details::Step;
use schemas::{EventType, Usage};

use super::page::DetailPage;
use crate::reply::budget::Budget;
use crate::reply::convert;

/// Maximum size of an excerpt in bytes.
const MAX_EXCERPT_BYTES: usize = 500;

/// Maximum size in bytes of the last answer, with which the work often ended.
const MAX_LAST_ANSWER_BYTES: usize = 8_000;

/// Maximum number of events in one item; a longer step is split into several items.
const MAX_ITEM_EVENTS: usize = 60;

/// Returns the items of a page.
pub(super) fn collect_steps(
    events: &[EventRow],
    includes_reasoning: bool,
    mut budget: Budget,
    page: &mut DetailPage,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let last_answer = events.iter().rfind(|event| is_answer(event)).map(|event| event.event_index);
    // The events of a step are contiguous, except for results that came late, which start a new
    // item.
    for of_step in
        events.chunk_by(|a, b| (a.turn_index, a.step_index) == (b.turn_index, b.step_index))
    {
        for part in of_step.chunks(MAX_ITEM_EVENTS) {
            let first = convert::unsigned_index(part[0].event_index);
            if first < page.from.0 {
                continue;
            }
            let Some(step) = describe_step(part, includes_reasoning, last_answer) else { continue };
            if steps.len() == page.limit || !budget.take(&step) {
                page.next = Some((first, 0));
                return steps;
            }
            steps.push(step);
        }
    }
    steps
}

/// Returns one item, or `None` if none of its events is shown at this level and its usage is
/// unknown. `last_answer` is the index of the event whose text may be long.
fn describe_step(
    events: &[EventRow],
    includes_reasoning: bool,
    last_answer: Option<i32>,
) -> Option<Step> {
    let usage = events
        .iter()
        .filter(|event| !event.is_replay)
        .fold(Usage::default(), |sum, event| sum.plus(event.usage()));
    let shown = events.iter().filter(|event| is_shown(event, includes_reasoning));
    let excerpts: Vec<_> = shown
        .map(|event| {
            let is_last_answer = last_answer == Some(event.event_index);
            let bytes = if is_last_answer { MAX_LAST_ANSWER_BYTES } else { MAX_EXCERPT_BYTES };
            convert::text_excerpt(event, bytes)
        })
        .collect();
    if excerpts.is_empty() && usage.is_unknown() {
        return None;
    }
    Some(Step {
        turn_index: convert::unsigned_index(events[0].turn_index),
        step_index: convert::unsigned_index(events[0].step_index),
        timestamp: convert::format_time(events.iter().find_map(|event| event.timestamp)),
        usage: convert::known_usage(usage),
        events: excerpts,
    })
}

/// Returns true if an event is a message of the main agent.
fn is_answer(event: &EventRow) -> bool {
    event.event_type == EventType::Message && !event.is_sidechain && !event.text.trim().is_empty()
}

fn is_shown(event: &EventRow, includes_reasoning: bool) -> bool {
    match event.event_type {
        EventType::ToolCall | EventType::ToolResult => true,
        EventType::TokenUsage => false,
        EventType::Reasoning => includes_reasoning && !event.text.trim().is_empty(),
        EventType::User | EventType::Message | EventType::Notification => {
            !event.text.trim().is_empty()
        }
    }
}
