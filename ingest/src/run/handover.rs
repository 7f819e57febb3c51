//! Hands over the rows of logs to the sink, together with the checkpoints that they lead to. The rows
//! of many small logs are handed over as one batch.

use arrow::array::RecordBatch;
use schemas::table::{SESSIONS, SOURCES};

use super::report::ExcludedLog;
use super::target::{LogCheckpoint, Sink, Target};
use super::worker::Worker;
use crate::plan::PlannedLog;
use crate::redact::MaskedSecrets;
use crate::stream::Stream;

/// Bytes of text at which the rows of logs that were read are handed over. They are then still
/// in a near cache.
const MAX_TEXT_BYTES: usize = 128 << 10;

/// Number of logs at which they are handed over.
const MAX_LOGS: usize = 1024;

impl<T: Target> Worker<'_, T> {
    /// Hands over the logs that were read, if they are many or have much text.
    pub(super) fn hand_over_full_batch(&mut self, sink: &mut T::Sink) -> Result<(), T::Error> {
        let text_bytes = self.batch.as_ref().map_or(0, |batch| batch.text_bytes());
        if text_bytes < MAX_TEXT_BYTES && self.read_logs.len() < MAX_LOGS {
            return Ok(());
        }
        self.hand_over_read_logs(sink)
    }

    /// Hands over the logs that were read.
    pub(super) fn hand_over_read_logs(&mut self, sink: &mut T::Sink) -> Result<(), T::Error> {
        let batch = self.batch.get_or_insert_default();
        let rows = batch.finish(&self.schema, sink.segment()?);
        self.hand_over(&rows, sink)
    }

    /// Hands over the rows of the log that is being read up to its last checkpoint, and the logs
    /// that were read before it.
    pub(super) fn hand_over_stream(
        &mut self,
        stream: &mut Stream,
        sink: &mut T::Sink,
    ) -> Result<(), T::Error> {
        let rows = stream.take_rows(&self.schema, sink.segment()?);
        self.has_written_rows = true;
        self.hand_over(&rows, sink)
    }

    /// Leaves out a log that was read up to its last checkpoint, if the user does not want it and no
    /// row of it was handed over. Its rows are dropped, and its checkpoint only says that it is left out.
    pub(super) fn leave_out_unwanted(
        &mut self,
        log: &PlannedLog,
        stream: &mut Stream,
        sink: &mut T::Sink,
    ) -> Result<bool, T::Error> {
        let is_new = !self.has_written_rows;
        let is_own = |read: &mut LogCheckpoint| read.session.session_id == log.session_id;
        let Some(mut read) = self.read_logs.pop_if(|read| is_new && is_own(read)) else {
            return Ok(false);
        };
        let redactor = self.redactor.as_deref();
        let mut ignored = MaskedSecrets::new();
        // A forgotten log is known by its row as it was stored.
        if self.target.forgotten_records().is_some() {
            self.masker.mask_row(redactor, &SESSIONS, &mut *read.session, &mut ignored);
        }
        let Some(mut row) = self.target.find_excluded_row(&read.session, &read.source) else {
            self.read_logs.push(read);
            return Ok(false);
        };
        if row.size >= 0 {
            self.masker.mask_row(redactor, &SESSIONS, &mut *read.session, &mut ignored);
            self.masker.mask_row(redactor, &SOURCES, &mut row, &mut ignored);
            let project = read.session.cwd.take();
            self.report.files_excluded += 1;
            self.report.excluded_logs.push(ExcludedLog { path: row.path.clone(), project });
        }
        self.drop_rows(stream, sink)?;
        let session = Box::default();
        self.read_logs.push(LogCheckpoint { session, source: Box::new(row), problems: Vec::new() });
        Ok(true)
    }

    /// Drops the rows of the log that is being read since its last checkpoint, and hands over the
    /// logs that were read before it.
    pub(super) fn drop_rows(
        &mut self,
        stream: &mut Stream,
        sink: &mut T::Sink,
    ) -> Result<(), T::Error> {
        if stream.row_count() == 0 {
            return Ok(());
        }
        let complete_rows = stream.first_row();
        let rows = stream.take_rows(&self.schema, sink.segment()?);
        self.hand_over(&rows.slice(0, complete_rows), sink)
    }

    /// Hands over rows and the checkpoints that they lead to.
    fn hand_over(&mut self, rows: &RecordBatch, sink: &mut T::Sink) -> Result<(), T::Error> {
        if rows.num_rows() > 0 {
            sink.events(rows)?;
        }
        if self.read_logs.is_empty() {
            return Ok(());
        }
        sink.checkpoint(std::mem::take(&mut self.read_logs))
    }
}
