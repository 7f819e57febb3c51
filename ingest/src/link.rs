//! Which log belongs to which: parents, the sessions whose records a log may repeat, and the units
//! of work that follow from it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemas::event::Relation;

use crate::family::originals_first;
use crate::plan::{Change, Known, Work};
use crate::provider::format;

/// Finds parents and ancestors among the sessions known and planned.
pub(crate) fn link(works: &mut [Work], known: &Known) {
    let mut by_native: HashMap<(&str, String), Vec<String>> = HashMap::new();
    let mut by_record: HashMap<u64, Vec<String>> = HashMap::new();
    let records: HashMap<&String, i64> = known
        .sources
        .values()
        .filter_map(|row| Some((row.session_id.as_ref()?, row.first_record?)))
        .collect();
    let mut sessions: Vec<_> = known.sessions.values().collect();
    sessions.sort_by(|a, b| {
        (a.session_id.len(), &a.session_id).cmp(&(b.session_id.len(), &b.session_id))
    });
    let provider = |name: &str| {
        schemas::Provider::ALL.iter().find(|p| p.as_str() == name).map_or("", |p| p.as_str())
    };
    for session in sessions {
        let native = session.native_id.clone().unwrap_or_default();
        by_native
            .entry((provider(&session.provider), native))
            .or_default()
            .push(session.session_id.clone());
        if let Some(record) = records.get(&session.session_id) {
            by_record.entry(record.cast_unsigned()).or_default().push(session.session_id.clone());
        }
    }
    let mut families: BTreeMap<u64, Vec<&Work>> = BTreeMap::new();
    for work in works.iter().filter(|work| work.change == Change::New) {
        let key = (work.claim.provider.as_str(), work.claim.native_id.clone());
        by_native.entry(key).or_default().push(work.session_id.clone());
        if let Some(record) = work.claim.first_record {
            families.entry(record).or_default().push(work);
        }
    }
    for (record, family) in families {
        let ids = originals_first(&family).into_iter().map(|work| work.session_id.clone());
        by_record.entry(record).or_default().extend(ids);
    }
    let first = |provider: &'static str, native: &String| {
        by_native.get(&(provider, native.clone())).and_then(|ids| ids.first())
    };
    for work in works.iter_mut() {
        let provider = work.claim.provider.as_str();
        let parent = work.claim.parent.as_ref().and_then(|native| first(provider, native));
        work.parent_session_id =
            parent.or(work.claim.parent.as_ref()).filter(|id| **id != work.session_id).cloned();
        if let Some(row) = work.source.as_ref().filter(|_| work.change == Change::Grown) {
            // Settled when the log was new: what came since does not make it a copy.
            work.ancestors =
                row.ancestors.iter().flat_map(|list| list.split(' ')).map(str::to_owned).collect();
        } else if format(work.claim.provider).unique_ids {
            // Those that come before it in the family, so that one of them stays the original.
            let family = work.claim.first_record.and_then(|record| by_record.get(&record));
            let same_id = by_native.get(&(provider, work.claim.native_id.clone()));
            let before = |ids: Option<&Vec<String>>| -> Vec<String> {
                ids.into_iter()
                    .flatten()
                    .take_while(|id| **id != work.session_id)
                    .cloned()
                    .collect()
            };
            work.ancestors = before(family);
            work.ancestors.extend(before(same_id));
            work.ancestors.sort();
            work.ancestors.dedup();
        } else {
            let same = first(provider, &work.claim.native_id);
            let ancestor = same.filter(|id| **id != work.session_id).or(parent);
            work.ancestors =
                ancestor.into_iter().filter(|id| **id != work.session_id).cloned().collect();
        }
        let copies_from = work.ancestors.first().filter(|_| work.parent_session_id.is_none());
        let is_fork_of_it = |id: &String| {
            let parent = known.sessions.get(id).and_then(|row| row.parent_session_id.as_ref());
            parent == Some(&work.session_id)
        };
        // Logs of one id are copies of one session, not forks; and nobody is forked from a fork of
        // its own.
        if let Some(ancestor) = copies_from
            && !ancestor.starts_with(&work.claim.native_id)
            && !is_fork_of_it(ancestor)
        {
            work.parent_session_id = Some(ancestor.clone());
            work.relation = Some(Relation::ForkedFrom);
        }
    }
}

/// Joins works that depend on each other, ancestors first; units by time, oldest first.
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

/// Places in the order in which they can be done: always the first one of which nothing that it
/// hangs on waits. Where all hang on each other, the first one has to do without.
fn in_order(ancestors: &[Vec<usize>]) -> Vec<usize> {
    let mut children = vec![Vec::new(); ancestors.len()];
    for (at, ancestors) in ancestors.iter().enumerate() {
        ancestors.iter().for_each(|ancestor| children[*ancestor].push(at));
    }
    let mut missing: Vec<usize> = ancestors.iter().map(Vec::len).collect();
    let mut waiting: BTreeSet<usize> = (0..ancestors.len()).collect();
    let mut ready: BTreeSet<usize> =
        waiting.iter().copied().filter(|at| missing[*at] == 0).collect();
    let mut order = Vec::with_capacity(ancestors.len());
    while let Some(at) = ready.pop_first().or_else(|| waiting.first().copied()) {
        waiting.remove(&at);
        order.push(at);
        for child in &children[at] {
            missing[*child] -= 1;
            if missing[*child] == 0 && waiting.contains(child) {
                ready.insert(*child);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, looking through all that is left for every next one.
    fn in_order_plainly(ancestors: &[Vec<usize>]) -> Vec<usize> {
        let mut rest: Vec<usize> = (0..ancestors.len()).collect();
        let mut ordered = Vec::new();
        while !rest.is_empty() {
            let free = |at: &usize| ancestors[*at].iter().all(|other| !rest.contains(other));
            let next = rest.iter().position(free).unwrap_or(0);
            ordered.push(rest.remove(next));
        }
        ordered
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_plain_way(
            edges in proptest::collection::vec((0usize..12, 0usize..12), 0..30),
        ) {
            let mut ancestors = vec![Vec::new(); 12];
            edges.into_iter().for_each(|(child, ancestor)| ancestors[child].push(ancestor));
            prop_assert_eq!(in_order(&ancestors), in_order_plainly(&ancestors));
        }
    }

    #[test]
    fn ancestors_come_first_and_rings_do_not_stop_it() {
        assert_eq!(in_order(&[vec![2], vec![], vec![1]]), [1, 2, 0]);
        assert_eq!(in_order(&[vec![1], vec![0], vec![2]]), [0, 1, 2]);
    }
}
