//! Chat messages in the form of most model APIs, one per line:
//! `{"role", "content", "tool_calls"?, "tool_call_id"?}`, at the top level or inside `message`.
//! This format is the last resort: it is tried only if no provider claims the file, and only if all
//! its first lines are such messages.
//!
//! A `user` message begins a turn. An `assistant` message is one step. `system` and `developer`
//! messages are notifications.

use schemas::{EventType, Provider, Usage};

use super::state::State;
use crate::provider::format::{Claim, Head};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::{chat, prompt};
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Parser, Value, string};
use crate::text::render;

const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];

/// Fields of a line that may hold its time.
const TIMES: &[&str] = &["timestamp", "created_at", "created", "time", "ts"];

pub(super) fn sniff(head: &Head<'_>) -> Option<Claim> {
    let role = |object: &serde_json::Value| {
        let message = if object["role"].is_string() { object } else { &object["message"] };
        let role = message["role"].as_str().filter(|role| ROLES.contains(role))?;
        let speaks =
            ["content", "tool_calls", "function_call"].iter().any(|key| !message[key].is_null());
        speaks.then(|| role.to_owned())
    };
    let roles: Vec<_> = head.objects.iter().map(role).collect::<Option<_>>()?;
    if !roles.iter().any(|role| matches!(role.as_str(), "user" | "assistant")) {
        return None;
    }
    let first = head.objects.first()?;
    let session = ["sessionId", "session_id"].iter().find_map(|key| first[key].as_str());
    Some(Claim {
        provider: Provider::Generic,
        native_id: session.filter(|id| !id.is_empty()).unwrap_or_else(|| head.stem()).to_owned(),
        agent_id: None,
        parent: None,
        relation: None,
        first_record: None,
    })
}

/// Returns the message in a line, if it holds one.
pub(super) fn message(object: Value<'_>) -> Option<Value<'_>> {
    let is_message = |value: &Value<'_>| value.text("role").is_some_and(|r| ROLES.contains(&r));
    Some(object).filter(is_message).or_else(|| object.object("message").filter(is_message))
}

/// Returns the time of a line in microseconds.
pub(super) fn time(object: Value<'_>) -> Option<i64> {
    TIMES.iter().find_map(|key| object.field(key).and_then(chat::instant))
}

/// Decodes the message of a line. `object` is the line.
pub(super) fn decode(
    object: Value<'_>,
    message: Value<'_>,
    state: &mut State,
    parser: &mut Parser,
    out: &mut Stream,
) {
    out.set_cwd(object.text("cwd"));
    out.set_branch(object.text("gitBranch").or_else(|| object.text("git_branch")));
    out.set_version(object.text("version"));
    out.set_model(message.text("model").or_else(|| object.text("model")));
    let mut text = String::new();
    let content = message.field("content");
    match message.text("role") {
        Some("user") => {
            let blocks = message.items("content");
            let (results, rest): (Vec<_>, Vec<_>) =
                blocks.into_iter().partition(|block| block.text("type") == Some("tool_result"));
            for result in &results {
                state.rest();
                answer(*result, result.non_empty("tool_use_id"), out);
            }
            match content.and_then(string) {
                Some(typed) => text.push_str(typed),
                None => rest.iter().for_each(|block| append(*block, &mut text)),
            }
            if !text.is_empty() || results.is_empty() {
                state.ask();
                prompt::typed(&text, true, out);
            }
        }
        Some("assistant") => {
            state.respond(true, out);
            response(message, parser, out);
            let usage = message.object("usage").or_else(|| object.object("usage"));
            let usage = usage.map(usage_of).unwrap_or_default();
            if usage.total() > 0 {
                let request_id = message.non_empty("id").or_else(|| object.non_empty("id"));
                out.push(EventType::TokenUsage, Draft { usage, request_id, ..Draft::default() });
            }
        }
        Some("tool" | "function") => {
            state.rest();
            answer(message, message.non_empty("tool_call_id"), out);
        }
        role => {
            content.inspect(|content| chat::content(*content, &mut text));
            render::cut(&mut text);
            let draft = Draft { subtype: role, text: &text, ..Draft::default() };
            out.push(EventType::Notification, draft);
        }
    }
}

/// Pushes the model's output, in the order in which the API gives it.
fn response(message: Value<'_>, parser: &mut Parser, out: &mut Stream) {
    let thought = message.non_empty("reasoning_content").or_else(|| message.non_empty("reasoning"));
    if let Some(text) = thought {
        out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
    }
    let said = message.non_empty("content").or_else(|| message.non_empty("refusal"));
    if let Some(text) = said {
        out.push(EventType::Message, Draft { text, ..Draft::default() });
    }
    for block in message.items("content") {
        let mut text = String::new();
        match block.text("type") {
            Some("tool_use") => call(block, block, "input", parser, out),
            Some("thinking") => {
                let text = block.text("thinking").unwrap_or("");
                out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
            }
            _ => {
                append(block, &mut text);
                out.push(EventType::Message, Draft { text: &text, ..Draft::default() });
            }
        }
    }
    for item in message.items("tool_calls") {
        call(item, item.object("function").unwrap_or(item), "arguments", parser, out);
    }
    if let Some(function) = message.object("function_call") {
        call(function, function, "arguments", parser, out);
    }
}

/// Decodes a call. `item` has its id, and `function` its name and arguments, which may be JSON in a
/// string.
fn call(
    item: Value<'_>,
    function: Value<'_>,
    arguments_key: &str,
    parser: &mut Parser,
    out: &mut Stream,
) {
    let mut arguments = Arguments::default();
    if let Some(input) = function.field(arguments_key) {
        match string(input) {
            Some(text) => arguments.read_json_text(text, parser),
            None => arguments.read(input),
        }
    }
    let draft = Draft {
        tool_name: function.non_empty("name"),
        tool_call_id: item.non_empty("id"),
        ..arguments.draft()
    };
    out.push(EventType::ToolCall, draft);
}

/// Decodes a tool result.
fn answer(result: Value<'_>, tool_call_id: Option<&str>, out: &mut Stream) {
    let mut text = String::new();
    result.field("content").inspect(|content| chat::content(*content, &mut text));
    let draft = Draft {
        text: &text,
        tool_name: result.non_empty("name"),
        tool_call_id,
        is_error: result.flag("is_error"),
        ..Draft::default()
    };
    out.push(EventType::ToolResult, draft);
}

/// Appends a block on a line of its own.
fn append(block: Value<'_>, text: &mut String) {
    render::new_line(text);
    chat::part(block, text);
}

/// Parses token counts in OpenAI's names, with the cached tokens included in the prompt, or in
/// Anthropic's.
fn usage_of(usage: Value<'_>) -> Usage {
    let part = |of: &str, key: &str| usage.object(of).and_then(|details| details.int(key));
    if let Some(prompt) = usage.int("prompt_tokens") {
        let cached = part("prompt_tokens_details", "cached_tokens");
        return Usage {
            input: Some((prompt - cached.unwrap_or(0)).max(0)),
            output: usage.int("completion_tokens"),
            cache_read: cached,
            reasoning: part("completion_tokens_details", "reasoning_tokens"),
            ..Usage::default()
        };
    }
    Usage {
        input: usage.int("input_tokens"),
        output: usage.int("output_tokens"),
        cache_read: usage.int("cache_read_input_tokens"),
        cache_write: usage.int("cache_creation_input_tokens"),
        ..Usage::default()
    }
}
