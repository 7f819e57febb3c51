//! The terms of a plan: what the store knows, what changed, and what is to be done.

use std::collections::HashMap;
use std::sync::Arc;

use schemas::event::Relation;
use schemas::problem::Problem;
use schemas::session::{SessionRow, SourceRow};

use crate::provider::format::Claim;
use crate::redact::columns::shows_path;
use crate::source::candidate::Candidate;

/// The rows in the store: the latest row of every file (without decoder state) and session.
#[derive(Debug, Default)]
pub struct Known {
    pub sources: HashMap<String, SourceRow>,
    pub sessions: HashMap<String, Arc<SessionRow>>,
}

impl Known {
    /// Returns the session whose log is this file. `None` if the session has moved to another file.
    pub(crate) fn session_of(&self, row: &SourceRow) -> Option<&Arc<SessionRow>> {
        let session = self.sessions.get(row.session_id.as_ref()?)?;
        shows_path(&session.source_path, &row.path).then_some(session)
    }
}

/// Why a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    New,
    Grown,
    Rewritten,
    /// The log did not change. It is read again if its original arrived later than the log itself,
    /// or had been behind it.
    Same,
    /// The log is gone. Its rows in the store are recounted in the cases in which an existing log
    /// would be read again.
    Gone,
}

/// One file to read.
#[derive(Debug, Clone)]
pub struct Work {
    pub file: Candidate,
    pub change: Change,
    pub claim: Claim,
    pub session_id: String,
    /// Parent session, if it is known.
    pub parent_session_id: Option<String>,
    pub relation: Option<Relation>,
    /// Sessions whose records this log may repeat.
    pub ancestors: Vec<String>,
    /// Why the beginning of the log, which was recognised before, is no longer recognised.
    pub reason: Option<&'static str>,
    /// The row of the file when it was read last; a grown log is read on from there.
    pub source: Option<Box<SourceRow>>,
    pub session: Option<Arc<SessionRow>>,
}

/// The work of one ingest run.
#[derive(Debug, Default)]
pub struct Plan {
    /// Units of work. The works of one unit are done one after the other, ancestors first.
    pub units: Vec<Vec<Work>>,
    /// Rows that change without reading a file: empty, unknown, failed and vanished files.
    pub settled: Vec<SourceRow>,
    /// Sessions whose log vanished or came back.
    pub sessions: Vec<SessionRow>,
    /// Maps the new paths of settled rows to the paths under which the store has their state.
    pub moved: HashMap<String, String>,
    /// Logs that are gone and were masked by other rules than those in force. Only their rows can
    /// still be masked.
    pub outdated: Vec<String>,
    pub problems: Vec<Problem>,
    pub files: u64,
    pub unchanged: u64,
    /// Bytes that will be read.
    pub bytes: u64,
}

impl Work {
    /// Returns the byte offset at which reading begins.
    pub fn offset(&self) -> u64 {
        match (&self.source, self.change) {
            (Some(row), Change::Grown) => row.consumed.cast_unsigned(),
            (_, Change::Same | Change::Gone) => self.file.size,
            _ => 0,
        }
    }
}
