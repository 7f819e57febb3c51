//! Decodes the bubbles of a chat of the Cursor editor (docs/formats.md#cursor-editor).
//!
//! ```text
//! {"bubbleId":"...","type":1,"createdAt":"...","text":"..."}                  typed by the user
//! {"bubbleId":"...","type":2,"thinking":{"text":"..."},"modelInfo":{...}}     of the model
//! {"bubbleId":"...","type":2,"toolFormerData":{"name":"...","toolCallId":"...","params":"{...}",
//!  "status":"completed","result":"{...}"},"tokenCount":{"inputTokens":9,"outputTokens":9}}
//! ```
//!
//! Parameters and results are JSON in strings.

use schemas::problem::ProblemKind;
use schemas::{EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::provider::shared::identity::hash_id;
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded, string_value};
use crate::text::render;

/// The name that stands for the model that Cursor chooses.
pub(super) const CHOSEN_BY_CURSOR: &str = "default";

/// The types of bubbles.
const USER: i64 = 1;
const MODEL: i64 = 2;

/// States of a call that has no result yet.
const OPEN_STATES: &[&str] = &["started", "loading", "pending", "streaming"];

/// Fields of a result that are not for readers: they repeat another field.
const HIDDEN_FIELDS: &[&str] = &["outputRaw", "notInterrupted", "endedReason"];

/// Decodes the bubbles of one chat in order.
#[derive(Default)]
pub(super) struct BubbleDecoder {
    /// The start of the chat, until the first bubble without a time takes it.
    start: Option<i64>,
    /// Whether the model has begun to answer since the last prompt.
    has_begun: bool,
    /// Whether the present response has made a call.
    has_called: bool,
    /// The request of the model that made the last call.
    model_call: String,
    text: String,
    inner: Parser,
}

impl BubbleDecoder {
    /// Sets the time at which the chat began.
    pub(super) fn begin(&mut self, start: Option<i64>) {
        self.start = start;
    }

    /// Decodes one bubble into events.
    pub(super) fn decode_bubble(
        &mut self,
        bubble: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = bubble.non_empty("bubbleId");
        let start = self.start.take();
        out.begin_message(id);
        out.begin_record(at, id.map(hash_id), bubble_time(bubble).or(start));
        match bubble.text("kind") {
            Some(OVERSIZED_RECORD) => {
                push_oversized("bubble", bubble.int("bytes").unwrap_or(0), at, out);
                return RecordOutcome::Events;
            }
            Some(kind) => {
                let message = "a bubble is not valid JSON, so only its text was kept; \
                    restore the database from a copy";
                out.push_problem(at, ProblemKind::BadJson, message);
                out.push_shortened(kind, bubble.text("text").unwrap_or(""));
                return RecordOutcome::Events;
            }
            None => {}
        }

        let model = bubble.object("modelInfo").and_then(|model| model.text("modelName"));
        out.set_model(model.filter(|model| *model != CHOSEN_BY_CURSOR));
        match bubble.int("type") {
            Some(USER) => self.decode_prompt(bubble, out),
            Some(MODEL) => self.decode_response(bubble, at, out),
            kind => {
                out.count_unknown("record", &format!("type {}", kind.unwrap_or(0)));
                self.text.clear();
                render::append_notification(bubble, &["bubbleId"], &mut self.text);
                out.push_notification("bubble", &self.text);
            }
        }
        RecordOutcome::Events
    }

    fn decode_prompt(&mut self, bubble: Value<'_>, out: &mut Stream) {
        self.has_begun = false;
        self.text.clear();
        self.text.push_str(bubble.text("text").unwrap_or(""));
        for _ in bubble.items("images") {
            render::append_line("[image]", &mut self.text);
        }
        if !self.text.trim().is_empty() {
            out.push_prompt(&self.text);
        }
    }

