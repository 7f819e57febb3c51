//! Decodes Kimi CLI's `wire.jsonl`: the events shown to the user (docs/formats.md#kimi).
//!
//! ```text
//! {"timestamp":1760000000.25,"message":{"type":"TurnBegin","payload":{"user_input":"..."}}}
//! {"timestamp":1760000001.5,"message":{"type":"ContentPart","payload":{"type":"text",...}}}
//! ```

use std::path::Path;

use schemas::{EventType, Usage};

use super::decoder::KimiDecoder;
use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::refusal::push_refusal_words;
use crate::source::container::has_log;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Value};

/// Known types that only report what happens alongside the conversation.
const KNOWN_TYPES: &[&str] = &[
    "ApprovalRequest",
    "ApprovalRequestResolved",
    "ApprovalResponse",
    "BtwBegin",
    "BtwEnd",
    "CompactionBegin",
    "CompactionEnd",
    "HookResolved",
    "HookTriggered",
    "MCPLoadingBegin",
    "MCPLoadingEnd",
    "Notification",
    "PlanDisplay",
    "QuestionRequest",
    "StepInterrupted",
    "ToolCallRequest",
];

/// Decodes an event. `agent` is empty for the main agent. For a subagent it is the subagent's id or
/// the id of the call that started it.
pub(super) fn decode_event(
    decoder: &mut KimiDecoder,
    message: Value<'_>,
    agent: &str,
    out: &mut Stream,
) -> RecordOutcome {
    let kind = message.text("type").unwrap_or("untyped");
    let payload = message.object("payload").unwrap_or(message);
    match kind {
        "TurnBegin" | "SteerInput" => decode_prompt(decoder, payload, agent, out),
        "ContentPart" => push_part(decoder, payload, agent, out),
        "ToolCall" => push_tool_call(decoder, payload, agent, out),
        "ToolResult" => decode_tool_result(decoder, payload, agent, out),
        "StatusUpdate" => decode_status(decoder, payload, agent, out),
        "SubagentEvent" => decode_subagent_event(decoder, payload, out),
        "StepBegin" | "TurnEnd" => {
            decoder.end_step(agent);
            RecordOutcome::Merged("marker")
        }
        // The complete call is in its own record.
        "ToolCallPart" => RecordOutcome::Merged("part_of_tool_call"),
        _ => {
            if !KNOWN_TYPES.contains(&kind) {
                out.count_unknown("record", kind);
            }
            decoder.push_record_fields(kind, payload, &[], out)
        }
    }
}

/// Decodes a prompt of the user, or the words of the parent agent to its subagent.
fn decode_prompt(
    decoder: &mut KimiDecoder,
    payload: Value<'_>,
    agent: &str,
    out: &mut Stream,
) -> RecordOutcome {
    let mut text = std::mem::take(&mut decoder.text);
    chat::append_field(payload, "user_input", &mut text);
    decoder.end_step(agent);
    if agent.is_empty() {
        decoder.push_prompt(&text, out);
    } else {
        out.push_text(EventType::User, &text);
    }
    decoder.text = text;
    RecordOutcome::Events
}

/// Decodes a part of a response.
pub(super) fn push_part(
    decoder: &mut KimiDecoder,
    part: Value<'_>,
    agent: &str,
    out: &mut Stream,
) -> RecordOutcome {
    let step = decoder.ensure_step(agent, out);
    if part.text("type") == Some("think") {
        let text = part.text("think").unwrap_or("");
        out.push_text_in_step(EventType::Reasoning, step, text);
    } else {
        decoder.text.clear();
        chat::append_part(part, &mut decoder.text);
        out.push_text_in_step(EventType::Message, step, &decoder.text);
    }
    RecordOutcome::Events
}

