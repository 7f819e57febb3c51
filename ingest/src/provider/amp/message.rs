//! Decodes one message of an Amp thread (see `mod.rs`): a user's prompt, the results of tools, a
//! response of the model, or a note of the client.

use schemas::{EventType, Usage};
use simd_json::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::{drift, prompt};
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// Fields for context that the client adds to a prompt, each with the subtype of its notification.
const CONTEXT_FIELDS: &[(&str, &str)] = &[
    ("discoveredGuidanceFiles", "guidance_files"),
    ("fileMentions", "file_mentions"),
    ("userState", "user_state"),
];

/// Minimum length in bytes of the encoded content from which a message gets an identity. Shorter
/// contents are not distinctive enough.
const MIN_IDENTITY_BYTES: usize = 160;

/// A message whose tokens were counted.
pub(super) struct CountedMessage {
    pub(super) id: Option<i64>,
    /// Input tokens as the log names them, before any division by kind.
    pub(super) input: Option<i64>,
    pub(super) output: Option<i64>,
}

/// Decoder of the messages of a thread, which must be passed in order.
#[derive(Default)]
pub(super) struct AmpDecoder {
    /// The counted messages so far, in the order of the log.
    pub(super) counted: Vec<CountedMessage>,
    text: String,
}

impl AmpDecoder {
    pub(super) fn decode_message(&mut self, message: Value<'_>, at: RecordAt, out: &mut Stream) {
        let sent = message.object("meta").and_then(|meta| meta.int("sentAt"));
        let answered =
            message.object("usage").and_then(|usage| parse_micros(usage.text("timestamp")));
        let time = answered.or(sent.map(|ms| ms.saturating_mul(1000)));
        out.begin_record(at, message_identity(message), time);

        // A subagent's messages name the call that started it.
        let started_by = message.non_empty("parentToolUseId");
        let is_sidechain = started_by.is_some();
        if is_sidechain {
            out.set_sidechain(started_by);
        }

        match message.text("role") {
            Some("user") => self.decode_user_message(message, !is_sidechain, out),
            Some("assistant") => self.decode_response(message, out),
            role => {
                let role = role.unwrap_or("untyped");
                if role != "info" {
                    out.count_unknown("record", role);
                }
                for block in message.items("content") {
                    self.decode_note_block(role, block, !is_sidechain, out);
                }
            }
        }
    }

    /// Decodes a user's message: the results of tools, then the prompt, then its context.
    fn decode_user_message(&mut self, message: Value<'_>, starts_turn: bool, out: &mut Stream) {
        let mut prompt = message.text("content").unwrap_or("").to_owned();
        for block in message.items("content") {
            match block.text("type") {
                Some("tool_result") => self.decode_tool_result(block, out),
                _ if block.flag("hidden") == Some(true) => {
                    self.text.clear();
                    render::append_block(block, &mut self.text);
                    out.push_notification("hidden", &self.text);
                }
                Some("image") => {
                    render::begin_new_line(&mut prompt);
                    append_image(block, &mut prompt);
                }
                _ => {
                    render::begin_new_line(&mut prompt);
                    render::append_block(block, &mut prompt);
                }
            }
        }

        let is_prompt = !prompt.trim().is_empty();
        if is_prompt && is_thread_message(message) {
            out.push_notification("thread_message", &prompt);
        } else if is_prompt {
            prompt::push_prompt(&prompt, starts_turn, out);
        }

        for (key, subtype) in CONTEXT_FIELDS {
            let Some(context) = message.non_null(key) else { continue };
            self.text.clear();
            render::append_value(context, &mut self.text);
            if !self.text.is_empty() {
                out.push_shortened(subtype, &self.text);
            }
        }
    }

