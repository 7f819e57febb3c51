//! Reads the session logs of iFlow CLI from `~/.iflow/projects/<cwd>/session-<uuid>.jsonl`
//! (docs/formats.md#iflow).
//!
//! iFlow is a fork of Gemini CLI that writes Claude's records. Its session ids begin with
//! `session-`, Claude's do not:
//!
//! ```text
//! {"type":"user","sessionId":"session-<uuid>","uuid":"...","userType":"...","isSidechain":false,
//!  "message":{"role":"user","content":"..."}}
//! ```
//!
//! While a response streams in, each `assistant` record shows a window of it, so two or three
//! records repeat the same call. Calls count once, by their id. All records up to the next result
//! or prompt are one response.

use std::collections::VecDeque;

use schemas::{EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::{
    LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim, state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::{begin_uuid_record, uuid_identity};
use crate::provider::shared::{chat, drift, function_response, prompt, refusal};
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros, push_bounded};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::IFlow,
    has_unique_ids: true,
    decoder_version: 2,
    roots: |places| vec![places.home_path(".iflow/projects")],
    sniff: claim_log,
    quirks: Quirks::NONE,
    reader: LogReader::Lines(|_, state| {
        let state = state.and_then(|state| IflowState::deserialize(state).ok()).unwrap_or_default();
        Box::new(IflowDecoder { state, text: String::new() })
    }),
};

/// Beginnings of text that no user typed in the user's role, each with the subtype of its
/// notification.
const MACHINE_PREFIXES: &[(&str, &str)] = &[
    ("[Request interrupted", "interrupted"),
    ("<state_snapshot>", "compact_summary"),
    ("<system-reminder>", "system_reminder"),
    ("<local-command-", "local_command_output"),
];

/// Fields of a record's envelope, which no notification repeats.
const ENVELOPE: &[&str] = &[
    "type",
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "isSidechain",
    "userType",
    "cwd",
    "gitBranch",
    "version",
];

/// Maximum number of call ids that are remembered. A window reaches back only a few records.
const MAX_CALLS: usize = 64;

/// Claims a log by its first record that has the form of iFlow's.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let first = head.objects.iter().find(|object| is_iflow_record(object))?;
    Some(SessionClaim {
        first_record: uuid_identity(first["uuid"].as_str()),
        ..SessionClaim::new(Provider::IFlow, first["sessionId"].as_str()?)
    })
}

/// Returns whether a record is one of iFlow's. Claude's session ids are bare uuids.
fn is_iflow_record(object: &serde_json::Value) -> bool {
    object["sessionId"].as_str().is_some_and(|id| id.starts_with("session-"))
        && ["uuid", "userType"].iter().all(|key| object[key].is_string())
        && object["isSidechain"].is_boolean()
        && object["message"]["role"].is_string()
        && object["message"].get("content").is_some()
}

/// The state of the decoder between two records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
struct IflowState {
    /// Ids of the last calls.
    calls: VecDeque<String>,
    /// Hashes of the texts of the response under way.
    texts: Vec<u64>,
    /// Tokens of the response under way that were already counted.
    usage: Usage,
    /// True while a response of the model is under way.
    in_response: bool,
}

/// Decoder of one log.
struct IflowDecoder {
    state: IflowState,
    /// Text of the current event.
    text: String,
}

