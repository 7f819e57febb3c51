//! Builds level `turns`: every prompt with its answer and its counts.

use schemas::session::{EventRow, SessionRow};
use schemas::tool::details::{Excerpt, Turn};
use schemas::{EventType, Usage, limits};

use super::page::DetailPage;
use crate::reply::budget::Budget;
use crate::reply::convert;
use crate::reply::text_share::{TextSize, share_room};
use base::json_length::json_length;
use base::sanitize::clean_text;

/// Size in bytes that the excerpt of a prompt may take on any page.
const LEAST_PROMPT_BYTES: usize = 600;

/// Size in bytes that the excerpt of an answer may take on any page.
const LEAST_ANSWER_BYTES: usize = 800;

/// Returns the turns of a page. `frame` is the size in bytes of the rest of the answer.
pub(super) fn collect_turns(
    events: &[EventRow],
    session: &SessionRow,
    frame: usize,
    page: &mut DetailPage,
) -> Vec<Turn> {
    let mut budget = Budget::new(limits::TURNS_BYTES.saturating_sub(frame));
    let mut turns = Vec::new();
    let mut texts = Vec::new();
    for of_turn in events.chunk_by(|a, b| a.turn_index == b.turn_index) {
        let first = convert::unsigned_index(of_turn[0].event_index);
        if first < page.from.0 {
            continue;
        }
        let turn = describe_turn(of_turn, session);
        let texts_of_turn = TurnTexts::find(of_turn);
        let least = with_texts(turn.clone(), texts_of_turn, &texts_of_turn.share(0));
        if turns.len() == page.limit || !budget.take(&least) {
            page.next = Some((first, 0));
            break;
        }
        turns.push(turn);
        texts.push(texts_of_turn);
    }

    let sizes: Vec<TextSize> = texts.iter().flat_map(|of_turn| of_turn.sizes()).collect();
    let without_texts = turns.iter().zip(&texts);
    let around: usize = without_texts
        .map(|(turn, texts)| json_length(&with_texts(turn.clone(), *texts, &[])))
        .sum();
    let room = limits::TURNS_SHARED_BYTES.saturating_sub(frame + around);
    let shares = share_room(&sizes, room);
    let turns = turns.into_iter().zip(texts).zip(shares.chunks(2));
    turns.map(|((turn, texts), shares)| with_texts(turn, texts, shares)).collect()
}

/// The events of a turn whose texts are shown.
#[derive(Clone, Copy)]
struct TurnTexts<'a> {
    prompt: Option<&'a EventRow>,
    /// The last message.
    answer: Option<&'a EventRow>,
}

impl<'a> TurnTexts<'a> {
    fn find(events: &'a [EventRow]) -> Self {
        Self {
            prompt: of_type(events, EventType::User).find(|event| !event.is_sidechain),
            answer: of_type(events, EventType::Message)
                .rfind(|event| !event.text.trim().is_empty() && !event.is_sidechain),
        }
    }

    /// Returns the sizes of the prompt and of the answer.
    fn sizes(&self) -> [TextSize; 2] {
        [
            excerpt_size(self.prompt, LEAST_PROMPT_BYTES),
            excerpt_size(self.answer, LEAST_ANSWER_BYTES),
        ]
    }

    /// Returns the bytes that the two texts take if they share `room` bytes.
    fn share(&self, room: usize) -> Vec<usize> {
        share_room(&self.sizes(), room)
    }
}

/// Returns the size of the text of an event.
fn excerpt_size(event: Option<&EventRow>, least: usize) -> TextSize {
    let bytes = event.map_or(0, |event| json_length(&clean_text(&event.text)));
    TextSize { bytes, least, most: usize::MAX }
}

/// Adds the prompt and the answer to a turn, in the bytes that each may take.
fn with_texts(turn: Turn, texts: TurnTexts<'_>, shares: &[usize]) -> Turn {
    let excerpt = |event: Option<&EventRow>, place: usize| -> Option<Excerpt> {
        let bytes = shares.get(place).copied().unwrap_or(0);
        event.map(|event| convert::ends_excerpt(event, bytes))
    };
    Turn { prompt: excerpt(texts.prompt, 0), answer: excerpt(texts.answer, 1), ..turn }
}

/// Describes a turn without its texts.
fn describe_turn(events: &[EventRow], session: &SessionRow) -> Turn {
    let start = events.iter().filter_map(|event| event.timestamp).min();
    let end = events.iter().filter_map(|event| event.timestamp).max();
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
        prompt: None,
        answer: None,
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
