//! Finds known logs that newly read ones affect.
//!
//! Invariant: the stored rows of logs that share history do not depend on the order in which the
//! logs arrived. Originals that grew are read before their forks, and copies that were read before
//! their originals are read again.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use schemas::Provider;
use schemas::session::{SessionRow, SourceRow, SourceStatus};

use super::compare::is_unrecognised;
use super::gone::path_aside;
use super::ids::safe_session_id;
use super::planned_log::{Known, LogChange, PlannedLog};
use crate::discover::presence::is_gone;
use crate::provider::format::SessionClaim;
use crate::provider::{base_of, format_of, is_sidecar};
use crate::source::candidate::{Container, LogCandidate};
use crate::source::container::Content;
use crate::source::fingerprint::Fingerprint;
use crate::text::names::truncate_name;

/// Ids, parents and first records of the logs that are read from their beginning.
#[derive(Default)]
pub(crate) struct NewLogs {
    native_ids: HashSet<(Provider, String)>,
    /// Ids of the sessions that have a log of their own agent.
    native_sessions: HashSet<String>,
    /// Native ids of the parents.
    parent_ids: HashSet<(Provider, String)>,
    /// Identities of first records and of first responses.
    first_records: HashSet<(Provider, u64)>,
}

impl NewLogs {
    /// Collects what the logs in `logs` claim, except those that only grew.
    pub(crate) fn from_logs(logs: &[PlannedLog]) -> Self {
        let mut new_logs = Self::default();
        for log in logs {
            if log.change == LogChange::Grown {
                continue;
            }
            let claim = &log.claim;
            let base = base_of(claim.provider);
            new_logs.native_ids.insert((base, claim.native_id.clone()));
            if !format_of(claim.provider).quirks.copies_other_agents {
                new_logs.native_sessions.insert(log.session_id.clone());
            }
            // A child whose parent was missing names the id that the parent was going to get.
            if let Cow::Owned(id) = safe_session_id(&claim.native_id) {
                new_logs.native_ids.insert((base, id));
            }
            if let Some(parent) = &claim.parent {
                new_logs.parent_ids.insert((base, parent.clone()));
            }
            for record in [claim.first_record, claim.first_response].into_iter().flatten() {
                new_logs.first_records.insert((base, record));
            }
        }
        new_logs
    }

    /// Returns whether a known log may be the original or a copy of one of the new logs.
    pub(crate) fn is_relative(&self, row: &SourceRow, session: &SessionRow) -> bool {
        let Some(provider) = row.provider.map(base_of) else { return false };
        let mut records = [row.first_record, row.first_response].into_iter().flatten();
        if records.any(|hash| self.first_records.contains(&(provider, hash.cast_unsigned()))) {
            return true;
        }

        if let Some(native_id) = &session.native_id {
            let id = (provider, native_id.clone());
            let is_parent = !format_of(provider).has_unique_ids && self.parent_ids.contains(&id);
            if is_parent || self.native_ids.contains(&id) {
                return true;
            }
            let may_be_original =
                |other: &Provider| self.native_ids.contains(&(base_of(*other), native_id.clone()));
            if format_of(provider).quirks.copies_other_agents
                && (self.native_sessions.contains(native_id)
                    || Provider::ALL.iter().any(may_be_original))
            {
                return true;
            }
        }

        // The parent that the log names is one of the new logs, and was missing when it was read.
        let Some(parent) = &session.parent_session_id else { return false };
        self.native_ids.contains(&(provider, parent.clone()))
            && !recorded_ancestors(row).contains(&parent.as_str())
    }

    /// Returns the known logs that may be originals or copies of the new logs, or copies of logs
    /// that grew, and the earlier versions of all these and of the planned ones, sorted by path. Logs
    /// in `logs` are left out, because they are planned already.
    pub(crate) fn related_logs<'k>(
        &self,
        logs: &[PlannedLog],
        known: &'k Known,
    ) -> Vec<&'k SourceRow> {
        let planned: HashMap<&str, &PlannedLog> =
            logs.iter().map(|log| (log.session_id.as_str(), log)).collect();
        let mut relatives = Vec::new();
        let mut earlier_versions = Vec::new();
        let mut sessions: HashSet<&str> = planned.keys().copied().collect();
        for row in known.sources.values() {
            let Some(session) = known.session_of(row) else { continue };
            if planned.contains_key(session.session_id.as_str()) {
                continue;
            }
            if session.is_earlier_version() {
                earlier_versions.push((row, session));
            } else if self.is_relative(row, session) || is_copy_of_grown(row, session, &planned) {
                relatives.push(row);
                sessions.insert(&session.session_id);
            }
        }
        // What the log of a session has again no longer counts in its earlier versions.
        for (row, session) in earlier_versions {
            if session.parent_session_id.as_deref().is_some_and(|id| sessions.contains(id)) {
                relatives.push(row);
            }
        }
        relatives.sort_by(|a, b| a.path.cmp(&b.path));
        relatives
    }
}

