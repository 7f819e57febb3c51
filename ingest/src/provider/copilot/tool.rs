//! Tool calls and their results in the logs of GitHub Copilot CLI
//! (docs/formats.md#github-copilot-cli).

use schemas::EventType;

use crate::provider::shared::arguments::Arguments;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Parser, Value, string};
use crate::text::render;

/// Pushes a call. It is a request of a message, in whose step it belongs, or the start of a tool
/// for which no message asked.
pub(super) fn call(
    call: Value<'_>,
    name: Option<&str>,
    step: Option<i32>,
    parser: &mut Parser,
    out: &mut Stream,
) {
    let mut arguments = Arguments::default();
    if let Some(value) = call.field("arguments") {
        match string(value) {
            Some(text) => arguments.read_json_text(text, parser),
            None => arguments.read(value),
        }
    }
    let tool_call_id = call.non_empty("toolCallId");
    let draft = Draft { tool_name: name, tool_call_id, ..arguments.draft() };
    match step {
        Some(step) => out.push_in(EventType::ToolCall, step, draft),
        None => out.push(EventType::ToolCall, draft),
    }
}

/// Pushes a result: the text that the model saw, or otherwise the text that the user saw.
pub(super) fn result(data: Value<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    let result = data.field("result");
    for key in ["content", "detailedContent", "contents"] {
        if text.is_empty() {
            shown(result.and_then(|result| result.field(key)), text);
        }
    }
    if let Some(plain) = result.and_then(string) {
        text.push_str(plain);
    }
    let error = data.object("error");
    let message = error.and_then(|error| error.text("message")).or_else(|| data.text("error"));
    if let Some(message) = message.filter(|message| *message != text.as_str()) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(message);
    }
    let metrics = data.object("toolTelemetry").and_then(|telemetry| telemetry.object("metrics"));
    let metric = |name: &str| metrics.and_then(|metrics| metrics.int(name));
    let told = || metric("exit_code").and_then(|code| i32::try_from(code).ok());
    let exit_code = exit_code(text).or_else(told);
    let success = data.flag("success");
    let failed = success == Some(false)
        || message.is_some_and(|message| !message.is_empty())
        || exit_code.is_some_and(|code| code != 0);
    let draft = Draft {
        subtype: error.and_then(|error| error.non_empty("code")),
        text,
        tool_name: data.non_empty("toolName"),
        tool_call_id: data.non_empty("toolCallId"),
        is_error: (success.is_some() || failed).then_some(failed),
        exit_code,
        duration_ms: metric("durationMs"),
        ..Draft::default()
    };
    out.push(EventType::ToolResult, draft);
}

/// Appends content, which may be missing.
pub(super) fn shown(content: Option<Value<'_>>, text: &mut String) {
    use simd_json::prelude::*;
    if let Some(content) = content.filter(|content| !content.is_null()) {
        render::content(content, text);
    }
}

/// Parses the exit code of a command, which is in the last line:
/// `<shellId: 3 completed with exit code 1>`, in older logs `<exited with exit code 1>`.
fn exit_code(text: &str) -> Option<i32> {
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
        assert_eq!(exit_code("ok\n<shellId: 3 completed with exit code 101>"), Some(101));
        assert_eq!(exit_code("<exited with exit code 0>\n"), Some(0));
        assert_eq!(exit_code("<shellId: 3 completed with exit code 1>\nmore"), None);
        assert_eq!(exit_code("exit code 1"), None);
        assert_eq!(exit_code(""), None);
    }
}
