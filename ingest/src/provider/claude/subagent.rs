//! Messages of subagents inside the parent's log: `progress` records of Claude Code 2.1.12 to
//! 2.1.81 (docs/formats.md#claude-code). If the subagent's own log exists, they are copies;
//! otherwise they are the only record of its work.

use std::path::Path;

use crate::provider::shared::agents::AgentLogs;
use crate::source::container::is_there;
use crate::stream::Stream;
use crate::text::json::{Fields, Value};

/// Remembers which subagents have a log of their own.
#[derive(Default)]
pub(super) struct Subagents(AgentLogs);

impl Subagents {
    /// Returns the id of a subagent without a log of its own, and its message in a `progress`
    /// record. The message has the token counts from the start of the answer.
    pub(super) fn message<'a>(
        &mut self,
        object: Value<'a>,
        out: &Stream,
    ) -> Option<(&'a str, Value<'a>)> {
        let data = object.object("data").filter(|_| object.text("type") == Some("progress"))?;
        let message =
            data.object("message").filter(|message| message.object("message").is_some())?;
        let told = matches!(message.text("type"), Some("assistant" | "user"));
        let agent = data.text("agentId").filter(|_| told)?;
        (!self.has_log(agent, out)).then_some((agent, message))
    }

    /// Returns whether a result comes from a subagent whose log is missing. The usage of its
    /// requests is missing too.
    pub(super) fn lacks_counts(&mut self, object: Value<'_>, out: &Stream) -> bool {
        let is_told = |end: &Value<'_>| {
            end.int("totalTokens").is_some() || end.text("status") == Some("async_launched")
        };
        let told = object.object("toolUseResult").filter(is_told);
        let agent = told.and_then(|end| end.non_empty("agentId"));
        agent.is_some_and(|agent| !out.is_copying() && !self.has_log(agent, out))
    }

    fn has_log(&mut self, agent: &str, out: &Stream) -> bool {
        self.0.has(agent, || has_log(&out.session.source_path, agent))
    }
}

/// Returns the messages that a subagent has written up to a `progress` record, all of them each
/// time. In version 2.1.12 `data.message` does not contain them.
pub(super) fn said(progress: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let messages = progress.object("data").into_iter();
    let messages = messages.flat_map(|data| data.items("normalizedMessages"));
    messages.filter(|message| {
        let parts = message.object("message").map(|said| said.items("content"));
        let is_text = |part: &Value<'_>| part.text("type") == Some("text");
        message.text("type") == Some("assistant")
            && parts.is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_text))
    })
}

/// Returns whether an agent's log is where Claude puts it: next to the parent's log, or in the
/// folder of that log.
fn has_log(parent: &str, agent: &str) -> bool {
    let parent = Path::new(parent);
    let name = format!("agent-{agent}.jsonl");
    is_there(&parent.with_file_name(&name))
        || is_there(&parent.with_extension("").join("subagents").join(&name))
}
