//! Decodes chat messages in the form of most model APIs, one per line, at the top level or inside
//! `message`:
//!
//! ```text
//! {"role":"user","content":"..."}
//! {"role":"assistant","content":"...","tool_calls":[{"id":"...","function":{...}}]}
//! {"role":"tool","tool_call_id":"...","content":"..."}
//! ```
//!
//! This format is the last resort: it is tried only if no provider claims the file, and only if all
//! its first lines are such messages.
//!
//! A `user` message begins a turn. An `assistant` message is one step. `system` and `developer`
//! messages are notifications.

use schemas::{EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::provider::format::{LogHead, SessionClaim};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::{chat, prompt};
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

/// The roles of messages that are read.
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];

/// Fields of a line that may hold its time.
const TIMES: &[&str] = &["timestamp", "created_at", "created", "time", "ts"];

/// The side of the conversation that the last records belong to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct GenericState {
    /// True while a response of the model is under way.
    pub(super) in_response: bool,
    /// True if no response came since the last prompt.
    pub(super) after_prompt: bool,
}

impl GenericState {
    /// Records output of the model. Begins a step if `starts_step` is true or no response is
    /// under way.
    pub(super) fn record_output(&mut self, starts_step: bool, out: &mut Stream) {
        if starts_step || !self.in_response {
            out.begin_step();
        }
        self.in_response = true;
        self.after_prompt = false;
    }

    /// Records a result, which ends the response.
    pub(super) fn end_response(&mut self) {
        self.in_response = false;
    }

    /// Records a prompt, which ends the response.
    pub(super) fn record_prompt(&mut self) {
        self.in_response = false;
        self.after_prompt = true;
    }
}

/// Claims a file whose first lines are all messages, at least one of them by the user or the model.
pub(super) fn claim_chat_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let mut has_speaker = false;
    for object in &head.objects {
        let role = message_role(object)?;
        has_speaker |= matches!(role, "user" | "assistant");
    }
    if !has_speaker {
        return None;
    }

    let first = head.objects.first()?;
    let session = ["sessionId", "session_id"].iter().find_map(|key| first[key].as_str());
    Some(SessionClaim::new(
        Provider::Generic,
        session.filter(|id| !id.is_empty()).unwrap_or_else(|| head.file_stem()),
    ))
}

/// Returns the role of the message in a line, or `None` if the line is not a message with content.
fn message_role(line: &Json) -> Option<&str> {
    let message = if line["role"].is_string() { line } else { &line["message"] };
    let role = message["role"].as_str().filter(|role| ROLES.contains(role))?;
    let has_content =
        ["content", "tool_calls", "function_call"].iter().any(|key| !message[key].is_null());
    has_content.then_some(role)
}

