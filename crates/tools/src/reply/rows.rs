//! Reads events of one session, and pages through them within a budget.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use arrow::array::{Array, AsArray, RecordBatch};
use ingest::discover::RawLog;
use ingest::provider::call_arguments::{CallArguments, find_call_arguments};
use ingest::redact::Redactor;
use ingest::redact::columns::is_masked_path;
use schemas::session::{EventRow, SessionRow, SourceRow};
use schemas::table::EventColumn;
use schemas::tool::event::{Event, EventField};
use schemas::{EventType, ToolError};

use super::budget::Budget;
use super::call::Call;
use super::convert;
use super::shown::{cut_diff, describe_event, read_diff};
use crate::error::store_error;
use base::json_length::json_length;
use base::sanitize::{clean_text, truncate_for_json};
use store::{ALL_EVENTS, Snapshot, column_of};

/// Reads events `first..end` of a session, in order.
pub fn read_events(
    snapshot: &Snapshot,
    session: usize,
    first: u32,
    end: u32,
) -> Result<Vec<EventRow>, ToolError> {
    snapshot
        .events_of(session, std::slice::from_ref(&(first..end)), &[])
        .read_rows()
        .map_err(store_error)
}

/// Number of events read at a time; whether the call has ended is checked in between.
const CHUNK_EVENTS: u32 = 8192;

/// Reads all events of a session, unless the call ends.
pub fn read_all_events(
    snapshot: &Snapshot,
    session: usize,
    call: &Call<'_>,
) -> Result<Vec<EventRow>, ToolError> {
    let end = u32::try_from(snapshot.sessions()[session].events).unwrap_or(u32::MAX);
    read_event_range(snapshot, session, 0..end, call)
}

/// Reads the events of a session at these indexes, unless the call ends.
pub fn read_event_range(
    snapshot: &Snapshot,
    session: usize,
    range: Range<u32>,
    call: &Call<'_>,
) -> Result<Vec<EventRow>, ToolError> {
    let mut events = Vec::new();
    let mut first = range.start;
    while first < range.end {
        call.ensure_running()?;
        let chunk_end = first.saturating_add(CHUNK_EVENTS).min(range.end);
        events.extend(read_events(snapshot, session, first, chunk_end)?);
        first = chunk_end;
    }
    Ok(events)
}

/// Calls `use_event` for each event of a session, unless the call ends. Few of them are in memory at a
/// time.
pub fn for_each_event(
    snapshot: &Snapshot,
    session: usize,
    call: &Call<'_>,
    mut use_event: impl FnMut(&EventRow),
) -> Result<(), ToolError> {
    let end = u32::try_from(snapshot.sessions()[session].events).unwrap_or(u32::MAX);
    let mut first = 0;
    while first < end {
        let chunk_end = first.saturating_add(CHUNK_EVENTS).min(end);
        read_event_range(snapshot, session, first..chunk_end, call)?
            .iter()
            .for_each(&mut use_event);
        first = chunk_end;
    }
    Ok(())
}

/// Returns the log of a session; `None` if the store does not know it any more. A session that moved has
/// the files of its former paths as well.
pub fn find_log(snapshot: &Snapshot, session: usize) -> Result<Option<SourceRow>, ToolError> {
    let session = &snapshot.sessions()[session];
    let mut sources = snapshot.read_sources(false).map_err(store_error)?.into_iter();
    Ok(sources.find(|source| {
        source.session_id.as_deref() == Some(session.id())
            && is_masked_path(&session.source_path, &source.path)
    }))
}

/// The columns that link a call with its result.
const LINK_COLUMNS: &[EventColumn] = &[
    EventColumn::EventIndex,
    EventColumn::EventType,
    EventColumn::ToolCallId,
    EventColumn::DurationMs,
];

/// The links between calls and results of one session, by call id.
#[derive(Default)]
pub struct EventLinks(HashMap<String, JoinedCalls>);

/// The calls and results that share one id: some models restart the numbering of calls in every
/// turn.
#[derive(Default)]
struct JoinedCalls {
    /// The event indexes of the calls, in order.
    calls: Vec<i32>,
    /// The event indexes of the results, each with its duration.
    results: Vec<(i32, Option<i64>)>,
}

impl JoinedCalls {
    /// Returns the call of a result: the last one before it, otherwise the first.
    fn call_of(&self, result: i32) -> Option<i32> {
        let before = self.calls.iter().rev().find(|call| **call < result);
        before.or(self.calls.first()).copied()
    }

