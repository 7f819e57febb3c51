//! Decodes completed items of a turn (`event_msg/item_completed`), and the ends of calls that have
//! no response item, such as calls made by a script of the model (docs/formats.md#codex).

use schemas::EventType;

use super::ended::CallEnd;
use super::review::Review;
use super::user_text::UserInput;
use super::{CodexDecoder, RecordedForm, known};
use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::drift;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

impl CodexDecoder {
    /// Decodes an item of a turn. In paginated histories, prompts are recorded only here.
    pub(super) fn decode_completed_item(
        &mut self,
        event: Value<'_>,
        out: &mut Stream,
    ) -> RecordOutcome {
        let Some(item) = event.object("item") else {
            return self.push_unknown_record("item_completed", event, out);
        };
        let kind = item.text("type").unwrap_or("untyped");
        match kind {
            "UserMessage" => {
                let input = UserInput::from_content(item.field("content"));
                self.decode_typed(&input, RecordedForm::Completed, out)
            }
            "AgentMessage" => {
                let mut text = String::new();
                render::append_field(item, "content", &mut text);
                self.push_reply(&text, RecordedForm::Completed, out)
            }
            "Reasoning" => self.decode_reasoning(
                item,
                ["summary_text", "raw_content"],
                RecordedForm::Completed,
                out,
            ),
            "CommandExecution" | "McpToolCall" | "FileChange" | "Extension" => {
                let begun = event.int("started_at_ms").and_then(|at| at.checked_mul(1000));
                self.decode_call_end(kind, item, item.non_empty("id"), begun, out)
            }
            "EnteredReviewMode" | "ExitedReviewMode" => {
                let is_begun = kind == "EnteredReviewMode";
                self.state.review =
                    if is_begun { Some(Review::from_event(item, out)) } else { None };
                self.push_unknown_record("item_completed", event, out)
            }
            kind => {
                drift::count_unknown_inner("item_completed", kind, known::ITEMS, out);
                self.push_unknown_record("item_completed", event, out)
            }
        }
    }

    /// Decodes the request for a tool of the client, which the event alone records in some logs.
    pub(super) fn decode_dynamic_call(
        &mut self,
        event: Value<'_>,
        out: &mut Stream,
    ) -> RecordOutcome {
        let call = event.non_empty("callId").or(event.non_empty("call_id"));
        if call.is_some_and(|call| out.has_open_call(call) || self.state.answered.contains(call)) {
            return RecordOutcome::Merged("twin_of_tool_call");
        }
        self.push_ended_call("dynamic_tool_call_request", event, call, None, out);
        self.state.dynamic.remember(call);
        RecordOutcome::Events
    }

    /// Decodes the end of a tool call. If an item recorded the call, the end is a twin of its
    /// output. `begun` is the time in microseconds at which the call began.
    pub(super) fn decode_call_end(
        &mut self,
        kind: &str,
        end: Value<'_>,
        call: Option<&str>,
        begun: Option<i64>,
        out: &mut Stream,
    ) -> RecordOutcome {
        // A request of its own recorded the call, and no item follows.
        if call.is_some_and(|call| out.has_open_call(call) && self.state.dynamic.contains(call)) {
            self.state.answered.remember(call);
            self.push_call_result(end, call, out);
            return RecordOutcome::Events;
        }

        // A command that the user ran is in a message of the user.
        let is_by_user = end.text("source") == Some("user_shell");
        if is_by_user
            || call
                .is_some_and(|call| out.has_open_call(call) || self.state.answered.contains(call))
        {
            self.state.ended.remember(end, call);
            return RecordOutcome::Merged("twin_of_tool_result");
        }

        self.push_ended_call(kind, end, call, begun, out);
        self.push_call_result(end, call, out);
        RecordOutcome::Events
    }

    /// Pushes a call as its end or its request reports it. `begun` is the time in microseconds at
    /// which it began.
    fn push_ended_call(
        &mut self,
        kind: &str,
        end: Value<'_>,
        call: Option<&str>,
        begun: Option<i64>,
        out: &mut Stream,
    ) {
        let mut arguments = Arguments::default();
        let name = read_call(kind, end, &mut arguments);
        out.begin_response(&mut self.state.in_response);
        self.state.after_item = false;
        let decoded = DecodedEvent {
            tool_name: Some(&name),
            tool_call_id: call,
            timestamp: begun.filter(|begun| *begun > 0),
            ..arguments.decoded()
        };
        out.push(EventType::ToolCall, decoded);
    }

    /// Pushes the result of a call as its end reports it.
    fn push_call_result(&mut self, end: Value<'_>, call: Option<&str>, out: &mut Stream) {
        let mut text = String::new();
        append_output(end, &mut text);

        let exit_code = end.int32("exit_code");
        let ended = CallEnd::from_event(end, "");
        let has_failed_status = matches!(end.text("status"), Some("failed" | "declined"));
        let is_error = exit_code
            .map(|code| code != 0)
            .or(ended.is_error)
            .or_else(|| end.flag("success").map(|success| !success))
            .or(has_failed_status.then_some(true));
        let decoded = DecodedEvent {
            text: &text,
            tool_call_id: call,
            exit_code,
            is_error,
            duration_ms: ended.duration_ms,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Reads the arguments of a call from its end. Returns the name of the tool.
fn read_call(kind: &str, end: Value<'_>, arguments: &mut Arguments) -> String {
    match kind {
        "CommandExecution" | "exec_command_end" => {
            if let Some(command) = end.field("command") {
                arguments.read_command_line(command);
            }
            "exec_command".to_owned()
        }
        "McpToolCall" | "mcp_tool_call_end" => {
            let call = end.object("invocation").unwrap_or(end);
            if let Some(input) = call.field("arguments") {
                arguments.read_value(input);
            }
            let server = call.text("server").unwrap_or("unknown");
            let tool = call.text("tool").unwrap_or("unknown");
            format!("mcp__{server}__{tool}")
        }
        "FileChange" | "patch_apply_end" => {
            if let Some(changes) = end.object("changes") {
                arguments.read_changes(changes);
            }
            "apply_patch".to_owned()
        }
        "dynamic_tool_call_request" | "dynamic_tool_call_response" => {
            if let Some(input) = end.field("arguments") {
                arguments.read_value(input);
            }
            let tool = end.text("tool").unwrap_or("unknown");
            match end.non_empty("namespace") {
                Some(namespace) => format!("{namespace}__{tool}"),
                None => tool.to_owned(),
            }
        }
        // The web search is the only extension seen so far.
        _ => {
            let query = end.field("query");
            if let Some(input) = end.field("action").or(query) {
                arguments.read_value(input);
            }
            let kind = end.text("kind").unwrap_or("extension");
            if query.is_some() { "web_search" } else { kind }.to_owned()
        }
    }
}

/// Appends what a call printed and answered.
fn append_output(end: Value<'_>, text: &mut String) {
    let parts = match end.non_empty("aggregated_output") {
        Some(_) => &["aggregated_output"][..],
        None => &["stdout", "stderr", "results", "content_items", "error"],
    };
    for part in parts.iter().filter_map(|key| end.non_null(key)) {
        render::begin_new_line(text);
        match string_value(part) {
            Some(part) => text.push_str(part),
            None => render::append_content(part, text),
        }
    }

    if let Some(result) = end.object("result") {
        let answer = result.non_null("Ok").or(result.non_null("Err")).unwrap_or(result);
        render::append_content(answer.field("content").unwrap_or(answer), text);
    }
}
