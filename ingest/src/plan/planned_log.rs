//! What a plan is made of: the rows that the store has, the changes, and the work.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use schemas::event::Relation;
use schemas::problem::Problem;
use schemas::session::{SessionRow, SourceRow};

use crate::discover::sniff::{Sniffed, sniff};
use crate::provider::format::SessionClaim;
use crate::redact::Redactor;
use crate::redact::columns::is_masked_path;
use crate::source::candidate::LogCandidate;
use crate::stream::RecordAliases;

/// The rows in the store: the latest row of every file (without decoder state) and session.
#[derive(Debug, Default, Clone)]
pub struct Known {
    /// The row of every file, by its path.
    pub sources: HashMap<String, SourceRow>,
    /// The row of every session, by its id.
    pub sessions: HashMap<String, Arc<SessionRow>>,
    /// The rows of the sources of sessions of other machines, which have no file.
    pub imported: Vec<SourceRow>,
    /// The identities that records had before their secrets were replaced in the logs.
    pub aliases: Arc<RecordAliases>,
}

impl Known {
    /// Examines the beginning of a log. Its first records are identified as they were at first.
    pub(super) fn sniff(
        &self,
        file: &LogCandidate,
        redactor: Option<&Redactor>,
    ) -> io::Result<Sniffed> {
        let mut sniffed = sniff(file, redactor)?;
        if let Sniffed::Log(claim) = &mut sniffed {
            claim.resolve_records(&self.aliases);
        }
        Ok(sniffed)
    }

    /// Returns the session whose log is this file. `None` if the file has no known session, or if
    /// that session has moved to another file.
    pub(crate) fn session_of(&self, row: &SourceRow) -> Option<&Arc<SessionRow>> {
        let session = self.sessions.get(row.session_id.as_ref()?)?;
        is_masked_path(&session.source_path, &row.path).then_some(session)
    }
}

/// Why a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogChange {
    /// The store does not know the log.
    New,
    /// The log still begins with the content read before. Reading continues at the checkpoint.
    Grown,
    /// The log is read from its start, and its new rows replace those in the store.
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
pub struct PlannedLog {
    /// The file.
    pub file: LogCandidate,
    /// Why it is read.
    pub change: LogChange,
    /// What the log says about itself.
    pub claim: SessionClaim,
    /// The whole content of a small new log, which was read to recognise it. `None` if the file is
    /// opened when its turn comes.
    pub content: Option<Vec<u8>>,
    /// The session that the log is read into.
    pub session_id: String,
    /// The parent session, or the id that the log gives it if no such session is known. `None` if
    /// there is no parent.
    pub parent_session_id: Option<String>,
    /// How the session is related to its parent. `None` if no relation is known.
    pub relation: Option<Relation>,
    /// Ids of the sessions whose records this log may repeat, ascending.
    pub ancestors: Vec<String>,
    /// True if the log is a copy, as a whole, of the log of another agent.
    pub is_whole_copy: bool,
    /// Why the beginning of the log, which was recognised before, is no longer recognised. `None`
    /// if it is recognised.
    pub reason: Option<&'static str>,
    /// The row of the file when it was last read; reading of a grown log continues there. `None`
    /// for a new log.
    pub source: Option<Box<SourceRow>>,
    /// The row of the session when the file was last read. `None` for a new log.
    pub session: Option<Arc<SessionRow>>,
}

impl PlannedLog {
    /// Plans to read a log into a session. The log is new and belongs to no other, until its other
    /// fields say so.
    pub(crate) fn new(
        file: LogCandidate,
        change: LogChange,
        claim: SessionClaim,
        session_id: String,
    ) -> Self {
        Self {
            file,
            change,
            relation: claim.relation,
            claim,
            content: None,
            session_id,
            parent_session_id: None,
            ancestors: Vec::new(),
            is_whole_copy: false,
            reason: None,
            source: None,
            session: None,
        }
    }

    /// Returns whether the session is an earlier version of another one, which has no log.
    pub(crate) fn is_earlier_version(&self) -> bool {
        self.relation == Some(Relation::EarlierVersionOf)
    }

    /// Returns the byte offset from which the plan expects the log to be read. This is an estimate:
    /// the reader may begin at 0.
    pub fn expected_start(&self) -> u64 {
        match self.change {
            LogChange::New | LogChange::Rewritten => 0,
            LogChange::Grown => self.source.as_ref().map_or(0, |row| row.consumed.cast_unsigned()),
            LogChange::Same | LogChange::Gone => self.file.size,
        }
    }
}

/// The work of one ingest run.
#[derive(Debug, Default)]
pub struct Plan {
    /// The logs to read, in units. Those of a unit are read one after the other, ancestors first.
    pub units: Vec<Vec<PlannedLog>>,
    /// Rows that change without reading a file: empty, unknown, failed and vanished files.
    pub settled: Vec<SourceRow>,
    /// Rows of sessions whose log vanished, came back or received another id.
    pub sessions: Vec<SessionRow>,
    /// Maps the new paths of settled rows to the paths under which the store has their state.
    pub moved: HashMap<String, String>,
    /// Problems found while planning.
    pub problems: Vec<Problem>,
    /// Number of files found.
    pub files: u64,
    /// Number of files that are unchanged since they were read.
    pub unchanged: u64,
    /// Bytes that will be read.
    pub bytes: u64,
}

impl Plan {
    /// Returns the plan of a run that found this number of files, all as the store knows them.
    pub fn of_unchanged(files: u64) -> Self {
        Self { files, unchanged: files, ..Self::default() }
    }
}
