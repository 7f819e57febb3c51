//! Decodes one message of OpenCode 2: a row of the table `session_message` or an element of an
//! export (docs/formats.md#opencode).
//!
//! ```text
//! {"id":"msg_...","type":"user","text":"...","time":{"created":...}}
//! {"id":"msg_...","type":"assistant","content":[{"type":"text","text":"..."}],"tokens":{...}}
//! ```
//!
//! The `content` of an `assistant` message holds the text, the reasoning and the calls.

use schemas::{Confidence, EventType};

use super::events::{
    OpencodeCall, append_attachment, machine_subtype, message_identity, oversized_bytes, push_usage,
};
use super::record::{is_unreadable, push_unreadable, report_damage, report_missing_field};
use crate::provider::copied::copied_identity;
use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::database::size_limit::push_oversized;
use crate::provider::shared::{chat, drift};
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

/// Known types that become a notification of their fields.
const SIDE_TYPES: &[&str] = &["agent-switched", "idle", "location-switched", "model-switched"];

/// States of a call. Only those of the last two have a result.
const CALL_STATES: &[&str] = &["pending", "streaming", "running", "completed", "error"];

/// Decodes one message. `text` is a reusable buffer.
pub(super) fn decode_message(
    message: Value<'_>,
    at: RecordAt,
    text: &mut String,
    out: &mut Stream,
) -> RecordOutcome {
    let kind = message.text("type").unwrap_or("untyped");
    let created = chat::read_millis(message.object("time"), "created");
    let content = message.items("content");
    let anchor = message.non_empty("text").or_else(|| {
        content.iter().find_map(|part| part.non_empty("text").or_else(|| part.non_empty("id")))
    });
    match copied_identity(message.text("id")) {
        Some(original) => out.begin_copied_record(at, original, created),
        None => out.begin_record(at, message_identity(kind, created, anchor), created),
    }

    text.clear();
    report_damage(message, at, out);
    if let Some(bytes) = oversized_bytes(message) {
        push_oversized("message", bytes, at, out);
        return RecordOutcome::Events;
    }
    if is_unreadable(message) {
        push_unreadable(message, out);
        return RecordOutcome::Events;
    }
    report_missing_fields(kind, message, &content, at, out);
    match kind {
        "user" => decode_user_message(message, text, out),
        "assistant" => decode_response(message, &content, text, out),
        "shell" => decode_shell_command(message, text, out),
        "compaction" => decode_compaction(message, text, out),
        "synthetic" | "system" | "skill" => {
            let words = message.text("text").unwrap_or("");
            let subtype = if kind == "synthetic" { machine_subtype(words) } else { kind };
            text.push_str(words);
            out.push_shortened(subtype, text);
        }
        // The end of a turn, which its messages show as well.
        "idle" if message.text("outcome") == Some("succeeded") => {}
        _ => {
            if !SIDE_TYPES.contains(&kind) {
                out.count_unknown("record", kind);
            }
            render::append_notification(message, &["type", "id", "time", "metadata"], text);
            out.push_shortened(kind, text);
        }
    }
    RecordOutcome::Events
}

