//! Builds level `steps`: every model response with its calls and results, shortened.

use schemas::session::EventRow;
use schemas::tool::details::Step;
use schemas::{EventType, Usage};

use super::page::DetailPage;
use crate::tools::reply::budget::Budget;
use crate::tools::reply::convert;

/// Maximum size of an excerpt in bytes.
const EXCERPT: usize = 500;

/// Maximum number of events in one item; a longer step is split into several items.
const EVENTS: usize = 60;

pub(super) fn steps(
    events: &[EventRow],
    reasoning: bool,
    mut budget: Budget,
    page: &mut DetailPage,
) -> Vec<Step> {
    let mut steps = Vec::new();
    // The events of a step are contiguous, except for results that came late, which start a new
    // item.
    for of_step in
        events.chunk_by(|a, b| (a.turn_index, a.step_index) == (b.turn_index, b.step_index))
    {
        for part in of_step.chunks(EVENTS) {
            let first = convert::index(part[0].event_index);
            if first < page.from.0 {
                continue;
            }
            let Some(step) = step(part, reasoning) else { continue };
            if steps.len() == page.limit || !budget.take(&step) {
                page.next = Some((first, 0));
                return steps;
            }
            steps.push(step);
        }
    }
    steps
}

/// Returns one item, or `None` if none of its events is shown at this level.
fn step(events: &[EventRow], reasoning: bool) -> Option<Step> {
    let is = |event: &EventRow, kind: EventType| event.event_type == kind;
    let shown = |event: &&EventRow| {
        (reasoning || !is(event, EventType::Reasoning))
            && !is(event, EventType::TokenUsage)
            && !event.text.trim().is_empty()
            || is(event, EventType::ToolCall)
            || is(event, EventType::ToolResult)
    };
    let usage = events
        .iter()
        .filter(|event| !event.is_replay)
        .fold(Usage::default(), |sum, event| sum.plus(event.usage()));
    let excerpts: Vec<_> =
        events.iter().filter(shown).map(|event| convert::excerpt(event, EXCERPT)).collect();
    if excerpts.is_empty() && usage.is_unknown() {
        return None;
    }
    Some(Step {
        turn_index: convert::index(events[0].turn_index),
        step_index: convert::index(events[0].step_index),
        timestamp: convert::time(events.iter().find_map(|event| event.timestamp)),
        usage: convert::usage(usage),
        events: excerpts,
    })
}
