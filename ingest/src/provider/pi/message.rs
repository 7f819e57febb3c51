//! Decodes messages of Pi and OpenClaw by their role: prompts, responses, tool results, and
//! commands that the user ran with `!` (docs/formats.md#pi).

use schemas::{EventType, Usage};

use crate::provider::openclaw::gateway::{self, QueuedMessages};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::{drift, prompt};
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// Known roles other than the user, the model or a tool.
const SIDE_ROLES: &[&str] = &["custom", "hookMessage", "branchSummary", "compactionSummary"];

/// Decodes a message.
pub(in crate::provider) fn decode_message(
    message: Value<'_>,
    is_openclaw: bool,
    text: &mut String,
    out: &mut Stream,
) {
    match message.text("role").unwrap_or("untyped") {
        "user" => decode_user_message(message, is_openclaw, text, out),
        // Messages of OpenClaw itself: answers to commands, and copies of what a tool delivered.
        "assistant" if is_openclaw && message.text("provider") == Some("openclaw") => {
            let subtype = message.non_empty("model").unwrap_or("openclaw");
            append_content(message, text);
            out.push_shortened(subtype, text);
        }
        "assistant" => decode_response(message, text, out),
        "toolResult" => decode_tool_result(message, text, out),
        "bashExecution" => decode_command(message, text, out),
        role => {
            if !SIDE_ROLES.contains(&role) {
                out.count_unknown("record", &format!("message {role}"));
            }
            match message.text("summary") {
                Some(summary) => text.push_str(summary),
                None => append_content(message, text),
            }
            if text.is_empty() {
                render::append_notification(message, &["role", "customType", "timestamp"], text);
            }
            out.push_shortened(message.non_empty("customType").unwrap_or(role), text);
        }
    }
}

/// Appends the `content` of a message: text or blocks. An image is named by its type and size.
pub(in crate::provider) fn append_content(message: Value<'_>, out: &mut String) {
    let Some(content) = message.field("content") else { return };
    let Some(blocks) = content.as_array() else {
        return out.push_str(string_value(content).unwrap_or(""));
    };
    for block in &blocks {
        render::begin_new_line(out);
        match block.text("data") {
            Some(data) => {
                render::note_block(block);
                render::append_binary_summary(block.text("mimeType"), Some(data), out);
            }
            None => render::append_block(block, out),
        }
    }
}

/// Pushes the tokens that `record` counts, if any.
pub(super) fn push_usage(record: Value<'_>, request_id: Option<&str>, out: &mut Stream) {
    let Some(counts) = record.object("usage") else { return };
    let cost = counts.object("cost").and_then(|cost| cost.cost("total"));
    out.push_usage(read_usage(counts), cost, request_id);
}

/// Reads token counts. The input excludes the cache, the output includes the reasoning.
pub(in crate::provider) fn read_usage(usage: Value<'_>) -> Usage {
    Usage {
        input: usage.int("input"),
        output: usage.int("output"),
        cache_read: usage.int("cacheRead"),
        cache_write: usage.int("cacheWrite"),
        cache_write_1h: usage.int("cacheWrite1h"),
        reasoning: usage.int("reasoning"),
        ..Usage::default()
    }
}

/// Decodes a message in the user's role: a prompt, or text that no user typed.
fn decode_user_message(message: Value<'_>, is_openclaw: bool, text: &mut String, out: &mut Stream) {
    append_content(message, text);
    let provenance = message.object("provenance").and_then(|origin| origin.non_empty("kind"));
    if let Some(kind @ ("internal_system" | "inter_session")) = provenance {
        return out.push_notification(kind, text);
    }
    push_user_text(text, is_openclaw, out);
}

/// Pushes text in the user's role: a prompt, or a notification if no user typed it.
pub(in crate::provider) fn push_user_text(text: &str, is_openclaw: bool, out: &mut Stream) {
    if !is_openclaw {
        return push_prompt(text, out);
    }

    let (context, typed) = gateway::split_inbound(text);
    if !context.is_empty() {
        out.push_notification("inbound_context", context);
        if typed.is_empty() {
            return;
        }
    }
    if let Some(QueuedMessages { title, messages }) = QueuedMessages::parse(typed) {
        out.push_notification("inbound_context", title);
        for message in messages {
            push_user_text(message, is_openclaw, out);
        }
        return;
    }
    match gateway::machine_subtype(typed) {
        Some(subtype) => out.push_notification(subtype, typed),
        None => push_prompt(typed, out),
    }
}

/// Pushes a prompt. The text of a skill in it becomes a notification.
fn push_prompt(text: &str, out: &mut Stream) {
    match SkillPrompt::parse(text) {
        Some(SkillPrompt { name, body, words }) => {
            out.push_notification("skill", body);
            prompt::push_prompt(format!("/skill:{name} {words}").trim_end(), true, out);
        }
        None => prompt::push_prompt(text, true, out),
    }
}

/// The parts of a prompt that invokes a skill. The log holds the text of the skill together with
/// the words after `/skill:name`.
#[derive(Debug, PartialEq, Eq)]
struct SkillPrompt<'t> {
    name: &'t str,
    /// The text of the skill.
    body: &'t str,
    /// The words that the user typed after the name.
    words: &'t str,
}

