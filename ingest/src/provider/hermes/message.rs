//! One message of Hermes, in the form of the OpenAI API (FORMATS.md section 10).

use schemas::EventType;

use crate::arguments::Arguments;
use crate::json::{Fields, Parser, Value, embedded, string};
use crate::provider::{Outcome, chat};
use crate::render;
use crate::stream::{Draft, RecordAt, Stream, micros};

/// Beginnings of machine text in the user's role, in lower case.
const MACHINE: &[(&str, &str)] = &[
    ("[system: the user has invoked", "skill"),
    ("[important: the user has invoked", "skill"),
    ("[skill directory:", "skill"),
    ("[context compaction", "compact_summary"),
    ("[context summary", "compact_summary"),
    ("[important: you are running as a scheduled", "scheduled"),
    ("[important: background process", "background_process"),
    ("[system", "system"),
];

/// Decodes messages in their order.
#[derive(Default)]
pub(super) struct Decoder {
    /// When the session began: the first message's time, if it has none of its own.
    start: Option<i64>,
    text: String,
    /// Decodes JSON inside strings.
    inner: Parser,
}

/// Reads a time; where it is written without a zone, as Hermes does, it is taken as UTC.
pub(super) fn local_time(text: &str) -> Option<i64> {
    micros(Some(text)).or_else(|| micros(Some(&format!("{text}Z"))))
}

impl Decoder {
    /// The session began at `start`.
    pub fn starts(&mut self, start: Option<i64>) {
        self.start = start;
    }

    /// Decodes one message.
    pub fn message(
        &mut self,
        message: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> Outcome {
        let start = self.start.take();
        let time = message.field("timestamp").and_then(|time| match string(time) {
            Some(text) => local_time(text),
            None => chat::instant(time),
        });
        out.begin_unnamed(at, raw, time.or(start));
        self.text.clear();
        let role = message.text("role").unwrap_or("untyped");
        match role {
            "assistant" => self.reply(message, out),
            "tool" => self.result(message, out),
            "user" => {
                message.field("content").inspect(|text| chat::content(*text, &mut self.text));
                self.user(out);
            }
            "session_meta" => {
                out.set_model(message.text("model"));
                let skip = ["role", "tools", "timestamp"];
                render::fields(message, &skip, &mut self.text);
                self.notify(role, out);
            }
            "system" => {
                message.field("content").inspect(|text| chat::content(*text, &mut self.text));
                render::cut(&mut self.text);
                self.notify("system_prompt", out);
            }
            _ => {
                out.drift("record", role);
                render::fields(message, &["role", "timestamp"], &mut self.text);
                self.notify(role, out);
            }
        }
        if out.pushed() > 0 { Outcome::Events } else { Outcome::Merged("empty_message") }
    }

    fn notify(&self, subtype: &str, out: &mut Stream) {
        let draft = Draft { subtype: Some(subtype), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }

    fn user(&self, out: &mut Stream) {
        let start: String = self.text.trim_start().chars().take(64).collect();
        let start = start.to_ascii_lowercase();
        if let Some((_, subtype)) = MACHINE.iter().find(|(words, _)| start.starts_with(words)) {
            return self.notify(subtype, out);
        }
        out.prompt(&self.text);
    }

    /// One response of the model. Its reasoning stands under several names, and in older logs at
    /// the beginning of the text.
    fn reply(&mut self, message: Value<'_>, out: &mut Stream) {
        message.field("content").inspect(|text| chat::content(*text, &mut self.text));
        let (inside, said) = thought(&self.text);
        let outside =
            ["reasoning", "reasoning_content"].iter().find_map(|key| message.non_empty(key));
        let mut summary = String::new();
        if outside.is_none() && inside.is_none() {
            for item in message.items("codex_reasoning_items") {
                item.field("summary").inspect(|parts| chat::content(*parts, &mut summary));
                item.text("text").inspect(|text| summary.push_str(text));
            }
        }
        let reasoning =
            outside.or(inside).or(Some(summary.as_str())).filter(|text| !text.is_empty());
        let calls = message.items("tool_calls");
        if reasoning.is_none() && said.is_empty() && calls.is_empty() {
            return;
        }
        out.begin_step();
        if let Some(text) = reasoning {
            out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
        }
        if !said.is_empty() {
            out.push(EventType::Message, Draft { text: said, ..Draft::default() });
        }
        for call in calls {
            let function = call.object("function").unwrap_or(call);
            let mut arguments = Arguments::default();
            if let Some(input) = function.field("arguments") {
                match string(input) {
                    Some(text) => arguments.read_json_text(text, &mut self.inner),
                    None => arguments.read(input),
                }
            }
            let tool_name = function.text("name");
            let tool_call_id = call.non_empty("id").or_else(|| call.non_empty("call_id"));
            let draft = Draft { tool_name, tool_call_id, ..arguments.draft() };
            out.push(EventType::ToolCall, draft);
        }
    }

    /// What a tool answered: plain text, or JSON with the output and how the command ended.
    fn result(&mut self, message: Value<'_>, out: &mut Stream) {
        message.field("content").inspect(|text| chat::content(*text, &mut self.text));
        let mut plain = None;
        let mut exit_code = None;
        let mut failed = (message.text("finish_reason") == Some("error")).then_some(true);
        embedded(&self.text, &mut self.inner, |answer| {
            let error = answer.non_empty("error");
            exit_code = answer.int("exit_code").and_then(|code| i32::try_from(code).ok());
            failed = failed
                .or(exit_code.map(|code: i32| code != 0))
                .or(answer.flag("success").map(|success| !success))
                .or(error.map(|_| true));
            plain = answer.text("output").map(|output| match error {
                Some(error) => format!("{output}\n{error}"),
                None => output.to_owned(),
            });
        });
        let draft = Draft {
            text: plain.as_deref().unwrap_or(&self.text),
            tool_name: message.text("tool_name").or_else(|| message.text("name")),
            tool_call_id: message.non_empty("tool_call_id"),
            is_error: failed,
            exit_code,
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }
}

/// Reasoning in tags at the beginning of a text, and the text behind it.
fn thought(text: &str) -> (Option<&str>, &str) {
    let inside = text.trim_start().strip_prefix("<think>");
    match inside.and_then(|rest| rest.split_once("</think>")) {
        Some((thought, said)) => (Some(thought.trim()), said.trim_start()),
        None => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_in_tags_is_no_text() {
        assert_eq!(thought("<think>\nwhy\n</think>\n\nBecause."), (Some("why"), "Because."));
        assert_eq!(thought("<think> without an end"), (None, "<think> without an end"));
        assert_eq!(thought("plain"), (None, "plain"));
    }

    #[test]
    fn times_without_a_zone_are_utc() {
        let noon = micros(Some("2026-10-12T12:00:00Z"));
        assert_eq!(local_time("2026-10-12T12:00:00"), noon);
        assert_eq!(local_time("2026-10-12T12:00:00.000000"), noon);
        assert_eq!(local_time("2026-10-12T14:00:00+02:00"), noon);
        assert_eq!(local_time("noon"), None);
    }
}
