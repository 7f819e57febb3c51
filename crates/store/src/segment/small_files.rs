//! Reads the small files of a segment, each as a whole: its small tables, their row files, and its
//! checksums.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use schemas::session::{SessionRow, SourceRow};
use schemas::table::{EVENTS, SESSIONS, SOURCES};
use serde::de::DeserializeOwned;

use super::row_decoder::RowDecoder;
use super::row_file::{decode_rows, layout_of, rows_after_head};
use super::session_brief::{RecentOrigins, SessionBrief};
use crate::disk::checked_file::open_error;
use crate::disk::chunk_checksum::CHUNK_BYTES;
use crate::disk::files;
use crate::error::StoreError;
use crate::manifest::{
    CHECKSUMS, FileEntry, SESSION_BRIEFS, SESSION_ROWS, SKIP_INDEX, SOURCE_ROWS, SegmentEntry,
    file_name,
};

/// Rows that are decoded at once. A store of many small sessions has many rows in a table, and
/// decoded ones take much more memory than their file.
const BATCH_ROWS: usize = 1 << 12;

/// Bytes of a small brief in its file: there is room for at least as many as a file is likely to
/// have.
const SMALL_BRIEF_BYTES: usize = 64;

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

/// The sessions of a segment.
pub(crate) struct ReadSessions {
    pub(crate) rows: Vec<Arc<SessionRow>>,
    /// True if the segment was written by a version that may not have all columns of today.
    pub(crate) may_lack_columns: bool,
}

/// Reads the sessions of a segment. A segment whose row file has other columns, or that has none,
/// may be of an earlier version.
pub(crate) fn read_sessions(
    store: &Path,
    entry: &SegmentEntry,
) -> Result<ReadSessions, StoreError> {
    let mut rows = Vec::new();
    let mut push = |row: SessionRow| rows.push(Arc::new(row));
    if read_row_file(store, entry, SESSION_ROWS, &layout_of(&SESSIONS), &mut push)? {
        return Ok(ReadSessions { rows, may_lack_columns: false });
    }
    read_table_in_batches(store, entry, SESSIONS.name, None, |batch: Vec<SessionRow>| {
        rows.extend(batch.into_iter().map(Arc::new));
    })?;
    let may_lack_columns = !rows.is_empty();
    Ok(ReadSessions { rows, may_lack_columns })
}

/// Reads the briefs of the sessions of a segment. Returns `None` if it has none, or if they have another
/// layout.
pub(crate) fn read_session_briefs(
    store: &Path,
    entry: &SegmentEntry,
) -> Result<Option<Vec<SessionBrief>>, StoreError> {
    let Some((path, bytes)) = read_row_file_bytes(store, entry, SESSION_BRIEFS)? else {
        return Ok(None);
    };
    let Some(mut rows) = rows_after_head(&SessionBrief::layout(), &bytes) else { return Ok(None) };
    let mut briefs = Vec::with_capacity(rows.len() / SMALL_BRIEF_BYTES);
    let mut recent = RecentOrigins::new();
    while !rows.is_empty() {
        let brief = SessionBrief::take(&mut RowDecoder::new(&mut rows), &mut recent);
        briefs.push(brief.map_err(|error| StoreError::damaged(&path, error))?);
    }
    briefs.shrink_to_fit();
    Ok(Some(briefs))
}

/// Reads the sources of a segment without the states of their decoders.
pub(crate) fn read_sources(
    store: &Path,
    entry: &SegmentEntry,
) -> Result<Vec<SourceRow>, StoreError> {
    let mut rows = Vec::new();
    let layout = layout_of(&SOURCES);
    if read_row_file(store, entry, SOURCE_ROWS, &layout, &mut |row| rows.push(row))? {
        return Ok(rows);
    }
    read_table(store, entry, SOURCES.name, Some("state"))
}

/// Calls `take` with each row of the row file `name` of a segment. Returns false if the segment has
/// no such file, or one whose rows have another layout.
fn read_row_file<T: DeserializeOwned>(
    store: &Path,
    entry: &SegmentEntry,
    name: &str,
    layout: &str,
    take: &mut dyn FnMut(T),
) -> Result<bool, StoreError> {
    let Some((path, bytes)) = read_row_file_bytes(store, entry, name)? else { return Ok(false) };
    let decoded = decode_rows(layout, &bytes, take);
    Ok(decoded.map_err(|error| StoreError::damaged(&path, error))?.is_some())
}

