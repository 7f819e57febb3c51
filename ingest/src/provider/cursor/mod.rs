//! Reads the transcripts of Cursor's agent from
//! `~/.cursor/projects/<cwd>/agent-transcripts/<id>/<id>.jsonl` and `<id>/subagents/<id>.jsonl`, and
//! the chats of its command line from `~/.cursor/chats/<hash>/<id>/store.db`
//! (docs/formats.md#cursor).
//!
//! The records of a transcript have no ids, no model, no tokens and no tool results. The only times
//! are those that newer versions put around a prompt. A session that a database has is read from
//! there: from that of the editor (`cursoride`) with tokens and results, from that of the command
//! line with results and the model.

mod chat_store;
mod place;

use std::fs;
use std::path::Path;

use schemas::event::Relation;
use schemas::{EventType, Provider};
use serde::{Deserialize, Serialize};

use crate::provider::cursoride::database::{DATABASE, has_bubbles};
use crate::provider::format::{
    LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim, state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::provider::shared::{chat, drift, sidecar, user_query};
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::names::is_uuid;
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Cursor,
    has_unique_ids: false,
    decoder_version: 2,
    roots: |places| [".cursor/projects", ".cursor/chats"].map(|it| places.home_path(it)).to_vec(),
    sniff: claim_log,
    quirks: Quirks {
        is_sidecar: Some(|name, has| CHAT_FILES.contains(&name) && has(chat_store::DATABASE)),
        is_stored_elsewhere: Some(is_in_database),
        assemblies: &[chat_store::ASSEMBLY],
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|_, state| {
        let state = state.and_then(|state| CursorState::deserialize(state).ok());
        Box::new(CursorDecoder { state: state.unwrap_or_default(), text: String::new() })
    }),
};

/// Placeholder for reasoning that Cursor does not record.
const REDACTED: &str = "[REDACTED]";

/// Names of the files next to the database of a chat.
const CHAT_FILES: &[&str] = &[chat_store::CHAT_META, "prompt_history.json"];

/// Fields of a message that no notification repeats.
const ENVELOPE: &[&str] = &["id", "type", "role", "providerOptions", "createdAt"];

/// The folders in which the editor may keep its data on Linux, macOS and Windows, below the home folder.
const EDITOR_FOLDERS: [&str; 3] = [".config", "Library/Application Support", "AppData/Roaming"];

/// Returns whether the database of the editor or of the command line has the chat of a transcript.
fn is_in_database(path: &Path) -> bool {
    let Some(chat) = path.file_stem().and_then(|stem| stem.to_str()) else { return false };
    let Some(cursor) = path.ancestors().find(|folder| folder.ends_with(".cursor")) else {
        return false;
    };
    if is_uuid(chat) {
        let folders = fs::read_dir(cursor.join("chats")).into_iter().flatten().flatten();
        let chats = folders.map(|folder| folder.path().join(chat).join(chat_store::DATABASE));
        if chats.into_iter().any(|database| chat_store::has_chat(&database)) {
            return true;
        }
    }
    let home = cursor.parent();
    let databases = home.into_iter().flat_map(|home| EDITOR_FOLDERS.map(|data| home.join(data)));
    databases
        .map(|data| data.join("Cursor/User/globalStorage").join(DATABASE))
        .any(|database| database.is_file() && has_bubbles(&database, chat))
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    if let Some(chat) = head.objects.first().filter(|first| first["store"] == chat_store::STORE) {
        let id = chat["id"].as_str()?;
        let is_agent = chat["is_subagent"] == true;
        return Some(SessionClaim {
            agent_id: is_agent.then(|| id.to_owned()),
            ..SessionClaim::new(Provider::Cursor, id)
        });
    }
    if !head.objects.iter().any(is_cursor_record) || is_in_database(head.path) {
        return None;
    }

    let folder = head.path.parent();
    let is_agent = folder.and_then(Path::file_name).is_some_and(|name| name == "subagents");
    let session_folder = if is_agent { folder.and_then(Path::parent) } else { None };
    let parent = session_folder.and_then(Path::file_name).and_then(|name| name.to_str());
    // Copies of a log have a longer name: `<id> (1).jsonl`, `<id>.jsonl.bak`.
    let stem = head.file_stem();
    let id = stem.get(..36).filter(|id| is_uuid(id)).unwrap_or(stem);
    Some(SessionClaim {
        agent_id: is_agent.then(|| id.to_owned()),
        parent: parent.filter(|id| is_uuid(id)).map(str::to_owned),
        relation: is_agent.then_some(Relation::SubagentOf),
        ..SessionClaim::new(Provider::Cursor, id)
    })
}

