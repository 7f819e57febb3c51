//! Finds the sessions of other machines that logs of this machine continue, so that nothing counts twice.
//!
//! A log that may continue such a session is read once without being stored, and compared with it. If it
//! has all of it, the log takes the id of the session if it can, and the commit with the first rows of the
//! log takes those of the session out of force: its row becomes one without events, whose `live_from` no
//! segment reaches. Later the labels of the session go to the log, and its rows are removed. A run that is
//! killed in between is completed by the next one.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use ingest::plan::excluded::{claimed_identity, log_identity};
use ingest::plan::{Known, LogChange, Plan, PlannedLog, safe_session_id};
use ingest::provider::base_of;
use ingest::run::{LogCheckpoint, Sink, Target, run};
use schemas::session::{EventRow, SessionRow, SourceRow, SourceStatus};

use super::history::EventHistory;
use super::imported_from::ImportedFrom;
use super::keys::LAKE_PATH;
use crate::error::StoreError;
use crate::labels::LabelBook;
use crate::out_of_force::{OutOfForce, SessionsOutOfForce};
use crate::segment::session_summary::SessionSummary;
use crate::snapshot::Snapshot;
use crate::writer::{StoreWriter, is_log_of};

/// The `live_from` segment of a session without rows: no segment reaches it.
const NEVER: i64 = i64::MAX;

/// The sessions of one log, on this machine and from others.
#[derive(Debug, Clone, Default)]
pub struct LogCopies {
    /// Positions in the snapshot of the sessions of this machine, with the paths of their logs.
    pub local: Vec<(usize, String)>,
    /// Positions of the sessions of this machine whose log is gone.
    pub gone: Vec<usize>,
    /// Positions of the sessions of other machines.
    pub imported: Vec<usize>,
}

impl Snapshot {
    /// Returns the logs that both this machine and another one have, by their identities.
    ///
    /// # Errors
    /// Fails if the catalog cannot be read.
    pub fn logs_of_several_machines(&self) -> Result<HashMap<String, LogCopies>, StoreError> {
        let mut logs: HashMap<String, LogCopies> = HashMap::new();
        for (log, imported) in self.read_imported_logs()? {
            logs.insert(log, LogCopies { imported, ..LogCopies::default() });
        }
        if logs.is_empty() {
            return Ok(logs);
        }
        for source in &self.read_sources(false)? {
            let Some(at) = source.session_id.as_deref().and_then(|id| self.session_position(id))
            else {
                continue;
            };
            let session = &self.sessions()[at];
            let is_gone = source.status == SourceStatus::Gone;
            let is_own = (is_gone || source.status == SourceStatus::Ok)
                && session.origin.machine.is_none()
                && is_log_of(session, source);
            if is_own && let Some(copies) = logs.get_mut(&log_identity(session.row()?, source)) {
                if is_gone {
                    copies.gone.push(at);
                } else {
                    copies.local.push((at, source.path.clone()));
                }
            }
        }
        logs.retain(|_, copies| {
            let has_own = !copies.local.is_empty() || !copies.gone.is_empty();
            has_own && !copies.imported.is_empty()
        });
        Ok(logs)
    }

    /// Returns the positions of the sessions of other machines, by the identities of their logs.
    fn read_imported_logs(&self) -> Result<HashMap<String, Vec<usize>>, StoreError> {
        let mut logs: HashMap<String, Vec<usize>> = HashMap::new();
        if self.sessions().iter().all(|session| session.origin.machine.is_none()) {
            return Ok(logs);
        }
        for source in self.read_sources(true)? {
            let (Some(from), Some(id)) = (ImportedFrom::of_source(&source), &source.session_id)
            else {
                continue;
            };
            logs.entry(from.log).or_default().extend(self.session_position(id));
        }
        Ok(logs)
    }
}

/// A log that is about to be read and has all events of sessions of other machines.
pub struct ContinuingLog {
    /// The path of the log.
    path: String,
    /// Positions in the snapshot before the run of the sessions that it continues, and of its own if that
    /// was read as a copy of one of these.
    continued: Vec<usize>,
}

