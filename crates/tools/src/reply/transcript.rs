//! Reads one session as a whole, or a long one around an event, in the types of the contract: without
//! pages or a budget.

use std::ops::Range;

use schemas::price::PriceTable;
use schemas::session::{EventRow, SessionRow};
use schemas::tool::event::Event;
use schemas::tool::list::{ListFormat, Session};
use schemas::{ErrorCode, EventId, Timestamp, ToolError};

use super::call::Call;
use super::convert;
use super::rows::{EventLinks, convert_whole_event, read_event_range};
use super::shown::{describe_event, read_diff};
use super::turn_costs::turn_costs;
use crate::error::store_error;
use store::Snapshot;

/// A session and all its events, with texts, links, sources, and what readers see.
pub struct Transcript {
    pub session: Session,
    pub events: Vec<Event>,
    /// The indexes of the events that were read.
    pub range: Range<u32>,
    /// True if these are all events of the session.
    pub is_whole: bool,
    /// The cost of each turn that has one, in US dollars.
    pub costs: Vec<(u32, f64)>,
}

/// The part of the events around an event that are before it.
const BEFORE_SHARE: u32 = 6;

/// Number of events that are converted before it is checked again whether the reading must end.
const CHUNK_EVENTS: usize = 1024;

impl Transcript {
    /// Reads the session at this position of the snapshot. `stop` is polled from time to time; true ends
    /// the reading with an error.
    pub fn read(
        snapshot: &Snapshot,
        session: usize,
        prices: &PriceTable,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, ToolError> {
        Self::read_around(snapshot, session, 0, u32::MAX, prices, stop)
    }

    /// The same with at most `most` events: if the session has more, those around `event`, most of them
    /// after it.
    pub fn read_around(
        snapshot: &Snapshot,
        session: usize,
        event: u32,
        most: u32,
        prices: &PriceTable,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, ToolError> {
        let row = session_row(snapshot, session)?;
        let count = count_events(row);
        let first = event.saturating_sub(most / BEFORE_SHARE).min(count.saturating_sub(most));
        let range = first..first.saturating_add(most).min(count);
        // Writing a file has no time limit.
        let call = Call::new(Timestamp::now(), stop);
        let rows = read_event_range(snapshot, session, range.clone(), &call)?;
        Self::from_rows(row, &rows, range, prices, &call)
    }

    /// Converts the events of a session at these indexes.
    pub(crate) fn from_rows(
        row: &SessionRow,
        rows: &[EventRow],
        range: Range<u32>,
        prices: &PriceTable,
        call: &Call<'_>,
    ) -> Result<Self, ToolError> {
        let links = EventLinks::from_rows(rows);
        let mut events = Vec::with_capacity(rows.len());
        for chunk in rows.chunks(CHUNK_EVENTS) {
            call.ensure_running()?;
            events.extend(chunk.iter().map(|event| convert_whole_event(event, row, &links)));
        }
        show_events(&mut events, range.start, row.cwd.as_deref());
        let session = convert::convert_session(row, ListFormat::Full, prices);
        let is_whole = range == (0..count_events(row));
        let costs = turn_costs(rows, prices);
        Ok(Self { session, events, range, is_whole, costs })
    }
}

/// Adds to events what readers see of them. `first` is the index of the first one.
fn show_events(events: &mut [Event], first: u32, folder: Option<&str>) {
    let mut diffs = Vec::with_capacity(events.len());
    for event in events.iter() {
        let result = linked_index(event).and_then(|index| index.checked_sub(first));
        let result = result.and_then(|at| events.get(usize::try_from(at).ok()?));
        diffs.push(read_diff(event, result.and_then(|result| result.text.as_deref())));
    }
    for (event, diff) in events.iter_mut().zip(diffs) {
        event.line = describe_event(event, folder);
        event.diff = diff;
    }
}

fn linked_index(event: &Event) -> Option<u32> {
    let id: EventId = event.linked_event_id.as_deref()?.parse().ok()?;
    Some(id.index)
}

/// Returns the result of a call, or the call of a result. `all` are the events of the session: the
/// position of each is its index.
pub fn linked_event<'e>(event: &Event, all: &'e [Event]) -> Option<&'e Event> {
    all.get(usize::try_from(linked_index(event)?).ok()?)
}

fn session_row(snapshot: &Snapshot, session: usize) -> Result<&SessionRow, ToolError> {
    let missing = || ToolError::new(ErrorCode::InternalError, "A session is not in its snapshot");
    let session = snapshot.sessions().get(session).ok_or_else(missing)?;
    let row = session.row().map_err(store_error)?;
    Ok(row)
}

fn count_events(row: &SessionRow) -> u32 {
    u32::try_from(row.events).unwrap_or(u32::MAX)
}
