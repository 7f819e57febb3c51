//! Reads the traces of GitHub Copilot in Visual Studio from
//! `%TEMP%\VSGitHubCopilotLogs\traces\*_VSGitHubCopilot_traces.jsonl`
//! (docs/formats.md#visual-studio-copilot). A line holds a batch of OpenTelemetry spans:
//!
//! ```text
//! {"resourceSpans":[{"resource":{"attributes":[...]},"scopeSpans":[{"spans":[
//!   {"traceId":"...","spanId":"...","name":"chat ...","startTimeUnixNano":"...","attributes":[
//!     {"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},...]}]}]}]}
//! ```
//!
//! `chat` is one request to a model with its prompt and its answer. `execute_tool` is a call with
//! its result. `invoke_agent` is a turn as a whole, whose sums repeat those of its requests.
//!
//! A conversation may continue in another file, and a file may hold several conversations. The log
//! is the file, named after its first conversation. Spans are identified by their ids in any file.

mod span;

use std::path::PathBuf;

use schemas::{EventType, Provider};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::span::{TraceSpan, append_text, append_unwrapped, for_each_message, push_notification};
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim,
    state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::stream::{DecodedEvent, RecentIds, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::VsCopilot,
    has_unique_ids: true,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks::NONE,
    reader: LogReader::Lines(|_, state| {
        let state =
            state.and_then(|state| VsCopilotState::deserialize(state).ok()).unwrap_or_default();
        let outer = Parser::default();
        let inner = Parser::default();
        Box::new(VsCopilotDecoder { state, text: String::new(), outer, inner })
    }),
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let temporary = [
        places.env_path("TMP"),
        places.env_path("TEMP"),
        Some(places.home_path("AppData/Local/Temp")),
    ];
    temporary.into_iter().flatten().map(|dir| dir.join("VSGitHubCopilotLogs/traces")).collect()
}

/// Claims a log that holds a batch of Copilot's spans.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let mut has_batch = false;
    let mut spans: Vec<&Json> = Vec::new();
    for batch in head.objects.iter().filter(|object| is_copilot_batch(object)) {
        has_batch = true;
        for resource in elements(batch, "resourceSpans") {
            for scope in elements(resource, "scopeSpans") {
                spans.extend(elements(scope, "spans"));
            }
        }
    }
    if !has_batch {
        return None;
    }

    let conversation = spans.iter().find_map(|span| text_attribute(span, "gen_ai.conversation.id"));
    let first_record = spans.first().and_then(|span| {
        let trace = span["traceId"].as_str().unwrap_or("");
        span_identity(trace, span["spanId"].as_str().unwrap_or(""))
    });
    Some(SessionClaim {
        first_record,
        ..SessionClaim::new(Provider::VsCopilot, conversation.unwrap_or_else(|| head.file_stem()))
    })
}

/// Returns whether an object is a batch of spans that Copilot in Visual Studio wrote.
fn is_copilot_batch(object: &Json) -> bool {
    elements(object, "resourceSpans")
        .iter()
        .any(|resource| text_attribute(&resource["resource"], "service.name") == Some("vs-copilot"))
}

/// Returns the elements of a field that is a list; none if it is not a list.
fn elements<'j>(owner: &'j Json, key: &str) -> &'j [Json] {
    owner[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns an attribute that is a non-empty text.
fn text_attribute<'a>(owner: &'a Json, key: &str) -> Option<&'a str> {
    let found = owner["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key)?;
    found["value"]["stringValue"].as_str().filter(|text| !text.is_empty())
}

/// Returns the identity of a span. A span's id is unique within its trace.
fn span_identity(trace: &str, span: &str) -> Option<u64> {
    (!span.is_empty()).then(|| xxh3_64(format!("{trace}:{span}").as_bytes()) | 1)
}

/// Maximum number of prompts, and of calls, that are remembered. Requests that repeat them are
/// close together.
const MAX_REMEMBERED: usize = 256;

