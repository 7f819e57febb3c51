//! The flags that select the sessions of an export or a report.

use schemars::JsonSchema;
use schemas::Provider;
use serde::Deserialize;

use super::tool_flags::ToolFlags;
use tools::SessionSelection;

/// The values of these flags, whose help is that of the tools' flags.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct SelectionArgs {
    provider: Option<Provider>,
    project: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

pub(super) type SelectionFlags = ToolFlags<SelectionArgs>;

impl SelectionFlags {
    /// Returns the selection of these sessions, or of all if `session_ids` is empty.
    pub(super) fn select(self, session_ids: Vec<String>) -> SessionSelection {
        let SelectionArgs { provider, project, since, until } = self.0;
        SessionSelection { session_ids, provider, project, since, until }
    }
}
