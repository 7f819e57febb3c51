//! Reads the small files of a segment, each as a whole: its problems and its checksums.

use std::path::Path;

use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use schemas::table::EVENTS;
use serde::de::DeserializeOwned;

use crate::disk::checked_file::open_error;
use crate::disk::chunk_checksum::CHUNK_BYTES;
use crate::disk::files;
use crate::error::StoreError;
use crate::manifest::{CHECKSUMS, FileEntry, SKIP_INDEX, SegmentEntry, file_name};

/// Reads a small table of a segment, whose folder is `folder`. Empty if the segment has no rows of it.
pub(crate) fn read_table<T: DeserializeOwned>(
    folder: &Path,
    entry: &SegmentEntry,
    table: &str,
) -> Result<Vec<T>, StoreError> {
    let mut rows = Vec::new();
    let Some(expected) = entry.file_entry(table) else { return Ok(rows) };
    let path = folder.join(file_name(table));
    let bytes = Bytes::from(read_whole(&path, expected)?);
    let batches = ParquetRecordBatchReaderBuilder::try_new(bytes)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(|error| StoreError::damaged(&path, error))?;
    for batch in batches {
        let batch = batch.map_err(|error| StoreError::damaged(&path, error))?;
        let more: Vec<T> = serde_arrow::from_record_batch(&batch)
            .map_err(|error| StoreError::damaged(&path, error))?;
        rows.extend(more);
    }
    Ok(rows)
}

/// Reads a file of a segment and compares it with its length and checksum.
pub(crate) fn read_whole(path: &Path, expected: &FileEntry) -> Result<Vec<u8>, StoreError> {
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

/// Reads the checksums of the chunks of `events` or `skip` in a segment, whose folder is `folder`.
pub(crate) fn read_chunk_checksums(
    folder: &Path,
    entry: &SegmentEntry,
    table: &str,
) -> Result<Vec<u32>, StoreError> {
    let path = folder.join(file_name(CHECKSUMS));
    let Some(expected) = entry.file_entry(CHECKSUMS) else {
        return Err(StoreError::damaged(&path, "the manifest does not list it"));
    };
    let bytes = read_whole(&path, expected)?;
    let (all, _) = bytes.as_chunks::<4>();
    let events_bytes = entry.file_entry(EVENTS.name).map_or(0, |file| file.bytes);
    let events_chunks =
        usize::try_from(events_bytes.div_ceil(CHUNK_BYTES as u64)).unwrap_or(usize::MAX);
    let (events_sums, index_sums) = all.split_at(events_chunks.min(all.len()));
    let own = if table == SKIP_INDEX { index_sums } else { events_sums };
    Ok(own.iter().map(|sum| u32::from_le_bytes(*sum)).collect())
}
