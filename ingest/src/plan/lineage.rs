//! Links logs that belong together: finds parents and the sessions whose records a log may repeat,
//! and groups work into units accordingly.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use schemas::Provider;
use schemas::event::Relation;
use xxhash_rust::xxh3::xxh3_64;

use super::ids::{are_different, is_id_of, safe_session_id};
use super::in_order::sort_by_ancestors;
use super::original_order::{GroupedLog, originals_first};
use super::record_keys::{RecordKey, RecordKeys};
use super::relatives::{NewLogs, recorded_ancestors};
use super::units::Units;
use super::work::{Known, LogChange, PlannedLog};
use crate::provider::format::SessionClaim;
use crate::provider::format_of;

/// Session ids by native id: those in the store first, in the order of their numbers.
type SessionsByNativeId<'w> = HashMap<(Provider, &'w str), Vec<&'w str>>;

/// Session ids by the group of their first records and responses, originals first. Groups of one
/// session are left out.
type SessionsByFirstRecord<'w> = HashMap<RecordKey, Vec<&'w str>>;

/// Maximum number of steps from fork to original that are checked for a cycle.
const MAX_FORK_STEPS: usize = 64;

/// Finds parents and ancestors among the sessions known and planned. Ancestors settled when a log
/// was read before stay settled, unless `news` concern it: a log that came later does not make it a
/// copy.
pub(crate) fn link_works(works: &mut [PlannedLog], known: &Known, news: &NewLogs) {
    if known.sources.is_empty() && known.sessions.is_empty() && are_unrelated(works) {
        return;
    }
    let links = find_links(works, known, news);
    for (work, links) in works.iter_mut().zip(links) {
        work.parent_session_id = links.parent_session_id;
        work.ancestors = links.ancestors;
        if links.is_unnamed_fork {
            work.relation = Some(Relation::ForkedFrom);
        }
    }
}

/// Returns whether no log names a parent, and no two name one session or begin with one record or
/// response. False for some logs of different agents, which then turn out to be unrelated.
fn are_unrelated(works: &[PlannedLog]) -> bool {
    let claims = || works.iter().map(|work| &work.claim);
    claims().all(|claim| claim.parent.is_none())
        && are_different(claims().map(|claim| xxh3_64(claim.native_id.as_bytes())))
        && are_different(claims().filter_map(|claim| claim.first_record))
        && are_different(claims().filter_map(|claim| claim.first_response))
}

/// Returns the ids of the sessions of the logs in `works`.
fn planned_sessions(works: &[PlannedLog]) -> HashSet<&str> {
    works.iter().map(|work| work.session_id.as_str()).collect()
}

/// How a log belongs to others.
struct Links {
    parent_session_id: Option<String>,
    ancestors: Vec<String>,
    /// True if the log is a fork of a log that it does not name.
    is_unnamed_fork: bool,
}

