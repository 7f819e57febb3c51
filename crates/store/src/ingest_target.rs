//! Takes what an ingest reads into a store, with one segment under construction for each worker.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use arrow::array::RecordBatch;
use ingest::run::{LogCheckpoint, Sink, Target};
use ingest::stream::RecordAliases;
use schemas::session::{EventRow, SourceRow};

use super::error::StoreError;
use super::out_of_force::OutOfForce;
use super::segment::segment_writer::{FinishedSegment, SegmentWriter};
use super::writer::{StoreWriter, require_reread};

/// A segment with at least this many bytes of events ends at the next checkpoint.
pub(super) const FULL_SEGMENT_BYTES: usize = 32 << 20;

/// A segment with about this many rows of files ends at the next checkpoint. The writer holds
/// these rows until then, encoded.
const FULL_SEGMENT_FILES: usize = 16_384;

/// A segment with at least this many names of tools, kinds and files ends at the next
/// checkpoint. The writer holds these names as well.
const FULL_SEGMENT_NAMES: usize = 100_000;

/// Writes the rows of one ingest worker into segments.
pub struct WriterSink<'w> {
    writer: &'w StoreWriter,
    /// The segment under construction.
    segment: Option<SegmentWriter>,
    /// The segments that have ended, if the owner of the sink commits them.
    held: Option<Vec<FinishedSegment>>,
}

impl<'w> WriterSink<'w> {
    pub(super) fn new(writer: &'w StoreWriter) -> Self {
        Self { writer, segment: None, held: None }
    }

    /// Returns a sink that leaves the commits to its owner; see [`Self::take_ended`].
    pub(super) fn holding(writer: &'w StoreWriter) -> Self {
        Self { writer, segment: None, held: Some(Vec::new()) }
    }

    /// Returns the number of segments that have ended and are not committed.
    pub(super) fn ended_count(&self) -> usize {
        self.held.as_ref().map_or(0, Vec::len)
    }

    /// Returns the segments that have ended and are not committed, in a sink that holds them.
    pub(super) fn take_ended(&mut self) -> Vec<FinishedSegment> {
        self.held.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the segment under construction, which is begun if there is none.
    fn current_segment(&mut self) -> &mut SegmentWriter {
        self.segment.get_or_insert_with(|| self.writer.begin_segment())
    }

    /// Ends the segment under construction, if there is one, and commits it or holds it for the owner.
    pub(super) fn end_segment(&mut self) -> Result<(), StoreError> {
        let Some(segment) = self.segment.take() else { return Ok(()) };
        let is_full = segment.bytes() >= FULL_SEGMENT_BYTES;
        let lock = || self.writer.ending.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = is_full.then(lock);
        let finished = segment.finish().map_err(|error| self.writer.find_cause(error))?;
        drop(turn);
        let Some(finished) = finished else { return Ok(()) };
        match &mut self.held {
            Some(held) => {
                held.push(finished);
                Ok(())
            }
            None => self.writer.commit_ingested(finished),
        }
    }
}

impl Sink for WriterSink<'_> {
    type Error = StoreError;

