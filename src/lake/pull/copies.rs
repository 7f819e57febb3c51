//! Makes what several machines have of one history count once.
//!
//! A machine marks what its logs copied from each other. Between machines it cannot: so after a pull
//! the sessions that begin with the same record are compared, and all but one of them get marks on the
//! events with which they begin alike. The session of this machine counts them, or else the first by
//! its id in the lake, so that the order of pushes and pulls does not matter.

use std::collections::HashMap;

use ingest::provider::base_of;
use schemas::session::SourceRow;
use schemas::{Provider, ToolError};

use super::known::{ImportedFrom, PullContext, source_path};
use crate::lake::selection::own_sessions;
use store::{CopiedEvents, EventHistory, LAKE_PATH, Snapshot};
use tools::error::store_error;

/// A session that may share history with those of other machines.
struct Member {
    /// Position in the snapshot.
    at: usize,
    log: String,
    first_record: Option<(Provider, i64)>,
    /// What was imported; `None` for a session of this machine.
    imported: Option<(ImportedFrom, SourceRow)>,
}

impl Member {
    /// Returns the machine that publishes the session; `None` for this one.
    fn machine(&self) -> Option<&str> {
        self.imported.as_ref().map(|(from, _)| from.publisher.as_str())
    }

    /// Returns the number of first events that are marked because another session counts them.
    fn copied(&self) -> usize {
        self.imported.as_ref().map_or(0, |(from, _)| from.copied)
    }
}

/// A session whose marks change.
struct Change {
    member: usize,
    count: usize,
}

/// Marks the events that other sessions count. Returns the machine and key of each session of the lake
/// that has marks on events which no other session counts any more: it must be imported again.
pub(super) fn mark_copies(context: &PullContext<'_>) -> Result<Vec<(String, String)>, ToolError> {
    let snapshot = context.store.take_snapshot().map_err(store_error)?;
    let members = read_members(&snapshot)?;
    if find_changes(&snapshot, &members)?.is_empty() {
        return Ok(Vec::new());
    }
    let writer = (context.open_writer)()?;
    let snapshot = writer.take_snapshot().map_err(store_error)?;
    let members = read_members(&snapshot)?;
    let mut copied = Vec::new();
    let mut outdated = Vec::new();
    let prefix = source_path(context.place, "");
    for Change { member, count } in find_changes(&snapshot, &members)? {
        let Some((from, source)) = &members[member].imported else { continue };
        if count < from.copied {
            let key = source.path.strip_prefix(&prefix);
            outdated.extend(key.map(|key| (from.publisher.clone(), key.to_owned())));
            continue;
        }
        let from = ImportedFrom { copied: count, ..from.clone() };
        let state = serde_json::to_string(&from).ok();
        let source = SourceRow { state, ..source.clone() };
        copied.push(CopiedEvents { session: members[member].at, count, source });
    }
    if !copied.is_empty() {
        writer.mark_copied_events(&snapshot, copied).map_err(store_error)?;
    }
    Ok(outdated)
}

/// Returns the imported sessions, and those of this machine that may share history with one of them:
/// first those of this machine, then the others by their ids in the lake.
fn read_members(snapshot: &Snapshot) -> Result<Vec<Member>, ToolError> {
    let mut imported = Vec::new();
    for source in snapshot.read_sources(true).map_err(store_error)? {
        let (Some(from), Some(id)) = (ImportedFrom::of_source(&source), &source.session_id) else {
            continue;
        };
        let at = snapshot.session_position(id).filter(|_| source.path.starts_with(LAKE_PATH));
        let Some(at) = at else { continue };
        let first_record = source.provider.map(base_of).zip(source.first_record);
        let log = from.log.clone();
        imported.push(Member { at, log, first_record, imported: Some((from, source)) });
    }
    let rows = snapshot.read_rows().map_err(store_error)?;
    imported.sort_by_cached_key(|member| {
        let has_parent = rows[member.at].relation.is_some();
        let path = member.imported.as_ref().map(|(_, source)| source.path.clone());
        (has_parent, path)
    });
    let mut members = Vec::new();
    for own in own_sessions(snapshot)? {
        let first_record = own.source.first_record.map(|first| (base_of(own.row.provider), first));
        members.push(Member { at: own.at, log: own.identity, first_record, imported: None });
    }
    members.extend(imported);
    Ok(members)
}

/// Compares the sessions of several machines that begin with the same record.
fn find_changes(snapshot: &Snapshot, members: &[Member]) -> Result<Vec<Change>, ToolError> {
    let mut changes = Vec::new();
    for group in group_members(members) {
        let first = members[group[0]].machine();
        let has_others = group.iter().any(|at| members[*at].machine() != first);
        let has_marks = group.iter().any(|at| members[*at].copied() > 0);
        if has_others || has_marks {
            compare_group(snapshot, members, &group, &mut changes)?;
        }
    }
    Ok(changes)
}

/// Returns the positions of the members that begin with the same record, group by group.
fn group_members(members: &[Member]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut by_log: HashMap<&str, usize> = HashMap::new();
    let mut by_record: HashMap<(Provider, i64), usize> = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        let known = by_log.get(member.log.as_str()).copied();
        let known = known.or_else(|| by_record.get(&member.first_record?).copied());
        let group = known.unwrap_or(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(at);
        by_log.entry(&member.log).or_insert(group);
        if let Some(first) = member.first_record {
            by_record.entry(first).or_insert(group);
        }
    }
    groups.retain(|group| group.len() > 1 || members[group[0]].copied() > 0);
    groups
}

/// Compares each session of a group with those before it that another machine has.
fn compare_group(
    snapshot: &Snapshot,
    members: &[Member],
    group: &[usize],
    changes: &mut Vec<Change>,
) -> Result<(), ToolError> {
    let mut histories = Vec::with_capacity(group.len());
    for at in group {
        let history = EventHistory::of_session(snapshot, members[*at].at);
        histories.push(history.map_err(store_error)?);
    }
    // The number of first events of each session that one before it counts.
    let mut copied: Vec<usize> = Vec::with_capacity(group.len());
    for (position, at) in group.iter().enumerate() {
        let member = &members[*at];
        let mut count = 0;
        if member.imported.is_some() {
            for (other_position, other_at) in group[..position].iter().enumerate() {
                let other = &members[*other_at];
                if other.machine() == member.machine() {
                    continue;
                }
                let is_same_log = other.log == member.log;
                let history = &histories[other_position];
                let common = histories[position].count_common(history, is_same_log);
                let start = copied[other_position].min(common);
                count = count.max(history.counted_until(start, common));
            }
        }
        let before = member.copied();
        let is_marked = count >= before && histories[position].is_marked(before..count);
        if count != before && !is_marked {
            changes.push(Change { member: *at, count });
        }
        copied.push(if is_marked { before } else { count });
    }
    Ok(())
}