/// Returns whether a known log was read as a copy of a planned log that grew.
fn is_copy_of_grown(
    row: &SourceRow,
    session: &SessionRow,
    planned: &HashMap<&str, &PlannedLog>,
) -> bool {
    let ancestors = recorded_ancestors(row);
    let mut originals = ancestors.iter().filter_map(|id| planned.get(id));
    // Without unique ids, only a log of the same session counts as a copy; the others are its
    // children.
    originals.any(|log| {
        let is_same_session =
            session.native_id.as_deref() == Some(truncate_name(&log.claim.native_id));
        let is_copy =
            row.provider.is_some_and(|provider| format_of(provider).quirks.copies_other_agents);
        log.change == LogChange::Grown
            && (format_of(log.claim.provider).has_unique_ids || is_same_session || is_copy)
    })
}

/// Returns the ids of the sessions that a log was found to repeat when it was read.
pub(crate) fn recorded_ancestors(row: &SourceRow) -> Vec<&str> {
    row.ancestors.iter().flat_map(|list| list.split(' ')).collect()
}

/// Schedules logs that turn out to be copies of other sessions than before for reading again.
/// Unchanged logs stay in `logs` only if an original of theirs is read: the worker then checks
/// whether the original had been behind its copies.
pub(crate) fn schedule_rereads(logs: &mut Vec<PlannedLog>) {
    for log in logs.iter_mut() {
        let is_known = matches!(log.change, LogChange::Same | LogChange::Grown);
        if is_known && has_changed_ancestors(log) {
            log.change = LogChange::Rewritten;
        }
    }

    if logs.iter().all(must_be_read) {
        return;
    }
    let read = logs.iter().filter(|log| must_be_read(log));
    let read_ids: HashSet<String> = read.map(|log| log.session_id.clone()).collect();
    logs.retain(|log| must_be_read(log) || log.ancestors.iter().any(|id| read_ids.contains(id)));
}

/// Returns whether a log must be read whatever happens to its originals.
fn must_be_read(log: &PlannedLog) -> bool {
    match log.change {
        LogChange::New | LogChange::Grown | LogChange::Rewritten => true,
        LogChange::Gone => has_changed_ancestors(log),
        LogChange::Same => false,
    }
}

/// Returns whether a log repeats other sessions than those found when it was read.
pub(crate) fn has_changed_ancestors(log: &PlannedLog) -> bool {
    log.source.as_ref().is_some_and(|row| recorded_ancestors(row) != log.ancestors)
}

/// Returns what is to be done with a relative whose log is gone, or no longer recognised. `row` is the
/// future row of its file. `None`
/// if the file has no known session, or if the store does not say which decoder read it or which id
/// the log gave. Also `None` if rows of the session were lost by damage, which a negative
/// modification time marks; those sessions are left alone.
pub(crate) fn plan_gone_log(row: &SourceRow, known: &Known) -> Option<PlannedLog> {
    if row.modified_us < 0 {
        return None;
    }
    let session = known.sessions.get(row.session_id.as_ref()?)?;
    let claim = recorded_claim(row, session)?;
    let file = LogCandidate {
        path: row.path.clone().into(),
        size: row.size.cast_unsigned(),
        modified_us: row.modified_us,
        container: Container::Plain,
    };
    Some(PlannedLog {
        source: Some(Box::new(row.clone())),
        session: Some(Arc::clone(session)),
        ..PlannedLog::new(file, LogChange::Gone, claim, session.session_id.clone())
    })
}

