//! Keeps only the last steps or turns of a session's events.

use schemas::EventType;
use schemas::session::EventRow;
use schemas::tool::details::DetailLevel;

/// Keeps the events of the last `count` turns at the level `turns`, and of the last `count` steps at
/// the levels `steps` and `full`. A level without pages keeps all events.
pub(super) fn keep_last(events: &mut Vec<EventRow>, level: DetailLevel, count: usize) {
    let is_shown = |event: &EventRow| {
        event.event_type != EventType::TokenUsage && !event.text.trim().is_empty()
    };
    let first = match level {
        DetailLevel::Summary => return,
        DetailLevel::Turns => nth_last_start(events, count, |a, b| a.turn_index == b.turn_index),
        DetailLevel::Steps | DetailLevel::Full => {
            let shown: Vec<&EventRow> = events.iter().filter(|event| is_shown(event)).collect();
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
}
