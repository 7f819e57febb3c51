//! Reads the session logs of both generations of Kimi (docs/formats.md#kimi):
//!
//! ```text
//! Kimi CLI   ~/.kimi/sessions/<md5 of cwd>/<id>/wire.jsonl     the events shown to the user
//!            ~/.kimi/sessions/<md5 of cwd>/<id>/context.jsonl  the messages sent to the model
//! Kimi Code  ~/.kimi-code/sessions/<cwd>/<id>/agents/<main or agent-N>/wire.jsonl
//! ```
//!
//! Each of the three files has its own form of records (`wire.rs`, `context.rs`, `code.rs`), and
//! the form of a record shows which of the three it is. Both files of Kimi CLI describe the same
//! session. Only `wire.jsonl` has times and tokens, so `context.jsonl` is a log only if
//! `wire.jsonl` is missing.

mod code;
mod context;
mod decoder;
pub(super) mod sidecar;
mod wire;

use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::event::Relation;
use serde::Deserialize as _;
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::decoder::{KimiDecoder, KimiState};
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim,
    state_json,
};
use crate::provider::shared::chat;
use crate::source::container::has_log;
use crate::stream::{RecordAt, Stream};
use crate::text::json::{JsonFields, Value};

/// A record is identified by its bytes, because it holds the time at which it was written, to the
/// millisecond or better. Copies keep that time.
pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Kimi,
    has_unique_ids: true,
    decoder_version: 4,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        companions: Some(|log| sidecar::state_path(log).into_iter().collect()),
        is_sidecar: Some(|name, has| name.starts_with("context") && has("wire.jsonl")),
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|_, state| {
        let state = state.and_then(|state| KimiState::deserialize(state).ok()).unwrap_or_default();
        Box::new(KimiDecoder { state, ..KimiDecoder::default() })
    }),
};

/// Record types that only Kimi Code writes.
const CODE_TYPES: &[&str] =
    &["context.append_message", "context.append_loop_event", "turn.prompt", "usage.record"];

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let old = places.env_path("KIMI_SHARE_DIR").unwrap_or_else(|| places.home_path(".kimi"));
    let new = places.env_path("KIMI_CODE_HOME").unwrap_or_else(|| places.home_path(".kimi-code"));
    vec![old.join("sessions"), new.join("sessions")]
}

/// Claims a log by the form of its records. Its session is named by its path.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let is_context = head.objects.iter().any(|object| is_context_record(object, head.file_stem()));
    if !is_context && !head.objects.iter().any(is_wire_record) {
        return None;
    }
    if is_context && has_log(&head.path.with_file_name("wire.jsonl")) {
        return None;
    }

    let (session, agent) = ids_in_path(head);
    let forked_from =
        if agent.is_none() { sidecar::read_facts(head.path).forked_from } else { None };
    let parents = [
        (Relation::SubagentOf, agent.map(|_| session)),
        (Relation::ForkedFrom, forked_from.as_deref()),
    ];
    let id = agent.map_or_else(|| session.to_owned(), |agent| format!("{session}-{agent}"));
    Some(SessionClaim {
        agent_id: agent.map(str::to_owned),
        first_record: first_record_identity(head),
        ..SessionClaim::new(Provider::Kimi, id).with_parent(&parents)
    })
}

/// Returns the ids of the session and of the subagent in the path of a log. If the names of the
/// folders do not fit, the file was moved, and its own name is the id of the session.
fn ids_in_path<'h>(head: &'h LogHead<'_>) -> (&'h str, Option<&'h str>) {
    let stem = head.file_stem();
    let folder = head.path.parent();
    let above = folder.and_then(Path::parent);
    let around = above.and_then(Path::parent);
    let (session, agent) = match (stem, folder_name(above)) {
        ("wire", Some("agents")) => {
            (folder_name(around), folder_name(folder).filter(|agent| *agent != "main"))
        }
        ("wire" | "context", Some("subagents")) => (folder_name(around), folder_name(folder)),
        ("wire" | "context", _) => (folder_name(folder), None),
        (stem, _) => match stem.strip_prefix("context_") {
            Some(rest) if rest.starts_with("sub") => (folder_name(folder), Some(rest)),
            Some(_) => (folder_name(folder), None),
            None => (Some(stem), None),
        },
    };
    (session.unwrap_or(stem), agent)
}

fn folder_name(place: Option<&Path>) -> Option<&str> {
    place?.file_name()?.to_str()
}

/// Returns whether a record has the form of those in `wire.jsonl`, of either generation.
fn is_wire_record(object: &Json) -> bool {
    let is_cli_event = object["timestamp"].is_number()
        && object["message"]["type"].is_string()
        && object["message"]["payload"].is_object();
    let is_header = object["type"] == "metadata" && object["protocol_version"].is_string();
    let is_code_record = object["type"].as_str().is_some_and(|kind| CODE_TYPES.contains(&kind))
        && object["time"].is_number();
    is_cli_event || is_header || is_code_record
}

/// Returns whether a record has the form of those in `context.jsonl`. `stem` is the name of its
/// file.
fn is_context_record(object: &Json, stem: &str) -> bool {
    match object["role"].as_str() {
        Some("_checkpoint") => object["id"].is_number(),
        Some("_usage") => object["token_count"].is_number(),
        Some("_system_prompt") => object["content"].is_string(),
        Some(_) => stem.starts_with("context") && object.get("content").is_some(),
        None => false,
    }
}

/// Returns the identity of the log's beginning: the header together with the record after it, if
/// that record has a time. Copied sessions keep both.
fn first_record_identity(head: &LogHead<'_>) -> Option<u64> {
    let [first, second, ..] = head.objects.as_slice() else { return None };
    let has_time = second["time"].is_number() || second["timestamp"].is_number();
    has_time.then(|| xxh3_64(format!("{first}{second}").as_bytes()) | 1)
}

impl LineDecoder for KimiDecoder {
    fn prepare(&mut self, log: &Path) -> bool {
        self.facts = sidecar::read_facts(log);
        let now = self.facts.fingerprint();
        !self.state.has_begun || now.is_none() || now == self.state.facts
    }

    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        self.text.clear();
        let time = ["time", "timestamp", "created_at"]
            .iter()
            .find_map(|key| chat::parse_time(object.field(key)?));
        match time {
            Some(_) => out.begin_record(at, Some(xxh3_64(raw) | 1), time),
            None => out.begin_record_by_content(at, raw, None),
        }
        self.apply_facts_once(out);

        if let Some(message) = object.object("message")
            && message.field("payload").is_some()
        {
            return wire::decode_event(self, message, "", out);
        }
        if object.field("role").is_some() {
            return context::decode_record(self, object, out);
        }
        code::decode_record(self, object, out)
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}
