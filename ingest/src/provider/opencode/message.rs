//! Decodes one message of OpenCode 1 (docs/formats.md#opencode).
//!
//! ```text
//! {"info":{"id":"msg_...","role":"assistant","time":{...},"tokens":{...}},
//!  "parts":[{"type":"step-start"},{"type":"text","text":"..."},
//!           {"type":"tool","tool":"...","callID":"...","state":{"input":{...},"output":"..."}},
//!           {"type":"step-finish","tokens":{...}}]}
//! ```
//!
//! A tool's call and its result are one part. The tokens of a message are the sum of those of its
//! steps.

use std::borrow::Cow;

use schemas::{Confidence, EventType};

use super::events::{
    OpencodeCall, RAN_BY_USER, append_attachment, machine_subtype, message_identity,
    oversized_bytes, push_usage,
};
use super::record::{
    MISSING_MESSAGE, is_unreadable, push_unreadable, report_damage, report_missing_field,
};
use super::v2;
use crate::provider::copied::copied_identity;
use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::database::size_limit::push_oversized;
use crate::provider::shared::prompt;
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

/// Known part types that become notifications, and are not reported as drift.
const SIDE_PARTS: &[&str] = &["compaction", "file", "patch", "retry"];

/// Beginning of the line in the template of a command that has the words typed after the command.
const ARGUMENTS_LABEL: &str = "\nInput: ";

/// Decodes the messages of a session in order.
#[derive(Default)]
pub(super) struct OpencodeDecoder {
    /// Text of the current event.
    text: String,
    /// True if the next message is a command that the user ran.
    is_user_command: bool,
    /// The position of the message that is being decoded.
    at: RecordAt,
}

impl OpencodeDecoder {
    /// Decodes one message into events.
    pub(super) fn decode_message(
        &mut self,
        message: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let Some(info) = message.object("info") else {
            return v2::decode_message(message, at, &mut self.text, out);
        };

        let created = chat::read_millis(info.object("time"), "created");
        let parts = message.items("parts");
        let role = info.text("role").unwrap_or("untyped");
        let anchor = parts
            .iter()
            .filter(|part| !is_machine_part(**part))
            .find_map(|part| part.non_empty("text").or_else(|| part.non_empty("callID")));
        match copied_identity(info.text("id")) {
            Some(original) => out.begin_copied_record(at, original, created),
            None => out.begin_record(at, message_identity(role, created, anchor), created),
        }
        out.extend_time_range(chat::read_millis(info.object("time"), "completed"));

        self.at = at;
        report_damage(info, at, out);
        for part in &parts {
            self.report_defects(*part, out);
        }
        let role = if let Some(bytes) = oversized_bytes(info) {
            push_oversized("message", bytes, at, out);
            guess_role(&parts)
        } else if is_unreadable(info) {
            push_unreadable(info, out);
            guess_role(&parts)
        } else {
            info.text("type").filter(|kind| *kind == MISSING_MESSAGE).unwrap_or(role)
        };
        match role {
            "user" => self.decode_user_message(&parts, out),
            "assistant" => self.decode_response(info, &parts, out),
            // The author of these parts is unknown.
            MISSING_MESSAGE => {
                for part in &parts {
                    self.push_record_fields(part.text("type").unwrap_or("untyped"), *part, out);
                }
            }
            _ => {
                out.count_unknown("record", role);
                self.push_record_fields(role, message, out);
            }
        }
        RecordOutcome::Events
    }

    /// Reports what was wrong with a part, and fields that are missing in it.
    fn report_defects(&self, part: Value<'_>, out: &mut Stream) {
        report_damage(part, self.at, out);
        let kind = part.text("type").unwrap_or_default();
        let state = part.object("state");
        let missing = match kind {
            "text" | "reasoning" if part.text("text").is_none() => "text",
            "step-finish" if part.object("tokens").is_none() => "tokens",
            "tool" => match state.and_then(|state| state.text("status")) {
                Some("completed") if !has_any(state, &["output"]) => "state.output",
                Some("error") if !has_any(state, &["error", "output"]) => "state.error",
                Some(_) => return,
                None => "state.status",
            },
            _ => return,
        };
        report_missing_field(&format!("part of the type {kind}"), missing, self.at, out);
    }

