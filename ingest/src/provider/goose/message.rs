//! Decodes the messages of Goose and the rows of its ledger (docs/formats.md#goose).
//!
//! ```text
//! {"role":"assistant","created_timestamp":1792570000,"content_json":[
//!   {"type":"thinking","thinking":"...","signature":"..."},{"type":"text","text":"..."},
//!   {"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"...",...}}}]}
//! {"role":"user","content_json":[{"type":"toolResponse","id":"c1","toolResult":{
//!   "status":"success","value":{"content":[{"type":"text","text":"..."}],"isError":false}}}]}
//! ```

use schemas::{EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded, string_value};
use crate::text::render;

/// The table of token counts, one row for each request.
pub(super) const LEDGER: &str = "usage_ledger";

/// The table of messages, and the field of a document that holds the records.
pub(super) const MESSAGES: &str = "messages";

/// Kinds of blocks that tell the user something, and are not reported as drift.
const NOTED_BLOCKS: &[&str] = &[
    "actionRequired",
    "contextLengthExceeded",
    "conversationCompacted",
    "summarizationRequested",
    "systemNotification",
    "toolConfirmationRequest",
];

/// Decodes the records of one session in order.
#[derive(Default)]
pub(super) struct GooseDecoder {
    text: String,
    inner: Parser,
}

impl GooseDecoder {
    /// Decodes a message, or a row of the ledger.
    pub(super) fn decode_record(
        &mut self,
        record: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let time = ["created_timestamp", "created"].iter().find_map(|key| record.field(key));
        let time = time.and_then(chat::parse_time);
        let table = record.text("table").unwrap_or(MESSAGES);
        let id = record.int("id").map(|id| format!("{table} {id}"));
        out.begin_message(id.as_deref());
        match &id {
            Some(id) => out.begin_record(at, Some(row_identity(id, out)), time),
            None => out.begin_record_by_content(at, raw, time),
        }
        if record.text("type") == Some(OVERSIZED_RECORD) {
            push_oversized("message", record.int("bytes").unwrap_or(0), at, out);
        } else if table == LEDGER {
            push_usage(record, out);
        } else {
            self.decode_message(record, out);
        }
        RecordOutcome::Events
    }

    fn decode_message(&mut self, message: Value<'_>, out: &mut Stream) {
        let content = ["content_json", "content"].iter().find_map(|key| message.field(key));
        let blocks = content.map_or_else(Vec::new, |content| list_items(content));
        let role = message.text("role").unwrap_or("untyped");
        let mut is_hidden = false;
        decode_embedded(message.text("metadata_json").unwrap_or(""), &mut self.inner, |metadata| {
            is_hidden = metadata.flag("userVisible") == Some(false);
        });
        // What a compression leaves for the model, and what it is told without the user.
        if is_hidden || !matches!(role, "user" | "assistant") {
            self.text.clear();
            for block in &blocks {
                render::begin_new_line(&mut self.text);
                chat::append_part(*block, &mut self.text);
            }
            let subtype = if is_hidden { "agent_only" } else { role };
            if !is_hidden {
                out.count_unknown("record", role);
            }
            return out.push_shortened(subtype, &self.text);
        }

        if role == "assistant" {
            out.begin_step();
        }
        let mut prompt = String::new();
        for block in blocks {
            let kind = block.text("type").unwrap_or("untyped");
            match (kind, role) {
                ("text" | "image", "user") => {
                    render::begin_new_line(&mut prompt);
                    chat::append_part(block, &mut prompt);
                }
                ("toolResponse", _) => self.push_result(block, out),
                _ => self.decode_block(kind, block, out),
            }
        }
        // A content that is not a list of blocks.
        if let Some(text) = content.and_then(string_value) {
            prompt.push_str(text);
        }
        if role == "user" && !prompt.trim().is_empty() {
            out.push_prompt(&prompt);
        } else if !prompt.is_empty() {
            out.push_text(EventType::Message, &prompt);
        }
    }

