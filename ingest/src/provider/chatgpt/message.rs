//! Decodes the messages of a conversation. A message of the assistant to a `recipient` other than
//! `all` is a call, and those of the role `tool` after it are its results.

use std::collections::HashMap;

use schemas::EventType;
use simd_json::prelude::*;

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::{begin_uuid_record, hash_id};
use crate::provider::shared::{chat, drift};
use crate::stream::tree::ROOT;
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

/// Fields with the text of a content, in the order in which they are shown.
const TEXT_KEYS: &[&str] =
    &["title", "url", "text", "result", "content", "summary", "user_profile", "user_instructions"];

/// The types of content whose fields are known.
const KNOWN_CONTENT: &[&str] = &[
    "code",
    "execution_output",
    "multimodal_text",
    "reasoning_recap",
    "system_error",
    "tether_browsing_display",
    "tether_quote",
    "text",
    "thoughts",
    "user_editable_context",
];

/// Known fields of a message.
const KNOWN_MESSAGE: &[&str] = &[
    "author",
    "channel",
    "content",
    "create_time",
    "end_turn",
    "id",
    "metadata",
    "recipient",
    "status",
    "update_time",
    "weight",
];

/// Decodes the nodes of one conversation in order.
#[derive(Default)]
pub(super) struct ChatGptDecoder {
    /// True while a response of the model is under way.
    in_response: bool,
    /// For each node, the last call at it or above it.
    calls: HashMap<u64, String>,
    last_entry: Option<u64>,
    /// Text of the current event.
    text: String,
    parser: Parser,
}

impl ChatGptDecoder {
    /// Returns the node that was decoded last.
    pub(super) fn last_entry(&self) -> Option<u64> {
        self.last_entry
    }

    pub(super) fn decode_node(
        &mut self,
        node: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let message = node.object("message");
        let id = message.and_then(|message| message.text("id"));
        let time = message.and_then(|message| message.field("create_time"));
        let time = time.and_then(chat::parse_time);
        begin_uuid_record(id, raw, at, time, out);
        let entry = hash_id(node.text("id").unwrap_or(""));
        let parent = node.text("parent").map_or(ROOT, hash_id);
        out.add_tree_entry(entry, parent);
        self.last_entry = Some(entry);
        if let Some(call) = self.calls.get(&parent) {
            self.calls.insert(entry, call.clone());
        }
        // The root, which only holds the tree together.
        let Some(message) = message else { return RecordOutcome::Merged("tree_root") };

        drift::count_unknown_fields(message, KNOWN_MESSAGE, out);
        let kind = message.object("content").and_then(|content| content.text("content_type"));
        let kind = kind.unwrap_or("untyped");
        if KNOWN_CONTENT.binary_search(&kind).is_err() {
            out.count_unknown("content", kind);
        }
        self.text.clear();
        if let Some(content) = message.object("content") {
            append_content(content, &mut self.text);
        }
        let author = message.object("author");
        match author.and_then(|author| author.text("role")) {
            Some("user") => self.decode_prompt(message, kind, out),
            Some("assistant") => self.decode_answer(message, kind, entry, out),
            Some("tool") => {
                let name = author.and_then(|author| author.non_empty("name"));
                self.decode_result(message, kind, name, entry, out);
            }
            Some("system") => self.push_notice("system", out),
            role => {
                let role = role.unwrap_or("untyped");
                out.count_unknown("record", role);
                self.push_notice(role, out);
            }
        }
        RecordOutcome::Events
    }

    /// Pushes the text as a notification, unless there is none.
    fn push_notice(&mut self, subtype: &str, out: &mut Stream) {
        if !self.text.trim().is_empty() {
            out.push_shortened(subtype, &self.text);
        }
    }

    /// Decodes a message in the user's role. One that the page does not show is not the user's.
    fn decode_prompt(&mut self, message: Value<'_>, kind: &str, out: &mut Stream) {
        self.in_response = false;
        let metadata = message.object("metadata");
        if !matches!(kind, "text" | "multimodal_text") {
            return self.push_notice(kind, out);
        }
        if is_hidden(metadata) {
            return self.push_notice("hidden", out);
        }
        let attachments = metadata.map(|metadata| metadata.items("attachments"));
        let mut names = String::new();
        for attachment in attachments.unwrap_or_default() {
            render::append_line(attachment.non_empty("name").unwrap_or("unnamed"), &mut names);
        }
        if !self.text.trim().is_empty() || !names.is_empty() {
            let is_bare = self.text.trim().is_empty();
            out.push_prompt(if is_bare { &names } else { &self.text });
        }
        if !names.is_empty() {
            out.push_notification("attachments", &names);
        }
    }

    fn decode_answer(&mut self, message: Value<'_>, kind: &str, entry: u64, out: &mut Stream) {
        let metadata = message.object("metadata");
        out.set_model(metadata.and_then(|metadata| metadata.text("model_slug")));
        if self.text.trim().is_empty() {
            return;
        }
        if kind == "reasoning_recap" {
            return self.push_notice(kind, out);
        }
        out.begin_response(&mut self.in_response);
        match message.text("recipient") {
            Some("all") | None => {
                let is_reasoning = kind == "thoughts";
                let event = if is_reasoning { EventType::Reasoning } else { EventType::Message };
                out.push_text(event, &self.text);
            }
            Some(tool) => {
                let call = message.text("id").unwrap_or("").to_owned();
                let mut arguments = Arguments::default();
                arguments.read_json_text(&self.text, &mut self.parser);
                arguments.push_call(Some(tool), Some(&call), out);
                self.calls.insert(entry, call);
            }
        }
    }

    fn decode_result(
        &mut self,
        message: Value<'_>,
        kind: &str,
        name: Option<&str>,
        entry: u64,
        out: &mut Stream,
    ) {
        let run = message.object("metadata");
        let run = run.and_then(|metadata| metadata.object("aggregate_result"));
        let status = run.and_then(|run| run.text("status"));
        let has_failed = kind == "system_error"
            || status.is_some_and(|status| status.starts_with("failed"))
            || run.is_some_and(|run| run.object("in_kernel_exception").is_some());
        let decoded = DecodedEvent {
            subtype: status.filter(|status| *status == "cancelled"),
            text: &self.text,
            tool_name: name,
            tool_call_id: self.calls.get(&entry).map(String::as_str),
            // What other tools return does not say.
            is_error: (has_failed || status == Some("success")).then_some(has_failed),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
        self.in_response = false;
    }
}

fn is_hidden(metadata: Option<Value<'_>>) -> bool {
    metadata.and_then(|metadata| metadata.flag("is_visually_hidden_from_conversation"))
        == Some(true)
}

/// Appends the text of a content: its parts, its thoughts, or its fields with text.
fn append_content(content: Value<'_>, out: &mut String) {
    for part in content.items("parts") {
        if let Some(text) = string_value(part) {
            render::append_line(text, out);
        } else if let Some(text) = part.text("text") {
            render::append_line(text, out);
        } else if let Some(asset) = part.text("asset_pointer") {
            render::append_line(&format!("[{asset}]"), out);
        } else if !part.is_null() {
            render::begin_new_line(out);
            render::append_value(part, out);
        }
    }
    for thought in content.items("thoughts") {
        for text in ["summary", "content"].iter().filter_map(|key| thought.non_empty(key)) {
            render::append_line(text, out);
        }
    }
    for text in TEXT_KEYS.iter().filter_map(|key| content.non_empty(key)) {
        render::append_line(text, out);
    }
}
