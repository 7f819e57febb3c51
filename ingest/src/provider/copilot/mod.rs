//! Reads the logs of GitHub Copilot CLI from `~/.copilot/session-state/<uuid>/events.jsonl`, in
//! older versions from `<uuid>.jsonl` (docs/formats.md#github-copilot-cli). Every line is a record:
//!
//! ```text
//! {"type":"user.message","data":{"content":"..."},"id":"...","timestamp":"...","parentId":"..."}
//! ```
//!
//! A call is in the message that asks for it and in the start of its execution; whichever comes
//! first becomes the event. Hooks repeat prompts, calls and results, so only their answers count.

mod first_model;
mod machine;
mod notice;
mod tool;
mod usage;
mod user;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use schemas::session::SHUTDOWN_SUM;
use schemas::{Confidence, EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::first_model::find_first_model;
use self::usage::CountedUsage;
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim,
    state_json,
};
use crate::provider::shared::identity::{begin_uuid_record, uuid_identity};
use crate::stream::{DecodedEvent, RecentIds, RecordAt, Stream, parse_micros, push_bounded};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::names::is_uuid;
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Copilot,
    has_unique_ids: true,
    decoder_version: 3,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { machine_texts: machine::TEXTS, ..Quirks::NONE },
    reader: LogReader::Lines(|_, state| {
        let state =
            state.and_then(|state| CopilotState::deserialize(state).ok()).unwrap_or_default();
        Box::new(CopilotDecoder {
            state,
            first_model: None,
            text: String::new(),
            inner: Parser::default(),
        })
    }),
};

/// Beginnings of the types of Copilot's records.
const TYPE_PREFIXES: &[&str] = &[
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

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let home = places.env_path("COPILOT_HOME").unwrap_or_else(|| places.home_path(".copilot"));
    vec![home.join("session-state")]
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let first = head.objects.iter().find(|object| is_copilot_record(object))?;
    let start = head.objects.iter().find(|object| object["type"] == "session.start");
    // The folder is named after the session. The log inside it has the same name in every folder.
    let folder = head.path.parent().and_then(|dir| dir.file_name()).and_then(|name| name.to_str());
    let name = match folder {
        Some(folder) if head.file_stem() == "events" => folder,
        _ => head.file_stem(),
    };
    let is_named_by_folder = head.file_stem() == "events" && is_uuid(name);
    let native_id =
        if is_named_by_folder { name } else { start_field(start, "sessionId").unwrap_or(name) };
    let parent = start_field(start, "detachedFromSpawningParentSessionId");
    Some(SessionClaim {
        first_record: uuid_identity(first["id"].as_str()),
        ..SessionClaim::new(Provider::Copilot, native_id).continuing(parent)
    })
}

/// Returns whether an object is a record of Copilot.
fn is_copilot_record(object: &Json) -> bool {
    let kind = object["type"].as_str().unwrap_or("");
    object["data"].is_object()
        && object["id"].is_string()
        && object.get("parentId").is_some()
        && TYPE_PREFIXES.iter().any(|prefix| kind.starts_with(prefix))
}

/// Returns a text field of the `session.start` record. `None` if it is missing, empty or not a
/// text.
fn start_field<'a>(start: Option<&'a Json>, key: &str) -> Option<&'a str> {
    start?["data"][key].as_str().filter(|field| !field.is_empty())
}

/// Maximum number of API calls that are remembered. The pieces of one call are close together.
const MAX_RESPONSES: usize = 16;

/// Maximum number of tool calls that are remembered, from the message that asks for a call to its
/// start.
const MAX_CALLS: usize = 256;

/// One API call. Its reply may be split over several records.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ApiCall {
    id: String,
    step: i32,
    /// Output tokens counted so far.
    output: Option<i64>,
}

/// Reasoning in a record of its own, which comes before the message it led to.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct RecordedReasoning {
    hash: u64,
    step: i32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct CopilotState {
    responses: VecDeque<ApiCall>,
    reasoned: Option<RecordedReasoning>,
    /// Hashes of the ids of calls.
    calls: RecentIds<MAX_CALLS>,
    /// Hash of the last system prompt, which is repeated before every prompt.
    system: u64,
    counted: CountedUsage,
    /// True once an output had a model of its own or of an earlier record.
    #[serde(default)]
    has_named_output: bool,
    /// The model that outputs before the first record with a model were given.
    #[serde(default)]
    first_model: Option<String>,
    /// True if an output came before the first record with a model.
    #[serde(default)]
    has_unnamed_output: bool,
}

struct CopilotDecoder {
    state: CopilotState,
    /// The model of outputs before the first record with a model, by what the log says now.
    first_model: Option<String>,
    text: String,
    /// Parser for JSON inside strings.
    inner: Parser,
}