    /// Decodes a tool result. The field `run` holds its state and output.
    fn decode_tool_result(&mut self, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let run = block.object("run").unwrap_or(block);
        let status = run.text("status");
        let output = ["result", "output", "content", "error", "progress"]
            .iter()
            .find_map(|key| run.non_null(key));
        if let Some(output) = output {
            append_tool_output(output, &mut self.text);
        }

        let exit_code = read_exit_code(run);
        let is_refused =
            run.object("result").is_some_and(|result| result.flag("success") == Some(false));
        let has_failed = status == Some("error")
            || block.flag("is_error") == Some(true)
            || is_refused
            || exit_code.is_some_and(|code| code != 0);

        let id =
            ["toolUseID", "tool_use_id", "toolUseId"].iter().find_map(|key| block.non_empty(key));
        let decoded = DecodedEvent {
            subtype: status.filter(|status| !matches!(*status, "done" | "error" | "success")),
            text: &self.text,
            tool_call_id: id,
            is_error: Some(has_failed),
            exit_code,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }

    /// Decodes a response of the model, with its end and its token usage.
    fn decode_response(&mut self, message: Value<'_>, out: &mut Stream) {
        let counts = message.object("usage");
        out.set_model(counts.and_then(|counts| counts.text("model")));
        out.begin_step();

        if let Some(text) = message.non_empty("content") {
            out.push_text(EventType::Message, text);
        }
        for block in message.items("content") {
            self.decode_block(block, out);
        }
        if let Some(state) = message.object("state") {
            self.push_response_end(state, out);
        }

        let Some(counts) = counts else { return };
        if out.push_usage(read_usage(counts), None, None) {
            self.counted.push(CountedMessage {
                id: message.int("messageId"),
                input: counts.int("inputTokens"),
                output: counts.int("outputTokens"),
            });
        }
    }

    fn decode_block(&mut self, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        match block.text("type") {
            Some("text") => {
                let text = block.text("text").unwrap_or("");
                out.push_text(EventType::Message, text);
            }
            Some("thinking" | "redacted_thinking") => {
                if let Some(text) = block.non_empty("thinking") {
                    self.text.push_str(text);
                } else {
                    let reasoning = block.object("openAIReasoning");
                    let sealed = reasoning.and_then(|item| item.text("encryptedContent"));
                    let bytes = block.text("data").or(sealed).map_or(0, str::len);
                    self.text.push_str(&format!("[encrypted reasoning, {bytes} bytes]"));
                }
                out.push_text(EventType::Reasoning, &self.text);
            }
            Some("tool_use" | "server_tool_use") => {
                let arguments = Arguments::of_value(block.field("input"));
                arguments.push_call(block.text("name"), block.non_empty("id"), out);
            }
            Some("tool_result") => self.decode_tool_result(block, out),
            kind => {
                let kind = kind.unwrap_or("block");
                drift::push_unknown_block(kind, block, out);
            }
        }
    }

    /// Pushes a notification if the response was cancelled or ended in an error.
    fn push_response_end(&mut self, state: Value<'_>, out: &mut Stream) {
        let kind = state.text("type").unwrap_or("");
        if !matches!(kind, "cancelled" | "error") {
            return;
        }
        self.text.clear();
        match state.object("error").and_then(|error| error.non_empty("message")) {
            Some(message) => self.text.push_str(message),
            None => render::append_notification(state, &["type"], &mut self.text),
        }

        let is_error = kind == "error";
        let subtype = if is_error { "api_error" } else { "interrupted" };
        out.push_notice(subtype, &self.text, is_error.then_some(true));
    }

    /// Decodes a block of a note: a summary, or a command that the user ran by hand.
    fn decode_note_block(
        &mut self,
        role: &str,
        block: Value<'_>,
        starts_turn: bool,
        out: &mut Stream,
    ) {
        self.text.clear();
        match block.text("type") {
            Some("summary") => {
                if let Some(summary) = block.object("summary") {
                    let text = summary.non_empty("summary").or_else(|| summary.non_empty("thread"));
                    self.text.push_str(text.unwrap_or(""));
                }
                out.push_notification("compact_summary", &self.text);
            }
            Some("manual_bash_invocation") => {
                let args = block.object("args");
                let command =
                    args.and_then(|args| args.text("cmd").or_else(|| args.text("command")));
                let typed = format!("$ {}", command.unwrap_or(""));
                prompt::push_prompt(&typed, starts_turn, out);
                if let Some(run) = block.object("toolRun") {
                    self.push_bash_output(run, out);
                }
            }
            Some("text") => {
                self.text.push_str(block.text("text").unwrap_or(""));
                out.push_notification(role, &self.text);
            }
            kind => {
                let kind = kind.unwrap_or("block");
                drift::push_unknown_block(kind, block, out);
            }
        }
    }

    /// Pushes the output of a command that the user ran by hand.
    fn push_bash_output(&mut self, run: Value<'_>, out: &mut Stream) {
        if let Some(output) = run.non_null("result") {
            append_tool_output(output, &mut self.text);
        }
        let exit_code = read_exit_code(run);
        let has_failed =
            run.text("status") == Some("error") || exit_code.is_some_and(|code| code != 0);
        let decoded = DecodedEvent {
            subtype: Some("bash_output"),
            text: &self.text,
            is_error: Some(has_failed),
            exit_code,
            ..DecodedEvent::default()
        };
        out.push(EventType::Notification, decoded);
    }
}

/// Returns the identity of a message, computed from its content because forks copy messages under
/// other ids.
fn message_identity(message: Value<'_>) -> Option<u64> {
    let content = message.field("content")?.encode();
    (content.len() >= MIN_IDENTITY_BYTES).then(|| xxh3_64(content.as_bytes()) | 1)
}

/// Returns whether a message in the user's role came from another thread.
fn is_thread_message(message: Value<'_>) -> bool {
    message.object("meta").is_some_and(|meta| {
        meta.field("fromExecutorThreadID").is_some() || meta.flag("fromAggman") == Some(true)
    })
}

/// Appends the output of a tool. Most tools have it in a field of their own.
fn append_tool_output(output: Value<'_>, text: &mut String) {
    let field =
        ["output", "content", "diff", "message"].iter().find_map(|key| output.non_null(key));
    match field {
        Some(field) if string_value(field).is_none_or(|text| !text.is_empty()) => {
            render::append_content(field, text);
        }
        Some(_) => {}
        None => render::append_content(output, text),
    }
}

/// Returns the exit code of a command.
fn read_exit_code(run: Value<'_>) -> Option<i32> {
    let result = ["result", "progress"].iter().find_map(|key| run.object(key))?;
    result.int32("exitCode")
}

/// Appends the type and size of a picture. Amp writes `mediaType` where Anthropic writes
/// `media_type`.
fn append_image(block: Value<'_>, text: &mut String) {
    if let Some(source) = block.object("source")
        && let Some(kind) = source.text("mediaType")
    {
        render::append_binary_summary(Some(kind), source.text("data"), text);
    } else {
        render::append_block(block, text);
    }
}

/// Parses token counts: the three kinds of input add up to `totalInputTokens`.
///
/// For OpenAI's models, Amp counts all input that was not read from the cache as cache creation and
/// reports no other input. This function counts it as plain input: models before gpt-5.6 do not
/// charge for cache writes, and for later models some input is too short to be cached. If a log
/// reports both kinds, its counts are used as they are.
fn read_usage(usage: Value<'_>) -> Usage {
    let input = usage.int("inputTokens");
    let written = usage.int("cacheCreationInputTokens");
    let is_undivided = input.unwrap_or(0) == 0 && usage.text("model").is_some_and(is_openai);
    Usage {
        input: if is_undivided { written.or(input) } else { input },
        output: usage.int("outputTokens"),
        cache_read: usage.int("cacheReadInputTokens"),
        cache_write: if is_undivided { None } else { written },
        ..Usage::default()
    }
}

/// Returns whether a model is one of OpenAI's: `gpt-5.6-sol`, `o3`.
fn is_openai(model: &str) -> bool {
    let series = model.strip_prefix('o').unwrap_or("");
    model.starts_with("gpt-") || series.starts_with(|c: char| c.is_ascii_digit())
}