/// Reports fields that are missing in a message or in its content.
fn report_missing_fields(
    kind: &str,
    message: Value<'_>,
    content: &[Value<'_>],
    at: RecordAt,
    out: &mut Stream,
) {
    let mut missing = |kind: &str, field: &str, is_present: bool| {
        if !is_present {
            report_missing_field(kind, field, at, out);
        }
    };
    match kind {
        "user" | "synthetic" | "system" => {
            missing("message", "text", message.text("text").is_some());
        }
        "shell" => missing("command", "command", message.text("command").is_some()),
        "assistant" => {
            missing("response", "content", message.field("content").is_some());
            // The tokens are written together with the reason of the end.
            let is_finished = message.non_null("finish").is_some();
            missing("response", "tokens", !is_finished || message.object("tokens").is_some());
        }
        _ => {}
    }
    for part in content {
        match part.text("type") {
            Some("text" | "reasoning") => missing("text", "text", part.text("text").is_some()),
            Some("tool") => {
                let status = part.object("state").and_then(|state| state.text("status"));
                let is_known = status.is_some_and(|status| CALL_STATES.contains(&status));
                missing("call", "state.status", is_known);
            }
            _ => {}
        }
    }
}

/// Decodes a message of the user: one prompt from its text and its attachments.
fn decode_user_message(message: Value<'_>, text: &mut String, out: &mut Stream) {
    text.push_str(message.text("text").unwrap_or(""));
    for file in message.items("files") {
        append_attachment(
            file.text("mime"),
            file.text("uri"),
            file.text("name"),
            mention_in_prompt(file),
            text,
        );
    }
    for agent in message.items("agents") {
        append_attachment(None, None, agent.text("name"), mention_in_prompt(agent), text);
    }
    if !text.is_empty() {
        out.push_prompt(text);
    }
}

/// Returns the words in a prompt that mention an attachment.
fn mention_in_prompt(attachment: Value<'_>) -> Option<&str> {
    attachment.object("source")?.text("text")
}

/// Decodes a command that the user ran with `!`, and its output.
fn decode_shell_command(message: Value<'_>, text: &mut String, out: &mut Stream) {
    out.push_prompt(&format!("!{}", message.text("command").unwrap_or("")));
    let output = message.object("output").and_then(|output| output.text("output"));
    let exit_code = message.int32("exit");
    if output.is_none() && exit_code.is_none() {
        return;
    }
    text.push_str(output.unwrap_or(""));
    let decoded = DecodedEvent {
        subtype: Some("bash_output"),
        text,
        exit_code,
        timestamp: chat::read_millis(message.object("time"), "completed"),
        ..DecodedEvent::default()
    };
    out.push(EventType::Notification, decoded);
}

/// Decodes a response of the model, and the error that ended it.
fn decode_response(message: Value<'_>, content: &[Value<'_>], text: &mut String, out: &mut Stream) {
    out.set_model(message.object("model").and_then(|model| model.text("id")));
    if !content.is_empty() {
        out.begin_step();
    }
    for part in content {
        let words = part.text("text").unwrap_or("");
        match part.text("type").unwrap_or("untyped") {
            "text" if words.is_empty() => {}
            "text" => out
                .push(EventType::Message, DecodedEvent { text: words, ..DecodedEvent::default() }),
            "reasoning" => {
                let timestamp = chat::read_millis(part.object("time"), "created");
                let decoded = DecodedEvent { text: words, timestamp, ..DecodedEvent::default() };
                out.push(EventType::Reasoning, decoded);
            }
            "tool" => decode_tool(*part, text, out),
            kind => {
                drift::push_unknown_block(kind, *part, out);
            }
        }
    }

    let has_usage = push_usage(message, message.non_empty("id"), out);
    if !has_usage && !content.is_empty() {
        out.set_confidence(Confidence::Partial);
    }
    if let Some(error) = message.object("retry").and_then(|retry| retry.object("error")) {
        push_failure("retry", error, text, out);
    }
    if let Some(error) = message.object("error") {
        push_failure(error.text("type").unwrap_or("error"), error, text, out);
    }
}

/// Decodes a call and its result.
fn decode_tool(part: Value<'_>, text: &mut String, out: &mut Stream) {
    let state = part.object("state");
    let time = part.object("time");
    let arguments =
        Arguments::of_input(state.and_then(|state| state.field("input")), &mut Parser::default());
    let call = OpencodeCall {
        tool_name: part.text("name"),
        tool_call_id: part.non_empty("id"),
        status: state.and_then(|state| state.text("status")),
        metadata: state.and_then(|state| state.object("metadata")),
        started: chat::read_millis(time, "ran").or_else(|| chat::read_millis(time, "created")),
        ended: chat::read_millis(time, "completed"),
    };
    call.push_call(&arguments, out);

    let Some(state) = state else { return };
    text.clear();
    for block in state.items("content") {
        render::note_block(block);
        match block.text("text") {
            Some(words) => render::append_line(words, text),
            None => append_attachment(
                block.text("mime"),
                block.text("uri"),
                block.text("name"),
                None,
                text,
            ),
        }
    }
    if let Some(error) = state.object("error") {
        render::append_line(error.text("message").unwrap_or(""), text);
    }
    // Output of a tool that is still running is not a result.
    call.push_result(false, text, out);
}

/// Decodes a compaction: its summary or its error, and its tokens.
fn decode_compaction(message: Value<'_>, text: &mut String, out: &mut Stream) {
    if let Some(error) = message.object("error") {
        push_failure("compaction", error, text, out);
    } else {
        text.push_str(message.text("summary").unwrap_or(""));
        out.push_shortened("compaction", text);
    }
    push_usage(message, message.non_empty("id"), out);
}

/// Pushes a notification of an error.
fn push_failure(subtype: &str, error: Value<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    match error.non_empty("message") {
        Some(words) => text.push_str(words),
        None => render::append_notification(error, &["type"], text),
    }
    out.push_notice(subtype, text, Some(true));
}