    /// Decodes a block of a response, or one that has the same meaning in both roles.
    fn decode_block(&mut self, kind: &str, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        match kind {
            "text" | "image" => {
                chat::append_part(block, &mut self.text);
                out.push_text(EventType::Message, &self.text);
            }
            "thinking" | "redactedThinking" => {
                match block.non_empty("thinking") {
                    Some(thinking) => self.text.push_str(thinking),
                    None => {
                        let bytes = block.text("data").map_or(0, str::len);
                        self.text.push_str(&format!("[encrypted reasoning, {bytes} bytes]"));
                    }
                }
                out.push_text(EventType::Reasoning, &self.text);
            }
            "toolRequest" | "frontendToolRequest" => push_call(block, out),
            kind => {
                if !NOTED_BLOCKS.contains(&kind) {
                    out.count_unknown("block", kind);
                }
                render::append_notification(block, &["type"], &mut self.text);
                out.push_notification(kind, &self.text);
            }
        }
    }

    /// Pushes the result of a call: its content, or the error in place of it.
    fn push_result(&mut self, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let result = block.object("toolResult");
        let value = result.and_then(|result| result.field("value"));
        let mut is_error = value.and_then(|value| value.flag("isError")) == Some(true);
        match (result.and_then(|result| result.field("error")), value) {
            (Some(error), _) => {
                is_error = true;
                render::append_value(error, &mut self.text);
            }
            (None, Some(value)) => {
                chat::append_content(value.field("content").unwrap_or(value), &mut self.text);
            }
            (None, None) => {}
        }
        out.push_result(block.non_empty("id"), &self.text, Some(is_error), None);
    }
}

/// Returns the identity of a row. Rows of other sessions have the same ids in other databases.
fn row_identity(id: &str, out: &Stream) -> u64 {
    let session = out.session.native_id.as_deref().unwrap_or_default();
    xxh3_64(format!("{session} {id}").as_bytes()) | 1
}

/// Returns the elements of a list.
fn list_items(value: Value<'_>) -> Vec<Value<'_>> {
    value.as_array().map_or_else(Vec::new, |items| items.iter().collect())
}

/// Pushes a call. A request that the model wrote wrongly has an error instead of a name.
fn push_call(block: Value<'_>, out: &mut Stream) {
    let call = block.object("toolCall");
    let value = call.and_then(|call| call.object("value"));
    let mut arguments = Arguments::default();
    if let Some(input) = value.and_then(|value| value.field("arguments")) {
        arguments.read_value(input);
    } else if let Some(error) = call.and_then(|call| call.text("error")) {
        arguments.read_plain_text(error);
    }
    let tool_name = value.and_then(|value| value.text("name"));
    let mut decoded = arguments.decoded();
    // The argument `command` of the editor is what it does, not a command line.
    if tool_name.is_some_and(|name| name.ends_with("text_editor")) {
        decoded.command = "";
    }
    let tool_call_id = block.non_empty("id");
    out.push(EventType::ToolCall, DecodedEvent { tool_name, tool_call_id, ..decoded });
}

/// Pushes the tokens of one request.
fn push_usage(row: Value<'_>, out: &mut Stream) {
    let model = out.session.model.clone();
    out.set_model(row.text("model"));
    let decoded = DecodedEvent {
        subtype: (row.int("is_compaction") == Some(1)).then_some("compaction"),
        usage: read_usage(row),
        cost: row.cost("cost"),
        ..DecodedEvent::default()
    };
    out.push(EventType::TokenUsage, decoded);
    if row.int("is_compaction") == Some(1) {
        out.session.model = model;
    }
}

/// Reads the counts of one request. Some providers count the tokens of the cache as input, too: then
/// the total is that of input and output.
fn read_usage(row: Value<'_>) -> Usage {
    let count = |key: &str| row.int(key).filter(|count| *count >= 0);
    let (cache_read, cache_write) = (count("cache_read_tokens"), count("cache_write_tokens"));
    let cached = cache_read.unwrap_or(0) + cache_write.unwrap_or(0);
    let output = count("output_tokens");
    let input = count("input_tokens").map(|input| {
        let sum = input + output.unwrap_or(0);
        let is_included = count("total_tokens").is_some_and(|total| total <= sum);
        if is_included && cached <= input { input - cached } else { input }
    });
    Usage { input, output, cache_read, cache_write, ..Usage::default() }
}
