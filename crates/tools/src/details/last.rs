//! Keeps only the last steps or turns of a session's events.

use schemas::EventType;
use schemas::session::EventRow;
use schemas::tool::details::DetailLevel;

use crate::analyze::notification_stop_reason;
use crate::reply::event_predicates::{has_failed, shows_compaction};

/// Keeps the events of the last `count` turns at the level `turns`, and of the last `count` steps at
/// the levels `steps` and `full`. A level without pages keeps all events. At the level `steps`
/// bookkeeping is left out.
pub(super) fn keep_last(events: &mut Vec<EventRow>, level: DetailLevel, count: usize) {
    let first = match level {
        DetailLevel::Summary => return,
        DetailLevel::Turns => nth_last_start(events, count, |a, b| a.turn_index == b.turn_index),
        DetailLevel::Steps | DetailLevel::Full => {
            let shown: Vec<&EventRow> = events.iter().filter(|event| is_of_step(event)).collect();
            let mut starts = Vec::new();
            for group in shown.chunk_by(|a, b| is_same_step(a, b)) {
                starts.extend(group.first().map(|event| event.event_index));
            }
            starts.len().checked_sub(count).and_then(|at| starts.get(at).copied())
        }
    };
    if let Some(first) = first {
        events.retain(|event| event.event_index >= first);
    }
    if level == DetailLevel::Steps && events.iter().any(is_of_step) {
        events.retain(|event| !is_bookkeeping(event));
    }
}

/// Returns true if an event counts as a part of a step.
fn is_of_step(event: &EventRow) -> bool {
    event.event_type != EventType::TokenUsage
        && !event.text.trim().is_empty()
        && !is_bookkeeping(event)
}

/// Returns true if an event is a notification that says nothing about how the work went: neither a
/// failure, a stop nor a compaction.
fn is_bookkeeping(event: &EventRow) -> bool {
    let is_about_work =
        has_failed(event) || shows_compaction(event) || notification_stop_reason(event).is_some();
    event.event_type == EventType::Notification && !is_about_work
}

fn is_same_step(a: &EventRow, b: &EventRow) -> bool {
    (a.turn_index, a.step_index) == (b.turn_index, b.step_index)
}

/// Returns the index of the first event of the group that is `count`-th from the end; `None` if
/// there are fewer groups.
fn nth_last_start(
    events: &[EventRow],
    count: usize,
    is_same: fn(&EventRow, &EventRow) -> bool,
) -> Option<i32> {
    let groups: Vec<&[EventRow]> = events.chunk_by(is_same).collect();
    let group = groups.len().checked_sub(count).and_then(|at| groups.get(at))?;
    group.first().map(|event| event.event_index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_steps_and_turns_are_kept() {
        let mut events = Vec::new();
        for (index, (turn, step)) in (0..).zip([(1, 0), (1, 1), (1, 1), (1, 2), (2, 0), (2, 3)]) {
            events.push(EventRow {
                event_index: index,
                turn_index: turn,
                step_index: step,
                event_type: EventType::Message,
                text: "x".to_owned(),
                ..EventRow::default()
            });
        }
        let kept = |level, count| {
            let mut events = events.clone();
            keep_last(&mut events, level, count);
            events.first().map(|event| event.event_index)
        };
        assert_eq!(kept(DetailLevel::Steps, 1), Some(5));
        assert_eq!(kept(DetailLevel::Full, 3), Some(3));
        assert_eq!(kept(DetailLevel::Steps, 4), Some(1));
        assert_eq!(kept(DetailLevel::Turns, 1), Some(4));
        assert_eq!(kept(DetailLevel::Turns, 9), Some(0));
    }

    #[test]
    fn bookkeeping_is_no_step() {
        let event = |index: i32, event_type, subtype: &str| EventRow {
            event_index: index,
            step_index: index,
            event_type,
            subtype: Some(subtype.to_owned()),
            is_error: (subtype == "api_error").then_some(true),
            text: "x".to_owned(),
            ..EventRow::default()
        };
        let mut events = vec![
            event(0, EventType::Message, "text"),
            event(1, EventType::Notification, "api_error"),
            event(2, EventType::Notification, "turn_duration"),
            event(3, EventType::Message, "text"),
            event(4, EventType::Notification, "interrupted"),
            event(5, EventType::Notification, "compact_boundary"),
            event(6, EventType::Notification, "stop_hook_summary"),
        ];
        keep_last(&mut events, DetailLevel::Steps, 4);
        let kept: Vec<i32> = events.iter().map(|event| event.event_index).collect();
        assert_eq!(kept, [1, 3, 4, 5]);
    }
}