/// Returns what a log said about itself when it was read. `None` if the store does not say which
/// decoder read it or which id the log gave.
pub(crate) fn recorded_claim(row: &SourceRow, session: &SessionRow) -> Option<SessionClaim> {
    Some(SessionClaim {
        agent_id: session.agent_id.clone(),
        parent: session.parent_session_id.clone(),
        relation: session.relation.as_ref().and_then(|relation| relation.parse().ok()),
        first_record: row.first_record.map(i64::cast_unsigned),
        first_response: row.first_response.map(i64::cast_unsigned),
        ..SessionClaim::new(row.provider?, session.native_id.clone()?)
    })
}

/// Known logs by native id, to find the log that a new file continues.
#[derive(Default)]
pub(crate) struct MovedLogs<'k> {
    by_native_id: HashMap<(Provider, String), Vec<(&'k SourceRow, &'k SessionRow)>>,
    /// Ids of sessions whose file is gone or was overwritten with other content.
    gone_sessions: HashSet<String>,
}

impl<'k> MovedLogs<'k> {
    /// Collects the known logs that are not in `logs` and have not come back in `settled`.
    pub(crate) fn new(known: &'k Known, logs: &[PlannedLog], settled: &[SourceRow]) -> Self {
        let mut moved_logs = Self::default();
        let mut sessions_in_place: HashSet<&str> =
            logs.iter().map(|log| log.session_id.as_str()).collect();
        for row in settled {
            let Some(session_id) = &row.session_id else { continue };
            if row.status == SourceStatus::Ok {
                sessions_in_place.insert(session_id);
            } else if row.status == SourceStatus::Gone || is_unrecognised(row) {
                moved_logs.gone_sessions.insert(session_id.clone());
            }
        }

        for row in known.sources.values() {
            let Some(session) = known.session_of(row) else { continue };
            if session.is_earlier_version()
                || sessions_in_place.contains(session.session_id.as_str())
            {
                continue;
            }
            if let Some(provider) = row.provider
                && let Some(native_id) = session.native_id.clone()
            {
                let logs = moved_logs.by_native_id.entry((provider, native_id)).or_default();
                logs.push((row, session.as_ref()));
            }
        }
        for logs in moved_logs.by_native_id.values_mut() {
            logs.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        }
        moved_logs
    }

    /// Takes the known log that a new file continues under another name. It has the same id and
    /// either:
    ///
    /// - the same beginning, and is gone from its former path. Of several such logs, for example a
    ///   log and its copy, the one with the most bytes read is taken; or
    /// - it is next to a log with more content now, or was overwritten in this very file.
    ///
    /// Each log is given out once. The flag is true if the file begins with the content read of
    /// that log.
    pub(crate) fn take_match(
        &mut self,
        file: &LogCandidate,
        claim: &SessionClaim,
    ) -> io::Result<Option<(&'k SourceRow, bool)>> {
        if self.by_native_id.is_empty() {
            return Ok(None);
        }
        let key = (claim.provider, truncate_name(&claim.native_id).to_owned());
        let Some(logs) = self.by_native_id.get_mut(&key) else { return Ok(None) };
        let agent_id = claim.agent_id.as_deref().map(truncate_name);

        let mut moved: Option<usize> = None;
        let mut replaced: Option<usize> = None;
        for (at, (row, session)) in logs.iter().enumerate() {
            if session.agent_id.as_deref() != agent_id {
                continue;
            }
            let has_gone = row.status == SourceStatus::Gone
                || is_unrecognised(row)
                || self.gone_sessions.contains(&session.session_id)
                || is_gone(&row.path);
            let is_longest = moved.is_none_or(|other| row.consumed > logs[other].0.consumed);
            if has_gone && is_longest && Fingerprint::is_unchanged(&mut Content::open(file)?, row)?
            {
                moved = Some(at);
            } else if replaced.is_none() && is_replaced(row, session, file) {
                replaced = Some(at);
            }
        }

        let is_same = moved.is_some();
        Ok(moved.or(replaced).map(|at| (logs.remove(at).0, is_same)))
    }
}

/// Returns whether a known log is next to a log with more content now, or was overwritten by `file`.
fn is_replaced(row: &SourceRow, session: &SessionRow, file: &LogCandidate) -> bool {
    is_sidecar(row.path.as_ref()) || row.path == path_aside(&file.key(), &session.session_id)
}
