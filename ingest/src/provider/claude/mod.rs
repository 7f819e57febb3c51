//! Reads the logs of Claude Code from `~/.claude/projects/<cwd>/<sessionId>.jsonl`
//! (docs/formats.md#claude-code). Each line is one record, and `message` has the form of
//! Anthropic's API:
//!
//! ```text
//! {"type":"user","uuid":"...","parentUuid":"...","sessionId":"...","timestamp":"...",
//!  "cwd":"...","gitBranch":"...","version":"...","message":{"role":"user","content":"..."}}
//! ```
//!
//! Longer output of tools is in `<sessionId>/tool-results/`, and the record has its beginning.
//! Records that are not part of the conversation are decoded in `side_record.rs`.

mod head;
mod known;
mod machine;
mod printed;
mod queue;
mod response;
mod said;
mod side_record;
mod subagent;
mod usage;
mod user;

use std::collections::VecDeque;
use std::path::PathBuf;

use schemas::{Confidence, EventType, Provider};
use serde::{Deserialize, Serialize};

use self::printed::PrintedOutput;
use self::queue::PromptQueue;
use self::response::ApiMessage;
use self::subagent::Subagents;

use crate::provider::copied::copied_identity;
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogReader, Quirks, RecordOutcome, state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::drift;
use crate::provider::shared::identity::{begin_identified_record, uuid_identity};
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Claude,
    has_unique_ids: true,
    decoder_version: 5,
    roots: log_roots,
    sniff: head::claim_log,
    quirks: Quirks {
        output_folder: Some(|log| log.with_extension("").join("tool-results")),
        is_sidecar: Some(|name, has| {
            // Describes the subagent whose log is next to it.
            let agent = name.strip_suffix(".meta.json");
            agent.is_some_and(|agent| agent.starts_with("agent-") && has(&format!("{agent}.jsonl")))
        }),
        is_claim_complete: Some(head::is_claim_complete),
        machine_texts: machine::TEXTS,
        find_response: Some(response::find_response),
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|claim, state| {
        Box::new(ClaudeDecoder {
            state: state.and_then(|state| ClaudeState::deserialize(state).ok()).unwrap_or_default(),
            is_subagent_log: claim.agent_id.is_some(),
            subagents: Subagents::default(),
            text: String::new(),
        })
    }),
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let configs: Vec<PathBuf> = match places.env_path("CLAUDE_CONFIG_DIR") {
        // The variable may name several folders, separated by commas.
        Some(list) => list.to_string_lossy().split(',').map(|dir| dir.trim().into()).collect(),
        None => vec![places.home_path(".claude"), places.config_path("claude")],
    };
    configs
        .iter()
        .flat_map(|config| [config.join("projects"), config.join("transcripts")])
        .collect()
}

/// Fields that have not left their defaults are not written.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ClaudeState {
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    messages: VecDeque<ApiMessage>,
    #[serde(skip_serializing_if = "PromptQueue::is_empty")]
    queue: PromptQueue,
    #[serde(skip_serializing_if = "PrintedOutput::is_empty")]
    printed: PrintedOutput,
    /// The id of the last response.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_response: Option<String>,
    /// True if the log repeats another one with new uuids. `None` before the first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_new_ids: Option<bool>,
    /// True if a subagent wrote inside this log.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_sidechain: bool,
    /// True if the last response is in this log for the second time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repeats_itself: bool,
}

struct ClaudeDecoder {
    state: ClaudeState,
    /// True if the whole log belongs to a subagent. Its prompts then begin turns.
    is_subagent_log: bool,
    subagents: Subagents,
    text: String,
}

