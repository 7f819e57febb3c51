//! Decodes one message of a Gemini CLI log: thoughts, text, tool calls with their results, tokens
//! (docs/formats.md#gemini-cli).

use schemas::{EventType, Usage};

use crate::provider::copied::copied_identity;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::hash_id;
use crate::provider::shared::{drift, function_response};
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// Beginnings of text that no user typed in the user's role, each with the subtype of its
/// notification.
const MACHINE_PREFIXES: &[(&str, &str)] = &[
    ("<session_context>", "session_context"),
    ("<environment_context>", "environment_context"),
    ("This is the Gemini CLI. We are setting up the context", "session_context"),
    ("System: Please continue.", "continue"),
];

/// Line between the typed text and the content of the files that it names.
const REFERENCED_FILES_HEADING: &str = "--- Content from referenced files ---";

/// Decoder of the messages of a log, which must be passed in order.
#[derive(Default)]
pub(super) struct GeminiDecoder {
    /// Buffer for the text of the current event.
    text: String,
}

/// The types of messages that become a notification. Sorted.
const KNOWN_NOTICES: &[&str] = &["error", "info", "warning"];

impl GeminiDecoder {
    /// Decodes one message into events.
    pub(super) fn decode_message(&mut self, message: Value<'_>, at: RecordAt, out: &mut Stream) {
        let id = message.non_empty("id");
        let time = parse_micros(message.text("timestamp"));
        match copied_identity(id) {
            Some(original) => out.begin_copied_record(at, original, time),
            None => out.begin_record(at, id.map(hash_id), time),
        }

        self.text.clear();
        let content =
            ["displayContent", "content", "parts"].iter().find_map(|key| message.non_null(key));
        match message.text("type") {
            Some("user") => {
                if let Some(content) = content {
                    render::append_content(content, &mut self.text);
                }
                if content.is_some_and(function_response::is_answer_only) {
                    return out.push_shortened(function_response::SUBTYPE, &self.text);
                }
                self.push_user_text(out);
                self.push_attached_files(message, out);
            }
            Some("gemini" | "assistant" | "model") => self.decode_response(message, out),
            kind => {
                drift::count_unknown_type(kind.unwrap_or("untyped"), KNOWN_NOTICES, out);
                match content {
                    Some(content) => render::append_content(content, &mut self.text),
                    None => render::append_notification(
                        message,
                        &["id", "type", "timestamp"],
                        &mut self.text,
                    ),
                }
                let is_error = (kind == Some("error")).then_some(true);
                out.push_notice(kind.unwrap_or("untyped"), &self.text, is_error);
            }
        }
    }

    /// Pushes a prompt, or a notification if no user typed the text.
    fn push_user_text(&self, out: &mut Stream) {
        let start = self.text.trim_start();
        match MACHINE_PREFIXES.iter().find(|(prefix, _)| start.starts_with(prefix)) {
            Some((_, subtype)) => {
                out.push_notification(subtype, &self.text);
            }
            None => out.push_prompt(&self.text),
        }
    }

    /// Pushes the content of the files that a prompt names. It is in the text sent to the model,
    /// after the text that the user typed.
    fn push_attached_files(&mut self, message: Value<'_>, out: &mut Stream) {
        if message.non_null("displayContent").is_none() {
            return;
        }
        let Some(sent) = message.field("content") else { return };

        let mut text = String::new();
        render::append_content(sent, &mut text);
        if text == self.text {
            return;
        }

        let at = text.find(REFERENCED_FILES_HEADING).unwrap_or(0);
        text.drain(..at);
        out.push_shortened("attached_file", &text);
    }

    /// Decodes one response of the model: thoughts, text, calls with their results, and tokens.
    fn decode_response(&mut self, message: Value<'_>, out: &mut Stream) {
        out.set_model(message.text("model"));
        out.begin_step();

        let thoughts = message.items("thoughts");
        for thought in &thoughts {
            let subject = thought.text("subject").or_else(|| string_value(*thought)).unwrap_or("");
            let description = thought.text("description").unwrap_or("");
            let text = format!("{subject}\n{description}");
            let timestamp = parse_micros(thought.text("timestamp"));
            let decoded = DecodedEvent { text: text.trim(), timestamp, ..DecodedEvent::default() };
            out.push(EventType::Reasoning, decoded);
        }

        if let Some(content) = message.field("content").or_else(|| message.field("parts")) {
            render::append_content(content, &mut self.text);
        }
        let calls = message.items("toolCalls");
        if !self.text.is_empty() || (calls.is_empty() && thoughts.is_empty()) {
            out.push_text(EventType::Message, &self.text);
        }

        for call in calls {
            self.push_tool_call(call, out);
            self.push_tool_result(call, out);
        }

        if let Some(tokens) = message.object("tokens") {
            let request_id = message.non_empty("id");
            let decoded =
                DecodedEvent { usage: read_usage(tokens), request_id, ..DecodedEvent::default() };
            out.push(EventType::TokenUsage, decoded);
        }
    }

    /// Pushes the call of an object that holds a call and its result.
    fn push_tool_call(&mut self, call: Value<'_>, out: &mut Stream) {
        let arguments = Arguments::of_value(call.field("args"));
        arguments.push_call(call.text("name"), call.non_empty("id"), out);
    }

    /// Pushes the result of an object that holds a call and its result, if it has a result.
    fn push_tool_result(&mut self, call: Value<'_>, out: &mut Stream) {
        let status = call.text("status");
        let results = call.items("result");
        if results.is_empty() && status.is_none() {
            return;
        }

        self.text.clear();
        let mut has_error = false;
        for result in &results {
            let response = function_response(*result);
            let output = response.and_then(|response| response.field("output"));
            let error = response.and_then(|response| response.field("error"));
            has_error |= error.is_some();
            match output.or(error) {
                Some(text) => render::append_value(text, &mut self.text),
                None => render::append_block(*result, &mut self.text),
            }
        }
        if results.is_empty() {
            self.text.push_str(call.text("resultDisplay").unwrap_or_default());
        }

        let exit_code = function_response::parse_exit_code(&self.text);
        let has_failed =
            has_error || status == Some("error") || exit_code.is_some_and(|code| code != 0);
        let decoded = DecodedEvent {
            exit_code,
            text: &self.text,
            tool_name: call.text("name"),
            tool_call_id: call.non_empty("id"),
            subtype: status.filter(|status| *status == "cancelled"),
            is_error: (status.is_some() || has_failed).then_some(has_failed),
            timestamp: parse_micros(call.text("timestamp")),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Returns the response of a tool inside an element of `result`.
fn function_response(result: Value<'_>) -> Option<Value<'_>> {
    result.object("functionResponse")?.object("response")
}

/// Reads token counts. In the log, `input` includes `cached`, and `output` excludes thoughts.
fn read_usage(tokens: Value<'_>) -> Usage {
    let cached = tokens.int("cached");
    let thoughts = tokens.int("thoughts");
    let tool = tokens.int("tool").unwrap_or(0);
    Usage {
        input: tokens.int("input").map(|input| (input - cached.unwrap_or(0)).max(0) + tool),
        output: tokens.int("output").map(|output| output + thoughts.unwrap_or(0)),
        cache_read: cached,
        reasoning: thoughts,
        ..Usage::default()
    }
}
