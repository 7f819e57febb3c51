//! Writes one segment: its tables as Parquet files, durable before any manifest names them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StructArray};
use arrow::datatypes::SchemaRef;
use ingest::stream::batch::{SessionRows, arrow_schema, events_schema, rows_by_session};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use schemas::problem::Problem;
use schemas::session::{ProblemRow, SessionRow, SourceRow};
use schemas::table::{EVENTS, PROBLEMS, SESSIONS, SOURCES, Table};
use serde::Serialize;

use super::events_file::EventsFile;
use super::indexed_columns::index_rows;
use super::row_file::{encode_rows, layout_of};
use super::segment_folder::SegmentFolder;
use super::session_brief::SessionBrief;
use crate::store::disk::files::{FileSums, NewFile};
use crate::store::disk::held_folder::HeldFolder;
use crate::store::disk::pending_syncs::PendingSyncs;
use crate::store::error::{StoreError, write_error};
use crate::store::index::IndexWriter;
use crate::store::manifest::{
    CHECKSUMS, FileEntry, SESSION_BRIEFS, SESSION_ROWS, SKIP_INDEX, SOURCE_ROWS, SegmentEntry,
};
use crate::store::parquet_file::shared_properties;

/// A segment that is on disk and that no manifest names yet. Its folder is removed if this is
/// dropped before [`SegmentFolder::keep`].
pub(crate) struct FinishedSegment {
    pub(crate) entry: SegmentEntry,
    pub(crate) folder: SegmentFolder,
}

/// A segment under construction.
pub(crate) struct SegmentWriter {
    number: i64,
    folder: SegmentFolder,
    events: Option<EventsFile>,
    index: IndexWriter,
    rows: u64,
    /// Oldest and newest time of a row; `None` if no row has one.
    times: Option<(i64, i64)>,
    has_untimed_rows: bool,
    spans: BTreeMap<String, WrittenSpan>,
    sessions: BTreeMap<String, Box<SessionRow>>,
    sources: BTreeMap<String, Box<SourceRow>>,
    problems: Vec<ProblemRow>,
    /// The finished files, until they are on disk.
    syncs: PendingSyncs,
}

/// The rows of one session in the segment, which are contiguous.
#[derive(Clone, Copy, Default)]
struct WrittenSpan {
    start: i64,
    count: i64,
}

impl SegmentWriter {
    /// Begins segment `number` in the folder `segments`; nothing is written yet.
    pub(crate) fn new(segments: &Arc<HeldFolder>, number: i64) -> Self {
        Self {
            number,
            folder: SegmentFolder::new(segments, number),
            events: None,
            index: IndexWriter::new(),
            rows: 0,
            times: None,
            has_untimed_rows: false,
            spans: BTreeMap::new(),
            sessions: BTreeMap::new(),
            sources: BTreeMap::new(),
            problems: Vec::new(),
            syncs: PendingSyncs::default(),
        }
    }

    /// Returns the number of the segment.
    pub(crate) fn number(&self) -> i64 {
        self.number
    }