/// Decodes a call in the form of the OpenAI API: the arguments are JSON in a string.
pub(super) fn push_tool_call(
    decoder: &mut KimiDecoder,
    call: Value<'_>,
    agent: &str,
    out: &mut Stream,
) -> RecordOutcome {
    let step = decoder.ensure_step(agent, out);
    let function = call.object("function").unwrap_or(call);
    let mut arguments = Arguments::default();
    if let Some(text) = function.text("arguments") {
        arguments.read_json_text(text, &mut decoder.inner);
    } else if let Some(input) = function.object("arguments") {
        arguments.read_value(input);
    }
    let tool_name = function.text("name");
    let tool_call_id = call.non_empty("id");
    arguments.push_call_in_step(tool_name, tool_call_id, step, out);
    RecordOutcome::Events
}

/// Decodes a tool result. Its `message` describes the outcome in words, including the exit code.
fn decode_tool_result(
    decoder: &mut KimiDecoder,
    payload: Value<'_>,
    agent: &str,
    out: &mut Stream,
) -> RecordOutcome {
    let value =
        payload.object("return_value").or_else(|| payload.object("result")).unwrap_or(payload);
    let message = value.text("message").unwrap_or("");
    chat::append_field(value, "output", &mut decoder.text);
    if !decoder.text.is_empty() && !decoder.text.ends_with('\n') && !message.is_empty() {
        decoder.text.push('\n');
    }
    decoder.text.push_str(message);

    let exit_code = chat::parse_exit_code(message);
    let decoded = DecodedEvent {
        text: &decoder.text,
        tool_call_id: payload.non_empty("tool_call_id"),
        is_error: value.flag("is_error").or(exit_code.map(|code| code != 0)),
        exit_code,
        ..DecodedEvent::default()
    };
    out.push_in_step(EventType::ToolResult, decoder.last_step(agent), decoded);
    push_refusal_words(&decoder.text, out);
    RecordOutcome::Events
}

/// Pushes the tokens of a response. A status may be repeated, so only the increase counts.
fn decode_status(
    decoder: &mut KimiDecoder,
    payload: Value<'_>,
    agent: &str,
    out: &mut Stream,
) -> RecordOutcome {
    let Some(tokens) = payload.object("token_usage") else {
        return RecordOutcome::Merged("context_size");
    };
    let usage = Usage {
        input: tokens.int("input_other"),
        output: tokens.int("output"),
        cache_read: tokens.int("input_cache_read"),
        cache_write: tokens.int("input_cache_creation"),
        ..Usage::default()
    };

    let request_id = payload.non_empty("message_id");
    let before = decoder.state.ended.get(agent).filter(|(id, _)| Some(id.as_str()) == request_id);
    let increase = before.map_or(usage, |(_, before)| usage.minus(*before));
    if before.is_some() && increase.total() <= 0 {
        return RecordOutcome::Merged("repeated_usage");
    }

    if let Some(id) = request_id {
        decoder.state.ended.insert(agent.to_owned(), (id.to_owned(), usage));
    }
    let decoded = DecodedEvent { usage: increase, request_id, ..DecodedEvent::default() };
    out.push_in_step(EventType::TokenUsage, decoder.last_step(agent), decoded);
    RecordOutcome::Events
}

/// Decodes an event of a subagent. In versions where agents have ids, each has a log of its own
/// with the same content. The event is skipped only if that log exists.
fn decode_subagent_event(
    decoder: &mut KimiDecoder,
    payload: Value<'_>,
    out: &mut Stream,
) -> RecordOutcome {
    let agent = payload.non_empty("agent_id");
    if let Some(agent) = agent {
        let logs = Path::new(&out.session.source_path).with_file_name("subagents");
        if decoder.agents.has_log(agent, || has_log(&logs.join(agent).join("wire.jsonl"))) {
            return RecordOutcome::Merged("copy_of_subagent");
        }
    }

    let started_by = agent
        .or_else(|| payload.non_empty("parent_tool_call_id"))
        .or_else(|| payload.non_empty("task_tool_call_id"))
        .unwrap_or("subagent");
    let Some(event) = payload.object("event") else {
        return decoder.push_record_fields("SubagentEvent", payload, &[], out);
    };
    out.set_sidechain(Some(started_by));
    decode_event(decoder, event, started_by, out)
}
