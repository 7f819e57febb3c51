//! GitHub Copilot CLI: `~/.copilot/session-state/<uuid>/events.jsonl`, in older versions
//! `<uuid>.jsonl` (docs/formats.md#github-copilot-cli). Every line is
//! `{type, data, id, timestamp, parentId}`.
//!
//! A call is in the message that asks for it and in the start of its execution; whichever comes
//! first becomes the event. Hooks repeat prompts, calls and results, so only their answers count.

mod notice;
mod tool;
mod usage;
mod user;

use std::collections::VecDeque;
use std::path::PathBuf;

use schemas::event::Relation;
use schemas::{Confidence, EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::usage::Counted;
use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Places, Quirks, Reader};
use crate::provider::shared::identity::{begin, is_uuid, uuid_identity};
use crate::stream::{Draft, RecordAt, Stream, micros};
use crate::text::json::{Fields, Parser, Value};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::Copilot,
    unique_ids: true,
    roots,
    sniff,
    quirks: Quirks::NONE,
    reader: Reader::Lines(|_, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        Box::new(Decoder { state, text: String::new(), inner: Parser::default() })
    }),
};

/// Beginnings of the types of Copilot's records.
const FAMILIES: &[&str] = &[
    "session.",
    "user.message",
    "assistant.",
    "tool.",
    "hook.",
    "system.",
    "subagent.",
    "permission.",
    "skill.",
    "abort",
];

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let home = places.set("COPILOT_HOME").unwrap_or_else(|| places.home(".copilot"));
    vec![home.join("session-state")]
}

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let ours = |object: &&Json| {
        let kind = object["type"].as_str().unwrap_or("");
        object["data"].is_object()
            && object["id"].is_string()
            && object.get("parentId").is_some()
            && FAMILIES.iter().any(|family| kind.starts_with(family))
    };
    let first = head.objects.iter().find(ours)?;
    let start = head.objects.iter().find(|object| object["type"] == "session.start");
    let field = |key: &str| {
        let field = start.and_then(|start| start["data"][key].as_str());
        field.filter(|field| !field.is_empty()).map(str::to_owned)
    };
    // The folder is named after the session. The log inside it has the same name in every folder.
    let folder = head.path.parent().and_then(|dir| dir.file_name()).and_then(|name| name.to_str());
    let named = folder.filter(|_| head.stem() == "events");
    let native_id = named
        .filter(|name| is_uuid(name))
        .map(str::to_owned)
        .or_else(|| field("sessionId"))
        .unwrap_or_else(|| named.unwrap_or(head.stem()).to_owned());
    let parent = field("detachedFromSpawningParentSessionId");
    Some(Claim {
        provider: Provider::Copilot,
        native_id,
        agent_id: None,
        relation: parent.as_ref().map(|_| Relation::ContinuedFrom),
        parent,
        first_record: uuid_identity(first["id"].as_str()),
    })
}

/// Maximum number of API calls that are remembered. The pieces of one call are close together.
const RESPONSES: usize = 16;

/// Maximum number of tool calls that are remembered, from the message that asks for a call to its
/// start.
const CALLS: usize = 256;

/// One API call. Its reply may be split over several records.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Response {
    id: String,
    step: i32,
    /// Output tokens counted so far.
    output: Option<i64>,
}

/// Reasoning in a record of its own, which comes before the message it led to.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Reasoned {
    hash: u64,
    step: i32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    responses: VecDeque<Response>,
    reasoned: Option<Reasoned>,
    /// Hashes of the ids of calls.
    calls: VecDeque<u64>,
    /// Hash of the last system prompt, which is repeated before every prompt.
    system: u64,
    counted: Counted,
}

struct Decoder {
    state: State,
    text: String,
    /// Parser for JSON inside strings.
    inner: Parser,
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let id = object.text("id");
        begin((id, uuid_identity(id)), raw, at, micros(object.text("timestamp")), out);
        let outcome = self.decode(object, out);
        out.set_open(self.state.counted.is_open());
        outcome
    }

    fn save(&self) -> Json {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}

