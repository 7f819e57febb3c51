//! Reads tool outputs in their three forms (docs/formats.md#codex).

use schemas::EventType;

use super::ended::CallEnd;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded, string_value};
use crate::text::names::is_uuid;
use crate::text::render;

/// Beginnings of outputs that report a failure only in words.
const FAILURE_PREFIXES: &[&str] = &[
    "apply_patch verification failed",
    "error:",
    "exec_command failed",
    "execution error",
    "failed in sandbox",
    "failed to ",
    "Script failed\n",
    "collab spawn failed",
    "spawn failed",
    "resources/list failed",
    "resources/templates/list failed",
    "resources/read failed",
    "write_stdin failed",
    "aborted",
];

/// Number of lines at the start of an output that are searched for an exit code and a duration.
const HEADER_LINES: usize = 8;

/// Facts that an output states about its call.
#[derive(Default)]
struct OutputFacts {
    exit_code: Option<i64>,
    seconds: Option<f64>,
    is_success: Option<bool>,
    /// Id of the agent that the call started.
    spawned_agent_id: Option<String>,
}

/// Pushes the output of a tool.
pub(super) fn push_tool_result(
    item: Value<'_>,
    ended: &CallEnd,
    parser: &mut Parser,
    text: &mut String,
    out: &mut Stream,
) {
    let output = ["output", "tools", "result"].iter().find_map(|key| item.field(key));
    let facts = output.map(|output| read_output(output, parser, text)).unwrap_or_default();

    let exit_code = facts.exit_code.and_then(|code| i32::try_from(code).ok());
    let has_failure_text = FAILURE_PREFIXES.iter().any(|prefix| text.starts_with(prefix));
    let is_error = exit_code
        .map(|code| code != 0)
        .or(facts.is_success.map(|is_success| !is_success))
        .or(ended.is_error)
        .or(has_failure_text.then_some(true));
    let seconds = facts.seconds.filter(|seconds| seconds.is_finite());
    #[expect(clippy::cast_possible_truncation, reason = "durations in milliseconds")]
    let duration_ms = seconds.map(|seconds| (seconds * 1000.0).round() as i64);
    let decoded = DecodedEvent {
        text,
        tool_call_id: item.non_empty("call_id"),
        is_error,
        exit_code,
        duration_ms: ended.duration_ms.or(duration_ms),
        spawned_agent_id: facts.spawned_agent_id.as_deref(),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}

/// Appends the text of an output in any of its forms. Returns the facts that it states.
fn read_output(output: Value<'_>, parser: &mut Parser, text: &mut String) -> OutputFacts {
    let mut facts = OutputFacts::default();
    if let Some(plain) = string_value(output) {
        let is_json = decode_embedded(plain, parser, |value| {
            // The old form:
            // `{"output": "...", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}`
            if let Some(inner) = value.text("output")
                && let Some(metadata) = value.object("metadata")
            {
                text.push_str(inner);
                facts.exit_code = metadata.int("exit_code");
                facts.seconds = metadata.field("duration_seconds").and_then(read_float);
            } else {
                // The answer of `spawn_agent`.
                let agent = value.text("agent_id").filter(|id| is_uuid(id));
                facts.spawned_agent_id = agent.map(str::to_owned);
                text.push_str(plain);
            }
        });
        if !is_json {
            text.push_str(plain);
            (facts.exit_code, facts.seconds) = parse_output_header(plain);
        }
    } else if let Some(content) = output.field("content") {
        facts.is_success = output.flag("success");
        render::append_content(content, text);
    } else {
        render::append_content(output, text);
        (facts.exit_code, facts.seconds) = parse_output_header(text);
    }
    facts
}

pub(super) fn read_float(value: Value<'_>) -> Option<f64> {
    use simd_json::prelude::*;
    value.cast_f64()
}

/// Parses the exit code and the seconds from the lines before the output of a command:
/// `Exit code: 1`, `Process exited with code 1`, `Wall time: 0.3 seconds`.
fn parse_output_header(text: &str) -> (Option<i64>, Option<f64>) {
    if text.starts_with("failed in sandbox") {
        let code = text
            .split_once("exit code: ")
            .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
        return (code.and_then(|code| code.parse().ok()), None);
    }

    let mut exit_code = None;
    let mut seconds = None;
    for line in text.lines().take(HEADER_LINES) {
        if line == "Output:" {
            break;
        }
        let code = line
            .strip_prefix("Exit code: ")
            .or_else(|| line.strip_prefix("Process exited with code "));
        exit_code = exit_code.or_else(|| code?.trim().parse().ok());
        let time = line.strip_prefix("Wall time: ").and_then(|rest| rest.strip_suffix(" seconds"));
        seconds = seconds.or_else(|| time?.parse().ok());
    }
    (exit_code, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_read_from_the_header_only() {
        let text = "Chunk ID: 1\nWall time: 0.25 seconds\nProcess exited with code 2\nOutput:\nExit code: 9";
        assert_eq!(parse_output_header(text), (Some(2), Some(0.25)));
        assert_eq!(parse_output_header("Output:\nExit code: 9"), (None, None));
        assert_eq!(
            parse_output_header("Exit code: 1\nWall time: 3 seconds\nOutput:\nx"),
            (Some(1), Some(3.0))
        );
    }
}
