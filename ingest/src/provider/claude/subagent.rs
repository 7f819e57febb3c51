//! Finds messages of subagents inside the parent's log: `progress` records of Claude Code 2.1.12 to
//! 2.1.81 (docs/formats.md#claude-code). If the subagent's own log exists, they are copies.
//! Otherwise they are the only record of its work.

use std::path::Path;

use crate::provider::shared::agents::AgentLogs;
use crate::source::container::has_log;
use crate::stream::Stream;
use crate::text::json::{JsonFields, Value};

/// Remembers which subagents have a log of their own.
#[derive(Default)]
pub(super) struct Subagents(AgentLogs);

impl Subagents {
    /// Returns the id of a subagent without a log of its own, and its message in a `progress`
    /// record. The message has the token counts from the start of the answer.
    pub(super) fn find_unlogged_message<'a>(
        &mut self,
        object: Value<'a>,
        out: &Stream,
    ) -> Option<(&'a str, Value<'a>)> {
        if object.text("type") != Some("progress") {
            return None;
        }
        let data = object.object("data")?;
        let message = data.object("message")?;
        let is_message = message.object("message").is_some()
            && matches!(message.text("type"), Some("assistant" | "user"));
        let agent = data.text("agentId")?;
        if !is_message || self.has_log(agent, out) {
            return None;
        }
        Some((agent, message))
    }

    /// Returns whether a result comes from a subagent whose log is missing. The usage of its
    /// requests is missing too. `has_sidechain` is true if subagents wrote inside this log, as those
    /// of version 1.0 did, whose results do not name them.
    pub(super) fn lacks_counts(
        &mut self,
        object: Value<'_>,
        has_sidechain: bool,
        out: &Stream,
    ) -> bool {
        let Some(end) = object.object("toolUseResult") else { return false };
        if end.int("totalTokens").is_none() && end.text("status") != Some("async_launched") {
            return false;
        }
        let Some(agent) = end.non_empty("agentId") else {
            return !has_sidechain && !out.is_record_copied();
        };
        !out.is_record_copied() && !self.has_log(agent, out)
    }

    fn has_log(&mut self, agent: &str, out: &Stream) -> bool {
        self.0.has_log(agent, || has_agent_log(&out.session.source_path, agent))
    }
}

/// Returns the messages that a subagent has written up to a `progress` record, all of them each
/// time. In version 2.1.12 `data.message` does not contain them.
pub(super) fn normalized_answers(progress: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let messages = progress.object("data").map(|data| data.items("normalizedMessages"));
    messages.unwrap_or_default().into_iter().filter(|message| is_answer(*message))
}

/// Returns whether a message is text of the model, without tool calls or other blocks.
fn is_answer(message: Value<'_>) -> bool {
    if message.text("type") != Some("assistant") {
        return false;
    }
    let Some(message) = message.object("message") else { return false };
    let parts = message.items("content");
    !parts.is_empty() && parts.iter().all(|part| part.text("type") == Some("text"))
}

/// Returns whether an agent's log is where Claude puts it: next to the parent's log, or in the
/// folder of that log.
fn has_agent_log(parent: &str, agent: &str) -> bool {
    let parent = Path::new(parent);
    let name = format!("agent-{agent}.jsonl");
    has_log(&parent.with_file_name(&name))
        || has_log(&parent.with_extension("").join("subagents").join(&name))
}