    /// Returns the approximate size of the events so far, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.events.as_ref().map_or(0, EventsFile::bytes)
    }

    /// Returns the number of sources that it has a row for.
    pub(crate) fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Returns the number of names in its index.
    pub(crate) fn name_count(&self) -> usize {
        self.index.name_count()
    }

    /// Adds rows of one or several sessions. The rows of a session must be added without those of
    /// others between them.
    pub(crate) fn push_events(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        let sessions = rows_by_session(batch);
        if sessions.is_empty() {
            return Ok(());
        }
        self.index_rows(batch);
        let writer = match &mut self.events {
            Some(writer) => writer,
            none => {
                let file = self.folder.create_file(EVENTS.name)?;
                let path = self.folder.file_path(EVENTS.name);
                none.insert(EventsFile::begin(file, &path, events_schema())?)
            }
        };
        writer.write(batch)?;

        for SessionRows { session_id, rows } in sessions {
            let empty = WrittenSpan { start: self.rows.cast_signed(), count: 0 };
            let span = self.spans.entry(session_id.to_owned()).or_insert(empty);
            span.count += rows.len() as i64;
            self.rows += rows.len() as u64;
        }
        Ok(())
    }

    /// Adds the rows to the skip index, and their times to the time range of the segment.
    fn index_rows(&mut self, batch: &RecordBatch) {
        for time in index_rows(&mut self.index, batch) {
            match time {
                Some(time) => {
                    let (oldest, newest) = self.times.unwrap_or((time, time));
                    self.times = Some((oldest.min(time), newest.max(time)));
                }
                None => self.has_untimed_rows = true,
            }
        }
    }

    /// Records the state of a session, whose rows of this segment must have been added. An empty id
    /// represents a file that is not a session, and is ignored.
    pub(crate) fn record_session(&mut self, session: SessionRow) {
        if session.session_id.is_empty() {
            return;
        }
        let span = self.spans.get(&session.session_id).copied().unwrap_or_default();
        let row = SessionRow {
            row_start: span.start,
            row_count: span.count,
            segment: self.number,
            ..session
        };
        self.sessions.insert(row.session_id.clone(), Box::new(row));
    }

    /// Records the state of a file.
    pub(crate) fn record_source(&mut self, source: SourceRow) {
        let row = SourceRow { segment: self.number, ..source };
        self.sources.insert(row.path.clone(), Box::new(row));
    }

    /// Adds problems.
    pub(crate) fn push_problems(&mut self, problems: Vec<Problem>) {
        let segment = self.number;
        self.problems.extend(problems.into_iter().map(|problem| ProblemRow {
            path: problem.path,
            line: problem.line.cast_signed(),
            byte: problem.byte.cast_signed(),
            kind: problem.kind.as_str().to_owned(),
            message: problem.message,
            segment,
        }));
    }

    /// Closes and syncs all files. Returns `None` if there was nothing to write.
    pub(crate) fn finish(mut self) -> Result<Option<FinishedSegment>, StoreError> {
        if self.sources.is_empty() && self.sessions.is_empty() {
            return Ok(None);
        }

        let mut entries = Vec::new();
        if let Some(writer) = self.events.take() {
            let events = self.finish_file(EVENTS.name, writer.finish()?);
            let index_bytes = std::mem::replace(&mut self.index, IndexWriter::new()).finish();
            let index = self.write_file(SKIP_INDEX, &index_bytes)?;
            let chunk_sums = events.chunks.iter().chain(&index.chunks);
            let checksum_bytes: Vec<u8> = chunk_sums.flat_map(|sum| sum.to_le_bytes()).collect();
            let checksums = self.write_file(CHECKSUMS, &checksum_bytes)?;
            entries.push(file_entry(EVENTS.name, events));
            entries.push(file_entry(SKIP_INDEX, index));
            entries.push(file_entry(CHECKSUMS, checksums));
        }

        let sessions: Vec<_> = std::mem::take(&mut self.sessions).into_values().collect();
        let mut sources: Vec<_> = std::mem::take(&mut self.sources).into_values().collect();
        self.write_table(&SESSIONS, &sessions, &mut entries)?;
        self.write_table(&SOURCES, &sources, &mut entries)?;
        for source in &mut sources {
            source.state = None;
        }
        let briefs: Vec<_> = sessions.iter().map(|row| SessionBrief::from_row(row)).collect();
        self.write_row_file(SESSION_BRIEFS, &SessionBrief::layout(), &briefs, &mut entries)?;
        self.write_row_file(SESSION_ROWS, &layout_of(&SESSIONS), &sessions, &mut entries)?;
        self.write_row_file(SOURCE_ROWS, &layout_of(&SOURCES), &sources, &mut entries)?;
        let problems = std::mem::take(&mut self.problems);
        self.write_table(&PROBLEMS, &problems, &mut entries)?;
        self.folder.sync()?;
        self.syncs.wait()?;

        let entry = SegmentEntry {
            number: self.number,
            events: self.rows,
            times: self.times,
            untimed: self.has_untimed_rows,
            files: entries,
        };
        Ok(Some(FinishedSegment { entry, folder: self.folder }))
    }

    /// Ends a file of the segment and begins to sync it.
    fn finish_file(&mut self, table: &str, file: NewFile) -> FileSums {
        let (file, sums) = file.finish();
        self.syncs.begin(self.folder.file_path(table), file);
        sums
    }

    /// Writes a whole file of the segment.
    fn write_file(&mut self, table: &str, content: &[u8]) -> Result<FileSums, StoreError> {
        let path = self.folder.file_path(table);
        let mut file = self.folder.create_file(table)?;
        file.write_all(content).map_err(StoreError::io(&path))?;
        Ok(self.finish_file(table, file))
    }

    /// Writes one of the small tables and appends its entry. Writes no file if it has no rows.
    fn write_table<T: Serialize>(
        &mut self,
        table: &Table,
        rows: &[T],
        entries: &mut Vec<FileEntry>,
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let path = self.folder.file_path(table.name);
        let batch =
            to_batch(&arrow_schema(table), rows).map_err(|error| write_error(&path, error))?;
        let file = self.folder.create_file(table.name)?;
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(table_properties()))
            .map_err(|error| write_error(&path, error))?;
        writer.write(&batch).map_err(|error| write_error(&path, error))?;
        let file = writer.into_inner().map_err(|error| write_error(&path, error))?;
        let sums = self.finish_file(table.name, file);
        entries.push(file_entry(table.name, sums));
        Ok(())
    }

    /// Writes rows of this layout as the row file `name`. Writes no file if there are no rows.
    fn write_row_file<T: Serialize>(
        &mut self,
        name: &str,
        layout: &str,
        rows: &[T],
        entries: &mut Vec<FileEntry>,
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let path = self.folder.file_path(name);
        let bytes = encode_rows(layout, rows).map_err(|error| write_error(&path, error))?;
        let sums = self.write_file(name, &bytes)?;
        entries.push(file_entry(name, sums));
        Ok(())
    }
}

