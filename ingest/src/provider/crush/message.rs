//! Decodes the messages of Crush (docs/formats.md#crush).
//!
//! ```text
//! {"id":"<uuid>","role":"assistant","model":"...","created_at":1792570000,"parts":[
//!   {"type":"reasoning","data":{"thinking":"..."}},{"type":"text","data":{"text":"..."}},
//!   {"type":"tool_call","data":{"id":"c1","name":"bash","input":"{...}"}},
//!   {"type":"finish","data":{"reason":"tool_use","time":1792570009}}]}
//! {"role":"tool","parts":[{"type":"tool_result","data":{"tool_call_id":"c1","content":"..."}}]}
//! ```

use std::collections::HashMap;

use schemas::EventType;

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::provider::shared::identity::hash_id;
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded, string_value};
use crate::text::render;

/// Tools that run in a session of their own.
const AGENT_TOOLS: &[&str] = &["agent", "agentic_fetch"];

/// Reasons for the end of a response that are not worth a notification.
const NORMAL_REASONS: &[&str] = &["end_turn", "stop", "tool_use", ""];

/// Maximum number of last lines of a result in which the exit code is.
const MAX_EXIT_LINES: usize = 6;

/// Decodes the messages of one session in order.
#[derive(Default)]
pub(super) struct CrushDecoder {
    /// The session of the subagent that a call started, by the id of the call.
    spawned: HashMap<String, String>,
    text: String,
    inner: Parser,
}

impl CrushDecoder {
    /// Decodes one message into events.
    pub(super) fn decode_message(
        &mut self,
        message: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = message.non_empty("id");
        let time = message.field("created_at").and_then(chat::parse_time);
        out.begin_message(id);
        out.begin_record(at, id.map(hash_id), time);
        let role = message.text("role").unwrap_or("untyped");
        if message.text("type") == Some(OVERSIZED_RECORD) {
            push_oversized("message", message.int("bytes").unwrap_or(0), at, out);
            return RecordOutcome::Events;
        }

        let parts = message.items("parts");
        let is_summary = message.int("is_summary_message") == Some(1);
        if role == "assistant" {
            out.set_model(message.text("model"));
            if !is_summary {
                out.begin_step();
            }
        } else if !matches!(role, "user" | "tool") {
            out.count_unknown("record", role);
        }
        let mut prompt = String::new();
        for part in &parts {
            let kind = part.text("type").unwrap_or("untyped");
            let data = part.object("data").unwrap_or(*part);
            match kind {
                "text" if role == "user" || is_summary => {
                    render::append_line(data.text("text").unwrap_or(""), &mut prompt);
                }
                "image_url" | "binary" if role == "user" => append_attachment(data, &mut prompt),
                "finish" => self.push_finish(role, data, out),
                kind => self.decode_part(kind, data, id, out),
            }
        }
        // Content that is not JSON is kept as text.
        if let Some(text) = message.field("parts").and_then(string_value) {
            out.count_unknown("field", "parts");
            prompt.push_str(text);
        }
        if is_summary {
            out.push_notification("compact_summary", &prompt);
        } else if role == "user" && !prompt.trim().is_empty() {
            out.push_prompt(&prompt);
        } else if !prompt.is_empty() {
            out.push_notification(role, &prompt);
        }
        RecordOutcome::Events
    }

    /// Decodes a part of a response or of the results.
    fn decode_part(
        &mut self,
        kind: &str,
        data: Value<'_>,
        message: Option<&str>,
        out: &mut Stream,
    ) {
        let event = match kind {
            "text" => EventType::Message,
            "reasoning" => EventType::Reasoning,
            "tool_call" => return self.push_call(data, message, out),
            "tool_result" => return self.push_result(data, out),
            kind => {
                out.count_unknown("block", kind);
                self.text.clear();
                render::append_notification(data, &["data", "Data"], &mut self.text);
                return out.push_notification(kind, &self.text);
            }
        };
        let text = ["text", "thinking"].iter().find_map(|key| data.non_empty(key));
        if let Some(text) = text {
            out.push_text(event, text);
        }
    }

    fn push_call(&mut self, data: Value<'_>, message: Option<&str>, out: &mut Stream) {
        let tool_name = data.text("name");
        let tool_call_id = data.non_empty("id");
        if let (Some(call), Some(message)) = (tool_call_id, message)
            && tool_name.is_some_and(|name| AGENT_TOOLS.contains(&name))
        {
            self.spawned.insert(call.to_owned(), format!("{message}$${call}"));
        }
        let arguments = Arguments::of_input(data.field("input"), &mut self.inner);
        arguments.push_call(tool_name, tool_call_id, out);
    }

    fn push_result(&mut self, data: Value<'_>, out: &mut Stream) {
        let text = data.text("content").unwrap_or("");
        let tool_call_id = data.non_empty("tool_call_id");
        let mut duration_ms = None;
        let mut is_command = false;
        decode_embedded(data.text("metadata").unwrap_or(""), &mut self.inner, |metadata| {
            let times = metadata.int("start_time").zip(metadata.int("end_time"));
            duration_ms = times.map(|(start, end)| end - start).filter(|ms| *ms >= 0);
            is_command = times.is_some();
        });
        let exit_code = if is_command { printed_exit_code(text) } else { None };
        let is_error =
            data.flag("is_error") == Some(true) || exit_code.is_some_and(|code| code != 0);
        let spawned = tool_call_id.and_then(|call| self.spawned.remove(call));
        let decoded = DecodedEvent {
            text,
            tool_call_id,
            spawned_agent_id: spawned.as_deref(),
            is_error: Some(is_error),
            exit_code,
            duration_ms,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }

    /// Pushes why a response ended, unless that is the normal end.
    fn push_finish(&mut self, role: &str, data: Value<'_>, out: &mut Stream) {
        let reason = data.text("reason").unwrap_or("");
        if role != "assistant" || NORMAL_REASONS.contains(&reason) {
            return;
        }
        self.text.clear();
        for key in ["message", "details"] {
            if let Some(text) = data.non_empty(key) {
                render::append_line(text, &mut self.text);
            }
        }
        let is_error = matches!(reason, "error" | "max_tokens");
        let subtype = if reason == "canceled" { "interrupted" } else { reason };
        render::truncate_notification(&mut self.text);
        out.push_notice(subtype, &self.text, Some(is_error));
    }
}

/// Returns the exit code that a command's result has in one of its last lines, before the folder.
fn printed_exit_code(text: &str) -> Option<i32> {
    let mut last = text.lines().rev().take(MAX_EXIT_LINES);
    last.find_map(|line| {
        chat::parse_exit_code(&line.strip_prefix('E').map(|rest| format!("e{rest}"))?)
    })
}

/// Appends the name and the type of an attachment to a prompt.
fn append_attachment(data: Value<'_>, prompt: &mut String) {
    let name = ["Path", "URL", "path", "url"].iter().find_map(|key| data.non_empty(key));
    let kind = data.non_empty("MIMEType").unwrap_or("attachment");
    render::append_line(&format!("[{kind} {}]", name.unwrap_or("")), prompt);
}
