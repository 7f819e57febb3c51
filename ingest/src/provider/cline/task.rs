//! Decodes one message of a task of Cline's extension (`ui_messages.json`). Each message is one
//! entry of the extension's panel: a `say` by the agent or an `ask` to the user, with a kind of its
//! own. Many hold JSON in their text (docs/formats.md#cline).

use schemas::{Confidence, EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded, string_value};
use crate::text::render;

/// Kinds of messages that only repeat or frame others.
const FRAME_KINDS: &[&str] =
    &["checkpoint_created", "mcp_server_request_started", "shell_integration_warning"];

/// Kinds of messages that report an error.
const ERROR_KINDS: &[&str] = &[
    "api_req_failed",
    "api_req_retried",
    "clineignore_error",
    "command_permission_denied",
    "diff_error",
    "error",
    "error_retry",
    "mistake_limit_reached",
];

/// Known kinds of messages that become notifications. They do not count as drift of the format.
const SIDE_KINDS: &[&str] = &[
    "browser_action_launch",
    "conditional_rules_applied",
    "condense",
    "generate_explanation",
    "hook_output_stream",
    "hook_status",
    "info",
    "load_mcp_documentation",
    "mcp_notification",
    "new_task",
    "report_bug",
    "resume_completed_task",
    "resume_task",
    "shell_integration_warning_with_suggestion",
    "subagent",
    "summarize_task",
    "task_progress",
    "use_subagents",
    "user_feedback_diff",
];

/// Suffix of the text of a result that came with changes.
const CHANGES_SUFFIX: &str = "HAS_CHANGES";

/// Maximum length in bytes of a command line in its column. The text of the call has all of it.
const MAX_COMMAND_BYTES: usize = 4096;

/// Decoder of the messages of a task, which must be passed in order.
#[derive(Default)]
pub(super) struct ClineTaskDecoder {
    text: String,
    inner: Parser,
}

impl ClineTaskDecoder {
    pub(super) fn decode_message(
        &mut self,
        message: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let time = chat::read_millis(Some(message), "ts");
        let kind = message.text("say").or_else(|| message.text("ask")).unwrap_or("untyped");
        let identity = time.map(|time| xxh3_64(format!("{kind} {time}").as_bytes()) | 1);
        out.begin_record(at, identity, time);

        out.set_model(message.object("modelInfo").and_then(|model| model.text("modelId")));
        let message_text = message.text("text").unwrap_or("");
        match kind {
            "task" | "user_feedback" => self.decode_prompt(message, message_text, out),
            "text" | "completion_result" | "plan_mode_respond" | "act_mode_respond"
            | "followup" => self.decode_reply(message_text, out),
            "reasoning" => {
                let text = message.non_empty("reasoning").unwrap_or(message_text);
                out.push_text(EventType::Reasoning, text);
            }
            "tool" | "use_mcp_server" | "command" | "browser_action" => {
                self.decode_call(kind, message_text, out);
            }
            "command_output" => self.push_tool_result("execute_command", message_text, out),
            "mcp_server_response" => self.push_tool_result("use_mcp_server", message_text, out),
            "browser_action_result" => self.push_tool_result("browser_action", message_text, out),
            "api_req_started" | "api_req_finished" | "deleted_api_reqs" | "subagent_usage" => {
                self.decode_request(kind, message_text, out);
            }
            _ if FRAME_KINDS.contains(&kind) => return RecordOutcome::Merged("frame"),
            _ => self.push_side_notification(kind, message_text, out),
        }
        RecordOutcome::Events
    }

    /// Decodes a prompt of the user, with its pictures and files.
    fn decode_prompt(&mut self, message: Value<'_>, message_text: &str, out: &mut Stream) {
        self.text.clear();
        self.text.push_str(message_text);
        for name in ["images", "files"] {
            for item in message.items(name) {
                let item = string_value(item).unwrap_or("");
                let data = item.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
                render::begin_new_line(&mut self.text);
                match data {
                    Some((kind, data)) => {
                        render::append_binary_summary(Some(kind), Some(data), &mut self.text);
                    }
                    None => self.text.push_str(&format!("[{item}]")),
                }
            }
        }
        if !self.text.is_empty() {
            out.push_prompt(&self.text);
        }
    }

    /// Decodes text of the agent. Questions and plans are JSON with options.
    fn decode_reply(&mut self, message_text: &str, out: &mut Stream) {
        let Self { text, inner } = self;
        text.clear();
        let is_json = decode_embedded(message_text, inner, |value| {
            let question = value.text("question").or_else(|| value.text("response"));
            text.push_str(question.unwrap_or(message_text));
            for option in value.items("options") {
                text.push_str("\n- ");
                render::append_value(option, text);
            }
        });
        let shown = if is_json { text.as_str() } else { message_text };
        let reply = shown.strip_suffix(CHANGES_SUFFIX).unwrap_or(shown);
        if !reply.is_empty() {
            out.push_text(EventType::Message, reply);
        }
    }

