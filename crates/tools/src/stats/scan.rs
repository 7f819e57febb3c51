//! Reads the selected rows, part by part, in parallel on all cores.

use std::collections::HashMap;

use schemas::table::EventColumn;
use schemas::tool::stats::{Group, GroupKey};
use schemas::{ErrorCode, ToolError};

use super::group::StatsGroups;
use super::plan::StatsPlan;
use super::sums::GroupSums;
use crate::reply::history::{ColumnPart, ColumnScan, Examined, History, Stop, WantedColumns};
use base::parallel::in_parallel;

/// The groups of a part, with its number.
type PartGroups = (usize, HashMap<String, GroupSums>);

/// Returns the groups, in no particular order, and what was examined for them.
pub(super) fn collect_groups(
    plan: &StatsPlan<'_>,
    history: &dyn History,
    stop: Stop<'_>,
) -> Result<(Vec<Group>, Examined), ToolError> {
    let wanted = WantedColumns {
        snapshot: plan.snapshot,
        is_selected: plan.is_selected,
        columns: columns_to_read(plan),
        since: plan.since,
        until: plan.until,
        stop,
    };
    let ColumnScan { parts, examined } = history.plan_scan(&wanted)?;
    let parts: Vec<_> = parts.iter().enumerate().collect();
    let sums = in_parallel(&parts, 1, |parts| sum_parts(plan, parts, stop))?;
    let mut sums: Vec<_> = sums.into_iter().flatten().collect();
    if plan.has_too_many_groups() {
        return Err(plan.too_many_groups_error());
    }
    if sums.len() < parts.len() {
        return Err(ToolError::new(ErrorCode::Cancelled, "The call was cancelled"));
    }

    // The order is fixed, so that the same call gives the same cost to the last digit.
    sums.sort_by_key(|(number, _)| *number);
    let mut all: HashMap<String, GroupSums> = HashMap::new();
    for (key, sums) in sums.into_iter().flat_map(|(_, groups)| groups) {
        all.entry(key).or_default().merge(sums);
    }
    let groups = all.into_iter().filter(|(_, sums)| !sums.is_empty());
    Ok((groups.map(|(key, sums)| sums.into_group(plan, &key)).collect(), examined))
}

/// Returns the groups of each part, with its number. Parts after a stopped one are missing.
fn sum_parts(
    plan: &StatsPlan<'_>,
    parts: &[(usize, &ColumnPart<'_>)],
    stop: Stop<'_>,
) -> Result<Vec<PartGroups>, ToolError> {
    let mut sums = Vec::new();
    for (number, part) in parts {
        let mut groups = StatsGroups::new(plan);
        let mut current = None;
        let mut is_stopped = false;
        part(&mut |session, rows| {
            is_stopped = stop() || plan.has_too_many_groups();
            if is_stopped {
                return false;
            }
            if current.replace(session) != Some(session) {
                groups.begin_session();
            }
            groups.add_rows(session, rows);
            true
        })?;
        if is_stopped {
            break;
        }
        sums.push((*number, groups.finish()));
    }
    Ok(sums)
}

/// Returns the columns to read: never the text, and no tokens if only calls and results have a key.
fn columns_to_read(plan: &StatsPlan<'_>) -> Vec<EventColumn> {
    let mut columns = vec![
        EventColumn::EventType,
        EventColumn::Timestamp,
        EventColumn::IsReplay,
        EventColumn::IsError,
        EventColumn::DurationMs,
        EventColumn::TextBytes,
    ];
    if !plan.keys.iter().any(|key| key.is_of_tools()) {
        columns.extend([EventColumn::Subtype, EventColumn::Model, EventColumn::RequestId]);
        columns.extend(EventColumn::TOKENS);
        columns.extend(EventColumn::MODE);
    }
    columns.extend(plan.keys.iter().filter_map(|key| match key {
        GroupKey::Model => Some(EventColumn::Model),
        GroupKey::Tool => Some(EventColumn::ToolName),
        GroupKey::ToolKind => Some(EventColumn::ToolKind),
        GroupKey::Branch => Some(EventColumn::GitBranch),
        GroupKey::File => Some(EventColumn::Files),
        // These values belong to the session, or are read for every key.
        GroupKey::Provider
        | GroupKey::Project
        | GroupKey::EventType
        | GroupKey::Error
        | GroupKey::Day
        | GroupKey::Week
        | GroupKey::Month
        | GroupKey::Hour
        | GroupKey::Session
        | GroupKey::Machine
        | GroupKey::User => None,
    }));
    columns
}
