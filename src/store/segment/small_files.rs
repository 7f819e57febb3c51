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

/// Reads a small table of a segment. Returns no rows if the segment has no such table. `skip` names
/// a column to leave out, which the row type must allow to be absent.
pub(crate) fn read_table<T: DeserializeOwned>(
    store: &Path,
    entry: &SegmentEntry,
    table: &str,
    skip: Option<&str>,
) -> Result<Vec<T>, StoreError> {
    let Some(expected) = entry.file_entry(table) else { return Ok(Vec::new()) };
    let path = SegmentEntry::folder_path(store, entry.number).join(file_name(table));
    // Reads the file in one call, because its parts are too small to be worth a call each.
    let bytes = read_whole(&path, expected)?;
    let mut builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))
        .map_err(|error| StoreError::damaged(&path, error))?
        .with_batch_size(1 << 16);
    if let Some(skip) = skip {
        let schema = builder.parquet_schema();
        let keep = (0..schema.num_columns()).filter(|at| schema.column(*at).name() != skip);
        let mask = ProjectionMask::leaves(schema, keep.collect::<Vec<_>>());
        builder = builder.with_projection(mask);
    }

    let batches = builder.build().map_err(|error| StoreError::damaged(&path, error))?;
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch.map_err(|error| StoreError::damaged(&path, error))?;
        let more = serde_arrow::from_record_batch::<Vec<T>>(&batch);
        rows.extend(more.map_err(|error| StoreError::damaged(&path, error))?);
    }
    Ok(rows)
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
