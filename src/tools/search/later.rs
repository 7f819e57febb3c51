//! Adds to the best matches what was said after them in their turns. The answer to a question is often in a
//! short message that has none of its words, after the error or the prompt that has them all.

use std::collections::HashSet;

use schemas::session::EventRow;
use schemas::table::EventColumn;
use schemas::tool::search::Match;
use schemas::{EventType, ToolError, limits};

use super::context::describe_event;
use crate::base::json_length::json_length;
use crate::base::sanitize::clean_text;
use crate::error::store_error;
use crate::store::{Snapshot, single_event_ranges};
use crate::tools::reply::convert::unsigned_index;
use crate::tools::reply::text_share::{TextSize, share_room};

/// The columns by which the messages of a turn are found.
const TURN_COLUMNS: &[EventColumn] = &[
    EventColumn::EventIndex,
    EventColumn::EventType,
    EventColumn::TurnIndex,
    EventColumn::IsSidechain,
    EventColumn::TextBytes,
];

/// Events after a match among which its turn is looked at.
const EVENTS_LOOKED_AT: u32 = 4096;

/// Bytes of a message that are shown even if there is no room.
const LEAST_BYTES: usize = 80;

/// Adds the last messages of the best turns, and the last one of the turns of other prompts that match, each
/// turn at its best match. All matches are of one session.
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
        let most = if is_best { limits::LATER_MESSAGES } else { 1 };
        let events = read_last_messages(snapshot, session, found, most, &mut shown)?;
        let last = events.len().saturating_sub(1);
        for (place, event) in events.into_iter().enumerate() {
            messages.push((at, place == last, event));
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

/// Reads the last `most` messages of the turn of a match that come after it and are not shown yet.
fn read_last_messages(
    snapshot: &Snapshot,
    session: usize,
    found: &Match,
    most: usize,
    shown: &mut HashSet<u32>,
) -> Result<Vec<EventRow>, ToolError> {
    let first = found.event_index.saturating_add(1);
    let range = first..first.saturating_add(EVENTS_LOOKED_AT);
    let events = snapshot.events_of(session, std::slice::from_ref(&range), TURN_COLUMNS);
    let events = events.read_rows().map_err(store_error)?;
    let is_wanted = |event: &&EventRow| {
        event.event_type == EventType::Message
            && !event.is_sidechain
            && event.text_bytes > 0
            && unsigned_index(event.turn_index) == found.turn_index
            && !shown.contains(&unsigned_index(event.event_index))
    };
    let wanted = events.iter().rev().filter(is_wanted).take(most);
    let indexes = wanted.map(|event| unsigned_index(event.event_index)).collect();
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