    fn segment(&mut self) -> Result<i64, StoreError> {
        Ok(self.current_segment().number())
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        for rows in self.writer.reduced.reduce_written(batch)? {
            let added = self.current_segment().push_events(&rows);
            added.map_err(|error| self.writer.find_cause(error))?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, logs: Vec<LogCheckpoint>) -> Result<(), StoreError> {
        for LogCheckpoint { session, source, problems } in logs {
            let source = self.writer.reduced.reduce_source(&session, source);
            let session = self.writer.reduced.reduce_session(session);
            let out_of_force = self.writer.take_out_of_force(&session.session_id);
            let segment = self.current_segment();
            for one in out_of_force {
                match one {
                    OutOfForce::Row(row) => segment.record_session(row),
                    OutOfForce::Source(row) => segment.record_source(row),
                }
            }
            segment.record_session(session);
            segment.record_source(source);
            segment.push_problems(problems);
        }
        let segment = self.current_segment();
        let is_full = segment.bytes() >= FULL_SEGMENT_BYTES
            || segment.source_count() >= FULL_SEGMENT_FILES
            || segment.name_count() >= FULL_SEGMENT_NAMES;
        if is_full {
            self.end_segment()?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.end_segment()
    }
}

impl StoreWriter {
    /// Lets the next ingest read these logs again. No rows of sessions are written.
    pub(super) fn reread_logs(&self, logs: Vec<SourceRow>) -> Result<(), StoreError> {
        let mut sink = WriterSink::new(self);
        for mut log in logs {
            require_reread(&mut log);
            sink.checkpoint(vec![LogCheckpoint {
                source: Box::new(log),
                session: Box::default(),
                problems: Vec::new(),
            }])?;
        }
        sink.finish()
    }

    /// Returns the rows that go out of force with the first rows of a session, once.
    fn take_out_of_force(&self, session_id: &str) -> Vec<OutOfForce> {
        let mut rows = self.out_of_force.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.is_empty() { Vec::new() } else { rows.remove(session_id).unwrap_or_default() }
    }
}

impl<'w> Target for &'w StoreWriter {
    type Error = StoreError;
    type Sink = WriterSink<'w>;

    fn sink(&self) -> Result<WriterSink<'w>, StoreError> {
        Ok(WriterSink::new(self))
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, StoreError> {
        let Some(session) = self.before.session_position(session_id) else { return Ok(Vec::new()) };
        self.before.read_record_hashes(session)
    }

    fn state(&self, path: &str) -> Result<Option<String>, StoreError> {
        if self.states.get().is_none() {
            let _ = self.states.set(self.before.locate_states()?);
        }
        let Some((segment, at)) = self.states.get().and_then(|states| states.get(path)) else {
            return Ok(None);
        };
        let source = self.before.segments()[*segment].shared.sessions.source();
        source.read_state(self.before.segments()[*segment].entry.number, *at).map(Some)
    }

    fn record_aliases(&self) -> Arc<RecordAliases> {
        self.scrubbed_records()
    }

    fn events(&self, session_id: &str, ranges: &[Range<i32>]) -> Result<Vec<EventRow>, StoreError> {
        let Some(session) = self.before.session_position(session_id) else { return Ok(Vec::new()) };
        let ranges: Vec<_> = ranges.iter().map(unsigned_range).collect();
        self.before.events_of(session, &ranges, &[]).read_rows()
    }
}

/// Converts a range of event indexes, which are not negative.
fn unsigned_range(range: &Range<i32>) -> Range<u32> {
    let start = u32::try_from(range.start).unwrap_or(0);
    let end = u32::try_from(range.end).unwrap_or(0);
    start..end
}

#[cfg(test)]
mod tests {
    use schemas::session::SourceStatus;

    use super::super::damage::Verify;
    use super::*;

    /// Ends a segment with one row in `sink`.
    fn end_segment(sink: &mut WriterSink<'_>, path: &str) {
        let row = SourceRow::unread(path.to_owned(), SourceStatus::Empty, 1, 1);
        sink.current_segment().record_source(Box::new(row));
        sink.end_segment().expect("ends");
    }

    #[test]
    fn a_segment_that_has_ended_is_committed_even_if_an_error_drops_the_sink() {
        let dir = tempfile::tempdir().expect("tempdir");
        let writer = StoreWriter::open(&dir.path().join("store"), Verify::Some).expect("opens");
        let committed = || writer.current_manifest().segments.len();
        let mut sink = WriterSink::new(&writer);
        end_segment(&mut sink, "/a");
        assert_eq!(committed(), 1);
        end_segment(&mut sink, "/b");
        drop(sink);
        assert_eq!(committed(), 2);
    }
}