/// Returns whether a record was written by Cursor: it has a role and a message, but not the
/// envelope of other agents that use the same message.
fn is_cursor_record(object: &serde_json::Value) -> bool {
    if ["uuid", "sessionId", "id"].iter().any(|key| object.get(*key).is_some()) {
        return false;
    }
    let content = &object["message"]["content"];
    let is_message = object["role"].is_string()
        && (content.is_array() || content.is_string())
        && object.get("type").is_none();
    let is_turn_end = object["type"] == "turn_ended" && object["status"].is_string();
    is_message || is_turn_end
}

/// The state of the decoder between two records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
struct CursorState {
    /// True once the first record was read.
    has_begun: bool,
    /// True once a record had a time.
    has_time: bool,
}

struct CursorDecoder {
    state: CursorState,
    text: String,
}

impl LineDecoder for CursorDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        if !std::mem::replace(&mut self.state.has_begun, true) {
            let folder = place::project_folder(Path::new(&out.session.source_path));
            out.set_cwd(folder.as_deref().and_then(Path::to_str));
        }
        if object.text("store") == Some(chat_store::STORE) {
            self.decode_header(object, out);
            return RecordOutcome::Merged("header");
        }
        let time = ["timestamp", "createdAt"].iter().find_map(|key| object.field(key));
        let time = time.and_then(chat::parse_time);
        self.note_time(time, out);
        let message = object.object("message").unwrap_or(object);
        let role = object.text("role");
        let is_user = matches!(role, Some("user" | "human"));
        self.text.clear();
        if !is_user {
            out.begin_record_by_content(at, raw, time);
            let options = object.object("providerOptions");
            let cursor = options.and_then(|options| options.object("cursor"));
            out.set_model(cursor.and_then(|cursor| cursor.text("modelName")));
            out.set_model(object.text("model"));
        }

        match role {
            // The time of a user's message may be in its text.
            Some("user" | "human") => self.decode_user_message(message, raw, at, time, out),
            Some("assistant" | "model") => self.decode_response(message, out),
            Some("tool") => {
                for block in message.items("content") {
                    self.decode_block(block, out);
                }
            }
            None if object.text("type") == Some(OVERSIZED_RECORD) => {
                push_oversized("message", object.int("bytes").unwrap_or(0), at, out);
            }
            _ => self.decode_other_record(object, role, out),
        }
        RecordOutcome::Events
    }

    fn finish_reading(&mut self, _: RecordAt, out: &mut Stream) {
        if self.state.has_begun && !self.state.has_time {
            // The time of the file is the only one, until a record has one.
            out.set_file_time(sidecar::file_time(Path::new(&out.session.source_path)));
        }
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl CursorDecoder {
    /// Reads the fields that describe a chat of the command line.
    fn decode_header(&mut self, header: Value<'_>, out: &mut Stream) {
        let created = header.field("created");
        // A number, also as text.
        let millis = created.and_then(string_value).and_then(|text| text.parse::<i64>().ok());
        let created = millis.map(|millis| millis.saturating_mul(1000));
        let created = created.or_else(|| header.field("created").and_then(chat::parse_time));
        self.note_time(created, out);
        out.extend_time_range(created);
        out.set_cwd(header.non_empty("cwd"));
        out.set_model(header.non_empty("model"));
        out.offer_title(TitleFrom::Agent, header.text("title").unwrap_or(""));
    }

    /// Notes the time of a record. The first one replaces that of the file.
    fn note_time(&mut self, time: Option<i64>, out: &mut Stream) {
        if time.is_some() && !std::mem::replace(&mut self.state.has_time, true) {
            out.clear_file_time();
        }
    }

    /// Decodes a typed prompt together with the context that the client added. Other logs of the
    /// same shape also have tool results here.
    fn decode_user_message(
        &mut self,
        message: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        time: Option<i64>,
        out: &mut Stream,
    ) {
        let (results, parts): (Vec<_>, Vec<_>) =
            message.items("content").into_iter().partition(|block| is_tool_result(*block));
        for block in &parts {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            chat::append_part(*block, &mut self.text);
        }
        if let Some(content) = message.text("content") {
            self.text.push_str(content);
        }

        let words = user_query::split_user_text(&self.text);
        self.note_time(words.time, out);
        out.begin_record_by_content(at, raw, time.or(words.time));
        for block in results {
            self.decode_block(block, out);
        }

        out.set_cwd(words.workspace.as_deref());
        words.push_context(out);
        if !words.prompt.is_empty() {
            out.push_prompt(&words.prompt);
        }
    }

    /// Decodes one response of the model.
    fn decode_response(&mut self, message: Value<'_>, out: &mut Stream) {
        let blocks = message.items("content");
        let plain = message.non_empty("content");
        if blocks.is_empty() && plain.is_none() {
            return;
        }

        out.begin_step();
        if let Some(text) = plain {
            out.push_text(EventType::Message, text);
        }
        for block in blocks {
            self.decode_block(block, out);
        }
    }

    fn decode_block(&mut self, block: Value<'_>, out: &mut Stream) {
        match block.text("type") {
            Some("text") => {
                let text = block.text("text").unwrap_or("");
                let is_redacted = text.trim() == REDACTED;
                let kind = if is_redacted { EventType::Reasoning } else { EventType::Message };
                out.push_text(kind, text);
            }
            Some("thinking" | "reasoning") => {
                let text = block.text("thinking").or_else(|| block.text("text")).unwrap_or("");
                out.push_text(EventType::Reasoning, text);
            }
            Some("redacted-reasoning") => out.push_text(EventType::Reasoning, REDACTED),
            Some("tool_use" | "tool-use" | "tool_call" | "tool-call") => push_call(block, out),
            _ if is_tool_result(block) => self.push_tool_result(block, out),
            kind => {
                let kind = kind.unwrap_or("untyped");
                drift::push_unknown_block(kind, block, out);
            }
        }
    }

    fn push_tool_result(&mut self, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        for key in ["content", "result"] {
            chat::append_field(block, key, &mut self.text);
        }
        let decoded = DecodedEvent {
            text: &self.text,
            tool_name: first_text(block, &["name", "toolName"]),
            tool_call_id: first_text(block, &["tool_use_id", "toolCallId"]),
            is_error: block.flag("is_error").or_else(|| block.flag("isError")),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }

    /// Decodes the end of a turn, or a record without a rule of its own.
    fn decode_other_record(&mut self, object: Value<'_>, role: Option<&str>, out: &mut Stream) {
        let kind = object.text("type").or(role).unwrap_or("untyped");
        if !matches!(kind, "turn_ended" | "system") {
            out.count_unknown("record", kind);
        }
        match object.text("content") {
            Some(content) => self.text.push_str(content),
            None => render::append_notification(object, ENVELOPE, &mut self.text),
        }
        render::truncate_notification(&mut self.text);
        let is_error = (object.text("status") == Some("error")).then_some(true);
        out.push_notice(kind, &self.text, is_error);
    }
}

/// Returns whether a block is the result of a tool.
fn is_tool_result(block: Value<'_>) -> bool {
    matches!(block.text("type"), Some("tool_result" | "tool-result"))
}

/// Pushes a tool call. Its arguments have several names.
fn push_call(block: Value<'_>, out: &mut Stream) {
    let mut arguments = Arguments::default();
    if let Some(input) = ["input", "args", "arguments"].iter().find_map(|key| block.field(key)) {
        match string_value(input) {
            Some(text) => arguments.read_plain_text(text),
            None => arguments.read_value(input),
        }
    }
    let tool_name = first_text(block, &["name", "toolName"]);
    arguments.push_call(tool_name, first_text(block, &["id", "toolCallId"]), out);
}

/// Returns the text under the first of several keys that has one.
fn first_text<'a>(block: Value<'a>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| block.non_empty(key))
}
