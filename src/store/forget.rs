//! Forgets sessions: removes their rows from every file of the store, and remembers that their logs
//! are not to be read again.

use std::collections::{HashMap, HashSet};

use arrow::array::RecordBatch;
use ingest::plan::excluded::{excluded_row, log_identity};
use schemas::Timestamp;
use schemas::session::{ProblemRow, SessionRow, SourceRow};

use super::error::StoreError;
use super::folder::HOOK_LOG;
use super::forgotten::{ForgottenLog, ForgottenLogs};
use super::hook_log::HookLog;
use super::labels::LabelBook;
use super::rewrite::{Removal, SegmentEdit};
use super::segment::open_segment::Segment;
use super::snapshot::Snapshot;
use super::writer::StoreWriter;

/// What is forgotten.
struct Forgetting<'s> {
    snapshot: &'s Snapshot,
    sessions: &'s HashSet<String>,
    /// The latest row of every file of these sessions, by path.
    sources: HashMap<String, SourceRow>,
    /// True if the files of these sessions keep a row that says so.
    keeps_sources: bool,
}

impl<'s> Forgetting<'s> {
    fn new(
        snapshot: &'s Snapshot,
        sessions: &'s HashSet<String>,
        keeps_sources: bool,
    ) -> Result<Self, StoreError> {
        let mut sources = HashMap::new();
        for row in snapshot.read_sources(false)? {
            if row.session_id.as_ref().is_some_and(|id| sessions.contains(id)) {
                sources.insert(row.path.clone(), row);
            }
        }
        Ok(Self { snapshot, sessions, sources, keeps_sources })
    }

    fn includes_source(&self, row: &SourceRow) -> bool {
        self.sources.contains_key(&row.path)
            || row.session_id.as_ref().is_some_and(|id| self.sessions.contains(id))
    }
}

impl SegmentEdit for Forgetting<'_> {
    /// Rows that are superseded count too.
    fn changes(&self, segment: &Segment, sources: &[SourceRow]) -> bool {
        segment.sessions().iter().any(|row| self.sessions.contains(&row.session_id))
            || sources.iter().any(|row| self.includes_source(row))
    }

    fn edit_events(
        &self,
        session: &SessionRow,
        rows: RecordBatch,
    ) -> Result<Option<RecordBatch>, StoreError> {
        Ok((!self.sessions.contains(&session.session_id)).then_some(rows))
    }

    fn edit_session(&self, row: &SessionRow) -> Option<SessionRow> {
        (!self.sessions.contains(&row.session_id)).then(|| row.clone())
    }

    fn edit_source(&self, row: SourceRow) -> Option<SourceRow> {
        if !self.includes_source(&row) {
            return Some(row);
        }
        if !self.keeps_sources {
            return None;
        }
        let latest = self.sources.get(&row.path).filter(|latest| latest.segment == row.segment)?;
        let session = self.snapshot.session(latest.session_id.as_deref()?)?;
        Some(excluded_row(session, latest))
    }

    fn keeps_problem(&self, row: &ProblemRow) -> bool {
        let mut forgotten = self.sessions.iter().filter_map(|id| self.snapshot.session(id));
        !self.sources.contains_key(&row.path)
            && !forgotten.any(|session| session.source_path == row.path)
    }
}

impl StoreWriter {
    /// Returns the logs that were forgotten.
    pub fn forgotten_logs(&self) -> Result<ForgottenLogs, StoreError> {
        ForgottenLogs::read(&self.dir)
    }

    /// Removes sessions with all their rows, labels and notes, and remembers that their logs are
    /// not to be read again. Returns when no file of the store holds any of their rows. Segments
    /// that were set aside as damaged are removed too, because they may hold some.
    pub fn forget_sessions(&self, sessions: &HashSet<String>) -> Result<(), StoreError> {
        let snapshot =
            Snapshot::load_with_rows(&self.dir, self.current_manifest(), Some(&self.before))?;
        let forgetting = Forgetting::new(&snapshot, sessions, true)?;
        // First, so that a run that is killed here leaves no log to be read again.
        self.remember_forgotten(&forgetting)?;
        self.remove_rows(&forgetting)
    }

    /// Removes sessions with all their rows, labels and notes. Nothing keeps them from coming again.
    pub(super) fn remove_sessions(&self, sessions: &HashSet<String>) -> Result<(), StoreError> {
        let snapshot =
            Snapshot::load_with_rows(&self.dir, self.current_manifest(), Some(&self.before))?;
        self.remove_rows(&Forgetting::new(&snapshot, sessions, false)?)
    }

    /// Removes everything that the store has of these sessions.
    fn remove_rows(&self, forgetting: &Forgetting<'_>) -> Result<(), StoreError> {
        let sessions = forgetting.sessions;
        LabelBook::update(&self.dir, |labels| {
            for id in sessions {
                labels.remove(id);
            }
        })?;
        if self.dir.join(HOOK_LOG).exists() {
            HookLog::open(&self.dir)?.remove_sessions(|id| sessions.contains(id))?;
        }
        let mut reduced = self.reduced_sessions()?;
        if reduced.remove_sessions(sessions) {
            self.record_reduced(&reduced)?;
        }
        self.rewrite_segments(forgetting.snapshot, forgetting, Removal::AtOnce)?;
        // Other sessions may have responses that the removed ones counted.
        self.count_responses_once()?;
        Ok(())
    }

    /// Lets the logs of forgotten sessions be read again, and returns the number of them.
    pub fn allow_forgotten(&self, sessions: &[String]) -> Result<usize, StoreError> {
        let mut forgotten = self.forgotten_logs()?;
        let count = sessions.iter().filter(|id| forgotten.remove(id)).count();
        forgotten.write(&self.dir, &self.lock)?;
        Ok(count)
    }

    fn remember_forgotten(&self, forgetting: &Forgetting<'_>) -> Result<(), StoreError> {
        let mut forgotten = self.forgotten_logs()?;
        let forgotten_at = Timestamp::now().0;
        for row in forgetting.sources.values() {
            let session = row.session_id.as_deref().and_then(|id| forgetting.snapshot.session(id));
            if let Some(session) = session {
                let log = log_identity(session, row);
                forgotten.insert(&session.session_id, ForgottenLog { log, forgotten_at });
            }
        }
        forgotten.write(&self.dir, &self.lock)
    }
}
