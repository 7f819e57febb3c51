//! Reads the session logs of Command Code from `~/.commandcode/projects/<cwd>/<session>.jsonl`
//! (docs/formats.md#command-code).
//!
//! ```text
//! {"type":"session","version":3,"id":"<uuid>","timestamp":"...","cwd":"..."}
//! {"type":"message","id":"cb06ab09","parentId":null,"timestamp":"...","message":{"role":"user",
//!  "content":[{"type":"text","text":"..."}],"meta":{"source":"user","createdAt":1788419625705}}}
//! {"id":"m1","timestamp":"...","sessionId":"...","role":"user","content":[...],
//!  "metadata":{"version":2,"cwd":"..."}}
//! ```
//!
//! Since version 3 entries are those of Pi, around messages with blocks as in the API of Anthropic.

use std::path::{Path, PathBuf};

use schemas::{Provider, Usage};
use serde_json::Value as Json;

use super::pi::{begin_entry, claim_engine_log, decode_side_entry};
use crate::provider::format::{
    LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim, state_json,
};
use crate::provider::shared::identity::{begin_uuid_record, uuid_identity};
use crate::provider::shared::{blocks, chat, drift, sidecar};
use crate::stream::{RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::CommandCode,
    has_unique_ids: true,
    decoder_version: 1,
    roots: |places| vec![places.home_path(".commandcode/projects")],
    sniff: claim_log,
    quirks: Quirks {
        companions: Some(|log| vec![description_path(log)]),
        is_sidecar: Some(|name, has| {
            let sidecars = [".checkpoints.jsonl", ".prompts.jsonl"];
            let session = sidecars.iter().find_map(|ending| name.strip_suffix(ending));
            session.is_some_and(|session| has(&format!("{session}.jsonl")))
        }),
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|_, _| Box::new(CommandCodeDecoder::default())),
};

/// Name of the folder of this agent.
const HOME: &str = ".commandcode";

/// Maximum size in bytes of the description of a session.
const MAX_DESCRIPTION_BYTES: u64 = 1 << 20;

/// Where messages of the user come from, as `meta.source` names it: typed at once, during a turn, or
/// for after it.
const TYPED: &[&str] = &["user", "steering", "followup"];

/// Marks in `meta` of text in the user's role that no user typed, each with its subtype.
const MACHINE_MARKS: &[(&str, &str)] =
    &[("isSummary", "compact_summary"), ("isMeta", "meta"), ("isAutomated", "automated")];

/// Fields of an entry around what it says.
const ENVELOPE: &[&str] = &["type", "id", "parentId", "timestamp", "sessionId"];

/// Returns the file that has the title of a session.
fn description_path(log: &Path) -> PathBuf {
    log.with_extension("meta.json")
}

/// Claims a log. Pi has the same header: the folder or the source of a message tells them apart.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let is_at_home = head.path.components().any(|part| part.as_os_str() == HOME);
    let has_source = |object: &Json| object["message"]["meta"]["source"].is_string();
    if (is_at_home || head.objects.iter().any(has_source))
        && let Some(claim) = claim_engine_log(head, Provider::CommandCode)
    {
        return Some(claim);
    }

    let is_flat = |object: &&Json| {
        matches!(object["role"].as_str(), Some("user" | "assistant" | "tool"))
            && object["sessionId"].is_string()
            && !object["content"].is_null()
            && (is_at_home || object["metadata"]["version"].is_number())
    };
    let first = head.objects.iter().find(is_flat)?;
    let session = first["sessionId"].as_str().filter(|id| !id.is_empty());
    Some(SessionClaim {
        first_record: uuid_identity(first["id"].as_str()),
        ..SessionClaim::new(Provider::CommandCode, session.unwrap_or(head.file_stem()))
    })
}

/// Decoder of one log.
#[derive(Default)]
struct CommandCodeDecoder {
    /// The title of the session, and whether the user chose it.
    title: Option<(String, bool)>,
    text: String,
}

