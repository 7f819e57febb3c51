//! Decodes messages of Pi and OpenClaw by their role: prompts, responses, tool results, and
//! commands that the user ran with `!` (docs/formats.md#pi).

use schemas::{EventType, Usage};

use crate::provider::openclaw::gateway;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::prompt;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value};
use crate::text::render;

/// Known roles other than the user, the model or a tool.
const SIDE_ROLES: &[&str] = &["custom", "hookMessage", "branchSummary", "compactionSummary"];

/// Decodes a message.
pub(super) fn message(message: Value<'_>, is_openclaw: bool, text: &mut String, out: &mut Stream) {
    match message.text("role").unwrap_or("untyped") {
        "user" => user(message, is_openclaw, text, out),
        // Messages of OpenClaw itself: answers to commands, and copies of what a tool delivered.
        "assistant" if is_openclaw && message.text("provider") == Some("openclaw") => {
            let subtype = message.non_empty("model").unwrap_or("openclaw");
            content(message, text);
            render::cut(text);
            notify(subtype, text, None, out);
        }
        "assistant" => assistant(message, text, out),
        "toolResult" => result(message, text, out),
        "bashExecution" => command(message, text, out),
        role => {
            if !SIDE_ROLES.contains(&role) {
                out.drift("record", &format!("message {role}"));
            }
            match message.text("summary") {
                Some(summary) => text.push_str(summary),
                None => content(message, text),
            }
            if text.is_empty() {
                render::fields(message, &["role", "customType", "timestamp"], text);
            }
            render::cut(text);
            notify(message.non_empty("customType").unwrap_or(role), text, None, out);
        }
    }
}

/// Appends the `content` of a message: text or blocks. An image is given by its type and size only.
pub(super) fn content(message: Value<'_>, out: &mut String) {
    let Some(content) = message.field("content") else { return };
    let Some(blocks) = content.as_array() else {
        return out.push_str(crate::text::json::string(content).unwrap_or(""));
    };
    for block in blocks.iter() {
        render::new_line(out);
        match block.text("data") {
            Some(data) => {
                let kind = block.text("mimeType").unwrap_or("binary");
                out.push_str(&format!("[{kind} {} bytes]", data.len() / 4 * 3));
            }
            None => render::block(block, out),
        }
    }
}

/// Appends the tokens that `record` counts, if any.
pub(super) fn token_usage(record: Value<'_>, request_id: Option<&str>, out: &mut Stream) {
    let usage = record.object("usage").map(usage).filter(|usage| usage.total() > 0);
    if let Some(usage) = usage {
        out.push(EventType::TokenUsage, Draft { usage, request_id, ..Draft::default() });
    }
}

/// Reads token counts. The input excludes the cache, the output includes the reasoning.
fn usage(usage: Value<'_>) -> Usage {
    Usage {
        input: usage.int("input"),
        output: usage.int("output"),
        cache_read: usage.int("cacheRead"),
        cache_write: usage.int("cacheWrite"),
        cache_write_1h: usage.int("cacheWrite1h"),
        reasoning: usage.int("reasoning"),
    }
}

fn notify(subtype: &str, text: &str, is_error: Option<bool>, out: &mut Stream) {
    let draft = Draft { subtype: Some(subtype), text, is_error, ..Draft::default() };
    out.push(EventType::Notification, draft);
}

fn user(message: Value<'_>, is_openclaw: bool, text: &mut String, out: &mut Stream) {
    content(message, text);
    let provenance = message.object("provenance").and_then(|from| from.non_empty("kind"));
    if let Some(kind @ ("internal_system" | "inter_session")) = provenance {
        return notify(kind, text, None, out);
    }
    let (context, typed) = if is_openclaw { gateway::inbound(text) } else { ("", text.as_str()) };
    if !context.is_empty() {
        notify("inbound_context", context, None, out);
        if typed.is_empty() {
            return;
        }
    }
    if let Some(subtype) = gateway::machine_text(typed).filter(|_| is_openclaw) {
        return notify(subtype, typed, None, out);
    }
    match skill(typed) {
        Some((name, body, words)) => {
            notify("skill", body, None, out);
            prompt::typed(format!("/skill:{name} {words}").trim_end(), true, out);
        }
        None => prompt::typed(typed, true, out),
    }
}

/// Splits a skill prompt into name, body and words: the log holds `/skill:name words` together with
/// the skill's text.
fn skill(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.strip_prefix("<skill name=\"")?.split_once('"')?;
    let (_, rest) = rest.split_once(">\n")?;
    let (body, words) = rest.rsplit_once("\n</skill>")?;
    Some((name, body, words.trim()))
}

