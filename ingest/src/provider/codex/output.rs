//! Reads what Codex writes inside strings: tool outputs in their three forms, and machine text in
//! the user's role (docs/formats.md#codex).

use schemas::EventType;

use super::ended::Ended;
use crate::provider::shared::identity::is_uuid;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Parser, Value, embedded, string};
use crate::text::render;

/// Beginnings of machine text in the user's role, each with the subtype of its notification.
const MACHINE: &[(&str, &str)] = &[
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
const FAILURES: &[&str] = &[
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
pub(super) fn machine_text(text: &str) -> Option<&'static str> {
    let trimmed = text.trim_start();
    MACHINE.iter().find(|(start, _)| trimmed.starts_with(start)).map(|(_, subtype)| *subtype)
}

/// Returns the agent's folder that a machine text names. In the flat generation it is recorded
/// nowhere else.
pub(super) fn folder(context: &str) -> Option<&str> {
    let marked = context.split_once("<cwd>").and_then(|(_, rest)| rest.split_once("</cwd>"));
    let told = || context.split_once("Current working directory: ")?.1.lines().next();
    marked.map(|(folder, _)| folder).or_else(told).map(str::trim)
}

/// Splits the context that an editor adds (open or attached files, findings of a review) from the
/// user's request after it.
pub(super) fn request(text: &str) -> (Option<&str>, &str) {
    let is_context = text.trim_start().starts_with("# ");
    match text.split_once("\n## My request for Codex:") {
        Some((context, typed)) if is_context && !typed.trim().is_empty() => {
            (Some(context.trim()), typed.trim())
        }
        _ => (None, text),
    }
}

/// Pushes the output of a tool.
pub(super) fn result(
    item: Value<'_>,
    ended: &Ended,
    parser: &mut Parser,
    text: &mut String,
    out: &mut Stream,
) {
    let output = ["output", "tools", "result"].iter().find_map(|key| item.field(key));
    let mut exit_code = None;
    let mut seconds = None;
    let mut success = None;
    let mut spawned = None;
    if let Some(output) = output {
        let plain = string(output);
        let wrapped = plain.is_some_and(|json| {
            embedded(json, parser, |value| {
                // The old form:
                // `{"output": "...", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}`
                if let (Some(inner), Some(metadata)) =
                    (value.text("output"), value.object("metadata"))
                {
                    text.push_str(inner);
                    exit_code = metadata.int("exit_code");
                    seconds = metadata.field("duration_seconds").and_then(float);
                } else {
                    // The answer of `spawn_agent`.
                    let agent = value.text("agent_id").filter(|id| is_uuid(id));
                    spawned = agent.map(str::to_owned);
                    text.push_str(json);
                }
            })
        });
        match plain {
            Some(_) if wrapped => {}
            Some(plain) => {
                text.push_str(plain);
                (exit_code, seconds) = header(plain);
            }
            None if output.field("content").is_some() => {
                success = output.flag("success");
                output.field("content").inspect(|content| render::content(*content, text));
            }
            None => {
                render::content(output, text);
                (exit_code, seconds) = header(text);
            }
        }
    }
    let told_failed = FAILURES.iter().any(|start| text.starts_with(start)).then_some(true);
    #[expect(clippy::cast_possible_truncation, reason = "durations in milliseconds")]
    let duration_ms =
        seconds.filter(|s| s.is_finite()).map(|seconds: f64| (seconds * 1000.0).round() as i64);
    let exit_code = exit_code.and_then(|code| i32::try_from(code).ok());
    let draft = Draft {
        text,
        tool_call_id: item.non_empty("call_id"),
        is_error: exit_code
            .map(|code| code != 0)
            .or(success.map(|success: bool| !success))
            .or(ended.is_error)
            .or(told_failed),
        exit_code,
        duration_ms: ended.duration_ms.or(duration_ms),
        spawned_agent_id: spawned.as_deref(),
        ..Draft::default()
    };
    out.push(EventType::ToolResult, draft);
}

fn float(value: Value<'_>) -> Option<f64> {
    use simd_json::prelude::*;
    value.cast_f64()
}

/// Parses the exit code and the seconds from the lines before the output of a command:
/// `Exit code: 1`, `Process exited with code 1`, `Wall time: 0.3 seconds`.
fn header(text: &str) -> (Option<i64>, Option<f64>) {
    let mut exit_code = None;
    let mut seconds = None;
    if text.starts_with("failed in sandbox") {
        let code = text
            .split_once("exit code: ")
            .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
        return (code.and_then(|code| code.parse().ok()), None);
    }
    for line in text.lines().take(8) {
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
        assert_eq!(header(text), (Some(2), Some(0.25)));
        assert_eq!(header("Output:\nExit code: 9"), (None, None));
        assert_eq!(header("Exit code: 1\nWall time: 3 seconds\nOutput:\nx"), (Some(1), Some(3.0)));
    }

    #[test]
    fn machine_text_is_told_from_prompts() {
        assert_eq!(machine_text("<environment_context>\n x"), Some("environment_context"));
        assert_eq!(machine_text("# AGENTS.md instructions for /x"), Some("agents_md"));
        assert_eq!(machine_text("# Review findings:"), None);
        assert_eq!(machine_text("<html> is broken"), None);
    }

    #[test]
    fn what_an_editor_tells_is_no_part_of_the_prompt() {
        let text = "\n# Files mentioned by the user:\n\n## a.png: /a.png\n\n## My request for Codex:\nUse it\n";
        let context = "# Files mentioned by the user:\n\n## a.png: /a.png";
        assert_eq!(request(text), (Some(context), "Use it"));
        for whole in
            ["# Findings:\n\n## My request for Codex:\n", "say\n## My request for Codex: x"]
        {
            assert_eq!(request(whole), (None, whole));
        }
    }
}
