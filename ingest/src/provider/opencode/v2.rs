//! Decodes one message of OpenCode 2: a row of the table `session_message` or an element of an
//! export. A message is one object with a `type`. Its `content` holds the assistant's text,
//! reasoning and calls (docs/formats.md#opencode).

use schemas::{Confidence, EventType};

use super::events::{Call, attached, identity, push_error, push_usage, subtype_of};
use crate::provider::format::Outcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::stream::{Draft, RecordAt, Stream};
use crate::text::json::{Fields, Parser, Value, string};
use crate::text::render;

/// Known types that become a notification of their fields.
const SIDE_TYPES: &[&str] = &["agent-switched", "idle", "location-switched", "model-switched"];

/// Decodes one message. `text` is a reusable buffer.
pub(super) fn message(
    message: Value<'_>,
    at: RecordAt,
    text: &mut String,
    out: &mut Stream,
) -> Outcome {
    let kind = message.text("type").unwrap_or("untyped");
    let created = chat::millis(message.object("time"), "created");
    let content = message.items("content");
    let anchor = message.non_empty("text").or_else(|| {
        content.iter().find_map(|part| part.non_empty("text").or_else(|| part.non_empty("id")))
    });
    out.begin_record(at, identity(kind, created, anchor), created);
    text.clear();
    match kind {
        "user" => user(message, text, out),
        "assistant" => assistant(message, &content, text, out),
        "shell" => shell(message, text, out),
        "compaction" => compaction(message, text, out),
        "synthetic" | "system" | "skill" => {
            let words = message.text("text").unwrap_or("");
            let subtype = if kind == "synthetic" { subtype_of(words) } else { kind };
            text.push_str(words);
            notify(subtype, text, out);
        }
        // The end of a turn, which its messages show as well.
        "idle" if message.text("outcome") == Some("succeeded") => {}
        _ => {
            if !SIDE_TYPES.contains(&kind) {
                out.drift("record", kind);
            }
            render::fields(message, &["type", "id", "time", "metadata"], text);
            notify(kind, text, out);
        }
    }
    Outcome::Events
}

fn notify(subtype: &str, text: &mut String, out: &mut Stream) {
    render::cut(text);
    let draft = Draft { subtype: Some(subtype), text, ..Draft::default() };
    out.push(EventType::Notification, draft);
}

fn user(message: Value<'_>, text: &mut String, out: &mut Stream) {
    text.push_str(message.text("text").unwrap_or(""));
    let mention = |part: Value<'_>| {
        part.object("source").and_then(|source| source.text("text").map(str::to_owned))
    };
    for file in message.items("files") {
        let (url, name) = (file.text("uri"), file.text("name"));
        attached(file.text("mime"), url, name, mention(file).as_deref(), text);
    }
    for agent in message.items("agents") {
        attached(None, None, agent.text("name"), mention(agent).as_deref(), text);
    }
    if !text.is_empty() {
        out.prompt(text);
    }
}

/// Decodes a command that the user ran with `!`, and its output.
fn shell(message: Value<'_>, text: &mut String, out: &mut Stream) {
    out.prompt(&format!("!{}", message.text("command").unwrap_or("")));
    let output = message.object("output").and_then(|output| output.text("output"));
    let exit_code = message.int("exit").and_then(|code| i32::try_from(code).ok());
    if output.is_none() && exit_code.is_none() {
        return;
    }
    text.push_str(output.unwrap_or(""));
    let draft = Draft {
        subtype: Some("bash_output"),
        text,
        exit_code,
        timestamp: chat::millis(message.object("time"), "completed"),
        ..Draft::default()
    };
    out.push(EventType::Notification, draft);
}

fn assistant(message: Value<'_>, content: &[Value<'_>], text: &mut String, out: &mut Stream) {
    out.set_model(message.object("model").and_then(|model| model.text("id")));
    if !content.is_empty() {
        out.begin_step();
    }
    for part in content {
        let words = part.text("text").unwrap_or("");
        match part.text("type").unwrap_or("untyped") {
            "text" if words.is_empty() => {}
            "text" => out.push(EventType::Message, Draft { text: words, ..Draft::default() }),
            "reasoning" => {
                let timestamp = chat::millis(part.object("time"), "created");
                let draft = Draft { text: words, timestamp, ..Draft::default() };
                out.push(EventType::Reasoning, draft);
            }
            "tool" => tool(*part, text, out),
            kind => {
                out.drift("block", kind);
                text.clear();
                render::fields(*part, &["type"], text);
                notify(kind, text, out);
            }
        }
    }
    let counted = push_usage(message.object("tokens"), message.non_empty("id"), out);
    if !counted && !content.is_empty() {
        out.set_confidence(Confidence::Partial);
    }
    if let Some(error) = message.object("retry").and_then(|retry| retry.object("error")) {
        failure("retry", error, text, out);
    }
    if let Some(error) = message.object("error") {
        failure(error.text("type").unwrap_or("error"), error, text, out);
    }
}

/// Decodes a call and its result.
fn tool(part: Value<'_>, text: &mut String, out: &mut Stream) {
    let state = part.object("state");
    let time = part.object("time");
    let mut arguments = Arguments::default();
    if let Some(input) = state.and_then(|state| state.field("input")) {
        match string(input) {
            // Arguments that were still being written.
            Some(raw) => arguments.read_json_text(raw, &mut Parser::default()),
            None => arguments.read(input),
        }
    }
    let call = Call {
        tool_name: part.text("name"),
        tool_call_id: part.non_empty("id"),
        status: state.and_then(|state| state.text("status")),
        metadata: state.and_then(|state| state.object("metadata")),
        started: chat::millis(time, "ran").or_else(|| chat::millis(time, "created")),
        ended: chat::millis(time, "completed"),
    };
    call.push(&arguments, out);
    text.clear();
    let Some(state) = state else { return };
    for block in state.items("content") {
        match block.text("text") {
            Some(words) => render::add_line(words, text),
            None => attached(block.text("mime"), block.text("uri"), block.text("name"), None, text),
        }
    }
    if let Some(error) = state.object("error") {
        render::add_line(error.text("message").unwrap_or(""), text);
    }
    // Output of a tool that is still running is not a result.
    call.push_answer(false, text, out);
}

fn compaction(message: Value<'_>, text: &mut String, out: &mut Stream) {
    if let Some(error) = message.object("error") {
        failure("compaction", error, text, out);
    } else {
        text.push_str(message.text("summary").unwrap_or(""));
        notify("compaction", text, out);
    }
    push_usage(message.object("tokens"), message.non_empty("id"), out);
}

fn failure(subtype: &str, error: Value<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    match error.non_empty("message") {
        Some(words) => text.push_str(words),
        None => render::fields(error, &["type"], text),
    }
    push_error(subtype, text, out);
}
