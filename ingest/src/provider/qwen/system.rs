//! Decodes Qwen Code's `system` records: commands, titles, compactions, rewinds, and notes of the
//! client (docs/formats.md#qwen-code).

use schemas::EventType;

use super::state::{Command, ENVELOPE, State};
use crate::provider::format::Outcome;
use crate::provider::shared::prompt;
use crate::stream::{Draft, Stream, TitleFrom};
use crate::text::json::{Fields, Value, string};
use crate::text::render;

/// Known subtypes that are shown as they are.
const KNOWN: &[&str] = &[
    "agent_retry",
    "agent_session_ready",
    "background_task_completed",
    "branch_checkpoint",
    "goal_state",
    "goal_turn_end",
    "notification",
    "omni_recall",
    "parent_session",
    "realtime_message",
    "rewind",
    "session_approval_mode",
    "session_artifact_event",
    "session_artifact_snapshot",
    "session_execution_engine",
    "session_notes",
    "session_source",
    "session_sources_snapshot",
    "turn_result",
    "user_text_elements",
];

/// Decodes a record. `starts_turns` is false for subagents inside a log.
pub(super) fn record(
    object: Value<'_>,
    time: Option<i64>,
    starts_turns: bool,
    state: &mut State,
    text: &mut String,
    out: &mut Stream,
) -> Outcome {
    text.clear();
    let subtype = object.non_empty("subtype").unwrap_or("system");
    let Some(payload) = object.object("systemPayload") else {
        if subtype == "ui_telemetry" {
            return Outcome::Merged("telemetry");
        }
        render::fields(object, ENVELOPE, text);
        return notify(subtype, text, out);
    };
    match subtype {
        "ui_telemetry" => {
            return match payload.object("uiEvent") {
                Some(event) => state.telemetry.event(event, out),
                None => Outcome::Merged("telemetry"),
            };
        }
        "slash_command" => return command(object, payload, time, starts_turns, state, text, out),
        "custom_title" => return title(payload, state, out),
        "session_model" => {
            out.set_model(payload.text("modelId"));
            return Outcome::Merged("session_model");
        }
        // Counts of prompts and of lines, written at every turn.
        "attribution_snapshot" => return Outcome::Merged("attribution_snapshot"),
        "file_history_snapshot" => files(payload, text),
        // The log of the parent holds what the agent inherits.
        "agent_bootstrap" => {
            render::fields(payload, &["history", "systemInstruction", "tools"], text);
        }
        "agent_launch_prompt" => text.push_str(payload.text("displayText").unwrap_or("")),
        "at_command" => {
            render::fields(payload, &["userText"], text);
            let is_error = (payload.text("status") == Some("error")).then_some(true);
            let draft = Draft { subtype: Some(subtype), text, is_error, ..Draft::default() };
            out.push(EventType::Notification, draft);
            return Outcome::Events;
        }
        "chat_compression" => compression(payload, text),
        _ => {
            if !KNOWN.contains(&subtype) {
                out.drift("record", &format!("system/{subtype}"));
            }
            render::fields(payload, &[], text);
        }
    }
    notify(subtype, text, out)
}

/// Decodes a slash command: the command becomes a prompt, its output a notification.
fn command(
    object: Value<'_>,
    payload: Value<'_>,
    time: Option<i64>,
    starts_turns: bool,
    state: &mut State,
    text: &mut String,
    out: &mut Stream,
) -> Outcome {
    let raw = payload.text("rawCommand").unwrap_or("");
    let uuid = object.text("uuid").unwrap_or("").to_owned();
    state.command = Some(Command { raw: raw.to_owned(), uuid, at: time });
    let items = payload.items("outputHistoryItems");
    if payload.text("phase") != Some("result") && items.is_empty() {
        prompt::typed(raw, starts_turns, out);
        return Outcome::Events;
    }
    for item in items {
        if !text.is_empty() {
            text.push('\n');
        }
        match item.text("text") {
            Some(said) => text.push_str(said),
            None => render::fields(item, &["type", "timestamp"], text),
        }
    }
    if text.is_empty() {
        return Outcome::Merged("command_without_output");
    }
    render::cut(text);
    notify("slash_command_output", text, out)
}

/// Decodes a title. Qwen Code repeats the title when the log has grown.
fn title(payload: Value<'_>, state: &mut State, out: &mut Stream) -> Outcome {
    let title = payload.text("customTitle").unwrap_or("");
    let by_agent = payload.text("titleSource") == Some("auto");
    out.title(if by_agent { TitleFrom::Agent } else { TitleFrom::Person }, title);
    if state.title.as_deref() == Some(title) {
        return Outcome::Merged("repeated_title");
    }
    state.title = Some(title.to_owned());
    notify("custom_title", title, out)
}

/// Appends the numbers of a compaction and the summary that replaces the history.
fn compression(payload: Value<'_>, text: &mut String) {
    if let Some(info) = payload.object("info") {
        render::fields(info, &[], text);
    }
    let summary = payload.items("compressedHistory").into_iter().find_map(|content| {
        let parts = content.items("parts");
        let said = parts.first().and_then(|part| part.text("text"))?;
        said.contains("<state_snapshot>").then_some(said)
    });
    if let Some(summary) = summary {
        text.push('\n');
        text.push_str(summary);
        render::cut(text);
    }
}

/// Appends the paths of the files that were backed up.
fn files(payload: Value<'_>, text: &mut String) {
    for snapshot in payload.items("snapshots") {
        let tracked = snapshot.field("trackedFileBackups");
        let tracked = tracked.and_then(|tracked| tracked.as_object());
        let paths = tracked.iter().flatten().map(|(path, _)| path);
        for path in paths.chain(snapshot.field("path").and_then(string)) {
            text.push_str(path);
            text.push('\n');
        }
    }
    render::cut(text);
}

fn notify(subtype: &str, text: &str, out: &mut Stream) -> Outcome {
    let draft = Draft { subtype: Some(subtype), text, ..Draft::default() };
    out.push(EventType::Notification, draft);
    Outcome::Events
}
