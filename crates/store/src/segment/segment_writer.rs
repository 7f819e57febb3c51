//! Writes one segment: its tables as Parquet files, durable before any manifest names them.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use ingest::stream::batch::{SessionRows, events_schema, rows_by_session};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use schemas::problem::Problem;
use schemas::session::{ProblemRow, SessionRow, SourceRow};
use schemas::table::{ColumnType, EVENTS, PROBLEMS, SESSIONS, SOURCES, Table};

use super::events_file::EventsFile;
use super::indexed_columns::index_rows;
use super::recorded_rows::{RecordedRows, RowFileRows};
use super::row_file::head_of;
use super::segment_folder::SegmentFolder;
use super::table_columns::to_batch;
use crate::disk::files::{FileSums, NewFile};
use crate::disk::held_folder::HeldFolder;
use crate::disk::pending_syncs::PendingSyncs;
use crate::error::{StoreError, write_error};
use crate::index::IndexWriter;
use crate::manifest::{CHECKSUMS, FileEntry, SKIP_INDEX, SegmentEntry};
use crate::parquet_file::shared_properties;

/// Columns of texts of small tables in which each row has a value of its own.
const UNIQUE_TEXTS: &[&str] = &["session_id", "native_id", "source_path", "path", "state"];

/// A segment that is on disk and that no manifest names yet. Its folder is removed if this is
/// dropped before [`SegmentFolder::keep`].
pub(crate) struct FinishedSegment {
    pub(crate) entry: SegmentEntry,
    pub(crate) folder: SegmentFolder,
}

/// A segment that is written completely, while its files reach the disk.
pub(crate) struct ClosedSegment {
    entry: SegmentEntry,
    folder: SegmentFolder,
    syncs: PendingSyncs,
}

impl ClosedSegment {
    /// Waits until the segment is on disk.
    ///
    /// # Errors
    /// Fails if a file could not be synced.
    pub(crate) fn wait(self) -> Result<FinishedSegment, StoreError> {
        self.syncs.wait()?;
        Ok(FinishedSegment { entry: self.entry, folder: self.folder })
    }
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
    /// The rows of events of each session, by its id.
    spans: HashMap<String, WrittenSpan>,
    recorded: RecordedRows,
    /// The versions of the rules that masked the logs of the recorded sources.
    rules: BTreeSet<i64>,
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
            spans: HashMap::new(),
            recorded: RecordedRows::default(),
            rules: BTreeSet::new(),
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