impl LineDecoder for ClaudeDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let time = record_time(object);
        let inner = self.subagents.find_unlogged_message(object, out);
        if let Some((agent, _)) = inner {
            self.decode_normalized_messages(object, agent, at, time, out);
        }

        let id = inner.map_or(object, |(_, inner)| inner).text("uuid");
        if let Some(original) = copied_identity(id) {
            out.begin_copied_record(at, original, time);
            return self.decode_own_record(object, at, out);
        }
        let uuid = uuid_identity(id);
        // A record of a fork names its original. Copies made by the Agent SDK have uuids of their
        // own, and copies of such a copy name the copy.
        let forked_from = object.object("forkedFrom");
        let original = forked_from.and_then(|source| uuid_identity(source.text("messageUuid")));
        let is_copied = original.is_some_and(|original| out.is_in_history(original));
        let identity = if is_copied { uuid } else { original.or(uuid) };
        begin_identified_record((id, identity), raw, at, time, out);
        if is_copied {
            out.set_copied(true);
        }

        if let Some((agent, inner)) = inner {
            self.decode_subagent_message(inner, agent, out);
            return RecordOutcome::Events;
        }
        self.detect_said_copy(object, out);
        self.decode_own_record(object, at, out)
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl ClaudeDecoder {
    /// Decodes a record of the log itself, not of a subagent without a log.
    fn decode_own_record(
        &mut self,
        object: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        drift::count_unknown_fields(object, known::FIELDS, out);
        drift::count_unknown_type(object.text("type").unwrap_or("untyped"), known::RECORDS, out);
        out.set_parent(uuid_identity(object.text("parentUuid")));
        out.set_cwd(object.text("cwd"));
        out.set_branch(object.text("gitBranch"));
        out.set_version(object.text("version"));
        let is_sidechain = !self.is_subagent_log && object.flag("isSidechain") == Some(true);
        if is_sidechain {
            self.state.has_sidechain = true;
            out.set_sidechain(object.non_empty("agentId"));
        }

        match object.text("type") {
            Some("assistant") if object.object("message").is_some() => {
                self.state.queue.forget_taken_out();
                if is_sidechain {
                    self.decode_sidechain_response(object, out);
                } else {
                    self.decode_response(object, out);
                }
            }
            Some("user") if object.object("message").is_some() => {
                if self.state.queue.match_user_record(object, out) {
                    return RecordOutcome::Merged("twin_of_prompt");
                }
                user::decode_user_record(object, !is_sidechain, &mut self.text, out);
                self.state.printed.push_missing_output(object, &mut self.text, out);
                if self.subagents.lacks_counts(object, self.state.has_sidechain, out) {
                    out.set_confidence(Confidence::Partial);
                }
            }
            // Commands that the client itself runs.
            Some("system") if object.text("subtype") == Some("local_command") => {
                user::push_user_text(
                    object.text("content").unwrap_or(""),
                    None,
                    !is_sidechain,
                    out,
                );
            }
            Some("progress") => {
                self.decode_side_record("progress", object, out);
                self.state.printed.remember_output(object, at, out);
            }
            Some("attachment") => self.decode_attachment(object, out),
            Some("queue-operation") => {
                self.decode_side_record("queue-operation", object, out);
                self.state.queue.apply_operation(object, at, out);
            }
            kind => self.decode_side_record(kind.unwrap_or("untyped"), object, out),
        }
        RecordOutcome::Events
    }

    /// Decodes the messages of a subagent in `normalizedMessages` that were not read before. `time`
    /// is the time of their record.
    fn decode_normalized_messages(
        &mut self,
        progress: Value<'_>,
        agent: &str,
        at: RecordAt,
        time: Option<i64>,
        out: &mut Stream,
    ) {
        for message in subagent::normalized_answers(progress) {
            let uuid = uuid_identity(message.text("uuid"));
            if uuid.is_some_and(|uuid| !out.has_read(uuid)) {
                out.begin_record(at, uuid, parse_micros(message.text("timestamp")).or(time));
                self.decode_subagent_message(message, agent, out);
            }
        }
    }

    /// Decodes a message of a subagent that has no log of its own.
    fn decode_subagent_message(&mut self, message: Value<'_>, agent: &str, out: &mut Stream) {
        out.set_sidechain(Some(agent).filter(|agent| !agent.is_empty()));
        out.set_confidence(Confidence::Partial);
        if message.text("type") == Some("assistant") {
            self.decode_sidechain_response(message, out);
        } else {
            user::decode_user_record(message, false, &mut self.text, out);
        }
    }

    /// Decodes one line of a subagent's response. Its model is not that of the session.
    fn decode_sidechain_response(&mut self, object: Value<'_>, out: &mut Stream) {
        let own_model = out.session.model.take();
        self.decode_response(object, out);
        out.session.model = own_model;
    }

    /// Decodes one line of a model response.
    fn decode_response(&mut self, object: Value<'_>, out: &mut Stream) {
        let Some(message) = object.object("message") else { return };
        // Text that the client itself wrote in the assistant's role is not a model response.
        let is_api_error = object.flag("isApiErrorMessage") == Some(true);
        if is_api_error || message.text("model") == Some("<synthetic>") {
            return self.push_client_text(message, is_api_error, out);
        }

        drift::count_unknown_fields(message, known::MESSAGE_FIELDS, out);
        if let Some(counts) = message.object("usage") {
            drift::count_unknown_fields(counts, known::USAGE_FIELDS, out);
        }
        out.set_model(message.text("model"));
        let line = self.response_line(object, message, out);
        let step = line.step;

        let blocks = message.items("content");
        for block in &blocks {
            self.decode_block(*block, step, out);
        }
        if blocks.is_empty() {
            let text = message.text("content").unwrap_or("");
            out.push_text_in_step(EventType::Message, step, text);
        }
        self.push_usage(message, line, out);
    }

    /// Pushes text that the client wrote in the assistant's role.
    fn push_client_text(&mut self, message: Value<'_>, is_api_error: bool, out: &mut Stream) {
        self.text.clear();
        render::append_field(message, "content", &mut self.text);
        out.push_notice(
            if is_api_error { "api_error" } else { "synthetic" },
            &self.text,
            is_api_error.then_some(true),
        );
    }

    /// Decodes one content block of a model response.
    fn decode_block(&mut self, block: Value<'_>, step: i32, out: &mut Stream) {
        self.text.clear();
        let tool_call_id = block.non_empty("id");
        match block.text("type") {
            Some("text") => {
                let text = block.text("text").unwrap_or("");
                out.push_text_in_step(EventType::Message, step, text);
            }
            Some("thinking") => {
                let text = block.text("thinking").unwrap_or("");
                out.push_text_in_step(EventType::Reasoning, step, text);
            }
            Some("redacted_thinking") => {
                let bytes = block.text("data").map_or(0, str::len);
                let text = format!("[encrypted reasoning, {bytes} bytes]");
                out.push_text_in_step(EventType::Reasoning, step, &text);
            }
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                let arguments = Arguments::of_value(block.field("input"));
                let tool_name = block.text("name");
                arguments.push_call_in_step(tool_name, tool_call_id, step, out);
            }
            Some(kind) if kind.ends_with("_tool_result") => {
                render::append_field(block, "content", &mut self.text);
                let tool_call_id = block.non_empty("tool_use_id");
                let decoded =
                    DecodedEvent { text: &self.text, tool_call_id, ..DecodedEvent::default() };
                out.push_in_step(EventType::ToolResult, step, decoded);
            }
            kind => {
                if kind != Some("fallback") {
                    out.count_unknown("block", kind.unwrap_or("untyped"));
                }
                render::append_notification(block, &["type"], &mut self.text);
                let decoded = DecodedEvent {
                    subtype: Some(kind.unwrap_or("block")),
                    text: &self.text,
                    ..DecodedEvent::default()
                };
                out.push_in_step(EventType::Notification, step, decoded);
            }
        }
    }
}

/// Returns the time of a record. File snapshots have it in the snapshot.
fn record_time(object: Value<'_>) -> Option<i64> {
    let time = parse_micros(object.text("timestamp"));
    time.or_else(|| parse_micros(object.object("snapshot")?.text("timestamp")))
}
