//! Decodes one message of OpenCode 1: `{info, parts}`. A tool's call and its result are one part,
//! and the tokens of the message are the sum of those of its steps (docs/formats.md#opencode).

use schemas::{Confidence, EventType};

use super::events::{Call, RAN_BY_USER, attached, identity, push_error, push_usage, subtype_of};
use super::v2;
use crate::provider::format::Outcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::stream::{Draft, RecordAt, Stream};
use crate::text::json::{Fields, Parser, Value};
use crate::text::render;

/// Known part types that become notifications, and are not reported as drift.
const SIDE_PARTS: &[&str] = &["compaction", "file", "patch", "retry"];

/// Decodes the messages of a session in order.
#[derive(Default)]
pub(super) struct Decoder {
    text: String,
    /// True if the next message is a command that the user ran.
    typed_command: bool,
}

impl Decoder {
    pub(super) fn message(
        &mut self,
        message: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> Outcome {
        let Some(info) = message.object("info") else {
            return v2::message(message, at, &mut self.text, out);
        };
        let created = chat::millis(info.object("time"), "created");
        let parts = message.items("parts");
        let role = info.text("role").unwrap_or("untyped");
        let anchor = parts
            .iter()
            .filter(|part| !is_machine(**part))
            .find_map(|part| part.non_empty("text").or_else(|| part.non_empty("callID")));
        out.begin_record(at, identity(role, created, anchor), created);
        out.widen(chat::millis(info.object("time"), "completed"));
        match role {
            "user" => self.user(&parts, out),
            "assistant" => self.assistant(info, &parts, out),
            _ => {
                out.drift("record", role);
                self.notify(role, message, out);
            }
        }
        Outcome::Events
    }

    fn user(&mut self, parts: &[Value<'_>], out: &mut Stream) {
        let mut words = String::new();
        for part in parts.iter().filter(|part| !is_machine(**part)) {
            let text = match part.text("type") {
                Some("text") => part.text("text"),
                Some("subtask") => part.text("prompt"),
                _ => None,
            };
            text.inspect(|text| render::add_line(text, &mut words));
        }
        for part in parts.iter().filter(|part| !is_machine(**part)) {
            let mention = part
                .object("source")
                .and_then(|source| source.object("text").unwrap_or(source).text("value"));
            let name = part.text("filename").or_else(|| part.text("name"));
            match part.text("type") {
                Some("file") => {
                    attached(part.text("mime"), part.text("url"), name, mention, &mut words)
                }
                Some("agent") => attached(None, None, name, mention, &mut words),
                _ => {}
            }
        }
        if !words.is_empty() {
            out.prompt(&words);
        }
        for part in parts {
            match part.text("type") {
                Some("text") if is_machine(*part) => self.machine_text(*part, out),
                Some("text" | "subtask" | "file" | "agent" | "snapshot") => {}
                kind => self.side_part(kind.unwrap_or("untyped"), *part, out),
            }
        }
    }

    fn assistant(&mut self, info: Value<'_>, parts: &[Value<'_>], out: &mut Stream) {
        let model = info.object("model").and_then(|model| model.text("modelID"));
        out.set_model(info.text("modelID").or(model));
        if let Some(place) = info.object("path") {
            out.set_cwd(place.text("cwd"));
            // Outside a repository the root is that of the file system.
            out.set_repository(place.text("root").filter(|root| *root != "/"));
        }
        let request_id = info.non_empty("id");
        let is_summary = info.flag("summary") == Some(true);
        let typed_command = std::mem::take(&mut self.typed_command);
        let (mut in_step, mut requests, mut counted) = (false, 0, 0);
        for part in parts {
            let kind = part.text("type").unwrap_or("untyped");
            match kind {
                "step-start" => {
                    out.begin_step();
                    (in_step, requests) = (true, requests + 1);
                    continue;
                }
                "step-finish" => {
                    counted += usize::from(push_usage(part.object("tokens"), request_id, out));
                    continue;
                }
                "snapshot" | "agent" => continue,
                _ => {}
            }
            if !in_step && !typed_command && matches!(kind, "text" | "reasoning" | "tool") {
                out.begin_step();
                in_step = true;
            }
            match kind {
                "text" if is_machine(*part) => self.machine_text(*part, out),
                "text" | "reasoning" => speech(kind, *part, is_summary, out),
                "tool" => self.tool(*part, typed_command, out),
                _ => self.side_part(kind, *part, out),
            }
        }
        if counted == 0 {
            counted = usize::from(push_usage(info.object("tokens"), request_id, out));
        }
        if counted < requests {
            out.set_confidence(Confidence::Partial);
        }
        if let Some(error) = info.object("error") {
            self.error(error.text("name").unwrap_or("error"), error, out);
        }
    }

    /// Decodes a call and its result. The call of a command that the user ran is a prompt as well.
    fn tool(&mut self, part: Value<'_>, typed_command: bool, out: &mut Stream) {
        let state = part.object("state");
        let time = state.and_then(|state| state.object("time"));
        let mut arguments = Arguments::default();
        if let Some(state) = state {
            state.field("input").inspect(|input| arguments.read(*input));
            // Arguments that were still being written.
            if let Some(raw) = state.non_empty("raw")
                && arguments.draft().text.is_empty()
            {
                arguments.read_json_text(raw, &mut Parser::default());
            }
        }
        let call = Call {
            tool_name: part.text("tool"),
            tool_call_id: part.non_empty("callID"),
            status: state.and_then(|state| state.text("status")),
            metadata: state.and_then(|state| state.object("metadata")),
            started: chat::millis(time, "start"),
            ended: chat::millis(time, "end"),
        };
        if typed_command {
            out.prompt(&format!("!{}", arguments.draft().command));
        }
        call.push(&arguments, out);
        self.text.clear();
        let Some(state) = state else { return };
        let answer = state.field("output").or_else(|| state.field("error"));
        answer.inspect(|answer| render::value(*answer, &mut self.text));
        // Output printed before an interruption, or cut from the answer shown to the model.
        let has_more = |data: &Value<'_>| {
            data.flag("interrupted") == Some(true) || data.flag("truncated") == Some(true)
        };
        let more = call.metadata.filter(has_more).and_then(|data| data.non_empty("output"));
        if let Some(output) = more.filter(|output| !self.text.contains(output.trim())) {
            render::add_line(output, &mut self.text);
        }
        for file in state.items("attachments") {
            let name = file.text("filename");
            attached(file.text("mime"), file.text("url"), name, None, &mut self.text);
        }
        call.push_answer(answer.is_some(), &self.text, out);
    }

