//! Marks the first events of an imported session as copies, because another session counts them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::Int32Type;
use arrow::error::ArrowError;
use ingest::stream::SessionRecount;
use schemas::session::{EventRow, SourceRow};
use schemas::table::EventColumn;

use crate::error::StoreError;
use crate::segment::event_reader::column_of;
use crate::segment::segment_writer::SegmentWriter;
use crate::session_events::ALL_EVENTS;
use crate::snapshot::Snapshot;
use crate::writer::StoreWriter;

/// An imported session whose first events another session has as well.
pub struct CopiedEvents {
    /// Position of the session in the snapshot.
    pub session: usize,
    /// Number of these events.
    pub count: usize,
    /// The row of its source from now on.
    pub source: SourceRow,
}

impl StoreWriter {
    /// Marks the first events of sessions as copies, and counts the sessions again.
    ///
    /// # Errors
    /// Fails if rows of the snapshot cannot be read, or if the store cannot be written.
    pub fn mark_copied_events(
        &self,
        snapshot: &Snapshot,
        copied: Vec<CopiedEvents>,
    ) -> Result<(), StoreError> {
        let mut finished = Vec::new();
        for copied in copied {
            let mut writer = self.begin_segment();
            write_session(snapshot, copied, &mut writer)?;
            finished.extend(writer.finish()?);
        }
        self.commit(finished, |_| ())?;
        // The events of earlier segments are superseded.
        self.retire_superseded_segments()?;
        self.count_responses_once()?;
        self.merge_small_segments()
    }
}

/// Writes a session again, whose first events are copies.
fn write_session(
    snapshot: &Snapshot,
    copied: CopiedEvents,
    writer: &mut SegmentWriter,
) -> Result<(), StoreError> {
    let CopiedEvents { session, count, source } = copied;
    let known = snapshot.sessions()[session].row()?;
    let mut recount = SessionRecount::new(known);
    let mut events = snapshot.events_of(session, ALL_EVENTS, &[]);
    while let Some(batch) = events.next_batch()? {
        let marked = mark_rows(&batch, count, writer.number());
        let marked = marked.map_err(|error| events.damaged_batch(error))?;
        let rows: Vec<EventRow> =
            serde_arrow::from_record_batch(&marked).map_err(|error| events.damaged_batch(error))?;
        for row in &rows {
            recount.add_event(row);
        }
        writer.push_events(&marked)?;
    }
    let mut row = recount.into_session();
    row.live_from = writer.number();
    writer.record_session(Box::new(row));
    writer.record_source(Box::new(source));
    Ok(())
}

/// Returns a batch with the first `count` events marked, as rows of the segment `number`.
fn mark_rows(batch: &RecordBatch, count: usize, number: i64) -> Result<RecordBatch, ArrowError> {
    let missing = || ArrowError::SchemaError("a column of events is missing".to_owned());
    let indexes = column_of(batch, EventColumn::EventIndex)
        .and_then(|column| column.as_primitive_opt::<Int32Type>())
        .ok_or_else(missing)?;
    let replays = column_of(batch, EventColumn::IsReplay)
        .and_then(|column| column.as_boolean_opt())
        .ok_or_else(missing)?;
    let elsewhere = column_of(batch, EventColumn::IsCountedElsewhere)
        .and_then(|column| column.as_boolean_opt())
        .ok_or_else(missing)?;
    let is_copied = |row| usize::try_from(indexes.value(row)).is_ok_and(|index| index < count);
    let rows = 0..batch.num_rows();
    let replays: BooleanArray =
        rows.clone().map(|row| Some(replays.value(row) || is_copied(row))).collect();
    let elsewhere: BooleanArray =
        rows.map(|row| Some(elsewhere.value(row) && !is_copied(row))).collect();
    let replays: ArrayRef = Arc::new(replays);
    let elsewhere: ArrayRef = Arc::new(elsewhere);
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
