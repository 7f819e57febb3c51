//! Reads the conversations in an export of claude.ai, `conversations.json`
//! (docs/formats.md#claudeai).
//!
//! ```text
//! {"uuid":"...","name":"...","summary":"...","created_at":"...","updated_at":"...","chat_messages":[
//!   {"uuid":"...","sender":"human","text":"...","content":[{"type":"text","text":"..."}],
//!    "attachments":[{"file_name":"...","extracted_content":"..."}],"files":[{"file_name":"..."}],
//!    "created_at":"...","parent_message_uuid":"..."},
//!   {"uuid":"...","sender":"assistant","content":[{"type":"thinking",...},{"type":"tool_use",...},
//!    {"type":"tool_result",...},{"type":"text",...}],...}]}
//! ```
//!
//! Each conversation is assembled into a document (`shared/chat_export.rs`).

use schemas::{EventType, Provider};

use crate::provider::format::{
    LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat_export::ChatExport;
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::provider::shared::drift;
use crate::provider::shared::identity::{
    begin_header_record, begin_uuid_record, hash_id, uuid_identity,
};
use crate::source::assembly::Assembly;
use crate::stream::tree::ROOT;
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::ClaudeAi,
    has_unique_ids: true,
    decoder_version: 1,
    // Only the user knows where an export is.
    roots: |_| Vec::new(),
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// Value of `store` in the documents of these conversations.
const STORE: &str = "claudeai";

const EXPORT: ChatExport = ChatExport {
    store: STORE,
    names: &["conversations"],
    messages: Some("chat_messages"),
    is_own: |fields| fields.contains_key("uuid"),
    id: |fields| fields.get("uuid")?.as_str().map(str::to_owned),
    updated: "updated_at",
    order: |messages| messages,
};

const ASSEMBLY: Assembly = Assembly {
    name: "claude.ai export",
    source_suffix: ".json",
    is_source: |path| EXPORT.is_export(path),
    sessions: |path| EXPORT.list(path),
    assemble: |path| EXPORT.assemble(path),
    ..Assembly::NONE
};

/// The parent of the first message of a conversation.
const NO_PARENT: &str = "00000000-0000-4000-8000-000000000000";

/// Known fields of a conversation.
const KNOWN_INFO: &[&str] =
    &["account", "created_at", "name", "store", "summary", "updated_at", "uuid"];

/// Known fields of a message.
const KNOWN_MESSAGE: &[&str] = &[
    "attachments",
    "content",
    "created_at",
    "files",
    "index",
    "input_mode",
    "parent_message_uuid",
    "sender",
    "stop_reason",
    "text",
    "truncated",
    "updated_at",
    "uuid",
];

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let id = head.stored_info(STORE)?["uuid"].as_str()?;
    let first = head.document()?.get("messages").and_then(|messages| messages[0]["uuid"].as_str());
    Some(SessionClaim {
        first_record: uuid_identity(first),
        ..SessionClaim::new(Provider::ClaudeAi, id)
    })
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let conversation = Document::read(bytes, &ASSEMBLED, out, tally);
    conversation.with_info(|info| decode_info(info, out));
    let mut decoder = ClaudeAiDecoder::default();
    conversation.for_each_record(out, tally, &mut |message, raw, at, out| {
        decoder.decode_message(message, raw, at, out)
    });
}

/// Reads the fields that describe a conversation.
fn decode_info(info: Value<'_>, out: &mut Stream) {
    let updated = parse_micros(info.text("updated_at"));
    out.extend_time_range(parse_micros(info.text("created_at")));
    out.extend_time_range(updated);
    out.offer_title(TitleFrom::Agent, info.text("name").unwrap_or(""));
    begin_header_record(updated, out);
    drift::count_unknown_fields(info, KNOWN_INFO, out);
    if let Some(summary) = info.non_empty("summary") {
        out.push_notification("summary", summary);
    }
}

/// Decodes the messages of one conversation in order.
#[derive(Default)]
struct ClaudeAiDecoder {
    /// True while a response of the model is under way. A result ends it.
    in_response: bool,
    /// The id of the last call, also if the export gives none.
    last_call: String,
    /// Text of the current event.
    text: String,
}

