//! Forgets sessions: removes their rows from every file of the store, and remembers that neither their
//! logs nor copies of their records are to be read again. Sessions that repeat their records keep the
//! places of these records only.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use arrow::array::RecordBatch;
use ingest::plan::excluded::{excluded_row, log_identity};
use ingest::run::remask::without_line_state;
use ingest::run::{ForgottenRecount, LogCheckpoint, Sink as _};
use schemas::Timestamp;
use schemas::session::{EventRow, ProblemRow, SessionRow, SourceRow, SourceStatus};

use super::error::StoreError;
use super::folder::HOOK_LOG;
use super::forget_plan::{ForgetPlan, StoredCopy};
use super::forgotten::{ForgottenLog, ForgottenLogs};
use super::forgotten_rows::{blank_events, has_forgotten_events};
use super::hook_log::HookLog;
use super::ingest_target::WriterSink;
use super::labels::LabelBook;
use super::lake::keys::LAKE_PATH;
use super::rewrite::{Removal, SegmentEdit};
use super::segment::open_segment::Segment;
use super::session_events::ALL_EVENTS;
use super::snapshot::Snapshot;
use super::writer::{StoreWriter, is_log_of, require_reread};

/// What is forgotten.
struct Forgetting<'s> {
    snapshot: &'s Snapshot,
    /// The sessions that go, also those that are nothing but copies of others.
    sessions: &'s HashSet<String>,
    /// The latest row of every file of these sessions, by path.
    sources: HashMap<String, SourceRow>,
    /// True if the files of these sessions keep a row that says so.
    keeps_sources: bool,
    /// The forgotten sessions that a session is a copy of, for sessions that go as copies.
    copy_of: HashMap<String, Vec<String>>,
    /// The sessions that stay, and lose the texts of copied records.
    blanked: HashMap<String, BlankedSession>,
}

/// A session that loses the texts of copied records.
struct BlankedSession {
    /// The row of the session from now on.
    row: SessionRow,
    /// The indexes of the events of these records.
    ranges: Vec<Range<i32>>,
}

impl<'s> Forgetting<'s> {
    /// Returns whether the log of a session has texts that go.
    fn has_texts_of(&self, id: &str) -> bool {
        self.sessions.contains(id) || self.blanked.contains_key(id)
    }

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
        Ok(Self {
            snapshot,
            sessions,
            sources,
            keeps_sources,
            copy_of: HashMap::new(),
            blanked: HashMap::new(),
        })
    }

    /// Adds what is forgotten of sessions that hold copies.
    fn add_copies(&mut self, copies: Vec<StoredCopy>) -> Result<(), StoreError> {
        for copy in copies {
            let session = &self.snapshot.sessions()[copy.session];
            let id = session.id().to_owned();
            if copy.is_whole {
                self.copy_of.insert(id, copy.forgotten_sessions);
                continue;
            }
            let mut recount = ForgottenRecount::new(session.row()?);
            let mut events = self.snapshot.events_of(copy.session, ALL_EVENTS, &[]);
            while let Some(batch) = events.next_batch()? {
                let rows = serde_arrow::from_record_batch(&blank_events(&batch, &copy.ranges)?);
                let rows: Vec<EventRow> = rows.map_err(|error| events.damaged_batch(error))?;
                for event in &rows {
                    recount.add_event(event);
                }
            }
            let row = recount.into_session();
            self.blanked.insert(id, BlankedSession { row, ranges: copy.ranges });
        }
        Ok(())
    }

    fn find_blanked(&self, id: Option<&str>) -> Option<&BlankedSession> {
        self.blanked.get(id?)
    }

    /// Returns the row of the log of a session that lost texts. If the log exists, the next ingest reads
    /// it again, so that its rows are those of a log that comes after `forget`.
    fn reread_source(&self, row: SourceRow) -> SourceRow {
        if row.path.starts_with(LAKE_PATH) {
            return row;
        }
        let session = row.session_id.as_deref().and_then(|id| self.snapshot.session(id));
        let mut row = without_line_state(row);
        if row.status == SourceStatus::Ok && session.is_some_and(|one| is_log_of(one, &row)) {
            require_reread(&mut row);
        }
        row
    }

    fn includes_source(&self, row: &SourceRow) -> bool {
        self.sources.contains_key(&row.path)
            || row.session_id.as_ref().is_some_and(|id| self.sessions.contains(id))
    }
}

