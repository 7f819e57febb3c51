//! Decodes tool calls and their results in the logs of GitHub Copilot CLI
//! (docs/formats.md#github-copilot-cli).

use schemas::EventType;

use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::refusal::push_refusal_words;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

/// Pushes a call. It is a request of a message, in whose step it belongs, or the start of a tool
/// for which no message asked.
pub(super) fn push_call(
    call: Value<'_>,
    name: Option<&str>,
    step: Option<i32>,
    parser: &mut Parser,
    out: &mut Stream,
) {
    let arguments = Arguments::of_input(call.field("arguments"), parser);
    let tool_call_id = call.non_empty("toolCallId");
    let decoded = DecodedEvent { tool_name: name, tool_call_id, ..arguments.decoded() };
    match step {
        Some(step) => out.push_in_step(EventType::ToolCall, step, decoded),
        None => out.push(EventType::ToolCall, decoded),
    }
}

/// Pushes a result: the text that the model saw, or otherwise the text that the user saw.
pub(super) fn push_tool_result(data: Value<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    let result = data.field("result");
    for key in ["content", "detailedContent", "contents"] {
        if text.is_empty() {
            append_content(result.and_then(|result| result.field(key)), text);
        }
    }
    if let Some(plain) = result.and_then(string_value) {
        text.push_str(plain);
    }

    let error = data.object("error");
    let message = error.and_then(|error| error.text("message")).or_else(|| data.text("error"));
    if let Some(message) = message
        && message != text.as_str()
    {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(message);
    }

    let metrics = data.object("toolTelemetry").and_then(|telemetry| telemetry.object("metrics"));
    let exit_code = parse_exit_code(text).or_else(|| metrics?.int32("exit_code"));
    let success = data.flag("success");
    let has_failed = success == Some(false)
        || message.is_some_and(|message| !message.is_empty())
        || exit_code.is_some_and(|code| code != 0);
    let decoded = DecodedEvent {
        subtype: error.and_then(|error| error.non_empty("code")),
        text,
        tool_name: data.non_empty("toolName"),
        tool_call_id: data.non_empty("toolCallId"),
        is_error: (success.is_some() || has_failed).then_some(has_failed),
        exit_code,
        duration_ms: metrics.and_then(|metrics| metrics.int("durationMs")),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
    if has_failed {
        push_refusal_words(text, out);
    }
}

/// Appends content, which may be missing.
pub(super) fn append_content(content: Option<Value<'_>>, text: &mut String) {
    use simd_json::prelude::*;
    if let Some(content) = content.filter(|content| !content.is_null()) {
        render::append_content(content, text);
    }
}

/// Parses the exit code of a command, which is in the last line:
/// `<shellId: 3 completed with exit code 1>`, in older logs `<exited with exit code 1>`.
fn parse_exit_code(text: &str) -> Option<i32> {
    let last = text.trim_end().lines().next_back()?;
    let mark = last.strip_prefix('<')?.strip_suffix('>')?;
    let (_, code) = mark.rsplit_once("exit code ")?;
    code.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_stand_in_the_last_line() {
        assert_eq!(parse_exit_code("ok\n<shellId: 3 completed with exit code 101>"), Some(101));
        assert_eq!(parse_exit_code("<exited with exit code 0>\n"), Some(0));
        assert_eq!(parse_exit_code("<shellId: 3 completed with exit code 1>\nmore"), None);
        assert_eq!(parse_exit_code("exit code 1"), None);
        assert_eq!(parse_exit_code(""), None);
    }
}
