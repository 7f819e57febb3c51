//! Pushes the events that messages of both versions give: calls with results, tokens, errors.

use schemas::{EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::database::size_limit::OVERSIZED_RECORD;
use crate::provider::shared::refusal::push_refusal_words;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Text that OpenCode puts into the user's role when the user ran a command with `!`. The next
/// message is the command.
pub(super) const RAN_BY_USER: &str = "The following tool was executed by the user";

/// A tool call, in the form common to both versions.
pub(super) struct OpencodeCall<'a> {
    pub(super) tool_name: Option<&'a str>,
    pub(super) tool_call_id: Option<&'a str>,
    /// State of the call: `completed`, `error`, or a state without a result.
    pub(super) status: Option<&'a str>,
    /// Facts about the result, which depend on the tool.
    pub(super) metadata: Option<Value<'a>>,
    /// Time of the start in microseconds.
    pub(super) started: Option<i64>,
    /// Time of the end in microseconds.
    pub(super) ended: Option<i64>,
}

impl OpencodeCall<'_> {
    /// Pushes the call.
    pub(super) fn push_call(&self, arguments: &Arguments, out: &mut Stream) {
        let Self { tool_name, tool_call_id, .. } = *self;
        let timestamp = self.started;
        let decoded = DecodedEvent { tool_name, tool_call_id, timestamp, ..arguments.decoded() };
        out.push(EventType::ToolCall, decoded);
    }

    /// Pushes the result with `text`, if `has_answer` is true or the status shows that there is a
    /// result.
    pub(super) fn push_result(&self, has_answer: bool, text: &str, out: &mut Stream) {
        if !has_answer && !matches!(self.status, Some("completed" | "error")) {
            return;
        }

        let subagent = self.metadata.and_then(|metadata| {
            metadata.non_empty("sessionId").or_else(|| metadata.non_empty("sessionID"))
        });
        let exit_code = self.metadata.and_then(|metadata| metadata.int32("exit"));
        let times = self.started.zip(self.ended);
        let elapsed = times.map(|(start, end)| end.saturating_sub(start) / 1000);
        let decoded = DecodedEvent {
            text,
            tool_name: self.tool_name,
            tool_call_id: self.tool_call_id,
            is_error: Some(self.status == Some("error") || exit_code.is_some_and(|code| code != 0)),
            exit_code,
            duration_ms: elapsed.filter(|ms| *ms >= 0),
            spawned_agent_id: subagent,
            timestamp: self.ended,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
        if self.status == Some("error") {
            push_refusal_words(text, out);
        }
    }
}

/// Returns the size of the piece that a record replaces. `None` if the record is a piece itself.
pub(super) fn oversized_bytes(record: Value<'_>) -> Option<i64> {
    let is_replacement = record.text("type") == Some(OVERSIZED_RECORD);
    if is_replacement { record.int("bytes") } else { None }
}

/// Pushes the tokens and the cost of one request. Returns false if the log has no tokens of it.
pub(super) fn push_usage(request: Value<'_>, request_id: Option<&str>, out: &mut Stream) -> bool {
    let usage = request.object("tokens").map(read_usage).unwrap_or_default();
    out.push_usage(usage, request.cost("cost"), request_id)
}

/// Reads token counts. Adds reasoning to the output, unless the total shows that it is included.
fn read_usage(tokens: Value<'_>) -> Usage {
    let cache = tokens.object("cache");
    let usage = Usage {
        input: tokens.int("input"),
        output: tokens.int("output"),
        cache_read: cache.and_then(|cache| cache.int("read")),
        cache_write: cache.and_then(|cache| cache.int("write")),
        reasoning: tokens.int("reasoning"),
        ..Usage::default()
    };
    if tokens.int("total") == Some(usage.total()) {
        return usage;
    }
    let reasoning = usage.reasoning.unwrap_or(0);
    Usage { output: usage.output.map(|output| output.saturating_add(reasoning)), ..usage }
}

/// Appends a line that names an attachment, unless the text already mentions it.
pub(super) fn append_attachment(
    kind: Option<&str>,
    url: Option<&str>,
    name: Option<&str>,
    mention: Option<&str>,
    text: &mut String,
) {
    if mention.is_some_and(|mention| text.contains(mention)) {
        return;
    }
    let data = url.and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
    match (data, name.or(url)) {
        (Some((_, data)), _) => {
            render::begin_new_line(text);
            render::append_binary_summary(kind, Some(data), text);
        }
        (None, Some(name)) if kind.is_some() => render::append_line(&format!("[{name}]"), text),
        (None, Some(name)) => render::append_line(&format!("@{name}"), text),
        (None, None) => {}
    }
}

/// Returns the subtype of a text in the user's role that no user typed, by its beginning.
pub(super) fn machine_subtype(text: &str) -> &'static str {
    let text = text.trim_start();
    if text.starts_with("<system-reminder>") {
        "system_reminder"
    } else if text.starts_with("Called the ") || text.starts_with("<path>") {
        "attached_file"
    } else if text.starts_with(RAN_BY_USER) {
        "user_command"
    } else {
        "synthetic"
    }
}

/// Returns the identity of a message: role, time and beginning. Ids do not identify messages,
/// because a fork gives them new ones. `anchor` is the first text or call id in the message.
pub(super) fn message_identity(
    role: &str,
    created: Option<i64>,
    anchor: Option<&str>,
) -> Option<u64> {
    let key = format!("{role} {} {}", created?, anchor.unwrap_or(""));
    Some(xxh3_64(key.as_bytes()) | 1)
}
