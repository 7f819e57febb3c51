//! Decodes saved output of `droid exec --output-format stream-json`: flat events with the id of
//! their session, and the tokens of the run at its end (docs/formats.md#droid).

use schemas::{EventType, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::message;
use crate::provider::format::RecordOutcome;
use crate::provider::shared::chat::first_int;
use crate::stream::Stream;
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Types of events. A `message` is an event too if it is flat.
const EVENT_TYPES: &[&str] =
    &["system", "reasoning", "tool_call", "tool_result", "completion", "error"];

/// The state of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StreamRun {
    /// True while a model response is under way.
    in_response: bool,
    /// The model's text since the last prompt. The end of a run repeats part of it.
    said: String,
}

/// Returns the id of the session if `objects` are the beginning of a stream. `None` if they are
/// not, or if none of them has an id. Other agents print events of the same types, but not with
/// these fields.
pub(super) fn find_session_id(objects: &[Json]) -> Option<&str> {
    if !objects.iter().any(is_stream_event) {
        return None;
    }
    for object in objects {
        for key in ["session_id", "sessionId"] {
            if let Some(id) = object[key].as_str()
                && !id.is_empty()
            {
                return Some(id);
            }
        }
    }
    None
}

/// Returns whether an object has the fields of one of Droid's events.
fn is_stream_event(object: &Json) -> bool {
    match object["type"].as_str() {
        Some("message") => object["role"].is_string() && object["text"].is_string(),
        Some("tool_call") => object["toolName"].is_string() && object.get("parameters").is_some(),
        Some("tool_result") => {
            object.get("value").is_some()
                && (object["toolId"].is_string() || object["toolCallId"].is_string())
        }
        Some("completion") => object["finalText"].is_string(),
        _ => false,
    }
}

/// Returns whether a record is an event of a stream, not a record of a log.
pub(super) fn is_event(kind: &str, record: Value<'_>) -> bool {
    if kind == "message" {
        return record.text("role").is_some() && record.text("text").is_some();
    }
    EVENT_TYPES.contains(&kind)
}

/// Decodes an event of a stream.
pub(super) fn decode_event(
    kind: &str,
    record: Value<'_>,
    run: &mut StreamRun,
    text: &mut String,
    out: &mut Stream,
) -> RecordOutcome {
    match kind {
        "message" => decode_message(record, run, out),
        "reasoning" => {
            run.begin_response(out);
            let text = record.text("text").unwrap_or("");
            out.push_text(EventType::Reasoning, text);
        }
        "tool_call" => {
            run.begin_response(out);
            let input_keys = &["parameters", "input"];
            let id_keys = &["toolCallId", "id"];
            message::push_call(record, input_keys, id_keys, &["toolName", "toolId"], out);
        }
        "tool_result" => {
            run.in_response = false;
            decode_tool_result(record, text, out);
        }
        "completion" => return decode_completion(record, run, out),
        _ => {
            out.set_cwd(record.text("cwd"));
            out.set_model(record.text("model"));
            render::append_notification(
                record,
                &["type", "id", "session_id", "sessionId", "timestamp", "tools"],
                text,
            );
            let is_error = (kind == "error").then_some(true);
            out.push_notice(kind, text, is_error);
        }
    }
    RecordOutcome::Events
}

impl StreamRun {
    /// Begins a model response unless one is under way.
    fn begin_response(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.in_response, true) {
            out.begin_step();
        }
    }

    /// Pushes text of the model and remembers it.
    fn push_reply(&mut self, text: &str, out: &mut Stream) {
        self.begin_response(out);
        self.said.push_str(text);
        self.said.push('\n');
        out.push_text(EventType::Message, text);
    }
}

/// Decodes a message of the user or the model.
fn decode_message(record: Value<'_>, run: &mut StreamRun, out: &mut Stream) {
    let text = record.text("text").unwrap_or("");
    match record.text("role").unwrap_or("untyped") {
        "user" => {
            *run = StreamRun::default();
            message::push_user_text(text, out);
        }
        "assistant" => run.push_reply(text, out),
        role => {
            out.count_unknown("record", &format!("message {role}"));
            out.push_notification(role, text);
        }
    }
}

/// Decodes the result of a tool: its output streams, or another value.
fn decode_tool_result(record: Value<'_>, text: &mut String, out: &mut Stream) {
    let value = record.field("value").or_else(|| record.field("error"));
    let stdout = value.and_then(|value| value.text("stdout"));
    let stderr = value.and_then(|value| value.text("stderr"));
    if stdout.is_some() || stderr.is_some() {
        text.push_str(stdout.unwrap_or(""));
        text.push_str(stderr.unwrap_or(""));
    } else if let Some(value) = value {
        render::append_content(value, text);
    }

    let exit_code = value
        .and_then(|value| value.int32("exitCode"))
        .or_else(|| message::parse_exit_code(text.as_str()));
    let has_failed = message::is_failed_call(record.flag("isError"), exit_code, text);
    out.push_result(
        record.non_empty("toolCallId").or_else(|| record.non_empty("id")),
        text,
        Some(has_failed),
        exit_code,
    );
}

/// Decodes the end of a run: its final text, which is mostly in an earlier message, and its tokens.
fn decode_completion(record: Value<'_>, run: &mut StreamRun, out: &mut Stream) -> RecordOutcome {
    let text = record.text("finalText").unwrap_or("").trim();
    if record.flag("isError") == Some(true) {
        out.push_notice("completion", text, Some(true));
    } else if !run.said.contains(text) {
        run.push_reply(text, out);
    }

    out.push_usage(record.object("usage").map(read_usage).unwrap_or_default(), None, None);
    *run = StreamRun::default();
    if out.pushed_count() > 0 {
        RecordOutcome::Events
    } else {
        RecordOutcome::Merged("twin_of_message")
    }
}

/// Parses the token counts of a run, in the spellings that different versions use.
fn read_usage(usage: Value<'_>) -> Usage {
    let read_keys = ["cache_read_input_tokens", "cacheReadInputTokens", "cacheReadTokens"];
    let write_keys =
        ["cache_creation_input_tokens", "cacheCreationInputTokens", "cacheCreationTokens"];
    Usage {
        input: first_int(usage, &["input_tokens", "inputTokens", "input"]),
        output: first_int(usage, &["output_tokens", "outputTokens", "output"]),
        cache_read: first_int(usage, &read_keys),
        cache_write: first_int(usage, &write_keys),
        reasoning: first_int(usage, &["thinking_tokens", "thinkingTokens", "reasoning_tokens"]),
        ..Usage::default()
    }
}
