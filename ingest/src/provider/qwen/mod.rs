//! Reads the session logs of Qwen Code from `~/.qwen/projects/<cwd>/` (docs/formats.md#qwen-code):
//!
//! ```text
//! chats/<sessionId>.jsonl                 the log of a session
//! subagents/<sessionId>/agent-<id>.jsonl  the log of a subagent
//!
//! {"type":"user","sessionId":"...","uuid":"...","parentUuid":"...",
//!  "message":{"parts":[{"text":"..."}]}}
//! ```
//!
//! The chain of records is Claude's (`uuid`, `parentUuid`), their content is Gemini's
//! (`message.parts`).

mod machine;
mod state;
mod system;
mod telemetry;
mod user;

use std::path::PathBuf;

use schemas::event::Relation;
use schemas::{EventType, Provider};
use serde::Deserialize as _;
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::state::{ENVELOPE, QwenState};
use self::telemetry::{METADATA_COUNTS, read_usage};
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim,
    state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::begin_identified_record;
use crate::provider::shared::{drift, function_response};
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::names::is_uuid;
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Qwen,
    has_unique_ids: true,
    decoder_version: 2,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { machine_texts: machine::TEXTS, ..Quirks::NONE },
    reader: LogReader::Lines(|claim, state| {
        let state = state.and_then(|state| QwenState::deserialize(state).ok()).unwrap_or_default();
        Box::new(QwenDecoder { state, is_agent_log: claim.agent_id.is_some(), text: String::new() })
    }),
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let home = places
        .env_path("QWEN_RUNTIME_DIR")
        .or_else(|| places.env_path("QWEN_HOME"))
        .unwrap_or_else(|| places.home_path(".qwen"));
    vec![home.join("projects")]
}

/// Claims a log by its records. The first one names the session, and in the log of a subagent also
/// the subagent.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let records: Vec<&Json> = head.objects.iter().filter(|object| is_qwen_record(object)).collect();
    let first = records.first()?;
    let session = first["sessionId"].as_str()?;
    let first_record = records
        .iter()
        .find_map(|record| record_identity(record["uuid"].as_str(), record["timestamp"].as_str()));
    if first["isSidechain"] == true
        && let Some(agent) = first["agentId"].as_str()
    {
        return Some(SessionClaim {
            agent_id: Some(agent.to_owned()),
            parent: Some(session.to_owned()),
            relation: Some(Relation::SubagentOf),
            first_record,
            ..SessionClaim::new(Provider::Qwen, format!("agent-{agent}"))
        });
    }

    // The file is named after the session.
    let stem = head.file_stem();
    let native_id = if is_uuid(stem) { stem } else { session };
    let source = find_text(&records, "forkedFrom", "sessionId");
    let spawner = find_text(&records, "systemPayload", "parentSessionId");
    let parents = [(Relation::ForkedFrom, source), (Relation::SubagentOf, spawner)];
    let claim = SessionClaim::new(Provider::Qwen, native_id).with_parent(&parents);
    Some(SessionClaim { first_record, ..claim })
}

/// Returns the text at `owner.key` of the first record that has one.
fn find_text<'r>(records: &[&'r Json], owner: &str, key: &str) -> Option<&'r str> {
    records.iter().find_map(|record| record.get(owner)?.get(key)?.as_str())
}

/// Returns whether a record is one of Qwen Code's.
fn is_qwen_record(object: &Json) -> bool {
    let has_ids = ["type", "uuid", "sessionId"].iter().all(|key| object[key].is_string());
    let is_system = object["type"] == "system" && object["systemPayload"].is_object();
    has_ids && (object["message"]["parts"].is_array() || is_system)
}

/// Returns the identity of a record. The parts of one message may be in several records with the
/// same uuid. Copies keep both the uuid and the time.
fn record_identity(uuid: Option<&str>, timestamp: Option<&str>) -> Option<u64> {
    let mut key = uuid.filter(|uuid| is_uuid(uuid))?.to_owned();
    key.push_str(timestamp.unwrap_or(""));
    Some(xxh3_64(key.as_bytes()) | 1)
}

/// Maximum time in microseconds between a command and the text that it sent to the model. The user
/// needs longer to type the next prompt.
const MAX_EXPANSION_DELAY_US: i64 = 1_000_000;

