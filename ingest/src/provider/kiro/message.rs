//! Decodes one record of Kiro CLI: a record of a journal, or an entry of a conversation
//! (docs/formats.md#kiro).
//!
//! ```text
//! journal  {"version":"v1","kind":"AssistantMessage","data":{"message_id":"...","content":[...]}}
//! entry    {"user":{"content":{"Prompt":{"prompt":"..."}}},"assistant":{"Response":{...}}}
//! ```
//!
//! An entry holds the words of the user or the results of tools together with the model's response.

use schemas::EventType;
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::identity::hash_id;
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// Beginnings of the text that Kiro writes in the user's role when the user stopped a tool.
const INTERRUPT_PREFIXES: &[&str] =
    &["The user interrupted the tool execution.", "I deny this tool request."];

/// Known kinds of journal records that become notifications, and are not reported as drift.
const SIDE_KINDS: &[&str] = &["Clear", "Compaction"];

/// Decodes records in order.
#[derive(Default)]
pub(super) struct KiroDecoder {
    /// Text of the current event.
    text: String,
}

impl KiroDecoder {
    /// Decodes an entry of a conversation's history.
    pub(super) fn decode_entry(
        &mut self,
        entry: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let user = entry.object("user");
        let request = entry.object("request_metadata");
        let reply = entry
            .object("assistant")
            .and_then(|reply| reply.object("Response").or_else(|| reply.object("ToolUse")));
        let started = chat::read_millis(request, "request_start_timestamp_ms");
        let time = parse_micros(user.and_then(|user| user.text("timestamp"))).or(started);
        let id = reply.and_then(|reply| reply.non_empty("message_id"));
        out.begin_record(at, id.map(hash_id), time);
        out.set_model(request.and_then(|request| request.text("model_id")));

        if let Some(user) = user {
            self.decode_user_message(user, out);
        }
        if let Some(reply) = reply {
            out.begin_step();
            push_message(reply.text("content").unwrap_or(""), started, out);
            for call in reply.items("tool_uses") {
                let name = call.text("name").or_else(|| call.text("orig_name"));
                let arguments = call.field("args").or_else(|| call.field("orig_args"));
                push_call(name, call.non_empty("id"), arguments, started, out);
            }
        } else if let Some(reply) = entry.object("assistant") {
            self.push_unknown("assistant", reply, out);
        }
        if out.pushed_count() > 0 {
            RecordOutcome::Events
        } else {
            RecordOutcome::Merged("empty_entry")
        }
    }

    /// Decodes the words of the user, the results of tools and the context that Kiro added.
    fn decode_user_message(&mut self, user: Value<'_>, out: &mut Stream) {
        let state = user.object("env_context").and_then(|context| context.object("env_state"));
        out.set_cwd(state.and_then(|state| state.text("current_working_directory")));
        if let Some(context) = user.non_empty("additional_context") {
            out.push_shortened("context", context);
        }

        let Some(content) = user.object("content") else { return };
        let results = content.object("ToolUseResults");
        let cancelled = content.object("CancelledToolUses");
        let Some(held) = results.or(cancelled).or_else(|| content.object("Prompt")) else {
            return self.push_unknown("user", content, out);
        };
        for result in held.items("tool_use_results") {
            self.decode_tool_result(result, result.non_empty("tool_use_id"), out);
        }
        match held.non_empty("prompt") {
            Some(words) if INTERRUPT_PREFIXES.iter().any(|prefix| words.starts_with(prefix)) => {
                out.push_shortened("interrupted", words);
            }
            Some(words) => out.push_prompt(words),
            None => {}
        }
    }

    /// Decodes a record of a journal.
    pub(super) fn decode_journal_record(
        &mut self,
        record: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let kind = record.text("kind").unwrap_or("untyped");
        let data = record.object("data");
        let time = data.and_then(|data| data.object("meta")).and_then(read_timestamp);
        let id = data.and_then(|data| data.non_empty("message_id"));
        let identity = id.map(|id| xxh3_64(format!("{kind} {id}").as_bytes()) | 1);
        out.begin_record(at, identity, time);

        let words = data.and_then(|data| data.text("content"));
        let blocks = data.map_or_else(Vec::new, |data| data.items("content"));
        match (kind, data) {
            ("Prompt", Some(_)) => self.push_prompt(words, &blocks, out),
            ("AssistantMessage", Some(_)) => {
                out.begin_step();
                push_message(words.unwrap_or(""), None, out);
                for block in blocks {
                    self.decode_block(block, out);
                }
            }
            ("ToolResults", Some(_)) => {
                for block in blocks {
                    match (block.text("kind"), block.object("data")) {
                        (Some("toolResult"), Some(result)) => {
                            self.decode_tool_result(result, result.non_empty("toolUseId"), out);
                        }
                        _ => self.decode_block(block, out),
                    }
                }
            }
            _ => {
                if !SIDE_KINDS.contains(&kind) {
                    out.count_unknown("record", kind);
                }
                self.push_unknown(kind, record, out);
            }
        }
        if out.pushed_count() > 0 {
            RecordOutcome::Events
        } else {
            RecordOutcome::Merged("empty_record")
        }
    }