    /// Decodes a message of the user: one prompt from all its parts, and notifications.
    fn decode_user_message(&mut self, parts: &[Value<'_>], out: &mut Stream) {
        let words = prompt_text(parts);
        if !words.is_empty() {
            prompt::push_prompt(&words, true, out);
        }

        for part in parts {
            match part.text("type") {
                Some("text") if is_machine_part(*part) => self.push_machine_text(*part, out),
                Some("subtask") if part.non_empty("command").is_some() => {
                    Self::push_command_template(*part, out);
                }
                Some("text" | "subtask" | "file" | "agent" | "snapshot") => {}
                kind => self.decode_side_part(kind.unwrap_or("untyped"), *part, out),
            }
        }
    }

    /// Decodes a response of the model.
    fn decode_response(&mut self, info: Value<'_>, parts: &[Value<'_>], out: &mut Stream) {
        let model = info.object("model").and_then(|model| model.text("modelID"));
        out.set_model(info.text("modelID").or(model));
        if let Some(place) = info.object("path") {
            out.set_cwd(place.text("cwd"));
            // Outside a repository the root is that of the file system.
            out.set_repository(place.text("root").filter(|root| *root != "/"));
        }

        let request_id = info.non_empty("id");
        let is_summary = info.flag("summary") == Some(true);
        let is_user_command = std::mem::take(&mut self.is_user_command);
        let mut is_in_step = false;
        let mut requests = 0;
        let mut counted = 0;
        for part in parts {
            let kind = part.text("type").unwrap_or("untyped");
            match kind {
                "step-start" => {
                    out.begin_step();
                    is_in_step = true;
                    requests += 1;
                    continue;
                }
                "step-finish" => {
                    counted += usize::from(push_usage(*part, request_id, out));
                    continue;
                }
                "snapshot" | "agent" => continue,
                _ => {}
            }
            if !is_in_step && !is_user_command && matches!(kind, "text" | "reasoning" | "tool") {
                out.begin_step();
                is_in_step = true;
            }
            match kind {
                "text" if is_machine_part(*part) => self.push_machine_text(*part, out),
                "text" | "reasoning" => push_text(kind, *part, is_summary, out),
                "tool" => self.decode_tool(*part, is_user_command, out),
                _ => self.decode_side_part(kind, *part, out),
            }
        }

        if counted == 0 {
            counted = usize::from(push_usage(info, request_id, out));
        }
        if counted < requests {
            out.set_confidence(Confidence::Partial);
        }
        if let Some(error) = info.object("error") {
            self.push_error_record(error.text("name").unwrap_or("error"), error, out);
        }
    }

    /// Decodes a call and its result. The call of a command that the user ran is a prompt as well.
    fn decode_tool(&mut self, part: Value<'_>, is_user_command: bool, out: &mut Stream) {
        let state = part.object("state");
        let time = state.and_then(|state| state.object("time"));
        let mut arguments = Arguments::default();
        if let Some(state) = state {
            if let Some(input) = state.field("input") {
                arguments.read_value(input);
            }
            // Arguments that were still being written.
            if let Some(raw) = state.non_empty("raw")
                && arguments.decoded().text.is_empty()
            {
                arguments.read_json_text(raw, &mut Parser::default());
            }
        }
        let call = OpencodeCall {
            tool_name: part.text("tool"),
            tool_call_id: part.non_empty("callID"),
            status: state.and_then(|state| state.text("status")),
            metadata: state.and_then(|state| state.object("metadata")),
            started: chat::read_millis(time, "start"),
            ended: chat::read_millis(time, "end"),
        };
        if is_user_command {
            out.push_prompt(&format!("!{}", arguments.decoded().command));
        }
        call.push_call(&arguments, out);

        let Some(state) = state else { return };
        self.text.clear();
        let answer = state.field("output").or_else(|| state.field("error"));
        if let Some(answer) = answer {
            render::append_value(answer, &mut self.text);
        }
        // Output printed before an interruption, or cut from the answer shown to the model.
        let full_output = call.metadata.and_then(full_output).unwrap_or_default();
        if !self.text.contains(full_output.trim()) {
            render::append_line(full_output, &mut self.text);
        }
        for file in state.items("attachments") {
            let name = file.text("filename");
            append_attachment(file.text("mime"), file.text("url"), name, None, &mut self.text);
        }
        call.push_result(answer.is_some(), &self.text, out);
    }

    /// Decodes text that OpenCode put into a message: reminders, contents of attached files.
    fn push_machine_text(&mut self, part: Value<'_>, out: &mut Stream) {
        self.text.clear();
        self.text.push_str(part.text("text").unwrap_or(""));
        self.is_user_command |= self.text == RAN_BY_USER;
        let kind = part.object("metadata").and_then(|metadata| metadata.non_empty("kind"));
        let subtype = match kind {
            Some(kind) => kind,
            None if part.flag("ignored") == Some(true) => "ignored",
            None => machine_subtype(&self.text),
        };
        out.push_shortened(subtype, &self.text);
    }

    /// Pushes the text that a command of the user gave to a subagent.
    fn push_command_template(part: Value<'_>, out: &mut Stream) {
        out.push_shortened("command_prompt", part.text("prompt").unwrap_or(""));
    }

