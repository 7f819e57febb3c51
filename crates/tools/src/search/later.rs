//! Adds to the best matches what was said after them in their turns, and the prompt after it. The answer to
//! a question is often in a message that has none of its words, after the error or the prompt that has them
//! all, and the next prompt says whether it was right. After a match that is not a prompt, only the last
//! message is shown: those before it say what the agent does next.

use std::collections::HashSet;

use schemas::session::EventRow;
use schemas::table::EventColumn;
use schemas::tool::search::Match;
use schemas::{EventType, ToolError, limits};

use super::context::describe_event;
use crate::error::store_error;
use crate::reply::convert::unsigned_index;
use crate::reply::text_share::{TextSize, share_room};
use base::json_length::json_length;
use base::sanitize::clean_text;
use store::{Snapshot, single_event_ranges};

/// The columns by which the messages of a turn are found.
const TURN_COLUMNS: &[EventColumn] = &[
    EventColumn::EventIndex,
    EventColumn::EventType,
    EventColumn::TurnIndex,
    EventColumn::IsSidechain,
    EventColumn::TextBytes,
];

/// Number of events after a match that are examined for its turn.
const EVENTS_LOOKED_AT: u32 = 4096;

/// Bytes of a message that are shown even if there is no room.
const LEAST_BYTES: usize = 80;

/// Adds the last messages of the best turns with the prompts after them, and the last message of the turns of
/// other prompts that match, each turn at its best match. All matches are of one session.
pub(super) fn add_later_messages(
    snapshot: &Snapshot,
    matches: &mut [Match],
) -> Result<(), ToolError> {
    let Some(session) =
        matches.first().and_then(|best| snapshot.session_position(&best.session_id))
    else {
        return Ok(());
    };
    let mut shown: HashSet<u32> = matches.iter().map(|found| found.event_index).collect();
    let mut turns = HashSet::new();
    let mut messages = Vec::new();
    for (at, found) in matches.iter().enumerate() {
        let is_best = turns.len() < limits::LATER_TURNS;
        if !(is_best || found.event_type == EventType::User) || !turns.insert(found.turn_index) {
            continue;
        }
        let events = read_later_events(snapshot, session, found, is_best, &mut shown)?;
        let last = events.iter().rposition(|event| event.event_type == EventType::Message);
        for (place, event) in events.into_iter().enumerate() {
            messages.push((at, Some(place) == last, event));
        }
    }

    let sizes: Vec<TextSize> =
        messages.iter().map(|(_, is_last, event)| message_size(event, *is_last)).collect();
    let shares = share_room(&sizes, limits::LATER_MESSAGES_BYTES);
    for ((at, _, event), share) in messages.iter().zip(shares) {
        let line = describe_event(event, share);
        matches[*at].context.insert(unsigned_index(event.event_index), line);
    }
    Ok(())
}

/// Reads what comes after a match and is not shown yet: the last message of its turn, or of one of the best
/// turns the last messages, if the match is a prompt, and the next prompt.
fn read_later_events(
    snapshot: &Snapshot,
    session: usize,
    found: &Match,
    is_best: bool,
    shown: &mut HashSet<u32>,
) -> Result<Vec<EventRow>, ToolError> {
    let first = found.event_index.saturating_add(1);
    let range = first..first.saturating_add(EVENTS_LOOKED_AT);
    let events = snapshot.events_of(session, std::slice::from_ref(&range), TURN_COLUMNS);
    let events = events.read_rows().map_err(store_error)?;
    let is_of_type = |event: &&EventRow, event_type: EventType| {
        event.event_type == event_type && !event.is_sidechain && event.text_bytes > 0
    };
    let turn_of = |event: &EventRow| unsigned_index(event.turn_index);
    let is_message = |event: &&EventRow| {
        is_of_type(event, EventType::Message) && turn_of(event) == found.turn_index
    };
    let is_next_prompt =
        |event: &&EventRow| is_of_type(event, EventType::User) && turn_of(event) > found.turn_index;
    let is_new = |event: &&EventRow| !shown.contains(&unsigned_index(event.event_index));

    let is_prompt = found.event_type == EventType::User;
    let most = if is_best && is_prompt { limits::LATER_MESSAGES } else { 1 };
    let messages = events.iter().rev().filter(is_message).take(most).filter(is_new);
    let next_prompt = events.iter().find(is_next_prompt).filter(is_new).filter(|_| is_best);
    let indexes =
        messages.chain(next_prompt).map(|event| unsigned_index(event.event_index)).collect();
    let rows = snapshot.events_of(session, &single_event_ranges(&indexes), &[]).read_rows();
    shown.extend(indexes);

    let mut rows = rows.map_err(store_error)?;
    rows.retain(|event| !event.text.trim().is_empty());
    Ok(rows)
}

/// Returns the size of the text of a message. The last one of a turn is its answer; those before it say
/// what was found on the way.
fn message_size(event: &EventRow, is_last: bool) -> TextSize {
    let bytes = json_length(&clean_text(&event.text));
    let most = if is_last { usize::MAX } else { limits::LATER_MESSAGE_BYTES };
    TextSize { bytes, least: LEAST_BYTES, most }
}