    /// Decodes text that OpenCode put into a message: reminders, contents of attached files.
    fn machine_text(&mut self, part: Value<'_>, out: &mut Stream) {
        self.text.clear();
        self.text.push_str(part.text("text").unwrap_or(""));
        self.typed_command |= self.text == RAN_BY_USER;
        let said = part.object("metadata").and_then(|metadata| metadata.non_empty("kind"));
        let subtype = said.unwrap_or(if part.flag("ignored") == Some(true) {
            "ignored"
        } else {
            subtype_of(&self.text)
        });
        render::cut(&mut self.text);
        let draft = Draft { subtype: Some(subtype), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }

    /// Decodes parts that are not part of the conversation, known or unknown.
    fn side_part(&mut self, kind: &str, part: Value<'_>, out: &mut Stream) {
        if !SIDE_PARTS.contains(&kind) {
            out.drift("block", kind);
        }
        match (kind, part.object("error")) {
            ("retry", Some(error)) => self.error("retry", error, out),
            ("file", _) => {
                self.text.clear();
                let name = part.text("filename");
                attached(part.text("mime"), part.text("url"), name, None, &mut self.text);
                let draft = Draft { subtype: Some(kind), text: &self.text, ..Draft::default() };
                out.push(EventType::Notification, draft);
            }
            _ => self.notify(kind, part, out),
        }
    }

    fn error(&mut self, subtype: &str, error: Value<'_>, out: &mut Stream) {
        self.text.clear();
        match error.object("data").and_then(|data| data.non_empty("message")) {
            Some(message) => self.text.push_str(message),
            None => render::fields(error, &["name"], &mut self.text),
        }
        push_error(subtype, &self.text, out);
    }

    fn notify(&mut self, subtype: &str, record: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let skip = ["type", "id", "sessionID", "messageID", "synthetic"];
        render::fields(record, &skip, &mut self.text);
        let draft = Draft { subtype: Some(subtype), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}

/// Decodes text or reasoning of the assistant.
fn speech(kind: &str, part: Value<'_>, is_summary: bool, out: &mut Stream) {
    let text = part.text("text").unwrap_or("");
    let timestamp = chat::millis(part.object("time"), "start");
    let draft = Draft { text, timestamp, ..Draft::default() };
    match kind {
        "reasoning" => out.push(EventType::Reasoning, draft),
        _ if text.is_empty() => {}
        _ if is_summary => {
            let draft = Draft { subtype: Some("compact_summary"), ..draft };
            out.push(EventType::Notification, draft);
        }
        _ => out.push(EventType::Message, draft),
    }
}

fn is_machine(part: Value<'_>) -> bool {
    part.flag("synthetic") == Some(true) || part.flag("ignored") == Some(true)
}
