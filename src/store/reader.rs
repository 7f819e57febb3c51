//! Reads rows back: small tables as a whole, events by rows and columns.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;
use schemas::session::EventRow;
use schemas::table::EventColumn;
use serde::de::DeserializeOwned;

use super::checked_file::{CheckedFile, ParquetInput, open_error};
use super::manifest::{FileEntry, SegmentEntry, file_name};
use super::{Segment, StoreError, files};

/// Reads a small table of a segment. Returns no rows if the segment has none. `skip` names a column
/// to leave out, which the row type must allow to be absent.
pub(super) fn table<T: DeserializeOwned>(
    store: &Path,
    entry: &SegmentEntry,
    table: &str,
    skip: Option<&str>,
) -> Result<Vec<T>, StoreError> {
    let Some(expected) = entry.file(table) else { return Ok(Vec::new()) };
    let path = SegmentEntry::dir(store, entry.number).join(file_name(table));
    // In one call: the parts of a small file are not worth a call each.
    let bytes = read_whole(&path, expected)?;
    let damaged = |error: ParquetError| StoreError::damaged(&path, error);
    let mut builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))
        .map_err(damaged)?
        .with_batch_size(1 << 16);
    if let Some(skip) = skip {
        let schema = builder.parquet_schema();
        let keep = (0..schema.num_columns()).filter(|at| schema.column(*at).name() != skip);
        let mask = ProjectionMask::leaves(schema, keep.collect::<Vec<_>>());
        builder = builder.with_projection(mask);
    }
    let mut rows = Vec::new();
    for batch in builder.build().map_err(damaged)? {
        let batch = batch.map_err(|error| StoreError::damaged(&path, error))?;
        rows.extend(
            serde_arrow::from_record_batch::<Vec<T>>(&batch)
                .map_err(|error| StoreError::damaged(&path, error))?,
        );
    }
    Ok(rows)
}

/// Reads a file of a segment and compares it with its length and checksum.
pub(super) fn read_whole(path: &Path, expected: &FileEntry) -> Result<Vec<u8>, StoreError> {
    let bytes = files::read(path).map_err(|error| open_error(path, error))?;
    if bytes.len() as u64 != expected.bytes {
        let (length, expected) = (bytes.len(), expected.bytes);
        return Err(StoreError::damaged(path, format!("{length} bytes instead of {expected}")));
    }
    if files::checksum_of(&bytes) != expected.xxh3 {
        return Err(StoreError::damaged(path, "its checksum differs"));
    }
    Ok(bytes)
}

/// Reads the footer and the page positions of an events file.
pub(super) fn footer(file: &Arc<CheckedFile>) -> Result<ArrowReaderMetadata, StoreError> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
    ArrowReaderMetadata::load(&ParquetInput(Arc::clone(file)), options)
        .map_err(|error| StoreError::damaged(file.path(), error))
}

/// Returns a column of rows that were read; `None` if the column was not requested.
pub fn column_of(batch: &RecordBatch, column: EventColumn) -> Option<&dyn Array> {
    batch.column_by_name(column.name()).map(AsRef::as_ref)
}

/// A run of rows of a segment's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowSpan {
    pub start: usize,
    pub count: usize,
}

/// Reads chosen columns of chosen rows of a segment, batch by batch.
pub struct EventReader {
    batches: parquet::arrow::arrow_reader::ParquetRecordBatchReader,
    path: std::path::PathBuf,
}

impl EventReader {
    /// Opens a reader for `rows`, which are ascending and do not overlap. No columns means all.
    pub fn open(
        segment: &Segment,
        rows: &[RowSpan],
        columns: &[EventColumn],
        batch_rows: usize,
    ) -> Result<Self, StoreError> {
        let path = segment.path("events");
        let metadata = segment.footer()?;
        let input = ParquetInput(segment.events()?);
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
            .with_row_selection(selection(rows))
            .build()
            .map_err(|error| StoreError::damaged(&path, error))?;
        Ok(Self { batches, path })
    }

    /// Returns the next batch. Its columns are in the order of the table.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        self.batches.next().transpose().map_err(|error| StoreError::damaged(&self.path, error))
    }

    /// Returns all rows as structs.
    pub fn rows(mut self) -> Result<Vec<EventRow>, StoreError> {
        let mut rows = Vec::new();
        while let Some(batch) = self.next_batch()? {
            let more = serde_arrow::from_record_batch::<Vec<EventRow>>(&batch);
            rows.extend(more.map_err(|error| StoreError::damaged(&self.path, error))?);
        }
        Ok(rows)
    }
}

fn selection(rows: &[RowSpan]) -> RowSelection {
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

#[cfg(test)]
mod tests {
    use super::super::checked_file::{CHUNK_BYTES, chunk_checksum};
    use super::super::parquet_file::ParquetFile;
    use super::*;

    #[test]
    fn threads_read_the_footer_of_one_handle() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let schema = ingest::batch::events_schema();
        let empty = ParquetFile::new(Vec::new(), schema).and_then(ParquetFile::finish);
        let empty = empty.expect("a Parquet file");
        std::fs::write(file.path(), &empty).expect("written");
        let checksums = empty.chunks(CHUNK_BYTES).map(chunk_checksum).collect();
        let shared = CheckedFile::open(file.path(), empty.len() as u64, checksums);
        let shared = Arc::new(shared.expect("opens"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        footer(&shared).expect("is whole");
                    }
                });
            }
        });
    }
}