/// Finds how each log in `works` relates to the others.
fn find_links(works: &[PlannedLog], known: &Known, news: &NewLogs) -> Vec<Links> {
    let groups = SessionGroups::new(works, known, news);
    let versions = earlier_versions(known);
    // Only needed for forks that name no parent.
    let planned = LazyCell::new(|| planned_sessions(works));
    let mut links = Vec::with_capacity(works.len());
    for work in works {
        let mut parent = groups.parent_of(&work.claim).map(Cow::Borrowed);
        if parent.is_none()
            && let Some(named) = work.claim.parent.as_deref()
        {
            // The id that the parent gets when it comes, or has if its row is all that is known.
            let is_known = known.sessions.contains_key(named);
            parent = Some(if is_known { Cow::Borrowed(named) } else { safe_session_id(named) });
        }
        let mut parent = parent.filter(|id| *id != work.session_id);
        if work.is_earlier_version() {
            // The id in the store, not one that a log gave.
            parent = work.claim.parent.as_deref().map(Cow::Borrowed);
        }

        let mut ancestors = match &work.source {
            Some(row) if work.is_earlier_version() => recorded_ancestors(row),
            Some(row) if is_settled(work, news) => recorded_ancestors(row),
            Some(_) | None => groups.ancestors_of(work),
        };
        // Copies stay copies: the log is gone and cannot be read again.
        if let Some(row) = &work.source
            && work.change == LogChange::Gone
        {
            ancestors.extend(recorded_ancestors(row));
        }
        add_earlier_versions(&mut ancestors, work, &versions);
        ancestors.sort_unstable();
        ancestors.dedup();

        // Logs of one id are copies of one session, not forks. A session is not forked from its own
        // fork, unless that fork is read again.
        let mut is_unnamed_fork = false;
        if parent.is_none()
            && let Some(ancestor) = ancestors.first()
            && !is_id_of(ancestor, &work.claim.native_id)
            && (planned.contains(ancestor) || !is_child_of(ancestor, &work.session_id, known))
        {
            parent = Some(Cow::Borrowed(*ancestor));
            is_unnamed_fork = true;
        }
        links.push(Links {
            parent_session_id: parent.map(Cow::into_owned),
            ancestors: ancestors.into_iter().map(str::to_owned).collect(),
            is_unnamed_fork,
        });
    }
    let inherited = inherited_ancestors(works, &links);
    for (at, ancestors) in inherited {
        let own = &mut links[at].ancestors;
        own.extend(ancestors);
        own.sort_unstable();
        own.dedup();
    }
    links
}

/// Returns the positions of earlier versions, each with the ancestors of the session whose earlier
/// version it is: an original that comes late has its records, too.
fn inherited_ancestors(works: &[PlannedLog], links: &[Links]) -> Vec<(usize, Vec<String>)> {
    let mut inherited = Vec::new();
    for (at, work) in works.iter().enumerate().filter(|(_, work)| work.is_earlier_version()) {
        let later =
            works.iter().position(|other| Some(&other.session_id) == work.claim.parent.as_ref());
        if let Some(later) = later {
            inherited.push((at, links[later].ancestors.clone()));
        }
    }
    inherited
}

/// Returns the earlier versions of each session in the store that has some.
fn earlier_versions(known: &Known) -> HashMap<&str, Vec<&str>> {
    let mut versions: HashMap<&str, Vec<&str>> = HashMap::new();
    for session in known.sessions.values().filter(|session| session.is_earlier_version()) {
        if let Some(later) = &session.parent_session_id {
            versions.entry(later).or_default().push(&session.session_id);
        }
    }
    versions
}

/// Adds the earlier versions of the ancestors of a log: they have records that the log may repeat,
/// too. An earlier version keeps the ancestors that were found when it was kept.
fn add_earlier_versions<'k>(
    ancestors: &mut Vec<&'k str>,
    work: &PlannedLog,
    versions: &HashMap<&str, Vec<&'k str>>,
) {
    if versions.is_empty() || work.is_earlier_version() {
        return;
    }
    let of_ancestors = ancestors.iter().filter_map(|id| versions.get(id)).flatten();
    let added: Vec<&str> = of_ancestors.copied().collect();
    ancestors.extend(added);
}

/// Returns whether the ancestors of a log stay those that it had when it was read before.
fn is_settled(work: &PlannedLog, news: &NewLogs) -> bool {
    if !matches!(work.change, LogChange::Grown | LogChange::Same | LogChange::Gone) {
        return false;
    }
    let (Some(row), Some(session)) = (&work.source, &work.session) else { return false };
    !news.is_relative(row, session)
}

/// Returns whether the store has `id` as a session whose parent is `parent`.
fn is_child_of(id: &str, parent: &str, known: &Known) -> bool {
    let session = known.sessions.get(id);
    session.is_some_and(|session| session.parent_session_id.as_deref() == Some(parent))
}

/// The sessions known and planned, grouped for finding the relatives of a log.
struct SessionGroups<'w> {
    by_native: SessionsByNativeId<'w>,
    keys: RecordKeys,
    by_record: SessionsByFirstRecord<'w>,
    /// Maps forks to the sessions that their logs name as originals.
    originals: HashMap<&'w str, &'w str>,
}

