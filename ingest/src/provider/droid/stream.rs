//! Decodes saved output of `droid exec --output-format stream-json`: flat events with the id of
//! their session, and the tokens of the run at its end (docs/formats.md#droid).

use schemas::{EventType, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::message;
use crate::provider::format::Outcome;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value};
use crate::text::render;

/// Types of events. A `message` is an event too if it is flat.
const EVENTS: &[&str] = &["system", "reasoning", "tool_call", "tool_result", "completion", "error"];

/// The state of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Run {
    /// True while a model response is under way.
    in_response: bool,
    /// The model's text since the last prompt. The end of a run repeats part of it.
    said: String,
}

/// Returns the id of the session if `objects` are the beginning of a stream. Other agents print
/// events of the same types, but not with these fields.
pub(super) fn session_id(objects: &[Json]) -> Option<&str> {
    let is_ours = |object: &Json| {
        let has = |keys: &[&str]| keys.iter().all(|key| object[*key].is_string());
        match object["type"].as_str() {
            Some("message") => has(&["role", "text"]),
            Some("tool_call") => has(&["toolName"]) && object.get("parameters").is_some(),
            Some("tool_result") => {
                object.get("value").is_some() && (has(&["toolId"]) || has(&["toolCallId"]))
            }
            Some("completion") => has(&["finalText"]),
            _ => false,
        }
    };
    if !objects.iter().any(is_ours) {
        return None;
    }
    let keys = ["session_id", "sessionId"];
    let mut ids = objects.iter().flat_map(|object| keys.map(|key| object[key].as_str()));
    ids.find_map(|id| id.filter(|id| !id.is_empty()))
}

/// Returns whether a record is an event of a stream, not a record of a log.
pub(super) fn is_event(kind: &str, record: Value<'_>) -> bool {
    let is_flat = || record.text("role").is_some() && record.text("text").is_some();
    EVENTS.contains(&kind) || kind == "message" && is_flat()
}

/// Decodes an event of a stream.
pub(super) fn event(
    kind: &str,
    record: Value<'_>,
    run: &mut Run,
    text: &mut String,
    out: &mut Stream,
) -> Outcome {
    match kind {
        "message" => message(record, run, out),
        "reasoning" => {
            run.respond(out);
            let text = record.text("text").unwrap_or("");
            out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
        }
        "tool_call" => {
            run.respond(out);
            let (input, id) = (&["parameters", "input"], &["toolCallId", "id"]);
            message::call(record, input, id, &["toolName", "toolId"], out);
        }
        "tool_result" => {
            run.in_response = false;
            result(record, text, out);
        }
        "completion" => return completion(record, run, out),
        _ => {
            out.set_cwd(record.text("cwd"));
            out.set_model(record.text("model"));
            render::fields(
                record,
                &["type", "id", "session_id", "sessionId", "timestamp", "tools"],
                text,
            );
            let is_error = (kind == "error").then_some(true);
            let draft = Draft { subtype: Some(kind), text, is_error, ..Draft::default() };
            out.push(EventType::Notification, draft);
        }
    }
    Outcome::Events
}

impl Run {
    /// Begins a model response unless one is under way.
    fn respond(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.in_response, true) {
            out.begin_step();
        }
    }

    /// Pushes text of the model and remembers it.
    fn reply(&mut self, text: &str, out: &mut Stream) {
        self.respond(out);
        self.said.push_str(text);
        self.said.push('\n');
        out.push(EventType::Message, Draft { text, ..Draft::default() });
    }
}

fn message(record: Value<'_>, run: &mut Run, out: &mut Stream) {
    let text = record.text("text").unwrap_or("");
    match record.text("role").unwrap_or("untyped") {
        "user" => {
            *run = Run::default();
            message::typed(text, out);
        }
        "assistant" => run.reply(text, out),
        role => {
            out.drift("record", &format!("message {role}"));
            let draft = Draft { subtype: Some(role), text, ..Draft::default() };
            out.push(EventType::Notification, draft);
        }
    }
}

fn result(record: Value<'_>, text: &mut String, out: &mut Stream) {
    let value = ["value", "error"].iter().find_map(|key| record.field(key));
    let streams = ["stdout", "stderr"].map(|key| value.and_then(|value| value.text(key)));
    match streams {
        [None, None] => {
            value.inspect(|value| render::content(*value, text));
        }
        streams => text.extend(streams.into_iter().flatten()),
    }
    let exit_code = value
        .and_then(|value| value.int("exitCode"))
        .and_then(|code| i32::try_from(code).ok())
        .or_else(|| message::exit_code(text.as_str()));
    let is_error = Some(message::failed(record.flag("isError"), exit_code, text));
    let draft = Draft {
        text,
        tool_call_id: record.non_empty("toolCallId").or_else(|| record.non_empty("id")),
        is_error,
        exit_code,
        ..Draft::default()
    };
    out.push(EventType::ToolResult, draft);
}

/// Decodes the end of a run: its final text, which is mostly in an earlier message, and its tokens.
fn completion(record: Value<'_>, run: &mut Run, out: &mut Stream) -> Outcome {
    let text = record.text("finalText").unwrap_or("").trim();
    if record.flag("isError") == Some(true) {
        let draft =
            Draft { subtype: Some("completion"), text, is_error: Some(true), ..Draft::default() };
        out.push(EventType::Notification, draft);
    } else if !run.said.contains(text) {
        run.reply(text, out);
    }
    let usage = record.object("usage").map(usage).filter(|usage| usage.total() > 0);
    if let Some(usage) = usage {
        out.push(EventType::TokenUsage, Draft { usage, ..Draft::default() });
    }
    *run = Run::default();
    if out.pushed() > 0 { Outcome::Events } else { Outcome::Merged("twin_of_message") }
}

/// Parses the token counts of a run, in the spellings that different versions use.
fn usage(usage: Value<'_>) -> Usage {
    let count = |keys: [&str; 3]| keys.iter().find_map(|key| usage.int(key));
    Usage {
        input: count(["input_tokens", "inputTokens", "input"]),
        output: count(["output_tokens", "outputTokens", "output"]),
        cache_read: count(["cache_read_input_tokens", "cacheReadInputTokens", "cacheReadTokens"]),
        cache_write: count([
            "cache_creation_input_tokens",
            "cacheCreationInputTokens",
            "cacheCreationTokens",
        ]),
        cache_write_1h: None,
        reasoning: count(["thinking_tokens", "thinkingTokens", "reasoning_tokens"]),
    }
}