    /// Returns the result of a call: the first whose call is this one.
    fn result_of(&self, call: i32) -> Option<(i32, Option<i64>)> {
        self.results.iter().find(|(result, _)| self.call_of(*result) == Some(call)).copied()
    }
}

impl EventLinks {
    /// Reads the links of a session from the narrow columns only.
    pub fn read(snapshot: &Snapshot, session: usize) -> Result<Self, ToolError> {
        let mut links = Self::default();
        let mut events = snapshot.events_of(session, ALL_EVENTS, LINK_COLUMNS);
        while let Some(batch) = events.next_batch().map_err(store_error)? {
            let read = links.add_batch(&batch);
            read.map_err(|error| store_error(events.damaged_batch(error)))?;
        }
        Ok(links)
    }

    /// Adds the rows of a batch.
    fn add_batch(&mut self, batch: &RecordBatch) -> Result<(), ToolError> {
        let (Some(indices), Some(kinds), Some(calls), Some(durations)) = (
            column_of(batch, EventColumn::EventIndex),
            column_of(batch, EventColumn::EventType),
            column_of(batch, EventColumn::ToolCallId),
            column_of(batch, EventColumn::DurationMs),
        ) else {
            return Ok(());
        };
        let indices = indices.as_primitive::<arrow::datatypes::Int32Type>();
        let kinds = kinds.as_string::<i32>();
        let calls = calls.as_string::<i32>();
        let durations = durations.as_primitive::<arrow::datatypes::Int64Type>();
        for row in (0..batch.num_rows()).filter(|row| calls.is_valid(*row)) {
            let duration = durations.is_valid(row).then(|| durations.value(row));
            let index = indices.value(row);
            self.add_event(kinds.value(row).parse()?, calls.value(row), index, duration);
        }
        Ok(())
    }

    /// Builds the links from rows that are already read.
    pub fn from_rows(rows: &[EventRow]) -> Self {
        let mut links = Self::default();
        for row in rows {
            if let Some(call) = &row.tool_call_id {
                links.add_event(row.event_type, call, row.event_index, row.duration_ms);
            }
        }
        links
    }

    /// Adds one call or result.
    fn add_event(&mut self, kind: EventType, call: &str, index: i32, duration: Option<i64>) {
        let joined = self.0.entry(call.to_owned()).or_default();
        if kind == EventType::ToolCall {
            joined.calls.push(index);
        } else if kind == EventType::ToolResult {
            joined.results.push((index, duration));
        }
    }

    /// Returns the index of the result of a call.
    pub fn result_of(&self, row: &EventRow) -> Option<i32> {
        let joined = self.0.get(row.tool_call_id.as_ref()?)?;
        let is_call = row.event_type == EventType::ToolCall;
        is_call.then(|| joined.result_of(row.event_index))?.map(|(index, _)| index)
    }

    /// Adds the result and the duration to a call, and the call to a result.
    fn link_event(&self, row: &EventRow, event: &mut Event) {
        let joined = row.tool_call_id.as_ref().and_then(|call| self.0.get(call));
        let Some(joined) = joined else { return };
        let linked = match event.event_type {
            EventType::ToolCall => {
                let result = joined.result_of(row.event_index);
                event.duration_ms = event.duration_ms.or(result.and_then(|(_, duration)| duration));
                result.map(|(index, _)| index)
            }
            EventType::ToolResult => joined.call_of(row.event_index),
            EventType::User
            | EventType::Message
            | EventType::Reasoning
            | EventType::TokenUsage
            | EventType::Notification => None,
        };
        event.linked_event_id = linked
            .map(|index| schemas::EventId::format(&row.session_id, convert::unsigned_index(index)));
    }
}

/// Converts a row, with all fields and its whole text.
pub fn convert_whole_event(row: &EventRow, session: &SessionRow, links: &EventLinks) -> Event {
    let mut event = convert::convert_event(row, session);
    links.link_event(row, &mut event);
    event.source = convert::record_source(row, session);
    event.text = Some(clean_text(&row.text));
    event
}

/// Puts events on a page until the page is full.
pub struct Pager<'a> {
    pub fields: Option<&'a [EventField]>,
    /// The number of characters of text that the page may still contain.
    pub max_chars: usize,
    pub budget: Budget,
    pub events: Vec<Event>,
}

/// How much of an event was put on a page.
pub enum EventFit {
    Whole,
    /// The text continues at this character.
    Until(usize),
}

/// Maximum number of lines of a diff on a page.
const MAX_DIFF_LINES: usize = 400;

/// Maximum size of a diff on a page in bytes. Of a larger one the arguments are shown.
const MAX_DIFF_BYTES: usize = 40_000;

