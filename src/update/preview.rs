//! A store that is read but not written, for a dry run of an ingest.

use std::ops::Range;

use arrow::array::RecordBatch;
use ingest::run::{LogCheckpoint, Sink, Target};
use schemas::session::EventRow;

use store::{StoreError, StoreWriter};

/// Reads from a store like a run that writes to it.
pub(super) struct PreviewTarget<'w>(pub(super) &'w StoreWriter);

/// Takes rows and drops them.
pub(super) struct PreviewSink;

impl Target for PreviewTarget<'_> {
    type Error = StoreError;
    type Sink = PreviewSink;

    fn sink(&self) -> Result<PreviewSink, StoreError> {
        Ok(PreviewSink)
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, StoreError> {
        self.0.record_hashes(session_id)
    }

    fn state(&self, path: &str) -> Result<Option<String>, StoreError> {
        self.0.state(path)
    }

    fn events(&self, session_id: &str, ranges: &[Range<i32>]) -> Result<Vec<EventRow>, StoreError> {
        self.0.events(session_id, ranges)
    }
}

impl Sink for PreviewSink {
    type Error = StoreError;

    fn segment(&mut self) -> Result<i64, StoreError> {
        // No row is written, so no reader sees the number.
        Ok(i64::MAX)
    }

    fn events(&mut self, _: &RecordBatch) -> Result<(), StoreError> {
        Ok(())
    }

    fn checkpoint(&mut self, _: Vec<LogCheckpoint>) -> Result<(), StoreError> {
        Ok(())
    }

    fn finish(self) -> Result<(), StoreError> {
        Ok(())
    }
}
