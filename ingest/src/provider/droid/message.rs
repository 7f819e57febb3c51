//! Decodes messages of Factory Droid: Anthropic's content blocks, and messages that Droid shows
//! only to the model or only to the user (docs/formats.md#droid).

use schemas::EventType;

use crate::provider::shared::arguments::Arguments;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value};
use crate::text::render;

/// Decodes a message of the log.
pub(super) fn message(
    message: Value<'_>,
    visibility: Option<&str>,
    text: &mut String,
    out: &mut Stream,
) {
    let hidden = match visibility {
        Some("llm_only") => Some("context"),
        Some("user_only") => Some("notice"),
        _ => None,
    };
    match (message.text("role"), hidden) {
        (Some("user"), hidden) => user(message, hidden, text, out),
        (Some("assistant"), None) => assistant(message, text, out),
        (role, hidden) => {
            if role != Some("assistant") {
                out.drift("record", &format!("message {}", role.unwrap_or("untyped")));
            }
            message.field("content").inspect(|content| render::content(*content, text));
            render::cut(text);
            notify(hidden.or(role).unwrap_or("message"), text, out);
        }
    }
}

fn notify(subtype: &str, text: &str, out: &mut Stream) {
    let draft = Draft { subtype: Some(subtype), text, ..Draft::default() };
    out.push(EventType::Notification, draft);
}

/// Decodes a user's prompt with the text that Droid put before it, and tool results.
fn user(message: Value<'_>, hidden: Option<&str>, text: &mut String, out: &mut Stream) {
    let mut words = message.text("content").unwrap_or("").to_owned();
    for block in message.items("content") {
        text.clear();
        if block.text("type") == Some("tool_result") {
            result(block, text, out);
            continue;
        }
        render::block(block, text);
        let shown = text.as_str();
        let shown = if hidden.is_some() { shown } else { without_reminders(shown, out) };
        if !words.is_empty() && !shown.is_empty() {
            words.push('\n');
        }
        words.push_str(shown);
    }
    match hidden {
        _ if words.is_empty() && out.pushed() > 0 => {}
        Some(subtype) => {
            render::cut(&mut words);
            notify(subtype, &words, out);
        }
        None => typed(&words, out),
    }
}

/// Pushes a text in the user's role: first the client's reminders, then the prompt.
pub(super) fn typed(text: &str, out: &mut Stream) {
    let prompt = without_reminders(text, out);
    if prompt.is_empty() && out.pushed() > 0 {
        return;
    }
    out.prompt(prompt);
}

/// Pushes the reminders at the beginning of `text` as notifications. Returns the rest.
fn without_reminders<'a>(text: &'a str, out: &mut Stream) -> &'a str {
    let mut rest = text;
    while let Some(inside) = rest.trim_start().strip_prefix("<system-reminder>") {
        let (reminder, after) = inside.split_once("</system-reminder>").unwrap_or((inside, ""));
        notify("system_reminder", reminder.trim(), out);
        rest = after.trim_start();
    }
    rest
}

fn assistant(message: Value<'_>, text: &mut String, out: &mut Stream) {
    out.set_model(message.text("modelId").or_else(|| message.text("model")));
    out.begin_step();
    let blocks = message.items("content");
    for part in &blocks {
        block(*part, text, out);
    }
    if blocks.is_empty() {
        let text = message.text("content").unwrap_or("");
        out.push(EventType::Message, Draft { text, ..Draft::default() });
    }
}

fn block(block: Value<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    match block.text("type").unwrap_or("block") {
        "text" => {
            let text = block.text("text").unwrap_or("");
            out.push(EventType::Message, Draft { text, ..Draft::default() });
        }
        "thinking" | "redacted_thinking" => {
            let sealed = block.non_empty("signature").or_else(|| block.non_empty("data"));
            match (block.non_empty("thinking"), sealed) {
                (None, Some(sealed)) => {
                    text.push_str(&format!("[encrypted reasoning, {} bytes]", sealed.len()));
                }
                (thinking, _) => text.push_str(thinking.unwrap_or("")),
            }
            let duration_ms = block.int("durationMs");
            out.push(EventType::Reasoning, Draft { text, duration_ms, ..Draft::default() });
        }
        "tool_use" => call(block, &["input"], &["id"], &["name"], out),
        kind => {
            out.drift("block", kind);
            render::fields(block, &["type"], text);
            notify(kind, text, out);
        }
    }
}

/// Pushes a call. Its parts have several names.
pub(super) fn call(call: Value<'_>, input: &[&str], id: &[&str], name: &[&str], out: &mut Stream) {
    let first = |keys: &[&str]| keys.iter().find_map(|key| call.non_empty(key));
    let mut arguments = Arguments::default();
    let input = input.iter().find_map(|key| call.field(key));
    input.inspect(|input| arguments.read(*input));
    let draft = Draft { tool_name: first(name), tool_call_id: first(id), ..arguments.draft() };
    out.push(EventType::ToolCall, draft);
}

fn result(block: Value<'_>, text: &mut String, out: &mut Stream) {
    block.field("content").inspect(|content| render::content(*content, text));
    let exit_code = exit_code(text);
    let is_error = Some(failed(block.flag("is_error"), exit_code, text));
    let draft = Draft {
        text,
        tool_call_id: block.non_empty("tool_use_id"),
        is_error,
        exit_code,
        ..Draft::default()
    };
    out.push(EventType::ToolResult, draft);
}

/// Returns whether a call failed: by its flag, its exit code, or by its text if both are missing.
pub(super) fn failed(flag: Option<bool>, exit_code: Option<i32>, text: &str) -> bool {
    let by_code = exit_code.is_some_and(|code| code != 0);
    flag.map_or(by_code || text.starts_with("Error: "), |failed| failed || by_code)
}

/// Parses the exit code of a command from its first or its last line:
/// `Error: Command failed (exit code: 1)`, `[Process exited with code 0]`.
pub(super) fn exit_code(text: &str) -> Option<i32> {
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
        assert_eq!(exit_code("Error: Command failed (exit code: 101)\nno"), Some(101));
        assert_eq!(exit_code("fine\n\n[Process exited with code 0]\n"), Some(0));
        assert_eq!(exit_code("it said: Error: Command failed (exit code: 1)"), None);
        assert_eq!(exit_code(""), None);
    }

    #[test]
    fn failures_are_told_by_flag_code_or_text() {
        assert!(failed(Some(true), None, "x"));
        assert!(failed(Some(false), Some(2), "x"));
        assert!(failed(None, None, "Error: no such file"));
        assert!(!failed(Some(false), None, "Error: is what the log says"));
    }
}
