//! Decodes the calls of tools in a response, and their results (docs/formats.md#vs-code-chat).
//!
//! A part of the response shows what the window showed of a call. The request that the model made,
//! with all arguments and the result that it got, is in the metadata of the response:
//!
//! ```text
//! "response":[{"kind":"toolInvocationSerialized","toolId":"copilot_readFile","toolCallId":"call_1",
//!              "pastTenseMessage":{"value":"Read ..."},"toolSpecificData":{...},...}]
//! "toolCallRounds":[{"toolCalls":[{"id":"call_1","name":"read_file","arguments":"{...}"}]}]
//! "toolCallResults":{"call_1":{"content":[{"value":"..."}]}}
//! ```

use std::collections::HashMap;

use schemas::EventType;
use simd_json::prelude::*;

use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::file_uri::file_uri_path;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

/// The values of `isConfirmed.type` for a call that the user denied or skipped.
const REFUSED: &[i64] = &[0, 5];

/// Maximum depth of the nodes of a result whose texts are read.
const MAX_NODE_DEPTH: usize = 64;

/// A call that the model made.
#[derive(Clone, Copy)]
pub(super) struct ModelCall<'v> {
    /// The number of the round that made it.
    pub(super) round: usize,
    call: Value<'v>,
}

/// The calls that the model made during one request, and their results.
#[derive(Default)]
pub(super) struct ToolRounds<'v> {
    /// The calls by the number of the part that shows them.
    by_part: HashMap<usize, ModelCall<'v>>,
    results: Option<Value<'v>>,
}