impl<'w> SessionGroups<'w> {
    fn new(works: &'w [PlannedLog], known: &'w Known, news: &NewLogs) -> Self {
        // Both take about the same time, so they run in parallel.
        let (by_native, (keys, by_record)) = std::thread::scope(|scope| {
            let by_native = scope.spawn(|| group_by_native_id(works, known));
            let keys = join_record_keys(works, known);
            let by_record = group_by_first_record(works, known, news, &keys);
            (by_native.join(), (keys, by_record))
        });
        let by_native = by_native.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let originals = originals_of_forks(works, &by_native);
        Self { by_native, keys, by_record, originals }
    }

    /// Returns the session of the parent that a log names. `None` if it names none, or if no such
    /// session is known or planned.
    fn parent_of(&self, claim: &SessionClaim) -> Option<&'w str> {
        first_session(&self.by_native, claim.provider, claim.parent.as_ref()?)
    }

    /// Returns the sessions whose records a log may repeat. They come before the log in its groups,
    /// so that one log of each group stays the original.
    fn ancestors_of(&self, work: &PlannedLog) -> Vec<&'w str> {
        let claim = &work.claim;
        let same_id = self.by_native.get(&(claim.provider, claim.native_id.as_str()));
        let group =
            self.keys.group_of_log(claim.provider, claim.first_record, claim.first_response);
        let same_record = group.and_then(|group| self.by_record.get(&group));

        if format_of(claim.provider).has_unique_ids {
            let mut ancestors = sessions_before(&work.session_id, same_record);
            ancestors.extend(sessions_before(&work.session_id, same_id));
            // A fork may begin with another record than its original, as after a compaction.
            ancestors.extend(find_original(&work.session_id, &self.originals));
            return ancestors;
        }

        // Ancestors are the other captures of the session, else the session that the log continues,
        // else the original of a fork that names none.
        let captures = sessions_before(&work.session_id, same_id);
        if !captures.is_empty() {
            return captures;
        }
        if let Some(parent) = self.parent_of(claim)
            && may_repeat_parent(claim)
            && parent != work.session_id
        {
            return vec![parent];
        }
        if claim.parent.is_some() {
            return Vec::new();
        }
        sessions_before(&work.session_id, same_record)
    }
}

/// Returns the first session of a native id.
fn first_session<'w>(
    by_native: &SessionsByNativeId<'w>,
    provider: Provider,
    native_id: &str,
) -> Option<&'w str> {
    by_native.get(&(provider, native_id))?.first().copied()
}

/// Returns the sessions of a group that come before `session_id`.
fn sessions_before<'w>(session_id: &str, group: Option<&Vec<&'w str>>) -> Vec<&'w str> {
    let group = group.map_or(&[][..], Vec::as_slice);
    group.iter().take_while(|id| **id != session_id).copied().collect()
}

/// Returns whether a log may begin with records of the parent that it names. The records of a
/// subagent that begins without a copied history may be equal by chance.
fn may_repeat_parent(claim: &SessionClaim) -> bool {
    let is_subagent = claim.relation == Some(Relation::SubagentOf);
    !is_subagent || format_of(claim.provider).quirks.subagents_repeat_parent
}

/// Groups sessions by native id.
fn group_by_native_id<'w>(works: &'w [PlannedLog], known: &'w Known) -> SessionsByNativeId<'w> {
    let mut by_native = SessionsByNativeId::with_capacity(known.sessions.len() + works.len());
    let mut sessions: Vec<_> =
        known.sessions.values().filter(|session| !session.is_earlier_version()).collect();
    sessions.sort_by_key(|session| (session.session_id.len(), &session.session_id));
    for session in sessions {
        if let Some(native) = session.native_id.as_deref() {
            by_native.entry((session.provider, native)).or_default().push(&*session.session_id);
        }
    }
    for work in works.iter().filter(|work| work.change == LogChange::New) {
        let key = (work.claim.provider, work.claim.native_id.as_str());
        // Most logs have an id of their own, and a vector that grows from nothing has space for
        // four.
        by_native.entry(key).or_insert_with(|| Vec::with_capacity(1)).push(&*work.session_id);
    }
    by_native
}

