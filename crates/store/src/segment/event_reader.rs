//! Reads events of a segment, by rows and columns.

use std::path::PathBuf;

use arrow::array::{
    Array, ArrayAccessor, ArrayRef, AsArray, BooleanArray, PrimitiveArray, RecordBatch, StringArray,
};
use arrow::datatypes::ArrowPrimitiveType;
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use schemas::session::EventRow;
use schemas::table::EventColumn;

use super::open_segment::Segment;
use crate::disk::checked_file::ParquetInput;
use crate::error::StoreError;

/// Returns a column of a batch; `None` if the column was not requested.
pub fn column_of(batch: &RecordBatch, column: EventColumn) -> Option<&dyn Array> {
    batch.column_by_name(column.name()).map(AsRef::as_ref)
}

/// Returns a column of texts; `None` if the column was not requested.
pub fn text_column(batch: &RecordBatch, column: EventColumn) -> Option<&StringArray> {
    column_of(batch, column)?.as_string_opt::<i32>()
}

/// Returns a column of flags; `None` if the column was not requested.
pub fn flag_column(batch: &RecordBatch, column: EventColumn) -> Option<&BooleanArray> {
    column_of(batch, column)?.as_boolean_opt()
}

/// Returns a column of numbers or times; `None` if the column was not requested.
pub fn number_column<T: ArrowPrimitiveType>(
    batch: &RecordBatch,
    column: EventColumn,
) -> Option<&PrimitiveArray<T>> {
    column_of(batch, column)?.as_primitive_opt::<T>()
}

/// Returns the value of a row; `None` if the column was not requested or the row has no value.
pub fn value_at<A: ArrayAccessor>(column: Option<A>, row: usize) -> Option<A::Item> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

/// Returns a batch with these columns instead of its own.
pub(crate) fn with_columns(
    batch: &RecordBatch,
    changed: impl IntoIterator<Item = (EventColumn, ArrayRef)>,
) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let mut columns = batch.columns().to_vec();
    for (column, values) in changed {
        columns[schema.index_of(column.name())?] = values;
    }
    RecordBatch::try_new(schema, columns)
}

/// A run of rows of a segment's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowSpan {
    pub start: usize,
    pub count: usize,
}

/// Reads chosen columns of chosen rows of a segment, batch by batch.
pub struct EventReader {
    batches: ParquetRecordBatchReader,
    path: PathBuf,
    /// Number of rows that were requested.
    row_count: usize,
}

impl EventReader {
    /// Opens a reader for `rows`, which are ascending and do not overlap. It reads all columns if
    /// `columns` is empty.
    pub fn open(
        segment: &Segment,
        rows: &[RowSpan],
        columns: &[EventColumn],
        batch_rows: usize,
    ) -> Result<Self, StoreError> {
        let path = segment.table_path("events");
        let metadata = segment.events_footer()?;
        let input = ParquetInput(segment.events_file()?);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata);
        let mask = if columns.is_empty() {
            ProjectionMask::all()
        } else {
            ProjectionMask::columns(
                builder.parquet_schema(),
                columns.iter().map(|column| column.name()),
            )
        };
        let batches = builder
            .with_projection(mask)
            .with_batch_size(batch_rows)
            .with_row_selection(row_selection(rows))
            .build()
            .map_err(|error| StoreError::damaged(&path, error))?;
        let most_rows = usize::try_from(segment.entry.events).unwrap_or(usize::MAX);
        let row_count = rows.iter().map(|span| span.count).sum::<usize>().min(most_rows);
        Ok(Self { batches, path, row_count })
    }

    /// Returns the next batch. Its columns are in the order of the table.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        self.batches.next().transpose().map_err(|error| StoreError::damaged(&self.path, error))
    }

    /// Returns all remaining rows as structs.
    pub fn read_rows(mut self) -> Result<Vec<EventRow>, StoreError> {
        let mut rows = Vec::new();
        while let Some(batch) = self.next_batch()? {
            let more = serde_arrow::from_record_batch::<Vec<EventRow>>(&batch);
            let more = more.map_err(|error| StoreError::damaged(&self.path, error))?;
            // Rows are large, so they are not copied more often than needed.
            if rows.is_empty() {
                rows = more;
            } else {
                rows.reserve_exact(self.row_count.saturating_sub(rows.len()).max(more.len()));
                rows.extend(more);
            }
        }
        Ok(rows)
    }
}

/// Converts ascending spans to the form that the Parquet reader takes.
fn row_selection(rows: &[RowSpan]) -> RowSelection {
    let mut selectors = Vec::with_capacity(rows.len() * 2);
    let mut at = 0;
    for span in rows {
        if span.start > at {
            selectors.push(RowSelector::skip(span.start - at));
        }
        selectors.push(RowSelector::select(span.count));
        at = span.start + span.count;
    }
    selectors.into()
}