impl<'t> SkillPrompt<'t> {
    /// Parses a prompt. Returns `None` if it does not invoke a skill.
    fn parse(text: &'t str) -> Option<Self> {
        let (name, rest) = text.strip_prefix("<skill name=\"")?.split_once('"')?;
        let (_, rest) = rest.split_once(">\n")?;
        let (body, words) = rest.rsplit_once("\n</skill>")?;
        Some(Self { name, body, words: words.trim() })
    }
}

/// Decodes a command that the user ran, with its output. `!!` keeps it from the model.
fn decode_command(message: Value<'_>, text: &mut String, out: &mut Stream) {
    let mark = if message.flag("excludeFromContext") == Some(true) { "!!" } else { "!" };
    let typed = format!("{mark}{}", message.text("command").unwrap_or(""));
    out.begin_turn();
    out.push_text(EventType::User, &typed);

    text.push_str(message.text("output").unwrap_or(""));
    if message.flag("cancelled") == Some(true) {
        text.push_str("\n[cancelled]");
    }
    let exit_code = message.int32("exitCode");
    let decoded = DecodedEvent {
        subtype: Some("bash_output"),
        text: text.trim_start_matches('\n'),
        is_error: exit_code.map(|code| code != 0),
        exit_code,
        ..DecodedEvent::default()
    };
    out.push(EventType::Notification, decoded);
}

/// Decodes one response of the model, and the error that ended it.
fn decode_response(message: Value<'_>, text: &mut String, out: &mut Stream) {
    out.set_model(message.text("model"));
    let failed_stop =
        message.text("stopReason").filter(|reason| matches!(*reason, "error" | "aborted"));
    let error = message.non_empty("errorMessage").or(failed_stop);
    let blocks = message.items("content");
    let content_text = message.non_empty("content");
    // A request that failed or was aborted before any output is not a response.
    if error.is_none() || !blocks.is_empty() || content_text.is_some() {
        out.begin_step();
    }

    for part in &blocks {
        decode_block(*part, text, out);
    }
    if content_text.is_some() || (blocks.is_empty() && error.is_none()) {
        out.push_text(EventType::Message, content_text.unwrap_or(""));
    }

    if let Some(error) = error {
        let subtype = failed_stop.unwrap_or("error");
        out.push_notice(subtype, error, (subtype == "error").then_some(true));
    }
    push_usage(message, message.non_empty("responseId"), out);
}

/// Decodes one block of a response.
fn decode_block(block: Value<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    match block.text("type").unwrap_or("block") {
        "text" => {
            let text = block.text("text").unwrap_or("");
            out.push_text(EventType::Message, text);
        }
        "thinking" => {
            match (block.non_empty("thinking"), block.non_empty("thinkingSignature")) {
                (None, Some(sealed)) => {
                    text.push_str(&format!("[encrypted reasoning, {} bytes]", sealed.len()));
                }
                (thinking, _) => text.push_str(thinking.unwrap_or("")),
            }
            out.push_text(EventType::Reasoning, text);
        }
        "toolCall" => {
            let arguments = Arguments::of_value(block.field("arguments"));
            arguments.push_call(block.non_empty("name"), block.non_empty("id"), out);
        }
        kind => {
            drift::push_unknown_block(kind, block, out);
        }
    }
}

/// Decodes the result of a tool.
fn decode_tool_result(message: Value<'_>, text: &mut String, out: &mut Stream) {
    append_content(message, text);
    let details = message.object("details");
    let exit_code = details
        .and_then(|details| details.int32("exitCode"))
        .or_else(|| parse_exit_code(text.as_str()));
    let is_error = message.flag("isError") == Some(true)
        || exit_code.is_some_and(|code| code != 0)
        || details.is_some_and(has_failed);
    let decoded = DecodedEvent {
        text,
        tool_name: message.non_empty("toolName"),
        tool_call_id: message.non_empty("toolCallId"),
        is_error: Some(is_error),
        exit_code,
        duration_ms: details.and_then(|details| details.int("durationMs")),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);

    // Some tools send requests to a model themselves.
    push_usage(message, None, out);
}

/// Returns whether the details of a result say that the call failed, or that a signal ended its
/// process.
fn has_failed(details: Value<'_>) -> bool {
    matches!(details.text("status"), Some("failed" | "error"))
        || ["exitSignal", "signal"].iter().any(|key| {
            details.non_empty(key).is_some() || details.int(key).is_some_and(|signal| signal > 0)
        })
}

/// Returns the exit code of a failed command, which is in the last line of its output.
fn parse_exit_code(text: &str) -> Option<i32> {
    let last = text.trim_end().rsplit('\n').next()?.trim_matches(['(', ')', '.']);
    last.strip_prefix("Command exited with code ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_last_line() {
        assert_eq!(parse_exit_code("no such file\n\nCommand exited with code 2"), Some(2));
        assert_eq!(parse_exit_code("x\n\n(Command exited with code 101)\n"), Some(101));
        assert_eq!(parse_exit_code("Command exited with code 2\nand more"), None);
        assert_eq!(parse_exit_code(""), None);
    }

    #[test]
    fn skills_are_shown_as_typed() {
        let text = "<skill name=\"review\" location=\"/s/SKILL.md\">\nReferences are relative to /s.\n\nRead the diff.\n</skill>\n\nonly retry.rs";
        let body = "References are relative to /s.\n\nRead the diff.";
        let want = SkillPrompt { name: "review", body, words: "only retry.rs" };
        assert_eq!(SkillPrompt::parse(text), Some(want));
        assert_eq!(SkillPrompt::parse("<skill> is a tag"), None);
    }
}
