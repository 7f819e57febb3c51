//! Stored events of records that are copies of forgotten ones: the facts by which they are
//! recognised, and what stays of them.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray as _, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow::compute::nullif;
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use ingest::stream::forgotten::{RecordFacts, hash_event_text, is_forgotten_event, is_spoken};
use schemas::EventType;
use schemas::event::FORGOTTEN_TEXT;
use schemas::session::EventRow;
use schemas::table::{EVENTS, EventColumn};

use super::error::StoreError;
use super::segment::event_reader::{flag_column, number_column, text_column};
use super::session_events::ALL_EVENTS;
use super::snapshot::Snapshot;

/// The columns that the facts are made from.
pub(super) const FACT_COLUMNS: [EventColumn; 9] = [
    EventColumn::EventIndex,
    EventColumn::EventType,
    EventColumn::Timestamp,
    EventColumn::Text,
    EventColumn::IsReplay,
    EventColumn::SourceOffset,
    EventColumn::TextBytes,
    EventColumn::RecordHash,
    EventColumn::CopyHash,
];

/// Columns of an event that stay when it is forgotten, besides its text, which is replaced.
const KEPT_COLUMNS: [EventColumn; 11] = [
    EventColumn::SessionId,
    EventColumn::EventIndex,
    EventColumn::TurnIndex,
    EventColumn::StepIndex,
    EventColumn::EventType,
    EventColumn::Timestamp,
    EventColumn::Provider,
    EventColumn::IsSidechain,
    EventColumn::SourceOffset,
    EventColumn::SourceLength,
    EventColumn::Segment,
];

/// Collects the facts about the records of one session from its events, in order. Events that were
/// forgotten already are left out.
#[derive(Default)]
pub(super) struct RecordFactsReader {
    facts: Vec<RecordFacts>,
    /// The place and the identities of the last record.
    last: Option<(i64, [i64; 2])>,
}

impl RecordFactsReader {
    /// Adds events. `None` if the batch lacks a column other than the text. Without texts, the facts
    /// are only good to rule sessions out.
    pub(super) fn add_events(&mut self, batch: &RecordBatch) -> Option<()> {
        let offsets = number_column::<Int64Type>(batch, EventColumn::SourceOffset)?;
        let lengths = number_column::<Int32Type>(batch, EventColumn::TextBytes)?;
        let record_hashes = number_column::<Int64Type>(batch, EventColumn::RecordHash)?;
        let copy_hashes = number_column::<Int64Type>(batch, EventColumn::CopyHash)?;
        let indexes = number_column::<Int32Type>(batch, EventColumn::EventIndex)?;
        let types = text_column(batch, EventColumn::EventType)?;
        let texts = text_column(batch, EventColumn::Text);
        let replays = flag_column(batch, EventColumn::IsReplay)?;
        let times = number_column::<TimestampMicrosecondType>(batch, EventColumn::Timestamp)?;
        for row in 0..batch.num_rows() {
            let hashes = [record_hashes.value(row), copy_hashes.value(row)];
            let text = texts.map_or("", |texts| texts.value(row));
            if hashes[0] == 0 && replays.value(row) && text == FORGOTTEN_TEXT {
                self.last = None;
                continue;
            }
            let event_type = types.value(row).parse::<EventType>().unwrap_or_default();
            let spoken_events = i32::from(is_spoken(event_type));
            let record = Some((offsets.value(row), hashes));
            let is_same = record == self.last;
            self.last = record;
            if is_same && let Some(facts) = self.facts.last_mut() {
                facts.events += 1;
                facts.spoken_events += spoken_events;
                continue;
            }
            let text_hash = if texts.is_some() { hash_event_text(event_type, text) } else { 0 };
            self.facts.push(RecordFacts {
                number: 0,
                record_hash: hashes[0].cast_unsigned(),
                copy_hash: hashes[1].cast_unsigned(),
                text_hash,
                event_type,
                time: times.is_valid(row).then(|| times.value(row)),
                text_bytes: usize::try_from(lengths.value(row)).unwrap_or(0),
                first_event: indexes.value(row),
                events: 1,
                spoken_events,
                is_replay: replays.value(row),
            });
        }
        Some(())
    }

    /// Returns the facts.
    pub(super) fn into_facts(self) -> Vec<RecordFacts> {
        self.facts
    }
}

