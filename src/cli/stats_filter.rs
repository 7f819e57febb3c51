//! The flags that select the events to count, for `stats` and `usage`.

use schemas::Provider;
use schemas::tool::OneOrMany;
use schemas::tool::stats::{GroupKey, StatsArgs, StatsSort};

#[derive(Debug, Clone, clap::Args)]
pub(super) struct StatsFilter {
    /// Only this agent's logs
    #[arg(long, visible_alias = "agent")]
    provider: Option<Provider>,
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only sessions of machines whose name contains this text
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Only sessions of users whose name contains this text
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Only this session; any unique prefix
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Only events since: '24h', '7d', 'yesterday', 'last week', a date or time
    #[arg(long)]
    since: Option<String>,
    /// Only events before, in the same forms
    #[arg(long)]
    until: Option<String>,
}

impl StatsFilter {
    /// Sets the times that the command itself names. Those of the flags stay.
    pub(super) fn set_bounds(&mut self, since: Option<String>, until: Option<String>) {
        self.since = self.since.take().or(since);
        self.until = self.until.take().or(until);
    }

    /// Limits the events to the latest ones, unless the flags limit them. Returns true if it did.
    pub(super) fn set_usual_span(&mut self, span: &str) -> bool {
        let is_free = self.since.is_none() && self.until.is_none() && self.session_id.is_none();
        if is_free {
            self.since = Some(span.to_owned());
        }
        is_free
    }

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
            machine: self.machine,
            user: self.user,
            session_id: self.session_id,
            since: self.since,
            until: self.until,
            timezone: None,
            sort,
            limit,
        }
    }
}
