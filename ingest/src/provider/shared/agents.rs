//! Remembers which subagents have a log of their own. The parent's log may record their work as
//! well.

use std::collections::HashMap;

/// Results of the lookups in one reading, by the agent's id.
#[derive(Default)]
pub(crate) struct AgentLogs(HashMap<String, bool>);

impl AgentLogs {
    /// Returns whether an agent has a log. Calls `look` only for an agent that was not looked up
    /// before.
    pub(crate) fn has(&mut self, agent: &str, look: impl FnOnce() -> bool) -> bool {
        self.0.get(agent).copied().unwrap_or_else(|| {
            let found = look();
            self.0.insert(agent.to_owned(), found);
            found
        })
    }
}
