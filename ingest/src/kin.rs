//! Known logs that others, which come later, have to do with. What the store holds of a family must
//! not depend on the order in which its logs came: originals that grew are read before their forks,
//! and copies that were read before their originals are read anew.

use std::collections::{HashMap, HashSet};
use std::io;

use schemas::Provider;
use schemas::session::{SessionRow, SourceRow, SourceStatus};

use crate::checkpoint::Fingerprint;
use crate::container::{Container, Content};
use crate::discover::Candidate;
use crate::plan::{Change, Known, Work, path_aside, provider_of};
use crate::provider::{Claim, format, is_beside_log};
use crate::stream::short;

/// What the logs that are read from their beginning say of themselves.
pub(crate) struct News {
    natives: HashSet<(Provider, String)>,
    parents: HashSet<(Provider, String)>,
    records: HashSet<(Provider, u64)>,
}

impl News {
    pub(crate) fn of(works: &[Work]) -> Self {
        let from_start = || works.iter().filter(|work| work.change != Change::Grown);
        let ids = from_start().map(|work| (work.claim.provider, work.claim.native_id.clone()));
        let parents =
            from_start().filter_map(|work| Some((work.claim.provider, work.claim.parent.clone()?)));
        let records =
            from_start().filter_map(|work| Some((work.claim.provider, work.claim.first_record?)));
        Self { natives: ids.collect(), parents: parents.collect(), records: records.collect() }
    }

    /// Whether a known log may be the original or the copy of one of them.
    pub(crate) fn concern(&self, row: &SourceRow, session: &SessionRow) -> bool {
        let Some(provider) = provider_of(row) else { return false };
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

    /// The known logs that may be originals or copies of them, or copies of logs that grew, by path;
    /// `works` are planned anyway.
    pub(crate) fn relatives<'k>(&self, works: &[Work], known: &'k Known) -> Vec<&'k SourceRow> {
        let planned: HashSet<&str> = works.iter().map(|work| work.session_id.as_str()).collect();
        let grown = works.iter().filter(|work| work.change == Change::Grown);
        let grown: HashMap<&str, &Work> =
            grown.map(|work| (work.session_id.as_str(), work)).collect();
        let is_copy = |row: &SourceRow, session: &SessionRow| {
            let ancestors = recorded(row);
            let mut originals = ancestors.iter().filter_map(|id| grown.get(id));
            // Without ids only a log of the same session is one: the others are its children.
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

/// The sessions that a log was taken to repeat when it was read.
pub(crate) fn recorded(row: &SourceRow) -> Vec<&str> {
    row.ancestors.iter().flat_map(|list| list.split(' ')).collect()
}

/// Reads anew whoever turns out to be a copy of others than before. Of the logs that did not change
/// those stay whose originals are read: the worker sees whether these had been behind their copies.
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

/// Whether a log is known to repeat other sessions than those it was taken to repeat when it was read.
pub(crate) fn has_other_ancestors(work: &Work) -> bool {
    work.source.as_ref().is_some_and(|row| recorded(row) != work.ancestors)
}

/// A relative whose log is gone; `row` is that of its file, as it will be. None where rows of it are
/// lost, by damage: they are left alone.
pub(crate) fn left_behind(row: &SourceRow, known: &Known) -> Option<Work> {
    let session = known.sessions.get(row.session_id.as_ref()?).filter(|_| row.modified_us >= 0)?;
    let relation = session.relation.as_ref().and_then(|relation| relation.parse().ok());
    let file = Candidate {
        path: row.path.clone().into(),
        size: row.size.cast_unsigned(),
        modified_us: row.modified_us,
        container: Container::Plain,
    };
    Some(Work {
        file,
        change: Change::Gone,
        claim: Claim {
            provider: provider_of(row)?,
            native_id: session.native_id.clone()?,
            agent_id: session.agent_id.clone(),
            parent: session.parent_session_id.clone(),
            relation,
            first_record: row.first_record.map(i64::cast_unsigned),
        },
        session_id: session.session_id.clone(),
        parent_session_id: None,
        relation,
        ancestors: Vec::new(),
        source: Some(row.clone()),
        session: Some(SessionRow::clone(session)),
    })
}

/// The known logs by their own ids, for finding the one that a new file goes on with.
#[derive(Default)]
pub(crate) struct Former<'k> {
    by_native: HashMap<(Provider, String), Vec<(&'k SourceRow, &'k SessionRow)>>,
    /// Sessions in whose file something else lies now.
    left: HashSet<String>,
}

impl<'k> Former<'k> {
    /// Those that are not planned themselves: `works` are, and `settled` come back or go.
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
            if let Some((provider, session)) = provider_of(row).zip(session)
                && let Some(native) = session.native_id.clone()
            {
                by_native.entry((provider, native)).or_default().push((row, session.as_ref()));
            }
        }
        by_native.values_mut().for_each(|rows| rows.sort_by(|a, b| a.0.path.cmp(&b.0.path)));
        Self { by_native, left }
    }

    /// The log that a new file is, under another name: of the same id and with the same beginning,
    /// and no longer where it was; or of the same id, and only beside the new one now, or written over
    /// in this very file. Of several that are gone, as when a log and its copy are, the one of which
    /// most was read. It is given out once; with it comes whether the file begins with what was read
    /// of it.
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
            let replaced = is_beside_log(row.path.as_ref())
                || row.path == path_aside(&file.key(), &session.session_id);
            let gone = row.status == SourceStatus::Gone
                || self.left.contains(&session.session_id)
                || Candidate::of_key(&row.path).is_none();
            let longest = best.is_none_or(|(same, read, _)| !same || row.consumed > read);
            let same = gone && longest && Fingerprint::matches(&mut Content::open(file)?, row)?;
            if same || replaced && best.is_none() {
                best = Some((same, row.consumed, at));
            }
        }
        Ok(best.map(|(same, _, at)| (rows.remove(at).0, same)))
    }
}
