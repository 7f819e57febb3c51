//! Writes sessions of a lake into segments, and removes them again.

use std::collections::HashSet;

use arrow::array::RecordBatch;
use ingest::redact::Redactor;
use ingest::run::remask::RowRemasker;
use ingest::run::{LogCheckpoint, Sink as _};
use schemas::session::{SessionRow, SourceRow};

use crate::store::error::StoreError;
use crate::store::ingest_target::WriterSink;
use crate::store::writer::StoreWriter;

/// Number of events that are written at a time.
const BATCH_ROWS: usize = 4096;

/// Adds sessions of a lake to the store.
pub struct LakeImport<'w> {
    writer: &'w StoreWriter,
    sink: WriterSink<'w>,
    redactor: &'w Redactor,
}

impl StoreWriter {
    /// Begins to add sessions of a lake. Their texts are cleaned and masked like those of logs.
    pub fn import_sessions<'w>(&'w self, redactor: &'w Redactor) -> LakeImport<'w> {
        LakeImport { writer: self, sink: WriterSink::new(self), redactor }
    }

    /// Removes sessions that came from a lake, with their labels. They may come again.
    pub fn remove_imported(&self, sessions: &HashSet<String>) -> Result<(), StoreError> {
        self.remove_sessions(sessions)
    }
}

impl<'w> LakeImport<'w> {
    /// Adds a session with all its events, in order. Earlier events of it are superseded. May commit
    /// what was added before.
    pub fn add_session(
        &mut self,
        session: SessionRow,
        source: SourceRow,
        events: &RecordBatch,
    ) -> Result<(), StoreError> {
        let mut remask = RowRemasker::new(self.redactor, self.sink.segment()?);
        let mut start = 0;
        while start < events.num_rows() {
            let rows = BATCH_ROWS.min(events.num_rows() - start);
            let masked = remask.mask_events(&events.slice(start, rows));
            let masked = masked.map_err(|error| {
                StoreError::damaged(std::path::Path::new(&session.source_path), error)
            })?;
            self.sink.events(&masked)?;
            start += rows;
        }
        // The state is not that of a decoder: it says what was imported.
        let state = source.state.clone();
        let source = SourceRow { state, ..remask.mask_source(&source) };
        let session = remask.mask_session(&session);
        self.sink.checkpoint(vec![LogCheckpoint {
            session: Box::new(session),
            source: Box::new(source),
            problems: Vec::new(),
        }])
    }

    /// Commits what was added, and counts responses once that several sessions have.
    pub fn finish(self) -> Result<(), StoreError> {
        let (writer, recounted) = self.commit()?;
        // The rows of an empty store supersede none.
        if recounted > 0 || !writer.before.sessions().is_empty() {
            writer.retire_superseded_segments()?;
        }
        writer.merge_small_segments()
    }

    /// Commits sessions whose rows the store has already, now with their events. Their earlier rows may
    /// stay where they are: [`Self::finish`] of the next pull retires those that other rules masked.
    pub fn finish_events(self) -> Result<(), StoreError> {
        let (writer, recounted) = self.commit()?;
        if recounted > 0 {
            writer.retire_superseded_segments()?;
        }
        writer.merge_small_segments()
    }

    /// Returns the number of sessions whose responses were counted again, too.
    fn commit(self) -> Result<(&'w StoreWriter, usize), StoreError> {
        let Self { writer, sink, .. } = self;
        sink.finish()?;
        let recounted = writer.count_responses_once()?;
        Ok((writer, recounted))
    }
}
