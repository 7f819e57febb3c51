//! The flags that select the events to count, for `stats` and `usage`.

use schemas::Provider;
use schemas::tool::OneOrMany;
use schemas::tool::stats::{GroupKey, StatsArgs, StatsSort};

#[derive(Debug, clap::Args)]
pub(super) struct StatsFilter {
    /// Only this agent's logs
    #[arg(long)]
    provider: Option<Provider>,
    /// Only sessions whose working directory contains this text
    #[arg(long)]
    project: Option<String>,
    /// Only this session; any unique prefix
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Only events since: '24h', '7d', a date or RFC 3339 time
    #[arg(long)]
    since: Option<String>,
    /// Only events before, in the same forms
    #[arg(long)]
    until: Option<String>,
}

impl StatsFilter {
    /// Returns the arguments of `session_stats` with this filter.
    pub(super) fn into_args(
        self,
        group_by: Vec<GroupKey>,
        sort: Option<StatsSort>,
        limit: Option<u32>,
    ) -> StatsArgs {
        StatsArgs {
            group_by: OneOrMany::Many(group_by),
            provider: self.provider,
            project: self.project,
            session_id: self.session_id,
            since: self.since,
            until: self.until,
            timezone: None,
            sort,
            limit,
        }
    }
}
