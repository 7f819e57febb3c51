//! GitHub Copilot in Visual Studio:
//! `%TEMP%\VSGitHubCopilotLogs\traces\*_VSGitHubCopilot_traces.jsonl`
//! (docs/formats.md#visual-studio-copilot). A line holds a batch of OpenTelemetry spans. `chat` is
//! one request to a model with its prompt and its answer. `execute_tool` is a call with its result.
//! `invoke_agent` is a turn as a whole, whose sums repeat those of its requests.
//!
//! A conversation may continue in another file, and a file may hold several conversations. The log
//! is the file, named after its first conversation. Spans are identified by their ids in any file.

mod span;

use std::collections::VecDeque;
use std::path::PathBuf;

use schemas::{EventType, Provider};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::span::{Span, messages, notice, said, unwrapped};
use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Places, Quirks, Reader};
use crate::provider::shared::arguments::Arguments;
use crate::stream::{Draft, RecordAt, Stream};
use crate::text::json::{Fields, Parser, Value, string};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::VsCopilot,
    unique_ids: true,
    roots,
    sniff,
    quirks: Quirks::NONE,
    reader: Reader::Lines(|_, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        let (outer, inner) = (Parser::default(), Parser::default());
        Box::new(Decoder { state, text: String::new(), outer, inner })
    }),
};

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let temporary =
        [places.set("TMP"), places.set("TEMP"), Some(places.home("AppData/Local/Temp"))];
    temporary.into_iter().flatten().map(|dir| dir.join("VSGitHubCopilotLogs/traces")).collect()
}

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let ours = |batch: &&Json| {
        let resources = batch["resourceSpans"].as_array();
        resources
            .into_iter()
            .flatten()
            .any(|resource| attribute(&resource["resource"], "service.name") == Some("vs-copilot"))
    };
    let batches = || head.objects.iter().filter(ours);
    let list = |value: &Json, key: &str| value[key].as_array().cloned().unwrap_or_default();
    batches().next()?;
    let mut spans = Vec::new();
    for resource in batches().flat_map(|batch| list(batch, "resourceSpans")) {
        for scope in list(&resource, "scopeSpans") {
            spans.extend(list(&scope, "spans"));
        }
    }
    let conversation = spans.iter().find_map(|span| attribute(span, "gen_ai.conversation.id"));
    let id = |span: &Json, key: &str| span[key].as_str().unwrap_or("").to_owned();
    let first = spans.first().and_then(|span| identity(&id(span, "traceId"), &id(span, "spanId")));
    Some(Claim {
        provider: Provider::VsCopilot,
        native_id: conversation.unwrap_or_else(|| head.stem()).to_owned(),
        agent_id: None,
        parent: None,
        relation: None,
        first_record: first,
    })
}

/// Returns an attribute that is a non-empty text.
fn attribute<'a>(owner: &'a Json, key: &str) -> Option<&'a str> {
    let found = owner["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key)?;
    found["value"]["stringValue"].as_str().filter(|text| !text.is_empty())
}

/// Returns the identity of a span. A span's id is unique within its trace.
fn identity(trace: &str, span: &str) -> Option<u64> {
    (!span.is_empty()).then(|| xxh3_64(format!("{trace}:{span}").as_bytes()) | 1)
}

/// Most prompts, and most calls, that are remembered. Requests that repeat them are close together.
const REMEMBERED: usize = 256;

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Hashes of the turns whose prompt was decoded. Every request of a turn repeats the prompt.
    prompts: VecDeque<u64>,
    /// Hashes of call ids. A call is recorded in the answer and again in its execution.
    calls: VecDeque<u64>,
}

struct Decoder {
    state: State,
    text: String,
    /// Decodes JSON inside strings.
    outer: Parser,
    /// Decodes JSON inside strings of the JSON that `outer` decodes.
    inner: Parser,
}

