//! Decodes one request of a chat: the prompt, the parts of the response and its tokens
//! (docs/formats.md#vs-code-chat).
//!
//! ```text
//! {"requestId":"request_...","timestamp":1792570000000,"modelId":"copilot/...",
//!  "message":{"text":"..."},"variableData":{"variables":[...]},
//!  "response":[{"kind":"thinking","value":"..."},{"value":"..."},
//!              {"kind":"toolInvocationSerialized","toolId":"...","toolCallId":"..."}],
//!  "result":{"metadata":{"promptTokens":9,"outputTokens":9,"toolCallRounds":[...],
//!            "toolCallResults":{...}},"errorDetails":{...}}}
//! ```

use schemas::{EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use super::tool::{ToolRounds, markdown_text, push_invocation};
use crate::provider::shared::chat;
use crate::provider::shared::file_uri::file_uri_path;
use crate::stream::{RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

/// Kinds of parts that only change what the window shows, or repeat another part.
const SILENT_PARTS: &[&str] = &[
    "clearToPreviousToolInvocation",
    "codeblockUri",
    "command",
    "mcpServersStarting",
    "prepareToolInvocation",
    "progressMessage",
    "progressTaskSerialized",
    "treeData",
    "undoStop",
];

/// Known kinds of parts that become notifications, and are not reported as drift.
const NOTED_PARTS: &[&str] = &[
    "confirmation",
    "disabledClaudeHooks",
    "elicitationSerialized",
    "extensions",
    "hook",
    "multiDiffData",
    "notebookEditGroup",
    "pullRequest",
    "questionCarousel",
    "textEditGroup",
    "warning",
    "workspaceEdit",
];

/// States of a response, as `modelState` gives them.
const CANCELLED: i64 = 2;

/// Decodes the requests of one chat in order.
#[derive(Default)]
pub(super) struct RequestDecoder {
    /// The text of the answer up to the present part.
    answer: String,
    /// The reasoning up to the present part.
    reasoning: String,
    /// Text of the current event.
    text: String,
    /// Parses JSON inside strings.
    inner: Parser,
}

/// The place of the present part in its request.
struct PartPlace<'v> {
    at: RecordAt,
    id: Option<&'v str>,
    /// The subagent that wrote the present run of parts.
    agent: Option<&'v str>,
    /// The number of runs so far.
    runs: u64,
    /// The round of calls that the present step made.
    round: Option<usize>,
    /// Whether the present step has made a call.
    has_called: bool,
}

impl RequestDecoder {
    /// Decodes one request into events. `raw` is its JSON.
    pub(super) fn decode_request(
        &mut self,
        request: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) {
        let id = request.non_empty("requestId");
        let time = chat::read_millis(Some(request), "timestamp");
        let result = request.object("result");
        let metadata = result.and_then(|result| result.object("metadata"));
        out.begin_message(id);
        let first = out.position();
        match id {
            Some(id) => out.begin_record(at, Some(request_identity(id, 0)), time),
            None => out.begin_record_by_content(at, raw, time),
        }
        out.extend_time_range(end_time(request, result, time));
        out.set_version(request.object("agent").and_then(|agent| agent.text("extensionVersion")));

        let message = request.field("message");
        let prompt = message.and_then(string_value).or_else(|| message?.text("text"));
        if let Some(prompt) = prompt.filter(|prompt| !prompt.trim().is_empty()) {
            out.push_prompt(prompt);
        }
        self.push_attachments(request, out);
        set_model(request, metadata, out);
        let mut place = PartPlace { at, id, agent: None, runs: 0, round: None, has_called: false };
        place.begin_record(out);
        self.decode_response(&request.items("response"), metadata, place, out);
        push_usage(request, result, metadata, out);
        self.push_end(request, result, out);

        // The user went back to before this request.
        if request.flag("isHidden") == Some(true)
            || request.object("shouldBeRemovedOnSend").is_some()
        {
            out.abandon_from(first);
        }
    }

    /// Pushes the names of what the user attached to the prompt.
    fn push_attachments(&mut self, request: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let data = request.object("variableData");
        for variable in data.map_or_else(Vec::new, |data| data.items("variables")) {
            let kind = variable.text("kind").unwrap_or("attachment");
            if let Some(name) = variable.non_empty("name").or_else(|| variable.non_empty("id")) {
                render::append_line(&format!("{kind}: {name}"), &mut self.text);
            }
        }
        if !self.text.is_empty() {
            out.push_shortened("attachments", &self.text);
        }
    }

    /// Decodes the parts of a response. Text and reasoning come in many parts.
    fn decode_response<'v>(
        &mut self,
        parts: &[Value<'v>],
        metadata: Option<Value<'_>>,
        mut place: PartPlace<'v>,
        out: &mut Stream,
    ) {
        self.answer.clear();
        self.reasoning.clear();
        if parts.is_empty() {
            return;
        }
        let rounds = ToolRounds::read(parts, metadata);
        out.begin_step();
        for (number, part) in parts.iter().enumerate() {
            let kind = part.text("kind").unwrap_or("markdownContent");
            match kind {
                "markdownContent" | "markdownVuln" => {
                    self.flush_reasoning(out);
                    place.begin_text(out);
                    let text = markdown_text(part.field("value"))
                        .or_else(|| markdown_text(part.field("content")));
                    self.answer.push_str(text.unwrap_or(""));
                }
                "inlineReference" => {
                    place.begin_text(out);
                    append_reference(*part, &mut self.answer);
                }
                "thinking" => {
                    self.flush_answer(out);
                    place.begin_text(out);
                    self.append_thinking(*part);
                }
                "toolInvocationSerialized" | "toolInvocation" => {
                    self.flush(out);
                    let call = rounds.call(number);
                    place.begin_call(*part, call.map(|call| call.round), out);
                    push_invocation(*part, call, &rounds, &mut self.inner, out);
                }
                kind if SILENT_PARTS.contains(&kind) => {}
                kind => {
                    self.flush(out);
                    if !NOTED_PARTS.contains(&kind) {
                        out.count_unknown("block", kind);
                    }
                    self.text.clear();
                    render::append_notification(*part, &["kind"], &mut self.text);
                    out.push_notification(kind, &self.text);
                }
            }
        }
        self.flush(out);
        place.begin_run(None, out);
    }

    /// Appends a part of the reasoning. Its text is one string or several.
    fn append_thinking(&mut self, part: Value<'_>) {
        self.reasoning.push_str(part.text("value").unwrap_or(""));
        for text in part.items("value").into_iter().filter_map(string_value) {
            self.reasoning.push_str(text);
        }
    }

    fn flush(&mut self, out: &mut Stream) {
        self.flush_reasoning(out);
        self.flush_answer(out);
    }

    fn flush_answer(&mut self, out: &mut Stream) {
        let text = self.answer.trim();
        out.push_text(EventType::Message, text);
        self.answer.clear();
    }

    fn flush_reasoning(&mut self, out: &mut Stream) {
        let text = self.reasoning.trim();
        if !text.is_empty() {
            out.push_text(EventType::Reasoning, text);
        }
        self.reasoning.clear();
    }

    /// Pushes how a response ended, if it failed or was stopped.
    fn push_end(&mut self, request: Value<'_>, result: Option<Value<'_>>, out: &mut Stream) {
        let error = result.and_then(|result| result.object("errorDetails"));
        let state = request.object("modelState").and_then(|state| state.int("value"));
        if let Some(error) = error {
            self.text.clear();
            render::append_notification(error, &["responseIsFiltered"], &mut self.text);
            out.push_notice("error", &self.text, Some(true));
        } else if state == Some(CANCELLED) || request.flag("isCanceled") == Some(true) {
            out.push_notification("interrupted", "The user stopped the response.");
        }
    }
}

impl<'v> PartPlace<'v> {
    /// Begins text, which after a call belongs to the next response of the model.
    fn begin_text(&mut self, out: &mut Stream) {
        self.begin_run(None, out);
        if std::mem::take(&mut self.has_called) {
            self.round = None;
            out.begin_step();
        }
    }

    /// Begins a call of a round, if that is known.
    fn begin_call(&mut self, part: Value<'v>, round: Option<usize>, out: &mut Stream) {
        let agent = part.non_empty("subAgentInvocationId");
        let agent = agent.or_else(|| (part.flag("fromSubAgent") == Some(true)).then_some(""));
        self.begin_run(agent, out);
        let is_next = self.has_called && round.is_some() && round != self.round;
        if is_next {
            out.begin_step();
        }
        self.has_called = true;
        self.round = round.or(self.round);
    }

    /// Begins a run of parts of the agent or of a subagent, unless they continue the present one.
    fn begin_run(&mut self, agent: Option<&'v str>, out: &mut Stream) {
        if agent == self.agent {
            return;
        }
        self.agent = agent;
        self.begin_record(out);
        if let Some(agent) = agent {
            out.set_sidechain(Some(agent).filter(|agent| !agent.is_empty()));
        }
    }
}

impl PartPlace<'_> {
    /// Begins a record for a run of parts. Parts have no times, so that of the prompt before them
    /// must not give the durations of calls.
    fn begin_record(&mut self, out: &mut Stream) {
        self.runs += 1;
        let identity = self.id.map(|id| request_identity(id, self.runs));
        out.begin_record(self.at, identity, None);
    }
}

