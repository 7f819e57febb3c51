//! Remembers which subagents have a log of their own. The parent's log may record their work as
//! well.

use std::collections::HashMap;

/// Results of the lookups in one reading, by the agent's id.
#[derive(Default)]
pub(crate) struct AgentLogs(HashMap<String, bool>);

impl AgentLogs {
    /// Returns whether an agent has a log. Calls `find_log` only for an agent that was not looked
    /// up before.
    pub(crate) fn has_log(&mut self, agent: &str, find_log: impl FnOnce() -> bool) -> bool {
        if let Some(has_log) = self.0.get(agent) {
            return *has_log;
        }
        let has_log = find_log();
        self.0.insert(agent.to_owned(), has_log);
        has_log
    }
}