impl LineDecoder for Decoder {
    fn record(
        &mut self,
        object: Value<'_>,
        _raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> Outcome {
        out.begin_record(at, None, None);
        let mut any = false;
        for resource in object.items("resourceSpans") {
            if let Some(about) = resource.object("resource").map(Span::of) {
                out.set_version(about.text("service.version"));
            }
            for span in resource.items("scopeSpans").iter().flat_map(|scope| scope.items("spans")) {
                self.span(span, at, out);
                any = true;
            }
        }
        if any {
            return Outcome::Events;
        }
        if object.field("resourceSpans").is_some() {
            return Outcome::Merged("empty_batch");
        }
        out.drift("record", "no_spans");
        self.text.clear();
        render::fields(object, &[], &mut self.text);
        let draft = Draft { subtype: Some("no_spans"), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
        Outcome::Events
    }

    fn save(&self) -> Json {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}

impl Decoder {
    /// Decodes a span, which gives at least one event.
    fn span(&mut self, value: Value<'_>, at: RecordAt, out: &mut Stream) {
        let span = Span::of(value);
        let trace = value.text("traceId").unwrap_or("");
        out.begin_record(at, identity(trace, value.text("spanId").unwrap_or("")), span.start);
        out.widen(span.end);
        let model = ["gen_ai.response.model", "gen_ai.request.model"];
        out.set_model(model.iter().find_map(|key| span.text(key)));
        match span.operation() {
            "chat" => self.chat(&span, out),
            "execute_tool" => self.tool(&span, out),
            "invoke_agent" => {}
            other => out.drift("record", other),
        }
        let told = out.pushed() > 0 && (!span.failed() || span.operation() == "execute_tool");
        if !told {
            notice(&span, &mut self.text, out);
        }
    }

    fn chat(&mut self, span: &Span<'_>, out: &mut Stream) {
        if let Some(input) = span.text("gen_ai.input.messages") {
            self.prompt(input, span, out);
        }
        let step = out.begin_step();
        let timestamp = span.end;
        let Self { state, text, outer, inner } = self;
        let mut part = |part: Value<'_>| {
            text.clear();
            let kind = part.text("type").unwrap_or("text");
            let event = match kind {
                "tool_call" => {
                    if remember(part.non_empty("id"), &mut state.calls) {
                        let name = part.text("name");
                        let arguments = arguments(name, part.field("arguments"), inner);
                        let tool_call_id = part.non_empty("id");
                        let draft = arguments.draft();
                        let draft = Draft { tool_name: name, tool_call_id, timestamp, ..draft };
                        out.push_in(EventType::ToolCall, step, draft);
                    }
                    return;
                }
                "text" => EventType::Message,
                "reasoning" | "thinking" => EventType::Reasoning,
                _ => EventType::Notification,
            };
            let mut subtype = None;
            if event == EventType::Notification {
                out.drift("block", kind);
                subtype = Some(kind);
                render::fields(part, &["type"], text);
            } else {
                said(part, text);
            }
            out.push_in(event, step, Draft { subtype, text, timestamp, ..Draft::default() });
        };
        if let Some(output) = span.text("gen_ai.output.messages") {
            messages(output, outer, |message| {
                let parts = message.items("parts");
                if parts.is_empty() {
                    part(message);
                }
                parts.into_iter().for_each(&mut part);
            });
        }
        let usage = span.usage();
        if !usage.is_unknown() {
            let request_id = span.text("gen_ai.response.id");
            let draft = Draft { usage, request_id, timestamp, ..Draft::default() };
            out.push_in(EventType::TokenUsage, step, draft);
        }
    }

    /// Appends the last prompt of a request's input, unless an earlier request of the turn gave it.
    fn prompt(&mut self, input: &str, span: &Span<'_>, out: &mut Stream) {
        let Self { state, text, outer, .. } = self;
        let mut prompt = String::new();
        messages(input, outer, |message| {
            if message.text("role") == Some("user") {
                text.clear();
                said(message, text);
                if !text.is_empty() {
                    prompt.clone_from(text);
                }
            }
        });
        let turn = span.text("copilot_chat.root_request_id").unwrap_or(&prompt);
        if prompt.is_empty() || !remember(Some(turn), &mut state.prompts) {
            return;
        }
        out.prompt(&prompt);
    }

    fn tool(&mut self, span: &Span<'_>, out: &mut Stream) {
        let tool_name = span.text("gen_ai.tool.name");
        let tool_call_id = span.text("gen_ai.tool.call.id");
        if remember(tool_call_id, &mut self.state.calls) {
            let arguments =
                arguments(tool_name, span.value("gen_ai.tool.call.arguments"), &mut self.inner);
            let draft = Draft { tool_name, tool_call_id, ..arguments.draft() };
            out.push(EventType::ToolCall, draft);
        }
        let result = span.value("gen_ai.tool.call.result");
        if result.is_none() && !span.failed() {
            return;
        }
        self.text.clear();
        match (result, result.and_then(string)) {
            (_, Some(json)) => unwrapped(json, &mut self.inner, &mut self.text),
            (Some(result), None) => render::value(result, &mut self.text),
            (None, None) => self.text.push_str(span.message()),
        }
        let draft = Draft {
            text: &self.text,
            tool_name,
            tool_call_id,
            is_error: Some(span.failed()),
            duration_ms: span.duration_ms(),
            timestamp: span.end,
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }
}

/// Decodes the arguments of a tool, which are JSON in a string. A patch may lack its first line.
fn arguments(tool: Option<&str>, value: Option<Value<'_>>, parser: &mut Parser) -> Arguments {
    let mut arguments = Arguments::default();
    if let Some(value) = value {
        match string(value) {
            Some(text) => arguments.read_json_text(text, parser),
            None => arguments.read(value),
        }
    }
    if tool == Some("apply_patch") {
        arguments.patch();
    }
    arguments
}

/// Remembers an id. Returns true if it is new; a missing id is always new.
fn remember(id: Option<&str>, seen: &mut VecDeque<u64>) -> bool {
    let Some(id) = id else { return true };
    let hash = xxh3_64(id.as_bytes());
    if seen.contains(&hash) {
        return false;
    }
    if seen.len() == REMEMBERED {
        seen.pop_front();
    }
    seen.push_back(hash);
    true
}
