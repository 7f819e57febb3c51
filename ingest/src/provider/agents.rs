//! Which subagents have a log of their own: what they do may stand in their parent's as well.

use std::collections::HashMap;

/// Answers that were found in a reading, by the agent's id.
#[derive(Default)]
pub(super) struct AgentLogs(HashMap<String, bool>);

impl AgentLogs {
    /// Whether an agent has a log; `look` is asked once.
    pub(super) fn has(&mut self, agent: &str, look: impl FnOnce() -> bool) -> bool {
        self.0.get(agent).copied().unwrap_or_else(|| {
            let found = look();
            self.0.insert(agent.to_owned(), found);
            found
        })
    }
}
