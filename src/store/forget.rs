//! Forgets sessions: writes every segment from the first that names one of them again, without
//! their rows, and removes the old files at once.
//!
//! The segments after the first one are written again too, because the order of segment numbers
//! shows which row of a session is the latest.

use std::collections::{HashMap, HashSet};

use ingest::plan::excluded::{excluded_row, log_identity};
use schemas::Timestamp;
use schemas::session::{SessionRow, SourceRow};

use super::compact::parse_problem_row;
use super::error::StoreError;
use super::folder;
use super::forgotten::{ForgottenLog, ForgottenLogs};
use super::labels::LabelBook;
use super::manifest::SegmentEntry;
use super::segment::event_reader::{EventReader, RowSpan};
use super::segment::open_segment::Segment;
use super::segment::segment_writer::FinishedSegment;
use super::segment::small_files::read_table;
use super::snapshot::Snapshot;
use super::writer::StoreWriter;

/// Rows copied at a time.
const BATCH_ROWS: usize = 4096;

/// What is forgotten.
struct Forgetting<'s> {
    snapshot: &'s Snapshot,
    sessions: &'s HashSet<String>,
    /// The latest row of every file of these sessions, by path.
    sources: HashMap<String, SourceRow>,
}

impl Forgetting<'_> {
    /// Returns whether a segment has rows that are forgotten, in force or superseded.
    fn is_in(&self, segment: &Segment, sources: &[SourceRow]) -> bool {
        segment.sessions().iter().any(|row| self.sessions.contains(&row.session_id))
            || sources.iter().any(|row| self.includes_source(row))
    }

    fn includes_source(&self, row: &SourceRow) -> bool {
        self.sources.contains_key(&row.path)
            || row.session_id.as_ref().is_some_and(|id| self.sessions.contains(id))
    }

    /// Returns the row that replaces the row of a file; `None` if there is to be none.
    fn replace_source(&self, row: SourceRow) -> Option<SourceRow> {
        if !self.includes_source(&row) {
            return Some(row);
        }
        let latest = self.sources.get(&row.path).filter(|latest| latest.segment == row.segment)?;
        let session = self.snapshot.session(latest.session_id.as_deref()?)?;
        Some(excluded_row(session, latest))
    }

    /// Returns whether the row of a session is written again. The latest row of a session always
    /// is, because it supersedes those of earlier segments.
    fn keeps_session(&self, row: &SessionRow) -> bool {
        let latest = self.snapshot.session(&row.session_id);
        let is_latest = latest.is_some_and(|latest| latest.segment == row.segment);
        !self.sessions.contains(&row.session_id) && (is_latest || !self.snapshot.is_superseded(row))
    }

    /// Returns whether a problem is about a log that is forgotten.
    fn includes_problem(&self, path: &str) -> bool {
        let mut forgotten = self.sessions.iter().filter_map(|id| self.snapshot.session(id));
        self.sources.contains_key(path) || forgotten.any(|session| session.source_path == path)
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
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut sources = HashMap::new();
        for row in snapshot.read_sources(false)? {
            if row.session_id.as_ref().is_some_and(|id| sessions.contains(id)) {
                sources.insert(row.path.clone(), row);
            }
        }
        let forgetting = Forgetting { snapshot: &snapshot, sessions, sources };

        // First, so that a run that is killed here leaves no log to be read again.
        self.remember_forgotten(&forgetting)?;
        LabelBook::update(&self.dir, |labels| {
            for id in sessions {
                labels.remove(id);
            }
        })?;
        self.rewrite_segments(&forgetting)
    }

    /// Lets the logs of forgotten sessions be read again, and returns the number of them.
    pub fn allow_forgotten(&self, sessions: &[String]) -> Result<usize, StoreError> {
        let mut forgotten = self.forgotten_logs()?;
        let count = sessions.iter().filter(|id| forgotten.remove(id)).count();
        self.lock.check_not_replaced()?;
        forgotten.write(&self.dir)?;
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
        self.lock.check_not_replaced()?;
        forgotten.write(&self.dir)
    }

    /// Writes the segments again from the first one on that has forgotten rows.
    fn rewrite_segments(&self, forgetting: &Forgetting<'_>) -> Result<(), StoreError> {
        let mut new = Vec::new();
        let mut old = Vec::new();
        for segment in forgetting.snapshot.segments() {
            let sources = read_table::<SourceRow>(&self.dir, &segment.entry, "sources", None)?;
            if old.is_empty() && !forgetting.is_in(segment, &sources) {
                continue;
            }
            old.push(segment.entry.number);
            new.extend(self.rewrite_segment(segment, sources, forgetting)?);
        }
        self.commit_rewritten(new, &old)
    }

    /// Writes the remaining rows of a segment into a new one; `None` if there are none.
    fn rewrite_segment(
        &self,
        segment: &Segment,
        sources: Vec<SourceRow>,
        forgetting: &Forgetting<'_>,
    ) -> Result<Option<FinishedSegment>, StoreError> {
        let mut writer = self.begin_segment();
        let sessions = forgetting.snapshot.sessions();
        for span in &segment.spans {
            let session = sessions.get(span.session);
            if session.is_none_or(|row| forgetting.sessions.contains(&row.session_id)) {
                continue;
            }
            let rows = RowSpan { start: span.start, count: span.count };
            let mut batches = EventReader::open(segment, &[rows], &[], BATCH_ROWS)?;
            while let Some(batch) = batches.next_batch()? {
                writer.push_events(&batch)?;
            }
        }
        for row in segment.sessions() {
            if forgetting.keeps_session(row) {
                writer.record_session(SessionRow::clone(row));
            }
        }
        for row in sources {
            if let Some(row) = forgetting.replace_source(row) {
                writer.record_source(row);
            }
        }
        let mut problems = forgetting.snapshot.read_problems_of(std::slice::from_ref(segment))?;
        problems.retain(|row| !forgetting.includes_problem(&row.path));
        writer.push_problems(problems.into_iter().filter_map(parse_problem_row).collect());
        writer.finish()
    }

    /// Replaces the `old` segments by `new` ones, and removes the files of all segments that are not
    /// in force. Readers of earlier generations fail from now on, and succeed when they try again.
    fn commit_rewritten(&self, new: Vec<FinishedSegment>, old: &[i64]) -> Result<(), StoreError> {
        let mut removed = old.to_vec();
        self.commit(new, |next| {
            next.segments.retain(|segment| !old.contains(&segment.number));
            removed.extend(next.retired.drain(..).map(|retired| retired.number));
        })?;

        tracing::info!(segments = removed.len(), "forgot");
        folder::remove_leftovers(&self.dir, &self.current_manifest());
        folder::remove_damaged(&self.dir)?;
        for number in removed {
            let path = SegmentEntry::folder_path(&self.dir, number);
            if path.exists() {
                let busy = std::io::Error::from(std::io::ErrorKind::ResourceBusy);
                return Err(StoreError::Io { path, source: busy });
            }
        }
        Ok(())
    }
}
