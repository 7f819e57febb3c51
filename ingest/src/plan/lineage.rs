//! Links logs that belong together: finds parents and the sessions whose records a log may repeat,
//! and groups work into units accordingly.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemas::Provider;
use schemas::event::Relation;

use super::in_order::in_order;
use super::original_order::{Member, originals_first};
use super::relatives::{NewLogs, recorded};
use super::work::{Change, Known, Work};
use crate::provider::format;
use crate::provider::format::Claim;

type ByNative = HashMap<(Provider, String), Vec<String>>;
type ByRecord = HashMap<(Provider, u64), Vec<String>>;

/// Number of steps from fork to original that are checked for a cycle.
const FORKS: usize = 64;

/// Finds parents and ancestors among the sessions known and planned. Ancestors settled when a log
/// was read before stay settled, unless `news` concern it: a log that came later does not make it a
/// copy.
pub(crate) fn link(works: &mut [Work], known: &Known, news: &NewLogs) {
    let is_settled = |work: &Work| {
        let stays = matches!(work.change, Change::Grown | Change::Same | Change::Gone);
        let row = work.source.as_ref().filter(|_| stays);
        row.zip(work.session.as_ref()).is_some_and(|(row, session)| !news.concern(row, session))
    };
    let by_native = by_native(works, known);
    let by_record = by_record(works, known, is_settled);
    let first = |provider: Provider, native: &str| {
        by_native.get(&(provider, native.to_owned())).and_then(|ids| ids.first())
    };
    let forks = forks(works, first);
    let planned: HashSet<String> = works.iter().map(|work| work.session_id.clone()).collect();
    for work in works.iter_mut() {
        let provider = work.claim.provider;
        let parent = work.claim.parent.as_ref().and_then(|native| first(provider, native));
        work.parent_session_id =
            parent.or(work.claim.parent.as_ref()).filter(|id| **id != work.session_id).cloned();
        // Only logs that come before this one, so that one log of the group stays the original.
        let before = |ids: Option<&Vec<String>>| -> Vec<String> {
            let others = |id: &&String| **id != work.session_id;
            ids.into_iter().flatten().take_while(others).cloned().collect()
        };
        let record = work.claim.first_record.map(|record| (provider, record));
        let family = record.and_then(|record| by_record.get(&record));
        let same_id = by_native.get(&(provider, work.claim.native_id.clone()));
        work.ancestors = if let Some(row) = work.source.as_ref().filter(|_| is_settled(work)) {
            recorded(row).into_iter().map(str::to_owned).collect()
        } else if format(provider).unique_ids {
            let mut ancestors = before(family);
            ancestors.extend(before(same_id));
            // A fork may begin with another record than its original, as after a compaction.
            ancestors.extend(original(&work.session_id, &forks).cloned());
            ancestors
        } else {
            // Ancestors are the other captures of the session, else the session that the log
            // continues, else the original of a fork that names none.
            let mut ancestors = before(same_id);
            if ancestors.is_empty() {
                let parent = parent.filter(|id| hands_on(&work.claim) && **id != work.session_id);
                ancestors.extend(parent.cloned());
            }
            if ancestors.is_empty() && work.claim.parent.is_none() {
                ancestors = before(family);
            }
            ancestors
        };
        // Copies stay copies: the log is gone and cannot be read again.
        if let Some(row) = work.source.as_ref().filter(|_| work.change == Change::Gone) {
            work.ancestors.extend(recorded(row).into_iter().map(str::to_owned));
        }
        work.ancestors.sort();
        work.ancestors.dedup();
        let copies_from = work.ancestors.first().filter(|_| work.parent_session_id.is_none());
        // Logs of one id are copies of one session, not forks. A session is not forked from its own
        // fork, unless that fork is read again.
        let is_fork_of_it = |id: &String| {
            let parent = known.sessions.get(id).and_then(|row| row.parent_session_id.as_ref());
            parent == Some(&work.session_id) && !planned.contains(id)
        };
        if let Some(ancestor) = copies_from
            && !ancestor.starts_with(&work.claim.native_id)
            && !is_fork_of_it(ancestor)
        {
            work.parent_session_id = Some(ancestor.clone());
            work.relation = Some(Relation::ForkedFrom);
        }
    }
}

/// Returns whether a log may begin with records of the parent that it names. The records of a
/// subagent that begins without a copied history may be equal by chance.
fn hands_on(claim: &Claim) -> bool {
    let is_subagent = claim.relation == Some(Relation::SubagentOf);
    !is_subagent || format(claim.provider).quirks.subagents_repeat_parent
}

/// Groups sessions by native id: those in the store first, in the order of their numbers.
fn by_native(works: &[Work], known: &Known) -> ByNative {
    let mut by_native = ByNative::new();
    let mut sessions: Vec<_> = known.sessions.values().collect();
    sessions.sort_by_key(|session| (session.session_id.len(), &session.session_id));
    for session in sessions {
        if let Some(native) = session.native_id.clone() {
            let of_id = by_native.entry((session.provider, native)).or_default();
            of_id.push(session.session_id.clone());
        }
    }
    for work in works.iter().filter(|work| work.change == Change::New) {
        let key = (work.claim.provider, work.claim.native_id.clone());
        by_native.entry(key).or_default().push(work.session_id.clone());
    }
    by_native
}

