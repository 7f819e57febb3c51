//! The flags that select the sessions of an export or a report.

use schemas::Provider;

use tools::SessionSelection;

#[derive(Debug, clap::Args)]
pub(super) struct SelectionFlags {
    /// Only this agent's sessions
    #[arg(long, visible_alias = "agent")]
    provider: Option<Provider>,
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only what happened since: '24h', '7d', 'yesterday', 'last week', a date or time
    #[arg(long)]
    since: Option<String>,
    /// Only what happened before that time
    #[arg(long)]
    until: Option<String>,
}

impl SelectionFlags {
    /// Returns the selection of these sessions, or of all if `session_ids` is empty.
    pub(super) fn select(self, session_ids: Vec<String>) -> SessionSelection {
        let Self { provider, project, since, until } = self;
        SessionSelection { session_ids, provider, project, since, until }
    }
}
