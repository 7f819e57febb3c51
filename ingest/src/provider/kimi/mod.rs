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
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use schemas::event::Relation;
use schemas::{EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use super::{Claim, Format, Head, LineDecoder, Outcome, Places, Reader, chat};
use crate::container::is_there;
use crate::json::{Fields, Parser, Value};
use crate::provider::agents::AgentLogs;
use crate::render;
use crate::stream::{Draft, RecordAt, Stream};

/// Records carry the time they were written at, to the millisecond or better, and copies keep it.
/// The bytes of a record therefore identify it as well as an id would.
pub(super) const FORMAT: Format = Format {
    provider: Provider::Kimi,
    unique_ids: true,
    roots,
    sniff,
    companion: Some(beside::state),
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

/// Most prompts remembered until the record that repeats them.
const PROMPTS: usize = 16;

/// The decoder state that is kept between the records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Model responses under way. The key is "" for the main agent. For a subagent inside the
    /// log it is the subagent's id or the call that started it.
    steps: BTreeMap<String, i32>,
    /// Hashes of prompts whose message is still to come.
    prompts: VecDeque<u64>,
    /// The last response of each agent: its id and its tokens.
    ended: BTreeMap<String, (String, Usage)>,
    /// Count of prompts in effect. Undoing one makes the records that follow it a branch.
    depth: u64,
}

/// The decoder shared by the three dialects.
#[derive(Default)]
struct Decoder {
    state: State,
    text: String,
    /// Decodes JSON inside strings.
    inner: Parser,
    /// True if the files next to the log were read.
    looked: bool,
    agents: AgentLogs,
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

impl Decoder {
    /// Passes the content of the files next to the log to the stream, once per reading.
    fn look(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.looked, true) {
            beside::of(Path::new(&out.session.source_path)).tell(out);
        }
    }

    /// Returns the step of an agent's response; begins one if none is under way.
    fn step(&mut self, agent: &str, out: &mut Stream) -> i32 {
        if let Some(step) = self.state.steps.get(agent) {
            return *step;
        }
        let step = out.begin_step();
        self.state.steps.insert(agent.to_owned(), step);
        step
    }

    /// Returns the step of an agent's last response, or 0 if there is none.
    fn last_step(&self, agent: &str) -> i32 {
        self.state.steps.get(agent).copied().unwrap_or_default()
    }

    /// Ends an agent's response, so that its next output begins another.
    fn end_step(&mut self, agent: &str) {
        self.state.steps.remove(agent);
    }

    /// Appends a prompt that the user typed.
    fn prompt(&mut self, text: &str, out: &mut Stream) {
        out.branch(self.state.depth);
        self.state.depth += 1;
        self.end_step("");
        let (context, typed) = git_context(text);
        if let Some(context) = context {
            told("git-context", context, out);
        }
        out.prompt(typed);
    }

    /// Remembers a prompt whose message is still to come.
    fn expect(&mut self, text: &str) {
        if self.state.prompts.len() == PROMPTS {
            self.state.prompts.pop_front();
        }
        self.state.prompts.push_back(xxh3_64(text.as_bytes()));
    }

    /// True if a message repeats a remembered prompt, which is then forgotten.
    fn expected(&mut self, text: &str) -> bool {
        let hash = xxh3_64(text.as_bytes());
        let found = self.state.prompts.iter().position(|known| *known == hash);
        found.and_then(|at| self.state.prompts.remove(at)).is_some()
    }

    /// Appends a record without a rule of its own as a notification with its fields as text.
    fn notify(
        &mut self,
        subtype: &str,
        record: Value<'_>,
        skip: &[&str],
        out: &mut Stream,
    ) -> Outcome {
        self.text.clear();
        render::fields(record, skip, &mut self.text);
        let failed = record.non_empty("error").is_some() || record.object("error").is_some();
        let draft = Draft {
            subtype: Some(subtype),
            text: &self.text,
            is_error: failed.then_some(true),
            duration_ms: record.int("durationMs").or_else(|| record.int("duration_ms")),
            ..Draft::default()
        };
        out.push(EventType::Notification, draft);
        Outcome::Events
    }
}

/// Splits a text into the repository state at its beginning and the words of the parent agent.
fn git_context(text: &str) -> (Option<&str>, &str) {
    let inside = text.strip_prefix("<git-context>");
    match inside.and_then(|inside| inside.split_once("</git-context>")) {
        Some((context, typed)) => (Some(context.trim()), typed.trim_start()),
        None => (None, text),
    }
}

/// Appends a notification with a text.
fn told(subtype: &str, text: &str, out: &mut Stream) -> Outcome {
    let draft = Draft { subtype: Some(subtype), text, ..Draft::default() };
    out.push(EventType::Notification, draft);
    Outcome::Events
}