/// Returns when a response ended.
fn end_time(request: Value<'_>, result: Option<Value<'_>>, start: Option<i64>) -> Option<i64> {
    let completed = chat::read_millis(request.object("modelState"), "completedAt");
    let timings = result.and_then(|result| result.object("timings"));
    let elapsed = chat::read_millis(timings, "totalElapsed");
    completed.or_else(|| Some(start?.saturating_add(elapsed?)))
}

/// Sets the model that answered, or else the one that the user chose.
fn set_model(request: Value<'_>, metadata: Option<Value<'_>>, out: &mut Stream) {
    let resolved = metadata.and_then(|metadata| metadata.non_empty("resolvedModel"));
    // A chosen model is named after its provider: `copilot/gpt-5`.
    let chosen = request.non_empty("modelId").and_then(|model| model.rsplit('/').next());
    out.set_model(resolved.or(chosen));
}

/// Pushes the token counts of a request. The counts of the prompt are those of the last round.
fn push_usage(
    request: Value<'_>,
    result: Option<Value<'_>>,
    metadata: Option<Value<'_>>,
    out: &mut Stream,
) {
    let usage = result.and_then(|result| result.object("usage"));
    let owners = [metadata, usage, request.object("usage"), Some(request)];
    let count =
        |keys: &[&str]| owners.into_iter().flatten().find_map(|owner| chat::first_int(owner, keys));
    let usage = Usage {
        input: count(&["promptTokens"]),
        output: count(&["outputTokens", "completionTokens"]),
        ..Usage::default()
    };
    let request_id = request.non_empty("responseId").or_else(|| request.non_empty("requestId"));
    out.push_usage(usage, None, request_id);
}

/// Appends the name of a file or symbol inside the text of an answer.
fn append_reference(part: Value<'_>, answer: &mut String) {
    let target = part.object("inlineReference");
    let uri = target.map(|target| {
        let location = target.object("location").unwrap_or(target);
        location.object("uri").unwrap_or(location)
    });
    let path = uri.and_then(|uri| {
        let external = uri.text("external").and_then(file_uri_path);
        external.or_else(|| {
            uri.non_empty("fsPath").or_else(|| uri.non_empty("path")).map(str::to_owned)
        })
    });
    let name = part.non_empty("name").or_else(|| target?.non_empty("name")).map(str::to_owned);
    if let Some(shown) = name.or(path) {
        answer.push('`');
        answer.push_str(&shown);
        answer.push('`');
    }
}

/// Returns the identity of a run of the parts of a response, by its number in the request.
pub(super) fn request_identity(request_id: &str, run: u64) -> u64 {
    xxh3_64(format!("{request_id} {run}").as_bytes()) | 1
}