impl<'v> ToolRounds<'v> {
    /// Finds the calls that the parts of a response show.
    pub(super) fn read(parts: &[Value<'v>], metadata: Option<Value<'v>>) -> Self {
        let Some(metadata) = metadata else { return Self::default() };
        let mut calls = Vec::new();
        for (round, made) in metadata.items("toolCallRounds").into_iter().enumerate() {
            calls.extend(made.items("toolCalls").into_iter().map(|call| ModelCall { round, call }));
        }
        let by_id: HashMap<&str, ModelCall<'v>> =
            calls.iter().filter_map(|call| Some((call.call.non_empty("id")?, *call))).collect();

        let shown = parts.iter().enumerate().filter(|(_, part)| is_own_invocation(**part));
        let shown: Vec<(usize, Value<'v>)> = shown.map(|(number, part)| (number, *part)).collect();
        let mut by_part = HashMap::new();
        for (number, part) in &shown {
            if let Some(call) = part.text("toolCallId").and_then(|id| by_id.get(id)) {
                by_part.insert(*number, *call);
            }
        }
        // Older versions gave the parts ids of their own.
        if by_part.is_empty() && shown.len() == calls.len() {
            by_part = shown.iter().map(|(number, _)| *number).zip(calls).collect();
        }
        Self { by_part, results: metadata.object("toolCallResults") }
    }

    /// Returns the call that a part shows, by the number of the part.
    pub(super) fn call(&self, part: usize) -> Option<ModelCall<'v>> {
        self.by_part.get(&part).copied()
    }
}

/// Returns whether a part shows a call of the agent itself, not of a subagent.
fn is_own_invocation(part: Value<'_>) -> bool {
    part.text("kind").is_some_and(|kind| kind.starts_with("toolInvocation"))
        && part.non_empty("subAgentInvocationId").is_none()
        && part.flag("fromSubAgent") != Some(true)
}

/// Pushes a call and its result.
pub(super) fn push_invocation(
    part: Value<'_>,
    call: Option<ModelCall<'_>>,
    rounds: &ToolRounds<'_>,
    inner: &mut Parser,
    out: &mut Stream,
) {
    let made = call.map(|call| call.call);
    let id = part.non_empty("toolCallId").or_else(|| made?.non_empty("id"));
    let name = made.and_then(|made| made.non_empty("name")).or_else(|| part.text("toolId"));
    let data = part.object("toolSpecificData");

    let input = made.and_then(|made| made.field("arguments"));
    let mut arguments = Arguments::of_input(input, inner);
    if input.is_none() {
        read_shown_arguments(part, data, &mut arguments);
    }
    arguments.push_call(name, id, out);

    let is_refused = is_refused(part);
    if part.flag("isComplete") == Some(false) && !is_refused {
        return;
    }
    let terminal = data.and_then(|data| data.object("terminalCommandState"));
    let exit_code = terminal.and_then(|state| state.int32("exitCode"));
    let details = part.object("resultDetails");
    let is_error = details.and_then(|details| details.flag("isError")) == Some(true)
        || exit_code.is_some_and(|code| code != 0)
        || is_refused;
    let is_subagent = data.and_then(|data| data.text("kind")) == Some("subagent");

    let mut text = String::new();
    let result = made.and_then(|made| made.non_empty("id")).or(id);
    let result = result.and_then(|id| rounds.results?.object(id));
    append_result(part, result, data, &mut text);
    let decoded = DecodedEvent {
        subtype: is_refused.then_some("cancelled"),
        text: &text,
        tool_name: name,
        tool_call_id: id,
        spawned_agent_id: id.filter(|_| is_subagent),
        is_error: Some(is_error),
        exit_code,
        duration_ms: terminal.and_then(|state| state.int("duration")),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}

/// Returns whether the user denied or skipped a call.
fn is_refused(part: Value<'_>) -> bool {
    let reason = part.object("isConfirmed").and_then(|reason| reason.int("type"));
    part.flag("isConfirmed") == Some(false) || reason.is_some_and(|kind| REFUSED.contains(&kind))
}

/// Reads what the window showed of the arguments of a call.
fn read_shown_arguments(part: Value<'_>, data: Option<Value<'_>>, arguments: &mut Arguments) {
    let command = data.and_then(|data| {
        let line = data.object("commandLine").unwrap_or(data);
        ["userEdited", "toolEdited", "original", "command"]
            .iter()
            .find_map(|key| line.field(key).filter(|line| string_value(*line).is_some()))
    });
    let input = data.and_then(|data| data.field("rawInput"));
    let prompt = data.and_then(|data| data.non_empty("prompt"));
    let shown = ["invocationMessage", "pastTenseMessage"]
        .iter()
        .find_map(|key| markdown_text(part.field(key)));
    match (command, input, prompt.or(shown)) {
        (Some(command), _, _) => arguments.read_command_line(command),
        (None, Some(input), _) => arguments.read_value(input),
        (None, None, Some(text)) => arguments.read_plain_text(text),
        (None, None, None) => {}
    }
}

/// Appends the result of a call: what the model got, or else what the window showed.
fn append_result(
    part: Value<'_>,
    result: Option<Value<'_>>,
    data: Option<Value<'_>>,
    text: &mut String,
) {
    for content in result.map_or_else(Vec::new, |result| result.items("content")) {
        if let Some(value) = content.field("value") {
            render::begin_new_line(text);
            append_node(value, 0, text);
        }
    }
    if !text.is_empty() {
        return;
    }
    let details = part.field("resultDetails");
    let output = details.map_or_else(Vec::new, |details| details.items("output"));
    for piece in output {
        render::begin_new_line(text);
        match piece.text("value").filter(|_| piece.flag("isText") != Some(false)) {
            Some(value) => text.push_str(value),
            None => chat::append_part(piece, text),
        }
    }
    if !text.is_empty() {
        return;
    }
    let printed = data.and_then(|data| {
        let output = data.object("terminalCommandOutput").and_then(|output| output.text("text"));
        output.or_else(|| data.non_empty("result"))
    });
    let shown = markdown_text(part.field("pastTenseMessage"));
    text.push_str(printed.or(shown).unwrap_or(""));
    // The files or places that a search found.
    for place in
        details.and_then(|details| details.as_array()).into_iter().flat_map(|list| list.iter())
    {
        let uri = place.object("uri").unwrap_or(place);
        let path = uri.text("external").and_then(file_uri_path);
        if let Some(path) = path.as_deref().or_else(|| uri.non_empty("path")) {
            render::append_line(path, text);
        }
    }
}

/// Appends the texts of a value that is text or a tree of nodes.
fn append_node(value: Value<'_>, depth: usize, text: &mut String) {
    if let Some(plain) = string_value(value) {
        return text.push_str(plain);
    }
    if depth == MAX_NODE_DEPTH {
        return;
    }
    if value.flag("lineBreakBefore") == Some(true) {
        render::begin_new_line(text);
    }
    text.push_str(value.text("text").unwrap_or(""));
    if let Some(node) = value.object("node") {
        append_node(node, depth + 1, text);
    }
    for child in value.items("children") {
        append_node(child, depth + 1, text);
    }
}

/// Returns a text that is given plain or as Markdown.
pub(super) fn markdown_text(value: Option<Value<'_>>) -> Option<&str> {
    let value = value?;
    string_value(value).or_else(|| value.text("value")).filter(|text| !text.is_empty())
}
