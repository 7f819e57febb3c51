//! Decodes Kimi CLI's `wire.jsonl`: `{timestamp, message: {type, payload}}`, the events shown to
//! the user (docs/formats.md#kimi).

use std::path::Path;

use schemas::{EventType, Usage};

use super::decoder::Decoder;
use crate::provider::format::Outcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::source::container::is_there;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value};

/// Known types that only report what happens alongside the conversation.
const KNOWN: &[&str] = &[
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

/// Decodes an event. `agent` is empty for the main agent; for a subagent it is the subagent's id or
/// the call that started it.
pub(super) fn record(
    decoder: &mut Decoder,
    message: Value<'_>,
    agent: &str,
    out: &mut Stream,
) -> Outcome {
    let kind = message.text("type").unwrap_or("untyped");
    let payload = message.object("payload").unwrap_or(message);
    match kind {
        "TurnBegin" | "SteerInput" => prompt(decoder, payload, agent, out),
        "ContentPart" => part(decoder, payload, agent, out),
        "ToolCall" => call(decoder, payload, agent, out),
        "ToolResult" => result(decoder, payload, agent, out),
        "StatusUpdate" => status(decoder, payload, agent, out),
        "SubagentEvent" => subagent(decoder, payload, out),
        "StepBegin" | "TurnEnd" => {
            decoder.end_step(agent);
            Outcome::Merged("marker")
        }
        // The complete call is in its own record.
        "ToolCallPart" => Outcome::Merged("part_of_tool_call"),
        _ => {
            if !KNOWN.contains(&kind) {
                out.drift("record", kind);
            }
            decoder.notify(kind, payload, &[], out)
        }
    }
}

fn prompt(decoder: &mut Decoder, payload: Value<'_>, agent: &str, out: &mut Stream) -> Outcome {
    let mut text = std::mem::take(&mut decoder.text);
    payload.field("user_input").inspect(|input| chat::content(*input, &mut text));
    decoder.end_step(agent);
    if agent.is_empty() {
        decoder.prompt(&text, out);
    } else {
        // The parent's words to its subagent.
        out.push(EventType::User, Draft { text: &text, ..Draft::default() });
    }
    decoder.text = text;
    Outcome::Events
}

/// Decodes a part of a response.
pub(super) fn part(
    decoder: &mut Decoder,
    part: Value<'_>,
    agent: &str,
    out: &mut Stream,
) -> Outcome {
    let step = decoder.step(agent, out);
    if part.text("type") == Some("think") {
        let text = part.text("think").unwrap_or("");
        out.push_in(EventType::Reasoning, step, Draft { text, ..Draft::default() });
    } else {
        decoder.text.clear();
        chat::part(part, &mut decoder.text);
        let draft = Draft { text: &decoder.text, ..Draft::default() };
        out.push_in(EventType::Message, step, draft);
    }
    Outcome::Events
}

/// Decodes a call in the form of the OpenAI API: the arguments are JSON in a string.
pub(super) fn call(
    decoder: &mut Decoder,
    call: Value<'_>,
    agent: &str,
    out: &mut Stream,
) -> Outcome {
    let step = decoder.step(agent, out);
    let function = call.object("function").unwrap_or(call);
    let mut arguments = Arguments::default();
    if let Some(text) = function.text("arguments") {
        arguments.read_json_text(text, &mut decoder.inner);
    } else if let Some(input) = function.object("arguments") {
        arguments.read(input);
    }
    let tool_name = function.text("name");
    let tool_call_id = call.non_empty("id");
    let draft = Draft { tool_name, tool_call_id, ..arguments.draft() };
    out.push_in(EventType::ToolCall, step, draft);
    Outcome::Events
}

/// Decodes a tool result. `message` describes the outcome in words, including the exit code.
fn result(decoder: &mut Decoder, payload: Value<'_>, agent: &str, out: &mut Stream) -> Outcome {
    let value =
        payload.object("return_value").or_else(|| payload.object("result")).unwrap_or(payload);
    let message = value.text("message").unwrap_or("");
    value.field("output").inspect(|output| chat::content(*output, &mut decoder.text));
    if !decoder.text.is_empty() && !decoder.text.ends_with('\n') && !message.is_empty() {
        decoder.text.push('\n');
    }
    decoder.text.push_str(message);
    let exit_code = chat::exit_code(message);
    let draft = Draft {
        text: &decoder.text,
        tool_call_id: payload.non_empty("tool_call_id"),
        is_error: value.flag("is_error").or(exit_code.map(|code| code != 0)),
        exit_code,
        ..Draft::default()
    };
    out.push_in(EventType::ToolResult, decoder.last_step(agent), draft);
    Outcome::Events
}

/// Appends the tokens of a response. A status may be repeated, so only the increase counts.
fn status(decoder: &mut Decoder, payload: Value<'_>, agent: &str, out: &mut Stream) -> Outcome {
    let Some(tokens) = payload.object("token_usage") else {
        return Outcome::Merged("context_size");
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
    let news = before.map_or(usage, |(_, before)| usage.minus(*before));
    if before.is_some() && news.total() <= 0 {
        return Outcome::Merged("repeated_usage");
    }
    if let Some(id) = request_id {
        decoder.state.ended.insert(agent.to_owned(), (id.to_owned(), usage));
    }
    let draft = Draft { usage: news, request_id, ..Draft::default() };
    out.push_in(EventType::TokenUsage, decoder.last_step(agent), draft);
    Outcome::Events
}

/// Decodes an event of a subagent. In versions where agents have ids, each has a log of its own
/// with the same content. The event is skipped only if that log exists.
fn subagent(decoder: &mut Decoder, payload: Value<'_>, out: &mut Stream) -> Outcome {
    let agent = payload.non_empty("agent_id");
    let has_log = |agent: &str| {
        let logs = Path::new(&out.session.source_path).with_file_name("subagents");
        decoder.agents.has(agent, || is_there(&logs.join(agent).join("wire.jsonl")))
    };
    if agent.is_some_and(has_log) {
        return Outcome::Merged("copy_of_subagent");
    }
    let started_by = agent
        .or_else(|| payload.non_empty("parent_tool_call_id"))
        .or_else(|| payload.non_empty("task_tool_call_id"))
        .unwrap_or("subagent");
    let Some(event) = payload.object("event") else {
        return decoder.notify("SubagentEvent", payload, &[], out);
    };
    out.set_sidechain(Some(started_by));
    record(decoder, event, started_by, out)
}
