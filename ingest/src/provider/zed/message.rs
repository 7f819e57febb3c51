//! Decodes the messages of Zed (docs/formats.md#zed).
//!
//! ```text
//! since 0.3.0  {"User":{"id":"...","content":[{"Text":"..."},{"Mention":{"uri":...}}]}}
//!              {"Agent":{"content":[{"Thinking":{"text":"..."}},{"Text":"..."},
//!                {"ToolUse":{"id":"c1","name":"...","input":{...}}}],
//!               "tool_results":{"c1":{"is_error":false,"content":{"Text":"..."},...}}}}
//! before       {"id":1,"role":"user","segments":[{"type":"text","text":"..."}],
//!               "tool_uses":[...],"tool_results":[...]}
//! ```

use std::collections::HashMap;

use schemas::{Confidence, EventType, Usage};

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::hash_id;
use crate::provider::shared::{chat, drift};
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// The tool that runs commands.
const TERMINAL: &str = "terminal";

/// Decodes the messages of one thread in order.
#[derive(Default)]
pub(super) struct ZedDecoder {
    /// The start of the thread, until the first message takes it as its time.
    start: Option<i64>,
    /// The counts of the last request of each turn, by the id of the prompt.
    usage: HashMap<String, Usage>,
    /// Whether the thread has the counts of all requests.
    has_total: bool,
    text: String,
}

impl ZedDecoder {
    /// Reads the fields of a thread that its messages need.
    pub(super) fn begin(&mut self, start: Option<i64>, info: Value<'_>) {
        self.start = start;
        let total = info.object("total_usage").map(chat::read_anthropic_usage).unwrap_or_default();
        self.has_total = total.total() > 0;
        for (prompt, usage) in fields_of(info.object("usage")) {
            self.usage.insert(prompt.to_owned(), chat::read_anthropic_usage(usage));
        }
    }

    /// Decodes one message into events.
    pub(super) fn decode_message(
        &mut self,
        message: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let (role, body) = message_body(message);
        let id = body.non_empty("id");
        out.begin_message(id);
        match id {
            Some(id) => out.begin_record(at, Some(hash_id(id)), self.start.take()),
            None => out.begin_record_by_content(at, raw, self.start.take()),
        }
        match role {
            "User" | "user" => self.decode_prompt(body, id, out),
            "Agent" | "assistant" => self.decode_response(body, out),
            "marker" => return RecordOutcome::Merged("marker"),
            role => {
                if role != "system" {
                    out.count_unknown("record", role);
                }
                self.text.clear();
                render::append_notification(body, &["role"], &mut self.text);
                out.push_notification(role, &self.text);
            }
        }
        RecordOutcome::Events
    }

    /// Decodes what the user typed, with the files that it mentions.
    fn decode_prompt(&mut self, body: Value<'_>, id: Option<&str>, out: &mut Stream) {
        let mut mentioned = String::new();
        self.text.clear();
        for block in body.items("content").into_iter().chain(body.items("segments")) {
            match block_parts(block) {
                ("Text" | "text", value) => {
                    let text = string_value(value).or_else(|| value.text("text"));
                    self.text.push_str(text.unwrap_or(""));
                }
                ("Mention", value) => {
                    let uri = value.field("uri");
                    if let Some(uri) = uri {
                        let name = mention_name(uri);
                        self.text.push_str(&format!("@{name}"));
                        render::append_line(&name, &mut mentioned);
                    }
                }
                ("Image", _) => self.text.push_str("[image]"),
                (kind, value) => drift::push_unknown_block(kind, value, out),
            }
        }
        if !self.text.trim().is_empty() {
            out.push_prompt(&self.text);
        }
        if !mentioned.is_empty() {
            out.push_notification("attachments", &mentioned);
        }
        let usage = id.and_then(|id| self.usage.get(id)).filter(|usage| usage.total() > 0);
        if let Some(usage) = usage.filter(|_| !self.has_total) {
            out.set_confidence(Confidence::Partial);
            let decoded = DecodedEvent {
                subtype: Some("last_request"),
                usage: *usage,
                ..DecodedEvent::default()
            };
            out.push(EventType::TokenUsage, decoded);
        }
    }

