//! The store and the progress display, as a run uses them.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use schemas::problem::Problem;
use schemas::session::{EventRow, SessionRow, SourceRow};

use super::report::ContinuedSession;
use crate::stream::RecordAliases;
use crate::stream::forgotten::ForgottenRecords;

/// A log as of the rows handed over so far.
pub struct LogCheckpoint {
    /// The session. Its id is empty if the file is not a log.
    pub session: Box<SessionRow>,
    /// The file and the position up to which it was read.
    pub source: Box<SourceRow>,
    /// The problems found since the last checkpoint of the log.
    pub problems: Vec<Problem>,
}

/// Receives rows. Each worker owns one sink.
pub trait Sink {
    /// The error of the store.
    type Error: std::error::Error + Send;

    /// Returns the number of the segment that the next rows go to.
    fn segment(&mut self) -> Result<i64, Self::Error>;

    /// Takes rows of one or several sessions, in order. The rows of a session are contiguous. The
    /// next call of [`Self::checkpoint`] has the checkpoints of all these sessions.
    fn events(&mut self, batch: &RecordBatch) -> Result<(), Self::Error>;

    /// Takes the logs as of the rows handed over so far, in the order of these rows. The sink may
    /// commit here, and only here.
    fn checkpoint(&mut self, logs: Vec<LogCheckpoint>) -> Result<(), Self::Error>;

    /// Commits the remaining rows.
    fn finish(self) -> Result<(), Self::Error>;
}

/// `None` drops what it takes, for a dry run.
impl<S: Sink> Sink for Option<S> {
    type Error = S::Error;

    fn segment(&mut self) -> Result<i64, S::Error> {
        // Nobody sees the number of a segment that is not written.
        self.as_mut().map_or(Ok(i64::MAX), Sink::segment)
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), S::Error> {
        self.as_mut().map_or(Ok(()), |sink| sink.events(batch))
    }

    fn checkpoint(&mut self, logs: Vec<LogCheckpoint>) -> Result<(), S::Error> {
        self.as_mut().map_or(Ok(()), |sink| sink.checkpoint(logs))
    }

    fn finish(self) -> Result<(), S::Error> {
        self.map_or(Ok(()), Sink::finish)
    }
}

/// The store, as ingest uses it.
pub trait Target: Sync {
    /// The error of the store.
    type Error: std::error::Error + Send;
    /// The sink of one worker.
    type Sink: Sink<Error = Self::Error>;

    /// Returns a sink for one worker.
    fn sink(&self) -> Result<Self::Sink, Self::Error>;

    /// Returns the identities of the records of a session, in order, from its committed events. The
    /// identity of what a record says follows that of the record. Zeros are left out.
    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, Self::Error>;

    /// Returns the decoder state saved for a file; `None` if there is none.
    fn state(&self, path: &str) -> Result<Option<String>, Self::Error>;

    /// Returns the row of a log that the user does not want and of which the store has nothing. It is
    /// all that is written of the log. `None` if the log is wanted.
    fn find_excluded_row(&self, _session: &SessionRow, _source: &SourceRow) -> Option<SourceRow> {
        None
    }

    /// Reads the committed events of a session whose indices are in `ranges`, which ascend.
    fn events(&self, session_id: &str, ranges: &[Range<i32>])
    -> Result<Vec<EventRow>, Self::Error>;

    /// Returns the records of forgotten sessions, whose copies give no text. `None` if nothing was
    /// forgotten.
    fn forgotten_records(&self) -> Option<&ForgottenRecords> {
        None
    }

    /// Returns the earlier identities of records whose secrets were replaced in their log.
    fn record_aliases(&self) -> Arc<RecordAliases> {
        Arc::default()
    }

    /// Takes note of a log that has copies of forgotten records, before its rows are handed over.
    fn note_forgotten_copies(&self, _found: ContinuedSession) {}
}

/// Receives progress while a plan runs, and can cancel it.
pub trait Progress: Sync {
    /// Reports how many files and bytes will be read.
    fn set_total(&self, _files: u64, _bytes: u64) {}

    /// Reports how many more bytes were read.
    fn add_bytes_read(&self, _bytes: u64) {}

    /// Returns whether to end the run at the next checkpoint. Asked between records.
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {}
