//! Links logs that belong together: finds parents and the sessions whose records a log may repeat,
//! and groups work into units accordingly.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use schemas::Provider;
use schemas::event::Relation;

use super::ids::{is_id_of, safe_session_id};
use super::in_order::sort_by_ancestors;
use super::original_order::{GroupedLog, originals_first};
use super::planned_log::{Known, LogChange, PlannedLog};
use super::record_keys::{RecordKey, RecordKeys};
use super::relatives::{NewLogs, recorded_ancestors};
use crate::provider::format::SessionClaim;
use crate::provider::{base_of, format_of};

/// Session ids by native id: those in the store first, in the order of their numbers.
type SessionsByNativeId<'w> = HashMap<(Provider, &'w str), Vec<&'w str>>;

/// Session ids by the group of their first records and responses, originals first. Groups of one
/// session are left out.
type SessionsByFirstRecord<'w> = HashMap<RecordKey, Vec<&'w str>>;

/// Maximum number of steps from fork to original that are checked for a cycle.
const MAX_FORK_STEPS: usize = 64;

/// Finds parents and ancestors among the sessions known and planned. Ancestors settled when a log
/// was read before stay settled, unless `new_logs` concern it: a log that came later does not make it a
/// copy.
pub(crate) fn link_logs(logs: &mut [PlannedLog], known: &Known, new_logs: &NewLogs) {
    let links = find_links(logs, known, new_logs);
    for (log, links) in logs.iter_mut().zip(links) {
        log.parent_session_id = links.parent_session_id;
        log.ancestors = links.ancestors;
        log.is_whole_copy = links.is_whole_copy;
        if links.is_unnamed_fork {
            log.relation = Some(Relation::ForkedFrom);
        }
    }
}

/// Returns the ids of the sessions of the logs in `logs`.
fn planned_sessions(logs: &[PlannedLog]) -> HashSet<&str> {
    logs.iter().map(|log| log.session_id.as_str()).collect()
}

/// How a log belongs to others.
struct Links {
    parent_session_id: Option<String>,
    ancestors: Vec<String>,
    /// True if the log is a copy, as a whole, of the log of another agent.
    is_whole_copy: bool,
    /// True if the log is a fork of a log that it does not name.
    is_unnamed_fork: bool,
}

