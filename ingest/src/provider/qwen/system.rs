//! Decodes Qwen Code's `system` records: commands, titles, compactions, rewinds, and notes of the
//! client (docs/formats.md#qwen-code).

use super::machine;
use super::state::{ENVELOPE, QwenState, SlashCommand};
use crate::provider::format::RecordOutcome;
use crate::provider::shared::machine_text::is_client_command;
use crate::provider::shared::prompt;
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Known subtypes that become a notification of their fields.
const KNOWN_SUBTYPES: &[&str] = &[
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
pub(super) fn decode_system_record(
    object: Value<'_>,
    time: Option<i64>,
    starts_turns: bool,
    state: &mut QwenState,
    text: &mut String,
    out: &mut Stream,
) -> RecordOutcome {
    text.clear();
    let subtype = object.non_empty("subtype").unwrap_or("system");
    let Some(payload) = object.object("systemPayload") else {
        if subtype == "ui_telemetry" {
            return RecordOutcome::Merged("telemetry");
        }
        render::append_notification(object, ENVELOPE, text);
        return push_notification(subtype, text, out);
    };
    match subtype {
        "ui_telemetry" => {
            return match payload.object("uiEvent") {
                Some(event) => state.telemetry.decode_event(event, out),
                None => RecordOutcome::Merged("telemetry"),
            };
        }
        "slash_command" => {
            return decode_slash_command(object, payload, time, starts_turns, state, text, out);
        }
        "custom_title" => return decode_title(payload, state, out),
        "session_model" => {
            out.set_model(payload.text("modelId"));
            return RecordOutcome::Merged("session_model");
        }
        // This holds counts of prompts and of lines, and is written at every turn.
        "attribution_snapshot" => return RecordOutcome::Merged("attribution_snapshot"),
        "file_history_snapshot" => append_file_paths(payload, text),
        // The log of the parent holds what the agent inherits.
        "agent_bootstrap" => {
            render::append_notification(payload, &["history", "systemInstruction", "tools"], text);
        }
        "agent_launch_prompt" => text.push_str(payload.text("displayText").unwrap_or("")),
        "at_command" => {
            render::append_notification(payload, &["userText"], text);
            let is_error = (payload.text("status") == Some("error")).then_some(true);
            out.push_notice(subtype, text, is_error);
            return RecordOutcome::Events;
        }
        "chat_compression" => append_compression(payload, text),
        _ => {
            if !KNOWN_SUBTYPES.contains(&subtype) {
                out.count_unknown("record", &format!("system/{subtype}"));
            }
            render::append_notification(payload, &[], text);
        }
    }
    push_notification(subtype, text, out)
}

/// Decodes a slash command: the command becomes a prompt, its output a notification.
fn decode_slash_command(
    object: Value<'_>,
    payload: Value<'_>,
    time: Option<i64>,
    starts_turns: bool,
    state: &mut QwenState,
    text: &mut String,
    out: &mut Stream,
) -> RecordOutcome {
    let raw = payload.text("rawCommand").unwrap_or("");
    let uuid = object.text("uuid").unwrap_or("").to_owned();
    state.command = Some(SlashCommand { raw: raw.to_owned(), uuid, at: time });

    let items = payload.items("outputHistoryItems");
    if payload.text("phase") != Some("result") && items.is_empty() {
        if is_client_command(raw, machine::CLIENT_COMMANDS, &[]) {
            return push_notification("client_command", raw, out);
        }
        prompt::push_prompt(raw, starts_turns, out);
        return RecordOutcome::Events;
    }

    for item in items {
        if !text.is_empty() {
            text.push('\n');
        }
        match item.text("text") {
            Some(line) => text.push_str(line),
            None => render::append_notification(item, &["type", "timestamp"], text),
        }
    }
    if text.is_empty() {
        return RecordOutcome::Merged("command_without_output");
    }
    render::truncate_notification(text);
    push_notification("slash_command_output", text, out)
}

/// Decodes a title. Qwen Code repeats the title when the log has grown.
fn decode_title(payload: Value<'_>, state: &mut QwenState, out: &mut Stream) -> RecordOutcome {
    let title = payload.text("customTitle").unwrap_or("");
    let is_generated = payload.text("titleSource") == Some("auto");
    out.offer_title(if is_generated { TitleFrom::Agent } else { TitleFrom::User }, title);
    if state.title.as_deref() == Some(title) {
        return RecordOutcome::Merged("repeated_title");
    }
    state.title = Some(title.to_owned());
    push_notification("custom_title", title, out)
}

/// Appends the numbers of a compaction and the summary that replaces the history.
fn append_compression(payload: Value<'_>, text: &mut String) {
    if let Some(info) = payload.object("info") {
        render::append_notification(info, &[], text);
    }
    for content in payload.items("compressedHistory") {
        let parts = content.items("parts");
        let first_text = parts.first().and_then(|part| part.text("text")).unwrap_or_default();
        if first_text.contains("<state_snapshot>") {
            text.push('\n');
            text.push_str(first_text);
            render::truncate_notification(text);
            return;
        }
    }
}

/// Appends the paths of the files that were backed up, each on its own line.
fn append_file_paths(payload: Value<'_>, text: &mut String) {
    for snapshot in payload.items("snapshots") {
        let backups = snapshot.field("trackedFileBackups");
        let backups = backups.and_then(|backups| backups.as_object());
        let tracked = backups.iter().flatten().map(|(path, _)| path);
        for path in tracked.chain(snapshot.text("path")) {
            text.push_str(path);
            text.push('\n');
        }
    }
    render::truncate_notification(text);
}

fn push_notification(subtype: &str, text: &str, out: &mut Stream) -> RecordOutcome {
    out.push_notification(subtype, text);
    RecordOutcome::Events
}
