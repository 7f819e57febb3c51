//! Decodes the blocks of a message, with those of the agents in it.

use schemas::EventType;

use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::drift;
use crate::stream::Stream;
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Maximum number of agents inside each other that are read.
const MAX_AGENT_DEPTH: usize = 16;

/// Decodes the blocks of a message, which has all responses of the model to a prompt. A text after a
/// tool is of the next response.
#[derive(Default)]
pub(super) struct ResponseDecoder {
    in_response: bool,
    has_called: bool,
}

impl ResponseDecoder {
    /// Pushes the blocks of a message, or of the agent with the id `agent`, or else its text.
    pub(super) fn push_blocks(
        &mut self,
        owner: Value<'_>,
        agent: Option<&str>,
        depth: usize,
        out: &mut Stream,
    ) {
        let blocks = owner.items("blocks");
        if !blocks.iter().any(|block| block.text("type") == Some("text")) {
            self.push_said(EventType::Message, owner.text("content").unwrap_or(""), out);
        }
        for block in blocks {
            self.push_block(block, agent, depth, out);
        }
    }

    fn push_block(
        &mut self,
        block: Value<'_>,
        agent: Option<&str>,
        depth: usize,
        out: &mut Stream,
    ) {
        let content = block.text("content").unwrap_or("");
        match block.text("type") {
            Some("text") if block.text("textType") == Some("reasoning") => {
                self.push_said(EventType::Reasoning, content, out);
            }
            Some("text" | "plan") => self.push_said(EventType::Message, content, out),
            Some("image") => {
                let mut text = String::new();
                append_image(block, &mut text);
                self.push_said(EventType::Message, &text, out);
            }
            Some("tool") => self.push_tool(block, out),
            Some("ask-user") => self.push_question(block, out),
            Some("agent") if depth < MAX_AGENT_DEPTH => {
                self.push_agent(block, depth, out);
                out.set_agent(agent);
                self.in_response = false;
            }
            Some("agent-list" | "html" | "mode-divider") => {}
            Some("gate-state") => {
                let mut text = String::new();
                render::append_notification(block, &["type"], &mut text);
                out.push_notification("gate-state", &text);
            }
            kind => drift::push_unknown_block(kind.unwrap_or("untyped"), block, out),
        }
    }

    fn push_said(&mut self, kind: EventType, text: &str, out: &mut Stream) {
        if text.trim().is_empty() {
            return;
        }
        self.in_response &= !std::mem::take(&mut self.has_called);
        out.begin_response(&mut self.in_response);
        out.push_text(kind, text);
    }

    fn begin_call(&mut self, out: &mut Stream) {
        out.begin_response(&mut self.in_response);
        self.has_called = true;
    }

    fn push_tool(&mut self, block: Value<'_>, out: &mut Stream) {
        self.begin_call(out);
        let id = block.non_empty("toolCallId");
        let input = Arguments::of_value(block.field("input"));
        input.push_call(block.non_empty("toolName"), id, out);
        let raw = block.items("outputRaw");
        let values = || raw.iter().filter_map(|part| part.object("value"));
        let Some(output) = block.non_null("output").or_else(|| block.non_null("outputRaw")) else {
            return;
        };
        let mut text = String::new();
        render::append_value(output, &mut text);
        let exit_code = values().find_map(|value| value.int32("exitCode"));
        let is_failed = exit_code.is_some_and(|code| code != 0)
            || values().any(|value| value.non_empty("errorMessage").is_some());
        out.push_result(id, &text, (!raw.is_empty()).then_some(is_failed), exit_code);
    }

    /// Pushes questions to the user with the answers.
    fn push_question(&mut self, block: Value<'_>, out: &mut Stream) {
        self.begin_call(out);
        let id = block.non_empty("toolCallId");
        Arguments::of_value(block.field("questions")).push_call(Some("ask_user"), id, out);
        let mut text = String::new();
        match block.non_null("answers") {
            Some(answers) => render::append_value(answers, &mut text),
            None => text.push_str("skipped"),
        }
        out.push_result(id, &text, Some(false), None);
    }

    /// Pushes what an agent was told and what it did.
    fn push_agent(&mut self, block: Value<'_>, depth: usize, out: &mut Stream) {
        let id = block.non_empty("agentId");
        out.set_sidechain(id);
        self.in_response = false;
        if let Some(prompt) = block.non_empty("initialPrompt") {
            out.push_text(EventType::User, prompt);
        }
        self.push_blocks(block, id, depth + 1, out);
        if let Some(status @ ("failed" | "cancelled")) = block.text("status") {
            let name = block.text("agentName").unwrap_or("");
            out.push_notice(status, name, Some(true));
        }
    }
}

pub(super) fn append_image(block: Value<'_>, text: &mut String) {
    render::append_binary_summary(block.text("mediaType"), block.text("image"), text);
}
