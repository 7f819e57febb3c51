//! Kimi (docs/formats.md#kimi), in its two generations:
//!
//! * Kimi CLI, `~/.kimi/sessions/<md5 of cwd>/<id>/`: `wire.jsonl` is what was shown, with times
//!   and tokens (`wire.rs`), `context.jsonl` what was sent to the model (`context.rs`).
//!   Both tell the same session, so the second is a log only where the first is missing;
//! * Kimi Code, `~/.kimi-code/sessions/<cwd>/<id>/agents/<main or agent-N>/wire.jsonl`
//!   (`code.rs`).
//!
//! Which of the three a record is, its shape tells.

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

/// Records carry the time they were written at, to the millisecond or better, and copies keep it:
/// with it their bytes are as good as an id.
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

/// Records of Kimi Code that nobody else writes.
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
    // Where the names do not fit, the file was moved, and its own name is all there is.
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

/// Identity of how the log begins: the header with the record after it, where they have times.
/// Sessions that are copied keep both.
fn first_record(head: &Head<'_>) -> Option<u64> {
    let mut beginning = head.objects.iter().take(2);
    let timed = |object: &Json| object["time"].is_number() || object["timestamp"].is_number();
    let (first, second) = (beginning.next()?, beginning.next()?);
    timed(second).then(|| xxh3_64(format!("{first}{second}").as_bytes()) | 1)
}

/// Prompts remembered until the record that repeats them.
const PROMPTS: usize = 16;

/// What must be remembered of a log between its records.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Model responses under way: that of the main agent under "", those of subagents inside the
    /// log under the call that started them.
    steps: BTreeMap<String, i32>,
    /// Hashes of prompts whose message is still to come.
    prompts: VecDeque<u64>,
    /// Each agent's last response: its id and its tokens.
    ended: BTreeMap<String, (String, Usage)>,
    /// Prompts that stand: taking one back makes what follows it a branch.
    depth: u64,
}

/// What the three dialects work with.
#[derive(Default)]
struct Decoder {
    state: State,
    text: String,
    /// Decodes JSON inside strings.
    inner: Parser,
    /// The files beside the log were looked at.
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
    /// Tells the stream what stands beside the log, once in every reading.
    fn look(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.looked, true) {
            beside::of(Path::new(&out.session.source_path)).tell(out);
        }
    }

    /// The response that an agent is giving; begins one when none is under way.
    fn step(&mut self, agent: &str, out: &mut Stream) -> i32 {
        if let Some(step) = self.state.steps.get(agent) {
            return *step;
        }
        let step = out.begin_step();
        self.state.steps.insert(agent.to_owned(), step);
        step
    }

    /// The response that an agent gave last, if any.
    fn last_step(&self, agent: &str) -> i32 {
        self.state.steps.get(agent).copied().unwrap_or_default()
    }

    /// An agent's next words are another response.
    fn end_step(&mut self, agent: &str) {
        self.state.steps.remove(agent);
    }

    /// Adds what a person typed.
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

    /// Remembers that the message of a prompt is still to come.
    fn expect(&mut self, text: &str) {
        if self.state.prompts.len() == PROMPTS {
            self.state.prompts.pop_front();
        }
        self.state.prompts.push_back(xxh3_64(text.as_bytes()));
    }

    /// Whether a message repeats a prompt.
    fn expected(&mut self, text: &str) -> bool {
        let hash = xxh3_64(text.as_bytes());
        let found = self.state.prompts.iter().position(|known| *known == hash);
        found.and_then(|at| self.state.prompts.remove(at)).is_some()
    }

    /// Adds a record without a rule of its own: a notification with its fields as text.
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

/// The state of the repository that stands before the words of an agent to another, and the words.
fn git_context(text: &str) -> (Option<&str>, &str) {
    let inside = text.strip_prefix("<git-context>");
    match inside.and_then(|inside| inside.split_once("</git-context>")) {
        Some((context, typed)) => (Some(context.trim()), typed.trim_start()),
        None => (None, text),
    }
}

/// Adds a notification with a text.
fn told(subtype: &str, text: &str, out: &mut Stream) -> Outcome {
    let draft = Draft { subtype: Some(subtype), text, ..Draft::default() };
    out.push(EventType::Notification, draft);
    Outcome::Events
}
