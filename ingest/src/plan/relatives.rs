//! Finds known logs that newly read ones affect. Invariant: the stored rows of logs that share
//! history do not depend on the order in which the logs arrived. Originals that grew are read
//! before their forks, and copies that were read before their originals are read again.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use schemas::Provider;
use schemas::session::{SessionRow, SourceRow, SourceStatus};

use super::gone::path_aside;
use super::work::{Change, Known, Work};
use crate::discover::presence::is_gone;
use crate::provider::format::{Claim, Reader};
use crate::provider::{format, is_beside_log};
use crate::source::candidate::{Candidate, Container};
use crate::source::container::Content;
use crate::source::fingerprint::Fingerprint;
use crate::text::names::short;

/// Ids, parents and first records of the logs that are read from their beginning.
pub(crate) struct NewLogs {
    natives: HashSet<(Provider, String)>,
    parents: HashSet<(Provider, String)>,
    records: HashSet<(Provider, u64)>,
}

impl NewLogs {
    pub(crate) fn of(works: &[Work]) -> Self {
        let from_start = || works.iter().filter(|work| work.change != Change::Grown);
        let ids = from_start().map(|work| (work.claim.provider, work.claim.native_id.clone()));
        let parents =
            from_start().filter_map(|work| Some((work.claim.provider, work.claim.parent.clone()?)));
        let records =
            from_start().filter_map(|work| Some((work.claim.provider, work.claim.first_record?)));
        Self { natives: ids.collect(), parents: parents.collect(), records: records.collect() }
    }

    /// Returns whether a known log may be the original or a copy of one of the new logs.
    pub(crate) fn concern(&self, row: &SourceRow, session: &SessionRow) -> bool {
        let Some(provider) = row.provider else { return false };
        let key = |id: &String| (provider, id.clone());
        let has = |set: &HashSet<(Provider, String)>, id: &Option<String>| {
            id.as_ref().is_some_and(|id| set.contains(&key(id)))
        };
        let first = row.first_record.map(i64::cast_unsigned);
        let begins_alike = first.is_some_and(|first| self.records.contains(&(provider, first)));
        let waits = || {
            let parent = session.parent_session_id.as_ref();
            has(&self.natives, &session.parent_session_id)
                && parent.is_some_and(|parent| !recorded(row).contains(&parent.as_str()))
        };
        let is_original = || !format(provider).unique_ids && has(&self.parents, &session.native_id);
        begins_alike || has(&self.natives, &session.native_id) || is_original() || waits()
    }

    /// Returns the known logs that may be originals or copies of the new logs, or copies of logs
    /// that grew, sorted by path. Logs in `works` are left out, because they are planned already.
    pub(crate) fn relatives<'k>(&self, works: &[Work], known: &'k Known) -> Vec<&'k SourceRow> {
        let planned: HashSet<&str> = works.iter().map(|work| work.session_id.as_str()).collect();
        let grown = works.iter().filter(|work| work.change == Change::Grown);
        let grown: HashMap<&str, &Work> =
            grown.map(|work| (work.session_id.as_str(), work)).collect();
        let is_copy = |row: &SourceRow, session: &SessionRow| {
            let ancestors = recorded(row);
            let mut originals = ancestors.iter().filter_map(|id| grown.get(id));
            // Without unique ids, only a log of the same session counts as a copy; the others are
            // its children.
            originals.any(|work| {
                format(work.claim.provider).unique_ids
                    || session.native_id.as_deref() == Some(short(&work.claim.native_id))
            })
        };
        let is_relative = |row: &&SourceRow| {
            let session = known.session_of(row);
            let session = session.filter(|session| !planned.contains(&*session.session_id));
            session.is_some_and(|session| self.concern(row, session) || is_copy(row, session))
        };
        let mut rows: Vec<_> = known.sources.values().filter(is_relative).collect();
        rows.sort_by(|a, b| a.path.cmp(&b.path));
        rows
    }
}

/// Returns the ids of the sessions that a log was found to repeat when it was read.
pub(crate) fn recorded(row: &SourceRow) -> Vec<&str> {
    row.ancestors.iter().flat_map(|list| list.split(' ')).collect()
}

/// Schedules logs that turn out to be copies of other sessions than before for reading again.
/// Unchanged logs stay in `works` only if an original of theirs is read: the worker then checks
/// whether the original had been behind its copies.
pub(crate) fn settle(works: &mut Vec<Work>) {
    for work in works.iter_mut() {
        let known = matches!(work.change, Change::Same | Change::Grown);
        if known && has_other_ancestors(work) {
            work.change = Change::Rewritten;
        }
    }
    let stays = |work: &Work| match work.change {
        Change::Same => true,
        Change::Gone => !has_other_ancestors(work),
        Change::New | Change::Grown | Change::Rewritten => false,
    };
    let read = works.iter().filter(|work| !stays(work));
    let read: HashSet<String> = read.map(|work| work.session_id.clone()).collect();
    works.retain(|work| !stays(work) || work.ancestors.iter().any(|id| read.contains(id)));
}