/// The state of the decoder between two records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
struct VsCopilotState {
    /// Hashes of the turns whose prompt was decoded. Every request of a turn repeats the prompt.
    prompts: RecentIds<MAX_REMEMBERED>,
    /// Hashes of call ids. A call is recorded in the answer and again in its execution.
    calls: RecentIds<MAX_REMEMBERED>,
}

/// Decoder of one log.
struct VsCopilotDecoder {
    state: VsCopilotState,
    /// Text of the current event.
    text: String,
    /// Decodes JSON inside strings.
    outer: Parser,
    /// Decodes JSON inside strings of the JSON that `outer` decodes.
    inner: Parser,
}

impl LineDecoder for VsCopilotDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        _raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        out.begin_record(at, None, None);
        let mut has_spans = false;
        for resource in object.items("resourceSpans") {
            if let Some(about) = resource.object("resource").map(TraceSpan::new) {
                out.set_version(about.attribute_text("service.version"));
            }
            for span in resource.items("scopeSpans").iter().flat_map(|scope| scope.items("spans")) {
                self.decode_span(span, at, out);
                has_spans = true;
            }
        }
        if has_spans {
            return RecordOutcome::Events;
        }
        if object.field("resourceSpans").is_some() {
            return RecordOutcome::Merged("empty_batch");
        }

        out.count_unknown("record", "no_spans");
        self.text.clear();
        render::append_notification(object, &[], &mut self.text);
        out.push_notification("no_spans", &self.text);
        RecordOutcome::Events
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl VsCopilotDecoder {
    /// Decodes a span, which gives at least one event.
    fn decode_span(&mut self, value: Value<'_>, at: RecordAt, out: &mut Stream) {
        let span = TraceSpan::new(value);
        let trace = value.text("traceId").unwrap_or("");
        out.begin_record(at, span_identity(trace, value.text("spanId").unwrap_or("")), span.start);
        out.extend_time_range(span.end);
        let model = ["gen_ai.response.model", "gen_ai.request.model"];
        out.set_model(model.iter().find_map(|key| span.attribute_text(key)));

        match span.operation() {
            "chat" => self.decode_request(&span, out),
            "execute_tool" => self.decode_tool(&span, out),
            "invoke_agent" => {}
            other => out.count_unknown("record", other),
        }
        // The result of a tool shows its failure.
        let shows_failure = !span.has_failed() || span.operation() == "execute_tool";
        if out.pushed_count() == 0 || !shows_failure {
            push_notification(&span, &mut self.text, out);
        }
    }

    /// Decodes one request: the prompt, the answer of the model and its tokens.
    fn decode_request(&mut self, span: &TraceSpan<'_>, out: &mut Stream) {
        if let Some(input) = span.attribute_text("gen_ai.input.messages") {
            self.push_prompt(input, span, out);
        }

        let step = out.begin_step();
        if let Some(output) = span.attribute_text("gen_ai.output.messages") {
            let mut answer = AnswerDecoder {
                step,
                timestamp: span.end,
                calls: &mut self.state.calls,
                text: &mut self.text,
                inner: &mut self.inner,
            };
            for_each_message(output, &mut self.outer, |message| {
                let parts = message.items("parts");
                if parts.is_empty() {
                    answer.decode_part(message, out);
                }
                for part in parts {
                    answer.decode_part(part, out);
                }
            });
        }

        let usage = span.read_usage();
        if !usage.is_unknown() {
            let decoded = DecodedEvent {
                usage,
                request_id: span.attribute_text("gen_ai.response.id"),
                timestamp: span.end,
                ..DecodedEvent::default()
            };
            out.push_in_step(EventType::TokenUsage, step, decoded);
        }
    }

    /// Pushes the last prompt of a request's input, unless an earlier request of the turn gave it.
    fn push_prompt(&mut self, input: &str, span: &TraceSpan<'_>, out: &mut Stream) {
        let Self { state, text, outer, .. } = self;
        let mut prompt = String::new();
        for_each_message(input, outer, |message| {
            if message.text("role") == Some("user") {
                text.clear();
                append_text(message, text);
                if !text.is_empty() {
                    prompt.clone_from(text);
                }
            }
        });

        let turn = span.attribute_text("copilot_chat.root_request_id").unwrap_or(&prompt);
        if !prompt.is_empty() && state.prompts.add_new(Some(turn)) {
            out.push_prompt(&prompt);
        }
    }

    /// Decodes a call that no answer had, and its result.
    fn decode_tool(&mut self, span: &TraceSpan<'_>, out: &mut Stream) {
        let tool_name = span.attribute_text("gen_ai.tool.name");
        let tool_call_id = span.attribute_text("gen_ai.tool.call.id");
        if self.state.calls.add_new(tool_call_id) {
            let arguments = parse_arguments(
                tool_name,
                span.attribute_value("gen_ai.tool.call.arguments"),
                &mut self.inner,
            );
            arguments.push_call(tool_name, tool_call_id, out);
        }

        let result = span.attribute_value("gen_ai.tool.call.result");
        if result.is_none() && !span.has_failed() {
            return;
        }

        self.text.clear();
        match (result, result.and_then(string_value)) {
            (_, Some(json)) => append_unwrapped(json, &mut self.inner, &mut self.text),
            (Some(result), None) => render::append_value(result, &mut self.text),
            (None, None) => self.text.push_str(span.error_message()),
        }
        let decoded = DecodedEvent {
            text: &self.text,
            tool_name,
            tool_call_id,
            is_error: Some(span.has_failed()),
            duration_ms: span.duration_ms(),
            timestamp: span.end,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Decodes the parts of one answer of the model.
struct AnswerDecoder<'d> {
    /// The step to which the events belong.
    step: i32,
    /// Time of the events in microseconds.
    timestamp: Option<i64>,
    /// Hashes of the ids of calls that were already decoded.
    calls: &'d mut RecentIds<MAX_REMEMBERED>,
    /// Buffer for the text of the current event.
    text: &'d mut String,
    /// Parser for JSON inside strings.
    inner: &'d mut Parser,
}

impl AnswerDecoder<'_> {
    /// Decodes one part, which may also be a whole message without parts.
    fn decode_part(&mut self, part: Value<'_>, out: &mut Stream) {
        let kind = part.text("type").unwrap_or("text");
        let event = match kind {
            "tool_call" => return self.push_new_call(part, out),
            "text" => EventType::Message,
            "reasoning" | "thinking" => EventType::Reasoning,
            _ => EventType::Notification,
        };

        self.text.clear();
        let mut subtype = None;
        if event == EventType::Notification {
            out.count_unknown("block", kind);
            subtype = Some(kind);
            render::append_notification(part, &["type"], self.text);
        } else {
            append_text(part, self.text);
        }
        let timestamp = self.timestamp;
        let decoded =
            DecodedEvent { subtype, text: self.text, timestamp, ..DecodedEvent::default() };
        out.push_in_step(event, self.step, decoded);
    }

    /// Pushes a call, unless an earlier record held it.
    fn push_new_call(&mut self, part: Value<'_>, out: &mut Stream) {
        let tool_call_id = part.non_empty("id");
        if !self.calls.add_new(tool_call_id) {
            return;
        }
        let tool_name = part.text("name");
        let arguments = parse_arguments(tool_name, part.field("arguments"), self.inner);
        let timestamp = self.timestamp;
        let decoded = DecodedEvent { tool_name, tool_call_id, timestamp, ..arguments.decoded() };
        out.push_in_step(EventType::ToolCall, self.step, decoded);
    }
}

/// Decodes the arguments of a tool, which are JSON in a string. A patch may lack its first line.
fn parse_arguments(tool: Option<&str>, value: Option<Value<'_>>, parser: &mut Parser) -> Arguments {
    let mut arguments = Arguments::of_input(value, parser);
    if tool == Some("apply_patch") {
        arguments.add_patch_files();
    }
    arguments
}
