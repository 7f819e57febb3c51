//! Reads the trajectories of Poolside's agent, `pool`, from
//! `trajectories/trajectory-<agent>_<session>.ndjson` (docs/formats.md#poolside).
//!
//! ```text
//! {"id":"<uuid>","step_id":"<uuid>","timestamp":"...","type":"tool_call.parsed",
//!  "tool_call_parsed":{"id":"c1","name":"shell","args":{"cmd":"..."}}}
//! ```
//!
//! What a record says is in an object named like its type, with `_` for each dot. The records of one
//! response have one `step_id`.

use std::path::PathBuf;

use schemas::{EventType, Provider, Usage};
use serde::{Deserialize, Serialize};

use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Platform, Quirks, RecordOutcome,
    SessionClaim, state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::drift;
use crate::provider::shared::identity::{begin_uuid_record, uuid_identity};
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Parser, Value, string_value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Poolside,
    has_unique_ids: true,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        is_log_name: Some(|name| trajectory_session(name).is_some().then_some(true)),
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|_, state| {
        let state = state.and_then(|state| PoolsideState::deserialize(state).ok());
        Box::new(PoolsideDecoder { state: state.unwrap_or_default(), inner: Parser::default() })
    }),
};

/// Records that only mark a beginning, or what another record says as well.
const MARKERS: &[&str] = &[
    "assistant_message.start",
    "session.input.processed",
    "thought.start",
    "tool_call.approval.request",
    "tool_call.start",
];

/// Reasons for the end of a session that are not worth a notification.
const NORMAL_REASONS: &[&str] = &["", "exit_tool_called"];

/// Fields of a record around what it says.
const ENVELOPE: &[&str] = &["id", "step_id", "timestamp", "type"];

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let folders = match places.platform() {
        Platform::Linux => vec![places.state_path("poolside")],
        Platform::MacOs => vec![places.application_path("poolside")],
        Platform::Windows => {
            vec![places.local_path("poolside"), places.application_path("poolside")]
        }
    };
    folders.iter().map(|folder| folder.join("trajectories")).collect()
}

/// Returns the id of the session in the name of its file. No record has it.
fn trajectory_session(name: &str) -> Option<&str> {
    let name = name.strip_prefix("trajectory-")?.strip_suffix(".ndjson")?;
    Some(name.rsplit_once('_').map_or(name, |(_, session)| session))
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let first = head.objects.first()?;
    let is_trajectory = first["type"] == "session.start" && first["session_start"].is_object();
    let name = head.path.file_name()?.to_str()?;
    is_trajectory.then(|| SessionClaim {
        first_record: uuid_identity(first["id"].as_str()),
        ..SessionClaim::new(
            Provider::Poolside,
            trajectory_session(name).unwrap_or(head.file_stem()),
        )
    })
}

/// The state of the decoder between two records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PoolsideState {
    /// The id of the response under way.
    step: String,
}

/// Decoder of one trajectory.
struct PoolsideDecoder {
    state: PoolsideState,
    inner: Parser,
}