impl StoreWriter {
    /// Returns the logs of a plan that have all events of sessions of other machines, and removes from
    /// `known` what must not be known when these are planned again: the sessions that they continue, and
    /// their own if they were read as copies of these.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn find_continuing(
        &self,
        plan: &Plan,
        known: &mut Known,
    ) -> Result<Vec<ContinuingLog>, StoreError> {
        // Most logs begin like none of another machine.
        let mut first_records = HashSet::new();
        for row in &known.imported {
            first_records
                .extend(row.provider.map(|provider| (base_of(provider), row.first_record)));
        }
        let may_continue = |log: &&PlannedLog| {
            let first_record = log.claim.first_record.map(u64::cast_signed);
            !matches!(log.change, LogChange::Same | LogChange::Gone)
                && first_records.contains(&(base_of(log.claim.provider), first_record))
        };
        let logs: Vec<&PlannedLog> =
            plan.units.iter().flatten().filter(|log| may_continue(log)).collect();
        if logs.is_empty() {
            return Ok(Vec::new());
        }
        let imported = self.before.read_imported_logs()?;
        let mut found = Vec::new();
        for log in logs {
            let Some(others) = imported.get(&claimed_identity(&log.claim)) else { continue };
            let mut continued = find_contained(&self.before, log, others)?;
            let is_continued =
                |id: &str| continued.iter().any(|at| self.before.sessions()[*at].session_id == id);
            if let Some(row) = known.sources.get(&log.file.key())
                && let Some(own) = row.session_id.as_deref()
                && !continued.is_empty()
            {
                let ancestors = row.ancestors.as_deref().unwrap_or_default();
                let native = safe_session_id(&log.claim.native_id);
                let is_copy = ancestors.split(' ').any(is_continued);
                if is_copy || own != native && is_continued(&native) {
                    continued.extend(self.before.session_position(own));
                    known.sources.remove(&log.file.key());
                }
            }
            if !continued.is_empty() {
                found.push(ContinuingLog { path: log.file.key(), continued });
            }
        }
        for log in &found {
            for at in &log.continued {
                known.sessions.remove(&self.before.sessions()[*at].session_id);
            }
        }
        Ok(found)
    }

    /// Lets the sessions that these logs continue go out of force with the first rows of the logs.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn continue_sessions(&self, logs: &[ContinuingLog], plan: &Plan) -> Result<(), StoreError> {
        if logs.is_empty() {
            return Ok(());
        }
        let planned: HashMap<String, &PlannedLog> =
            plan.units.iter().flatten().map(|log| (log.file.key(), log)).collect();
        let mut sources: HashMap<String, SourceRow> = HashMap::new();
        for source in self.before.read_sources(false)? {
            if source.path.starts_with(LAKE_PATH)
                && let Some(id) = source.session_id.clone()
            {
                sources.insert(id, source);
            }
        }
        let mut rows = SessionsOutOfForce::new();
        for ContinuingLog { path, continued } in logs {
            let Some(log) = planned.get(path) else { continue };
            let rows = rows.entry(log.session_id.clone()).or_default();
            for at in continued {
                let session = &self.before.sessions()[*at];
                if session.session_id == log.session_id {
                    let source = sources.remove(session.id()).map(|source| SourceRow {
                        status: SourceStatus::Gone,
                        session_id: None,
                        state: None,
                        ..source
                    });
                    rows.extend(source.map(Box::new).map(OutOfForce::Source));
                } else {
                    let row = row_out_of_force(session, &log.session_id);
                    rows.push(OutOfForce::Row(Box::new(row)));
                }
            }
        }
        *self.out_of_force.lock().unwrap_or_else(PoisonError::into_inner) = rows;
        Ok(())
    }

    /// Removes the sessions that went out of force because a log of this machine continues them. Their
    /// labels go to the session of the log.
    ///
    /// # Errors
    /// Fails if the store cannot be read or written.
    pub fn settle_continued(&self) -> Result<(), StoreError> {
        let snapshot = self.take_snapshot()?;
        let mut continued = HashMap::new();
        for session in snapshot.sessions().iter().filter(|session| is_out_of_force(session)) {
            let by = session.parent_session_id.clone().unwrap_or_default();
            continued.insert(session.id().to_owned(), by);
        }
        if continued.is_empty() {
            return Ok(());
        }
        // First, so that a run that is killed here loses none.
        LabelBook::update(&self.dir, |book| {
            for (id, by) in &continued {
                book.add_labels_of(id, by);
            }
        })?;
        self.remove_imported(&continued.into_keys().collect())
    }

    /// Lets the next ingest read the logs again that were read as copies of these sessions.
    pub(super) fn reread_copies_of(&self, sessions: &HashSet<String>) -> Result<(), StoreError> {
        let mut copies = self.take_snapshot()?.read_sources(true)?;
        copies.retain(|source| {
            let mut ancestors = source.ancestors.iter().flat_map(|list| list.split(' '));
            let is_copy = ancestors.any(|id| sessions.contains(id));
            is_copy && source.status == SourceStatus::Ok && !source.path.starts_with(LAKE_PATH)
        });
        self.reread_logs(copies)
    }
}

