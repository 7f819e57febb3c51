//! Decodes the records of Warp's conversations (docs/formats.md#warp). `task.rs` and `database.rs`
//! show them.

use schemas::EventType;

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::provider::shared::identity::hash_id;
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Value, string_value};

/// The tool that the server of Warp runs and does not describe.
const SERVER_TOOL: &str = "server";

/// Decodes the records of one conversation in order.
#[derive(Default)]
pub(super) struct WarpDecoder {
    /// True while a response of the model is under way.
    in_response: bool,
}

impl WarpDecoder {
    /// Decodes a message of a task, or a request.
    pub(super) fn decode_record(
        &mut self,
        record: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = record.non_empty("id");
        out.begin_message(id);
        out.begin_record(at, id.map(hash_id), record.int("time"));
        let task = record.non_empty("task");
        if task.is_some() {
            out.set_sidechain(task);
        }
        out.set_cwd(record.non_empty("cwd"));
        let text = record.text("text").unwrap_or("");
        let kind = record.text("kind").unwrap_or("untyped");
        if record.flag("is_unknown") == Some(true) {
            let name = record.non_empty("tool").unwrap_or(kind);
            out.count_unknown("record", name);
        }
        for field in record.items("unknown_fields") {
            out.count_unknown("field", string_value(field).unwrap_or(""));
        }
        match kind {
            "exchange" => {
                out.set_model(record.non_empty("model"));
                self.in_response = false;
                if record.non_empty("text").is_none() {
                    return RecordOutcome::Merged("request");
                }
                out.push_prompt(text);
            }
            "exchange_end" => {
                let is_error = record.text("status") == Some("Failed");
                let subtype = if is_error { "error" } else { "interrupted" };
                out.push_notice(subtype, "", Some(is_error));
            }
            "user_query" => {
                self.in_response = false;
                if record.flag("is_moved") == Some(true) {
                    out.set_copied(true);
                }
                if task.is_some() {
                    out.push_text(EventType::User, text);
                } else {
                    out.push_prompt(text);
                }
            }
            "agent_output" => {
                out.begin_response(&mut self.in_response);
                out.push_text(EventType::Message, text);
            }
            "agent_reasoning" => {
                out.begin_response(&mut self.in_response);
                // Warp keeps how long the model reasoned, if it does not show what.
                if text.is_empty() {
                    return RecordOutcome::Merged("hidden_reasoning");
                }
                out.push_text(EventType::Reasoning, text);
            }
            "tool_call" | "tool_call_result" if record.text("tool") == Some(SERVER_TOOL) => {
                return RecordOutcome::Merged("server_tool");
            }
            "tool_call" => {
                out.begin_response(&mut self.in_response);
                let arguments = Arguments::of_value(record.field("arguments"));
                arguments.push_call(record.text("tool"), record.non_empty("call"), out);
            }
            "tool_call_result" => {
                self.in_response = false;
                push_result(record, text, out);
            }
            "server_event" | "empty" => return RecordOutcome::Merged("server_event"),
            OVERSIZED_RECORD => {
                push_oversized("task", record.int("bytes").unwrap_or(0), at, out);
            }
            "unreadable" => {
                out.count_unknown("record", kind);
                let bytes = record.int("bytes").unwrap_or(0);
                out.push_notification(kind, &format!("a task of {bytes} bytes is not readable"));
            }
            kind => {
                let kind = if kind == "summarization" { "compact_summary" } else { kind };
                out.push_shortened(kind, text);
            }
        }
        RecordOutcome::Events
    }
}

fn push_result(record: Value<'_>, text: &str, out: &mut Stream) {
    let exit_code = record.int("exit_code").and_then(|code| i32::try_from(code).ok());
    let is_cancelled = record.flag("is_cancelled") == Some(true);
    let is_error = record.flag("is_error") == Some(true) || exit_code.is_some_and(|code| code != 0);
    let decoded = DecodedEvent {
        subtype: is_cancelled.then_some("cancelled"),
        text,
        tool_call_id: record.non_empty("call"),
        is_error: Some(is_error || is_cancelled),
        exit_code,
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}
