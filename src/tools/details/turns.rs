//! Builds level `turns`: every prompt with its answer and its counts.

use schemas::session::{EventRow, SessionRow};
use schemas::tool::details::Turn;
use schemas::{EventType, Usage};

use super::page::DetailPage;
use crate::tools::reply::budget::Budget;
use crate::tools::reply::convert;

/// Maximum sizes of the excerpts in bytes.
const PROMPT: usize = 600;
const ANSWER: usize = 800;

pub(super) fn turns(
    events: &[EventRow],
    session: &SessionRow,
    mut budget: Budget,
    page: &mut DetailPage,
) -> Vec<Turn> {
    let mut turns = Vec::new();
    for of_turn in events.chunk_by(|a, b| a.turn_index == b.turn_index) {
        let first = convert::index(of_turn[0].event_index);
        if first < page.from.0 {
            continue;
        }
        let turn = turn(of_turn, session);
        if turns.len() == page.limit || !budget.take(&turn) {
            page.next = Some((first, 0));
            break;
        }
        turns.push(turn);
    }
    turns
}

fn turn(events: &[EventRow], session: &SessionRow) -> Turn {
    let of = |kind: EventType| events.iter().filter(move |event| event.event_type == kind);
    let times: Vec<i64> = events.iter().filter_map(|event| event.timestamp).collect();
    let (start, end) = (times.iter().min().copied(), times.iter().max().copied());
    let mut steps: Vec<i32> = of(EventType::Message)
        .chain(of(EventType::Reasoning))
        .chain(of(EventType::ToolCall))
        .map(|event| event.step_index)
        .collect();
    steps.sort_unstable();
    steps.dedup();
    let usage = of(EventType::TokenUsage)
        .filter(|event| !event.is_replay)
        .fold(Usage::default(), |sum, event| sum.plus(event.usage()));
    let answer =
        of(EventType::Message).rfind(|event| !event.text.trim().is_empty() && !event.is_sidechain);
    Turn {
        turn_index: convert::index(events[0].turn_index),
        event_range: [
            convert::index(events[0].event_index),
            convert::index(events[events.len() - 1].event_index),
        ],
        timestamp: convert::time(start),
        duration_ms: start.zip(end).map(|(start, end)| (end - start) / 1000),
        prompt: of(EventType::User)
            .find(|event| !event.is_sidechain)
            .map(|event| convert::excerpt(event, PROMPT)),
        answer: answer.map(|event| convert::excerpt(event, ANSWER)),
        steps: steps.len(),
        tool_calls: of(EventType::ToolCall).count(),
        tool_errors: of(EventType::ToolResult).filter(|event| event.is_error == Some(true)).count(),
        usage: convert::usage(usage),
        is_abandoned: session.is_abandoned(events[0].event_index),
    }
}
