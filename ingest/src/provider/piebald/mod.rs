//! Reads the chats of Piebald from its database `app.db` (docs/formats.md#piebald).
//!
//! ```text
//! chats(id, title, model, current_directory, worktree_path, branch_name, project_id, is_deleted, ...)
//! messages(id, parent_chat_id, parent_message_id, role, model, created_at, input_tokens, ...)
//! message_parts(id, parent_chat_message_id, part_type, part_index)
//! message_part_text(message_part_id, is_thinking)   message_part_tool_call(message_part_id, ...)
//! message_content_nodes(id, parent_text_part_id, node_index)   message_node_text(node_id, content)
//!
//! {"info":{"store":"piebald","id":"piebald-12","title":"...",...},
//!  "messages":[{"id":1,"role":"assistant","parts":[{"text":"..."},{"call":"c1","name":"..."}],...}]}
//! ```
//!
//! A chat is assembled into a document.

mod database;

use std::path::PathBuf;

use schemas::{EventType, Provider, Usage};
use xxhash_rust::xxh3::xxh3_64;

use self::database::{ASSEMBLY, DATABASE, STORE};
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Platform, Quirks, RecordOutcome, RecordTally,
    SessionClaim,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::provider::shared::database::tables::claim_stored;
use crate::provider::shared::document::{self, ASSEMBLED, Document};
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Piebald,
    has_unique_ids: false,
    decoder_version: 2,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// Beginnings of the names of models whose input includes the tokens of the cache.
const OPENAI_MODELS: &[&str] = &["gpt", "codex", "o1", "o3", "o4"];

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let data = match places.platform() {
        Platform::Linux => places.data_path("piebald"),
        Platform::MacOs | Platform::Windows => places.application_path("piebald"),
    };
    vec![data.join(DATABASE)]
}

/// Claims a chat by the name of its store. A chat that a call started is a subagent's.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let info = head.stored_info(STORE)?;
    Some(claim_stored(Provider::Piebald, info["id"].as_str()?, &info["parent"]))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let session = Document::read(bytes, &ASSEMBLED, out, tally);
    let mut is_subagent = false;
    session.with_info(|info| {
        is_subagent = info.non_empty("parent").is_some();
        decode_header(info, out);
    });
    let mut decoder = PiebaldDecoder { is_subagent, inner: Parser::default() };
    let records = &session.records;
    document::for_each_record(bytes, records, out, tally, &mut |message, _, at, out| {
        decoder.decode_message(message, at, out)
    });
}

fn decode_header(info: Value<'_>, out: &mut Stream) {
    for time in ["created_at", "updated_at"] {
        out.extend_time_range(info.text(time).and_then(chat::parse_unzoned));
    }
    let folders = ["worktree_path", "current_directory", "directory"];
    out.set_cwd(folders.iter().find_map(|key| info.non_empty(key)));
    out.set_branch(info.text("branch_name"));
    out.set_model(info.text("model"));
    out.offer_title(TitleFrom::Agent, info.text("title").unwrap_or(""));
}

struct PiebaldDecoder {
    is_subagent: bool,
    inner: Parser,
}

impl PiebaldDecoder {
    fn decode_message(
        &mut self,
        message: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        // Ids are numbers that begin at 1 on every machine.
        let number = message.int("id").unwrap_or_default();
        let created = message.text("created_at").unwrap_or("");
        out.begin_message(Some(&format!("{number}")));
        let identity = xxh3_64(format!("{number} {created}").as_bytes()) | 1;
        out.begin_record(at, Some(identity), chat::parse_unzoned(created));
        if self.is_subagent {
            out.set_sidechain(None);
        }
        let entry = |number: i64| xxh3_64(&number.to_le_bytes()) | 1;
        out.add_tree_entry(entry(number), message.int("parent_message_id").map_or(0, entry));
        if message.text("type") == Some(OVERSIZED_RECORD) {
            push_oversized("message", message.int("bytes").unwrap_or(0), at, out);
            return RecordOutcome::Events;
        }

        let parts = message.items("parts");
        match message.text("role").map(str::to_ascii_lowercase).as_deref() {
            Some("user") => {
                let mut text = String::new();
                for part in parts {
                    count_unknown_part(part, out);
                    render::append_line(part.text("text").unwrap_or(""), &mut text);
                }
                let text = text.trim_end();
                if self.is_subagent {
                    out.push_text(EventType::User, text);
                } else if !text.is_empty() {
                    out.push_prompt(text);
                }
            }
            Some("assistant") => self.decode_response(message, &parts, out),
            role => {
                let role = role.unwrap_or("untyped");
                if role != "system" {
                    out.count_unknown("record", role);
                }
                let mut text = String::new();
                render::append_notification(message, &["id", "role", "created_at"], &mut text);
                out.push_notification(role, &text);
            }
        }
        if let Some(error) = message.non_empty("error") {
            out.push_notice("error", error, Some(true));
        }
        RecordOutcome::Events
    }

    /// Decodes a response: its parts, then the results of its calls.
    fn decode_response(&mut self, message: Value<'_>, parts: &[Value<'_>], out: &mut Stream) {
        out.set_model(message.text("model"));
        out.begin_step();
        for part in parts {
            if let Some(text) = part.non_empty("text") {
                let is_thinking = part.int("is_thinking") == Some(1);
                let kind = if is_thinking { EventType::Reasoning } else { EventType::Message };
                out.push_text(kind, text);
            } else if part.non_empty("tool_name").is_some() {
                let mut input = Arguments::default();
                input.read_json_text(part.text("tool_input").unwrap_or(""), &mut self.inner);
                input.push_call(part.text("tool_name"), part.non_empty("call"), out);
            } else {
                count_unknown_part(*part, out);
            }
        }
        out.push_usage(read_usage(message), None, None);
        for part in parts.iter().filter(|part| part.non_empty("tool_name").is_some()) {
            let error = part.non_empty("tool_error");
            let state = part.text("tool_state").unwrap_or("");
            let Some(text) = part.text("tool_result").or(error) else { continue };
            let decoded = DecodedEvent {
                text,
                tool_call_id: part.non_empty("call"),
                is_error: Some(error.is_some() || matches!(state, "error" | "failed")),
                spawned_agent_id: part.non_empty("subagent"),
                ..DecodedEvent::default()
            };
            out.push(EventType::ToolResult, decoded);
        }
    }
}

/// Counts a part whose content is in none of the tables that are read.
fn count_unknown_part(part: Value<'_>, out: &mut Stream) {
    if let Some(kind) = part.text("part_type").filter(|_| part.text("text").is_none()) {
        out.count_unknown("block", kind);
    }
}

/// Reads the counts of a message. Those of OpenAI's models include the cache in the input; the
/// reasoning is next to the output.
fn read_usage(message: Value<'_>) -> Usage {
    let model = message.text("model").unwrap_or("");
    let name = model.rsplit('/').next().unwrap_or(model);
    let (cache_read, cache_write) =
        (message.int("cache_read_tokens"), message.int("cache_write_tokens"));
    let includes_cache = OPENAI_MODELS.iter().any(|start| name.starts_with(start));
    let cached =
        if includes_cache { cache_read.unwrap_or(0) + cache_write.unwrap_or(0) } else { 0 };
    let reasoning = message.int("reasoning_tokens");
    Usage {
        input: message.int("input_tokens").map(|input| (input - cached).max(0)),
        output: message.int("output_tokens").map(|output| output + reasoning.unwrap_or(0)),
        cache_read,
        cache_write,
        reasoning,
        ..Usage::default()
    }
}
