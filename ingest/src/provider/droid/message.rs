//! Decodes messages of Factory Droid: Anthropic's content blocks, and messages that Droid shows
//! only to the model or only to the user (docs/formats.md#droid).

use schemas::EventType;

use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::drift;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Returns who sees a message, if the log says so: `both`, `llm_only` or `user_only`.
pub(super) fn visibility<'v>(message: Value<'v>, record: Value<'v>) -> Option<&'v str> {
    message.text("visibility").or_else(|| record.text("visibility"))
}

/// Returns whether a message is a response of the model that the user sees.
pub(super) fn is_response(message: Value<'_>, visibility: Option<&str>) -> bool {
    message.text("role") == Some("assistant") && hidden_kind(visibility).is_none()
}

/// Returns the subtype of the notification for a message that only one side sees. `None` if both
/// see it.
fn hidden_kind(visibility: Option<&str>) -> Option<&'static str> {
    match visibility {
        Some("llm_only") => Some("context"),
        Some("user_only") => Some("notice"),
        Some(_) | None => None,
    }
}

/// Decodes a message of the log. `visibility` names who sees it, if only one side does.
pub(super) fn decode_message(
    message: Value<'_>,
    visibility: Option<&str>,
    text: &mut String,
    out: &mut Stream,
) {
    let hidden = hidden_kind(visibility);
    match (message.text("role"), hidden) {
        (Some("user"), hidden) => decode_user_message(message, hidden, text, out),
        (Some("assistant"), None) => decode_response(message, text, out),
        (role, hidden) => {
            if role != Some("assistant") {
                out.count_unknown("record", &format!("message {}", role.unwrap_or("untyped")));
            }
            render::append_field(message, "content", text);
            out.push_shortened(hidden.or(role).unwrap_or("message"), text);
        }
    }
}

/// Decodes a user's prompt with the text that Droid put before it, and tool results.
fn decode_user_message(
    message: Value<'_>,
    hidden: Option<&str>,
    text: &mut String,
    out: &mut Stream,
) {
    let mut words = message.text("content").unwrap_or("").to_owned();
    for block in message.items("content") {
        text.clear();
        if block.text("type") == Some("tool_result") {
            decode_tool_result(block, text, out);
            continue;
        }
        render::append_block(block, text);
        let shown = text.as_str();
        let shown = if hidden.is_some() { shown } else { split_reminders(shown, out) };
        if !words.is_empty() && !shown.is_empty() {
            words.push('\n');
        }
        words.push_str(shown);
    }

    match hidden {
        _ if words.is_empty() && out.pushed_count() > 0 => {}
        Some(subtype) => {
            out.push_shortened(subtype, &words);
        }
        None => push_user_text(&words, out),
    }
}

/// Pushes a text in the user's role: first the client's reminders, then the prompt.
pub(super) fn push_user_text(text: &str, out: &mut Stream) {
    let prompt = split_reminders(text, out);
    if prompt.is_empty() && out.pushed_count() > 0 {
        return;
    }
    out.push_prompt(prompt);
}

/// Pushes the reminders at the beginning of `text` as notifications. Returns the rest.
fn split_reminders<'a>(text: &'a str, out: &mut Stream) -> &'a str {
    let mut rest = text;
    while let Some(inside) = rest.trim_start().strip_prefix("<system-reminder>") {
        let (reminder, after) = inside.split_once("</system-reminder>").unwrap_or((inside, ""));
        out.push_notification("system_reminder", reminder.trim());
        rest = after.trim_start();
    }
    rest
}

/// Decodes a response of the model.
fn decode_response(message: Value<'_>, text: &mut String, out: &mut Stream) {
    out.set_model(message.text("modelId").or_else(|| message.text("model")));
    out.begin_step();
    let blocks = message.items("content");
    for part in &blocks {
        decode_block(*part, text, out);
    }
    if blocks.is_empty() {
        let text = message.text("content").unwrap_or("");
        out.push_text(EventType::Message, text);
    }
}

/// Decodes one content block of a response.
fn decode_block(block: Value<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    match block.text("type").unwrap_or("block") {
        "text" => {
            let text = block.text("text").unwrap_or("");
            out.push_text(EventType::Message, text);
        }
        "thinking" | "redacted_thinking" => {
            let sealed = block.non_empty("signature").or_else(|| block.non_empty("data"));
            if let Some(thinking) = block.non_empty("thinking") {
                text.push_str(thinking);
            } else if let Some(sealed) = sealed {
                text.push_str(&format!("[encrypted reasoning, {} bytes]", sealed.len()));
            }
            let duration_ms = block.int("durationMs");
            out.push(
                EventType::Reasoning,
                DecodedEvent { text, duration_ms, ..DecodedEvent::default() },
            );
        }
        "tool_use" => push_call(block, &["input"], &["id"], &["name"], out),
        kind => {
            drift::push_unknown_block(kind, block, out);
        }
    }
}

/// Pushes a call. Each of its parts is in the first field that exists, or is not empty, of several.
pub(super) fn push_call(
    call: Value<'_>,
    input: &[&str],
    id: &[&str],
    name: &[&str],
    out: &mut Stream,
) {
    let arguments = Arguments::of_value(input.iter().find_map(|key| call.field(key)));
    arguments.push_call(
        name.iter().find_map(|key| call.non_empty(key)),
        id.iter().find_map(|key| call.non_empty(key)),
        out,
    );
}

/// Decodes a tool result.
fn decode_tool_result(block: Value<'_>, text: &mut String, out: &mut Stream) {
    render::append_field(block, "content", text);
    let exit_code = parse_exit_code(text);
    let has_failed = is_failed_call(block.flag("is_error"), exit_code, text);
    out.push_result(block.non_empty("tool_use_id"), text, Some(has_failed), exit_code);
}

/// Returns whether a call failed: by its flag, its exit code, or by its text if both are missing.
pub(super) fn is_failed_call(flag: Option<bool>, exit_code: Option<i32>, text: &str) -> bool {
    if exit_code.is_some_and(|code| code != 0) {
        return true;
    }
    flag.unwrap_or_else(|| text.starts_with("Error: "))
}

/// Parses the exit code of a command from its first or its last line:
/// `Error: Command failed (exit code: 1)`, `[Process exited with code 0]`.
pub(super) fn parse_exit_code(text: &str) -> Option<i32> {
    let first = text.lines().next()?;
    let failure = first.strip_prefix("Error: Command failed (exit code: ");
    let last = text.trim_end().rsplit('\n').next()?.strip_prefix("[Process exited with code ");
    let number = failure.and_then(|rest| rest.split(')').next());
    number.or_else(|| last?.strip_suffix(']'))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_stand_in_the_first_or_the_last_line() {
        assert_eq!(parse_exit_code("Error: Command failed (exit code: 101)\nno"), Some(101));
        assert_eq!(parse_exit_code("fine\n\n[Process exited with code 0]\n"), Some(0));
        assert_eq!(parse_exit_code("it said: Error: Command failed (exit code: 1)"), None);
        assert_eq!(parse_exit_code(""), None);
    }

    #[test]
    fn failures_are_told_by_flag_code_or_text() {
        assert!(is_failed_call(Some(true), None, "x"));
        assert!(is_failed_call(Some(false), Some(2), "x"));
        assert!(is_failed_call(None, None, "Error: no such file"));
        assert!(!is_failed_call(Some(false), None, "Error: is what the log says"));
    }
}
