//! Reads the small files of a segment, each as a whole: its small tables and its checksums.

use std::path::Path;

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::de::DeserializeOwned;

use crate::store::disk::checked_file::open_error;
use crate::store::disk::files;
use crate::store::error::StoreError;
use crate::store::manifest::{FileEntry, SegmentEntry, file_name};

/// Rows that are decoded at once. A store of many small sessions has many rows in a table, and
/// decoded ones take much more memory than their file.
const BATCH_ROWS: usize = 1 << 12;

/// Reads a small table of a segment. Returns no rows if the segment has no such table. `skip` names
/// a column to leave out, which the row type must allow to be absent.
pub(crate) fn read_table<T: DeserializeOwned>(
    store: &Path,
    entry: &SegmentEntry,
    table: &str,
    skip: Option<&str>,
) -> Result<Vec<T>, StoreError> {
    let mut rows = Vec::new();
    read_table_in_batches(store, entry, table, skip, |more| rows.extend::<Vec<T>>(more))?;
    Ok(rows)
}

/// Reads a small table of a segment like `read_table`, and calls `take` with some rows at a time.
pub(crate) fn read_table_in_batches<T: DeserializeOwned>(
    store: &Path,
    entry: &SegmentEntry,
    table: &str,
    skip: Option<&str>,
    mut take: impl FnMut(Vec<T>),
) -> Result<(), StoreError> {
    let Some(expected) = entry.file_entry(table) else { return Ok(()) };
    let path = SegmentEntry::folder_path(store, entry.number).join(file_name(table));
    // Reads the file in one call, because its parts are too small to be worth a call each.
    let bytes = read_whole(&path, expected)?;
    let mut builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))
        .map_err(|error| StoreError::damaged(&path, error))?
        .with_batch_size(BATCH_ROWS);
    if let Some(skip) = skip {
        let schema = builder.parquet_schema();
        let keep = (0..schema.num_columns()).filter(|at| schema.column(*at).name() != skip);
        let mask = ProjectionMask::leaves(schema, keep.collect::<Vec<_>>());
        builder = builder.with_projection(mask);
    }

    let batches = builder.build().map_err(|error| StoreError::damaged(&path, error))?;
    for batch in batches {
        let batch = batch.map_err(|error| StoreError::damaged(&path, error))?;
        let rows = serde_arrow::from_record_batch(&batch);
        take(rows.map_err(|error| StoreError::damaged(&path, error))?);
    }
    Ok(())
}

/// Reads a file of a segment and compares it with its length and checksum.
pub(super) fn read_whole(path: &Path, expected: &FileEntry) -> Result<Vec<u8>, StoreError> {
    let bytes = files::read_file(path).map_err(|error| open_error(path, error))?;
    if bytes.len() as u64 != expected.bytes {
        let reason = format!("{} bytes instead of {}", bytes.len(), expected.bytes);
        return Err(StoreError::damaged(path, reason));
    }
    if files::checksum_bytes(&bytes) != expected.xxh3 {
        return Err(StoreError::damaged(path, "its checksum differs"));
    }
    Ok(bytes)
}
