//! Writes sessions again in which other rows count than before.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::Int32Type;
use arrow::error::ArrowError;
use ingest::stream::TokenRecount;
use schemas::session::{EventRow, ProblemRow};
use schemas::table::EventColumn;

use super::choice::RowChanges;
use crate::store::compact::parse_problem_row;
use crate::store::error::StoreError;
use crate::store::ingest_target::FULL_SEGMENT_BYTES;
use crate::store::segment::event_reader::column_of;
use crate::store::segment::segment_writer::{FinishedSegment, SegmentWriter};
use crate::store::session_events::ALL_EVENTS;
use crate::store::snapshot::Snapshot;
use crate::store::writer::StoreWriter;

/// The columns from which the tokens of a session are counted.
const COUNTED_COLUMNS: [EventColumn; 15] = [
    EventColumn::EventType,
    EventColumn::Subtype,
    EventColumn::Model,
    EventColumn::InputTokens,
    EventColumn::OutputTokens,
    EventColumn::CacheReadTokens,
    EventColumn::CacheWriteTokens,
    EventColumn::CacheWrite1hTokens,
    EventColumn::ReasoningTokens,
    EventColumn::WebSearchRequests,
    EventColumn::RequestId,
    EventColumn::ServiceTier,
    EventColumn::Speed,
    EventColumn::InferenceGeo,
    EventColumn::IsReplay,
];

impl StoreWriter {
    /// Writes the sessions of `changes` into new segments, which supersede their former rows.
    pub(super) fn recount_sessions(
        &self,
        snapshot: &Snapshot,
        changes: &RowChanges,
    ) -> Result<Vec<FinishedSegment>, StoreError> {
        let mut finished = Vec::new();
        if changes.is_empty() {
            return Ok(finished);
        }

        let problems = snapshot.read_problems()?;
        let mut writer = self.begin_segment();
        for (session, rows) in changes {
            write_session(snapshot, *session, rows, &problems, &mut writer)?;
            if writer.bytes() >= FULL_SEGMENT_BYTES {
                finished.extend(writer.finish()?);
                writer = self.begin_segment();
            }
        }
        finished.extend(writer.finish()?);
        Ok(finished)
    }
}

/// Writes the session at a position with changed `rows`. Its row and its problems are written as
/// well, because those of earlier segments are superseded.
fn write_session(
    snapshot: &Snapshot,
    session: usize,
    rows: &BTreeMap<i32, bool>,
    problems: &[ProblemRow],
    writer: &mut SegmentWriter,
) -> Result<(), StoreError> {
    let known = &snapshot.sessions()[session];
    let mut recount = TokenRecount::new(known);
    let mut events = snapshot.events_of(session, ALL_EVENTS, &[]);
    while let Some(batch) = events.next_batch()? {
        let changed = change_rows(&batch, rows, writer.number());
        let changed = changed.map_err(|error| events.damaged_batch(error))?;
        let counted = counted_rows(&changed).map_err(|error| events.damaged_batch(error))?;
        for row in &counted {
            recount.add_event(row);
        }
        writer.push_events(&changed)?;
    }

    let mut row = recount.into_session();
    row.live_from = writer.number();
    writer.record_session(Box::new(row))?;
    let own = problems.iter().filter(|problem| problem.path == known.source_path);
    writer.push_problems(own.cloned().filter_map(parse_problem_row).collect());
    Ok(())
}

/// Returns a batch with other values in the rows of `changes`, as rows of the segment `number`.
fn change_rows(
    batch: &RecordBatch,
    changes: &BTreeMap<i32, bool>,
    number: i64,
) -> Result<RecordBatch, ArrowError> {
    let missing = |column: EventColumn| {
        ArrowError::SchemaError(format!("the column {} is missing", column.name()))
    };
    let flags = |column| {
        let values = column_of(batch, column).and_then(|values| values.as_boolean_opt());
        values.ok_or_else(|| missing(column))
    };
    let indexes = column_of(batch, EventColumn::EventIndex)
        .and_then(|values| values.as_primitive_opt::<Int32Type>())
        .ok_or_else(|| missing(EventColumn::EventIndex))?;
    let changed = |values: &BooleanArray| -> ArrayRef {
        let value = |row| changes.get(&indexes.value(row)).copied().unwrap_or(values.value(row));
        Arc::new((0..values.len()).map(|row| Some(value(row))).collect::<BooleanArray>())
    };
    let replays = changed(flags(EventColumn::IsReplay)?);
    let elsewhere = changed(flags(EventColumn::IsCountedElsewhere)?);
    let segments: ArrayRef = Arc::new(Int64Array::from_value(number, batch.num_rows()));

    let schema = batch.schema();
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let name = field.name().as_str();
        columns.push(Arc::clone(if name == EventColumn::IsReplay.name() {
            &replays
        } else if name == EventColumn::IsCountedElsewhere.name() {
            &elsewhere
        } else if name == EventColumn::Segment.name() {
            &segments
        } else {
            column
        }));
    }
    RecordBatch::try_new(schema, columns)
}

/// Returns the rows of a batch with the columns that are counted.
fn counted_rows(batch: &RecordBatch) -> Result<Vec<EventRow>, String> {
    let columns = COUNTED_COLUMNS.map(|column| column as usize);
    let counted = batch.project(&columns).map_err(|error| error.to_string())?;
    serde_arrow::from_record_batch(&counted).map_err(|error| error.to_string())
}
