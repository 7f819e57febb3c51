//! Reads what Codex writes inside strings: tool outputs in their three forms, and machine text in
//! the user's role (docs/formats.md#codex).

use schemas::EventType;

use super::ended::CallEnd;
use crate::provider::shared::identity::is_uuid;
use crate::stream::{Draft, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded, string_value};
use crate::text::render;

/// Beginnings of machine text in the user's role, each with the subtype of its notification.
const MACHINE_PREFIXES: &[(&str, &str)] = &[
    ("<environment_context>", "environment_context"),
    ("<user_instructions>", "user_instructions"),
    ("# AGENTS.md instructions", "agents_md"),
    ("<permissions instructions>", "permissions"),
    ("<turn_aborted>", "interrupted"),
    ("<skill>", "skill"),
    ("<skills_instructions>", "skill"),
    ("<apps_instructions>", "apps"),
    ("<collaboration_mode>", "collaboration_mode"),
    ("<model_switch>", "model_switch"),
    ("<personality_spec>", "personality"),
    ("<subagent_notification>", "subagent_notification"),
    ("<user_shell_command>", "user_shell_command"),
    ("<user_action>", "user_action"),
    ("<hook_prompt", "hook_prompt"),
    ("<goal_context>", "goal_context"),
    ("<codex_internal_context", "internal_context"),
];

/// Beginnings of outputs that report a failure only in words.
const FAILURE_PREFIXES: &[&str] = &[
    "apply_patch verification failed",
    "error:",
    "exec_command failed",
    "execution error",
    "failed in sandbox",
    "failed to ",
    "write_stdin failed",
    "aborted",
];

/// Returns the subtype of a text that the client wrote, or `None` if the user wrote it.
pub(super) fn machine_text_subtype(text: &str) -> Option<&'static str> {
    let trimmed = text.trim_start();
    let machine = MACHINE_PREFIXES.iter().find(|(prefix, _)| trimmed.starts_with(prefix));
    machine.map(|(_, subtype)| *subtype)
}

/// Number of lines at the start of an output that are searched for an exit code and a duration.
const HEADER_LINES: usize = 8;

/// Returns the agent's folder that a machine text names. In the flat generation it is recorded
/// nowhere else.
pub(super) fn working_folder(context: &str) -> Option<&str> {
    if let Some((_, rest)) = context.split_once("<cwd>")
        && let Some((folder, _)) = rest.split_once("</cwd>")
    {
        return Some(folder.trim());
    }
    let (_, rest) = context.split_once("Current working directory: ")?;
    rest.lines().next().map(str::trim)
}

/// Splits the context that an editor adds (open or attached files, findings of a review) from the
/// user's request after it.
pub(super) fn split_request(text: &str) -> (Option<&str>, &str) {
    let is_context = text.trim_start().starts_with("# ");
    match text.split_once("\n## My request for Codex:") {
        Some((context, typed)) if is_context && !typed.trim().is_empty() => {
            (Some(context.trim()), typed.trim())
        }
        _ => (None, text),
    }
}

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
    let draft = Draft {
        text,
        tool_call_id: item.non_empty("call_id"),
        is_error,
        exit_code,
        duration_ms: ended.duration_ms.or(duration_ms),
        spawned_agent_id: facts.spawned_agent_id.as_deref(),
        ..Draft::default()
    };
    out.push(EventType::ToolResult, draft);
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

    #[test]
    fn machine_text_is_told_from_prompts() {
        assert_eq!(machine_text_subtype("<environment_context>\n x"), Some("environment_context"));
        assert_eq!(machine_text_subtype("# AGENTS.md instructions for /x"), Some("agents_md"));
        assert_eq!(machine_text_subtype("# Review findings:"), None);
        assert_eq!(machine_text_subtype("<html> is broken"), None);
    }

    #[test]
    fn what_an_editor_tells_is_no_part_of_the_prompt() {
        let text = "\n# Files mentioned by the user:\n\n## a.png: /a.png\n\n## My request for Codex:\nUse it\n";
        let context = "# Files mentioned by the user:\n\n## a.png: /a.png";
        assert_eq!(split_request(text), (Some(context), "Use it"));
        for whole in
            ["# Findings:\n\n## My request for Codex:\n", "say\n## My request for Codex: x"]
        {
            assert_eq!(split_request(whole), (None, whole));
        }
    }
}