/// Reads the row file `name` of a segment. Returns its path and its bytes; `None` if the segment has no
/// such file.
pub(super) fn read_row_file_bytes(
    store: &Path,
    entry: &SegmentEntry,
    name: &str,
) -> Result<Option<(PathBuf, Vec<u8>)>, StoreError> {
    let Some(expected) = entry.file_entry(name) else { return Ok(None) };
    let path = SegmentEntry::folder_path(store, entry.number).join(file_name(name));
    let bytes = read_whole(&path, expected)?;
    Ok(Some((path, bytes)))
}

/// Reads a small table of a segment like `read_table`, and calls `take` with some rows at a time.
fn read_table_in_batches<T: DeserializeOwned>(
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
fn read_whole(path: &Path, expected: &FileEntry) -> Result<Vec<u8>, StoreError> {
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
/// Empty if the segment has none.
pub(crate) fn read_chunk_checksums(
    folder: &Path,
    entry: &SegmentEntry,
    table: &str,
) -> Result<Vec<u32>, StoreError> {
    let Some(expected) = entry.file_entry(CHECKSUMS) else { return Ok(Vec::new()) };
    let bytes = read_whole(&folder.join(file_name(CHECKSUMS)), expected)?;
    let (all, _) = bytes.as_chunks::<4>();
    let events_bytes = entry.file_entry(EVENTS.name).map_or(0, |file| file.bytes);
    let events_chunks =
        usize::try_from(events_bytes.div_ceil(CHUNK_BYTES as u64)).unwrap_or(usize::MAX);
    let (events_sums, index_sums) = all.split_at(events_chunks.min(all.len()));
    let own = if table == SKIP_INDEX { index_sums } else { events_sums };
    Ok(own.iter().map(|sum| u32::from_le_bytes(*sum)).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use schemas::session::SourceStatus;

    use super::super::segment_writer::SegmentWriter;
    use super::*;
    use crate::disk::held_folder::HeldFolder;

    #[test]
    fn row_files_and_tables_hold_the_same_rows() {
        let dir = tempfile::tempdir().expect("tempdir");
        fs::create_dir(dir.path().join("segments")).expect("creates");
        let segments = HeldFolder::open(&dir.path().join("segments")).expect("opens");
        let mut writer = SegmentWriter::new(&Arc::new(segments), 1);
        for number in 0..300 {
            let row = SessionRow {
                session_id: format!("{number:03}"),
                title: (number % 3 > 0).then(|| format!("title {number}")),
                input_tokens: (number % 2 > 0).then_some(number),
                ..SessionRow::default()
            };
            writer.record_session(Box::new(row)).expect("records");
            let path = format!("/logs/{number:03}");
            let state = Some("the state of a decoder".to_owned());
            let row = SourceRow::unread(path, SourceStatus::Empty, number, -number);
            writer.record_source(Box::new(SourceRow { state, ..row })).expect("records");
        }
        let finished = writer.finish().expect("writes").expect("has rows");
        let entry = finished.entry.clone();
        finished.folder.keep();

        let mut without_row_files = entry.clone();
        without_row_files.files.retain(|file| ![SESSION_ROWS, SOURCE_ROWS].contains(&&*file.table));
        assert_eq!(without_row_files.files.len() + 2, entry.files.len());
        let sessions = read_sessions(dir.path(), &entry).expect("reads");
        assert!(sessions.rows.len() == 300 && !sessions.may_lack_columns);
        let from_table = read_sessions(dir.path(), &without_row_files).expect("reads");
        assert!(from_table.rows == sessions.rows && from_table.may_lack_columns);
        let sources = read_sources(dir.path(), &entry).expect("reads");
        assert!(sources.len() == 300 && sources.iter().all(|row| row.state.is_none()));
        assert_eq!(sources, read_sources(dir.path(), &without_row_files).expect("reads"));
        let whole = read_table::<SourceRow>(dir.path(), &entry, "sources", None).expect("reads");
        assert!(whole.iter().all(|row| row.state.is_some()));

        let path = SegmentEntry::folder_path(dir.path(), 1).join(file_name(SESSION_ROWS));
        let mut bytes = fs::read(&path).expect("reads");
        bytes[100] ^= 1;
        fs::write(&path, bytes).expect("writes");
        assert!(matches!(read_sessions(dir.path(), &entry), Err(StoreError::Damaged { .. })));
    }
}