    /// Decodes one response with its calls and their results.
    fn decode_response(&mut self, body: Value<'_>, out: &mut Stream) {
        out.begin_step();
        for block in body.items("content").into_iter().chain(body.items("segments")) {
            let (kind, value) = block_parts(block);
            let event = match kind {
                "Text" | "text" => EventType::Message,
                "Thinking" | "thinking" => EventType::Reasoning,
                "RedactedThinking" | "redacted_thinking" => {
                    let bytes =
                        string_value(value).or_else(|| value.text("data")).map_or(0, str::len);
                    self.text.clear();
                    self.text.push_str(&format!("[encrypted reasoning, {bytes} bytes]"));
                    out.push_text(EventType::Reasoning, &self.text);
                    continue;
                }
                "ToolUse" => {
                    push_call(value, out);
                    continue;
                }
                kind => {
                    drift::push_unknown_block(kind, value, out);
                    continue;
                }
            };
            let text = string_value(value).or_else(|| value.text("text")).unwrap_or("");
            if !text.trim().is_empty() {
                out.push_text(event, text);
            }
        }
        for call in body.items("tool_uses") {
            push_call(call, out);
        }
        for result in body.items("tool_results") {
            self.push_result(result, result.non_empty("tool_use_id"), out);
        }
        for (id, result) in fields_of(body.object("tool_results")) {
            self.push_result(result, Some(id), out);
        }
    }

    fn push_result(&mut self, result: Value<'_>, id: Option<&str>, out: &mut Stream) {
        self.text.clear();
        let content = result.field("content").or_else(|| result.field("output"));
        if let Some(content) = content {
            match content.text("Text") {
                Some(text) => self.text.push_str(text),
                None if content.field("Image").is_some() => self.text.push_str("[image]"),
                None => chat::append_content(content, &mut self.text),
            }
        }
        let tool_name = result.text("tool_name");
        // Only words tell a command that failed.
        let first = self.text.lines().next().filter(|_| tool_name == Some(TERMINAL));
        let exit_code = first.and_then(chat::parse_exit_code);
        let is_error =
            result.flag("is_error") == Some(true) || exit_code.is_some_and(|code| code != 0);
        let decoded = DecodedEvent {
            text: &self.text,
            tool_name,
            tool_call_id: id,
            is_error: Some(is_error),
            exit_code,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Returns the role and the fields of a message of either version.
fn message_body(message: Value<'_>) -> (&str, Value<'_>) {
    if let Some(role) = message.text("role") {
        return (role, message);
    }
    first_field(message).unwrap_or(("untyped", message))
}

/// Returns the kind and the value of a block of either version.
fn block_parts(block: Value<'_>) -> (&str, Value<'_>) {
    if let Some(kind) = block.text("type") {
        return (kind, block);
    }
    first_field(block).unwrap_or(("untyped", block))
}

/// Returns the first field of an object: the only one of a value that is tagged by its name.
fn first_field(object: Value<'_>) -> Option<(&str, Value<'_>)> {
    object.as_object()?.iter().next()
}

/// Returns the fields of an object.
fn fields_of(object: Option<Value<'_>>) -> Vec<(&str, Value<'_>)> {
    let object = object.and_then(|object| object.as_object());
    object.map_or_else(Vec::new, |object| object.iter().collect())
}

/// Returns the name of what a prompt mentions: a path, or the title of something else.
fn mention_name(uri: Value<'_>) -> String {
    if let Some(text) = string_value(uri) {
        return text.to_owned();
    }
    let named = first_field(uri).map_or(uri, |(_, value)| value);
    let path = ["abs_path", "path", "name", "title", "url"].iter().find_map(|key| named.text(key));
    path.unwrap_or("attachment").to_owned()
}

/// Pushes a call. Its input may be cut if the user stopped the response.
fn push_call(call: Value<'_>, out: &mut Stream) {
    let mut arguments = Arguments::default();
    match (call.field("input").filter(|input| input.is_object()), call.text("raw_input")) {
        (Some(input), _) => arguments.read_value(input),
        (None, Some(text)) => arguments.read_plain_text(text),
        (None, None) => {}
    }
    arguments.push_call(call.text("name"), call.non_empty("id"), out);
}