impl Decoder {
    fn decode(&mut self, object: Value<'_>, out: &mut Stream) -> Outcome {
        let kind = object.text("type").unwrap_or("untyped");
        let data = object.object("data").unwrap_or(object);
        // The work of a subagent is in the same log.
        let sidechain = object.non_empty("agentId").or_else(|| data.non_empty("parentToolCallId"));
        if sidechain.is_some() {
            out.set_sidechain(sidechain);
        } else if kind.starts_with("tool.") {
            out.set_model(data.text("model"));
        }
        match kind {
            "user.message" => {
                self.state.reasoned = None;
                user::prompt(data, sidechain.is_some(), &mut self.text, out);
            }
            "assistant.message" => return self.message(data, sidechain.is_some(), out),
            "assistant.reasoning" => self.reasoning(data, out),
            "tool.execution_start" => return self.start(data, out),
            "tool.execution_complete" => tool::result(data, &mut self.text, out),
            "tool.user_requested" => user::command(data, &mut self.text, out),
            "system.message" => return self.system(kind, data, out),
            "hook.end" => return self.hook(kind, data, out),
            "hook.start" => return Outcome::Merged("hook_input"),
            "permission.requested" => return Outcome::Merged("twin_of_tool_call"),
            "assistant.turn_start" | "assistant.turn_end" => return Outcome::Merged("turn_marker"),
            "session.start" | "session.resume" => {
                if self.state.counted.begin_run() {
                    out.set_confidence(Confidence::Partial);
                }
                notice::notice(kind, data, &mut self.text, out);
            }
            "session.shutdown" => self.shut_down(kind, data, out),
            "session.compaction_complete" => self.compaction(kind, data, out),
            _ => {
                if !notice::is_known(kind) {
                    out.drift("record", kind);
                }
                notice::notice(kind, data, &mut self.text, out);
            }
        }
        Outcome::Events
    }
}

impl Decoder {
    fn reasoning(&mut self, data: Value<'_>, out: &mut Stream) {
        let text = data.text("content").unwrap_or("");
        let step = self.state.reasoned.map_or_else(|| out.begin_step(), |reasoned| reasoned.step);
        self.state.reasoned = Some(Reasoned { hash: xxh3_64(text.as_bytes()), step });
        out.push_in(EventType::Reasoning, step, Draft { text, ..Draft::default() });
    }

    fn message(&mut self, data: Value<'_>, sidechain: bool, out: &mut Stream) -> Outcome {
        let main_model = out.session.model.clone();
        out.set_model(data.text("model"));
        let reasoned = self.state.reasoned.take();
        let api_call = data.non_empty("apiCallId");
        let known = self.state.responses.iter().find(|known| Some(known.id.as_str()) == api_call);
        let counted = known.and_then(|known| known.output);
        let step = known.map(|known| known.step).or(reasoned.map(|reasoned| reasoned.step));
        let step = step.unwrap_or_else(|| out.begin_step());
        thoughts(data, reasoned, step, out);
        self.text.clear();
        tool::shown(data.field("content"), &mut self.text);
        let requests = data.items("toolRequests");
        if !self.text.is_empty() || (requests.is_empty() && out.pushed() == 0) {
            let draft = Draft { text: &self.text, ..Draft::default() };
            out.push_in(EventType::Message, step, draft);
        }
        for request in requests {
            if self.is_new(request.non_empty("toolCallId")) {
                let name = request.text("name");
                tool::call(request, name, Some(step), &mut self.inner, out);
            }
        }
        let output = data.int("outputTokens");
        if let Some(output) = output.filter(|output| counted.is_none_or(|before| *output > before))
        {
            let news = output.saturating_sub(counted.unwrap_or(0));
            let usage = Usage { output: Some(news), ..Usage::default() };
            self.count(usage, None, api_call, step, out);
        }
        if let Some(id) = api_call {
            self.remember(Response { id: id.to_owned(), step, output: output.max(counted) });
        }
        if sidechain {
            out.session.model = main_model;
        }
        if out.pushed() > 0 { Outcome::Events } else { Outcome::Merged("twin_of_tool_call") }
    }

