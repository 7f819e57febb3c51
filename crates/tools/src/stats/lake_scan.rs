//! Sums up the rows of a lake, whose columns an engine reads.

use schemas::ToolError;
use schemas::tool::stats::Group;

use super::group::StatsGroups;
use super::plan::StatsPlan;
use super::scan::columns_to_read;
use crate::reply::lake_engine::{LakeEngine, LakeScope, WantedColumns};

/// Returns the groups, in no particular order, and what the engine examined.
pub(super) fn collect_lake_groups(
    plan: &StatsPlan<'_>,
    engine: &dyn LakeEngine,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(Vec<Group>, LakeScope), ToolError> {
    let selected = plan.snapshot.sessions().iter().enumerate();
    let selected = selected.filter(|(at, _)| plan.is_selected(*at));
    let wanted = WantedColumns {
        sessions: selected.map(|(_, row)| row.session_id.as_str()).collect(),
        columns: columns_to_read(plan),
        since: plan.since,
        until: plan.until,
    };
    let mut groups = StatsGroups::new(plan);
    let mut current = String::new();
    let scope = engine.read_columns(&wanted, stop, &mut |id, batch| {
        if plan.has_too_many_groups() {
            return Ok(false);
        }
        let Some(session) = plan.snapshot.session_position(id) else { return Ok(true) };
        if current != id {
            id.clone_into(&mut current);
            groups.begin_session();
        }
        groups.add_rows(session, batch);
        Ok(true)
    })?;
    if plan.has_too_many_groups() {
        return Err(plan.too_many_groups_error());
    }
    let groups = groups.finish().into_iter().filter(|(_, sums)| !sums.is_empty());
    Ok((groups.map(|(key, sums)| sums.into_group(plan, &key)).collect(), scope))
}