    /// Decodes parts that are not part of the conversation, known or unknown.
    fn decode_side_part(&mut self, kind: &str, part: Value<'_>, out: &mut Stream) {
        if let Some(bytes) = oversized_bytes(part) {
            return push_oversized("part of a message", bytes, self.at, out);
        }
        if is_unreadable(part) {
            return push_unreadable(part, out);
        }
        if !SIDE_PARTS.contains(&kind) {
            out.count_unknown("block", kind);
        }
        match (kind, part.object("error")) {
            ("retry", Some(error)) => self.push_error_record("retry", error, out),
            ("file", _) => {
                self.text.clear();
                let name = part.text("filename");
                append_attachment(part.text("mime"), part.text("url"), name, None, &mut self.text);
                out.push_notification(kind, &self.text);
            }
            _ => self.push_record_fields(kind, part, out),
        }
    }

    /// Pushes a notification of an error.
    fn push_error_record(&mut self, subtype: &str, error: Value<'_>, out: &mut Stream) {
        self.text.clear();
        match error.object("data").and_then(|data| data.non_empty("message")) {
            Some(message) => self.text.push_str(message),
            None => render::append_notification(error, &["name"], &mut self.text),
        }
        out.push_notice(subtype, &self.text, Some(true));
    }

    /// Pushes a notification with the fields of a message or part that has no rule of its own.
    fn push_record_fields(&mut self, subtype: &str, record: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let skip = ["type", "id", "sessionID", "messageID", "synthetic"];
        render::append_notification(record, &skip, &mut self.text);
        out.push_notification(subtype, &self.text);
    }
}

/// Returns whether an object has one of these fields.
fn has_any(object: Option<Value<'_>>, fields: &[&str]) -> bool {
    object.is_some_and(|object| fields.iter().any(|field| object.non_null(field).is_some()))
}

/// Returns the role of a message whose own fields were left out. Only responses have steps, calls
/// and reasoning.
fn guess_role(parts: &[Value<'_>]) -> &'static str {
    let is_response = parts.iter().any(|part| {
        matches!(part.text("type"), Some("step-start" | "step-finish" | "tool" | "reasoning"))
    });
    if is_response { "assistant" } else { "user" }
}

/// Returns the prompt in the parts of a message: the words that the user typed, then the
/// attachments that they do not mention.
fn prompt_text(parts: &[Value<'_>]) -> String {
    let mut words = String::new();
    for part in parts.iter().filter(|part| !is_machine_part(**part)) {
        let text = match part.text("type") {
            Some("text") => part.text("text").map(Cow::from),
            Some("subtask") => part.text("prompt").map(|prompt| match part.non_empty("command") {
                Some(name) => {
                    format!("/{name} {}", command_arguments(prompt)).trim_end().to_owned().into()
                }
                None => prompt.into(),
            }),
            _ => None,
        };
        if let Some(text) = text {
            render::append_line(&text, &mut words);
        }
    }
    for part in parts.iter().filter(|part| !is_machine_part(**part)) {
        let mention = part
            .object("source")
            .and_then(|source| source.object("text").unwrap_or(source).text("value"));
        let name = part.text("filename").or_else(|| part.text("name"));
        match part.text("type") {
            Some("file") => {
                append_attachment(part.text("mime"), part.text("url"), name, mention, &mut words);
            }
            Some("agent") => append_attachment(None, None, name, mention, &mut words),
            _ => {}
        }
    }
    words
}

/// Returns the words that the user typed after a command, if its text names them. They have
/// no field of their own: the template of `/review` puts them after [`ARGUMENTS_LABEL`].
fn command_arguments(template: &str) -> &str {
    let Some((_, rest)) = template.split_once(ARGUMENTS_LABEL) else { return "" };
    rest.split_once("\n\n").map_or(rest, |(arguments, _)| arguments).trim()
}

/// Returns the output of a tool from the metadata of its call, if the answer lacks a part of it.
/// `None` if the answer is complete, or if the metadata has no output.
fn full_output(metadata: Value<'_>) -> Option<&str> {
    let is_incomplete =
        metadata.flag("interrupted") == Some(true) || metadata.flag("truncated") == Some(true);
    if is_incomplete { metadata.non_empty("output") } else { None }
}

/// Decodes text or reasoning of the assistant.
fn push_text(kind: &str, part: Value<'_>, is_summary: bool, out: &mut Stream) {
    let text = part.text("text").unwrap_or("");
    let timestamp = chat::read_millis(part.object("time"), "start");
    let decoded = DecodedEvent { text, timestamp, ..DecodedEvent::default() };
    match kind {
        "reasoning" => out.push(EventType::Reasoning, decoded),
        _ if text.is_empty() => {}
        _ if is_summary => {
            let decoded = DecodedEvent { subtype: Some("compact_summary"), ..decoded };
            out.push(EventType::Notification, decoded);
        }
        _ => out.push(EventType::Message, decoded),
    }
}

/// Returns whether OpenCode itself put a part into a message.
fn is_machine_part(part: Value<'_>) -> bool {
    part.flag("synthetic") == Some(true) || part.flag("ignored") == Some(true)
}
