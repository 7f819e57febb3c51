//! Defines what a call counts: the selected rows, the keys of the groups, and the limit on groups.

use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::price::PriceTable;
use schemas::tool::stats::GroupKey;
use schemas::{ErrorCode, ToolError, Zone, limits};

use store::Snapshot;

/// The selection of rows, and how they are counted.
pub(super) struct StatsPlan<'a> {
    pub snapshot: &'a Snapshot,
    pub keys: &'a [GroupKey],
    /// For every session, whether it is selected.
    pub is_selected: &'a [bool],
    /// The zone of days, weeks, months and hours.
    pub zone: &'a Zone,
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// The time range of trends; `None` without trends.
    pub range: Option<(i64, i64)>,
    pub prices: &'a PriceTable,
    /// The number of groups created so far by all cores, limited because each takes memory.
    pub group_count: AtomicUsize,
}

impl StatsPlan<'_> {
    /// Counts one more group, and returns true if it may be created.
    pub(super) fn reserve_group(&self) -> bool {
        self.group_count.fetch_add(1, Ordering::Relaxed) < limits::STATS_GROUPS
    }

    pub(super) fn has_too_many_groups(&self) -> bool {
        self.group_count.load(Ordering::Relaxed) > limits::STATS_GROUPS
    }

    /// Returns the error for a call with more groups than the limit.
    pub(super) fn too_many_groups_error(&self) -> ToolError {
        let names = self.keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(",");
        let message = format!(
            "group_by: '{names}' gives more than {} groups. Narrow with provider, project, session_id, since or until, or group by fewer keys",
            limits::STATS_GROUPS
        );
        ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "group_by")
    }
}