/// Returns whether a log repeats other sessions than those found when it was read.
pub(crate) fn has_other_ancestors(work: &Work) -> bool {
    work.source.as_ref().is_some_and(|row| recorded(row) != work.ancestors)
}

/// Returns the work for a relative whose log is gone. `row` is the future row of its file. `None`
/// if rows of the session were lost by damage; those sessions are left alone.
pub(crate) fn left_behind(row: &SourceRow, known: &Known) -> Option<Work> {
    let session = known.sessions.get(row.session_id.as_ref()?).filter(|_| row.modified_us >= 0)?;
    let claim = claim_of(row, session)?;
    let file = Candidate {
        path: row.path.clone().into(),
        size: row.size.cast_unsigned(),
        modified_us: row.modified_us,
        container: Container::Plain,
    };
    Some(Work {
        file,
        change: Change::Gone,
        session_id: session.session_id.clone(),
        parent_session_id: None,
        relation: claim.relation,
        claim,
        ancestors: Vec::new(),
        reason: None,
        source: Some(Box::new(row.clone())),
        session: Some(Arc::clone(session)),
    })
}

/// Returns what a log said about itself when it was read.
pub(crate) fn claim_of(row: &SourceRow, session: &SessionRow) -> Option<Claim> {
    Some(Claim {
        provider: row.provider?,
        native_id: session.native_id.clone()?,
        agent_id: session.agent_id.clone(),
        parent: session.parent_session_id.clone(),
        relation: session.relation.as_ref().and_then(|relation| relation.parse().ok()),
        first_record: row.first_record.map(i64::cast_unsigned),
    })
}

/// Known logs by native id, to find the log that a new file continues.
#[derive(Default)]
pub(crate) struct MovedLogs<'k> {
    by_native: HashMap<(Provider, String), Vec<(&'k SourceRow, &'k SessionRow)>>,
    /// Ids of sessions whose file is gone or was overwritten with other content.
    left: HashSet<String>,
}

impl<'k> MovedLogs<'k> {
    /// Collects the known logs that are not in `works` and have not come back in `settled`.
    pub(crate) fn of(known: &'k Known, works: &[Work], settled: &[SourceRow]) -> Self {
        let mut there: HashSet<&str> = works.iter().map(|work| work.session_id.as_str()).collect();
        let mut left = HashSet::new();
        for row in settled {
            match (row.status, &row.session_id) {
                (SourceStatus::Ok, Some(id)) => drop(there.insert(id)),
                (SourceStatus::Gone, Some(id)) => drop(left.insert(id.clone())),
                _ => {}
            }
        }
        let mut by_native: HashMap<_, Vec<_>> = HashMap::new();
        for row in known.sources.values() {
            let session = known.session_of(row);
            let session = session.filter(|session| !there.contains(&*session.session_id));
            if let Some((provider, session)) = row.provider.zip(session)
                && let Some(native) = session.native_id.clone()
            {
                by_native.entry((provider, native)).or_default().push((row, session.as_ref()));
            }
        }
        by_native.values_mut().for_each(|rows| rows.sort_by(|a, b| a.0.path.cmp(&b.0.path)));
        Self { by_native, left }
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
    pub(crate) fn take(
        &mut self,
        file: &Candidate,
        claim: &Claim,
    ) -> io::Result<Option<(&'k SourceRow, bool)>> {
        let key = (claim.provider, short(&claim.native_id).to_owned());
        let Some(rows) = self.by_native.get_mut(&key) else { return Ok(None) };
        let mut best: Option<(bool, i64, usize)> = None;
        for (at, (row, session)) in rows.iter().enumerate() {
            if session.agent_id.as_deref() != claim.agent_id.as_deref().map(short) {
                continue;
            }
            // Content that a document no longer holds is kept. A shorter log of lines is an older
            // state.
            let is_document = matches!(format(claim.provider).reader, Reader::Document(_));
            let as_long = is_document || file.size >= row.consumed.cast_unsigned();
            let replaced = is_beside_log(row.path.as_ref())
                || as_long && row.path == path_aside(&file.key(), &session.session_id);
            let gone = row.status == SourceStatus::Gone
                || self.left.contains(&session.session_id)
                || is_gone(&row.path);
            let longest = best.is_none_or(|(same, read, _)| !same || row.consumed > read);
            let same = gone && longest && Fingerprint::matches(&mut Content::open(file)?, row)?;
            if same || replaced && best.is_none() {
                best = Some((same, row.consumed, at));
            }
        }
        Ok(best.map(|(same, _, at)| (rows.remove(at).0, same)))
    }
}
