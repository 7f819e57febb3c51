//! Decodes one message of an Amp thread (see `mod.rs`): a user's prompt, the results of tools, a
//! response of the model, or a note of the client.

use schemas::{EventType, Usage};
use simd_json::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::prompt;
use crate::stream::{Draft, RecordAt, Stream, micros};
use crate::text::json::{Fields, Value, string};
use crate::text::render;

/// Fields for context that the client adds to a prompt, each with the subtype of its notification.
const CONTEXT: &[(&str, &str)] = &[
    ("discoveredGuidanceFiles", "guidance_files"),
    ("fileMentions", "file_mentions"),
    ("userState", "user_state"),
];

/// Minimum length in bytes of the encoded content from which a message gets an identity. Shorter
/// contents are not distinctive enough.
const LEAST_IDENTITY: usize = 160;

/// Id of a message whose tokens were counted, with its input and output counts as named in the log.
pub(super) type Counted = (Option<i64>, (Option<i64>, Option<i64>));

/// Decoder of the messages of a thread, which must be passed in order.
#[derive(Default)]
pub(super) struct Decoder {
    pub(super) counted: Vec<Counted>,
    text: String,
}

impl Decoder {
    pub(super) fn message(&mut self, message: Value<'_>, at: RecordAt, out: &mut Stream) {
        let sent = message.object("meta").and_then(|meta| meta.int("sentAt"));
        let answered = message.object("usage").and_then(|usage| micros(usage.text("timestamp")));
        let time = answered.or(sent.map(|ms| ms.saturating_mul(1000)));
        out.begin_record(at, identity(message), time);
        // A subagent's messages name the call that started it.
        let started_by = message.non_empty("parentToolUseId");
        let sidechain = started_by.is_some();
        if sidechain {
            out.set_sidechain(started_by);
        }
        match message.text("role") {
            Some("user") => self.user(message, !sidechain, out),
            Some("assistant") => self.response(message, out),
            role => {
                let role = role.unwrap_or("untyped");
                if role != "info" {
                    out.drift("record", role);
                }
                for block in message.items("content") {
                    self.note(role, block, !sidechain, out);
                }
            }
        }
    }

    fn user(&mut self, message: Value<'_>, starts_turn: bool, out: &mut Stream) {
        let meta = message.object("meta");
        let of_thread = meta.is_some_and(|meta| {
            meta.field("fromExecutorThreadID").is_some() || meta.flag("fromAggman") == Some(true)
        });
        let mut prompt = String::new();
        if let Some(text) = message.text("content") {
            prompt.push_str(text);
        }
        for block in message.items("content") {
            match block.text("type") {
                Some("tool_result") => self.result(block, out),
                _ if block.flag("hidden") == Some(true) => {
                    self.text.clear();
                    render::block(block, &mut self.text);
                    self.notify("hidden", out);
                }
                Some("image") => {
                    render::new_line(&mut prompt);
                    picture(block, &mut prompt);
                }
                _ => {
                    render::new_line(&mut prompt);
                    render::block(block, &mut prompt);
                }
            }
        }
        if !prompt.trim().is_empty() {
            if of_thread {
                let draft =
                    Draft { subtype: Some("thread_message"), text: &prompt, ..Draft::default() };
                out.push(EventType::Notification, draft);
            } else {
                prompt::typed(&prompt, starts_turn, out);
            }
        }
        for (key, subtype) in CONTEXT {
            let Some(context) = message.given(key) else {
                continue;
            };
            self.text.clear();
            render::value(context, &mut self.text);
            render::cut(&mut self.text);
            if !self.text.is_empty() {
                self.notify(subtype, out);
            }
        }
    }

