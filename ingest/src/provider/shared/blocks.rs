//! Decodes messages whose content is a list of blocks, as in the API of Anthropic. Agents that write
//! them differ in few names, and some put what a block says in an object named like its type:
//!
//! ```text
//! {"role":"assistant","content":[{"type":"thinking","thinking":"..."},{"type":"text","text":"..."},
//!   {"type":"tool_use","id":"c1","name":"...","input":{...}}]}
//! {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"..."}]}
//! {"type":"tool_use","tool_use":{"tool_use_id":"c1","name":"...","input":{...}}}
//! {"type":"tool-call","toolCallId":"c1","toolName":"...","input":{...}}
//! ```

use schemas::EventType;

use super::arguments::Arguments;
use super::machine_text::{MachineText, split_machine_text};
use super::{chat, drift};
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// Pushes the content of a message of the user: the results in it, and one prompt of all texts and
/// pictures. Machine text before the prompt becomes notifications.
pub(crate) fn push_user_content(
    content: Option<Value<'_>>,
    machine_texts: &'static [MachineText],
    out: &mut Stream,
) {
    let mut text = String::new();
    for block in content_blocks(content, &mut text) {
        match block.text("type") {
            Some(kind) if is_result(kind) => push_result(kind, block, out),
            Some("text" | "image" | "image_url" | "document") | None => {
                render::begin_new_line(&mut text);
                chat::append_part(block, &mut text);
            }
            Some(kind) => drift::push_unknown_block(kind, block, out),
        }
    }
    push_user_text(&text, machine_texts, out);
}

/// Pushes a text in the user's role: a prompt, and notifications for the machine text before it.
pub(crate) fn push_user_text(text: &str, machine_texts: &'static [MachineText], out: &mut Stream) {
    let mut rest = text;
    while let Some(block) = split_machine_text(machine_texts, rest) {
        out.push_notification(block.subtype, block.text);
        rest = block.rest;
    }
    if !rest.trim().is_empty() {
        out.push_prompt(rest);
    }
}

/// Pushes the content of a response, or of a message with results only, to the present step.
pub(crate) fn push_response_content(content: Option<Value<'_>>, out: &mut Stream) {
    let mut text = String::new();
    for block in content_blocks(content, &mut text) {
        push_block(block, out);
    }
    if !text.is_empty() {
        out.push_text(EventType::Message, &text);
    }
}

/// Returns the blocks of a content. One that is a string is appended to `text`.
fn content_blocks<'v>(content: Option<Value<'v>>, text: &mut String) -> Vec<Value<'v>> {
    let Some(content) = content else { return Vec::new() };
    if let Some(plain) = string_value(content) {
        text.push_str(plain);
    }
    content.as_array().map_or_else(Vec::new, |blocks| blocks.iter().collect())
}

/// Pushes a block of a response, or a result, to the present step.
pub(crate) fn push_block(block: Value<'_>, out: &mut Stream) {
    let kind = block.text("type").unwrap_or("untyped");
    let inner = block.object(kind).unwrap_or(block);
    match kind {
        "text" => {
            if let Some(text) = inner.non_empty("text") {
                out.push_text(EventType::Message, text);
            }
        }
        "thinking" | "redacted_thinking" | "reasoning" => {
            let thinking = ["thinking", "text"].iter().find_map(|key| inner.non_empty(key));
            if let Some(thinking) = thinking {
                out.push_text(EventType::Reasoning, thinking);
            } else if let Some(sealed) = inner.non_empty("data") {
                let text = format!("[encrypted reasoning, {} bytes]", sealed.len());
                out.push_text(EventType::Reasoning, &text);
            }
        }
        "tool_use" | "server_tool_use" | "tool-call" => {
            let input = Arguments::of_value(inner.field("input"));
            input.push_call(call_name(inner), call_id(inner), out);
        }
        kind if is_result(kind) => push_result(kind, block, out),
        kind => drift::push_unknown_block(kind, block, out),
    }
}

fn is_result(kind: &str) -> bool {
    kind.ends_with("tool_result") || kind == "tool-result"
}

/// Returns the id of a call.
fn call_id(block: Value<'_>) -> Option<&str> {
    ["tool_use_id", "toolCallId", "id"].iter().find_map(|key| block.non_empty(key))
}

/// Returns the name of the tool of a call.
fn call_name(block: Value<'_>) -> Option<&str> {
    ["name", "toolName"].iter().find_map(|key| block.non_empty(key))
}

/// Pushes the result of a call.
fn push_result(kind: &str, block: Value<'_>, out: &mut Stream) {
    let inner = block.object(kind).unwrap_or(block);
    let mut text = String::new();
    let content = ["content", "output"].iter().find_map(|key| inner.field(key));
    // As the AI SDK writes it: `{"type":"error-text","value":"..."}`.
    let value = content.and_then(|content| content.field("value"));
    if let Some(content) = value.or(content) {
        chat::append_content(content, &mut text);
    }
    let of_sdk = content.filter(|_| value.is_some()).and_then(|content| content.text("type"));
    let is_failed = matches!(inner.text("status"), Some("error" | "failed"))
        || of_sdk.is_some_and(|kind| kind.starts_with("error"));
    let decoded = DecodedEvent {
        text: &text,
        tool_name: call_name(inner),
        tool_call_id: call_id(inner),
        is_error: Some(is_failed || inner.flag("is_error") == Some(true)),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}