impl ClaudeAiDecoder {
    fn decode_message(
        &mut self,
        message: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = message.text("uuid");
        let time = parse_micros(message.text("created_at"));
        begin_uuid_record(id, raw, at, time, out);
        if let (Some(id), Some(parent)) = (id, message.text("parent_message_uuid")) {
            let parent = if parent == NO_PARENT { ROOT } else { hash_id(parent) };
            out.add_tree_entry(hash_id(id), parent);
        }
        drift::count_unknown_fields(message, KNOWN_MESSAGE, out);

        self.text.clear();
        match message.text("sender") {
            Some("human") => self.decode_prompt(message, out),
            Some("assistant") => self.decode_answer(message, id.unwrap_or(""), out),
            sender => drift::push_unknown_record(sender, message, &["uuid", "sender"], out),
        }
        RecordOutcome::Events
    }

    /// Decodes a prompt with its attachments. Old exports have its text only in `text`.
    fn decode_prompt(&mut self, message: Value<'_>, out: &mut Stream) {
        let blocks = message.items("content");
        for text in blocks.iter().filter_map(|block| block.non_empty("text")) {
            render::append_line(text, &mut self.text);
        }
        if self.text.trim().is_empty() {
            self.text.push_str(message.text("text").unwrap_or(""));
        }
        let attachments = message.items("attachments");
        let files = message.items("files");
        let mut names = String::new();
        for file in attachments.iter().chain(&files) {
            render::append_line(file.non_empty("file_name").unwrap_or("unnamed"), &mut names);
        }
        let is_bare = self.text.trim().is_empty();
        if !(is_bare && names.is_empty()) {
            out.push_prompt(if is_bare { &names } else { &self.text });
        }
        for block in blocks.iter().filter(|block| block.text("type") != Some("text")) {
            drift::push_unknown_block(block.text("type").unwrap_or("block"), *block, out);
        }
        if !(is_bare || names.is_empty()) {
            out.push_notification("attachments", &names);
        }
        for attachment in &attachments {
            let Some(content) = attachment.non_empty("extracted_content") else { continue };
            self.text.clear();
            self.text.push_str(attachment.text("file_name").unwrap_or(""));
            render::append_line(content, &mut self.text);
            out.push_shortened("attachment", &self.text);
        }
    }

    /// Decodes what the model said and did between two prompts: one or more responses. `id` is that
    /// of the message.
    fn decode_answer(&mut self, message: Value<'_>, id: &str, out: &mut Stream) {
        self.in_response = false;
        let blocks = message.items("content");
        for (number, block) in blocks.iter().enumerate() {
            let time = parse_micros(block.text("start_timestamp"));
            match block.text("type") {
                Some("text") => self.push_text(EventType::Message, block.text("text"), time, out),
                Some("thinking") => {
                    self.push_text(EventType::Reasoning, block.text("thinking"), time, out);
                }
                Some("tool_use") => {
                    let own = || format!("{id}:{number}");
                    self.last_call = block.non_empty("id").map_or_else(own, str::to_owned);
                    out.begin_response(&mut self.in_response);
                    let arguments = Arguments::of_value(block.field("input"));
                    let decoded = DecodedEvent {
                        tool_name: block.text("name"),
                        tool_call_id: Some(&self.last_call),
                        timestamp: time,
                        ..arguments.decoded()
                    };
                    out.push(EventType::ToolCall, decoded);
                }
                Some("tool_result") => self.decode_result(*block, time, out),
                // The number of tokens that are left to the model.
                Some("token_budget") => {}
                kind => drift::push_unknown_block(kind.unwrap_or("block"), *block, out),
            }
        }
        // Old exports have the text only here.
        if out.pushed_count() == 0 {
            self.push_text(EventType::Message, message.text("text"), None, out);
        }
    }

    fn push_text(
        &mut self,
        kind: EventType,
        text: Option<&str>,
        timestamp: Option<i64>,
        out: &mut Stream,
    ) {
        let text = text.unwrap_or("");
        if !text.trim().is_empty() {
            out.begin_response(&mut self.in_response);
            out.push(kind, DecodedEvent { text, timestamp, ..DecodedEvent::default() });
        }
    }

    fn decode_result(&mut self, block: Value<'_>, timestamp: Option<i64>, out: &mut Stream) {
        self.text.clear();
        let items = block.items("content");
        for item in &items {
            // What a search found has an address besides its text.
            for text in ["title", "url"].iter().filter_map(|key| item.non_empty(key)) {
                render::append_line(text, &mut self.text);
            }
            render::begin_new_line(&mut self.text);
            render::append_block(*item, &mut self.text);
        }
        if items.is_empty() {
            render::append_field(block, "content", &mut self.text);
        }
        let decoded = DecodedEvent {
            text: &self.text,
            tool_name: block.non_empty("name"),
            tool_call_id: Some(block.non_empty("tool_use_id").unwrap_or(&self.last_call)),
            is_error: block.flag("is_error"),
            timestamp,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
        self.in_response = false;
    }
}
