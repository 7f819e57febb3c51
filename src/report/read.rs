//! Reads what a report needs of a session's events: the numbers of all events, the texts of a few.

use std::collections::{BTreeSet, HashMap};

use schemas::session::EventRow;
use schemas::table::EventColumn;

use crate::store::{ALL_EVENTS, Snapshot, StoreError, single_event_ranges};

/// The columns that are read for every event, besides its token counts.
const NUMBERS: &[EventColumn] = &[
    EventColumn::EventIndex,
    EventColumn::TurnIndex,
    EventColumn::EventType,
    EventColumn::Subtype,
    EventColumn::Timestamp,
    EventColumn::ToolName,
    EventColumn::ToolKind,
    EventColumn::Command,
    EventColumn::IsError,
    EventColumn::DurationMs,
    EventColumn::Model,
    EventColumn::RequestId,
    EventColumn::IsReplay,
    EventColumn::IsSidechain,
];

/// Reads every event of a session, in order, without its text.
pub(super) fn read_events(
    snapshot: &Snapshot,
    session: usize,
) -> Result<Vec<EventRow>, StoreError> {
    let columns = [NUMBERS, &EventColumn::TOKENS, &EventColumn::MODE].concat();
    snapshot.events_of(session, ALL_EVENTS, &columns).read_rows()
}

/// Reads the texts of events, by their index in the session.
pub(super) fn read_texts(
    snapshot: &Snapshot,
    session: usize,
    wanted: &BTreeSet<u32>,
) -> Result<HashMap<i32, String>, StoreError> {
    let columns = &[EventColumn::EventIndex, EventColumn::Text];
    let rows = snapshot.events_of(session, &single_event_ranges(wanted), columns).read_rows()?;
    Ok(rows.into_iter().map(|row| (row.event_index, row.text)).collect())
}