    /// Returns about how many files it has a row for.
    pub(crate) fn source_count(&self) -> usize {
        self.recorded.source_count()
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
            let count = rows.len() as i64;
            if let Some(span) = self.spans.get_mut(session_id) {
                span.count += count;
            } else {
                let span = WrittenSpan { start: self.rows.cast_signed(), count };
                self.spans.insert(session_id.to_owned(), span);
            }
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
    pub(crate) fn record_session(
        &mut self,
        mut session: Box<SessionRow>,
    ) -> Result<(), StoreError> {
        if session.session_id.is_empty() {
            return Ok(());
        }
        let span = self.spans.get(&session.session_id).copied().unwrap_or_default();
        session.row_start = span.start;
        session.row_count = span.count;
        session.segment = self.number;
        let recorded = self.recorded.record_session(session);
        recorded.map_err(|error| write_error(&self.folder.file_path(SESSIONS.name), error))
    }

    /// Records the state of a file.
    pub(crate) fn record_source(&mut self, mut source: Box<SourceRow>) -> Result<(), StoreError> {
        source.segment = self.number;
        if source.session_id.is_some() {
            self.rules.insert(source.redaction_rules);
        }
        let recorded = self.recorded.record_source(source);
        recorded.map_err(|error| write_error(&self.folder.file_path(SOURCES.name), error))
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

    /// Closes all files and waits until they are on disk. Returns `None` if there was nothing to write.
    pub(crate) fn finish(self) -> Result<Option<FinishedSegment>, StoreError> {
        self.close()?.map(ClosedSegment::wait).transpose()
    }

    /// Closes all files and begins to sync them. Returns `None` if there was nothing to write.
    pub(crate) fn close(mut self) -> Result<Option<ClosedSegment>, StoreError> {
        if self.recorded.is_empty() {
            return Ok(None);
        }

        let mut entries = Vec::new();
        if let Some(writer) = self.events.take() {
            let events = self.finish_file(EVENTS.name, writer.finish()?)?;
            let index = std::mem::replace(&mut self.index, IndexWriter::new()).finish();
            let index = self.write_file(SKIP_INDEX, index)?;
            let chunk_sums = events.chunks.iter().chain(&index.chunks);
            let checksum_bytes: Vec<u8> = chunk_sums.flat_map(|sum| sum.to_le_bytes()).collect();
            let checksums = self.write_file(CHECKSUMS, [checksum_bytes])?;
            entries.push(file_entry(EVENTS.name, events));
            entries.push(file_entry(SKIP_INDEX, index));
            entries.push(file_entry(CHECKSUMS, checksums));
        }

        self.write_recorded_rows(&mut entries)?;
        let problems = std::mem::take(&mut self.problems);
        let batch = to_batch(&PROBLEMS, &problems);
        let batch = batch.map_err(|error| self.table_error(&PROBLEMS, error))?;
        self.write_table(&PROBLEMS, &batch, &mut entries)?;
        self.folder.begin_sync(&mut self.syncs);

        let entry = SegmentEntry {
            number: self.number,
            events: self.rows,
            times: self.times,
            untimed: self.has_untimed_rows,
            rules: Some(self.rules.into_iter().collect()),
            files: entries,
        };
        Ok(Some(ClosedSegment { entry, folder: self.folder, syncs: self.syncs }))
    }

    /// Ends a file of the segment and begins to sync it.
    fn finish_file(&mut self, table: &str, file: NewFile) -> Result<FileSums, StoreError> {
        let path = self.folder.file_path(table);
        let (file, sums) = file.finish().map_err(StoreError::io(&path))?;
        self.syncs.begin(path, &file);
        Ok(sums)
    }

    /// Writes a whole file of the segment, given its parts.
    fn write_file(
        &mut self,
        table: &str,
        parts: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<FileSums, StoreError> {
        let path = self.folder.file_path(table);
        let mut file = self.folder.create_file(table)?;
        for part in parts {
            file.write_all(&part).map_err(StoreError::io(&path))?;
        }
        self.finish_file(table, file)
    }

    /// Writes the states of sessions and files and appends the entries of their files.
    fn write_recorded_rows(&mut self, entries: &mut Vec<FileEntry>) -> Result<(), StoreError> {
        let recorded = std::mem::take(&mut self.recorded);
        let path = self.folder.file_path(SESSIONS.name);
        let finished = recorded.finish().map_err(|error| write_error(&path, error))?;
        let sessions = finished.sessions().map_err(|error| self.table_error(&SESSIONS, error))?;
        self.write_table(&SESSIONS, &sessions, entries)?;
        let sources = finished.sources().map_err(|error| self.table_error(&SOURCES, error))?;
        self.write_table(&SOURCES, &sources, entries)?;
        for rows in finished.row_files() {
            if !rows.positions.is_empty() {
                let sums = self.write_row_file(&rows)?;
                entries.push(file_entry(rows.name, sums));
            }
        }
        Ok(())
    }

    fn table_error(&self, table: &Table, error: ArrowError) -> StoreError {
        write_error(&self.folder.file_path(table.name), error)
    }

    /// Writes one of the small tables and appends its entry. Writes no file if it has no rows.
    fn write_table(
        &mut self,
        table: &Table,
        batch: &RecordBatch,
        entries: &mut Vec<FileEntry>,
    ) -> Result<(), StoreError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let path = self.folder.file_path(table.name);
        let file = self.folder.create_file(table.name)?;
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(table_properties(table)))
            .map_err(|error| write_error(&path, error))?;
        writer.write(batch).map_err(|error| write_error(&path, error))?;
        let file = writer.into_inner().map_err(|error| write_error(&path, error))?;
        let sums = self.finish_file(table.name, file)?;
        entries.push(file_entry(table.name, sums));
        Ok(())
    }

    /// Writes a row file.
    fn write_row_file(&mut self, rows: &RowFileRows<'_>) -> Result<FileSums, StoreError> {
        let path = self.folder.file_path(rows.name);
        let mut file = self.folder.create_file(rows.name)?;
        file.write_all(&head_of(&rows.layout)).map_err(StoreError::io(&path))?;
        for at in rows.positions {
            file.write_all(rows.rows.row(*at)).map_err(StoreError::io(&path))?;
        }
        self.finish_file(rows.name, file)
    }
}

/// Returns the manifest entry of a file that is on disk.
fn file_entry(table: &str, sums: FileSums) -> FileEntry {
    FileEntry { table: table.to_owned(), bytes: sums.length, xxh3: sums.xxh3 }
}

/// Returns the properties of a small table. It is read at every start, so reading it quickly
/// matters more than the smallest file.
fn table_properties(table: &Table) -> WriterProperties {
    let mut builder = shared_properties().set_compression(Compression::LZ4_RAW);
    for column in table.columns {
        // To look each value up in a dictionary takes longer than to compress the numbers.
        let is_number = matches!(column.kind, ColumnType::BigInt | ColumnType::Timestamp);
        if is_number || UNIQUE_TEXTS.contains(&column.name) {
            builder = builder.set_column_dictionary_enabled(ColumnPath::from(column.name), false);
        }
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_without_rows_is_none() {
        let dir = tempfile::tempdir().expect("tempdir");
        let segments = Arc::new(HeldFolder::open(dir.path()).expect("opens"));
        assert!(SegmentWriter::new(&segments, 1).finish().expect("finishes").is_none());
        assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 0);
    }
}
