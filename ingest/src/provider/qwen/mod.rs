//! Qwen Code: `~/.qwen/projects/<cwd>/chats/<sessionId>.jsonl`, and the logs of subagents in
//! `<cwd>/subagents/<sessionId>/agent-<id>.jsonl` (docs/formats.md#qwen-code). The chain of records
//! is Claude's (`uuid`, `parentUuid`), their content is Gemini's (`message.parts`).

mod state;
mod system;
mod telemetry;
mod user;

use schemas::event::Relation;
use schemas::{EventType, Provider};
use serde::Deserialize as _;
use xxhash_rust::xxh3::xxh3_64;

use self::state::{ENVELOPE, State};
use self::telemetry::{METADATA, usage};
use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Quirks, Reader};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::function_response;
use crate::provider::shared::identity::{begin, is_uuid};
use crate::stream::{Draft, RecordAt, Stream, micros};
use crate::text::json::{Fields, Value, string};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::Qwen,
    unique_ids: true,
    roots: |places| {
        let set = places.set("QWEN_RUNTIME_DIR").or_else(|| places.set("QWEN_HOME"));
        vec![set.unwrap_or_else(|| places.home(".qwen")).join("projects")]
    },
    sniff,
    quirks: Quirks::NONE,
    reader: Reader::Lines(|claim, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        Box::new(Decoder { state, agent_file: claim.agent_id.is_some(), text: String::new() })
    }),
};

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let ours: Vec<_> = head.objects.iter().filter(|object| is_record(object)).collect();
    let first = ours.first()?;
    let session = first["sessionId"].as_str()?;
    let first_record =
        ours.iter().find_map(|o| identity(o["uuid"].as_str(), o["timestamp"].as_str()));
    let claim = Claim {
        provider: Provider::Qwen,
        native_id: String::new(),
        agent_id: None,
        parent: None,
        relation: None,
        first_record,
    };
    if let Some(agent) = first["agentId"].as_str().filter(|_| first["isSidechain"] == true) {
        return Some(Claim {
            native_id: format!("agent-{agent}"),
            agent_id: Some(agent.to_owned()),
            parent: Some(session.to_owned()),
            relation: Some(Relation::SubagentOf),
            ..claim
        });
    }
    // The file is named after the session.
    let stem = head.stem();
    let native_id = if is_uuid(stem) { stem } else { session };
    let found = |path: &[&str]| {
        ours.iter()
            .find_map(|object| path.iter().try_fold(*object, |value, key| value.get(key))?.as_str())
    };
    let source = found(&["forkedFrom", "sessionId"]);
    let spawner = found(&["systemPayload", "parentSessionId"]);
    let relation = match (source, spawner) {
        (Some(_), _) => Some(Relation::ForkedFrom),
        (None, Some(_)) => Some(Relation::SubagentOf),
        (None, None) => None,
    };
    let parent = source.or(spawner).map(str::to_owned);
    Some(Claim { native_id: native_id.to_owned(), parent, relation, ..claim })
}

/// True if a record is one of Qwen Code's.
fn is_record(object: &serde_json::Value) -> bool {
    let named = ["type", "uuid", "sessionId"].iter().all(|key| object[key].is_string());
    let is_system = object["type"] == "system" && object["systemPayload"].is_object();
    named && (object["message"]["parts"].is_array() || is_system)
}

/// Returns the identity of a record. The parts of one message may be in several records with the
/// same uuid. Copies keep both the uuid and the time.
fn identity(uuid: Option<&str>, timestamp: Option<&str>) -> Option<u64> {
    let mut key = uuid.filter(|uuid| is_uuid(uuid))?.to_owned();
    key.push_str(timestamp.unwrap_or(""));
    Some(xxh3_64(key.as_bytes()) | 1)
}

/// Longest time, in microseconds, between a command and the text that it sent to the model. The
/// user needs longer to type the next prompt.
const AT_ONCE: i64 = 1_000_000;

struct Decoder {
    state: State,
    /// True if the whole log is a subagent's, so that its prompts are its own.
    agent_file: bool,
    text: String,
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let time = micros(object.text("timestamp"));
        let uuid = object.non_empty("uuid");
        begin((uuid, identity(uuid, object.text("timestamp"))), raw, at, time, out);
        out.set_cwd(object.text("cwd"));
        out.set_branch(object.text("gitBranch"));
        out.set_version(object.text("version"));
        let sidechain = !self.agent_file && object.flag("isSidechain") == Some(true);
        if sidechain {
            out.set_sidechain(None);
        }
        let same = uuid.is_some() && uuid == self.state.last.as_deref();
        if !same {
            hang(object, out);
        }
        let has_parts =
            object.object("message").is_some_and(|message| !message.items("parts").is_empty());
        let outcome = match object.text("type") {
            Some("user") if has_parts => {
                self.state.in_response = false;
                self.user(object, time, !sidechain, out)
            }
            Some("assistant") if has_parts || object.object("usageMetadata").is_some() => {
                self.assistant(object, same, out)
            }
            Some("tool_result") => {
                self.state.in_response = false;
                self.results(object, out)
            }
            Some("system") => {
                system::record(object, time, !sidechain, &mut self.state, &mut self.text, out)
            }
            Some("user" | "assistant") => Outcome::Merged("empty_message"),
            kind => {
                let kind = kind.unwrap_or("untyped");
                out.drift("record", kind);
                self.text.clear();
                render::fields(object, ENVELOPE, &mut self.text);
                self.notify(kind, out);
                Outcome::Events
            }
        };
        self.state.last = uuid.map(str::to_owned);
        outcome
    }

    fn save(&self) -> serde_json::Value {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}