impl LineDecoder for IflowDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = object.text("uuid");
        begin_uuid_record(id, raw, at, parse_micros(object.text("timestamp")), out);
        out.set_cwd(object.text("cwd"));
        out.set_branch(object.text("gitBranch"));
        out.set_version(object.text("version"));
        let is_sidechain = object.flag("isSidechain") == Some(true);
        if is_sidechain {
            out.set_sidechain(None);
        }

        match (object.text("type"), object.object("message")) {
            (Some("user"), Some(message)) => {
                self.state.in_response = false;
                self.decode_user_message(object, message, !is_sidechain, out);
            }
            (Some("assistant"), Some(message)) => self.decode_response(message, out),
            (kind, _) => drift::push_unknown_record(kind, object, ENVELOPE, out),
        }
        // A window may show nothing new.
        RecordOutcome::of_pushed(out, "repeated_blocks")
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl IflowDecoder {
    /// Decodes a user record: a prompt is a string, results are a list of blocks.
    fn decode_user_message(
        &mut self,
        object: Value<'_>,
        message: Value<'_>,
        starts_turn: bool,
        out: &mut Stream,
    ) {
        let blocks = message.items("content");
        for block in blocks.iter().filter(|block| is_tool_result(block)) {
            self.decode_tool_result(object, *block, out);
        }

        self.text.clear();
        if blocks.is_empty()
            && let Some(content) = message.field("content")
        {
            render::append_content(content, &mut self.text);
        }
        for block in blocks.iter().filter(|block| !is_tool_result(block)) {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            render::append_block(*block, &mut self.text);
        }
        if self.text.is_empty() {
            return;
        }

        let start = self.text.trim_start();
        let machine = MACHINE_PREFIXES.iter().find(|(prefix, _)| start.starts_with(prefix));
        if let Some((_, subtype)) = machine {
            out.push_notification(subtype, &self.text);
        } else if object.flag("isMeta") == Some(true) {
            out.push_notification("meta", &self.text);
        } else {
            prompt::push_prompt(&self.text, starts_turn, out);
        }
    }

    /// Decodes one tool result. `object` is the record and `block` the result in it.
    fn decode_tool_result(&mut self, object: Value<'_>, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let content = block.field("content");
        let mut is_error = block.flag("is_error") == Some(true);
        match (content.and_then(wrapped_response), content) {
            (Some(response), _) => {
                is_error |= function_response::append_response(response, &mut self.text);
            }
            (None, Some(content)) => render::append_content(content, &mut self.text),
            (None, None) => {}
        }
        if self.text.is_empty() {
            let shown = content.and_then(|content| content.text("resultDisplay"));
            self.text.push_str(shown.unwrap_or(""));
        }

        let summary = object.object("toolUseResult");
        let status = summary.and_then(|summary| summary.text("status"));
        let exit_code = function_response::parse_exit_code(&self.text);
        is_error |= matches!(status, Some("error" | "failed"));
        is_error |= exit_code.is_some_and(|code| code != 0);
        let decoded = DecodedEvent {
            subtype: status.filter(|status| *status == "cancelled"),
            text: &self.text,
            tool_name: summary.and_then(|summary| summary.text("toolName")),
            tool_call_id: block.non_empty("tool_use_id"),
            is_error: Some(is_error),
            exit_code,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
        if is_error {
            refusal::push_refusal_words(&self.text, out);
        }
    }

    /// Decodes one window of a response.
    fn decode_response(&mut self, message: Value<'_>, out: &mut Stream) {
        out.set_model(message.text("model"));
        if !self.state.in_response {
            out.begin_step();
            self.state.in_response = true;
            self.state.texts.clear();
            self.state.usage = Usage::default();
        }

        for block in message.items("content") {
            self.decode_block(block, out);
        }
        self.push_new_text(EventType::Message, message.text("content").unwrap_or(""), out);

        // Both counts are zero if the model's provider gave none.
        let usage = message.object("usage").map(chat::read_anthropic_usage).unwrap_or_default();
        if usage.total() > self.state.usage.total() {
            let decoded = DecodedEvent {
                usage: usage.minus(self.state.usage),
                request_id: message.non_empty("id"),
                ..DecodedEvent::default()
            };
            out.push(EventType::TokenUsage, decoded);
            self.state.usage = usage;
        }
    }

    /// Decodes one block of a response.
    fn decode_block(&mut self, block: Value<'_>, out: &mut Stream) {
        match block.text("type") {
            Some("text") => {
                self.push_new_text(EventType::Message, block.text("text").unwrap_or(""), out);
            }
            Some("thinking") => {
                self.push_new_text(EventType::Reasoning, block.text("thinking").unwrap_or(""), out);
            }
            Some("tool_use") => self.push_new_call(block, out),
            kind => {
                let kind = kind.unwrap_or("block");
                drift::push_unknown_block(kind, block, out);
            }
        }
    }

    /// Appends a text of a response, unless an earlier window showed it.
    fn push_new_text(&mut self, kind: EventType, text: &str, out: &mut Stream) {
        let hash = xxh3_64(text.as_bytes());
        if text.is_empty() || self.state.texts.contains(&hash) {
            return;
        }
        self.state.texts.push(hash);
        out.push_text(kind, text);
    }

    /// Appends a call, unless an earlier window showed it.
    fn push_new_call(&mut self, block: Value<'_>, out: &mut Stream) {
        let id = block.non_empty("id");
        if let Some(id) = id {
            if self.state.calls.iter().any(|known| known == id) {
                return;
            }
            push_bounded(&mut self.state.calls, MAX_CALLS, id.to_owned());
        }

        let arguments = Arguments::of_value(block.field("input"));
        arguments.push_call(block.text("name"), id, out);
    }
}

/// Returns the `functionResponse` of a tool result. Gemini CLI's wrapping of it may be inside
/// `responseParts`, as an object or as the first element of a list.
fn wrapped_response(content: Value<'_>) -> Option<Value<'_>> {
    let first_part = content.items("responseParts").first().copied();
    let wrapped = content.object("responseParts").or(first_part).unwrap_or(content);
    wrapped.object("functionResponse")
}

fn is_tool_result(block: &Value<'_>) -> bool {
    block.text("type") == Some("tool_result")
}