/// Joins the first records and the first responses of all logs known and planned.
fn join_record_keys(works: &[PlannedLog], known: &Known) -> RecordKeys {
    let mut keys = RecordKeys::default();
    for row in known.sources.values() {
        if let Some(provider) = row.provider {
            let record = row.first_record.map(i64::cast_unsigned);
            keys.join(provider, record, row.first_response.map(i64::cast_unsigned));
        }
    }
    for PlannedLog { claim, .. } in works {
        keys.join(claim.provider, claim.first_record, claim.first_response);
    }
    keys
}

/// Groups sessions by first record and first response. Only groups with an unsettled log are
/// included.
fn group_by_first_record<'w>(
    works: &'w [PlannedLog],
    known: &'w Known,
    news: &NewLogs,
    keys: &RecordKeys,
) -> SessionsByFirstRecord<'w> {
    let mut logs: Vec<(RecordKey, &PlannedLog)> = Vec::with_capacity(works.len());
    for work in works.iter().filter(|work| !work.is_earlier_version()) {
        let claim = &work.claim;
        let key = keys.group_of_log(claim.provider, claim.first_record, claim.first_response);
        logs.extend(key.map(|key| (key, work)));
    }
    logs.sort_by_key(|(key, _)| *key);

    let mut known_logs = group_known_logs(&logs, works, known, keys);
    let mut groups = SessionsByFirstRecord::new();
    for same in logs.chunk_by(|(a, _), (b, _)| a == b) {
        let (key, _) = same[0];
        let of_known = known_logs.remove(&key).unwrap_or_default();
        // Most logs are alone in their group.
        if same.len() + of_known.len() < 2 || same.iter().all(|(_, work)| is_settled(work, news)) {
            continue;
        }
        let mut group = Vec::with_capacity(same.len() + of_known.len());
        group.extend(same.iter().map(|(_, work)| GroupedLog {
            session_id: &work.session_id,
            provider: work.claim.provider,
            native_id: &work.claim.native_id,
            path: &work.file.path,
            parent: work.claim.parent.as_deref(),
            ancestors: work.source.as_deref().map(recorded_ancestors),
            file: (work.change != LogChange::Gone).then_some(&work.file),
        }));
        group.extend(of_known);
        groups.insert(key, originals_first(group));
    }
    groups
}

/// Returns the known logs of the groups of `logs`, which are sorted by key. Those in `works` are left
/// out.
fn group_known_logs<'w>(
    logs: &[(RecordKey, &PlannedLog)],
    works: &[PlannedLog],
    known: &'w Known,
    keys: &RecordKeys,
) -> HashMap<RecordKey, Vec<GroupedLog<'w>>> {
    let mut groups: HashMap<RecordKey, Vec<GroupedLog<'w>>> = HashMap::new();
    let planned = LazyCell::new(|| planned_sessions(works));
    for row in known.sources.values() {
        let key = row.provider.and_then(|provider| {
            let record = row.first_record.map(i64::cast_unsigned);
            keys.group_of_log(provider, record, row.first_response.map(i64::cast_unsigned))
        });
        let Some(key) = key else { continue };
        if logs.binary_search_by_key(&key, |(key, _)| *key).is_err() {
            continue;
        }
        let Some(session) = known.session_of(row) else { continue };
        if session.is_earlier_version() || planned.contains(session.session_id.as_str()) {
            continue;
        }
        groups.entry(key).or_default().push(GroupedLog {
            session_id: &session.session_id,
            provider: session.provider,
            native_id: session.native_id.as_deref().unwrap_or_default(),
            path: Path::new(&row.path),
            parent: None,
            ancestors: Some(recorded_ancestors(row)),
            file: None,
        });
    }
    groups
}

/// Maps forks to the sessions that their logs name as originals.
fn originals_of_forks<'w>(
    works: &'w [PlannedLog],
    by_native: &SessionsByNativeId<'w>,
) -> HashMap<&'w str, &'w str> {
    let mut originals = HashMap::new();
    for work in works {
        if work.claim.relation == Some(Relation::ForkedFrom)
            && let Some(parent) = &work.claim.parent
            && let Some(original) = first_session(by_native, work.claim.provider, parent)
        {
            originals.insert(work.session_id.as_str(), original);
        }
    }
    originals
}

