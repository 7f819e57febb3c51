//! Reads the sums of a report: groups so small that the page can add them up for every filter.

use schemas::ToolError;
use schemas::tool::OneOrMany;
use schemas::tool::stats::{Group, GroupKey, StatsArgs};

use tools::{Call, Extent, SessionSelection, Tools};

/// Returns the groups of the selected sessions by these keys.
pub(super) fn read_cells(
    tools: &Tools,
    selection: &SessionSelection,
    keys: &[GroupKey],
    call: &Call<'_>,
) -> Result<Vec<Group>, ToolError> {
    let args = StatsArgs {
        group_by: OneOrMany::Many(keys.to_vec()),
        provider: selection.provider,
        project: selection.project.clone(),
        since: selection.since.clone(),
        until: selection.until.clone(),
        ..StatsArgs::default()
    };
    let mut groups = tools.count_sessions(&args, Extent::Cells, call)?.data.into_value().groups;
    for group in &mut groups {
        // The title is in the row of the session, and a cell is too small for a trend.
        group.title = None;
        group.trend = Vec::new();
        group.models = Vec::new();
    }
    Ok(groups)
}