impl LineDecoder for CopilotDecoder {
    fn prepare(&mut self, log: &Path) -> bool {
        if !self.state.has_named_output {
            self.first_model = find_first_model(log);
        }
        !self.state.has_unnamed_output
            || self.state.has_named_output
            || self.first_model == self.state.first_model
    }

    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = object.text("id");
        begin_uuid_record(id, raw, at, parse_micros(object.text("timestamp")), out);
        let outcome = self.decode_event(object, out);
        out.set_counts_open(self.state.counted.is_open());
        outcome
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl CopilotDecoder {
    /// Decodes one record, after the stream has begun it.
    fn decode_event(&mut self, object: Value<'_>, out: &mut Stream) -> RecordOutcome {
        let kind = object.text("type").unwrap_or("untyped");
        let data = object.object("data").unwrap_or(object);

        // The work of a subagent is in the same log.
        let agent = object.non_empty("agentId").or_else(|| data.non_empty("parentToolCallId"));
        let is_sidechain = agent.is_some();
        if is_sidechain {
            out.set_sidechain(agent);
        } else if kind.starts_with("tool.") {
            out.set_model(data.text("model"));
        }

        match kind {
            "user.message" => {
                self.state.reasoned = None;
                user::push_user_message(data, is_sidechain, &mut self.text, out);
            }
            "assistant.message" => return self.decode_message(data, is_sidechain, out),
            "assistant.reasoning" => self.decode_reasoning(data, out),
            "tool.execution_start" => return self.decode_tool_start(data, out),
            "tool.execution_complete" => tool::push_tool_result(data, &mut self.text, out),
            "tool.user_requested" => user::push_command(data, &mut self.text, out),
            "system.message" => return self.decode_system_prompt(kind, data, out),
            "hook.end" => return self.decode_hook_end(kind, data, out),
            "hook.start" => return RecordOutcome::Merged("hook_input"),
            "permission.requested" => return RecordOutcome::Merged("twin_of_tool_call"),
            "assistant.turn_start" | "assistant.turn_end" => {
                return RecordOutcome::Merged("turn_marker");
            }
            "session.start" | "session.resume" => {
                if self.state.counted.begin_run() {
                    out.set_confidence(Confidence::Partial);
                }
                notice::push_notice(kind, data, &mut self.text, out);
            }
            "session.shutdown" => self.decode_shutdown(kind, data, out),
            "session.compaction_complete" => self.decode_compaction(kind, data, out),
            _ => {
                if !notice::is_known_notice(kind) {
                    out.count_unknown("record", kind);
                }
                notice::push_notice(kind, data, &mut self.text, out);
            }
        }
        RecordOutcome::Events
    }

    /// Decodes reasoning in a record of its own.
    fn decode_reasoning(&mut self, data: Value<'_>, out: &mut Stream) {
        let text = data.text("content").unwrap_or("");
        let step = match self.state.reasoned {
            Some(reasoned) => reasoned.step,
            None => out.begin_step(),
        };
        self.state.reasoned = Some(RecordedReasoning { hash: xxh3_64(text.as_bytes()), step });
        push_reasoning(text, step, out);
    }

    /// Decodes a piece of a model response: reasoning, text, tool calls and output tokens.
    fn decode_message(
        &mut self,
        data: Value<'_>,
        is_sidechain: bool,
        out: &mut Stream,
    ) -> RecordOutcome {
        let main_model = out.session.model.clone();
        out.set_model(data.text("model"));
        if !is_sidechain {
            self.name_output(out);
        }
        let reasoned = self.state.reasoned.take();
        let api_call = data.non_empty("apiCallId");
        let known = self.state.responses.iter().find(|known| Some(known.id.as_str()) == api_call);
        let counted = known.and_then(|known| known.output);
        let step = known.map(|known| known.step).or(reasoned.map(|reasoned| reasoned.step));
        let step = step.unwrap_or_else(|| out.begin_step());

        push_message_reasoning(data, reasoned, step, out);
        self.text.clear();
        tool::append_content(data.field("content"), &mut self.text);
        let requests = data.items("toolRequests");
        if !self.text.is_empty() || (requests.is_empty() && out.pushed_count() == 0) {
            out.push_text_in_step(EventType::Message, step, &self.text);
        }
        for request in requests {
            if self.state.calls.add_new(request.non_empty("toolCallId")) {
                let name = request.text("name");
                tool::push_call(request, name, Some(step), &mut self.inner, out);
            }
        }

        let output = data.int("outputTokens");
        if let Some(output) = output
            && counted.is_none_or(|before| output > before)
        {
            let growth = output.saturating_sub(counted.unwrap_or(0));
            let usage = Usage { output: Some(growth), ..Usage::default() };
            self.push_usage(usage, None, api_call, step, out);
        }
        if let Some(id) = api_call {
            self.remember_response(ApiCall {
                id: id.to_owned(),
                step,
                output: output.max(counted),
            });
        }
        if is_sidechain {
            out.session.model = main_model;
        }
        if out.pushed_count() > 0 {
            RecordOutcome::Events
        } else {
            RecordOutcome::Merged("twin_of_tool_call")
        }
    }

    /// Names the model of an output that comes before the first record with a model.
    fn name_output(&mut self, out: &mut Stream) {
        if out.session.model.is_some() && !self.state.has_unnamed_output {
            self.state.has_named_output = true;
        } else if out.session.model.is_none() {
            self.state.has_unnamed_output = true;
            self.state.first_model.clone_from(&self.first_model);
            out.set_model(self.first_model.as_deref());
        }
    }

    /// Pushes the usage of a request and remembers it as counted.
    fn push_usage(
        &mut self,
        usage: Usage,
        subtype: Option<&str>,
        request_id: Option<&str>,
        step: i32,
        out: &mut Stream,
    ) {
        self.state.counted.add_usage(out.session.model.as_deref().unwrap_or(""), usage);
        let decoded = DecodedEvent { subtype, usage, request_id, ..DecodedEvent::default() };
        out.push_in_step(EventType::TokenUsage, step, decoded);
    }

    /// Remembers an API call instead of its earlier pieces.
    fn remember_response(&mut self, response: ApiCall) {
        self.state.responses.retain(|known| known.id != response.id);
        push_bounded(&mut self.state.responses, MAX_RESPONSES, response);
    }

    /// Decodes the start of a tool's execution. If a message asked for it, the call is known.
    fn decode_tool_start(&mut self, data: Value<'_>, out: &mut Stream) -> RecordOutcome {
        if !self.state.calls.add_new(data.non_empty("toolCallId")) {
            return RecordOutcome::Merged("twin_of_tool_call");
        }
        tool::push_call(data, data.text("toolName"), None, &mut self.inner, out);
        RecordOutcome::Events
    }

    /// Decodes a system prompt. It is merged if it repeats the last one.
    fn decode_system_prompt(
        &mut self,
        kind: &str,
        data: Value<'_>,
        out: &mut Stream,
    ) -> RecordOutcome {
        self.text.clear();
        tool::append_content(data.field("content"), &mut self.text);
        let hash = xxh3_64(self.text.as_bytes());
        if std::mem::replace(&mut self.state.system, hash) == hash {
            return RecordOutcome::Merged("repeated_system_prompt");
        }
        out.push_shortened(kind, &self.text);
        RecordOutcome::Events
    }

    /// Decodes the end of a hook. An end without fields to report and without a failure is merged.
    fn decode_hook_end(&mut self, kind: &str, data: Value<'_>, out: &mut Stream) -> RecordOutcome {
        self.text.clear();
        render::append_notification(
            data,
            &["hookInvocationId", "hookType", "success"],
            &mut self.text,
        );
        if self.text.is_empty() && data.flag("success") != Some(false) {
            return RecordOutcome::Merged("silent_hook");
        }
        notice::push_notice(kind, data, &mut self.text, out);
        RecordOutcome::Events
    }

    /// Decodes the end of a run, and pushes the usage in its sums that was not counted before.
    fn decode_shutdown(&mut self, kind: &str, data: Value<'_>, out: &mut Stream) {
        notice::push_notice(kind, data, &mut self.text, out);

        let model = out.session.model.clone();
        for (model, usage) in self.state.counted.take_uncounted(usage::read_sums(data)) {
            out.set_model(Some(&model));
            let decoded =
                DecodedEvent { subtype: Some(SHUTDOWN_SUM), usage, ..DecodedEvent::default() };
            out.push_in_step(EventType::TokenUsage, 0, decoded);
        }
        out.session.model = model;
        out.set_model(data.text("currentModel"));
    }

    /// Pushes the summary that replaces the history, and the usage of the request that wrote it.
    fn decode_compaction(&mut self, kind: &str, data: Value<'_>, out: &mut Stream) {
        notice::push_notice(kind, data, &mut self.text, out);
        let Some(used) = data.object("compactionTokensUsed") else { return };
        let usage = usage::read_compaction_usage(used);
        if usage.is_unknown() {
            return;
        }

        let main_model = out.session.model.clone();
        out.set_model(used.text("model"));
        self.push_usage(usage, Some("compaction"), data.non_empty("requestId"), 0, out);
        out.session.model = main_model;
    }
}

/// Pushes the reasoning that a message carries, unless it was in a record of its own.
fn push_message_reasoning(
    data: Value<'_>,
    reasoned: Option<RecordedReasoning>,
    step: i32,
    out: &mut Stream,
) {
    if let Some(text) = data.non_empty("reasoningText") {
        if reasoned.is_none_or(|reasoned| reasoned.hash != xxh3_64(text.as_bytes())) {
            push_reasoning(text, step, out);
        }
        return;
    }
    if reasoned.is_some() {
        return;
    }
    let hidden = data.non_empty("reasoningOpaque").or_else(|| data.non_empty("encryptedContent"));
    if let Some(hidden) = hidden {
        push_reasoning(&format!("[encrypted reasoning, {} bytes]", hidden.len()), step, out);
    }
}

fn push_reasoning(text: &str, step: i32, out: &mut Stream) {
    out.push_text_in_step(EventType::Reasoning, step, text);
}