/// Returns the message in a line, or `None` if the line is not a message.
pub(super) fn message_in_line(line: Value<'_>) -> Option<Value<'_>> {
    if has_known_role(line) {
        return Some(line);
    }
    line.object("message").filter(|message| has_known_role(*message))
}

fn has_known_role(message: Value<'_>) -> bool {
    message.text("role").is_some_and(|role| ROLES.contains(&role))
}

/// Returns the time of a line in microseconds.
pub(super) fn line_time(object: Value<'_>) -> Option<i64> {
    TIMES.iter().find_map(|key| object.field(key).and_then(chat::parse_time))
}

/// Decodes the message of a line into events. `object` is the line.
pub(super) fn decode_message(
    object: Value<'_>,
    message: Value<'_>,
    state: &mut GenericState,
    parser: &mut Parser,
    out: &mut Stream,
) {
    out.set_cwd(object.text("cwd"));
    out.set_branch(object.text("gitBranch").or_else(|| object.text("git_branch")));
    out.set_version(object.text("version"));
    out.set_model(message.text("model").or_else(|| object.text("model")));
    match message.text("role") {
        Some("user") => decode_user_message(message, state, out),
        Some("assistant") => {
            state.record_output(true, out);
            push_response(message, parser, out);
            push_usage(object, message, out);
        }
        Some("tool" | "function") => {
            state.end_response();
            push_tool_result(message, message.non_empty("tool_call_id"), out);
        }
        role => {
            let mut text = String::new();
            chat::append_field(message, "content", &mut text);
            render::truncate_notification(&mut text);
            let decoded = DecodedEvent { subtype: role, text: &text, ..DecodedEvent::default() };
            out.push(EventType::Notification, decoded);
        }
    }
}

/// Decodes a prompt, and the tool results that Anthropic's API puts into messages of the user.
fn decode_user_message(message: Value<'_>, state: &mut GenericState, out: &mut Stream) {
    let mut text = String::new();
    let mut has_results = false;
    for block in message.items("content") {
        if block.text("type") == Some("tool_result") {
            state.end_response();
            push_tool_result(block, block.non_empty("tool_use_id"), out);
            has_results = true;
        } else {
            append_block(block, &mut text);
        }
    }
    text.push_str(message.text("content").unwrap_or_default());

    // A message with results only is not a prompt.
    if !text.is_empty() || !has_results {
        state.record_prompt();
        prompt::push_prompt(&text, true, out);
    }
}

/// Pushes the model's output, in the order in which the API gives it.
fn push_response(message: Value<'_>, parser: &mut Parser, out: &mut Stream) {
    let reasoning =
        message.non_empty("reasoning_content").or_else(|| message.non_empty("reasoning"));
    if let Some(text) = reasoning {
        out.push_text(EventType::Reasoning, text);
    }
    let answer = message.non_empty("content").or_else(|| message.non_empty("refusal"));
    if let Some(text) = answer {
        out.push_text(EventType::Message, text);
    }
    for block in message.items("content") {
        match block.text("type") {
            Some("tool_use") => push_tool_call(block, block, "input", parser, out),
            Some("thinking") => {
                let text = block.text("thinking").unwrap_or("");
                out.push_text(EventType::Reasoning, text);
            }
            _ => {
                let mut text = String::new();
                append_block(block, &mut text);
                out.push_text(EventType::Message, &text);
            }
        }
    }

    for item in message.items("tool_calls") {
        push_tool_call(item, item.object("function").unwrap_or(item), "arguments", parser, out);
    }
    if let Some(function) = message.object("function_call") {
        push_tool_call(function, function, "arguments", parser, out);
    }
}

/// Pushes the token counts of a response, which are in its message or in the line around it.
fn push_usage(object: Value<'_>, message: Value<'_>, out: &mut Stream) {
    let usage = message.object("usage").or_else(|| object.object("usage"));
    let request_id = message.non_empty("id").or_else(|| object.non_empty("id"));
    out.push_usage(usage.map(read_usage).unwrap_or_default(), None, request_id);
}

/// Decodes a call. `item` holds the id. `function` holds the name and the arguments, which may be
/// JSON in a string.
fn push_tool_call(
    item: Value<'_>,
    function: Value<'_>,
    arguments_key: &str,
    parser: &mut Parser,
    out: &mut Stream,
) {
    let arguments = Arguments::of_input(function.field(arguments_key), parser);
    arguments.push_call(function.non_empty("name"), item.non_empty("id"), out);
}

/// Decodes a tool result.
fn push_tool_result(result: Value<'_>, tool_call_id: Option<&str>, out: &mut Stream) {
    let mut text = String::new();
    chat::append_field(result, "content", &mut text);
    let decoded = DecodedEvent {
        text: &text,
        tool_name: result.non_empty("name"),
        tool_call_id,
        is_error: result.flag("is_error"),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}

/// Appends a block on a line of its own.
fn append_block(block: Value<'_>, text: &mut String) {
    render::begin_new_line(text);
    chat::append_part(block, text);
}

/// Reads token counts with the names of OpenAI or of Anthropic. OpenAI's prompt tokens include the
/// cached ones.
fn read_usage(usage: Value<'_>) -> Usage {
    if let Some(prompt) = usage.int("prompt_tokens") {
        let prompt_details = usage.object("prompt_tokens_details");
        let completion_details = usage.object("completion_tokens_details");
        let cached = prompt_details.and_then(|details| details.int("cached_tokens"));
        return Usage {
            input: Some((prompt - cached.unwrap_or(0)).max(0)),
            output: usage.int("completion_tokens"),
            cache_read: cached,
            reasoning: completion_details.and_then(|details| details.int("reasoning_tokens")),
            ..Usage::default()
        };
    }
    chat::read_anthropic_usage(usage)
}