/// Groups sessions by first record, originals first. Only groups with an unsettled log are
/// included.
fn by_record(works: &[Work], known: &Known, is_settled: impl Fn(&Work) -> bool) -> ByRecord {
    let key = |work: &Work| Some((work.claim.provider, work.claim.first_record?));
    let mut families: BTreeMap<(Provider, u64), Vec<Member<'_>>> = BTreeMap::new();
    for record in works.iter().filter(|work| !is_settled(work)).filter_map(key) {
        families.entry(record).or_default();
    }
    for work in works {
        let family = key(work).and_then(|key| families.get_mut(&key));
        if let Some(family) = family {
            family.push(Member {
                session_id: &work.session_id,
                provider: work.claim.provider,
                native_id: &work.claim.native_id,
                parent: work.claim.parent.as_deref(),
                ancestors: work.source.as_deref().map(recorded),
                file: Some(&work.file).filter(|_| work.change != Change::Gone),
            });
        }
    }
    let planned: HashSet<&str> = works.iter().map(|work| work.session_id.as_str()).collect();
    for row in known.sources.values() {
        let session = known.session_of(row);
        let session = session.filter(|session| !planned.contains(&*session.session_id));
        let record = row.first_record.map(i64::cast_unsigned);
        let key = row.provider.zip(record);
        if let Some(family) = key.and_then(|key| families.get_mut(&key))
            && let Some(session) = session
        {
            family.push(Member {
                session_id: &session.session_id,
                provider: session.provider,
                native_id: session.native_id.as_deref().unwrap_or_default(),
                parent: None,
                ancestors: Some(recorded(row)),
                file: None,
            });
        }
    }
    let ordered = families.into_iter().map(|(record, family)| {
        (record, originals_first(family).into_iter().map(str::to_owned).collect())
    });
    ordered.collect()
}

/// Maps forks to the sessions that their logs name as originals.
fn forks<'s>(
    works: &[Work],
    first: impl Fn(Provider, &str) -> Option<&'s String>,
) -> HashMap<String, String> {
    let fork = |work: &Work| {
        let parent = work
            .claim
            .parent
            .as_ref()
            .filter(|_| work.claim.relation == Some(Relation::ForkedFrom))?;
        Some((work.session_id.clone(), first(work.claim.provider, parent)?.clone()))
    };
    works.iter().filter_map(fork).collect()
}

/// Returns the original that a fork names, unless that original descends from the fork.
fn original<'f>(fork: &str, forks: &'f HashMap<String, String>) -> Option<&'f String> {
    let original = forks.get(fork)?;
    let chain = std::iter::successors(Some(original), |id| forks.get(*id)).take(FORKS);
    chain.clone().all(|id| id != fork).then_some(original)
}

/// Groups works that depend on each other into units, ancestors first. Units are sorted by time,
/// oldest first.
pub(crate) fn units(works: Vec<Work>) -> Vec<Vec<Work>> {
    let index: HashMap<String, usize> =
        works.iter().enumerate().map(|(at, w)| (w.session_id.clone(), at)).collect();
    let mut group: Vec<usize> = (0..works.len()).collect();
    fn root(group: &mut [usize], mut at: usize) -> usize {
        while group[at] != at {
            group[at] = group[group[at]];
            at = group[at];
        }
        at
    }
    for (at, work) in works.iter().enumerate() {
        for ancestor in work.ancestors.iter().filter_map(|id| index.get(id)) {
            let (a, b) = (root(&mut group, at), root(&mut group, *ancestor));
            group[a] = b;
        }
    }
    let mut by_group: BTreeMap<usize, Vec<Work>> = BTreeMap::new();
    for (at, work) in works.into_iter().enumerate() {
        let key = root(&mut group, at);
        by_group.entry(key).or_default().push(work);
    }
    let mut units: Vec<_> = by_group.into_values().map(ancestors_first).collect();
    let oldest = |unit: &Vec<Work>| unit.iter().map(|work| work.file.modified_us).min();
    units.sort_by(|a, b| (oldest(a), &a[0].file.path).cmp(&(oldest(b), &b[0].file.path)));
    units
}

fn ancestors_first(mut works: Vec<Work>) -> Vec<Work> {
    works.sort_by(|a, b| a.file.path.cmp(&b.file.path));
    let places: HashMap<&str, usize> =
        works.iter().enumerate().map(|(at, work)| (work.session_id.as_str(), at)).collect();
    let inside = |work: &Work| -> Vec<usize> {
        work.ancestors.iter().filter_map(|id| places.get(id.as_str()).copied()).collect()
    };
    let ancestors: Vec<_> = works.iter().map(inside).collect();
    let mut works: Vec<_> = works.into_iter().map(Some).collect();
    in_order(&ancestors).into_iter().filter_map(|at| works.get_mut(at)?.take()).collect()
}