impl LineDecoder for CommandCodeDecoder {
    fn prepare(&mut self, log: &Path) -> bool {
        let about = sidecar::read_json(&description_path(log), MAX_DESCRIPTION_BYTES);
        self.title = about.and_then(|about| {
            let title = about["title"].as_str().filter(|title| !title.is_empty())?;
            Some((title.to_owned(), about["userRenamed"] == true))
        });
        true
    }

    fn decode_record(
        &mut self,
        entry: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        self.text.clear();
        let Some(kind) = entry.text("type") else {
            let id = entry.text("id");
            let time = parse_micros(entry.text("timestamp"));
            begin_uuid_record(id, raw, at, time, out);
            let about = entry.object("metadata");
            out.set_cwd(about.and_then(|about| about.non_empty("cwd")));
            out.set_branch(entry.non_empty("gitBranch"));
            self.decode_message(entry, None, out);
            return RecordOutcome::Events.merged_if_empty(out);
        };

        let message = entry.object("message").filter(|_| kind == "message");
        let meta = message.and_then(|message| message.object("meta"));
        // The time of an entry is that at which it was written, which may be much later.
        let time = chat::read_millis(meta, "createdAt");
        begin_entry(entry, time, at, out);
        match (message, kind) {
            (Some(message), _) => {
                out.set_model(entry.non_empty("model"));
                self.decode_message(message, meta, out);
                push_usage(entry, meta, out);
            }
            (None, "effort_change") => {
                render::append_notification(entry, ENVELOPE, &mut self.text);
                out.push_notification(kind, &self.text);
            }
            (None, _) => decode_side_entry(kind, entry, &mut self.text, out),
        }
        RecordOutcome::Events.merged_if_empty(out)
    }

    fn finish_reading(&mut self, _at: RecordAt, out: &mut Stream) {
        if let Some((title, is_chosen)) = &self.title {
            let source = if *is_chosen { TitleFrom::User } else { TitleFrom::Agent };
            out.offer_title(source, title);
        }
    }

    fn save_state(&self) -> String {
        state_json(&())
    }
}

impl CommandCodeDecoder {
    fn decode_message(&mut self, message: Value<'_>, meta: Option<Value<'_>>, out: &mut Stream) {
        let content = message.field("content");
        let source = meta.and_then(|meta| meta.text("source"));
        match (message.text("role"), source) {
            (Some("assistant"), _) => {
                out.begin_step();
                blocks::push_response_content(content, out);
            }
            (Some("tool"), _) | (_, Some("tool")) => blocks::push_response_content(content, out),
            (Some("user"), source) => {
                let is_marked = |mark: &str| meta.and_then(|meta| meta.flag(mark)) == Some(true);
                let mark = MACHINE_MARKS.iter().find(|(mark, _)| is_marked(mark));
                let other = source.filter(|source| !TYPED.contains(source));
                if let Some(subtype) = mark.map(|(_, subtype)| *subtype).or(other) {
                    chat::append_field(message, "content", &mut self.text);
                    out.push_shortened(subtype, &self.text);
                } else {
                    blocks::push_user_content(content, &[], out);
                }
            }
            (role, _) => drift::push_unknown_record(role, message, ENVELOPE, out),
        }
    }
}

/// Pushes the counts of a response. The input includes what was read from and written to the cache,
/// unless that is more.
fn push_usage(entry: Value<'_>, meta: Option<Value<'_>>, out: &mut Stream) {
    let Some(counts) = entry.object("usage") else { return };
    let (read, written) = (counts.int("cacheReadTokens"), counts.int("cacheWriteTokens"));
    let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let input = counts.int("inputTokens");
    let usage = Usage {
        input: input.map(|input| if cached <= input { input - cached } else { input }),
        output: counts.int("outputTokens"),
        cache_read: read,
        cache_write: written,
        ..Usage::default()
    };
    let id = meta.and_then(|meta| meta.non_empty("messageId"));
    out.push_usage(usage, counts.cost("costUsd"), id);
}