/// Decoder of one log.
struct QwenDecoder {
    state: QwenState,
    /// True if the whole log is a subagent's, so that its prompts are its own.
    is_agent_log: bool,
    /// Text of the current event.
    text: String,
}

impl LineDecoder for QwenDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let time = parse_micros(object.text("timestamp"));
        let uuid = object.non_empty("uuid");
        begin_identified_record(
            (uuid, record_identity(uuid, object.text("timestamp"))),
            raw,
            at,
            time,
            out,
        );
        out.set_cwd(object.text("cwd"));
        out.set_branch(object.text("gitBranch"));
        out.set_version(object.text("version"));
        let is_sidechain = !self.is_agent_log && object.flag("isSidechain") == Some(true);
        if is_sidechain {
            out.set_sidechain(None);
        }
        let is_same_message = uuid.is_some() && uuid == self.state.last.as_deref();
        if !is_same_message {
            report_parent(object, out);
        }

        let has_parts =
            object.object("message").is_some_and(|message| !message.items("parts").is_empty());
        let outcome = match object.text("type") {
            Some("user") if has_parts => {
                self.state.in_response = false;
                self.decode_user_message(object, time, !is_sidechain, out)
            }
            Some("assistant") if has_parts || object.object("usageMetadata").is_some() => {
                self.decode_response(object, is_same_message, out)
            }
            Some("tool_result") => {
                self.state.in_response = false;
                self.decode_tool_results(object, out)
            }
            Some("system") => system::decode_system_record(
                object,
                time,
                !is_sidechain,
                &mut self.state,
                &mut self.text,
                out,
            ),
            Some("user" | "assistant") => RecordOutcome::Merged("empty_message"),
            kind => {
                drift::push_unknown_record(kind, object, ENVELOPE, out);
                RecordOutcome::Events
            }
        };
        self.state.last = uuid.map(str::to_owned);
        outcome
    }

    fn finish_reading(&mut self, _: RecordAt, out: &mut Stream) {
        out.set_counts_open(self.state.telemetry.has_uncounted_request());
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

/// Passes the record's parent to the stream if the user may have gone back to it. Telemetry and
/// similar records are left out: they are most of a log, and the user never goes back there.
fn report_parent(object: Value<'_>, out: &mut Stream) {
    let is_system = object.text("type") == Some("system");
    if is_system && !matches!(object.text("subtype"), Some("rewind" | "slash_command")) {
        return;
    }
    if let Some(parent) = object.field("parentUuid") {
        out.link_to_parent(xxh3_64(string_value(parent).unwrap_or("").as_bytes()));
    }
}

impl QwenDecoder {
    /// Decodes a record in the user's role. If the record before it was a slash command, it may
    /// repeat that command or hold the text that the command sent to the model.
    fn decode_user_message(
        &mut self,
        object: Value<'_>,
        time: Option<i64>,
        starts_turn: bool,
        out: &mut Stream,
    ) -> RecordOutcome {
        if let Some(command) = self.state.command.take()
            && object.field("subtype").is_none()
        {
            if user::prompt_text(object).trim() == command.raw.trim() {
                return RecordOutcome::Merged("slash_command_twin");
            }
            let payload = object.object("systemPayload");
            let shown = payload.and_then(|payload| payload.text("displayText"));
            let is_immediate = object.text("parentUuid") == Some(command.uuid.as_str())
                && time
                    .zip(command.at)
                    .is_some_and(|(now, then)| now - then <= MAX_EXPANSION_DELAY_US);
            if is_immediate || shown.map(str::trim) == Some(command.raw.trim()) {
                user::push_expansion(object, out);
                return RecordOutcome::Events;
            }
        }

        user::decode_user_record(object, starts_turn, out);
        RecordOutcome::Events
    }

    /// Decodes a response of the model. `is_same_message` is true if the record before it held
    /// another part of the same message.
    fn decode_response(
        &mut self,
        object: Value<'_>,
        is_same_message: bool,
        out: &mut Stream,
    ) -> RecordOutcome {
        out.set_model(object.text("model"));
        let parts = object.object("message").map(|m| m.items("parts")).unwrap_or_default();
        let counts = object.object("usageMetadata");
        // A subagent's log has one record for the text of a response and one for each of its calls.
        let has_text = parts.iter().any(|part| part.text("text").is_some());
        let is_continuation =
            is_same_message || (self.state.in_response && !has_text && counts.is_none());
        if !is_continuation {
            out.begin_step();
        }
        self.state.in_response = true;
        for part in parts {
            self.decode_part(part, out);
        }

        let usage = counts.map(|counts| read_usage(counts, METADATA_COUNTS)).unwrap_or_default();
        let request = self.state.telemetry.take_request(usage, out);
        if usage.total() > 0 {
            let request = request.as_ref();
            let decoded = DecodedEvent {
                usage,
                request_id: request.map(|request| request.id.as_str()).filter(|id| !id.is_empty()),
                duration_ms: request.and_then(|request| request.duration_ms),
                ..DecodedEvent::default()
            };
            out.push(EventType::TokenUsage, decoded);
        }
        RecordOutcome::Events
    }

    /// Decodes one part of a response.
    fn decode_part(&mut self, part: Value<'_>, out: &mut Stream) {
        self.text.clear();
        if let Some(text) = part.text("text") {
            let is_thought = part.flag("thought") == Some(true);
            let kind = if is_thought { EventType::Reasoning } else { EventType::Message };
            if !text.is_empty() {
                out.push_text(kind, text);
            }
        } else if let Some(call) = part.object("functionCall") {
            let arguments = Arguments::of_value(call.field("args"));
            arguments.push_call(call.text("name"), call.non_empty("id"), out);
        } else if part.object("inlineData").is_some() {
            render::append_block(part, &mut self.text);
            out.push_text(EventType::Message, &self.text);
        } else {
            out.count_unknown("block", "part");
            render::append_notification(part, &[], &mut self.text);
            out.push_notification("part", &self.text);
        }
    }

    /// Decodes the results in one record. `toolCallResult` holds the outcome of the call.
    fn decode_tool_results(&mut self, object: Value<'_>, out: &mut Stream) -> RecordOutcome {
        let parts = object.object("message").map(|m| m.items("parts")).unwrap_or_default();
        let responses: Vec<_> =
            parts.iter().filter_map(|part| part.object("functionResponse")).collect();
        let summary = object.object("toolCallResult");
        let call_id = summary_text(summary, "callId");
        match responses.as_slice() {
            [] => self.push_tool_result(None, call_id, summary, out),
            [response] => {
                let id = call_id.or_else(|| response.non_empty("id"));
                self.push_tool_result(Some(*response), id, summary, out);
            }
            several => {
                for response in several {
                    self.push_tool_result(Some(*response), response.non_empty("id"), summary, out);
                }
            }
        }
        RecordOutcome::Events
    }

    /// Decodes one result. `summary` is the `toolCallResult` of the record.
    fn push_tool_result(
        &mut self,
        response: Option<Value<'_>>,
        tool_call_id: Option<&str>,
        summary: Option<Value<'_>>,
        out: &mut Stream,
    ) {
        self.text.clear();
        let mut is_error = response
            .is_some_and(|response| function_response::append_response(response, &mut self.text));
        if self.text.is_empty() {
            self.text.push_str(summary_text(summary, "resultDisplay").unwrap_or(""));
        }

        let status = summary_text(summary, "status");
        let exit_code = function_response::parse_exit_code(&self.text);
        // A subagent that failed says so in its display, and gives the error as its answer.
        let display = summary.and_then(|summary| summary.object("resultDisplay"));
        let agent_status = display.and_then(|display| display.text("status"));
        is_error |= matches!(status, Some("error" | "failed")) || agent_status == Some("failed");
        is_error |= exit_code.is_some_and(|code| code != 0);

        let tool_name = response.and_then(|response| response.text("name"));
        let telemetry = self.state.telemetry.take_call(tool_name);
        let subtype = if telemetry.as_ref().is_some_and(|tool| tool.rejected) {
            Some("rejected")
        } else if status == Some("cancelled") {
            status
        } else {
            summary_text(summary, "errorType")
        };
        let duration = summary.and_then(|summary| summary.int("durationMs"));
        let decoded = DecodedEvent {
            subtype,
            text: &self.text,
            tool_name,
            tool_call_id,
            is_error: Some(is_error),
            exit_code,
            duration_ms: duration.or_else(|| telemetry.and_then(|tool| tool.duration_ms)),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Returns a field of a `toolCallResult` that is a non-empty string.
fn summary_text<'s>(summary: Option<Value<'s>>, key: &str) -> Option<&'s str> {
    summary?.non_empty(key)
}