/// Returns the original that a fork names. `None` if it names none, or if that original descends
/// from the fork.
fn find_original<'w>(fork: &str, originals: &HashMap<&str, &'w str>) -> Option<&'w str> {
    let original = originals.get(fork).copied()?;
    let mut chain =
        std::iter::successors(Some(original), |id| originals.get(id).copied()).take(MAX_FORK_STEPS);
    chain.all(|id| id != fork).then_some(original)
}

/// Groups logs that depend on each other into units, ancestors first. Units are sorted by time,
/// oldest first.
pub(crate) fn group_into_units(works: Vec<PlannedLog>) -> Units {
    if works.iter().all(|work| work.ancestors.is_empty()) {
        // The times are next to each other, so that most comparisons need no log.
        let times = works.iter().enumerate().map(|(at, work)| (work.file.modified_us, at));
        let mut timed: Vec<_> = times.collect();
        timed.sort_unstable_by(|(time, at), (other_time, other)| {
            let by_path = || works[*at].file.path.cmp(&works[*other].file.path);
            time.cmp(other_time).then_with(by_path).then(at.cmp(other))
        });
        let positions = timed.into_iter().map(|(_, at)| at).collect();
        return Units::of_single_works(works, positions);
    }

    let mut groups = group_dependent_works(&works);
    groups.sort_by_cached_key(|group| {
        let oldest_change = group.iter().map(|at| works[*at].file.modified_us).min();
        (oldest_change, group.first().map(|at| works[*at].file.path.clone()))
    });
    Units::of_groups(works, &groups)
}

/// Groups the positions of logs that depend on each other, ancestors first.
fn group_dependent_works(works: &[PlannedLog]) -> Vec<Vec<usize>> {
    let index: HashMap<&str, usize> =
        works.iter().enumerate().map(|(at, work)| (work.session_id.as_str(), at)).collect();
    let mut groups: Vec<usize> = (0..works.len()).collect();
    for (at, work) in works.iter().enumerate() {
        for ancestor in work.ancestors.iter().filter_map(|id| index.get(id.as_str())) {
            let root = find_root(&mut groups, at);
            let ancestor_root = find_root(&mut groups, *ancestor);
            groups[root] = ancestor_root;
        }
    }

    let mut by_root: Vec<Vec<usize>> = Vec::new();
    by_root.resize_with(groups.len(), Vec::new);
    for at in 0..works.len() {
        let group = &mut by_root[find_root(&mut groups, at)];
        // Most logs depend on no other, and a vector that grows from nothing has space for four.
        if group.is_empty() {
            group.reserve_exact(1);
        }
        group.push(at);
    }
    by_root.retain(|group| !group.is_empty());
    by_root.into_iter().map(|group| ancestors_first(works, group)).collect()
}

/// Returns the root of the group of `at`. Each position in `groups` holds a member that is nearer
/// to the root of its group, or itself if it is the root.
fn find_root(groups: &mut [usize], mut at: usize) -> usize {
    while groups[at] != at {
        groups[at] = groups[groups[at]];
        at = groups[at];
    }
    at
}

/// Sorts the positions of the logs of a unit by path, but ancestors first.
fn ancestors_first(works: &[PlannedLog], mut unit: Vec<usize>) -> Vec<usize> {
    if unit.len() == 1 {
        return unit;
    }
    unit.sort_by_key(|at| &works[*at].file.path);
    let positions: HashMap<&str, usize> =
        unit.iter().enumerate().map(|(at, work)| (works[*work].session_id.as_str(), at)).collect();
    let mut ancestors: Vec<Vec<usize>> = Vec::with_capacity(unit.len());
    for at in &unit {
        let ids = works[*at].ancestors.iter();
        let inside = ids.filter_map(|id| positions.get(id.as_str()).copied());
        ancestors.push(inside.collect());
    }
    sort_by_ancestors(&ancestors).into_iter().filter_map(|at| unit.get(at).copied()).collect()
}
