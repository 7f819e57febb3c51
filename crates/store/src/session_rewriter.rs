//! Writes whole sessions again with other flags of their events. The new rows supersede the former ones.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::Int32Type;
use arrow::error::ArrowError;
use schemas::session::{ProblemRow, SessionRow, SourceRow};
use schemas::table::EventColumn;

use super::compact::parse_problem_row;
use super::error::StoreError;
use super::ingest_target::FULL_SEGMENT_BYTES;
use super::segment::event_reader::{flag_column, number_column, with_columns};
use super::segment::segment_writer::{FinishedSegment, SegmentWriter};
use super::session_events::ALL_EVENTS;
use super::snapshot::Snapshot;

/// What an event says about other sessions that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayFlags {
    pub(super) is_replay: bool,
    pub(super) is_counted_elsewhere: bool,
}

/// Writes sessions of a snapshot into new segments, one session after the other.
pub(super) struct SessionRewriter<'s> {
    snapshot: &'s Snapshot,
    begin_segment: &'s dyn Fn() -> SegmentWriter,
    /// `None` before the first session.
    writer: Option<SegmentWriter>,
    finished: Vec<FinishedSegment>,
    /// The problems of the snapshot, which are read before the first session is written.
    problems: Option<Vec<ProblemRow>>,
}

impl<'s> SessionRewriter<'s> {
    pub(super) fn new(
        snapshot: &'s Snapshot,
        begin_segment: &'s dyn Fn() -> SegmentWriter,
    ) -> Self {
        Self { snapshot, begin_segment, writer: None, finished: Vec::new(), problems: None }
    }

    /// Writes the events of the session at a position. `change` gives the new flags of an event by its
    /// index and its flags, and `take` gets each batch as it is written. [`Self::write_row`] must follow.
    pub(super) fn write_events(
        &mut self,
        session: usize,
        change: &dyn Fn(i32, ReplayFlags) -> ReplayFlags,
        take: &mut dyn FnMut(&RecordBatch) -> Result<(), String>,
    ) -> Result<(), StoreError> {
        let writer = self.writer.get_or_insert_with(self.begin_segment);
        let mut events = self.snapshot.events_of(session, ALL_EVENTS, &[]);
        while let Some(batch) = events.next_batch()? {
            let changed = change_rows(&batch, change, writer.number());
            let changed = changed.map_err(|error| events.damaged_batch(error))?;
            take(&changed).map_err(|error| events.damaged_batch(error))?;
            writer.push_events(&changed)?;
        }
        Ok(())
    }

    /// Writes the row of a session whose events were written last, with its problems, because those of
    /// earlier segments are superseded.
    pub(super) fn write_row(&mut self, row: SessionRow) -> Result<(), StoreError> {
        let problems = match &mut self.problems {
            Some(problems) => problems,
            none => none.insert(self.snapshot.read_problems()?),
        };
        let own = problems.iter().filter(|problem| problem.path == row.source_path);
        let own = own.cloned().filter_map(parse_problem_row).collect();
        let writer = self.writer.get_or_insert_with(self.begin_segment);
        writer.push_problems(own);
        let row = SessionRow { live_from: writer.number(), ..row };
        writer.record_session(Box::new(row));
        if writer.bytes() >= FULL_SEGMENT_BYTES {
            self.end_segment()?;
        }
        Ok(())
    }

    /// Writes the row of the log of a session whose events were written last.
    pub(super) fn write_source(&mut self, source: SourceRow) {
        let writer = self.writer.get_or_insert_with(self.begin_segment);
        writer.record_source(Box::new(source));
    }

    /// Writes the row of a session whose events stay where they are.
    pub(super) fn write_row_alone(&mut self, row: SessionRow) {
        let writer = self.writer.get_or_insert_with(self.begin_segment);
        writer.record_session(Box::new(row));
    }

    /// Ends the last segment, and returns all of them.
    pub(super) fn finish(mut self) -> Result<Vec<FinishedSegment>, StoreError> {
        self.end_segment()?;
        Ok(self.finished)
    }

    fn end_segment(&mut self) -> Result<(), StoreError> {
        if let Some(writer) = self.writer.take() {
            self.finished.extend(writer.finish()?);
        }
        Ok(())
    }
}

/// Returns a batch with the flags that `change` gives, as rows of the segment `number`.
fn change_rows(
    batch: &RecordBatch,
    change: &dyn Fn(i32, ReplayFlags) -> ReplayFlags,
    number: i64,
) -> Result<RecordBatch, ArrowError> {
    let flags = |column| flag_column(batch, column).ok_or_else(|| missing_column(column));
    let replays = flags(EventColumn::IsReplay)?;
    let elsewhere = flags(EventColumn::IsCountedElsewhere)?;
    let indexes = number_column::<Int32Type>(batch, EventColumn::EventIndex)
        .ok_or_else(|| missing_column(EventColumn::EventIndex))?;
    let mut new_replays = Vec::with_capacity(batch.num_rows());
    let mut new_elsewhere = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let flags = ReplayFlags {
            is_replay: replays.value(row),
            is_counted_elsewhere: elsewhere.value(row),
        };
        let changed = change(indexes.value(row), flags);
        new_replays.push(changed.is_replay);
        new_elsewhere.push(changed.is_counted_elsewhere);
    }
    let replays: ArrayRef = Arc::new(BooleanArray::from(new_replays));
    let elsewhere: ArrayRef = Arc::new(BooleanArray::from(new_elsewhere));
    let segments: ArrayRef = Arc::new(Int64Array::from_value(number, batch.num_rows()));

    let changed = [
        (EventColumn::IsReplay, replays),
        (EventColumn::IsCountedElsewhere, elsewhere),
        (EventColumn::Segment, segments),
    ];
    with_columns(batch, changed)
}

fn missing_column(column: EventColumn) -> ArrowError {
    ArrowError::SchemaError(format!("the column {} is missing", column.name()))
}
