//! Decodes Claude Code's `user` records: the user's prompts, tool results, and machine text in the
//! user's role (docs/formats.md#claude-code).

use std::borrow::Cow;
use std::fmt::Write as _;

use schemas::EventType;

use super::machine;
use crate::provider::shared::machine_text::{
    self, find_machine_text, split_machine_text, text_between,
};
use crate::provider::shared::prompt;
use crate::provider::shared::refusal::{USER_WORDS, push_user_words, refusal_words};
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// Subtype of the notification for a command that the client carries out itself.
const CLIENT_COMMAND: &str = "client_command";

/// The origin of a text in the user's role.
#[derive(Debug, PartialEq, Eq)]
enum TextOrigin<'a> {
    /// The text of a prompt, as the user typed it.
    Prompt(Cow<'a, str>),
    /// A command, as the user typed it, that the client carries out without the model.
    ClientCommand(String),
    /// The subtype of the notification for a text that a machine wrote.
    Machine(&'static str),
}

/// Decodes a record. `starts_turns` is false for subagents inside a log: the parent model wrote
/// their prompts.
pub(super) fn decode_user_record(
    object: Value<'_>,
    starts_turns: bool,
    text: &mut String,
    out: &mut Stream,
) {
    let Some(message) = object.object("message") else { return };
    let meta = read_machine_subtype(object);
    if let Some(content) = message.text("content") {
        return push_user_text(content, meta, starts_turns, out);
    }

    let blocks = message.items("content");
    // Text and images of one prompt become one event. Each tool result becomes its own event.
    let mut prompt = String::new();
    let mut has_pushed = false;
    let mut refusal = object.non_empty("userFeedback").map(str::to_owned);
    for block in &blocks {
        text.clear();
        match block.text("type") {
            Some("tool_result") => {
                decode_tool_result(object, *block, text, out);
                if block.flag("is_error") == Some(true) && refusal.is_none() {
                    refusal = refusal_words(text).map(str::to_owned);
                }
                has_pushed = true;
            }
            Some("text") if is_machine_text(block.text("text").unwrap_or(""), meta) => {
                push_user_text(block.text("text").unwrap_or(""), meta, starts_turns, out);
                has_pushed = true;
            }
            _ => {
                if !prompt.is_empty() {
                    prompt.push('\n');
                }
                render::append_block(*block, &mut prompt);
            }
        }
    }
    if let Some(words) = refusal {
        push_user_words(&words, out);
    }
    if !prompt.is_empty() || !has_pushed {
        push_user_text(&prompt, meta, starts_turns, out);
    }
}

/// Returns the subtype of a whole record that is machine text according to its flags.
pub(super) fn read_machine_subtype(object: Value<'_>) -> Option<&'static str> {
    if object.flag("isCompactSummary") == Some(true) {
        return Some("compact_summary");
    }
    if object.flag("isMeta") == Some(true) {
        return Some("meta");
    }
    let kind = object.object("origin").and_then(|origin| origin.text("kind"));
    let origin = machine::ORIGINS.iter().find(|(origin, _)| Some(*origin) == kind);
    match origin {
        Some((_, subtype)) => Some(subtype),
        None if object.text("promptSource") == Some("system") => Some("system_prompt"),
        None => None,
    }
}

/// Pushes a text in the user's role. `meta` is the subtype of the whole record if it is machine
/// text.
pub(super) fn push_user_text(
    mut text: &str,
    meta: Option<&'static str>,
    starts_turns: bool,
    out: &mut Stream,
) {
    if meta.is_none() {
        // What follows a machine's text is judged by itself.
        while let Some(block) = split_machine_text(machine::TEXTS, text)
            && !block.rest.is_empty()
        {
            out.push_notification(block.subtype, block.text);
            text = block.rest;
        }
    }

    match classify_text(text, meta) {
        TextOrigin::Prompt(text) => prompt::push_prompt(&text, starts_turns, out),
        TextOrigin::ClientCommand(typed) => {
            let (name, words) = typed.split_once(' ').unwrap_or((&typed, ""));
            let is_worded = !words.trim().is_empty() && machine::WORDED_COMMANDS.contains(&name);
            out.push_notification(if is_worded { USER_WORDS } else { CLIENT_COMMAND }, &typed);
        }
        TextOrigin::Machine(subtype) => out.push_notification(subtype, text),
    }
}

/// Returns whether a text is a machine's, at least at its beginning. `meta` is the subtype of the
/// whole record if it is machine text.
fn is_machine_text(text: &str, meta: Option<&'static str>) -> bool {
    meta.is_some() || find_machine_text(machine::TEXTS, text).is_some()
}

/// Returns who wrote a text in the user's role. `meta` is the subtype of the whole record if it is
/// machine text.
fn classify_text<'a>(text: &'a str, meta: Option<&'static str>) -> TextOrigin<'a> {
    if let Some(subtype) = meta {
        return TextOrigin::Machine(subtype);
    }
    if let Some(row) = find_machine_text(machine::TEXTS, text) {
        return TextOrigin::Machine(row.subtype);
    }
    let trimmed = text.trim_start();
    let is_own_command = trimmed.starts_with("<command-name>");
    // Custom commands begin with their message.
    if is_own_command || trimmed.starts_with("<command-message>") {
        let name = text_between(trimmed, "<command-name>", "</command-name>").unwrap_or("");
        let args = text_between(trimmed, "<command-args>", "</command-args>").unwrap_or("");
        let slash = if name.starts_with('/') { "" } else { "/" };
        let typed = format!("{slash}{name} {args}").trim_end().to_owned();
        if is_own_command && is_client_command(&typed) {
            return TextOrigin::ClientCommand(typed);
        }
        return TextOrigin::Prompt(typed.into());
    }
    if trimmed.starts_with("<bash-input>")
        && let Some(command) = text_between(trimmed, "<bash-input>", "</bash-input>")
    {
        return TextOrigin::Prompt(format!("!{command}").into());
    }
    let typed = trimmed.trim_end();
    if !typed.contains('\n') && is_client_command(typed) {
        return TextOrigin::ClientCommand(typed.to_owned());
    }
    TextOrigin::Prompt(text.into())
}

/// Returns whether the client carries out a command itself, without a request to the model.
pub(super) fn is_client_command(typed: &str) -> bool {
    machine_text::is_client_command(typed, machine::CLIENT_COMMANDS, machine::BARE_CLIENT_COMMANDS)
}

/// Converts a number of seconds to milliseconds.
#[expect(clippy::cast_possible_truncation, reason = "durations in milliseconds")]
fn seconds_to_millis(value: Value<'_>) -> Option<i64> {
    use simd_json::prelude::*;
    let seconds = value.cast_f64().filter(|seconds| seconds.is_finite())?;
    Some((seconds * 1000.0).round() as i64)
}

/// Texts that mark a result that the model saw only in part.
const CUT_MARKS: [&str; 2] = ["<persisted-output>", "[Truncated. Full output:"];

/// Appends the full text of a result. If the model saw only a part of it, the structured twin has
/// everything that was printed.
pub(super) fn append_result_text(object: Value<'_>, block: Value<'_>, text: &mut String) {
    render::append_field(block, "content", text);
    if !CUT_MARKS.iter().any(|mark| text.contains(mark)) {
        return;
    }

    let whole = object.object("toolUseResult").and_then(|twin| {
        let printed = twin.non_empty("stdout").or_else(|| twin.non_empty("content"));
        printed.or_else(|| twin.object("task")?.non_empty("output"))
    });
    if let Some(whole) = whole.filter(|whole| whole.len() > text.len()) {
        text.clear();
        text.push_str(whole);
    }
}

/// Appends how many lines an edit changed: `(3 lines added, 1 removed)`. The arguments of the call do
/// not show at how many places a text was replaced, or what a file had before it was written.
fn append_line_counts(twin: Value<'_>, text: &mut String) {
    let mut added = 0;
    let mut removed = 0;
    for hunk in twin.items("structuredPatch") {
        for line in hunk.items("lines").into_iter().filter_map(string_value) {
            added += usize::from(line.starts_with('+'));
            removed += usize::from(line.starts_with('-'));
        }
    }
    if added + removed > 0 {
        let _ = write!(text, "\n({added} lines added, {removed} removed)");
    }
}

/// Decodes one tool result. Its structured twin `toolUseResult` adds facts that the text lacks.
fn decode_tool_result(object: Value<'_>, block: Value<'_>, text: &mut String, out: &mut Stream) {
    append_result_text(object, block, text);
    let twin = object.object("toolUseResult");
    if let Some(twin) = twin {
        append_line_counts(twin, text);
    }
    let exit_code = text
        .strip_prefix("Exit code ")
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .or_else(|| twin?.object("task")?.int32("exitCode"));
    let duration_ms = twin.and_then(|twin| {
        let millis = twin.int("totalDurationMs").or_else(|| twin.int("durationMs"));
        // Web searches report their duration in seconds.
        millis.or_else(|| twin.field("durationSeconds").and_then(seconds_to_millis))
    });
    let decoded = DecodedEvent {
        text,
        tool_call_id: block.non_empty("tool_use_id"),
        is_error: Some(block.flag("is_error").unwrap_or(false)),
        exit_code,
        duration_ms,
        spawned_agent_id: twin.and_then(|twin| twin.non_empty("agentId")),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_text_is_no_prompt_and_commands_are_shown_as_typed() {
        let prompt = |text: &str| match classify_text(text, None) {
            TextOrigin::Prompt(text) => text.into_owned(),
            TextOrigin::ClientCommand(typed) => format!("command {typed}"),
            TextOrigin::Machine(subtype) => format!("machine {subtype}"),
        };
        assert_eq!(prompt("fix it"), "fix it");
        assert_eq!(prompt("<task-notification>\nx"), "machine task_notification");
        assert_eq!(prompt("[Request interrupted by user for tool use]"), "machine interrupted");
        let command = "<command-name>/review</command-name>\n<command-message>review</command-message>\n<command-args>main</command-args>";
        assert_eq!(prompt(command), "/review main");
        assert_eq!(
            prompt("<command-message>x</command-message><command-name>clear</command-name>"),
            "/clear"
        );
        let built_in = |name: &str, args: &str| {
            prompt(&format!(
                "<command-name>/{name}</command-name>\n<command-args>{args}</command-args>"
            ))
        };
        assert_eq!(built_in("effort", "high"), "command /effort high");
        assert_eq!(built_in("login", ""), "command /login");
        assert_eq!(built_in("compact", ""), "command /compact");
        assert_eq!(built_in("compact", "keep the names"), "command /compact keep the names");
        assert_eq!(prompt("/effort high\n"), "command /effort high");
        assert_eq!(prompt("/login"), "command /login");
        assert_eq!(prompt("/loginpage is broken"), "/loginpage is broken");
        assert_eq!(prompt("/status\nis what I typed"), "/status\nis what I typed");
        assert_eq!(built_in("plan", ""), "command /plan");
        assert_eq!(built_in("plan", "the move"), "/plan the move");
        assert_eq!(built_in("init", ""), "/init");
        assert_eq!(prompt("<ide_selection path=\"a.rs\">x</ide_selection>"), "machine ide_context");
        assert_eq!(prompt("<bash-input>git status</bash-input>"), "!git status");
        assert_eq!(prompt("<div> in my page is broken"), "<div> in my page is broken");
        assert_eq!(classify_text("anything", Some("meta")), TextOrigin::Machine("meta"));
    }
}
