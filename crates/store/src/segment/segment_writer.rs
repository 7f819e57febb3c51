//! Writes one segment: its tables as Parquet files, durable before any manifest names them.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::sync::Arc;

use arrow::array::RecordBatch;
use ingest::stream::batch::{SessionRows, events_schema, rows_by_session};
use parquet::arrow::ArrowWriter;
use schemas::problem::Problem;
use schemas::session::{ProblemRow, SessionRow, SourceRow};
use schemas::table::{EVENTS, PROBLEMS};

use super::events_file::EventsFile;
use super::indexed_columns::index_rows;
use super::open_segment::SharedSegment;
use super::segment_folder::SegmentFolder;
use super::segment_rows::{RecordedRows, RowSource};
use super::session_table::SessionTable;
use super::table_columns::to_batch;
use crate::catalog::records::SegmentRecords;
use crate::catalog::recovery::encode_copy;
use crate::disk::files::{FileSums, NewFile};
use crate::disk::held_folder::HeldFolder;
use crate::error::{StoreError, write_error};
use crate::index::IndexWriter;
use crate::manifest::{CHECKSUMS, FileEntry, ROW_COPY, SKIP_INDEX, SegmentEntry};
use crate::parquet_file::shared_properties;

/// A segment that is on disk and that no manifest names yet. Its folder is removed if this is
/// dropped before [`SegmentFolder::keep`].
pub(crate) struct FinishedSegment {
    pub(crate) entry: SegmentEntry,
    pub(crate) folder: SegmentFolder,
    /// What the catalog is to know of its sessions and logs.
    pub(crate) rows: Arc<SegmentRecords>,
}

impl FinishedSegment {
    /// Returns where the rows of its sessions and logs are.
    pub(crate) fn row_source(&self) -> RowSource {
        RowSource::Memory(Arc::clone(&self.rows))
    }

    /// Returns what snapshots share of it.
    pub(crate) fn read_shared(&self) -> Result<SharedSegment, StoreError> {
        let rows = self.row_source();
        let summaries = SessionTable::read_bytes(&rows, self.entry.number)?;
        let table = SessionTable::decode(rows, self.entry.number, &summaries)?;
        Ok(SharedSegment::new(table))
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
    /// Numbers of the segments whose rows it has instead of them.
    replaces: Vec<i64>,
    /// The versions of the rules that masked the logs of the recorded sources.
    rules: BTreeSet<i64>,
    problems: Vec<ProblemRow>,
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
            replaces: Vec::new(),
            rules: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// Returns the same writer of a segment that replaces others.
    pub(crate) fn replacing(self, replaces: Vec<i64>) -> Self {
        Self { replaces, ..self }
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
    pub(crate) fn record_session(&mut self, mut session: Box<SessionRow>) {
        if session.session_id.is_empty() {
            return;
        }
        let span = self.spans.get(&session.session_id).copied().unwrap_or_default();
        session.row_start = span.start;
        session.row_count = span.count;
        session.segment = self.number;
        self.recorded.record_session(session);
    }

    /// Records the state of a file.
    pub(crate) fn record_source(&mut self, mut source: Box<SourceRow>) {
        source.segment = self.number;
        if source.session_id.is_some() {
            self.rules.insert(source.redaction_rules);
        }
        self.recorded.record_source(source);
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

        if !self.problems.is_empty() {
            entries.push(self.write_problems()?);
        }
        let copy_path = self.folder.file_path(ROW_COPY);
        let rows = std::mem::take(&mut self.recorded).finish();
        let rows = rows.map_err(|error| write_error(&copy_path, error))?;
        let mut entry = SegmentEntry {
            number: self.number,
            events: self.rows,
            times: self.times,
            untimed: self.has_untimed_rows,
            rules: std::mem::take(&mut self.rules).into_iter().collect(),
            row_bytes: rows.row_bytes(),
            files: entries,
        };
        // Written last, so that it says that the segment is complete.
        let copy =
            encode_copy(&entry, &self.replaces, &rows).map_err(StoreError::io(&copy_path))?;
        let copy = self.write_file(ROW_COPY, [copy])?;
        entry.files.push(file_entry(ROW_COPY, copy));
        self.folder.sync()?;
        Ok(Some(FinishedSegment { entry, folder: self.folder, rows: Arc::new(rows) }))
    }

    /// Ends and syncs a file of the segment.
    fn finish_file(&self, table: &str, file: NewFile) -> Result<FileSums, StoreError> {
        file.finish().map_err(StoreError::io(&self.folder.file_path(table)))
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

    /// Writes the problems and returns the entry of their file.
    fn write_problems(&mut self) -> Result<FileEntry, StoreError> {
        let path = self.folder.file_path(PROBLEMS.name);
        let batch = to_batch(&PROBLEMS, &std::mem::take(&mut self.problems))
            .map_err(|error| write_error(&path, error))?;
        let file = self.folder.create_file(PROBLEMS.name)?;
        let properties = shared_properties().build();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))
            .map_err(|error| write_error(&path, error))?;
        writer.write(&batch).map_err(|error| write_error(&path, error))?;
        let file = writer.into_inner().map_err(|error| write_error(&path, error))?;
        let sums = self.finish_file(PROBLEMS.name, file)?;
        Ok(file_entry(PROBLEMS.name, sums))
    }
}

/// Returns the manifest entry of a file that is on disk.
fn file_entry(table: &str, sums: FileSums) -> FileEntry {
    FileEntry { table: table.to_owned(), bytes: sums.length, xxh3: sums.xxh3 }
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
