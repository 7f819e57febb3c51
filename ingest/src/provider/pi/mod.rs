//! Reads the session logs of Pi from `~/.pi/agent/sessions/--<cwd>--/<time>_<uuid>.jsonl`
//! (docs/formats.md#pi).
//!
//! ```text
//! {"type":"session","version":3,"id":"<uuid>","timestamp":"...","cwd":"..."}
//! {"type":"message","id":"...","parentId":"...","timestamp":"...","message":{"role":"user",...}}
//! ```
//!
//! Version 1 is a list of entries without ids. Since version 2 a file is a tree of `id` and
//! `parentId`, and the path to its last entry is the conversation. OpenClaw writes the same format,
//! see `openclaw/`.

pub(super) mod message;

use std::path::PathBuf;

use schemas::Provider;
use schemas::event::Relation;
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use super::openclaw::place;
use crate::provider::copied::{continued_session, copied_identity, is_head_of_copy};
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim,
    state_json,
};
use crate::provider::shared::identity::hash_id;
use crate::stream::tree::ROOT;
use crate::stream::{RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value};
use crate::text::names::is_uuid;
use crate::text::render;

/// Entries are identified by id and time together. The id alone, eight hex digits, is unique only
/// within its file. Forks and copies keep both, and no other entry has the same pair.
pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Pi,
    has_unique_ids: true,
    decoder_version: 3,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { is_named_by_start: true, ..Quirks::NONE },
    reader: LogReader::Lines(|_, _| open_decoder(false)),
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let agent =
        places.env_path("PI_CODING_AGENT_DIR").unwrap_or_else(|| places.home_path(".pi/agent"));
    vec![places.env_path("PI_CODING_AGENT_SESSION_DIR").unwrap_or_else(|| agent.join("sessions"))]
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    if place::is_openclaw_log(head) { None } else { claim_engine_log(head, Provider::Pi) }
}

/// Returns the claim in the header of a log of this engine.
pub(super) fn claim_engine_log(head: &LogHead<'_>, provider: Provider) -> Option<SessionClaim> {
    let header = head.objects.iter().find(|object| is_header(object))?;
    let native_id = header["id"].as_str().filter(|id| !id.is_empty())?;
    let first = head.objects.iter().find(|object| object["type"].is_string() && !is_header(object));
    let parent = ["parentSession", "branchedFrom"]
        .iter()
        .find_map(|key| header[*key].as_str())
        .map(parse_session_id)
        .filter(|parent| !parent.is_empty() && *parent != native_id);

    // A fork begins with entries that are older than itself.
    let start = parse_micros(header["timestamp"].as_str());
    let is_continuation =
        first.is_some_and(|first| parse_micros(first["timestamp"].as_str()) >= start);
    let relation = if is_continuation { Relation::ContinuedFrom } else { Relation::ForkedFrom };
    let claim = SessionClaim {
        first_record: first.map(first_identity),
        ..SessionClaim::new(provider, native_id).with_parent(&[(relation, parent)])
    };
    Some(claim.continuing(continued_session(std::iter::once(header))))
}

fn is_header(object: &Json) -> bool {
    object["type"] == "session"
        && object["timestamp"].is_string()
        && (object["cwd"].is_string() || object["version"].is_number())
}

/// Returns the identity of the first entry after the header; see [`entry_identity`].
fn first_identity(entry: &Json) -> u64 {
    let timestamp = &entry["timestamp"];
    let time = match timestamp.as_str() {
        Some(text) => text.to_owned(),
        None => timestamp.as_i64().map(|ms| ms.to_string()).unwrap_or_default(),
    };
    let call = entry["message"]["toolCallId"].as_str();
    hash_entry_key(entry["id"].as_str(), entry["type"].as_str(), &time, call)
}

/// Returns the session id in the path of a log: `<time>_<uuid>.jsonl`, or OpenClaw's `<uuid>.jsonl`
/// and `<uuid>.checkpoint.<uuid>.jsonl`.
fn parse_session_id(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let uuid = (0..name.len()).find_map(|at| name.get(at..at + 36).filter(|part| is_uuid(part)));
    uuid.unwrap_or_else(|| name.split(".jsonl").next().unwrap_or(name))
}

/// Returns the identity of an entry. Entries of version 1 have no id. Their type, time and tool
/// call identify them equally well, and forks copy these too.
fn hash_entry_key(id: Option<&str>, kind: Option<&str>, time: &str, call: Option<&str>) -> u64 {
    let key = match id {
        Some(id) => format!("{id}\n{time}\n"),
        None => format!("{}\n{time}\n{}", kind.unwrap_or(""), call.unwrap_or("")),
    };
    xxh3_64(key.as_bytes()) | 1
}

/// Returns the identity of an entry. Its time is text or a number of milliseconds.
fn entry_identity(entry: Value<'_>) -> u64 {
    let time = match entry.text("timestamp") {
        Some(text) => text.to_owned(),
        None => entry.int("timestamp").map(|ms| ms.to_string()).unwrap_or_default(),
    };
    let call = entry.object("message").and_then(|message| message.text("toolCallId"));
    hash_entry_key(entry.text("id"), entry.text("type"), &time, call)
}

/// Returns the time of an entry in microseconds, or that of its message if the entry has none.
fn entry_time(entry: Value<'_>) -> Option<i64> {
    if let Some(time) = parse_micros(entry.text("timestamp")) {
        return Some(time);
    }
    let milliseconds = match entry.int("timestamp") {
        Some(milliseconds) => milliseconds,
        None => entry.object("message")?.int("timestamp")?,
    };
    Some(milliseconds.saturating_mul(1000))
}