/// Decodes a command that the user ran, with its output. `!!` keeps it from the model.
fn command(message: Value<'_>, text: &mut String, out: &mut Stream) {
    let mark = if message.flag("excludeFromContext") == Some(true) { "!!" } else { "!" };
    let typed = format!("{mark}{}", message.text("command").unwrap_or(""));
    out.begin_turn();
    out.push(EventType::User, Draft { text: &typed, ..Draft::default() });
    text.push_str(message.text("output").unwrap_or(""));
    if message.flag("cancelled") == Some(true) {
        text.push_str("\n[cancelled]");
    }
    let exit_code = message.int("exitCode").and_then(|code| i32::try_from(code).ok());
    let draft = Draft {
        subtype: Some("bash_output"),
        text: text.trim_start_matches('\n'),
        is_error: exit_code.map(|code| code != 0),
        exit_code,
        ..Draft::default()
    };
    out.push(EventType::Notification, draft);
}

fn assistant(message: Value<'_>, text: &mut String, out: &mut Stream) {
    out.set_model(message.text("model"));
    let stop = message.text("stopReason").filter(|stop| matches!(*stop, "error" | "aborted"));
    let error = message.non_empty("errorMessage").or(stop);
    let blocks = message.items("content");
    let words = message.non_empty("content");
    // A request that was aborted before any output is not a response.
    if error.is_none() || !blocks.is_empty() || words.is_some() {
        out.begin_step();
    }
    for part in &blocks {
        block(*part, text, out);
    }
    if words.is_some() || (blocks.is_empty() && error.is_none()) {
        let text = words.unwrap_or("");
        out.push(EventType::Message, Draft { text, ..Draft::default() });
    }
    if let Some(error) = error {
        let subtype = stop.unwrap_or("error");
        notify(subtype, error, (subtype == "error").then_some(true), out);
    }
    token_usage(message, message.non_empty("responseId"), out);
}

fn block(block: Value<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    match block.text("type").unwrap_or("block") {
        "text" => {
            let text = block.text("text").unwrap_or("");
            out.push(EventType::Message, Draft { text, ..Draft::default() });
        }
        "thinking" => {
            match (block.non_empty("thinking"), block.non_empty("thinkingSignature")) {
                (None, Some(sealed)) => {
                    text.push_str(&format!("[encrypted reasoning, {} bytes]", sealed.len()));
                }
                (thinking, _) => text.push_str(thinking.unwrap_or("")),
            }
            out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
        }
        "toolCall" => {
            let mut arguments = Arguments::default();
            block.field("arguments").inspect(|input| arguments.read(*input));
            let draft = Draft {
                tool_name: block.non_empty("name"),
                tool_call_id: block.non_empty("id"),
                ..arguments.draft()
            };
            out.push(EventType::ToolCall, draft);
        }
        kind => {
            out.drift("block", kind);
            render::fields(block, &["type"], text);
            notify(kind, text, None, out);
        }
    }
}

fn result(message: Value<'_>, text: &mut String, out: &mut Stream) {
    content(message, text);
    let details = message.object("details");
    let exit_code = details
        .and_then(|details| details.int("exitCode"))
        .and_then(|code| i32::try_from(code).ok())
        .or_else(|| exit_code(text.as_str()));
    let failed = message.flag("isError") == Some(true) || exit_code.is_some_and(|code| code != 0);
    let draft = Draft {
        text,
        tool_name: message.non_empty("toolName"),
        tool_call_id: message.non_empty("toolCallId"),
        is_error: Some(failed),
        exit_code,
        duration_ms: details.and_then(|details| details.int("durationMs")),
        ..Draft::default()
    };
    out.push(EventType::ToolResult, draft);
    // Some tools send requests to a model themselves.
    token_usage(message, None, out);
}

/// Returns the exit code of a failed command, which is in the last line of its output.
fn exit_code(text: &str) -> Option<i32> {
    let last = text.trim_end().rsplit('\n').next()?.trim_matches(['(', ')', '.']);
    last.strip_prefix("Command exited with code ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_last_line() {
        assert_eq!(exit_code("no such file\n\nCommand exited with code 2"), Some(2));
        assert_eq!(exit_code("x\n\n(Command exited with code 101)\n"), Some(101));
        assert_eq!(exit_code("Command exited with code 2\nand more"), None);
        assert_eq!(exit_code(""), None);
    }

    #[test]
    fn skills_are_shown_as_typed() {
        let text = "<skill name=\"review\" location=\"/s/SKILL.md\">\nReferences are relative to /s.\n\nRead the diff.\n</skill>\n\nonly retry.rs";
        let body = "References are relative to /s.\n\nRead the diff.";
        assert_eq!(skill(text), Some(("review", body, "only retry.rs")));
        assert_eq!(skill("<skill> is a tag"), None);
    }
}
