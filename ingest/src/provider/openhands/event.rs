//! Decodes the events of a conversation.

use schemas::EventType;
use schemas::problem::ProblemKind;

use super::folder::UNREADABLE_EVENT;
use super::usage::ResponseUsages;
use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::provider::shared::identity::{begin_uuid_record, hash_id};
use crate::provider::shared::refusal::USER_WORDS;
use crate::provider::shared::{chat, drift};
use crate::stream::tree::ROOT;
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

/// The parent of the first event.
const ROOT_PARENT: &str = "__root__";

/// The text that OpenHands writes instead of the user's reason.
const NO_REASON: &str = "User rejected the action";

/// Fields of every event, which no notification repeats.
const ENVELOPE: &[&str] = &["id", "kind", "parent_id", "source", "timestamp"];

/// Fields of the events that are decoded. Sorted.
#[rustfmt::skip]
const KNOWN_FIELDS: &[&str] = &[
    "action", "action_id", "activated_skills", "classification", "critic_result",
    "dynamic_context", "error", "extended_content", "forgotten_event_ids", "id", "kind",
    "llm_message", "llm_response_id", "observation", "parent_id", "reasoning_content",
    "rejection_reason", "rejection_source", "responses_reasoning_item", "security_risk", "sender",
    "source", "summary", "summary_offset", "system_prompt", "thinking_blocks", "thought",
    "timestamp", "tool_call", "tool_call_id", "tool_name", "tools",
];

/// The kinds of events that become a notification with their fields.
const KNOWN_NOTICES: &[&str] = &[
    "Condensation",
    "CondensationRequest",
    "ConversationErrorEvent",
    "HookExecutionEvent",
    "InterruptEvent",
    "PauseEvent",
];

/// Decodes the events of one conversation in order.
#[derive(Default)]
pub(super) struct OpenHandsDecoder {
    usages: ResponseUsages,
    /// The response under way.
    response: String,
    last_entry: Option<u64>,
    /// Text of the current event.
    text: String,
    parser: Parser,
}

impl OpenHandsDecoder {
    /// Creates the decoder of a conversation whose responses have these tokens.
    pub(super) fn new(usages: ResponseUsages) -> Self {
        Self { usages, ..Self::default() }
    }

    /// Returns the event that was decoded last.
    pub(super) fn last_entry(&self) -> Option<u64> {
        self.last_entry
    }

    pub(super) fn decode_event(
        &mut self,
        event: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = event.text("id");
        let time = event.text("timestamp").and_then(chat::parse_unzoned);
        begin_uuid_record(id, raw, at, time, out);
        if let Some(id) = id {
            // Old events have no parent: they follow each other.
            let parent = match event.text("parent_id") {
                Some(ROOT_PARENT) => ROOT,
                Some(parent) => hash_id(parent),
                None => self.last_entry.unwrap_or(ROOT),
            };
            out.add_tree_entry(hash_id(id), parent);
            self.last_entry = Some(hash_id(id));
        }

        self.text.clear();
        let kind = event.text("kind").unwrap_or("untyped");
        if !KNOWN_NOTICES.contains(&kind) && ![OVERSIZED_RECORD, UNREADABLE_EVENT].contains(&kind) {
            drift::count_unknown_fields(event, KNOWN_FIELDS, out);
        }
        match (kind, event.text("source")) {
            ("MessageEvent", Some("user")) => self.decode_prompt(event, out),
            ("MessageEvent", Some("agent")) => self.decode_answer(event, out),
            ("ActionEvent", _) => self.decode_call(event, out),
            ("ObservationEvent", _) => self.decode_result(event, out),
            ("AgentErrorEvent", _) => self.push_result(event, None, event.text("error"), out),
            ("UserRejectObservation", _) => self.decode_refusal(event, out),
            ("SystemPromptEvent", _) => {
                for part in ["system_prompt", "dynamic_context"] {
                    let part = event.object(part).and_then(|part| part.text("text"));
                    render::append_line(part.unwrap_or(""), &mut self.text);
                }
                out.push_shortened("system_prompt", &self.text);
            }
            ("Condensation", _) => {
                self.begin_response(event, out);
                let summary = event.text("summary").unwrap_or("");
                out.push_notification("compact_summary", summary);
                self.push_tokens(event, out);
            }
            (OVERSIZED_RECORD, _) => {
                push_oversized("event", event.int("bytes").unwrap_or(0), at, out);
            }
            (UNREADABLE_EVENT, _) => {
                let name = event.text("name").unwrap_or("");
                out.push_notification(UNREADABLE_EVENT, event.text("data").unwrap_or(""));
                let message = format!("{name} is not JSON, so only its text was kept");
                out.push_problem(at, ProblemKind::BadJson, message);
            }
            _ => {
                drift::count_unknown_type(kind, KNOWN_NOTICES, out);
                render::append_notification(event, ENVELOPE, &mut self.text);
                let is_error = (kind == "ConversationErrorEvent").then_some(true);
                out.push_notice(kind, &self.text, is_error);
            }
        }
        RecordOutcome::Events
    }

    fn decode_prompt(&mut self, event: Value<'_>, out: &mut Stream) {
        self.append_message(event);
        out.push_prompt(&self.text);
        self.push_added_context(event, out);
    }

