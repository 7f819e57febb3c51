//! Compares what two machines have of one log, by the types, times and order of their events. These do not
//! depend on what is masked, kept or published of the texts, nor on the folder that the records name.
//!
//! Two logs are the same if one contains the other. Otherwise they parted: both begin with the same
//! events, and then each has others.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use arrow::array::{BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use schemas::table::EventColumn;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::error::StoreError;
use crate::segment::event_reader::{flag_column, number_column, text_column, value_at};
use crate::session_events::ALL_EVENTS;
use crate::snapshot::Snapshot;

/// The columns that are compared.
const COLUMNS: [EventColumn; 7] = [
    EventColumn::EventType,
    EventColumn::Timestamp,
    EventColumn::ToolCallId,
    EventColumn::RequestId,
    EventColumn::IsReplay,
    EventColumn::SourceOffset,
    EventColumn::SourceLength,
];

/// The events of a session that are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventHistory {
    events: Vec<ComparedEvent>,
    /// False if no event has a time.
    has_times: bool,
    /// The number of events so far of each type and time.
    counts: HashMap<u64, u64>,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ComparedEvent {
    /// The same in every copy of the log: its type, its time and the number of such events before it.
    /// Its position is another one where a secret was masked or the folder is another one.
    in_log: u64,
    /// Its position, which tells logs without times apart.
    place: u64,
    /// The same in logs of other sessions that repeat the event; `None` if it has no time.
    in_copy: Option<u64>,
    /// True if the event does not count.
    is_replay: bool,
}

/// The columns of events that are compared.
struct ComparedColumns<'b> {
    types: Option<&'b StringArray>,
    times: Option<&'b TimestampMicrosecondArray>,
    calls: Option<&'b StringArray>,
    requests: Option<&'b StringArray>,
    replays: Option<&'b BooleanArray>,
    offsets: Option<&'b Int64Array>,
    lengths: Option<&'b Int64Array>,
}

impl<'b> ComparedColumns<'b> {
    fn new(batch: &'b RecordBatch) -> Self {
        Self {
            types: text_column(batch, EventColumn::EventType),
            times: number_column(batch, EventColumn::Timestamp),
            calls: text_column(batch, EventColumn::ToolCallId),
            requests: text_column(batch, EventColumn::RequestId),
            replays: flag_column(batch, EventColumn::IsReplay),
            offsets: number_column(batch, EventColumn::SourceOffset),
            lengths: number_column(batch, EventColumn::SourceLength),
        }
    }

    /// Reads the event in a row. `counts` has the number of events before it of each type and time.
    fn read_event(&self, row: usize, counts: &mut HashMap<u64, u64>) -> ComparedEvent {
        let kind = value_at(self.types, row).unwrap_or_default();
        let time = value_at(self.times, row);
        let mut in_log = Xxh3Default::new();
        in_log.update(kind.as_bytes());
        in_log.update(&time.unwrap_or_default().to_le_bytes());
        let count = counts.entry(in_log.digest()).or_default();
        in_log.update(&count.to_le_bytes());
        *count += 1;
        let mut place = Xxh3Default::new();
        for numbers in [self.offsets, self.lengths].into_iter().flatten() {
            place.update(&numbers.value(row).to_le_bytes());
        }
        let in_copy = time.map(|time| {
            let ids = (value_at(self.calls, row), value_at(self.requests, row));
            xxh3_64(format!("{kind} {time} {ids:?}").as_bytes())
        });
        let is_replay = value_at(self.replays, row).unwrap_or_default();
        ComparedEvent { in_log: in_log.digest(), place: place.digest(), in_copy, is_replay }
    }
}

impl EventHistory {
    /// Reads the history of the session at position `at`.
    ///
    /// # Errors
    /// Fails if the events cannot be read.
    pub fn of_session(snapshot: &Snapshot, at: usize) -> Result<Self, StoreError> {
        let mut history = Self::default();
        let mut events = snapshot.events_of(at, ALL_EVENTS, &COLUMNS);
        while let Some(batch) = events.next_batch()? {
            history.append(&batch);
        }
        Ok(history)
    }

    /// Returns the history in events of a session, in order.
    pub fn of_events(events: &[RecordBatch]) -> Self {
        let mut history = Self::default();
        for batch in events {
            history.append(batch);
        }
        history
    }

    /// Adds the next events of the session.
    pub(super) fn append(&mut self, batch: &RecordBatch) {
        let columns = ComparedColumns::new(batch);
        let counts = &mut self.counts;
        self.events.extend((0..batch.num_rows()).map(|row| columns.read_event(row, counts)));
        self.has_times = self.events.iter().any(|event| event.in_copy.is_some());
    }

    /// Returns what identifies an event among those of the copies of the log.
    fn identity_of(&self, event: &ComparedEvent) -> u64 {
        if self.has_times { event.in_log } else { event.in_log ^ event.place }
    }

    /// Returns whether this log has every event of `other`. They may have another order: in the log of an
    /// agent that rewrites it, what was added need not be at the end.
    pub fn contains(&self, other: &Self) -> bool {
        if self.events.len() < other.events.len() {
            return false;
        }
        let known: HashSet<u64> = self.events.iter().map(|event| self.identity_of(event)).collect();
        other.events.iter().all(|event| known.contains(&other.identity_of(event)))
    }

    /// Returns the number of events with which both begin. `is_same_log` says whether they are copies of
    /// one log, or logs of two sessions.
    pub fn count_common(&self, other: &Self, is_same_log: bool) -> usize {
        let pairs = self.events.iter().zip(&other.events);
        if is_same_log {
            let same = pairs.take_while(|(a, b)| self.identity_of(a) == other.identity_of(b));
            return same.count();
        }
        pairs.take_while(|(a, b)| a.in_copy.is_some() && a.in_copy == b.in_copy).count()
    }

    /// Returns the identity of the event at a position.
    pub fn event_at(&self, position: usize) -> Option<u64> {
        self.events.get(position).map(|event| self.identity_of(event))
    }

    /// Returns whether the events in a range are all marked as copies.
    pub fn is_marked(&self, range: Range<usize>) -> bool {
        self.events.get(range).unwrap_or_default().iter().all(|event| event.is_replay)
    }

    /// Returns the end of the events from `start` on, up to `end`, of which none is a copy.
    pub fn counted_until(&self, start: usize, end: usize) -> usize {
        let events = self.events.get(start..end).unwrap_or_default();
        start + events.iter().take_while(|event| !event.is_replay).count()
    }
}
