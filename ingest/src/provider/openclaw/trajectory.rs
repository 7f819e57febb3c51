//! Decodes a trajectory of OpenClaw: the diagnostic record of a session, for sessions whose own log
//! is missing (docs/formats.md#openclaw).
//!
//! ```text
//! {"traceSchema":"openclaw-trajectory","type":"prompt.submitted","ts":"...","seq":4,"runId":"...",
//!  "sessionId":"...","workspaceDir":"...","modelId":"...","data":{"prompt":"...","messages":[...]}}
//! {"traceSchema":"openclaw-trajectory","type":"model.completed",...,
//!  "data":{"usage":{"input":21,...},"assistantTexts":["..."],"messagesSnapshot":[...]}}
//! ```
//!
//! A run has one `model.completed`. Its snapshot has the messages of all runs up to then, but no more
//! than the first 64. Runs of another agent program report calls and results one by one
//! (`tool.call`, `tool.result`).

use schemas::session::TURN_SUM;
use schemas::{Confidence, EventType, Usage};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::gateway::split_inbound;
use crate::provider::format::{LogHead, RecordOutcome, state_json};
use crate::provider::pi::message::{append_content, decode_message, push_user_text, read_usage};
use crate::provider::shared::arguments::Arguments;
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// Value of `traceSchema` in a trajectory.
const SCHEMA: &str = "openclaw-trajectory";

/// Events that only describe the program and its settings, or repeat others.
const MERGED_EVENTS: &[&str] = &["trace.metadata", "trace.artifacts", "context.compiled"];

/// Known events that become notifications.
const SIDE_EVENTS: &[&str] = &[
    "session.started",
    "session.ended",
    "trace.truncated",
    "tool.timeout",
    "turn.client_closed",
    "turn.completion_idle_timeout",
];

/// Fields that all events have, which no notification repeats.
const ENVELOPE: &[&str] = &[
    "traceSchema",
    "schemaVersion",
    "traceId",
    "source",
    "type",
    "ts",
    "seq",
    "sourceSeq",
    "sessionId",
];

/// Returns the id of the session if a log is a trajectory.
pub(super) fn find_session_id<'h>(head: &'h LogHead<'_>) -> Option<&'h str> {
    let first = head.objects.first()?;
    let is_trajectory = first["traceSchema"] == SCHEMA && first["source"] == "runtime";
    let id = first["sessionId"].as_str().filter(|id| !id.is_empty());
    if is_trajectory { id } else { None }
}

/// Returns whether a record is an event of a trajectory.
pub(super) fn is_event(record: Value<'_>) -> bool {
    record.text("traceSchema") == Some(SCHEMA)
}

/// The state of the decoder between two events.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TrajectoryState {
    /// Hash of the id of the present run.
    run: u64,
    /// Time in microseconds at which the run began.
    run_start: i64,
    /// Hash of the prompt of the run, until its message is found.
    prompt: Option<u64>,
    /// Whether the run reports its calls one by one.
    has_calls: bool,
    /// Identities of the messages that repeat a prompt, in all runs. Snapshots have the first
    /// [`MAX_SNAPSHOT_MESSAGES`] messages of the session only, so later ones need not be known.
    known_prompts: Vec<u64>,
}

/// Number of messages that a snapshot has at most.
const MAX_SNAPSHOT_MESSAGES: usize = 64;

/// Decodes the events of a trajectory.
pub(super) struct TrajectoryDecoder {
    state: TrajectoryState,
    /// Text of the current event.
    text: String,
}

impl TrajectoryDecoder {
    /// Creates a decoder that continues at `state`.
    pub(super) fn new(state: TrajectoryState) -> Self {
        Self { state, text: String::new() }
    }

    /// Decodes one event.
    pub(super) fn decode_event(
        &mut self,
        event: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let kind = event.text("type").unwrap_or("untyped");
        let time = parse_micros(event.text("ts"));
        let run = event.text("runId").unwrap_or("");
        let key =
            format!("{run}\n{kind}\n{}\n{}", event.int("seq").unwrap_or(0), time.unwrap_or(0));
        out.begin_record(at, Some(hash_key(&key)), time);
        out.set_cwd(event.text("workspaceDir"));
        out.set_model(event.text("modelId"));

        let run = hash_key(run);
        if self.state.run != run || kind == "session.started" {
            let run_start = time.unwrap_or(0);
            let known_prompts = std::mem::take(&mut self.state.known_prompts);
            self.state =
                TrajectoryState { run, run_start, known_prompts, ..TrajectoryState::default() };
        }

        self.text.clear();
        let data = event.object("data");
        match (kind, data) {
            ("prompt.submitted", Some(data)) => self.decode_prompt(data, at, time, out),
            ("model.completed", Some(data)) => self.decode_completion(data, at, time, out),
            ("tool.call", Some(data)) => self.decode_call(data, out),
            ("tool.result", Some(data)) => self.decode_result(data, out),
            _ if MERGED_EVENTS.contains(&kind) => {
                return RecordOutcome::Merged("trajectory_context");
            }
            _ => self.push_side_event(kind, event, out),
        }
        RecordOutcome::Events
    }

    /// Pushes a notification for an event that is not part of the conversation.
    fn push_side_event(&mut self, kind: &str, event: Value<'_>, out: &mut Stream) {
        if !SIDE_EVENTS.contains(&kind) {
            out.count_unknown("record", kind);
        }
        render::append_notification(event, ENVELOPE, &mut self.text);
        out.push_shortened(kind, &self.text);
    }