    /// Pushes what the program or a hook added to a prompt or a result.
    fn push_added_context(&mut self, event: Value<'_>, out: &mut Stream) {
        self.text.clear();
        chat::append_field(event, "extended_content", &mut self.text);
        if !self.text.trim().is_empty() {
            out.push_shortened("context", &self.text);
        }
    }

    fn decode_answer(&mut self, event: Value<'_>, out: &mut Stream) {
        self.begin_response(event, out);
        if let Some(message) = event.object("llm_message") {
            push_reasoning(message, out);
        }
        self.append_message(event);
        out.push_text(EventType::Message, &self.text);
        self.push_tokens(event, out);
    }

    fn append_message(&mut self, event: Value<'_>) {
        if let Some(message) = event.object("llm_message") {
            for part in message.items("content") {
                append_part(part, &mut self.text);
            }
        }
    }

    fn decode_call(&mut self, event: Value<'_>, out: &mut Stream) {
        self.begin_response(event, out);
        push_reasoning(event, out);
        for part in event.items("thought") {
            append_part(part, &mut self.text);
        }
        out.push_text(EventType::Message, &self.text);

        let call = event.object("tool_call");
        let name = event.non_empty("tool_name");
        // The answer to the user is the argument of a call.
        let action = event.object("action");
        if name == Some("finish") {
            let answer = action.and_then(|action| action.text("message")).unwrap_or("");
            out.push_text(EventType::Message, answer);
        }
        let arguments = match call.and_then(|call| call.field("arguments")) {
            Some(input) => Arguments::of_input(Some(input), &mut self.parser),
            None => Arguments::of_value(action),
        };
        arguments.push_call(name, event.non_empty("tool_call_id"), out);
        self.push_tokens(event, out);
    }

    fn decode_result(&mut self, event: Value<'_>, out: &mut Stream) {
        let observation = event.object("observation");
        if let Some(observation) = observation {
            let metadata = observation.object("metadata");
            out.set_cwd(metadata.and_then(|metadata| metadata.text("working_dir")));
            for part in observation.items("content") {
                append_part(part, &mut self.text);
            }
        }
        let text = std::mem::take(&mut self.text);
        self.push_result(event, observation, Some(&text), out);
        self.text = text;
        self.push_added_context(event, out);
    }

    /// Pushes the result of the call that an event names. Without an `observation` it has failed.
    fn push_result(
        &self,
        event: Value<'_>,
        observation: Option<Value<'_>>,
        text: Option<&str>,
        out: &mut Stream,
    ) {
        let metadata = observation.and_then(|observation| observation.object("metadata"));
        let exit_code = observation.and_then(|observation| observation.int32("exit_code"));
        let exit_code = exit_code.or_else(|| metadata?.int32("exit_code"));
        // -1 means that the command still runs.
        let exit_code = exit_code.filter(|code| *code != -1);
        let is_error = match observation {
            Some(observation) => {
                observation.flag("is_error") == Some(true)
                    || exit_code.is_some_and(|code| code != 0)
            }
            None => true,
        };
        let decoded = DecodedEvent {
            text: text.unwrap_or(""),
            tool_name: event.non_empty("tool_name"),
            tool_call_id: event.non_empty("tool_call_id"),
            is_error: Some(is_error),
            exit_code,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }

    /// Decodes a refused call. The reason is the user's, unless a hook refused.
    fn decode_refusal(&mut self, event: Value<'_>, out: &mut Stream) {
        let reason = event.text("rejection_reason").unwrap_or("");
        self.push_result(event, None, Some(reason), out);
        let is_of_user = event.text("rejection_source") != Some("hook");
        if is_of_user && !reason.is_empty() && reason != NO_REASON {
            out.push_notification(USER_WORDS, reason);
        }
    }

    /// Begins a step, unless the event is of the same response as the one before.
    fn begin_response(&mut self, event: Value<'_>, out: &mut Stream) {
        let response = event.text("llm_response_id").unwrap_or("");
        if response.is_empty() || response != self.response {
            out.begin_step();
            response.clone_into(&mut self.response);
        }
    }

    /// Pushes the tokens of the response of an event.
    fn push_tokens(&mut self, event: Value<'_>, out: &mut Stream) {
        if let Some(response) = event.non_empty("llm_response_id") {
            self.usages.push_response(response, out);
        }
    }
}

/// Pushes the reasoning in an event or a message, which is there once or twice.
fn push_reasoning(event: Value<'_>, out: &mut Stream) {
    let mut text = String::new();
    for block in event.items("thinking_blocks") {
        render::append_line(block.text("thinking").unwrap_or(""), &mut text);
    }
    if text.trim().is_empty() {
        text.clear();
        text.push_str(event.text("reasoning_content").unwrap_or(""));
    }
    if text.trim().is_empty()
        && let Some(item) = event.object("responses_reasoning_item")
    {
        text.clear();
        for part in item.items("summary") {
            render::append_line(string_value(part).unwrap_or(""), &mut text);
        }
    }
    if !text.trim().is_empty() {
        out.push_text(EventType::Reasoning, &text);
    }
}

/// Appends one part of a content: a text, or pictures by their addresses.
fn append_part(part: Value<'_>, out: &mut String) {
    render::begin_new_line(out);
    let images = part.items("image_urls");
    if images.is_empty() {
        return chat::append_part(part, out);
    }
    for image in images {
        render::begin_new_line(out);
        let url = string_value(image).unwrap_or("");
        chat::append_media(url, out);
    }
}
