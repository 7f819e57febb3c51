//! Decodes one record of Kiro CLI: a record of a journal, or an entry of a conversation, which is
//! the words of the user or a tool together with the model's response (docs/formats.md#kiro).

use schemas::EventType;
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::Outcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::stream::{Draft, RecordAt, Stream, micros};
use crate::text::json::{Fields, Value, string};
use crate::text::render;

/// Beginnings of the text that Kiro writes in the user's role when the user stopped a tool.
const STOPPED: &[&str] = &["The user interrupted the tool execution.", "I deny this tool request."];

/// Known kinds of journal records that become notifications, and are not reported as drift.
const SIDE_KINDS: &[&str] = &["Clear", "Compaction"];

/// Decodes records in order.
#[derive(Default)]
pub(super) struct Decoder {
    text: String,
}

impl Decoder {
    /// Decodes an entry of a conversation's history.
    pub(super) fn entry(&mut self, entry: Value<'_>, at: RecordAt, out: &mut Stream) -> Outcome {
        let user = entry.object("user");
        let request = entry.object("request_metadata");
        let reply = entry
            .object("assistant")
            .and_then(|reply| reply.object("Response").or_else(|| reply.object("ToolUse")));
        let started = chat::millis(request, "request_start_timestamp_ms");
        let time = micros(user.and_then(|user| user.text("timestamp"))).or(started);
        let id = reply.and_then(|reply| reply.non_empty("message_id"));
        out.begin_record(at, id.map(|id| xxh3_64(id.as_bytes()) | 1), time);
        out.set_model(request.and_then(|request| request.text("model_id")));
        if let Some(user) = user {
            self.user(user, out);
        }
        if let Some(reply) = reply {
            out.begin_step();
            said(reply.text("content").unwrap_or(""), started, out);
            for call in reply.items("tool_uses") {
                let name = call.text("name").or_else(|| call.text("orig_name"));
                let arguments = call.field("args").or_else(|| call.field("orig_args"));
                push_call(name, call.non_empty("id"), arguments, started, out);
            }
        } else if let Some(reply) = entry.object("assistant") {
            self.unknown("assistant", reply, out);
        }
        if out.pushed() > 0 { Outcome::Events } else { Outcome::Merged("empty_entry") }
    }

    fn user(&mut self, user: Value<'_>, out: &mut Stream) {
        let place = user.object("env_context").and_then(|context| context.object("env_state"));
        out.set_cwd(place.and_then(|place| place.text("current_working_directory")));
        if let Some(context) = user.non_empty("additional_context") {
            self.notify("context", context, out);
        }
        let Some(content) = user.object("content") else { return };
        let results = content.object("ToolUseResults");
        let cancelled = content.object("CancelledToolUses");
        let Some(held) = results.or(cancelled).or_else(|| content.object("Prompt")) else {
            return self.unknown("user", content, out);
        };
        for result in held.items("tool_use_results") {
            self.result(result, result.non_empty("tool_use_id"), out);
        }
        match held.non_empty("prompt") {
            Some(words) if STOPPED.iter().any(|start| words.starts_with(start)) => {
                self.notify("interrupted", words, out);
            }
            Some(words) => out.prompt(words),
            None => {}
        }
    }

    /// Decodes a record of a journal.
    pub(super) fn journal(&mut self, record: Value<'_>, at: RecordAt, out: &mut Stream) -> Outcome {
        let kind = record.text("kind").unwrap_or("untyped");
        let data = record.object("data");
        let time = data.and_then(|data| data.object("meta")).and_then(timestamp);
        let id = data.and_then(|data| data.non_empty("message_id"));
        let identity = id.map(|id| xxh3_64(format!("{kind} {id}").as_bytes()) | 1);
        out.begin_record(at, identity, time);
        let words = data.and_then(|data| data.text("content"));
        let blocks = data.map_or_else(Vec::new, |data| data.items("content"));
        match (kind, data) {
            ("Prompt", Some(_)) => self.typed(words, &blocks, out),
            ("AssistantMessage", Some(_)) => {
                out.begin_step();
                said(words.unwrap_or(""), None, out);
                for block in blocks {
                    self.block(block, out);
                }
            }
            ("ToolResults", Some(_)) => {
                for result in blocks.iter().filter_map(|block| block.object("data")) {
                    self.result(result, result.non_empty("toolUseId"), out);
                }
            }
            _ => {
                if !SIDE_KINDS.contains(&kind) {
                    out.drift("record", kind);
                }
                self.unknown(kind, record, out);
            }
        }
        if out.pushed() > 0 { Outcome::Events } else { Outcome::Merged("empty_record") }
    }