    /// Decodes a tool call: the text of a command, or JSON with the name and the arguments.
    fn decode_call(&mut self, kind: &str, message_text: &str, out: &mut Stream) {
        let is_command = kind == "command";
        let mut arguments = Arguments::default();
        let mut name = if is_command { "execute_command" } else { kind }.to_owned();
        let is_json = !is_command
            && decode_embedded(message_text, &mut self.inner, |value| {
                if let Some(server) = value.text("serverName")
                    && let Some(tool) = value.text("toolName")
                {
                    name = format!("mcp__{server}__{tool}");
                } else if let Some(tool) = value.non_empty("tool") {
                    tool.clone_into(&mut name);
                }
                arguments.read_value(value);
            });
        if !is_json {
            arguments.read_plain_text(message_text);
        }

        let mut decoded = DecodedEvent { tool_name: Some(&name), ..arguments.decoded() };
        if is_command {
            decoded.command = message_text
                .get(..message_text.floor_char_boundary(MAX_COMMAND_BYTES))
                .unwrap_or("");
        }
        out.push(EventType::ToolCall, decoded);
    }

    /// Pushes the result of a tool, unless it is empty.
    fn push_tool_result(&mut self, tool: &str, message_text: &str, out: &mut Stream) {
        let Self { text, inner } = self;
        text.clear();
        if !decode_embedded(message_text, inner, |value| {
            render::append_notification(value, &["screenshot"], text);
        }) {
            text.push_str(message_text);
        }
        if !text.is_empty() {
            let decoded = DecodedEvent { text, tool_name: Some(tool), ..DecodedEvent::default() };
            out.push(EventType::ToolResult, decoded);
        }
    }

    /// Decodes a request to the model. Its token counts are added to the same message when it ends.
    /// Deleted messages and subagents have their counts in messages of their own.
    fn decode_request(&mut self, kind: &str, message_text: &str, out: &mut Stream) {
        let is_start = kind == "api_req_started";
        if is_start {
            out.begin_step();
        }

        let text = &mut self.text;
        text.clear();
        let mut has_usage = false;
        decode_embedded(message_text, &mut self.inner, |value| {
            out.set_cwd(value.text("request").and_then(find_working_directory));
            let usage = read_usage(value);
            has_usage = usage.total() > 0;
            if has_usage {
                let subtype = (!kind.starts_with("api_req")).then_some(kind);
                let cost = value.cost("cost");
                out.push(
                    EventType::TokenUsage,
                    DecodedEvent { subtype, usage, cost, ..DecodedEvent::default() },
                );
            }
            if let Some(reason) = value.non_empty("cancelReason") {
                text.push_str(reason);
                if let Some(failure) = value.non_empty("streamingFailedMessage") {
                    text.push_str(": ");
                    text.push_str(failure);
                }
            }
        });

        if is_start && !has_usage {
            out.set_confidence(Confidence::Partial);
        }
        if !text.is_empty() {
            out.push_notice("api_req_cancelled", text, Some(true));
        }
    }

    /// Pushes a message without a rule of its own as a notification.
    fn push_side_notification(&mut self, kind: &str, message_text: &str, out: &mut Stream) {
        let is_error = ERROR_KINDS.contains(&kind).then_some(true);
        if is_error.is_none() && !SIDE_KINDS.contains(&kind) {
            out.count_unknown("record", kind);
        }
        self.text.clear();
        self.text.push_str(message_text);
        render::truncate_notification(&mut self.text);
        out.push_notice(kind, &self.text, is_error);
    }
}

/// Finds the working directory, which the client names in its description of the environment.
fn find_working_directory(request: &str) -> Option<&str> {
    let (_, rest) = request.split_once("Current Working Directory (")?;
    rest.split_once(')').map(|(directory, _)| directory)
}

/// Parses token counts. The input does not include tokens read from or written to a cache.
fn read_usage(request: Value<'_>) -> Usage {
    Usage {
        input: request.int("tokensIn"),
        output: request.int("tokensOut"),
        cache_read: request.int("cacheReads"),
        cache_write: request.int("cacheWrites"),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_directory_is_found() {
        let request = "x\n# Current Working Directory (/home/mira/code) Files\na.rs";
        assert_eq!(find_working_directory(request), Some("/home/mira/code"));
        assert_eq!(find_working_directory("nothing of it"), None);
    }
}
