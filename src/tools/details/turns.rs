//! Builds level `turns`: every prompt with its answer and its counts.

use schemas::session::{EventRow, SessionRow};
use schemas::tool::details::Turn;
use schemas::{EventType, Usage};

use super::page::DetailPage;
use crate::tools::reply::budget::Budget;
use crate::tools::reply::convert;

/// Maximum size in bytes of the excerpt of a prompt.
const MAX_PROMPT_BYTES: usize = 600;

/// Maximum size in bytes of the excerpt of an answer.
const MAX_ANSWER_BYTES: usize = 800;

/// Returns the turns of a page.
pub(super) fn collect_turns(
    events: &[EventRow],
    session: &SessionRow,
    mut budget: Budget,
    page: &mut DetailPage,
) -> Vec<Turn> {
    let mut turns = Vec::new();
    for of_turn in events.chunk_by(|a, b| a.turn_index == b.turn_index) {
        let first = convert::unsigned_index(of_turn[0].event_index);
        if first < page.from.0 {
            continue;
        }
        let turn = describe_turn(of_turn, session);
        if turns.len() == page.limit || !budget.take(&turn) {
            page.next = Some((first, 0));
            break;
        }
        turns.push(turn);
    }
    turns
}

fn describe_turn(events: &[EventRow], session: &SessionRow) -> Turn {
    let start = events.iter().filter_map(|event| event.timestamp).min();
    let end = events.iter().filter_map(|event| event.timestamp).max();
    let prompt = of_type(events, EventType::User).find(|event| !event.is_sidechain);
    let answer = of_type(events, EventType::Message)
        .rfind(|event| !event.text.trim().is_empty() && !event.is_sidechain);
    let usage = of_type(events, EventType::TokenUsage)
        .filter(|event| !event.is_replay)
        .fold(Usage::default(), |sum, event| sum.plus(event.usage()));
    let errors =
        of_type(events, EventType::ToolResult).filter(|event| event.is_error == Some(true));
    Turn {
        turn_index: convert::unsigned_index(events[0].turn_index),
        event_range: [
            convert::unsigned_index(events[0].event_index),
            convert::unsigned_index(events[events.len() - 1].event_index),
        ],
        timestamp: convert::format_time(start),
        duration_ms: start.zip(end).map(|(start, end)| (end - start) / 1000),
        prompt: prompt.map(|event| convert::text_excerpt(event, MAX_PROMPT_BYTES)),
        answer: answer.map(|event| convert::text_excerpt(event, MAX_ANSWER_BYTES)),
        steps: count_steps(events),
        tool_calls: of_type(events, EventType::ToolCall).count(),
        tool_errors: errors.count(),
        usage: convert::known_usage(usage),
        is_abandoned: session.is_abandoned(events[0].event_index),
    }
}

fn of_type(
    events: &[EventRow],
    event_type: EventType,
) -> impl DoubleEndedIterator<Item = &EventRow> {
    events.iter().filter(move |event| event.event_type == event_type)
}

/// Counts the steps of a turn in which the model said or did something.
fn count_steps(events: &[EventRow]) -> usize {
    let mut steps: Vec<i32> = of_type(events, EventType::Message)
        .chain(of_type(events, EventType::Reasoning))
        .chain(of_type(events, EventType::ToolCall))
        .map(|event| event.step_index)
        .collect();
    steps.sort_unstable();
    steps.dedup();
    steps.len()
}