/// Minimum number of characters of a cut text on a page; a shorter part moves to the next page.
const MIN_CUT_CHARS: usize = 200;

impl Pager<'_> {
    fn has_field(&self, field: EventField) -> bool {
        match self.fields {
            Some(fields) => fields.contains(&field),
            None => field != EventField::Shown,
        }
    }

    /// Puts `row` on the page, its text from character `offset` on. `result` is the text of the result
    /// of a call that changes files.
    pub fn push_event(
        &mut self,
        row: &EventRow,
        session: &SessionRow,
        links: &EventLinks,
        offset: usize,
        result: Option<&str>,
    ) -> EventFit {
        let mut event = convert::convert_event(row, session);
        links.link_event(row, &mut event);
        if self.has_field(EventField::Source) {
            event.source = convert::record_source(row, session);
        }
        if self.has_field(EventField::Shown) {
            event.text = Some(clean_text(&row.text));
            event.line = describe_event(&event, session.cwd.as_deref());
            let mut diff = read_diff(&event, result);
            if let Some(diff) = &mut diff {
                cut_diff(diff, MAX_DIFF_LINES);
            }
            event.diff = diff.filter(|diff| diff.text.len() <= MAX_DIFF_BYTES);
            event.text = None;
        }
        self.remove_unwanted(&mut event);

        let mut put = EventFit::Whole;
        if self.has_field(EventField::Text) {
            match self.add_text(&mut event, &row.text, offset) {
                Some(added) => put = added,
                None => return EventFit::Until(offset),
            }
        }
        if !self.budget.take(&event) {
            return EventFit::Until(offset);
        }
        self.events.push(event);
        put
    }

    /// Removes the fields that were not requested.
    fn remove_unwanted(&self, event: &mut Event) {
        if !self.has_field(EventField::Tool) {
            event.tool_name = None;
            event.tool_kind = None;
            event.tool_call_id = None;
            event.files = Vec::new();
            event.command = None;
            event.linked_event_id = None;
            event.exit_code = None;
            event.duration_ms = None;
        }
        if !self.has_field(EventField::Usage) {
            event.usage = None;
        }
        if !self.has_field(EventField::Context) {
            event.model = None;
            event.git_branch = None;
        }
    }

    /// Adds to an event as much of its text, from character `offset` on, as fits on the page.
    /// Returns `None` if too little of it fits and the page has events already.
    fn add_text(&mut self, event: &mut Event, text: &str, offset: usize) -> Option<EventFit> {
        let text = clean_text(text);
        let chars = text.chars().count();
        let rest = match text.char_indices().nth(offset) {
            Some((at, _)) => &text[at..],
            None => "",
        };
        let by_chars = rest.char_indices().nth(self.max_chars).map_or(rest, |(at, _)| &rest[..at]);
        let frame = json_length(&*event) + 100;
        let (kept, _) =
            truncate_for_json(by_chars, self.budget.remaining_bytes().saturating_sub(frame));
        let kept_chars = kept.chars().count();
        let is_cut = kept.len() < rest.len();
        if is_cut && kept_chars < MIN_CUT_CHARS && !self.events.is_empty() {
            return None;
        }

        self.max_chars -= kept_chars.min(self.max_chars);
        event.text = Some(kept.to_owned());
        event.text_chars = (offset > 0 || is_cut).then_some(chars);
        event.text_offset = (offset > 0).then_some(offset);
        Some(if is_cut { EventFit::Until(offset + kept_chars) } else { EventFit::Whole })
    }
}

/// Finds the arguments of calls in the log of their session, by the indexes of the events. Each record is
/// read and searched once.
pub fn find_arguments<'r>(
    log: &mut RawLog,
    calls: impl Iterator<Item = &'r EventRow>,
    redactor: &Redactor,
    call: &Call<'_>,
) -> Result<HashMap<i32, CallArguments>, ToolError> {
    let mut records: BTreeMap<(i64, i64), Vec<&EventRow>> = BTreeMap::new();
    for row in calls {
        records.entry((row.source_offset, row.source_length)).or_default().push(row);
    }
    let mut found = HashMap::new();
    for ((offset, length), calls) in records {
        call.ensure_running()?;
        let record = log.read_record(offset.cast_unsigned(), length.cast_unsigned());
        let Ok(record) = record else { continue };
        let texts: Vec<&str> = calls.iter().map(|row| row.text.as_str()).collect();
        let by_text = find_call_arguments(&record, &texts, redactor);
        for row in calls {
            if let Some(arguments) = by_text.get(row.text.as_str()) {
                found.insert(row.event_index, arguments.clone());
            }
        }
    }
    Ok(found)
}
