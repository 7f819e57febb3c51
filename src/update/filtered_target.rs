//! Drops the rows of new logs that are left out. What excludes them, such as their project, is known
//! only once they are decoded.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use ingest::plan::excluded::{LogFacts, LogFilter as _, excluded_row, log_identity};
use ingest::run::report::{ContinuedSession, ExcludedLog, IngestReport};
use ingest::run::{LogCheckpoint, Sink, Target};
use ingest::stream::batch::{SessionRows, rows_by_session};
use ingest::stream::forgotten::ForgottenRecords;
use schemas::session::{EventRow, SessionRow, SourceRow};

use super::log_rules::LogRules;

/// The logs that were decoded and left out in a run.
#[derive(Debug, Default)]
pub(super) struct ExcludedLogs {
    logs: Vec<ExcludedLog>,
    events: u64,
    /// The number of logs and events by provider.
    by_provider: BTreeMap<String, (u64, u64)>,
    /// The logs that have copies of forgotten records, by their sessions.
    continued: BTreeMap<String, ContinuedSession>,
}

/// The store, for a run that leaves out logs.
pub(super) struct FilteredTarget<'a, T> {
    target: &'a T,
    rules: &'a LogRules,
    /// The sessions that the store had before. Their rows are never dropped, because an excluded
    /// one is not read at all.
    known: HashSet<String>,
    excluded: Mutex<ExcludedLogs>,
}

/// Writes the rows of one worker that are not dropped.
pub(super) struct FilteredSink<'a, T: Target> {
    target: &'a FilteredTarget<'a, T>,
    sink: T::Sink,
    /// The rows since the last checkpoint.
    pending: Option<RecordBatch>,
    /// The new sessions with rows that were written and whose log was not read to its end at that
    /// time. All their later rows are written too.
    begun: HashSet<String>,
}

impl<'a, T: Target> FilteredTarget<'a, T> {
    pub(super) fn new(target: &'a T, rules: &'a LogRules, known: HashSet<String>) -> Self {
        Self { target, rules, known, excluded: Mutex::default() }
    }

    fn lock_excluded(&self) -> MutexGuard<'_, ExcludedLogs> {
        self.excluded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the rules leave out a session that the store did not have before.
    fn leaves_out(&self, session: &SessionRow, source: &SourceRow) -> bool {
        let has_forgotten = self.rules.has_forgotten();
        let identity = if has_forgotten { log_identity(session, source) } else { String::new() };
        self.rules.is_excluded(&LogFacts {
            path: &source.path,
            provider: Some(session.provider),
            project: session.cwd.as_deref(),
            identity: Some(&identity),
            copy_of: self.copied_sessions(&session.session_id).as_slice(),
        })
    }

    /// Returns the forgotten sessions of which the log of a session is nothing but a copy.
    fn copied_sessions(&self, id: &str) -> Vec<String> {
        let excluded = self.lock_excluded();
        let copied = excluded.continued.get(id).filter(|found| found.is_whole);
        copied.map(|found| found.forgotten_sessions.clone()).unwrap_or_default()
    }