/// Finds how each log in `logs` relates to the others.
fn find_links(logs: &[PlannedLog], known: &Known, new_logs: &NewLogs) -> Vec<Links> {
    let groups = SessionGroups::new(logs, known, new_logs);
    let versions = earlier_versions(known);
    // Only needed for forks that name no parent.
    let planned = LazyCell::new(|| planned_sessions(logs));
    let mut links = Vec::with_capacity(logs.len());
    for log in logs {
        let mut parent = groups.parent_of(&log.claim).map(Cow::Borrowed);
        if parent.is_none()
            && let Some(named) = log.claim.parent.as_deref()
        {
            // The id that the parent gets when it comes, or has if its row is all that is known.
            let is_known = known.sessions.contains_key(named);
            parent = Some(if is_known { Cow::Borrowed(named) } else { safe_session_id(named) });
        }
        let mut parent = parent.filter(|id| *id != log.session_id);
        if log.is_earlier_version() {
            // The id in the store, not one that a log gave.
            parent = log.claim.parent.as_deref().map(Cow::Borrowed);
        }

        let mut ancestors = match &log.source {
            Some(row) if log.is_earlier_version() => recorded_ancestors(row),
            Some(row) if is_settled(log, new_logs) => recorded_ancestors(row),
            Some(_) | None => groups.ancestors_of(log),
        };
        // Copies stay copies: the log is gone and cannot be read again.
        if let Some(row) = &log.source
            && log.change == LogChange::Gone
        {
            ancestors.extend(recorded_ancestors(row));
        }
        add_earlier_versions(&mut ancestors, log, &versions);
        ancestors.sort_unstable();
        ancestors.dedup();

        // Logs of one id are copies of one session, not forks. A session is not forked from its own
        // fork, unless that fork is read again.
        let mut is_unnamed_fork = false;
        if parent.is_none()
            && let Some(ancestor) = ancestors.first()
            && !is_id_of(ancestor, &log.claim.native_id)
            && (planned.contains(ancestor) || !is_child_of(ancestor, &log.session_id, known))
        {
            parent = Some(Cow::Borrowed(*ancestor));
            is_unnamed_fork = true;
        }
        links.push(Links {
            parent_session_id: parent.map(Cow::into_owned),
            ancestors: ancestors.into_iter().map(str::to_owned).collect(),
            is_whole_copy: groups.find_native(&log.claim).is_some(),
            is_unnamed_fork,
        });
    }
    let inherited = inherited_ancestors(logs, &links);
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
fn inherited_ancestors(logs: &[PlannedLog], links: &[Links]) -> Vec<(usize, Vec<String>)> {
    let mut inherited = Vec::new();
    for (at, log) in logs.iter().enumerate().filter(|(_, log)| log.is_earlier_version()) {
        let later =
            logs.iter().position(|other| Some(&other.session_id) == log.claim.parent.as_ref());
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
    log: &PlannedLog,
    versions: &HashMap<&str, Vec<&'k str>>,
) {
    if versions.is_empty() || log.is_earlier_version() {
        return;
    }
    let of_ancestors = ancestors.iter().filter_map(|id| versions.get(id)).flatten();
    let added: Vec<&str> = of_ancestors.copied().collect();
    ancestors.extend(added);
}

/// Returns whether the ancestors of a log stay those that it had when it was read before.
fn is_settled(log: &PlannedLog, new_logs: &NewLogs) -> bool {
    if !matches!(log.change, LogChange::Grown | LogChange::Same | LogChange::Gone) {
        return false;
    }
    let (Some(row), Some(session)) = (&log.source, &log.session) else { return false };
    !new_logs.is_relative(row, session)
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
    /// Sessions of other machines, by the groups of their first records.
    imported: SessionsByFirstRecord<'w>,
    /// Maps forks to the sessions that their logs name as originals.
    originals: HashMap<&'w str, &'w str>,
    /// Maps ids to the sessions that logs in a format for copies may be copies of.
    natives: HashMap<Cow<'w, str>, &'w str>,
}

impl<'w> SessionGroups<'w> {
    fn new(logs: &'w [PlannedLog], known: &'w Known, new_logs: &NewLogs) -> Self {
        let by_native = group_by_native_id(logs, known);
        let keys = join_record_keys(logs, known);
        let by_record = group_by_first_record(logs, known, new_logs, &keys);
        let imported = group_imported(known, &keys);
        let originals = originals_of_forks(logs, &by_native);
        let natives = collect_natives(logs, known);
        Self { by_native, keys, by_record, imported, originals, natives }
    }

    /// Returns the session of the parent that a log names. `None` if it names none, or if no such
    /// session is known or planned.
    fn parent_of(&self, claim: &SessionClaim) -> Option<&'w str> {
        first_session(&self.by_native, claim.provider, claim.parent.as_ref()?)
    }

    /// Returns the session of another agent that a log is a copy of, if its format is one for copies.
    fn find_native(&self, claim: &SessionClaim) -> Option<&'w str> {
        if !is_for_copies(claim.provider) {
            return None;
        }
        let native = self.natives.get(claim.native_id.as_str());
        native.or_else(|| self.natives.get(&*safe_session_id(&claim.native_id))).copied()
    }

    /// Returns the sessions whose records a log may repeat. They come before the log in its groups,
    /// so that one log of each group stays the original.
    fn ancestors_of(&self, log: &PlannedLog) -> Vec<&'w str> {
        let claim = &log.claim;
        if let Some(native) = self.find_native(claim) {
            return vec![native];
        }
        let same_id = self.by_native.get(&(base_of(claim.provider), claim.native_id.as_str()));
        let group =
            self.keys.group_of_log(claim.provider, claim.first_record, claim.first_response);
        let same_record = group.and_then(|group| self.by_record.get(&group));

        if format_of(claim.provider).has_unique_ids {
            let mut ancestors = sessions_before(&log.session_id, same_record);
            ancestors.extend(sessions_before(&log.session_id, same_id));
            // A fork may begin with another record than its original, as after a compaction.
            ancestors.extend(find_original(&log.session_id, &self.originals));
            ancestors
                .extend(imported_before(log, group.and_then(|group| self.imported.get(&group))));
            return ancestors;
        }

        // Ancestors are the other captures of the session, else the session that the log continues,
        // else the original of a fork that names none.
        let captures = sessions_before(&log.session_id, same_id);
        if !captures.is_empty() {
            return captures;
        }
        if let Some(parent) = self.parent_of(claim)
            && may_repeat_parent(claim)
            && parent != log.session_id
        {
            return vec![parent];
        }
        if claim.parent.is_some() {
            return Vec::new();
        }
        let mut ancestors = sessions_before(&log.session_id, same_record);
        ancestors.extend(imported_before(log, group.and_then(|group| self.imported.get(&group))));
        ancestors
    }
}

