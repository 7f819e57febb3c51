//! Decodes completed items of a turn (`event_msg/item_completed`), and the ends of calls that have
//! no response item, such as calls made by a script of the model (docs/formats.md#codex).

use schemas::EventType;

use super::{Decoder, Family, output};
use crate::provider::format::Outcome;
use crate::provider::shared::arguments::Arguments;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value, string};
use crate::text::render;

impl Decoder {
    /// Decodes an item of a turn. In paginated histories, prompts are recorded only here.
    pub(super) fn completed(&mut self, event: Value<'_>, out: &mut Stream) -> Outcome {
        let Some(item) = event.object("item") else {
            return self.unknown("item_completed", event, out);
        };
        let mut text = String::new();
        item.field("content").inspect(|content| render::content(*content, &mut text));
        let kind = item.text("type").unwrap_or("untyped");
        match kind {
            "UserMessage" if output::machine_text(&text).is_some() => {
                Outcome::Merged("twin_of_machine_text")
            }
            "UserMessage" => self.prompt(&text, Family::Completed, out),
            "AgentMessage" => self.reply(&text, Family::Completed, out),
            "Reasoning" => {
                self.reasoning(item, ["summary_text", "raw_content"], Family::Completed, out)
            }
            "CommandExecution" | "McpToolCall" | "FileChange" | "Extension" => {
                let begun = event.int("started_at_ms").and_then(|at| at.checked_mul(1000));
                self.ran(kind, item, item.non_empty("id"), begun, out)
            }
            _ => self.unknown("item_completed", event, out),
        }
    }

    /// Decodes the end of a tool call. If an item recorded the call, the end is a twin of its
    /// output. `begun` is the time in microseconds at which the call began.
    pub(super) fn ran(
        &mut self,
        kind: &str,
        end: Value<'_>,
        call: Option<&str>,
        begun: Option<i64>,
        out: &mut Stream,
    ) -> Outcome {
        // A command that the user ran is in a message of the user.
        let by_person = end.text("source") == Some("user_shell");
        if by_person
            || call.is_some_and(|call| out.is_open(call) || self.state.answered.knows(call))
        {
            self.state.ended.note(end, call);
            return Outcome::Merged("twin_of_tool_result");
        }
        let told = end.object("invocation").unwrap_or(end);
        let mut arguments = Arguments::default();
        let name = match kind {
            "CommandExecution" | "exec_command_end" => {
                end.field("command").inspect(|command| arguments.line(*command));
                "exec_command".to_owned()
            }
            "McpToolCall" | "mcp_tool_call_end" => {
                told.field("arguments").inspect(|input| arguments.read(*input));
                let part = |key: &str| told.text(key).unwrap_or("unknown").to_owned();
                format!("mcp__{}__{}", part("server"), part("tool"))
            }
            "FileChange" | "patch_apply_end" => {
                end.object("changes").inspect(|changes| arguments.changes(*changes));
                "apply_patch".to_owned()
            }
            // The web search is the only extension seen so far.
            _ => {
                let input = end.field("action").or_else(|| end.field("query"));
                input.inspect(|input| arguments.read(*input));
                let kind = end.text("kind").unwrap_or("extension");
                if end.field("query").is_some() { "web_search" } else { kind }.to_owned()
            }
        };
        self.respond(out);
        self.state.after_item = false;
        let draft = Draft {
            tool_name: Some(&name),
            tool_call_id: call,
            timestamp: begun.filter(|begun| *begun > 0),
            ..arguments.draft()
        };
        out.push(EventType::ToolCall, draft);
        self.result_of(end, call, out);
        Outcome::Events
    }

    /// Pushes the result of a call as its end reports it.
    fn result_of(&mut self, end: Value<'_>, call: Option<&str>, out: &mut Stream) {
        let mut text = String::new();
        let parts = match end.non_empty("aggregated_output") {
            Some(_) => &["aggregated_output"][..],
            None => &["stdout", "stderr", "results", "error"],
        };
        for part in parts.iter().filter_map(|key| end.given(key)) {
            render::new_line(&mut text);
            match string(part) {
                Some(part) => text.push_str(part),
                None => render::content(part, &mut text),
            }
        }
        let result = end.object("result");
        let answer =
            result.map(|result| result.given("Ok").or(result.given("Err")).unwrap_or(result));
        if let Some(answer) = answer {
            render::content(answer.field("content").unwrap_or(answer), &mut text);
        }
        let exit_code = end.int("exit_code").and_then(|code| i32::try_from(code).ok());
        let ended = super::ended::Ended::of(end, "");
        let failed = matches!(end.text("status"), Some("failed" | "declined")).then_some(true);
        let is_error = exit_code
            .map(|code| code != 0)
            .or(ended.is_error)
            .or_else(|| end.flag("success").map(|success| !success))
            .or(failed);
        let draft = Draft {
            text: &text,
            tool_call_id: call,
            exit_code,
            is_error,
            duration_ms: ended.duration_ms,
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }
}
