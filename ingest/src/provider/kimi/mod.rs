//! Kimi (docs/formats.md#kimi), in its two generations:
//!
//! * Kimi CLI, `~/.kimi/sessions/<md5 of cwd>/<id>/`: `wire.jsonl` holds the events shown to the
//!   user, with times and tokens (`wire.rs`); `context.jsonl` holds the messages sent to the model
//!   (`context.rs`). Both describe the same session, so the second is a log only if the first is
//!   missing;
//! * Kimi Code, `~/.kimi-code/sessions/<cwd>/<id>/agents/<main or agent-N>/wire.jsonl`
//!   (`code.rs`).
//!
//! The shape of a record shows which of the three it is.

pub(super) mod beside;
mod code;
mod context;
mod decoder;
mod wire;

use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::event::Relation;
use serde::Deserialize as _;
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::decoder::{Decoder, State};
use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Places, Quirks, Reader};
use crate::provider::shared::chat;
use crate::source::container::is_there;
use crate::stream::{RecordAt, Stream};
use crate::text::json::{Fields, Value};

/// Records carry the time they were written at, to the millisecond or better, and copies keep it.
/// The bytes of a record therefore identify it as well as an id would.
pub(super) const FORMAT: Format = Format {
    provider: Provider::Kimi,
    unique_ids: true,
    roots,
    sniff,
    quirks: Quirks {
        companion: Some(beside::state),
        is_beside_log: Some(|name, has| name.starts_with("context") && has("wire.jsonl")),
        ..Quirks::NONE
    },
    reader: Reader::Lines(|_, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        Box::new(Decoder { state, ..Decoder::default() })
    }),
};

/// Record types that only Kimi Code writes.
const CODE_TYPES: &[&str] =
    &["context.append_message", "context.append_loop_event", "turn.prompt", "usage.record"];

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let old = places.set("KIMI_SHARE_DIR").unwrap_or_else(|| places.home(".kimi"));
    let new = places.set("KIMI_CODE_HOME").unwrap_or_else(|| places.home(".kimi-code"));
    vec![old.join("sessions"), new.join("sessions")]
}

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let is_context = head.objects.iter().any(|object| is_context(object, head.stem()));
    if !is_context && !head.objects.iter().any(is_wire) {
        return None;
    }
    if is_context && is_there(&head.path.with_file_name("wire.jsonl")) {
        return None;
    }
    let folder = head.path.parent();
    let above = folder.and_then(Path::parent);
    let stem = head.stem();
    // If the folder names do not fit, the file was moved, and only its own name is known.
    let (session, agent) = match (stem, name(above)) {
        ("wire", Some("agents")) => {
            let session = name(above.and_then(Path::parent));
            (session, name(folder).filter(|agent| *agent != "main"))
        }
        ("wire" | "context", Some("subagents")) => {
            (name(above.and_then(Path::parent)), name(folder))
        }
        ("wire" | "context", _) => (name(folder), None),
        (stem, _) => match stem.strip_prefix("context_") {
            Some(rest) if rest.starts_with("sub") => (name(folder), Some(rest)),
            Some(_) => (name(folder), None),
            None => (Some(stem), None),
        },
    };
    let session = session.unwrap_or(stem);
    let forked_from = beside::of(head.path).forked_from.filter(|_| agent.is_none());
    let relation = match (agent, &forked_from) {
        (Some(_), _) => Some(Relation::SubagentOf),
        (None, Some(_)) => Some(Relation::ForkedFrom),
        (None, None) => None,
    };
    Some(Claim {
        provider: Provider::Kimi,
        native_id: agent.map_or_else(|| session.to_owned(), |agent| format!("{session}-{agent}")),
        agent_id: agent.map(str::to_owned),
        parent: agent.map(|_| session.to_owned()).or(forked_from),
        relation,
        first_record: first_record(head),
    })
}

fn name(place: Option<&Path>) -> Option<&str> {
    place?.file_name()?.to_str()
}

fn is_wire(object: &Json) -> bool {
    let old = object["timestamp"].is_number()
        && object["message"]["type"].is_string()
        && object["message"]["payload"].is_object();
    let header = object["type"] == "metadata" && object["protocol_version"].is_string();
    let new = object["type"].as_str().is_some_and(|kind| CODE_TYPES.contains(&kind));
    old || header || (new && object["time"].is_number())
}

fn is_context(object: &Json, stem: &str) -> bool {
    match object["role"].as_str() {
        Some("_checkpoint") => object["id"].is_number(),
        Some("_usage") => object["token_count"].is_number(),
        Some("_system_prompt") => object["content"].is_string(),
        Some(_) => stem.starts_with("context") && object.get("content").is_some(),
        None => false,
    }
}

/// Returns the identity of the log's beginning: the header with the record after it, if that has a
/// time. Copied sessions keep both.
fn first_record(head: &Head<'_>) -> Option<u64> {
    let mut beginning = head.objects.iter().take(2);
    let timed = |object: &Json| object["time"].is_number() || object["timestamp"].is_number();
    let (first, second) = (beginning.next()?, beginning.next()?);
    timed(second).then(|| xxh3_64(format!("{first}{second}").as_bytes()) | 1)
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        self.text.clear();
        let message = object.object("message");
        let time = ["time", "timestamp", "created_at"]
            .iter()
            .find_map(|key| chat::instant(object.field(key)?));
        match time {
            Some(_) => out.begin_record(at, Some(xxh3_64(raw) | 1), time),
            None => out.begin_unnamed(at, raw, None),
        }
        self.look(out);
        match message.filter(|message| message.field("payload").is_some()) {
            Some(message) => wire::record(self, message, "", out),
            None if object.field("role").is_some() => context::record(self, object, out),
            None => code::record(self, object, out),
        }
    }

    fn end(&mut self, _: RecordAt, out: &mut Stream) {
        if out.session.events > 0 {
            self.look(out);
        }
    }

    fn save(&self) -> Json {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}