/// Passes the record's parent to the stream if the user may have gone back to it. Telemetry and
/// similar records are left out: they are most of a log, and the user never goes back there.
fn hang(object: Value<'_>, out: &mut Stream) {
    let system = object.text("type") == Some("system");
    if system && !matches!(object.text("subtype"), Some("rewind" | "slash_command")) {
        return;
    }
    if let Some(parent) = object.field("parentUuid") {
        out.branch(xxh3_64(string(parent).unwrap_or("").as_bytes()));
    }
}

impl Decoder {
    fn user(
        &mut self,
        object: Value<'_>,
        time: Option<i64>,
        starts_turn: bool,
        out: &mut Stream,
    ) -> Outcome {
        let command = self.state.command.take().filter(|_| object.field("subtype").is_none());
        if let Some(command) = command {
            if user::text_of(object).trim() == command.raw.trim() {
                return Outcome::Merged("slash_command_twin");
            }
            let payload = object.object("systemPayload");
            let shown = payload.and_then(|payload| payload.text("displayText"));
            let at_once = object.text("parentUuid") == Some(command.uuid.as_str())
                && time.zip(command.at).is_some_and(|(now, then)| now - then <= AT_ONCE);
            if at_once || shown.map(str::trim) == Some(command.raw.trim()) {
                user::expansion(object, out);
                return Outcome::Events;
            }
        }
        user::record(object, starts_turn, out);
        Outcome::Events
    }

    fn assistant(&mut self, object: Value<'_>, same: bool, out: &mut Stream) -> Outcome {
        out.set_model(object.text("model"));
        let parts = object.object("message").map(|m| m.items("parts")).unwrap_or_default();
        let counts = object.object("usageMetadata");
        // A subagent's log has one record for the text of a response and one for each of its calls.
        let says = parts.iter().any(|part| part.text("text").is_some());
        let goes_on = same || (self.state.in_response && !says && counts.is_none());
        if !goes_on {
            out.begin_step();
        }
        self.state.in_response = true;
        for part in parts {
            self.part(part, out);
        }
        let usage = counts.map(|counts| usage(counts, METADATA)).unwrap_or_default();
        let request = self.state.telemetry.response(usage, out);
        if usage.total() > 0 {
            let draft = Draft {
                usage,
                request_id: request.as_ref().map(|r| r.id.as_str()).filter(|id| !id.is_empty()),
                duration_ms: request.as_ref().and_then(|request| request.duration_ms),
                ..Draft::default()
            };
            out.push(EventType::TokenUsage, draft);
        }
        Outcome::Events
    }

    /// Decodes one part of a response.
    fn part(&mut self, part: Value<'_>, out: &mut Stream) {
        self.text.clear();
        if let Some(text) = part.text("text") {
            let thought = part.flag("thought") == Some(true);
            let kind = if thought { EventType::Reasoning } else { EventType::Message };
            if !text.is_empty() {
                out.push(kind, Draft { text, ..Draft::default() });
            }
        } else if let Some(call) = part.object("functionCall") {
            let mut arguments = Arguments::default();
            if let Some(args) = call.field("args") {
                arguments.read(args);
            }
            let draft = Draft {
                tool_name: call.text("name"),
                tool_call_id: call.non_empty("id"),
                ..arguments.draft()
            };
            out.push(EventType::ToolCall, draft);
        } else if part.object("inlineData").is_some() {
            render::block(part, &mut self.text);
            out.push(EventType::Message, Draft { text: &self.text, ..Draft::default() });
        } else {
            out.drift("block", "part");
            render::fields(part, &[], &mut self.text);
            self.notify("part", out);
        }
    }

    /// Decodes the results in one record. `toolCallResult` holds the outcome of the call.
    fn results(&mut self, object: Value<'_>, out: &mut Stream) -> Outcome {
        let parts = object.object("message").map(|m| m.items("parts")).unwrap_or_default();
        let responses: Vec<_> =
            parts.iter().filter_map(|part| part.object("functionResponse")).collect();
        let summary = object.object("toolCallResult");
        let named = summary.and_then(|summary| summary.non_empty("callId"));
        match responses.as_slice() {
            [] => self.result(None, named, summary, out),
            [response] => {
                let id = named.or_else(|| response.non_empty("id"));
                self.result(Some(*response), id, summary, out);
            }
            several => {
                for response in several {
                    self.result(Some(*response), response.non_empty("id"), summary, out);
                }
            }
        }
        Outcome::Events
    }

    fn result(
        &mut self,
        response: Option<Value<'_>>,
        tool_call_id: Option<&str>,
        summary: Option<Value<'_>>,
        out: &mut Stream,
    ) {
        self.text.clear();
        let failed =
            response.is_some_and(|response| function_response::read(response, &mut self.text));
        let field = |key: &str| summary.and_then(|summary| summary.non_empty(key));
        if self.text.is_empty() {
            self.text.push_str(field("resultDisplay").unwrap_or(""));
        }
        let status = field("status");
        let tool_name = response.and_then(|response| response.text("name"));
        let told = self.state.telemetry.tool(tool_name);
        let exit_code = function_response::exit_code(&self.text);
        let failed = failed
            || matches!(status, Some("error" | "failed"))
            || exit_code.is_some_and(|code| code != 0);
        let subtype = match (&told, status) {
            (Some(told), _) if told.rejected => Some("rejected"),
            (_, Some("cancelled")) => Some("cancelled"),
            _ => field("errorType"),
        };
        let duration = summary.and_then(|summary| summary.int("durationMs"));
        let draft = Draft {
            subtype,
            text: &self.text,
            tool_name,
            tool_call_id,
            is_error: Some(failed),
            exit_code,
            duration_ms: duration.or_else(|| told.and_then(|told| told.duration_ms)),
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }

    fn notify(&self, subtype: &str, out: &mut Stream) {
        let draft = Draft { subtype: Some(subtype), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}
