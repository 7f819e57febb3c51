//! Reads the sessions of QwenPaw, earlier CoPaw, from `~/.qwenpaw/workspaces/<agent>/sessions/<id>.json`
//! and `sessions/<channel>/<id>.json` (docs/formats.md#qwenpaw).
//!
//! ```text
//! {"agent":{"memory":{"content":[[{"id":"...","name":"user","role":"user","timestamp":
//!   "2026-11-01 11:00:00.250","content":[{"type":"text","text":"..."}]},[]],...]}}}
//! ```
//!
//! Each element of the list is a message with its marks.

use std::path::{Path, PathBuf};

use schemas::{EventType, Provider};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::document::{self, Document, DocumentLayout, RecordSpan};
use crate::provider::shared::drift;
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::QwenPaw,
    has_unique_ids: false,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        is_other_folder: Some(|folder| folder.ends_with(".weixin-legacy")),
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

const LAYOUT: DocumentLayout = DocumentLayout { list: Some("agent/memory/content"), header: &[] };

/// Name of the folder with the sessions of an agent.
const SESSIONS: &str = "sessions";

/// Returns the folders of the sessions of each agent. The older name of the program counts if its
/// folder is there.
fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let earlier = places.home_path(".copaw");
    let home = if earlier.is_dir() { earlier } else { places.home_path(".qwenpaw") };
    let workspaces = std::fs::read_dir(home.join("workspaces")).into_iter().flatten().flatten();
    let mut folders: Vec<_> = workspaces.map(|agent| agent.path().join(SESSIONS)).collect();
    folders.push(home.join("workspaces/default").join(SESSIONS));
    folders.sort();
    folders
}

/// Claims a document by its list of messages. The file name of a session is unique only for its agent
/// and its channel.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let agent = head.document()?.get("agent")?;
    let place = session_place(head.path);
    // The list of a large document is cut.
    let content = &agent["memory"]["content"];
    let is_list = match content.as_array() {
        Some(messages) => messages.first().is_none_or(|first| first[0]["role"].is_string()),
        None => content.is_null() && agent.is_object() && place.is_some(),
    };
    let id = place.unwrap_or_else(|| head.file_stem().to_owned());
    is_list.then(|| SessionClaim::new(Provider::QwenPaw, id))
}

/// Returns the agent, the channel and the name of the session at
/// `workspaces/<agent>/sessions/[<channel>/]<name>.json`.
fn session_place(path: &Path) -> Option<String> {
    let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
    let sessions = names.iter().rposition(|name| *name == SESSIONS)?;
    let agent = names.get(sessions.checked_sub(1)?)?;
    let channel = names.get(sessions + 1..names.len() - 1)?;
    let stem = path.file_stem()?.to_str()?;
    let parts: Vec<&str> = [*agent].into_iter().chain(channel.iter().copied()).collect();
    (sessions >= 2 && names[sessions - 2] == "workspaces")
        .then(|| format!("{}:{stem}", parts.join(":")))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let session = Document::read(bytes, &LAYOUT, out, tally);
    let messages: Vec<RecordSpan> =
        session.records.iter().filter_map(|pair| message_span(*pair, bytes)).collect();
    let lost = session.records.len() - messages.len();
    for _ in 0..lost {
        out.count_unknown("record", "no_message");
    }
    let mut inner = Parser::default();
    document::for_each_record(bytes, &messages, out, tally, &mut |message, raw, at, out| {
        decode_message(message, raw, at, &mut inner, out)
    });
}

/// Returns the span of the message in `[message, marks]`.
fn message_span(pair: RecordSpan, bytes: &[u8]) -> Option<RecordSpan> {
    let raw = pair.record_bytes(bytes);
    let inside = raw.strip_prefix(b"[")?.trim_ascii_start();
    let start = raw.len() - inside.len();
    let mut values =
        serde_json::Deserializer::from_slice(inside).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    let length = values.byte_offset();
    let line = pair.line + memchr::memchr_iter(b'\n', &raw[..start]).count() as u64;
    inside.starts_with(b"{").then_some(RecordSpan { offset: pair.offset + start, length, line })
}

/// Decodes one message. Results are in messages of the system.
fn decode_message(
    message: Value<'_>,
    raw: &[u8],
    at: RecordAt,
    inner: &mut Parser,
    out: &mut Stream,
) -> RecordOutcome {
    let id = message.non_empty("id");
    let time = message.text("timestamp").and_then(chat::parse_unzoned);
    out.begin_message(id);
    match id {
        Some(id) => out.begin_record(at, Some(xxh3_64(id.as_bytes()) | 1), time),
        None => out.begin_record_by_content(at, raw, time),
    }
    let role = message.text("role").unwrap_or("untyped");
    if role == "assistant" {
        out.begin_step();
    }
    let mut text = String::new();
    if let Some(content) = message.field("content").and_then(string_value) {
        text.push_str(content);
    }
    for block in message.items("content") {
        match block.text("type") {
            Some("text") if role == "assistant" => {
                out.push_text(EventType::Message, block.text("text").unwrap_or(""));
            }
            Some("thinking") => {
                out.push_text(EventType::Reasoning, block.text("thinking").unwrap_or(""));
            }
            Some("tool_use") => {
                let input =
                    block.non_null("raw_input").filter(|raw| string_value(*raw) != Some(""));
                let arguments = Arguments::of_input(input.or_else(|| block.field("input")), inner);
                arguments.push_call(block.non_empty("name"), block.non_empty("id"), out);
            }
            Some("tool_result") => push_result(block, out),
            Some("text" | "image" | "audio" | "video" | "file") => {
                render::begin_new_line(&mut text);
                chat::append_part(block, &mut text);
            }
            kind => drift::push_unknown_block(kind.unwrap_or("untyped"), block, out),
        }
    }
    if text.trim().is_empty() {
        return RecordOutcome::Events;
    }
    match role {
        "user" => out.push_prompt(&text),
        "assistant" => out.push_text(EventType::Message, &text),
        role => {
            if role != "system" {
                out.count_unknown("record", role);
            }
            out.push_shortened(role, &text);
        }
    }
    RecordOutcome::Events
}

fn push_result(block: Value<'_>, out: &mut Stream) {
    let mut text = String::new();
    chat::append_field(block, "output", &mut text);
    let decoded = DecodedEvent {
        text: &text,
        tool_name: block.non_empty("name"),
        tool_call_id: block.non_empty("id"),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}
