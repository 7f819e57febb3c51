//! Pi: `~/.pi/agent/sessions/--<cwd>--/<time>_<uuid>.jsonl` (docs/formats.md#pi). Version 1 is a
//! list of entries without ids. Since version 2 a file is a tree of `id` and `parentId`, and the
//! path to its last entry is the conversation. OpenClaw writes the same format, see `openclaw/`.

mod message;

use std::path::PathBuf;

use schemas::event::Relation;
use schemas::{EventType, Provider};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use super::openclaw::place;
use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Places, Quirks, Reader};
use crate::provider::shared::identity::is_uuid;
use crate::stream::tree::ROOT;
use crate::stream::{Draft, RecordAt, Stream, TitleFrom, micros};
use crate::text::json::{Fields, Value};
use crate::text::render;

/// Entries are identified by id and time together. The id alone, eight hex digits, is unique only
/// within its file. Forks and copies keep both, and no other entry has the same pair.
pub(super) const FORMAT: Format = Format {
    provider: Provider::Pi,
    unique_ids: true,
    roots,
    sniff,
    quirks: Quirks::NONE,
    reader: Reader::Lines(open),
};

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let agent = places.set("PI_CODING_AGENT_DIR").unwrap_or_else(|| places.home(".pi/agent"));
    vec![places.set("PI_CODING_AGENT_SESSION_DIR").unwrap_or_else(|| agent.join("sessions"))]
}

fn sniff(head: &Head<'_>) -> Option<Claim> {
    if place::is_ours(head) { None } else { claim(head, Provider::Pi) }
}

/// Returns the claim in the header of a log of this engine.
pub(super) fn claim(head: &Head<'_>, provider: Provider) -> Option<Claim> {
    let is_header = |object: &&Json| {
        object["type"] == "session"
            && object["timestamp"].is_string()
            && (object["cwd"].is_string() || object["version"].is_number())
    };
    let header = head.objects.iter().find(is_header)?;
    let native_id = header["id"].as_str().filter(|id| !id.is_empty())?;
    let first = head.objects.iter().find(|object| object["type"].is_string() && !is_header(object));
    let parent = ["parentSession", "branchedFrom"]
        .iter()
        .find_map(|key| header[*key].as_str())
        .map(id_of_file)
        .filter(|parent| !parent.is_empty() && *parent != native_id);
    // A fork begins with entries that are older than itself.
    let time = |object: &Json| micros(object["timestamp"].as_str());
    let is_new = first.is_some_and(|first| time(first) >= time(header));
    let relation = if is_new { Relation::ContinuedFrom } else { Relation::ForkedFrom };
    Some(Claim {
        provider,
        native_id: native_id.to_owned(),
        agent_id: None,
        parent: parent.map(str::to_owned),
        relation: parent.map(|_| relation),
        first_record: first.map(|first| {
            let stamp = &first["timestamp"];
            let number = || stamp.as_i64().map(|ms| ms.to_string()).unwrap_or_default();
            identity(
                first["id"].as_str(),
                first["type"].as_str(),
                &stamp.as_str().map_or_else(number, str::to_owned),
                first["message"]["toolCallId"].as_str(),
            )
        }),
    })
}

/// Returns the session id in the path of a log: `<time>_<uuid>.jsonl`, or OpenClaw's `<uuid>.jsonl`
/// and `<uuid>.checkpoint.<uuid>.jsonl`.
fn id_of_file(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let uuid = (0..name.len()).find_map(|at| name.get(at..at + 36).filter(|part| is_uuid(part)));
    uuid.unwrap_or_else(|| name.split(".jsonl").next().unwrap_or(name))
}

/// Returns the identity of an entry. Entries of version 1 have no id; their type, time and tool
/// call identify them equally well, and forks copy these too.
fn identity(id: Option<&str>, kind: Option<&str>, time: &str, call: Option<&str>) -> u64 {
    let (name, call) = match id {
        Some(id) => (id, ""),
        None => (kind.unwrap_or(""), call.unwrap_or("")),
    };
    xxh3_64(format!("{name}\n{time}\n{call}").as_bytes()) | 1
}

fn entry_identity(entry: Value<'_>) -> u64 {
    let number = || entry.int("timestamp").map(|ms| ms.to_string()).unwrap_or_default();
    let time = entry.text("timestamp").map_or_else(number, str::to_owned);
    let call = entry.object("message").and_then(|message| message.text("toolCallId"));
    identity(entry.text("id"), entry.text("type"), &time, call)
}