    fn typed(&mut self, words: Option<&str>, blocks: &[Value<'_>], out: &mut Stream) {
        self.text.clear();
        self.text.push_str(words.unwrap_or(""));
        for block in blocks {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            match (block.text("data"), block.text("kind")) {
                (Some(words), Some("text")) => self.text.push_str(words),
                (_, kind) => self.text.push_str(&format!("[{}]", kind.unwrap_or("attachment"))),
            }
        }
        if !self.text.is_empty() {
            out.prompt(&self.text);
        }
    }

    fn block(&mut self, block: Value<'_>, out: &mut Stream) {
        let data = block.object("data");
        match (block.text("kind").unwrap_or("untyped"), data) {
            ("text", _) => said(block.text("data").unwrap_or(""), None, out),
            ("thinking", Some(thought)) => {
                let text = thought.text("text").unwrap_or("");
                out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
            }
            ("toolUse", Some(call)) => {
                let id = call.non_empty("toolUseId");
                push_call(call.text("name"), id, call.field("input"), None, out);
            }
            (kind, _) => {
                out.drift("block", kind);
                self.unknown(kind, block, out);
            }
        }
    }

    /// Decodes a tool result. Its parts are text or JSON, marked by their field or their `kind`.
    fn result(&mut self, result: Value<'_>, id: Option<&str>, out: &mut Stream) {
        self.text.clear();
        self.text.push_str(result.text("content").unwrap_or(""));
        let mut exit_code = None;
        for part in result.items("content") {
            let held = ["Text", "Json", "data"].iter().find_map(|key| part.field(key));
            let held = held.unwrap_or(part);
            exit_code = exit_code.or_else(|| exit_status(held));
            render::new_line(&mut self.text);
            match string(held) {
                Some(words) => self.text.push_str(words),
                None => render::value(held, &mut self.text),
            }
        }
        let failed =
            result.text("status").is_some_and(|status| status.eq_ignore_ascii_case("error"));
        let draft = Draft {
            text: &self.text,
            tool_call_id: id,
            is_error: Some(failed || exit_code.is_some_and(|code| code != 0)),
            exit_code,
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }

    fn unknown(&mut self, subtype: &str, record: Value<'_>, out: &mut Stream) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        render::fields(record, &["version", "kind"], &mut text);
        self.notify(subtype, &text, out);
        self.text = text;
    }

    fn notify(&mut self, subtype: &str, text: &str, out: &mut Stream) {
        let mut text = text.to_owned();
        render::cut(&mut text);
        let draft = Draft { subtype: Some(subtype), text: &text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}

/// Appends the model's words.
fn said(text: &str, timestamp: Option<i64>, out: &mut Stream) {
    if !text.is_empty() {
        out.push(EventType::Message, Draft { text, timestamp, ..Draft::default() });
    }
}

fn push_call(
    tool_name: Option<&str>,
    tool_call_id: Option<&str>,
    input: Option<Value<'_>>,
    timestamp: Option<i64>,
    out: &mut Stream,
) {
    let mut arguments = Arguments::default();
    input.inspect(|input| arguments.read(*input));
    let draft = Draft { tool_name, tool_call_id, timestamp, ..arguments.draft() };
    out.push(EventType::ToolCall, draft);
}

/// Returns the exit code in the JSON of a command's result: `0`, `"0"` or `"exit status: 0"`.
fn exit_status(result: Value<'_>) -> Option<i32> {
    match result.text("exit_status") {
        Some(status) => status.rsplit(' ').next()?.parse().ok(),
        None => i32::try_from(result.int("exit_status")?).ok(),
    }
}

/// Returns the time of a journal record in microseconds; the log has seconds or a text.
fn timestamp(meta: Value<'_>) -> Option<i64> {
    let seconds = || meta.int("timestamp").filter(|seconds| *seconds > 0);
    micros(meta.text("timestamp")).or_else(|| Some(seconds()?.saturating_mul(1_000_000)))
}
