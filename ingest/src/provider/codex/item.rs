//! Decodes response items: the input and the output of the model (docs/formats.md#codex).

use schemas::EventType;

use super::user_text::{self, UserInput};
use super::{CodexDecoder, RecordedForm, machine, output};
use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::machine_text::text_between;
use crate::stream::Stream;
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

impl CodexDecoder {
    /// Decodes a response item, or an item of the flat generation.
    pub(super) fn decode_item(&mut self, item: Value<'_>, out: &mut Stream) -> RecordOutcome {
        let kind = item.text("type").unwrap_or("untyped");
        self.text.clear();
        match kind {
            "message" => return self.decode_message(item, out),
            "reasoning" => {
                return self.decode_reasoning(
                    item,
                    ["summary", "content"],
                    RecordedForm::Item,
                    out,
                );
            }
            "function_call"
            | "custom_tool_call"
            | "local_shell_call"
            | "tool_search_call"
            | "web_search_call"
            | "image_generation_call" => {
                out.begin_response(&mut self.state.in_response);
                self.push_call(kind, item, out);
                // A search has no output of its own.
                self.state.answered.remember(item.non_empty("id"));
            }
            "function_call_output"
            | "custom_tool_call_output"
            | "tool_search_output"
            | "local_shell_call_output" => {
                self.state.in_response = false;
                let call = item.non_empty("call_id");
                self.state.answered.remember(call);
                let ended = self.state.ended.take(call);
                output::push_tool_result(item, &ended, &mut self.inner, &mut self.text, out);
            }
            _ => return self.push_unknown_record(kind, item, out),
        }
        self.state.after_item = false;
        RecordOutcome::Events
    }

    /// Pushes the model's reasoning, without the parts that the client already reported. Often
    /// there is no text.
    pub(super) fn decode_reasoning(
        &mut self,
        item: Value<'_>,
        parts: [&str; 2],
        form: RecordedForm,
        out: &mut Stream,
    ) -> RecordOutcome {
        let mut text = String::new();
        let mut may_be_twin = form != RecordedForm::Item;
        for value in parts.into_iter().filter_map(|key| item.non_null(key)) {
            let blocks: Vec<_> = match value.as_array() {
                Some(list) => list.iter().collect(),
                None => vec![value],
            };
            for block in blocks {
                let mut part = String::new();
                render::append_block(block, &mut part);
                if self.is_twin("reasoning", &part, form) {
                    may_be_twin = true;
                } else {
                    render::append_line(&part, &mut text);
                }
            }
        }

        if may_be_twin && text.is_empty() {
            return RecordOutcome::Merged("twin_of_reasoning");
        }
        self.push_reasoning(&text, out)
    }

    /// Pushes a piece of reasoning.
    pub(super) fn push_reasoning(&mut self, text: &str, out: &mut Stream) -> RecordOutcome {
        out.begin_response(&mut self.state.in_response);
        self.state.after_item = false;
        out.push_text(EventType::Reasoning, text);
        RecordOutcome::Events
    }

    /// Pushes a tool call.
    fn push_call(&mut self, kind: &str, item: Value<'_>, out: &mut Stream) {
        let input =
            ["arguments", "input", "action", "query"].iter().find_map(|key| item.field(key));
        let mut arguments = Arguments::default();
        if let Some(input) = input {
            match string_value(input) {
                // Arguments are JSON in a string. The input of a custom tool is mostly plain text.
                Some(json) if kind == "function_call" || json.starts_with('{') => {
                    arguments.read_json_text(json, &mut self.inner);
                }
                Some(text) => arguments.read_plain_text(text),
                None => arguments.read_value(input),
            }
        }

        let name = item.text("name").unwrap_or_else(|| kind.trim_end_matches("_call"));
        let full_name = item.non_empty("namespace").map(|namespace| format!("{namespace}__{name}"));
        arguments.push_call(full_name.as_deref().or(Some(name)), item.non_empty("call_id"), out);
    }

    /// Decodes a message: text of the model, a prompt, or machine text.
    fn decode_message(&mut self, item: Value<'_>, out: &mut Stream) -> RecordOutcome {
        if item.text("role") == Some("user") {
            return self.decode_user_item(&UserInput::from_content(item.field("content")), out);
        }
        render::append_field(item, "content", &mut self.text);
        let text = std::mem::take(&mut self.text);
        let outcome = match item.text("role") {
            Some("assistant") => self.push_reply(&text, RecordedForm::Item, out),
            role => {
                let role = role.unwrap_or("message");
                if !matches!(role, "developer" | "system" | "message") {
                    out.count_unknown("record", &format!("message {role}"));
                }
                self.push_notification(role, &text, None, out)
            }
        };
        self.text = text;
        outcome
    }

    /// Decodes a message in the user's role: machine text, and the words that the user typed.
    fn decode_user_item(&mut self, input: &UserInput, out: &mut Stream) -> RecordOutcome {
        for (subtype, text) in &input.machine {
            match *subtype {
                machine::USER_SHELL_COMMAND => {
                    self.decode_shell_input(text, out);
                }
                subtype => {
                    if subtype == "environment_context" {
                        out.set_cwd(user_text::working_folder(text));
                    }
                    self.push_notification(subtype, text, None, out);
                }
            }
        }
        if input.is_machine_only() {
            return RecordOutcome::Events.merged_if_empty(out);
        }
        if self.is_warning(&input.typed) {
            return self.push_notification("warning", &input.typed, None, out);
        }
        let outcome = self.push_prompt(&input.typed, RecordedForm::Item, out);
        if input.machine.is_empty() { outcome } else { RecordOutcome::Events }
    }

    /// Decodes a command that the user ran: a prompt as typed, and a notification with its output.
    fn decode_shell_input(&mut self, text: &str, out: &mut Stream) -> RecordOutcome {
        let Some(command) = text_between(text, "<command>", "</command>") else {
            return self.push_notification("user_shell_command", text, None, out);
        };
        let outcome = self.push_prompt(&format!("!{command}"), RecordedForm::Item, out);
        match text_between(text, "<result>", "</result>") {
            Some(result) => self.push_notification("bash_output", result, None, out),
            None => outcome,
        }
    }
}