/// Converts rows to a batch of `schema`, which has a field for each field of the structs.
pub(in crate::store) fn to_batch<T: Serialize>(
    schema: &SchemaRef,
    rows: &[T],
) -> Result<RecordBatch, serde_arrow::Error> {
    let arrays = serde_arrow::to_arrow(schema.fields(), rows)?;
    Ok(RecordBatch::from(StructArray::new(schema.fields().clone(), arrays as Vec<ArrayRef>, None)))
}

/// Returns the manifest entry of a file that is on disk.
fn file_entry(table: &str, sums: FileSums) -> FileEntry {
    FileEntry { table: table.to_owned(), bytes: sums.length, xxh3: sums.xxh3 }
}

/// Returns the properties of small tables. They are read at every start, so reading them quickly
/// matters more than the smallest file.
fn table_properties() -> WriterProperties {
    shared_properties().set_compression(Compression::LZ4_RAW).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::session::SourceStatus;

    #[test]
    fn the_rows_fit_the_tables() {
        let source = SourceRow::unread("/x".into(), SourceStatus::UnknownFormat, 1, 0);
        let batch = to_batch(&arrow_schema(&SOURCES), std::slice::from_ref(&source)).expect("fits");
        let back: Vec<SourceRow> = serde_arrow::from_record_batch(&batch).expect("reads");
        assert_eq!(back, [source]);
        let session =
            SessionRow { session_id: "s".into(), started_at: Some(5), ..SessionRow::default() };
        let batch =
            to_batch(&arrow_schema(&SESSIONS), std::slice::from_ref(&session)).expect("fits");
        let back: Vec<SessionRow> = serde_arrow::from_record_batch(&batch).expect("reads");
        assert_eq!(back, [session]);
    }

    #[test]
    fn a_segment_without_rows_is_none() {
        let dir = tempfile::tempdir().expect("tempdir");
        let segments = Arc::new(HeldFolder::open(dir.path()).expect("opens"));
        assert!(SegmentWriter::new(&segments, 1).finish().expect("finishes").is_none());
        assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 0);
    }
}