/// Returns the sessions of other machines whose records a log may repeat: those that were there when it
/// came. If they came later, they are the copies.
fn imported_before<'w>(log: &PlannedLog, group: Option<&Vec<&'w str>>) -> Vec<&'w str> {
    let mut before = group.cloned().unwrap_or_default();
    before.retain(|id| *id != log.session_id);
    if let Some(row) = &log.source {
        let recorded = recorded_ancestors(row);
        before.retain(|id| recorded.contains(id));
    }
    before
}

/// Returns whether the logs of a provider are copies of those of other agents.
fn is_for_copies(provider: Provider) -> bool {
    format_of(provider).quirks.copies_other_agents
}

/// Maps ids to the sessions that have a log of their own agent: their ids, and those that they get
/// where these are free. Empty if no log is in a format for copies.
fn collect_natives<'w>(logs: &'w [PlannedLog], known: &'w Known) -> HashMap<Cow<'w, str>, &'w str> {
    let mut natives = HashMap::new();
    if !logs.iter().any(|log| is_for_copies(log.claim.provider)) {
        return natives;
    }
    let mut add = |provider: Provider, session_id: &'w str, native_id: &'w str| {
        if !is_for_copies(provider) {
            natives.insert(Cow::Borrowed(session_id), session_id);
            natives.entry(safe_session_id(native_id)).or_insert(session_id);
        }
    };
    for session in known.sessions.values() {
        let native_id = session.native_id.as_deref().unwrap_or(&session.session_id);
        add(session.provider, &session.session_id, native_id);
    }
    for log in logs {
        add(log.claim.provider, &log.session_id, &log.claim.native_id);
    }
    natives
}

/// Returns the first session of a native id.
fn first_session<'w>(
    by_native: &SessionsByNativeId<'w>,
    provider: Provider,
    native_id: &str,
) -> Option<&'w str> {
    by_native.get(&(base_of(provider), native_id))?.first().copied()
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
fn group_by_native_id<'w>(logs: &'w [PlannedLog], known: &'w Known) -> SessionsByNativeId<'w> {
    let mut by_native = SessionsByNativeId::with_capacity(known.sessions.len() + logs.len());
    let mut sessions: Vec<_> =
        known.sessions.values().filter(|session| !session.is_earlier_version()).collect();
    sessions.sort_by_key(|session| (session.session_id.len(), &session.session_id));
    for session in sessions {
        if let Some(native) = session.native_id.as_deref() {
            let key = (base_of(session.provider), native);
            by_native.entry(key).or_default().push(&*session.session_id);
        }
    }
    for log in logs.iter().filter(|log| log.change == LogChange::New) {
        let key = (base_of(log.claim.provider), log.claim.native_id.as_str());
        by_native.entry(key).or_default().push(&*log.session_id);
    }
    by_native
}

/// Joins the first records and the first responses of all logs known and planned.
fn join_record_keys(logs: &[PlannedLog], known: &Known) -> RecordKeys {
    let mut keys = RecordKeys::default();
    for row in known.sources.values().chain(&known.imported) {
        if let Some(provider) = row.provider {
            let record = row.first_record.map(i64::cast_unsigned);
            keys.join(provider, record, row.first_response.map(i64::cast_unsigned));
        }
    }
    for PlannedLog { claim, .. } in logs {
        keys.join(claim.provider, claim.first_record, claim.first_response);
    }
    keys
}

/// Groups the sessions of other machines by first record.
fn group_imported<'w>(known: &'w Known, keys: &RecordKeys) -> SessionsByFirstRecord<'w> {
    let mut groups = SessionsByFirstRecord::new();
    for row in &known.imported {
        let (Some(provider), Some(session)) = (row.provider, known.session_of(row)) else {
            continue;
        };
        let record = row.first_record.map(i64::cast_unsigned);
        if let Some(key) = keys.group_of_log(provider, record, None) {
            groups.entry(key).or_default().push(&*session.session_id);
        }
    }
    groups
}

/// Groups sessions by first record and first response. Only groups with an unsettled log are
/// included.
fn group_by_first_record<'w>(
    logs: &'w [PlannedLog],
    known: &'w Known,
    new_logs: &NewLogs,
    keys: &RecordKeys,
) -> SessionsByFirstRecord<'w> {
    let mut keyed_logs: Vec<(RecordKey, &PlannedLog)> = Vec::with_capacity(logs.len());
    for log in logs.iter().filter(|log| !log.is_earlier_version()) {
        let claim = &log.claim;
        let key = keys.group_of_log(claim.provider, claim.first_record, claim.first_response);
        keyed_logs.extend(key.map(|key| (key, log)));
    }
    keyed_logs.sort_by_key(|(key, _)| *key);

    let mut known_logs = group_known_logs(&keyed_logs, logs, known, keys);
    let mut groups = SessionsByFirstRecord::new();
    for same in keyed_logs.chunk_by(|(a, _), (b, _)| a == b) {
        let (key, _) = same[0];
        let of_known = known_logs.remove(&key).unwrap_or_default();
        // Most logs are alone in their group.
        if same.len() + of_known.len() < 2 || same.iter().all(|(_, log)| is_settled(log, new_logs))
        {
            continue;
        }
        let mut group = Vec::with_capacity(same.len() + of_known.len());
        group.extend(same.iter().map(|(_, log)| GroupedLog {
            session_id: &log.session_id,
            provider: log.claim.provider,
            native_id: &log.claim.native_id,
            path: &log.file.path,
            parent: log.claim.parent.as_deref(),
            ancestors: log.source.as_deref().map(recorded_ancestors),
            file: (log.change != LogChange::Gone).then_some(&log.file),
        }));
        group.extend(of_known);
        groups.insert(key, originals_first(group));
    }
    groups
}

