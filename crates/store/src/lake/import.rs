//! Writes sessions of a lake into segments, and removes them again.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::error::ArrowError;
use ingest::redact::Redactor;
use ingest::run::remask::RowRemasker;
use ingest::run::{ForgottenRecount, LogCheckpoint, Sink as _};
use ingest::stream::forgotten::ForgottenRecords;
use schemas::session::{EventRow, SessionRow, SourceRow};
use schemas::table::EventColumn;

use super::copies::CopyMarks;
use crate::error::StoreError;
use crate::forget_plan::find_copies;
use crate::forgotten_rows::{RecordFactsReader, blank_events};
use crate::ingest_target::WriterSink;
use crate::segment::event_reader::with_columns;
use crate::writer::StoreWriter;

/// Number of events that are written at a time.
const BATCH_ROWS: usize = 4096;

/// Number of full segments that are committed at a time. A pull that is killed imports them again, and for
/// each commit all logs of the store are looked through for sessions that begin alike.
const COMMITTED_SEGMENTS: usize = 4;

/// Adds sessions of a lake to the store. What has ended is committed when it is dropped.
pub struct LakeImport<'w> {
    writer: &'w StoreWriter,
    sink: WriterSink<'w>,
    redactor: &'w Redactor,
    forgotten: ForgottenRecords,
    marks: CopyMarks,
    /// True if a commit had sessions that were counted again.
    has_recounted: bool,
}

/// What became of a session that was to be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It was added.
    Added,
    /// It was added; this many of its events are copies of forgotten ones and have no text.
    Continued {
        /// The number of these events.
        left_out: i64,
    },
    /// It is only a copy of forgotten sessions and was not added.
    Forgotten,
}

impl StoreWriter {
    /// Begins to add sessions of a lake. Their texts are cleaned and masked like those of logs, and
    /// copies of forgotten records are left out.
    pub fn import_sessions<'w>(
        &'w self,
        redactor: &'w Redactor,
        marks: CopyMarks,
    ) -> Result<LakeImport<'w>, StoreError> {
        let forgotten = self.forgotten_logs()?.read_records(&self.dir)?;
        let sink = WriterSink::holding(self);
        Ok(LakeImport { writer: self, sink, redactor, forgotten, marks, has_recounted: false })
    }

    /// Removes sessions that came from a lake, with their labels. They may come again. Logs that were
    /// read as their copies are read again.
    pub fn remove_imported(&self, sessions: &HashSet<String>) -> Result<(), StoreError> {
        self.reread_copies_of(sessions)?;
        self.remove_sessions(sessions)
    }
}

impl LakeImport<'_> {
    /// Adds a session with all its events, in order, whatever id they have in the lake. Earlier events
    /// of it are superseded. May commit what was added.
    pub fn add_session(
        &mut self,
        session: SessionRow,
        source: SourceRow,
        events: &[RecordBatch],
    ) -> Result<ImportOutcome, StoreError> {
        let mut reader = RecordFactsReader::default();
        for part in events {
            reader.add_events(part);
        }
        let facts = reader.into_facts();
        let Some(found) = find_copies(&self.forgotten, &session, &facts) else {
            self.add_rows(session, source, events)?;
            return Ok(ImportOutcome::Added);
        };
        if found.is_whole {
            return Ok(ImportOutcome::Forgotten);
        }
        let ranges = found.event_ranges(&facts);
        let mut recount = ForgottenRecount::new(&session);
        let mut blanked = Vec::with_capacity(events.len());
        for part in events {
            let part = blank_events(part, &ranges)?;
            let rows: Vec<EventRow> = serde_arrow::from_record_batch(&part)
                .map_err(|error| StoreError::damaged(Path::new(&session.source_path), error))?;
            for event in &rows {
                recount.add_event(event);
            }
            blanked.push(part);
        }
        self.add_rows(recount.into_session(), source, &blanked)?;
        Ok(ImportOutcome::Continued { left_out: found.left_out })
    }

    /// Adds a session with these events.
    fn add_rows(
        &mut self,
        session: SessionRow,
        source: SourceRow,
        events: &[RecordBatch],
    ) -> Result<(), StoreError> {
        let mut remask = RowRemasker::new(self.redactor, self.sink.segment()?);
        let damaged =
            |error: ArrowError| StoreError::damaged(Path::new(&session.source_path), error);
        for part in events {
            for start in (0..part.num_rows()).step_by(BATCH_ROWS) {
                let rows = BATCH_ROWS.min(part.num_rows() - start);
                let masked = remask.mask_events(&part.slice(start, rows)).map_err(damaged)?;
                let renamed = with_session_id(&masked, &session.session_id).map_err(damaged)?;
                self.sink.events(&renamed)?;
            }
        }
        // The state is not that of a decoder: it says what was imported.
        let state = source.state.clone();
        let source = SourceRow { state, ..remask.mask_source(&source) };
        let session = remask.mask_session(&session);
        self.sink.checkpoint(vec![LogCheckpoint {
            session: Box::new(session),
            source: Box::new(source),
            problems: Vec::new(),
        }])?;
        if self.sink.ended_count() >= COMMITTED_SEGMENTS {
            self.commit_ended()?;
        }
        Ok(())
    }

    /// Commits what was added.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.commit()?;
        // The rows of an empty store supersede none.
        if self.has_recounted || !self.writer.before.sessions().is_empty() {
            self.writer.retire_superseded_segments()?;
        }
        self.writer.merge_small_segments()
    }

    /// Commits sessions whose rows the store has already, now with their events. Their earlier rows may
    /// stay where they are: [`Self::finish`] of the next pull retires those that other rules masked.
    pub fn finish_events(mut self) -> Result<(), StoreError> {
        self.commit()?;
        if self.has_recounted {
            self.writer.retire_superseded_segments()?;
        }
        self.writer.merge_small_segments()
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.sink.end_segment()?;
        self.commit_ended()
    }

    /// Commits the segments that have ended.
    fn commit_ended(&mut self) -> Result<(), StoreError> {
        let ended = self.sink.take_ended();
        self.has_recounted |= self.writer.commit_imported(ended, self.marks)?;
        Ok(())
    }
}

impl Drop for LakeImport<'_> {
    /// Commits the segments that have ended if an error ends the import: their sessions need not be
    /// fetched again.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.commit_ended();
        }
    }
}

/// Returns rows of events with the id that their session has in the store. The lake has another one if
/// the store has it for another session.
fn with_session_id(events: &RecordBatch, session_id: &str) -> Result<RecordBatch, ArrowError> {
    let ids: ArrayRef = Arc::new(StringArray::from(vec![session_id; events.num_rows()]));
    with_columns(events, [(EventColumn::SessionId, ids)])
}
