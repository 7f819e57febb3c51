//! Decodes one message of a Gemini CLI log: thoughts, text, tool calls with their results, tokens
//! (docs/formats.md#gemini-cli).

use schemas::{EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::shared::arguments::Arguments;
use crate::stream::{Draft, RecordAt, Stream, micros};
use crate::text::json::{Fields, Value, string};
use crate::text::render;

/// Beginnings of machine text in the user's role, each with the subtype of its notification.
const MACHINE: &[(&str, &str)] = &[
    ("<session_context>", "session_context"),
    ("<environment_context>", "environment_context"),
    ("This is the Gemini CLI. We are setting up the context", "session_context"),
    ("System: Please continue.", "continue"),
];

/// Line between the typed text and the content of the files named in it.
const REFERENCED: &str = "--- Content from referenced files ---";

/// Decoder of the messages of a log, which must be passed in order.
#[derive(Default)]
pub(super) struct Decoder {
    text: String,
}

impl Decoder {
    pub(super) fn message(&mut self, message: Value<'_>, at: RecordAt, out: &mut Stream) {
        let identity = message.non_empty("id").map(|id| xxh3_64(id.as_bytes()) | 1);
        out.begin_record(at, identity, micros(message.text("timestamp")));
        self.text.clear();
        let content =
            ["displayContent", "content", "parts"].iter().find_map(|key| message.given(key));
        match message.text("type") {
            Some("user") => {
                content.inspect(|content| render::content(*content, &mut self.text));
                self.user(out);
                self.attached(message, out);
            }
            Some("gemini" | "assistant" | "model") => self.reply(message, out),
            kind => {
                match content {
                    Some(content) => render::content(content, &mut self.text),
                    None => render::fields(message, &["id", "type", "timestamp"], &mut self.text),
                }
                let is_error = (kind == Some("error")).then_some(true);
                let subtype = Some(kind.unwrap_or("untyped"));
                let draft = Draft { subtype, text: &self.text, is_error, ..Draft::default() };
                out.push(EventType::Notification, draft);
            }
        }
    }

    fn user(&self, out: &mut Stream) {
        let start = self.text.trim_start();
        if let Some((_, subtype)) = MACHINE.iter().find(|(text, _)| start.starts_with(text)) {
            let draft = Draft { subtype: Some(subtype), text: &self.text, ..Draft::default() };
            return out.push(EventType::Notification, draft);
        }
        out.prompt(&self.text);
    }

    /// Pushes the content of the files that a prompt names. It is in the text sent to the model,
    /// after the text that the user typed.
    fn attached(&mut self, message: Value<'_>, out: &mut Stream) {
        let sent = message.given("displayContent").and_then(|_| message.field("content"));
        let Some(sent) = sent else { return };
        let mut text = String::new();
        render::content(sent, &mut text);
        if text == self.text {
            return;
        }
        let at = text.find(REFERENCED).unwrap_or(0);
        text.drain(..at);
        render::cut(&mut text);
        let draft = Draft { subtype: Some("attached_file"), text: &text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }

    fn reply(&mut self, message: Value<'_>, out: &mut Stream) {
        out.set_model(message.text("model"));
        out.begin_step();
        for thought in message.items("thoughts") {
            let subject = thought.text("subject").or_else(|| string(thought)).unwrap_or("");
            let description = thought.text("description").unwrap_or("");
            let text = format!("{subject}\n{description}");
            let timestamp = micros(thought.text("timestamp"));
            out.push(
                EventType::Reasoning,
                Draft { text: text.trim(), timestamp, ..Draft::default() },
            );
        }
        let content = message.field("content").or_else(|| message.field("parts"));
        content.inspect(|content| render::content(*content, &mut self.text));
        let calls = message.items("toolCalls");
        if !self.text.is_empty() || (calls.is_empty() && message.items("thoughts").is_empty()) {
            out.push(EventType::Message, Draft { text: &self.text, ..Draft::default() });
        }
        for call in calls {
            self.call(call, out);
        }
        if let Some(tokens) = message.object("tokens") {
            let request_id = message.non_empty("id");
            out.push(
                EventType::TokenUsage,
                Draft { usage: usage(tokens), request_id, ..Draft::default() },
            );
        }
    }

    /// Decodes a call and its result, which are one object.
    fn call(&mut self, call: Value<'_>, out: &mut Stream) {
        let tool_name = call.text("name");
        let tool_call_id = call.non_empty("id");
        self.text.clear();
        let mut arguments = Arguments::default();
        call.field("args").inspect(|args| arguments.read(*args));
        let draft = Draft { tool_name, tool_call_id, ..arguments.draft() };
        out.push(EventType::ToolCall, draft);
        let status = call.text("status");
        let results = call.items("result");
        if results.is_empty() && status.is_none() {
            return;
        }
        self.text.clear();
        for result in &results {
            let response =
                result.object("functionResponse").and_then(|response| response.object("response"));
            match response.and_then(|r| r.field("output").or_else(|| r.field("error"))) {
                Some(output) => render::value(output, &mut self.text),
                None => render::block(*result, &mut self.text),
            }
        }
        if results.is_empty() {
            call.text("resultDisplay").inspect(|text| self.text.push_str(text));
        }
        let refused = results.iter().any(|result| {
            let response =
                result.object("functionResponse").and_then(|response| response.object("response"));
            response.is_some_and(|response| response.field("error").is_some())
        });
        let exit_code = exit_code(&self.text);
        let failed = refused || status == Some("error") || exit_code.is_some_and(|code| code != 0);
        let draft = Draft {
            exit_code,
            text: &self.text,
            tool_name,
            tool_call_id,
            subtype: status.filter(|status| *status == "cancelled"),
            is_error: (status.is_some() || failed).then_some(failed),
            timestamp: micros(call.text("timestamp")),
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }
}

/// Parses the exit code of a command, which is on a line of its own near the end of the output.
fn exit_code(text: &str) -> Option<i32> {
    text.lines()
        .rev()
        .take(6)
        .find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
}

/// Parses token counts. `input` includes `cached`; thoughts are not included in `output`.
fn usage(tokens: Value<'_>) -> Usage {
    let cached = tokens.int("cached");
    let thoughts = tokens.int("thoughts");
    Usage {
        input: tokens
            .int("input")
            .map(|input| (input - cached.unwrap_or(0)).max(0) + tokens.int("tool").unwrap_or(0)),
        output: tokens.int("output").map(|output| output + thoughts.unwrap_or(0)),
        cache_read: cached,
        cache_write: None,
        cache_write_1h: None,
        reasoning: thoughts,
    }
}