    /// Decodes a part of a response: reasoning, text, or a call with its result.
    fn decode_response(&mut self, bubble: Value<'_>, at: RecordAt, out: &mut Stream) {
        let thinking = bubble.object("thinking").and_then(|thinking| thinking.non_empty("text"));
        if let Some(text) = thinking {
            self.begin_text(out);
            out.push_text(EventType::Reasoning, text);
        }
        if let Some(text) = bubble.non_empty("text") {
            self.begin_text(out);
            out.push_text(EventType::Message, text);
        }
        let tool = bubble.object("toolFormerData").filter(|tool| tool.non_empty("name").is_some());
        if let Some(tool) = tool {
            self.begin_call(tool.text("modelCallId").unwrap_or(""), out);
            self.push_call(tool, out);
            // A bubble has one time, which must not give the duration of its call.
            let id = bubble.text("bubbleId").unwrap_or("");
            let identity = xxh3_64(format!("{id} result").as_bytes()) | 1;
            out.begin_record(at, Some(identity), None);
            self.push_result(tool, out);
        }
        if let Some(error) = bubble.object("errorDetails") {
            self.text.clear();
            render::append_notification(error, &[], &mut self.text);
            out.push_notice("error", &self.text, Some(true));
        }
        push_usage(bubble, out);
    }

    /// Begins text, which after a call belongs to the next response of the model.
    fn begin_text(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.has_begun, true) || self.has_called {
            out.begin_step();
            self.has_called = false;
        }
    }

    /// Begins a call of a request of the model. Calls of one request are parallel.
    fn begin_call(&mut self, model_call: &str, out: &mut Stream) {
        let is_next = self.has_called && (model_call.is_empty() || model_call != self.model_call);
        if !std::mem::replace(&mut self.has_begun, true) || is_next {
            out.begin_step();
        }
        self.has_called = true;
        self.model_call = model_call.to_owned();
    }

    fn push_call(&mut self, tool: Value<'_>, out: &mut Stream) {
        let is_given = |value: &Value<'_>| !matches!(string_value(*value), Some("" | "{}"));
        let input = ["rawArgs", "params"].iter().find_map(|key| tool.field(key).filter(is_given));
        let arguments = Arguments::of_input(input, &mut self.inner);
        arguments.push_call(tool.text("name"), tool.non_empty("toolCallId"), out);
    }

    /// Pushes the result of a call, unless the call is not done.
    fn push_result(&mut self, tool: Value<'_>, out: &mut Stream) {
        let status = tool.text("status").unwrap_or("");
        let is_cancelled = status == "cancelled" || tool.text("userDecision") == Some("rejected");
        if OPEN_STATES.contains(&status) && !is_cancelled {
            return;
        }
        let mut exit_code = None;
        let mut folder = None;
        let mut text = String::new();
        for (key, shown) in [("result", "output"), ("error", "clientVisibleErrorMessage")] {
            let Some(value) = tool.non_null(key) else { continue };
            render::begin_new_line(&mut text);
            let mut append = |value: Value<'_>| {
                let code = chat::first_int(value, &["exitCodeV2", "exitCode"]);
                exit_code = exit_code.or_else(|| i32::try_from(code?).ok());
                let named = value.text("resultingWorkingDirectory").map(str::to_owned);
                folder = folder.take().or(named);
                match value.text(shown) {
                    Some(shown) => text.push_str(shown),
                    None => render::append_notification(value, HIDDEN_FIELDS, &mut text),
                }
            };
            match string_value(value) {
                Some(json) => {
                    if !decode_embedded(json, &mut self.inner, &mut append) {
                        text.push_str(json);
                    }
                }
                None => append(value),
            }
        }
        // Old chats do not name their folder.
        out.set_cwd(folder.as_deref());
        let is_error = status == "error" || is_cancelled || exit_code.is_some_and(|code| code != 0);
        let decoded = DecodedEvent {
            subtype: is_cancelled.then_some("cancelled"),
            text: &text,
            tool_call_id: tool.non_empty("toolCallId"),
            is_error: Some(is_error),
            exit_code,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Pushes the tokens of a response. Cursor writes them down with the last bubble of a turn; all
/// others have zeros.
fn push_usage(bubble: Value<'_>, out: &mut Stream) {
    let Some(count) = bubble.object("tokenCount") else { return };
    let usage = Usage {
        input: count.int("inputTokens").filter(|count| *count > 0),
        output: count.int("outputTokens").filter(|count| *count > 0),
        ..Usage::default()
    };
    out.push_usage(usage, None, bubble.non_empty("bubbleId"));
}

/// Returns the time of a bubble: its own in newer versions, or the one at which it was complete.
fn bubble_time(bubble: Value<'_>) -> Option<i64> {
    let own = bubble.field("createdAt").and_then(chat::parse_time);
    own.or_else(|| chat::read_millis(bubble.object("timingInfo"), "clientEndTime"))
}