/// Returns the time of an entry in microseconds, or that of its message if the entry has none.
fn moment(entry: Value<'_>) -> Option<i64> {
    let inner = || entry.object("message").and_then(|message| message.int("timestamp"));
    let milliseconds = || entry.int("timestamp").or_else(inner);
    micros(entry.text("timestamp")).or_else(|| Some(milliseconds()?.saturating_mul(1000)))
}

/// Fields of an entry's envelope, which no notification repeats.
const ENVELOPE: &[&str] = &["type", "id", "parentId", "timestamp", "version"];

/// Opens a decoder. Entries are self-contained, so there is no state to resume from.
pub(super) fn open(claim: &Claim, _: Option<&Json>) -> Box<dyn LineDecoder> {
    Box::new(Decoder { is_openclaw: claim.provider == Provider::OpenClaw, text: String::new() })
}

struct Decoder {
    is_openclaw: bool,
    text: String,
}

impl LineDecoder for Decoder {
    fn record(&mut self, entry: Value<'_>, _raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let kind = entry.text("type").unwrap_or("untyped");
        out.begin_record(at, Some(entry_identity(entry)), moment(entry));
        // `null` is the place before the first entry, to which the user can go back as well.
        if kind != "session" && entry.field("parentId").is_some() {
            let place = |id: &str| xxh3_64(id.as_bytes()) | 1;
            let parent = entry.text("parentId").map_or(ROOT, place);
            out.hang(entry.text("id").map_or(ROOT, place), parent);
        }
        self.text.clear();
        match (kind, entry.object("message")) {
            ("message", Some(message)) => {
                message::message(message, self.is_openclaw, &mut self.text, out);
            }
            _ => self.side_entry(kind, entry, out),
        }
        Outcome::Events
    }

    fn save(&self) -> Json {
        Json::Null
    }
}

impl Decoder {
    /// Decodes entries that are not part of the conversation, known or unknown.
    fn side_entry(&mut self, kind: &str, entry: Value<'_>, out: &mut Stream) {
        let text = &mut self.text;
        let mut subtype = kind;
        match kind {
            "session" => {
                out.set_cwd(entry.text("cwd"));
                out.set_model(entry.text("modelId"));
                render::fields(entry, ENVELOPE, text);
            }
            "model_change" => {
                let names = [entry.non_empty("provider"), entry.non_empty("modelId")];
                text.push_str(&names.into_iter().flatten().collect::<Vec<_>>().join("/"));
                out.set_model(entry.text("modelId"));
            }
            "thinking_level_change" => text.push_str(entry.text("thinkingLevel").unwrap_or("")),
            "session_info" => {
                let name = entry.text("name").unwrap_or("");
                out.title(TitleFrom::Person, name);
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
                    render::fields(data, &["timestamp"], text);
                }
            }
            "custom_message" => {
                subtype = entry.non_empty("customType").unwrap_or(kind);
                message::content(entry, text);
            }
            "label" => render::fields(entry, ENVELOPE, text),
            _ => {
                out.drift("record", kind);
                render::fields(entry, ENVELOPE, text);
            }
        }
        render::cut(text);
        let is_error = subtype.ends_with("-error").then_some(true);
        let draft = Draft { subtype: Some(subtype), text, is_error, ..Draft::default() };
        out.push(EventType::Notification, draft);
        // A model writes summaries too, which costs tokens.
        message::token_usage(entry, None, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_sessions() {
        let uuid = "7d1c52f0-93ab-4c06-8b5e-20f4a1d9e637";
        let pi = format!("/home/m/.pi/agent/sessions/--x--/2026-10-19T08-12-44-120Z_{uuid}.jsonl");
        assert_eq!(id_of_file(&pi), uuid);
        let checkpoint = "d2b7a9c4-0f13-4e58-9a66-b81e5c37f042";
        assert_eq!(id_of_file(&format!("C:\\s\\{uuid}.checkpoint.{checkpoint}.jsonl")), uuid);
        assert_eq!(id_of_file("sessions/spring.jsonl.reset.2026-10-19"), "spring");
        assert_eq!(id_of_file("/ä/ü.jsonl"), "ü");
    }

    #[test]
    fn entries_are_known_by_id_and_time() {
        let time = "2026-10-19T08:12:44.120Z";
        let of = |id, kind, time, call| identity(id, Some(kind), time, call);
        assert_eq!(of(Some("a1"), "message", time, None), of(Some("a1"), "x", time, Some("c")));
        assert_ne!(of(Some("a1"), "message", time, None), of(Some("a1"), "message", "t", None));
        assert_ne!(of(None, "message", time, Some("c1")), of(None, "message", time, Some("c2")));
    }
}