    /// Decodes a tool result. The field `run` holds its state and output.
    fn result(&mut self, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let run = block.object("run").unwrap_or(block);
        let status = run.text("status");
        let said = ["result", "output", "content", "error", "progress"]
            .iter()
            .find_map(|key| run.given(key));
        if let Some(said) = said {
            answer(said, &mut self.text);
        }
        let exit_code = exit_code(run);
        let refused =
            run.object("result").is_some_and(|result| result.flag("success") == Some(false));
        let failed = status == Some("error")
            || block.flag("is_error") == Some(true)
            || refused
            || exit_code.is_some_and(|code| code != 0);
        let id =
            ["toolUseID", "tool_use_id", "toolUseId"].iter().find_map(|key| block.non_empty(key));
        let draft = Draft {
            subtype: status.filter(|status| !matches!(*status, "done" | "error" | "success")),
            text: &self.text,
            tool_call_id: id,
            is_error: Some(failed),
            exit_code,
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }

    fn response(&mut self, message: Value<'_>, out: &mut Stream) {
        let usage = message.object("usage");
        out.set_model(usage.and_then(|usage| usage.text("model")));
        out.begin_step();
        if let Some(text) = message.non_empty("content") {
            out.push(EventType::Message, Draft { text, ..Draft::default() });
        }
        for block in message.items("content") {
            self.block(block, out);
        }
        if let Some(state) = message.object("state") {
            self.state(state, out);
        }
        let count = |key: &str| usage.and_then(|usage| usage.int(key));
        let named = (count("inputTokens"), count("outputTokens"));
        let usage = usage.map(usage_of).unwrap_or_default();
        if usage.total() > 0 {
            self.counted.push((message.int("messageId"), named));
            out.push(EventType::TokenUsage, Draft { usage, ..Draft::default() });
        }
    }

    fn block(&mut self, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        match block.text("type") {
            Some("text") => {
                let text = block.text("text").unwrap_or("");
                out.push(EventType::Message, Draft { text, ..Draft::default() });
            }
            Some("thinking" | "redacted_thinking") => {
                match block.non_empty("thinking") {
                    Some(text) => self.text.push_str(text),
                    None => {
                        let sealed = block.object("openAIReasoning");
                        let sealed = sealed.and_then(|sealed| sealed.text("encryptedContent"));
                        let bytes = block.text("data").or(sealed).map_or(0, str::len);
                        self.text.push_str(&format!("[encrypted reasoning, {bytes} bytes]"));
                    }
                }
                out.push(EventType::Reasoning, Draft { text: &self.text, ..Draft::default() });
            }
            Some("tool_use" | "server_tool_use") => {
                let mut arguments = Arguments::default();
                if let Some(input) = block.field("input") {
                    arguments.read(input);
                }
                let draft = Draft {
                    tool_name: block.text("name"),
                    tool_call_id: block.non_empty("id"),
                    ..arguments.draft()
                };
                out.push(EventType::ToolCall, draft);
            }
            Some("tool_result") => self.result(block, out),
            kind => {
                let kind = kind.unwrap_or("block");
                out.drift("block", kind);
                render::fields(block, &["type"], &mut self.text);
                self.notify(kind, out);
            }
        }
    }

    /// Pushes a notification if the response was cancelled or ended in an error.
    fn state(&mut self, state: Value<'_>, out: &mut Stream) {
        let kind = state.text("type").unwrap_or("");
        if !matches!(kind, "cancelled" | "error") {
            return;
        }
        self.text.clear();
        match state.object("error").and_then(|error| error.non_empty("message")) {
            Some(message) => self.text.push_str(message),
            None => render::fields(state, &["type"], &mut self.text),
        }
        let subtype = if kind == "error" { "api_error" } else { "interrupted" };
        let draft = Draft {
            subtype: Some(subtype),
            text: &self.text,
            is_error: (kind == "error").then_some(true),
            ..Draft::default()
        };
        out.push(EventType::Notification, draft);
    }

    /// Decodes a block of a note: a summary, or a command that the user ran by hand.
    fn note(&mut self, role: &str, block: Value<'_>, starts_turn: bool, out: &mut Stream) {
        self.text.clear();
        match block.text("type") {
            Some("summary") => {
                let summary = block.object("summary");
                let said = ["summary", "thread"]
                    .iter()
                    .find_map(|key| summary.and_then(|summary| summary.non_empty(key)));
                self.text.push_str(said.unwrap_or(""));
                self.notify("compact_summary", out);
            }
            Some("manual_bash_invocation") => {
                let args = block.object("args");
                let command =
                    args.and_then(|args| args.text("cmd").or_else(|| args.text("command")));
                let typed = format!("$ {}", command.unwrap_or(""));
                prompt::typed(&typed, starts_turn, out);
                if let Some(run) = block.object("toolRun") {
                    self.bash_output(run, out);
                }
            }
            Some("text") => {
                self.text.push_str(block.text("text").unwrap_or(""));
                self.notify(role, out);
            }
            kind => {
                let kind = kind.unwrap_or("block");
                out.drift("block", kind);
                render::fields(block, &["type"], &mut self.text);
                self.notify(kind, out);
            }
        }
    }

    fn bash_output(&mut self, run: Value<'_>, out: &mut Stream) {
        if let Some(said) = run.given("result") {
            answer(said, &mut self.text);
        }
        let exit_code = exit_code(run);
        let failed = run.text("status") == Some("error") || exit_code.is_some_and(|code| code != 0);
        let draft = Draft {
            subtype: Some("bash_output"),
            text: &self.text,
            is_error: Some(failed),
            exit_code,
            ..Draft::default()
        };
        out.push(EventType::Notification, draft);
    }

    fn notify(&self, subtype: &str, out: &mut Stream) {
        let draft = Draft { subtype: Some(subtype), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}

/// Returns the identity of a message, computed from its content because forks copy messages under
/// other ids.
fn identity(message: Value<'_>) -> Option<u64> {
    let content = message.field("content")?.encode();
    (content.len() >= LEAST_IDENTITY).then(|| xxh3_64(content.as_bytes()) | 1)
}

/// Appends the output of a tool. Most tools have it in a field of their own.
fn answer(said: Value<'_>, text: &mut String) {
    let field = ["output", "content", "diff", "message"].iter().find_map(|key| said.given(key));
    match field {
        Some(field) if string(field).is_none_or(|text| !text.is_empty()) => {
            render::content(field, text);
        }
        Some(_) => {}
        None => render::content(said, text),
    }
}

fn exit_code(run: Value<'_>) -> Option<i32> {
    let result = ["result", "progress"].iter().find_map(|key| run.object(key))?;
    result.int("exitCode").and_then(|code| i32::try_from(code).ok())
}

/// Appends the type and size of a picture. Amp writes `mediaType` where Anthropic writes
/// `media_type`.
fn picture(block: Value<'_>, text: &mut String) {
    let source = block.object("source");
    let field = |key: &str| source.and_then(|source| source.text(key));
    match field("mediaType") {
        Some(kind) => {
            let data = field("data").unwrap_or("");
            text.push_str(&format!("[{kind} {} bytes]", data.len() / 4 * 3));
        }
        None => render::block(block, text),
    }
}

/// Parses token counts: the three kinds of input add up to `totalInputTokens`.
///
/// For OpenAI's models, Amp counts all input that was not read from the cache as cache creation and
/// reports no other input. This function counts it as plain input: models before gpt-5.6 do not
/// charge for cache writes, and for later models some input is too short to be cached. If a log
/// reports both kinds, its counts are used as they are.
fn usage_of(usage: Value<'_>) -> Usage {
    let input = usage.int("inputTokens");
    let written = usage.int("cacheCreationInputTokens");
    let undivided = input.unwrap_or(0) == 0 && usage.text("model").is_some_and(is_openai);
    let (input, cache_write) = if undivided { (written.or(input), None) } else { (input, written) };
    Usage {
        input,
        output: usage.int("outputTokens"),
        cache_read: usage.int("cacheReadInputTokens"),
        cache_write,
        ..Usage::default()
    }
}

/// Returns whether a model is one of OpenAI's: `gpt-5.6-sol`, `o3`.
fn is_openai(model: &str) -> bool {
    let series = model.strip_prefix('o').unwrap_or("");
    model.starts_with("gpt-") || series.starts_with(|c: char| c.is_ascii_digit())
}