    /// Returns the logs that were left out.
    pub(super) fn into_excluded(self) -> ExcludedLogs {
        self.excluded.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExcludedLogs {
    /// Counts the logs as left out in the report of a run, which counted them as read.
    pub(super) fn correct_report(self, report: &mut IngestReport) {
        let logs = self.logs.len() as u64;
        report.files_excluded += logs;
        report.files_new = report.files_new.saturating_sub(logs);
        report.sessions = report.sessions.saturating_sub(logs);
        report.events = report.events.saturating_sub(self.events);
        for (name, (files, events)) in &self.by_provider {
            if let Some(numbers) = report.by_provider.get_mut(name) {
                numbers.files = numbers.files.saturating_sub(*files);
                numbers.events = numbers.events.saturating_sub(*events);
            }
        }
        report.by_provider.retain(|_, numbers| numbers.files > 0);
        report.excluded_logs.extend(self.logs);
        report.continued.extend(self.continued.into_values());
    }
}

impl<'a, T: Target> Target for &'a FilteredTarget<'a, T> {
    type Error = T::Error;
    type Sink = FilteredSink<'a, T>;

    fn sink(&self) -> Result<FilteredSink<'a, T>, T::Error> {
        let sink = self.target.sink()?;
        Ok(FilteredSink { target: self, sink, pending: None, begun: HashSet::new() })
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, T::Error> {
        self.target.record_hashes(session_id)
    }

    fn state(&self, path: &str) -> Result<Option<String>, T::Error> {
        self.target.state(path)
    }

    fn is_left_out(&self, session: &SessionRow, source: &SourceRow) -> bool {
        !self.known.contains(&session.session_id) && self.leaves_out(session, source)
    }

    fn events(&self, session_id: &str, ranges: &[Range<i32>]) -> Result<Vec<EventRow>, T::Error> {
        self.target.events(session_id, ranges)
    }

    fn forgotten_records(&self) -> Option<&ForgottenRecords> {
        self.rules.forgotten_records()
    }

    fn note_forgotten_copies(&self, found: ContinuedSession) {
        self.lock_excluded().continued.insert(found.session_id.clone(), found);
    }
}

impl<T: Target> FilteredSink<'_, T> {
    /// Returns whether the rows of a session are dropped.
    fn is_dropped(&self, session: &SessionRow, source: &SourceRow) -> bool {
        let id = &session.session_id;
        // The worker asked about an earlier version before it wrote the rows.
        if id.is_empty()
            || session.is_earlier_version()
            || self.target.known.contains(id)
            || self.begun.contains(id)
        {
            return false;
        }
        self.target.leaves_out(session, source)
    }

    /// Writes the rows of a batch except those of the sessions in `dropped`. `sessions` are those of
    /// the batch.
    fn write_rows(
        &mut self,
        batch: &RecordBatch,
        sessions: &[SessionRows<'_>],
        dropped: &HashSet<String>,
    ) -> Result<(), T::Error> {
        for SessionRows { session_id, rows } in sessions {
            if !dropped.contains(*session_id) {
                self.sink.events(&batch.slice(rows.start, rows.len()))?;
            }
        }
        Ok(())
    }

    /// Counts rows that are dropped, and their log at its end.
    fn count_dropped(&self, session: &SessionRow, source: &SourceRow, events: u64) {
        let mut excluded = self.target.lock_excluded();
        let is_at_end = source.size >= 0;
        excluded.events += events;
        let numbers = excluded.by_provider.entry(session.provider.to_string()).or_default();
        numbers.0 += u64::from(is_at_end);
        numbers.1 += events;
        if is_at_end {
            excluded.continued.remove(&session.session_id);
            let project = session.cwd.clone();
            excluded.logs.push(ExcludedLog { path: source.path.clone(), project });
        }
    }
}

impl<T: Target> Sink for FilteredSink<'_, T> {
    type Error = T::Error;

    fn segment(&mut self) -> Result<i64, T::Error> {
        self.sink.segment()
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), T::Error> {
        if let Some(earlier) = self.pending.replace(batch.clone()) {
            self.sink.events(&earlier)?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, mut logs: Vec<LogCheckpoint>) -> Result<(), T::Error> {
        let batch = self.pending.take();
        // Only needed if a log is left out.
        let sessions = LazyCell::new(|| batch.as_ref().map_or(Vec::new(), rows_by_session));
        let row_counts = LazyCell::new(|| {
            let counts = sessions.iter().map(|session| (session.session_id, session.rows.len()));
            counts.collect::<HashMap<&str, usize>>()
        });
        let mut dropped: HashSet<String> = HashSet::new();
        for log in &mut logs {
            if self.is_dropped(&log.session, &log.source) {
                let session = std::mem::take(&mut *log.session);
                let events = row_counts.get(session.session_id.as_str()).copied().unwrap_or(0);
                let copy_of = self.target.copied_sessions(&session.session_id);
                self.count_dropped(&session, &log.source, events as u64);
                *log.source = excluded_row(&session, &log.source, &copy_of);
                log.problems.clear();
                dropped.insert(session.session_id);
            } else if log.source.size < 0 && !self.begun.contains(&log.session.session_id) {
                self.begun.insert(log.session.session_id.clone());
            }
        }

        match &batch {
            Some(batch) if dropped.is_empty() => self.sink.events(batch)?,
            Some(batch) => self.write_rows(batch, &sessions, &dropped)?,
            None => {}
        }
        self.sink.checkpoint(logs)
    }

    fn finish(self) -> Result<(), T::Error> {
        self.sink.finish()
    }
}
