//! Decodes the messages of Forge (docs/formats.md#forge).

use schemas::{Confidence, EventType, Usage};

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::ContentIds;
use crate::provider::shared::{chat, drift};
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

/// The tags around the folder in the message of the system.
const FOLDER_TAGS: [&str; 2] = ["<current_working_directory>", "</current_working_directory>"];

/// Decodes the messages of one conversation in order.
#[derive(Default)]
pub(super) struct ForgeDecoder {
    /// The start of the conversation, until the first message without a time takes it as its own.
    pub(super) start: Option<i64>,
    ids: ContentIds,
    text: String,
    inner: Parser,
}

impl ForgeDecoder {
    /// Decodes one message. Older versions have no `message` around it.
    pub(super) fn decode_record(
        &mut self,
        record: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let message = record.object("message").unwrap_or(record);
        let text = message.object("text");
        let time = text.and_then(|text| parse_micros(text.text("timestamp")));
        out.begin_message(Some(&self.ids.next(raw, out)));
        out.begin_record_by_content(at, raw, time.or(self.start));
        self.start = None;
        self.text.clear();
        match (text, message.object("tool"), message.object("image")) {
            (Some(text), ..) => self.decode_text(text, record.object("usage"), out),
            (None, Some(result), _) => self.push_result(result, out),
            (None, None, Some(image)) => {
                chat::append_part(image, &mut self.text);
                out.push_notification("image", &self.text);
            }
            (None, None, None) => drift::push_unknown_block("message", record, out),
        }
        RecordOutcome::Events
    }

    fn decode_text(&mut self, message: Value<'_>, usage: Option<Value<'_>>, out: &mut Stream) {
        let content = message.text("content").unwrap_or("");
        let role = message.text("role").unwrap_or("untyped");
        match role {
            "User" => self.push_user_text(message, content, out),
            "Assistant" => {
                out.set_model(message.text("model"));
                out.begin_step();
                for detail in message.items("reasoning_details") {
                    push_reasoning(detail, out);
                }
                if !content.is_empty() {
                    out.push_text(EventType::Message, content);
                }
                for call in message.items("tool_calls") {
                    let arguments = Arguments::of_input(call.field("arguments"), &mut self.inner);
                    arguments.push_call(call.text("name"), call.non_empty("call_id"), out);
                }
                if let Some(usage) = usage {
                    push_usage(usage, out);
                }
            }
            role => {
                if role == "System" {
                    let [start, end] = FOLDER_TAGS;
                    let folder =
                        content.split_once(start).and_then(|(_, rest)| rest.split_once(end));
                    out.set_cwd(folder.map(|(folder, _)| folder.trim()));
                } else {
                    out.count_unknown("record", role);
                }
                self.text.push_str(content);
                out.push_shortened(&role.to_lowercase(), &self.text);
            }
        }
    }

    /// Pushes a prompt as it was typed. `content` is what the model got. Text that Forge may drop
    /// again is that of attached files.
    fn push_user_text(&mut self, message: Value<'_>, content: &str, out: &mut Stream) {
        if message.flag("droppable") == Some(true) {
            self.text.push_str(content);
            return out.push_shortened("attachments", &self.text);
        }
        let typed = message.object("raw_content");
        let typed_text = typed.and_then(|typed| typed.non_empty("Text"));
        if let Some(command) = typed.and_then(|typed| typed.object("Command")) {
            let name = command.text("name").unwrap_or("").trim_start_matches('/');
            self.text.push_str(&format!("/{name}"));
            for parameter in command.items("parameters").into_iter().filter_map(string_value) {
                self.text.push_str(&format!(" {parameter}"));
            }
            return out.push_prompt(&self.text);
        }
        out.push_prompt(typed_text.unwrap_or(content));
    }

    fn push_result(&mut self, result: Value<'_>, out: &mut Stream) {
        let output = result.object("output");
        let mut spawned = None;
        for value in output.map_or_else(Vec::new, |output| output.items("values")) {
            let agent = ["aI", "ai"].iter().find_map(|key| value.object(key));
            spawned = agent.and_then(|agent| agent.non_empty("conversation_id")).or(spawned);
            render::begin_new_line(&mut self.text);
            append_output(value, &mut self.text);
        }
        let decoded = DecodedEvent {
            text: &self.text,
            tool_name: result.non_empty("name"),
            tool_call_id: result.non_empty("call_id"),
            spawned_agent_id: spawned,
            is_error: Some(output.and_then(|output| output.flag("is_error")) == Some(true)),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Appends a value of a result: `{"text":"..."}` and the like, or `"empty"`. Of a pair the first
/// value is the one for the model.
fn append_output(value: Value<'_>, text: &mut String) {
    if let Some(plain) = ["text", "markdown"].iter().find_map(|key| value.text(key)) {
        text.push_str(plain);
    } else if let Some(agent) = ["aI", "ai"].iter().find_map(|key| value.object(key)) {
        text.push_str(agent.text("value").unwrap_or(""));
    } else if let Some(image) = value.object("image") {
        chat::append_part(image, text);
    } else if let Some(first) = value.items("pair").into_iter().next() {
        append_output(first, text);
    } else if string_value(value) != Some("empty") {
        render::append_value(value, text);
    }
}

fn push_reasoning(detail: Value<'_>, out: &mut Stream) {
    if let Some(text) = detail.non_empty("text") {
        out.push_text(EventType::Reasoning, text);
    } else if let Some(sealed) = detail.non_empty("data") {
        let text = format!("[encrypted reasoning, {} bytes]", sealed.len());
        out.push_text(EventType::Reasoning, &text);
    }
}

/// Pushes the counts of a response. The prompt includes the tokens of the cache.
fn push_usage(usage: Value<'_>, out: &mut Stream) {
    let mut is_estimated = false;
    let mut count = |key: &str| {
        let count = usage.object(key)?;
        is_estimated |= ["approx", "Approx"].iter().any(|key| count.int(key) > Some(0));
        chat::first_int(count, &["actual", "Actual", "approx", "Approx"])
    };
    let cache_read = count("cached_tokens");
    let output = count("completion_tokens");
    let prompt = count("prompt_tokens");
    let input = prompt.map(|prompt| prompt.saturating_sub(cache_read.unwrap_or(0)).max(0));
    if is_estimated {
        out.set_confidence(Confidence::Estimated);
    }
    let counts = Usage { input, output, cache_read, ..Usage::default() };
    out.push_usage(counts, usage.cost("cost"), None);
}