    /// Decodes the prompt of a run, after the messages that came before it.
    fn decode_prompt(
        &mut self,
        data: Value<'_>,
        at: RecordAt,
        time: Option<i64>,
        out: &mut Stream,
    ) {
        self.decode_messages(&data.items("messages"), at, out);
        let Some(prompt) = data.text("prompt") else { return };
        // The messages before it are records of their own.
        out.begin_record(at, Some(hash_key(&format!("prompt {} {time:?}", self.state.run))), time);
        self.state.prompt = Some(hash_key(split_inbound(prompt).1));
        push_user_text(prompt, true, out);
    }

    /// Decodes the end of a run: what is new in its snapshot, and its tokens.
    fn decode_completion(
        &mut self,
        data: Value<'_>,
        at: RecordAt,
        time: Option<i64>,
        out: &mut Stream,
    ) {
        let run = data.object("usage").map(read_usage).unwrap_or_default();
        let mut seen = SeenMessages::default();
        if !self.state.has_calls {
            seen = self.decode_messages(&data.items("messagesSnapshot"), at, out);
        }

        let key = format!("completed {} {}", self.state.run, time.unwrap_or(0));
        out.begin_record(at, Some(hash_key(&key)), time);
        if !seen.has_response {
            out.begin_step();
            for text in data.items("assistantTexts") {
                let text = string_value(text).unwrap_or("");
                out.push_text(EventType::Message, text);
            }
        }
        if let Some(error) = data.non_empty("promptError") {
            out.push_notice("error", error, Some(true));
        }

        // Messages that the snapshot lacks are in the tokens of the run.
        let rest = excess_usage(run, seen.usage);
        if rest.total() > 0 {
            out.push_counts(TURN_SUM, rest, None);
        }
        if run.total() == 0 && seen.usage.total() == 0 {
            out.set_confidence(Confidence::Partial);
        }
    }

    /// Decodes the messages that were not read before.
    fn decode_messages(
        &mut self,
        messages: &[Value<'_>],
        at: RecordAt,
        out: &mut Stream,
    ) -> SeenMessages {
        let mut seen = SeenMessages::default();
        for message in messages {
            // The last element of a list that was cut is not a message.
            let Some(role) = message.text("role") else { continue };
            self.text.clear();
            append_content(*message, &mut self.text);
            let time = message.int("timestamp").map(|millis| millis.saturating_mul(1000));
            let call = message.text("toolCallId").unwrap_or("");
            let content = hash_key(&self.text);
            let key = format!("{role}\n{}\n{call}\n{content}", time.unwrap_or(0));
            let identity = hash_key(&key);
            if out.has_read(identity) || self.state.known_prompts.contains(&identity) {
                continue;
            }
            if role == "user" && self.is_prompt(time) {
                if self.state.known_prompts.len() < MAX_SNAPSHOT_MESSAGES {
                    self.state.known_prompts.push(identity);
                }
                continue;
            }

            out.begin_record(at, Some(identity), time);
            self.text.clear();
            decode_message(*message, true, &mut self.text, out);
            seen.has_response |= role == "assistant";
            let usage = message.object("usage").map(read_usage).unwrap_or_default();
            seen.usage = seen.usage.plus(usage);
        }
        seen
    }

    /// Returns whether a message of the user, whose text is in `self.text`, is the prompt that
    /// began the run.
    fn is_prompt(&mut self, time: Option<i64>) -> bool {
        let Some(prompt) = self.state.prompt else { return false };
        let is_in_run = time.is_some_and(|time| time >= self.state.run_start);
        let is_prompt = is_in_run || hash_key(split_inbound(&self.text).1) == prompt;
        if is_prompt {
            self.state.prompt = None;
        }
        is_prompt
    }

    /// Decodes a call that is reported by itself.
    fn decode_call(&mut self, data: Value<'_>, out: &mut Stream) {
        self.state.has_calls = true;
        let arguments = Arguments::of_value(data.field("arguments"));
        out.begin_step();
        arguments.push_call(data.non_empty("name"), data.non_empty("toolCallId"), out);
    }

    /// Decodes a result that is reported by itself.
    fn decode_result(&mut self, data: Value<'_>, out: &mut Stream) {
        let contents = ["output", "contentItems", "result"];
        if let Some(content) = contents.iter().find_map(|key| data.field(key)) {
            match string_value(content) {
                Some(text) => self.text.push_str(text),
                None => render::append_value(content, &mut self.text),
            }
        }
        let result = data.object("result");
        let exit_code = result.and_then(|result| result.int32("exitCode"));
        let is_error = data.flag("isError") == Some(true)
            || data.flag("success") == Some(false)
            || exit_code.is_some_and(|code| code != 0);
        let decoded = DecodedEvent {
            text: &self.text,
            tool_name: data.non_empty("name"),
            tool_call_id: data.non_empty("toolCallId"),
            is_error: Some(is_error),
            exit_code,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }

    pub(super) fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

/// What was new in the messages of a snapshot.
#[derive(Default)]
struct SeenMessages {
    has_response: bool,
    usage: Usage,
}

/// Returns what `usage` has more than `known`.
fn excess_usage(usage: Usage, known: Usage) -> Usage {
    let excess =
        |all: Option<i64>, known: Option<i64>| all.map(|all| (all - known.unwrap_or(0)).max(0));
    Usage {
        input: excess(usage.input, known.input),
        output: excess(usage.output, known.output),
        cache_read: excess(usage.cache_read, known.cache_read),
        cache_write: excess(usage.cache_write, known.cache_write),
        cache_write_1h: excess(usage.cache_write_1h, known.cache_write_1h),
        reasoning: excess(usage.reasoning, known.reasoning),
        ..Usage::default()
    }
}

/// Returns the identity of a record with this key.
fn hash_key(key: &str) -> u64 {
    xxh3_64(key.as_bytes()) | 1
}