impl LineDecoder for PoolsideDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = object.text("id");
        let time = parse_micros(object.text("timestamp"));
        begin_uuid_record(id, raw, at, time, out);
        let kind = object.text("type").unwrap_or("untyped");
        let content = object.object(&kind.replace('.', "_")).unwrap_or(object);
        match kind {
            "session.start" => {
                let folders = content.items("working_directories");
                let folder = folders.into_iter().find_map(string_value);
                out.set_cwd(folder.or_else(|| content.non_empty("workspace")));
                return RecordOutcome::Merged("session_start");
            }
            "session.input" => out.push_prompt(content.text("prompt").unwrap_or("")),
            "thought.end" => {
                self.begin_response(object, out);
                push_text(EventType::Reasoning, content.text("thought"), out);
            }
            "assistant_message.end" => {
                self.begin_response(object, out);
                push_text(EventType::Message, content.text("assistant_message"), out);
            }
            "tool_call.inference.start" => {
                let request = content.object("chat_completion_request");
                out.set_model(request.and_then(|request| request.text("model")));
                return RecordOutcome::Merged("request");
            }
            "tool_call.inference.end" => {
                self.begin_response(object, out);
                out.push_usage(read_usage(content), None, object.non_empty("step_id"));
            }
            "tool_call.parsed" => {
                self.begin_response(object, out);
                self.push_call(content, out);
            }
            "tool_call.result" => push_result(content, out),
            "tool_call.approval" => {
                if content.flag("denied") != Some(true) {
                    return RecordOutcome::Merged("approval");
                }
                out.push_notice("denied", content.text("reason").unwrap_or(""), Some(true));
            }
            "session.exit" => {
                let reason = content.text("reason").unwrap_or("");
                if NORMAL_REASONS.contains(&reason) {
                    return RecordOutcome::Merged("session_end");
                }
                let is_cancelled = reason.ends_with("cancelled");
                let subtype = if is_cancelled { "interrupted" } else { "session_exit" };
                out.push_notice(subtype, reason, Some(!is_cancelled));
            }
            "session.error" => {
                out.push_notice("error", content.text("error").unwrap_or(""), Some(true));
            }
            kind if MARKERS.contains(&kind) => return RecordOutcome::Merged("marker"),
            kind => drift::push_unknown_record(Some(kind), content, ENVELOPE, out),
        }
        RecordOutcome::Events.merged_if_empty(out)
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl PoolsideDecoder {
    /// Begins a step at the first record of a response.
    fn begin_response(&mut self, record: Value<'_>, out: &mut Stream) {
        let step = record.text("step_id").unwrap_or("");
        if step.is_empty() || step != self.state.step {
            out.begin_step();
            step.clone_into(&mut self.state.step);
        }
    }

    /// Pushes a call, and a result in place of one that could not run.
    fn push_call(&mut self, call: Value<'_>, out: &mut Stream) {
        let id = call.non_empty("id");
        let input = call.object("args");
        let input = input.or_else(|| call.field("raw_args"));
        Arguments::of_input(input, &mut self.inner).push_call(call.text("name"), id, out);
        if let Some(error) = call.object("validation_error") {
            out.push_result(
                id,
                error.non_empty("detail").or_else(|| error.text("kind")).unwrap_or(""),
                Some(true),
                None,
            );
        }
    }
}

fn push_text(kind: EventType, text: Option<&str>, out: &mut Stream) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        out.push_text(kind, text);
    }
}

/// Pushes the result of a call. Few tools say whether they succeeded.
fn push_result(result: Value<'_>, out: &mut Stream) {
    let shell = result.object("shell_run_tool_result");
    let exit_code = shell.and_then(|shell| shell.int("exit_code"));
    let exit_code = exit_code.and_then(|code| i32::try_from(code).ok());
    let has_failed = ["todo_action_tool_result", "exit_tool_result"]
        .iter()
        .filter_map(|key| result.object(key))
        .any(|typed| typed.flag("success") == Some(false));
    let is_denied = result.text("execution_error_kind") == Some("approval_denied");
    let is_error = has_failed
        || result.flag("is_error") == Some(true)
        || exit_code.is_some_and(|code| code != 0);
    let decoded = DecodedEvent {
        subtype: is_denied.then_some("denied"),
        text: result.text("observation").unwrap_or(""),
        tool_name: result.non_empty("tool_name"),
        tool_call_id: result.non_empty("id"),
        is_error: Some(is_error),
        exit_code,
        duration_ms: result.int("execution_latency").map(|nanos| nanos / 1_000_000),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}

/// Reads the counts of a response. The input includes what was read from the cache.
fn read_usage(counts: Value<'_>) -> Usage {
    Usage {
        output: counts.int("output_tokens"),
        cache_write: counts.int("cache_write_input_tokens"),
        ..chat::without_cache(
            counts.int("input_tokens"),
            [counts.int("cache_read_input_tokens"), None],
        )
    }
}