/// Fields of an entry's envelope, which no notification repeats.
const ENVELOPE: &[&str] = &["type", "id", "parentId", "timestamp", "version"];

/// Opens a decoder of a log of Pi or of OpenClaw. Entries are self-contained, so there is no state to
/// resume from.
pub(super) fn open_decoder(is_openclaw: bool) -> Box<dyn LineDecoder> {
    Box::new(PiDecoder { is_openclaw, text: String::new() })
}

/// Decoder of one log of this engine.
struct PiDecoder {
    /// True if the log is OpenClaw's, false if it is Pi's.
    is_openclaw: bool,
    /// Text of the current entry.
    text: String,
}

impl LineDecoder for PiDecoder {
    fn decode_record(
        &mut self,
        entry: Value<'_>,
        _raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let kind = entry.text("type").unwrap_or("untyped");
        begin_entry(entry, None, at, out);
        self.text.clear();
        match (kind, entry.object("message")) {
            ("message", Some(message)) => {
                message::decode_message(message, self.is_openclaw, &mut self.text, out);
            }
            _ => decode_side_entry(kind, entry, &mut self.text, out),
        }
        RecordOutcome::Events
    }

    fn save_state(&self) -> String {
        state_json(&())
    }
}

/// Begins the record of an entry, and adds it to the tree. `time` is that of the entry if it is known
/// from elsewhere.
pub(super) fn begin_entry(entry: Value<'_>, time: Option<i64>, at: RecordAt, out: &mut Stream) {
    let (own, time) = (entry_identity(entry), time.or_else(|| entry_time(entry)));
    match copied_identity(entry.text("id")) {
        Some(original) => out.begin_copied_record(at, original, time),
        None if is_head_of_copy(entry) => out.begin_copied_record(at, own, time),
        None => out.begin_record(at, Some(own), time),
    }
    // `null` is the position before the first entry. The user can go back there as well.
    if entry.text("type") != Some("session") && entry.field("parentId").is_some() {
        let parent = entry.text("parentId").map_or(ROOT, hash_id);
        out.add_tree_entry(entry.text("id").map_or(ROOT, hash_id), parent);
    }
}

/// Decodes entries that are not part of the conversation, known or unknown.
pub(super) fn decode_side_entry(kind: &str, entry: Value<'_>, text: &mut String, out: &mut Stream) {
    let mut subtype = kind;
    match kind {
        "session" => {
            out.set_cwd(entry.text("cwd"));
            out.set_model(entry.text("modelId"));
            render::append_notification(entry, ENVELOPE, text);
        }
        "model_change" => {
            let names = [entry.non_empty("provider"), entry.non_empty("modelId")];
            text.push_str(&names.into_iter().flatten().collect::<Vec<_>>().join("/"));
            out.set_model(entry.text("modelId"));
        }
        "thinking_level_change" => text.push_str(entry.text("thinkingLevel").unwrap_or("")),
        "session_info" => {
            let name = entry.text("name").unwrap_or("");
            out.offer_title(TitleFrom::User, name);
            text.push_str(name);
        }
        "compaction" | "branch_summary" => {
            text.push_str(entry.text("summary").unwrap_or(""));
            if let Some(tokens) = entry.int("tokensBefore") {
                text.push_str(&format!("\ntokensBefore: {tokens}"));
            }
        }
        "custom" => {
            subtype = entry.non_empty("customType").unwrap_or(kind);
            if let Some(data) = entry.object("data") {
                if subtype == "model-snapshot" {
                    out.set_model(data.text("modelId"));
                }
                render::append_notification(data, &["timestamp"], text);
            }
        }
        "custom_message" => {
            subtype = entry.non_empty("customType").unwrap_or(kind);
            message::append_content(entry, text);
        }
        "label" => render::append_notification(entry, ENVELOPE, text),
        _ => {
            out.count_unknown("record", kind);
            render::append_notification(entry, ENVELOPE, text);
        }
    }

    render::truncate_notification(text);
    let is_error = subtype.ends_with("-error").then_some(true);
    out.push_notice(subtype, text, is_error);
    // A summary may be written by a model, which costs tokens.
    message::push_usage(entry, None, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_sessions() {
        let uuid = "7d1c52f0-93ab-4c06-8b5e-20f4a1d9e637";
        let pi = format!("/home/m/.pi/agent/sessions/--x--/2026-10-19T08-12-44-120Z_{uuid}.jsonl");
        assert_eq!(parse_session_id(&pi), uuid);
        let checkpoint = "d2b7a9c4-0f13-4e58-9a66-b81e5c37f042";
        assert_eq!(parse_session_id(&format!("C:\\s\\{uuid}.checkpoint.{checkpoint}.jsonl")), uuid);
        assert_eq!(parse_session_id("sessions/spring.jsonl.reset.2026-10-19"), "spring");
        assert_eq!(parse_session_id("/ä/ü.jsonl"), "ü");
    }

    #[test]
    fn entries_are_known_by_id_and_time() {
        let time = "2026-10-19T08:12:44.120Z";
        let of = |id, kind, time, call| hash_entry_key(id, Some(kind), time, call);
        assert_eq!(of(Some("a1"), "message", time, None), of(Some("a1"), "x", time, Some("c")));
        assert_ne!(of(Some("a1"), "message", time, None), of(Some("a1"), "message", "t", None));
        assert_ne!(of(None, "message", time, Some("c1")), of(None, "message", time, Some("c2")));
    }
}