/// Returns whether the session at a position has events that were forgotten.
pub(super) fn has_forgotten_events(
    snapshot: &Snapshot,
    session: usize,
) -> Result<bool, StoreError> {
    const COLUMNS: &[EventColumn] =
        &[EventColumn::Text, EventColumn::IsReplay, EventColumn::RecordHash];
    let mut events = snapshot.events_of(session, ALL_EVENTS, COLUMNS);
    while let Some(batch) = events.next_batch()? {
        let rows = serde_arrow::from_record_batch(&batch);
        let rows: Vec<EventRow> = rows.map_err(|error| events.damaged_batch(error))?;
        if rows.iter().any(is_forgotten_event) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns rows of a session of which those in `forgotten`, ascending ranges of `event_index`, keep
/// only their types, times and places.
pub(super) fn blank_events(
    rows: &RecordBatch,
    forgotten: &[Range<i32>],
) -> Result<RecordBatch, StoreError> {
    let Some(indexes) = number_column::<Int32Type>(rows, EventColumn::EventIndex) else {
        return Ok(rows.clone());
    };
    let is_forgotten: BooleanArray = indexes
        .values()
        .iter()
        .map(|index| {
            let after = forgotten.partition_point(|range| range.end <= *index);
            Some(forgotten.get(after).is_some_and(|range| range.contains(index)))
        })
        .collect();
    if is_forgotten.true_count() == 0 {
        return Ok(rows.clone());
    }
    blank_columns(rows, &is_forgotten)
        .map_err(|error| StoreError::damaged(Path::new("events"), error))
}

/// Returns rows of which the forgotten ones have only the columns that stay.
fn blank_columns(
    rows: &RecordBatch,
    is_forgotten: &BooleanArray,
) -> Result<RecordBatch, ArrowError> {
    let schema = rows.schema();
    let mut columns = Vec::with_capacity(rows.num_columns());
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        let described = EVENTS.columns.iter().position(|one| one.name == field.name());
        let known = described.and_then(|at| EventColumn::ALL.get(at).copied());
        let is_kept = known.is_some_and(|known| KEPT_COLUMNS.contains(&known));
        columns.push(if is_kept {
            Arc::clone(column)
        } else if known == Some(EventColumn::Text) {
            replace_texts(column, is_forgotten)
        } else if field.is_nullable() {
            nullif(column, is_forgotten)?
        } else {
            replace_numbers(column, known, is_forgotten)
        });
    }
    RecordBatch::try_new(schema, columns)
}

fn replace_texts(column: &ArrayRef, is_forgotten: &BooleanArray) -> ArrayRef {
    let texts = column.as_string::<i32>().iter().zip(is_forgotten);
    let replaced = texts.map(
        |(text, is_forgotten)| {
            if is_forgotten == Some(true) { Some(FORGOTTEN_TEXT) } else { text }
        },
    );
    Arc::new(replaced.collect::<StringArray>())
}

/// Replaces the values of a required column of numbers or flags in the forgotten rows.
fn replace_numbers(
    column: &ArrayRef,
    known: Option<EventColumn>,
    is_forgotten: &BooleanArray,
) -> ArrayRef {
    let rows = || is_forgotten.values().iter();
    if let Some(flags) = column.as_boolean_opt() {
        let flag = known == Some(EventColumn::IsReplay);
        let values = flags.values().iter().zip(rows());
        let replaced = values.map(|(value, is_forgotten)| if is_forgotten { flag } else { value });
        return Arc::new(replaced.map(Some).collect::<BooleanArray>());
    }
    if let Some(numbers) = column.as_primitive_opt::<Int32Type>() {
        let length = FORGOTTEN_TEXT.len() as i32;
        let number = if known == Some(EventColumn::TextBytes) { length } else { 0 };
        let values = numbers.values().iter().zip(rows());
        let replaced =
            values.map(|(value, is_forgotten)| if is_forgotten { number } else { *value });
        return Arc::new(replaced.map(Some).collect::<Int32Array>());
    }
    if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
        let values = numbers.values().iter().zip(rows());
        let replaced = values.map(|(value, is_forgotten)| if is_forgotten { 0 } else { *value });
        return Arc::new(replaced.map(Some).collect::<Int64Array>());
    }
    Arc::clone(column)
}

#[cfg(test)]
mod tests {
    use ingest::stream::batch::{EventBatch, EventCells, events_schema};

    use super::*;

    #[test]
    fn a_forgotten_event_keeps_its_type_time_and_place_only() {
        let files = ["src/secret.rs".to_owned()];
        let mut batch = EventBatch::default();
        for event_index in 0..3 {
            batch.push(&EventCells {
                session_id: "s",
                event_index,
                turn_index: 4,
                timestamp: Some(9),
                text: "secret",
                command: Some("secret"),
                tool_name: Some("secret"),
                files: &files,
                record_hash: 5,
                copy_hash: 6,
                is_counted_elsewhere: true,
                input_tokens: Some(7),
                ..EventCells::default()
            });
        }
        let rows = batch.finish(&events_schema(), 3);
        let blanked = blank_events(&rows, std::slice::from_ref(&(1..2))).expect("blanks");
        for event_index in 0..3 {
            if event_index == 1 {
                batch.push(&EventCells {
                    session_id: "s",
                    event_index,
                    turn_index: 4,
                    timestamp: Some(9),
                    text: FORGOTTEN_TEXT,
                    is_replay: true,
                    ..EventCells::default()
                });
            } else {
                let row = rows.slice(event_index as usize, 1);
                let row: Vec<schemas::session::EventRow> =
                    serde_arrow::from_record_batch(&row).expect("rows");
                batch.push(&EventCells::of(&row[0]));
            }
        }
        assert_eq!(blanked, batch.finish(&events_schema(), 3));

        let mut reader = RecordFactsReader::default();
        reader.add_events(&blanked).expect("all columns");
        let facts = reader.into_facts();
        let found: Vec<_> =
            facts.iter().map(|record| (record.first_event, record.events)).collect();
        assert_eq!(found, [(0, 1), (2, 1)]);
    }
}
