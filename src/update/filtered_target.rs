//! The store, for a run that leaves out logs. What excludes a log, such as its project, may be known only
//! once it is decoded.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ingest::plan::excluded::{LogFacts, LogFilter as _, excluded_row, log_identity};
use ingest::run::Target;
use ingest::run::report::ContinuedSession;
use ingest::stream::RecordAliases;
use ingest::stream::forgotten::ForgottenRecords;
use schemas::session::{EventRow, SessionRow, SourceRow};

use super::log_rules::LogRules;
use store::{StoreError, StoreWriter};

/// The store, for a run that leaves out logs.
pub(super) struct FilteredTarget<'a> {
    writer: &'a StoreWriter,
    rules: &'a LogRules,
    /// The sessions that the store had before. Their rows are never dropped, because an excluded
    /// one is not read at all.
    known: HashSet<String>,
    /// True if the store is read but not written.
    is_dry_run: bool,
    /// The logs that have copies of forgotten records, by their sessions.
    continued: Mutex<BTreeMap<String, ContinuedSession>>,
}

impl<'a> FilteredTarget<'a> {
    pub(super) fn new(
        writer: &'a StoreWriter,
        rules: &'a LogRules,
        known: HashSet<String>,
        is_dry_run: bool,
    ) -> Self {
        Self { writer, rules, known, is_dry_run, continued: Mutex::default() }
    }

    fn lock_continued(&self) -> MutexGuard<'_, BTreeMap<String, ContinuedSession>> {
        self.continued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the forgotten sessions of which the log of a session is nothing but a copy.
    fn copied_sessions(&self, id: &str) -> Vec<String> {
        let continued = self.lock_continued();
        let copied = continued.get(id).filter(|found| found.is_whole);
        copied.map(|found| found.forgotten_sessions.clone()).unwrap_or_default()
    }

    /// Returns the sessions that have copies of forgotten records.
    pub(super) fn into_continued(self) -> impl Iterator<Item = ContinuedSession> {
        self.continued.into_inner().unwrap_or_else(PoisonError::into_inner).into_values()
    }
}

impl<'a> Target for FilteredTarget<'a> {
    type Error = StoreError;
    type Sink = Option<<&'a StoreWriter as Target>::Sink>;

    fn sink(&self) -> Result<Self::Sink, StoreError> {
        if self.is_dry_run { Ok(None) } else { self.writer.sink().map(Some) }
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, StoreError> {
        self.writer.record_hashes(session_id)
    }

    fn state(&self, path: &str) -> Result<Option<String>, StoreError> {
        self.writer.state(path)
    }

    fn find_excluded_row(&self, session: &SessionRow, source: &SourceRow) -> Option<SourceRow> {
        let id = &session.session_id;
        if self.known.contains(id) {
            return None;
        }
        let has_forgotten = self.rules.has_forgotten();
        let identity = if has_forgotten { log_identity(session, source) } else { String::new() };
        let copy_of = self.copied_sessions(id);
        let log = LogFacts {
            path: &source.path,
            provider: Some(session.provider),
            project: session.cwd.as_deref(),
            identity: Some(&identity),
            copy_of: &copy_of,
        };
        if !self.rules.is_excluded(&log) {
            return None;
        }
        let is_at_end = source.size >= 0;
        if is_at_end {
            self.lock_continued().remove(id);
        }
        Some(excluded_row(session, source, &copy_of))
    }

    fn events(&self, session_id: &str, ranges: &[Range<i32>]) -> Result<Vec<EventRow>, StoreError> {
        self.writer.events(session_id, ranges)
    }

    fn forgotten_records(&self) -> Option<&ForgottenRecords> {
        self.rules.forgotten_records()
    }

    fn record_aliases(&self) -> Arc<RecordAliases> {
        self.writer.record_aliases()
    }

    fn note_forgotten_copies(&self, found: ContinuedSession) {
        self.lock_continued().insert(found.session_id.clone(), found);
    }
}