    /// Pushes a prompt, which is a text or a list of blocks. Attachments are named by their kind.
    fn push_prompt(&mut self, words: Option<&str>, blocks: &[Value<'_>], out: &mut Stream) {
        self.text.clear();
        self.text.push_str(words.unwrap_or(""));
        for block in blocks {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            match (block.text("data"), block.text("kind")) {
                (Some(words), Some("text")) => self.text.push_str(words),
                (_, kind) => {
                    if !matches!(kind, Some("image" | "document")) {
                        out.count_unknown("block", kind.unwrap_or("untyped"));
                    }
                    self.text.push_str(&format!("[{}]", kind.unwrap_or("attachment")));
                }
            }
        }
        if !self.text.is_empty() {
            out.push_prompt(&self.text);
        }
    }

    /// Decodes one block of the model's response.
    fn decode_block(&mut self, block: Value<'_>, out: &mut Stream) {
        let data = block.object("data");
        match (block.text("kind").unwrap_or("untyped"), data) {
            ("text", _) => push_message(block.text("data").unwrap_or(""), None, out),
            ("thinking", Some(thought)) => {
                let text = thought.text("text").unwrap_or("");
                out.push_text(EventType::Reasoning, text);
            }
            ("toolUse", Some(call)) => {
                let id = call.non_empty("toolUseId");
                push_call(call.text("name"), id, call.field("input"), None, out);
            }
            (kind, _) => {
                out.count_unknown("block", kind);
                self.push_unknown(kind, block, out);
            }
        }
    }

    /// Decodes a tool result. Its parts are text or JSON, marked by their field or their `kind`.
    fn decode_tool_result(&mut self, result: Value<'_>, id: Option<&str>, out: &mut Stream) {
        self.text.clear();
        self.text.push_str(result.text("content").unwrap_or(""));
        let mut exit_code = None;
        for part in result.items("content") {
            let inner = ["Text", "Json", "data"].iter().find_map(|key| part.field(key));
            let value = inner.unwrap_or(part);
            exit_code = exit_code.or_else(|| read_exit_code(value));
            render::begin_new_line(&mut self.text);
            match string_value(value) {
                Some(words) => self.text.push_str(words),
                None => render::append_value(value, &mut self.text),
            }
        }

        let has_error_status =
            result.text("status").is_some_and(|status| status.eq_ignore_ascii_case("error"));
        out.push_result(
            id,
            &self.text,
            Some(has_error_status || exit_code.is_some_and(|code| code != 0)),
            exit_code,
        );
    }

    /// Pushes a notification with the fields of a record or block that has no rule of its own.
    fn push_unknown(&mut self, subtype: &str, record: Value<'_>, out: &mut Stream) {
        self.text.clear();
        render::append_notification(record, &["version", "kind"], &mut self.text);
        out.push_shortened(subtype, &self.text);
    }
}

/// Pushes the model's words, if there are any.
fn push_message(text: &str, timestamp: Option<i64>, out: &mut Stream) {
    if !text.is_empty() {
        out.push(EventType::Message, DecodedEvent { text, timestamp, ..DecodedEvent::default() });
    }
}

fn push_call(
    tool_name: Option<&str>,
    tool_call_id: Option<&str>,
    input: Option<Value<'_>>,
    timestamp: Option<i64>,
    out: &mut Stream,
) {
    let arguments = Arguments::of_value(input);
    let decoded = DecodedEvent { tool_name, tool_call_id, timestamp, ..arguments.decoded() };
    out.push(EventType::ToolCall, decoded);
}

/// Returns the exit code in the JSON of a command's result: `0`, `"0"` or `"exit status: 0"`.
fn read_exit_code(result: Value<'_>) -> Option<i32> {
    match result.text("exit_status") {
        Some(status) => status.rsplit(' ').next()?.parse().ok(),
        None => result.int32("exit_status"),
    }
}

/// Returns the time of a journal record in microseconds. The log has RFC 3339 text or seconds.
fn read_timestamp(meta: Value<'_>) -> Option<i64> {
    if let Some(time) = parse_micros(meta.text("timestamp")) {
        return Some(time);
    }
    let seconds = meta.int("timestamp").filter(|seconds| *seconds > 0)?;
    Some(seconds.saturating_mul(1_000_000))
}
