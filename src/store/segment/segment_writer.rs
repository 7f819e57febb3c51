//! Writes one segment: its tables as Parquet files, durable before any manifest names them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, RecordBatch, StringArray, StructArray,
};
use arrow::datatypes::{Int32Type, SchemaRef, TimestampMicrosecondType};
use ingest::stream::batch::{arrow_schema, events_schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use schemas::EventType;
use schemas::problem::Problem;
use schemas::session::{ProblemRow, SessionRow, SourceRow};
use schemas::table::{EVENTS, EventColumn, PROBLEMS, SESSIONS, SOURCES, Table};
use serde::Serialize;

use super::event_reader::column_of;
use super::events_file::EventsFile;
use super::segment_folder::SegmentFolder;
use crate::store::disk::files::FileSums;
use crate::store::disk::held_folder::HeldFolder;
use crate::store::error::{StoreError, write_error};
use crate::store::index::{IndexWriter, RowFacts};
use crate::store::manifest::{CHECKSUMS, FileEntry, SKIP, SegmentEntry};
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
    times: Option<(i64, i64)>,
    untimed: bool,
    /// First row and number of rows of each session.
    spans: BTreeMap<String, (i64, i64)>,
    sessions: BTreeMap<String, SessionRow>,
    sources: BTreeMap<String, SourceRow>,
    problems: Vec<ProblemRow>,
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
            untimed: false,
            spans: BTreeMap::new(),
            sessions: BTreeMap::new(),
            sources: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    pub(crate) fn number(&self) -> i64 {
        self.number
    }

    /// Returns the approximate number of bytes written and waiting.
    pub(crate) fn bytes(&self) -> usize {
        self.events.as_ref().map_or(0, EventsFile::bytes)
    }

    /// Returns the number of files that it has a row for.
    pub(crate) fn files(&self) -> usize {
        self.sources.len()
    }

    /// Returns the number of names in its index.
    pub(crate) fn names(&self) -> usize {
        self.index.names()
    }

    /// Adds rows of one session.
    pub(crate) fn events(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        let Some(session) = first_text(batch, EventColumn::SessionId) else { return Ok(()) };
        self.index(batch);
        let writer = match &mut self.events {
            Some(writer) => writer,
            none => {
                let file = self.folder.create_file(EVENTS.name)?;
                let path = self.folder.path(EVENTS.name);
                none.insert(EventsFile::begin(file, &path, events_schema())?)
            }
        };
        writer.write(batch)?;
        let rows = batch.num_rows() as u64;
        let span = self.spans.entry(session).or_insert((self.rows.cast_signed(), 0));
        span.1 += rows.cast_signed();
        self.rows += rows;
        Ok(())
    }

    /// Adds the rows to the skip index, and their times to the time range of the segment.
    fn index(&mut self, batch: &RecordBatch) {
        let column = |name| column_of(batch, name);
        let text = |name| column(name).and_then(|c| c.as_string_opt::<i32>());
        let int = |name| column(name).and_then(|c| c.as_primitive_opt::<Int32Type>());
        let bool = |name| column(name).and_then(|c| c.as_boolean_opt());
        let [texts, kinds] = [EventColumn::Text, EventColumn::EventType].map(text);
        let labels = [
            EventColumn::ToolName,
            EventColumn::Subtype,
            EventColumn::Model,
            EventColumn::GitBranch,
        ]
        .map(text);
        let [turns, steps] = [EventColumn::TurnIndex, EventColumn::StepIndex].map(int);
        let [replays, errors] = [EventColumn::IsReplay, EventColumn::IsError].map(bool);
        let times = column(EventColumn::Timestamp)
            .and_then(|c| c.as_primitive_opt::<TimestampMicrosecondType>());
        let files = column(EventColumn::Files).and_then(|c| c.as_list_opt::<i32>());
        for row in 0..batch.num_rows() {
            let number = |column: Option<&Int32Array>| {
                column.map_or(0, |column| u32::try_from(column.value(row)).unwrap_or(0))
            };
            let known = |column: Option<&BooleanArray>| {
                column.filter(|c| c.is_valid(row)).map(|c| c.value(row))
            };
            let kind = cell(kinds, row).and_then(|kind| kind.parse().ok());
            let facts = RowFacts {
                time: times.filter(|c| c.is_valid(row)).map(|c| c.value(row)),
                turn_index: number(turns),
                step_index: number(steps),
                event_type: kind.unwrap_or(EventType::Notification),
                is_replay: known(replays).unwrap_or(false),
                is_error: known(errors),
                labels: 0,
                files: 0,
            };
            let paths = files.filter(|c| c.is_valid(row)).map(|c| c.value(row));
            let paths = paths.as_ref().and_then(|paths| paths.as_string_opt::<i32>());
            let paths: Vec<&str> = paths.into_iter().flatten().flatten().collect();
            match facts.time {
                Some(time) => {
                    let (oldest, newest) = self.times.unwrap_or((time, time));
                    self.times = Some((oldest.min(time), newest.max(time)));
                }
                None => self.untimed = true,
            }
            let text = cell(texts, row).unwrap_or("");
            self.index.push(text, facts, labels.map(|column| cell(column, row)), &paths.join("\n"));
        }
    }

    /// Records the state of a session, whose rows of this segment must have been added. An empty id
    /// represents a file that is not a session, and is ignored.
    pub(crate) fn session(&mut self, session: SessionRow) {
        if !session.session_id.is_empty() {
            let (row_start, row_count) =
                self.spans.get(&session.session_id).copied().unwrap_or((0, 0));
            let row = SessionRow { row_start, row_count, segment: self.number, ..session };
            self.sessions.insert(row.session_id.clone(), row);
        }
    }

    /// Records the state of a file.
    pub(crate) fn source(&mut self, source: SourceRow) {
        let row = SourceRow { segment: self.number, ..source };
        self.sources.insert(row.path.clone(), row);
    }

    /// Adds problems.
    pub(crate) fn problems(&mut self, problems: Vec<Problem>) {
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
            let path = self.folder.path(EVENTS.name);
            let events = writer.finish()?.finish().map_err(StoreError::io(&path))?;
            let index = std::mem::replace(&mut self.index, IndexWriter::new()).finish();
            let index = self.write_file(SKIP, &index)?;
            let checksums = events.chunks.iter().chain(&index.chunks);
            let checksums: Vec<u8> = checksums.flat_map(|sum| sum.to_le_bytes()).collect();
            let checksums = self.write_file(CHECKSUMS, &checksums)?;
            entries.push(file_entry(EVENTS.name, events));
            entries.push(file_entry(SKIP, index));
            entries.push(file_entry(CHECKSUMS, checksums));
        }
        let sessions: Vec<_> = std::mem::take(&mut self.sessions).into_values().collect();
        let sources: Vec<_> = std::mem::take(&mut self.sources).into_values().collect();
        self.table(&SESSIONS, &sessions, &mut entries)?;
        self.table(&SOURCES, &sources, &mut entries)?;
        let problems = std::mem::take(&mut self.problems);
        self.table(&PROBLEMS, &problems, &mut entries)?;
        self.folder.sync()?;
        let entry = SegmentEntry {
            number: self.number,
            events: self.rows,
            times: self.times,
            untimed: self.untimed,
            files: entries,
        };
        Ok(Some(FinishedSegment { entry, folder: self.folder }))
    }

    /// Writes a whole file of the segment, which is on disk when this returns.
    fn write_file(&mut self, table: &str, content: &[u8]) -> Result<FileSums, StoreError> {
        let path = self.folder.path(table);
        let mut file = self.folder.create_file(table)?;
        file.write_all(content).map_err(StoreError::io(&path))?;
        file.finish().map_err(StoreError::io(&path))
    }

    /// Writes one of the small tables, or no file if it has no rows.
    fn table<T: Serialize>(
        &mut self,
        table: &Table,
        rows: &[T],
        entries: &mut Vec<FileEntry>,
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let path = self.folder.path(table.name);
        let batch =
            to_batch(&arrow_schema(table), rows).map_err(|error| write_error(&path, error))?;
        let file = self.folder.create_file(table.name)?;
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(table_properties()))
            .map_err(|error| write_error(&path, error))?;
        writer.write(&batch).map_err(|error| write_error(&path, error))?;
        let file = writer.into_inner().map_err(|error| write_error(&path, error))?;
        let sums = file.finish().map_err(StoreError::io(&path))?;
        entries.push(file_entry(table.name, sums));
        Ok(())
    }
}

/// Returns the text in a row of a column, if it has one.
fn cell(column: Option<&StringArray>, row: usize) -> Option<&str> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

/// Converts rows to a batch of `schema`, whose fields are the structs' fields.
fn to_batch<T: Serialize>(
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

fn first_text(batch: &RecordBatch, name: EventColumn) -> Option<String> {
    let array = column_of(batch, name)?.as_string_opt::<i32>()?;
    (!array.is_empty()).then(|| array.value(0).to_owned())
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
        let source = SourceRow {
            path: "/x".into(),
            status: SourceStatus::UnknownFormat,
            session_id: None,
            provider: None,
            size: 1,
            modified_us: 0,
            consumed: 0,
            lines: 0,
            objects: 0,
            head_hash: 0,
            head_length: 0,
            tail_hash: 0,
            first_record: None,
            ancestors: None,
            redaction_rules: 0,
            state: None,
            reason: None,
            segment: 0,
        };
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