/// Returns whether a session went out of force because a log of this machine continues it.
fn is_out_of_force(session: &SessionSummary) -> bool {
    session.live_from == NEVER && session.events == 0 && session.parent_session_id.is_some()
}

/// Returns the row with which a session goes out of force that the session `by` continues.
fn row_out_of_force(session: &SessionSummary, by: &str) -> SessionRow {
    SessionRow {
        session_id: session.session_id.clone(),
        provider: session.provider,
        // Not the path of a log, whose problems would be those of this session.
        source_path: format!("{}#{}", session.source_path, session.session_id),
        parent_session_id: Some(by.to_owned()),
        machine: session.origin.machine.clone(),
        source_gone: true,
        live_from: NEVER,
        ..SessionRow::default()
    }
}

/// Returns the positions of those of `others`, sessions of other machines with the same log, of which a log
/// that is about to be read has all events.
fn find_contained(
    snapshot: &Snapshot,
    log: &PlannedLog,
    others: &[usize],
) -> Result<Vec<usize>, StoreError> {
    let mut histories = Vec::with_capacity(others.len());
    for at in others {
        histories.push((*at, EventHistory::of_session(snapshot, *at)?));
    }
    if log.change == LogChange::Grown
        && let Some(at) = snapshot.session_position(&log.session_id)
    {
        // Histories that parted do not come together again.
        let own = EventHistory::of_session(snapshot, at)?;
        histories.retain(|(_, other)| other.contains(&own) || own.contains(other));
    }
    if histories.is_empty() {
        return Ok(Vec::new());
    }
    let own = read_history(log);
    histories.retain(|(_, other)| own.contains(other));
    Ok(histories.into_iter().map(|(at, _)| at).collect())
}

/// Reads the events of a log that is about to be read. Nothing is stored.
fn read_history(log: &PlannedLog) -> EventHistory {
    let log = PlannedLog {
        change: LogChange::New,
        ancestors: Vec::new(),
        is_whole_copy: false,
        source: None,
        session: None,
        ..log.clone()
    };
    let reader = HistoryReader::default();
    let plan = Plan { units: vec![vec![log]], ..Plan::default() };
    let Ok(_) = run(plan, &reader, None, &());
    std::mem::take(&mut *reader.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Takes the events of a log to compare them.
#[derive(Clone, Default)]
struct HistoryReader(Arc<Mutex<EventHistory>>);

impl Target for HistoryReader {
    type Error = Infallible;
    type Sink = Self;

    fn sink(&self) -> Result<Self, Infallible> {
        Ok(self.clone())
    }

    fn record_hashes(&self, _session_id: &str) -> Result<Vec<u64>, Infallible> {
        Ok(Vec::new())
    }

    fn state(&self, _path: &str) -> Result<Option<String>, Infallible> {
        Ok(None)
    }

    fn events(&self, _session: &str, _ranges: &[Range<i32>]) -> Result<Vec<EventRow>, Infallible> {
        Ok(Vec::new())
    }
}

impl Sink for HistoryReader {
    type Error = Infallible;

    fn segment(&mut self) -> Result<i64, Infallible> {
        Ok(NEVER)
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), Infallible> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).append(batch);
        Ok(())
    }

    fn checkpoint(&mut self, _logs: Vec<LogCheckpoint>) -> Result<(), Infallible> {
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}
