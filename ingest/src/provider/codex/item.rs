//! Decodes response items: the input and the output of the model (docs/formats.md#codex).

use schemas::EventType;

use super::{Decoder, Family, output};
use crate::provider::format::Outcome;
use crate::provider::shared::arguments::Arguments;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value};
use crate::text::render;

impl Decoder {
    /// Decodes a response item, or an item of the flat generation.
    pub(super) fn item(&mut self, item: Value<'_>, out: &mut Stream) -> Outcome {
        let kind = item.text("type").unwrap_or("untyped");
        self.text.clear();
        match kind {
            "message" => return self.message(item, out),
            "reasoning" => {
                return self.reasoning(item, ["summary", "content"], Family::Item, out);
            }
            "function_call"
            | "custom_tool_call"
            | "local_shell_call"
            | "tool_search_call"
            | "web_search_call"
            | "image_generation_call" => {
                self.respond(out);
                self.call(kind, item, out);
                // A search has no output of its own.
                self.state.answered.note(item.non_empty("id"));
            }
            "function_call_output"
            | "custom_tool_call_output"
            | "tool_search_output"
            | "local_shell_call_output" => {
                self.state.in_response = false;
                let call = item.non_empty("call_id");
                self.state.answered.note(call);
                let ended = self.state.ended.take(call);
                output::result(item, &ended, &mut self.inner, &mut self.text, out);
            }
            _ => return self.unknown(kind, item, out),
        }
        self.state.after_item = false;
        Outcome::Events
    }

    /// Pushes the model's reasoning, without the parts that the client already reported. Often
    /// there is no text.
    pub(super) fn reasoning(
        &mut self,
        item: Value<'_>,
        parts: [&str; 2],
        family: Family,
        out: &mut Stream,
    ) -> Outcome {
        let (mut text, mut told) = (String::new(), family != Family::Item);
        let parts = parts.into_iter().filter_map(|key| item.given(key));
        let parts = parts.flat_map(|parts| match parts.as_array() {
            Some(list) => list.iter().collect(),
            None => vec![parts],
        });
        for part in parts {
            let mut said = String::new();
            render::block(part, &mut said);
            if self.is_twin("reasoning", &said, family) {
                told = true;
            } else {
                render::add_line(&said, &mut text);
            }
        }
        if told && text.is_empty() {
            return Outcome::Merged("twin_of_reasoning");
        }
        self.think(&text, out)
    }

    /// Pushes a piece of reasoning.
    pub(super) fn think(&mut self, text: &str, out: &mut Stream) -> Outcome {
        self.respond(out);
        self.state.after_item = false;
        out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
        Outcome::Events
    }

    fn call(&mut self, kind: &str, item: Value<'_>, out: &mut Stream) {
        let input =
            ["arguments", "input", "action", "query"].iter().find_map(|key| item.field(key));
        let mut arguments = Arguments::default();
        if let Some(input) = input {
            match crate::text::json::string(input) {
                // Arguments are JSON in a string. The input of a custom tool is mostly plain text.
                Some(json) if kind == "function_call" || json.starts_with('{') => {
                    arguments.read_json_text(json, &mut self.inner);
                }
                Some(text) => arguments.plain(text),
                None => arguments.read(input),
            }
        }
        let name = item.text("name").unwrap_or_else(|| kind.trim_end_matches("_call"));
        let full_name = item.non_empty("namespace").map(|namespace| format!("{namespace}__{name}"));
        let draft = Draft {
            tool_name: full_name.as_deref().or(Some(name)),
            tool_call_id: item.non_empty("call_id"),
            ..arguments.draft()
        };
        out.push(EventType::ToolCall, draft);
    }

    fn message(&mut self, item: Value<'_>, out: &mut Stream) -> Outcome {
        item.field("content").inspect(|content| render::content(*content, &mut self.text));
        let text = std::mem::take(&mut self.text);
        let outcome = match item.text("role") {
            Some("assistant") => self.reply(&text, Family::Item, out),
            Some("user") => match output::machine_text(&text) {
                Some("user_shell_command") => self.shell_input(&text, out),
                Some(subtype) => {
                    if subtype == "environment_context" {
                        out.set_cwd(output::folder(&text));
                    }
                    self.notify(subtype, &text, None, out)
                }
                None => self.prompt(&text, Family::Item, out),
            },
            role => self.notify(role.unwrap_or("message"), &text, None, out),
        };
        self.text = text;
        outcome
    }

    /// Decodes a command that the user ran: a prompt as typed, and a notification with its output.
    fn shell_input(&mut self, text: &str, out: &mut Stream) -> Outcome {
        let between = |open: &str, close: &str| {
            let (_, rest) = text.split_once(open)?;
            Some(rest.split_once(close)?.0.trim())
        };
        let Some(command) = between("<command>", "</command>") else {
            return self.notify("user_shell_command", text, None, out);
        };
        let outcome = self.prompt(&format!("!{command}"), Family::Item, out);
        match between("<result>", "</result>") {
            Some(result) => self.notify("bash_output", result, None, out),
            None => outcome,
        }
    }
}