impl SegmentEdit for Forgetting<'_> {
    /// Rows that are superseded count too.
    fn changes(&self, segment: &Segment, sources: &[SourceRow]) -> bool {
        let is_changed = |id: &String| self.sessions.contains(id) || self.blanked.contains_key(id);
        segment.summaries().iter().any(|summary| is_changed(&summary.session_id))
            || sources.iter().any(|row| self.includes_source(row))
    }

    fn edit_events(
        &self,
        session_id: &str,
        rows: RecordBatch,
    ) -> Result<Option<RecordBatch>, StoreError> {
        if self.sessions.contains(session_id) {
            return Ok(None);
        }
        match self.blanked.get(session_id) {
            Some(blanked) => blank_events(&rows, &blanked.ranges).map(Some),
            None => Ok(Some(rows)),
        }
    }

    fn edit_session(&self, row: &SessionRow) -> Option<SessionRow> {
        if self.sessions.contains(&row.session_id) {
            return None;
        }
        let Some(blanked) = self.blanked.get(&row.session_id) else { return Some(row.clone()) };
        let latest = self.snapshot.session(&row.session_id);
        if latest.is_some_and(|latest| latest.segment == row.segment) {
            return Some(blanked.row.clone());
        }
        Some(SessionRow { title: blanked.row.title.clone(), ..row.clone() })
    }

    fn edit_source(&self, row: SourceRow) -> Result<Option<SourceRow>, StoreError> {
        if self.find_blanked(row.session_id.as_deref()).is_some() {
            return Ok(Some(self.reread_source(row)));
        }
        if !self.includes_source(&row) {
            return Ok(Some(row));
        }
        if !self.keeps_sources {
            return Ok(None);
        }
        let latest = self.sources.get(&row.path).filter(|latest| latest.segment == row.segment);
        let id = latest.and_then(|latest| latest.session_id.as_deref());
        let session = id.and_then(|id| self.snapshot.session(id));
        let (Some(latest), Some(session)) = (latest, session) else { return Ok(None) };
        let copy_of = self.copy_of.get(session.id()).map_or(&[][..], Vec::as_slice);
        Ok(Some(excluded_row(session.row()?, latest, copy_of)))
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

    /// Removes sessions with all their rows, labels and notes, and remembers that neither their logs nor
    /// copies of their records are to be read again. Returns when no file of the store holds any of
    /// their texts. Segments that were set aside as damaged are removed too, because they may hold some.
    /// `hidden_by` has the pattern for each session that is forgotten because its project is hidden.
    pub fn forget_sessions(
        &self,
        sessions: &HashSet<String>,
        hidden_by: &HashMap<String, String>,
    ) -> Result<(), StoreError> {
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut forgotten = self.forgotten_logs()?;
        let ForgetPlan { forgotten: records, copies } =
            snapshot.plan_forget(sessions, forgotten.make_key(&self.dir)?)?;

        // First, so that a run that is killed here leaves no log to be read again.
        let named = Forgetting::new(&snapshot, sessions, true)?;
        let forgotten_at = Timestamp::now().0;
        for row in named.sources.values() {
            let session = row.session_id.as_deref().and_then(|id| snapshot.session(id));
            let Some(session) = session else { continue };
            let known = records.iter().find(|one| one.session_id == session.session_id);
            forgotten.insert(
                &session.session_id,
                ForgottenLog {
                    log: log_identity(session.row()?, row),
                    forgotten_at,
                    provider: session.provider,
                    own_id: known.map_or(0, |known| known.own_id),
                    title: known.map_or(0, |known| known.title),
                    records: 0,
                    hidden_by: hidden_by.get(session.id()).cloned(),
                },
            );
        }
        let mut all = forgotten.read_records(&self.dir)?.into_sessions();
        all.retain(|one| !sessions.contains(&one.session_id));
        all.extend(records);
        forgotten.write(&self.dir, &self.lock, &all)?;

        let whole = copies.iter().filter(|copy| copy.is_whole);
        let whole = whole.map(|copy| snapshot.sessions()[copy.session].id().to_owned());
        let removed: HashSet<String> = sessions.iter().cloned().chain(whole).collect();
        let mut forgetting = Forgetting::new(&snapshot, &removed, true)?;
        forgetting.add_copies(copies)?;
        // The logs of sessions that lose copied records have these records too.
        self.remove_archived(&|id| forgetting.has_texts_of(id))?;
        self.remove_rows(&forgetting)
    }

    /// Completes a `forget` that was killed after it had noted what is forgotten: removes the sessions
    /// whose logs are noted. Returns whether there were any.
    pub(super) fn complete_forget(&self) -> Result<bool, StoreError> {
        // A list that cannot be read is reported by the calls that need it.
        let Ok(forgotten) = self.forgotten_logs() else { return Ok(false) };
        let is_known = |id: &str| self.before.session(id).is_some();
        if !forgotten.session_ids().any(is_known) {
            return Ok(false);
        }
        let mut left = HashSet::new();
        for source in self.before.read_sources(false)? {
            let Some(id) = &source.session_id else { continue };
            // Another log may have the id of a forgotten one.
            if let Some(log) = forgotten.log_of(id)
                && let Some(session) = self.before.session(id)
                && log == log_identity(session.row()?, &source)
            {
                left.insert(id.clone());
            }
        }
        if left.is_empty() {
            return Ok(false);
        }
        self.forget_sessions(&left, &HashMap::new())?;
        Ok(true)
    }

    /// Removes sessions with all their rows, labels and notes. Nothing keeps them from coming again.
    pub(super) fn remove_sessions(&self, sessions: &HashSet<String>) -> Result<(), StoreError> {
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let forgetting = Forgetting::new(&snapshot, sessions, false)?;
        // After a kill, a session without its log would wait for nothing; a log without its session is
        // removed by the next run.
        self.remove_rows(&forgetting)?;
        self.remove_archived(&|id| forgetting.has_texts_of(id))
    }

    /// Removes everything that the store has of these sessions, but for their archived logs.
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

    /// Lets the logs of forgotten sessions be read again, and returns the number of them. Sessions that
    /// lost texts with them are read again too.
    pub fn allow_forgotten(&self, sessions: &[String]) -> Result<usize, StoreError> {
        let mut forgotten = self.forgotten_logs()?;
        let mut records = forgotten.read_records(&self.dir)?.into_sessions();
        records.retain(|one| !sessions.contains(&one.session_id));
        let count = sessions.iter().filter(|id| forgotten.remove(id)).count();
        // First, so that a run that is killed here is completed by the same command.
        self.reread_blanked_sessions()?;
        forgotten.write(&self.dir, &self.lock, &records)?;
        Ok(count)
    }

    /// Lets the next ingest read the logs again of sessions that lost texts, and the next pull import
    /// those of a lake.
    fn reread_blanked_sessions(&self) -> Result<(), StoreError> {
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut logs = BTreeMap::new();
        for row in snapshot.read_sources(true)? {
            let session = row.session_id.as_deref().and_then(|id| snapshot.session(id));
            if let Some(session) = session
                && row.status == SourceStatus::Ok
                && session.replay_events > 0
                && is_log_of(session, &row)
            {
                logs.insert(session.session_id.clone(), row);
            }
        }
        let mut sink = WriterSink::new(self);
        for (id, mut source) in logs {
            let Some(at) = snapshot.session_position(&id) else { continue };
            if !has_forgotten_events(&snapshot, at)? {
                continue;
            }
            if source.path.starts_with(LAKE_PATH) {
                source.state = None;
            } else {
                source = without_line_state(source);
                require_reread(&mut source);
            }
            let session = snapshot.sessions()[at].row()?;
            let session = SessionRow { row_start: 0, row_count: 0, ..SessionRow::clone(session) };
            let session = Box::new(session);
            let source = Box::new(source);
            sink.checkpoint(vec![LogCheckpoint { session, source, problems: Vec::new() }])?;
        }
        sink.finish()
    }
}
