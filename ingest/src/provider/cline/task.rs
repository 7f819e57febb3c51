//! Decodes one message of a task of Cline's extension (`ui_messages.json`). Each message is one
//! entry of the extension's panel: a `say` by the agent or an `ask` to the user, with a kind of its
//! own. Many hold JSON in their text (docs/formats.md#cline).

use schemas::{Confidence, EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::Outcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::stream::{Draft, RecordAt, Stream};
use crate::text::json::{Fields, Parser, Value, embedded};
use crate::text::render;

/// Kinds of messages that only repeat or frame others.
const FRAMES: &[&str] =
    &["checkpoint_created", "mcp_server_request_started", "shell_integration_warning"];

/// Kinds of messages that report an error.
const ERRORS: &[&str] = &[
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
const CHANGES: &str = "HAS_CHANGES";

/// Maximum length in bytes of a command line in its column. The text of the call has all of it.
const COMMAND_BYTES: usize = 4096;

/// Decoder of the messages of a task, which must be passed in order.
#[derive(Default)]
pub(super) struct Decoder {
    text: String,
    inner: Parser,
}

impl Decoder {
    pub(super) fn message(
        &mut self,
        message: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> Outcome {
        let time = chat::millis(Some(message), "ts");
        let kind = message.text("say").or_else(|| message.text("ask")).unwrap_or("untyped");
        let identity = time.map(|time| xxh3_64(format!("{kind} {time}").as_bytes()) | 1);
        out.begin_record(at, identity, time);
        out.set_model(message.object("modelInfo").and_then(|model| model.text("modelId")));
        let said = message.text("text").unwrap_or("");
        match kind {
            "task" | "user_feedback" => self.prompt(message, said, out),
            "text" | "completion_result" | "plan_mode_respond" | "act_mode_respond"
            | "followup" => self.reply(said, out),
            "reasoning" => {
                let text = message.non_empty("reasoning").unwrap_or(said);
                out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
            }
            "tool" | "use_mcp_server" | "command" | "browser_action" => self.call(kind, said, out),
            "command_output" => self.result("execute_command", said, out),
            "mcp_server_response" => self.result("use_mcp_server", said, out),
            "browser_action_result" => self.result("browser_action", said, out),
            "api_req_started" | "api_req_finished" | "deleted_api_reqs" | "subagent_usage" => {
                self.request(kind, said, out);
            }
            _ if FRAMES.contains(&kind) => return Outcome::Merged("frame"),
            _ => self.side_kind(kind, said, out),
        }
        Outcome::Events
    }

    /// Decodes a prompt of the user, with its pictures and files.
    fn prompt(&mut self, message: Value<'_>, said: &str, out: &mut Stream) {
        self.text.clear();
        self.text.push_str(said);
        for name in ["images", "files"] {
            for item in message.items(name) {
                let item = crate::text::json::string(item).unwrap_or("");
                let data = item.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
                if !self.text.is_empty() {
                    self.text.push('\n');
                }
                self.text.push_str(&match data {
                    Some((kind, data)) => format!("[{kind} {} bytes]", data.len() / 4 * 3),
                    None => format!("[{item}]"),
                });
            }
        }
        if !self.text.is_empty() {
            out.prompt(&self.text);
        }
    }

    /// Decodes text of the agent. Questions and plans are JSON with options.
    fn reply(&mut self, said: &str, out: &mut Stream) {
        let Self { text, inner } = self;
        text.clear();
        let is_json = embedded(said, inner, |value| {
            let words = value.text("question").or_else(|| value.text("response"));
            text.push_str(words.unwrap_or(said));
            for option in value.items("options") {
                text.push_str("\n- ");
                render::value(option, text);
            }
        });
        let words = if is_json { text.as_str() } else { said };
        let words = words.strip_suffix(CHANGES).unwrap_or(words);
        if !words.is_empty() {
            out.push(EventType::Message, Draft { text: words, ..Draft::default() });
        }
    }

    fn call(&mut self, kind: &str, said: &str, out: &mut Stream) {
        let mut arguments = Arguments::default();
        let mut name = if kind == "command" { "execute_command" } else { kind }.to_owned();
        let is_json = kind != "command"
            && embedded(said, &mut self.inner, |value| {
                let server = value.text("serverName").zip(value.text("toolName"));
                if let Some((server, tool)) = server {
                    name = format!("mcp__{server}__{tool}");
                } else if let Some(tool) = value.non_empty("tool") {
                    tool.clone_into(&mut name);
                }
                arguments.read(value);
            });
        if !is_json {
            arguments.plain(said);
        }
        let mut draft = Draft { tool_name: Some(&name), ..arguments.draft() };
        if kind == "command" {
            draft.command = said.get(..said.floor_char_boundary(COMMAND_BYTES)).unwrap_or("");
        }
        out.push(EventType::ToolCall, draft);
    }

    fn result(&mut self, tool: &str, said: &str, out: &mut Stream) {
        let Self { text, inner } = self;
        text.clear();
        if !embedded(said, inner, |value| render::fields(value, &["screenshot"], text)) {
            text.push_str(said);
        }
        if !text.is_empty() {
            let tool_name = Some(tool);
            out.push(EventType::ToolResult, Draft { text, tool_name, ..Draft::default() });
        }
    }

    /// Decodes a request to the model. Its token counts are added to the same message when it ends.
    /// Deleted messages and subagents have their counts in messages of their own.
    fn request(&mut self, kind: &str, said: &str, out: &mut Stream) {
        let starts = kind == "api_req_started";
        if starts {
            out.begin_step();
        }
        let text = &mut self.text;
        text.clear();
        let mut counted = false;
        embedded(said, &mut self.inner, |value| {
            out.set_cwd(value.text("request").and_then(working_directory));
            let usage = usage(value);
            counted = usage.total() > 0;
            if counted {
                let subtype = (!kind.starts_with("api_req")).then_some(kind);
                out.push(EventType::TokenUsage, Draft { subtype, usage, ..Draft::default() });
            }
            if let Some(reason) = value.non_empty("cancelReason") {
                text.push_str(reason);
                if let Some(failure) = value.non_empty("streamingFailedMessage") {
                    text.push_str(": ");
                    text.push_str(failure);
                }
            }
        });
        if starts && !counted {
            out.set_confidence(Confidence::Partial);
        }
        if !text.is_empty() {
            let (subtype, is_error) = (Some("api_req_cancelled"), Some(true));
            let draft = Draft { subtype, text, is_error, ..Draft::default() };
            out.push(EventType::Notification, draft);
        }
    }

    fn side_kind(&mut self, kind: &str, said: &str, out: &mut Stream) {
        let is_error = ERRORS.contains(&kind).then_some(true);
        if is_error.is_none() && !SIDE_KINDS.contains(&kind) {
            out.drift("record", kind);
        }
        self.text.clear();
        self.text.push_str(said);
        render::cut(&mut self.text);
        let draft = Draft { subtype: Some(kind), text: &self.text, is_error, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}

/// Finds the working directory, which the client names in its description of the environment.
fn working_directory(request: &str) -> Option<&str> {
    let (_, rest) = request.split_once("Current Working Directory (")?;
    rest.split_once(')').map(|(directory, _)| directory)
}

/// Parses token counts. The input does not include tokens read from or written to a cache.
fn usage(request: Value<'_>) -> Usage {
    Usage {
        input: request.int("tokensIn"),
        output: request.int("tokensOut"),
        cache_read: request.int("cacheReads"),
        cache_write: request.int("cacheWrites"),
        cache_write_1h: None,
        reasoning: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_directory_is_found() {
        let request = "x\n# Current Working Directory (/home/mira/code) Files\na.rs";
        assert_eq!(working_directory(request), Some("/home/mira/code"));
        assert_eq!(working_directory("nothing of it"), None);
    }
}