    /// Pushes the usage of a request and remembers it as counted.
    fn count(
        &mut self,
        usage: Usage,
        subtype: Option<&str>,
        request_id: Option<&str>,
        step: i32,
        out: &mut Stream,
    ) {
        self.state.counted.give(out.session.model.as_deref().unwrap_or(""), usage);
        let draft = Draft { subtype, usage, request_id, ..Draft::default() };
        out.push_in(EventType::TokenUsage, step, draft);
    }

    fn remember(&mut self, response: Response) {
        self.state.responses.retain(|known| known.id != response.id);
        if self.state.responses.len() == RESPONSES {
            self.state.responses.pop_front();
        }
        self.state.responses.push_back(response);
    }

    /// Returns whether a call was not seen before, and remembers it.
    fn is_new(&mut self, id: Option<&str>) -> bool {
        let Some(id) = id else { return true };
        let hash = xxh3_64(id.as_bytes());
        if self.state.calls.contains(&hash) {
            return false;
        }
        if self.state.calls.len() == CALLS {
            self.state.calls.pop_front();
        }
        self.state.calls.push_back(hash);
        true
    }

    fn start(&mut self, data: Value<'_>, out: &mut Stream) -> Outcome {
        if !self.is_new(data.non_empty("toolCallId")) {
            return Outcome::Merged("twin_of_tool_call");
        }
        tool::call(data, data.text("toolName"), None, &mut self.inner, out);
        Outcome::Events
    }

    fn system(&mut self, kind: &str, data: Value<'_>, out: &mut Stream) -> Outcome {
        self.text.clear();
        tool::shown(data.field("content"), &mut self.text);
        let hash = xxh3_64(self.text.as_bytes());
        if std::mem::replace(&mut self.state.system, hash) == hash {
            return Outcome::Merged("repeated_system_prompt");
        }
        render::cut(&mut self.text);
        let draft = Draft { subtype: Some(kind), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
        Outcome::Events
    }

    /// Decodes the end of a hook. An end without fields to report and without a failure is merged.
    fn hook(&mut self, kind: &str, data: Value<'_>, out: &mut Stream) -> Outcome {
        self.text.clear();
        render::fields(data, &["hookInvocationId", "hookType", "success"], &mut self.text);
        if self.text.is_empty() && data.flag("success") != Some(false) {
            return Outcome::Merged("silent_hook");
        }
        notice::notice(kind, data, &mut self.text, out);
        Outcome::Events
    }

    fn shut_down(&mut self, kind: &str, data: Value<'_>, out: &mut Stream) {
        notice::notice(kind, data, &mut self.text, out);
        let model = out.session.model.clone();
        for (model, usage) in self.state.counted.shut_down(usage::sums(data)) {
            out.set_model(Some(&model));
            let draft = Draft { subtype: Some("shutdown"), usage, ..Draft::default() };
            out.push_in(EventType::TokenUsage, 0, draft);
        }
        out.session.model = model;
        out.set_model(data.text("currentModel"));
    }

    /// Pushes the summary that replaces the history, and the usage of the request that wrote it.
    fn compaction(&mut self, kind: &str, data: Value<'_>, out: &mut Stream) {
        notice::notice(kind, data, &mut self.text, out);
        let Some(used) = data.object("compactionTokensUsed") else { return };
        let usage = usage::compaction(used);
        if usage.is_unknown() {
            return;
        }
        let main_model = out.session.model.clone();
        out.set_model(used.text("model"));
        self.count(usage, Some("compaction"), data.non_empty("requestId"), 0, out);
        out.session.model = main_model;
    }
}

/// Pushes the reasoning that a message carries, unless it was in a record of its own.
fn thoughts(data: Value<'_>, reasoned: Option<Reasoned>, step: i32, out: &mut Stream) {
    let mut add = |text: &str| {
        out.push_in(EventType::Reasoning, step, Draft { text, ..Draft::default() });
    };
    if let Some(text) = data.non_empty("reasoningText") {
        if reasoned.is_none_or(|reasoned| reasoned.hash != xxh3_64(text.as_bytes())) {
            add(text);
        }
        return;
    }
    let hidden = data.non_empty("reasoningOpaque").or_else(|| data.non_empty("encryptedContent"));
    if let Some(hidden) = hidden.filter(|_| reasoned.is_none()) {
        add(&format!("[encrypted reasoning, {} bytes]", hidden.len()));
    }
}