/// Returns the known logs of the groups of `logs`, which are sorted by key. Those in `logs` are left
/// out.
fn group_known_logs<'w>(
    keyed_logs: &[(RecordKey, &PlannedLog)],
    logs: &[PlannedLog],
    known: &'w Known,
    keys: &RecordKeys,
) -> HashMap<RecordKey, Vec<GroupedLog<'w>>> {
    let mut groups: HashMap<RecordKey, Vec<GroupedLog<'w>>> = HashMap::new();
    let planned = LazyCell::new(|| planned_sessions(logs));
    for row in known.sources.values() {
        let key = row.provider.and_then(|provider| {
            let record = row.first_record.map(i64::cast_unsigned);
            keys.group_of_log(provider, record, row.first_response.map(i64::cast_unsigned))
        });
        let Some(key) = key else { continue };
        if keyed_logs.binary_search_by_key(&key, |(key, _)| *key).is_err() {
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
    logs: &'w [PlannedLog],
    by_native: &SessionsByNativeId<'w>,
) -> HashMap<&'w str, &'w str> {
    let mut originals = HashMap::new();
    for log in logs {
        if log.claim.relation == Some(Relation::ForkedFrom)
            && let Some(parent) = &log.claim.parent
            && let Some(original) = first_session(by_native, log.claim.provider, parent)
        {
            originals.insert(log.session_id.as_str(), original);
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
pub(crate) fn group_into_units(logs: Vec<PlannedLog>) -> Vec<Vec<PlannedLog>> {
    let groups = group_dependent_logs(&logs);
    let mut logs: Vec<_> = logs.into_iter().map(Some).collect();
    let mut units = Vec::with_capacity(groups.len());
    for group in groups {
        units.push(group.into_iter().filter_map(|at| logs[at].take()).collect::<Vec<_>>());
    }
    units.sort_by_cached_key(|unit| {
        let oldest_change = unit.iter().map(|log| log.file.modified_us).min();
        (oldest_change, unit.first().map(|log| log.file.path.clone()))
    });
    units
}

/// Groups the positions of logs that depend on each other, ancestors first.
fn group_dependent_logs(logs: &[PlannedLog]) -> Vec<Vec<usize>> {
    let index: HashMap<&str, usize> =
        logs.iter().enumerate().map(|(at, log)| (log.session_id.as_str(), at)).collect();
    let mut groups: Vec<usize> = (0..logs.len()).collect();
    for (at, log) in logs.iter().enumerate() {
        for ancestor in log.ancestors.iter().filter_map(|id| index.get(id.as_str())) {
            let root = find_root(&mut groups, at);
            let ancestor_root = find_root(&mut groups, *ancestor);
            groups[root] = ancestor_root;
        }
    }

    let mut by_root: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
    for at in 0..logs.len() {
        by_root[find_root(&mut groups, at)].push(at);
    }
    by_root.retain(|group| !group.is_empty());
    by_root.into_iter().map(|group| ancestors_first(logs, group)).collect()
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
fn ancestors_first(logs: &[PlannedLog], mut unit: Vec<usize>) -> Vec<usize> {
    if unit.len() == 1 {
        return unit;
    }
    unit.sort_by_key(|at| &logs[*at].file.path);
    let positions: HashMap<&str, usize> =
        unit.iter().enumerate().map(|(at, log)| (logs[*log].session_id.as_str(), at)).collect();
    let mut ancestors: Vec<Vec<usize>> = Vec::with_capacity(unit.len());
    for at in &unit {
        let ids = logs[*at].ancestors.iter();
        let inside = ids.filter_map(|id| positions.get(id.as_str()).copied());
        ancestors.push(inside.collect());
    }
    sort_by_ancestors(&ancestors).into_iter().filter_map(|at| unit.get(at).copied()).collect()
}
