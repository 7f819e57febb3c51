//! Decodes one message of a Cline session: Anthropic's blocks with Cline's own ids and times, and
//! with the tokens of the request in `metrics` (docs/formats.md#cline).

use schemas::{Confidence, EventType, Usage};

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::identity::hash_id;
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded};
use crate::text::render;

/// Names of elements that Cline puts into a prompt.
const NOTICE_TAGS: &[&str] = &["mode_notice", "environment_notice"];

/// Decoder of the messages of a session, which must be passed in order.
#[derive(Default)]
pub(super) struct ClineSessionDecoder {
    text: String,
    inner: Parser,
}

impl ClineSessionDecoder {
    pub(super) fn decode_message(
        &mut self,
        message: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let time = chat::read_millis(Some(message), "ts");
        let identity = message.non_empty("id").map(hash_id);
        out.begin_record(at, identity, time);

        let content_text = message.text("content");
        let blocks = message.items("content");
        match message.text("role") {
            Some("user") => self.decode_user_message(message, content_text, &blocks, out),
            Some("assistant") => self.decode_response(message, content_text, &blocks, out),
            role => {
                out.count_unknown("record", role.unwrap_or("untyped"));
                self.text.clear();
                render::append_notification(message, &["role", "id", "ts"], &mut self.text);
                out.push_shortened(role.unwrap_or("untyped"), &self.text);
            }
        }
        RecordOutcome::Events
    }

    /// Decodes a user's message: the prompt, then the results of tools and attached files.
    fn decode_user_message(
        &mut self,
        message: Value<'_>,
        content_text: Option<&str>,
        blocks: &[Value<'_>],
        out: &mut Stream,
    ) {
        if let Some(kind) = client_text_kind(message) {
            self.text.clear();
            render::append_field(message, "content", &mut self.text);
            return out.push_shortened(kind, &self.text);
        }

        let prompt = collect_prompt(content_text, blocks, out);
        if !prompt.is_empty() {
            out.push_prompt(&prompt);
        }

        for block in blocks {
            match block.text("type") {
                Some("tool_result") => self.decode_tool_result(*block, out),
                Some("text" | "image") => {}
                Some("file") => {
                    let path = block.text("path").unwrap_or("");
                    let content = block.text("content").unwrap_or("");
                    self.text = format!("{path}\n{content}");
                    out.push_shortened("attached_file", &self.text);
                }
                kind => self.decode_side_block(kind, *block, out),
            }
        }
    }

    /// Decodes a response of the model, with its token usage.
    fn decode_response(
        &mut self,
        message: Value<'_>,
        content_text: Option<&str>,
        blocks: &[Value<'_>],
        out: &mut Stream,
    ) {
        out.set_model(message.object("modelInfo").and_then(|model| model.text("id")));
        out.begin_step();

        push_message(content_text.unwrap_or(""), out);
        for block in blocks {
            match block.text("type") {
                Some("text") => push_message(block.text("text").unwrap_or(""), out),
                Some("thinking") => {
                    let text = block.text("thinking").unwrap_or("");
                    out.push_text(EventType::Reasoning, text);
                }
                Some("redacted_thinking") => {
                    let bytes = block.text("data").map_or(0, str::len);
                    let text = format!("[encrypted reasoning, {bytes} bytes]");
                    out.push_text(EventType::Reasoning, &text);
                }
                Some("tool_use") => {
                    let arguments = Arguments::of_value(block.field("input"));
                    let tool_call_id = block.non_empty("id");
                    let tool_name = block.text("name");
                    arguments.push_call(tool_name, tool_call_id, out);
                }
                kind => self.decode_side_block(kind, *block, out),
            }
        }

        let metrics = message.object("metrics");
        let usage = metrics.map(read_usage).unwrap_or_default();
        let cost = metrics.and_then(|metrics| metrics.cost("cost"));
        if !out.push_usage(usage, cost, message.non_empty("id")) {
            out.set_confidence(Confidence::Partial);
        }
    }

    /// Decodes the answer of a tool. Some tools do several things at once and report the success of
    /// each. Others report it in JSON inside a string.
    fn decode_tool_result(&mut self, block: Value<'_>, out: &mut Stream) {
        let Self { text, inner } = self;
        text.clear();
        let mut has_failed = block.items("content").into_iter().any(is_failed_part);
        let is_json = block.text("content").is_some_and(|json| {
            decode_embedded(json, inner, |part| {
                render::append_value(part, text);
                has_failed = is_failed_part(part);
            })
        });
        if !is_json && let Some(content) = block.field("content") {
            render::append_content(content, text);
        }

        let decoded = DecodedEvent {
            text: &self.text,
            tool_name: block.text("name"),
            tool_call_id: block.non_empty("tool_use_id"),
            is_error: Some(has_failed || block.flag("is_error") == Some(true)),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }

    /// Decodes a block without a rule of its own.
    fn decode_side_block(&mut self, kind: Option<&str>, block: Value<'_>, out: &mut Stream) {
        let kind = kind.unwrap_or("untyped");
        if kind != "media" {
            out.count_unknown("block", kind);
        }
        self.text.clear();
        render::append_notification(block, &["type"], &mut self.text);
        out.push_shortened(kind, &self.text);
    }
}

/// Pushes text of the model, unless it is empty.
fn push_message(text: &str, out: &mut Stream) {
    if !text.is_empty() {
        out.push_text(EventType::Message, text);
    }
}

/// Returns whether a part of a tool's answer reports a failure.
fn is_failed_part(part: Value<'_>) -> bool {
    part.flag("success") == Some(false)
}

/// Returns the kind of a message in the user's role that the client wrote, such as the summary of a
/// compaction. Returns `None` for a message of the user.
fn client_text_kind(message: Value<'_>) -> Option<&str> {
    let metadata = message.object("metadata")?;
    let kind = metadata.non_empty("kind").unwrap_or("system");
    let is_by_system = metadata.text("displayRole") == Some("system");
    (is_by_system || kind.starts_with("compaction")).then_some(kind)
}

/// Returns the prompt in a user's message: the typed text, the images, and the files that the text
/// does not name. Elements that Cline inserted become notifications.
fn collect_prompt(content_text: Option<&str>, blocks: &[Value<'_>], out: &mut Stream) -> String {
    let mut prompt = String::new();
    if let Some(content_text) = content_text {
        append_typed_text(content_text, &mut prompt, out);
    }
    for block in blocks {
        match block.text("type") {
            Some("text") => append_typed_text(block.text("text").unwrap_or(""), &mut prompt, out),
            Some("image") => {
                render::begin_new_line(&mut prompt);
                let kind = block.text("mediaType").or(Some("image"));
                render::append_binary_summary(kind, block.text("data"), &mut prompt);
            }
            _ => {}
        }
    }
    for file in blocks.iter().filter(|block| block.text("type") == Some("file")) {
        let path = file.text("path").unwrap_or("file");
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        if !prompt.contains(name) {
            render::append_line(&format!("[{path}]"), &mut prompt);
        }
    }
    prompt
}

/// Appends the text that the user typed to `prompt`. Elements that Cline inserted become
/// notifications.
fn append_typed_text(text: &str, prompt: &mut String, out: &mut Stream) {
    if text.trim_start().starts_with("<SYSTEM_NOTICE>") {
        return out.push_notification("system_notice", text);
    }

    let mut rest = text.trim().to_owned();
    for tag in NOTICE_TAGS.iter().copied() {
        while let Some(element) = TextElement::find(&rest, tag) {
            out.push_notification(tag, element.inner);
            rest = format!("{}{}", element.before, element.after).trim().to_owned();
        }
    }

    let plain = if let Some(input) = TextElement::find(&rest, "user_input") {
        input.inner.to_owned()
    } else if let Some(command) = TextElement::find(&rest, "user_command") {
        let slash = command.tag.split("slash=\"").nth(1).and_then(|name| name.split('"').next());
        format!("/{} {}", slash.unwrap_or(""), command.inner).trim_end().to_owned()
    } else {
        rest.clone()
    };
    if !plain.is_empty() {
        render::append_line(&plain, prompt);
    }
}

/// An XML-like element inside a text.
struct TextElement<'a> {
    before: &'a str,
    /// The opening tag without its `<` and name, up to its end.
    tag: &'a str,
    inner: &'a str,
    after: &'a str,
}

impl<'a> TextElement<'a> {
    /// Finds the first element of this name.
    fn find(text: &'a str, name: &str) -> Option<Self> {
        let (before, rest) = text.split_once(&format!("<{name}"))?;
        let (tag, rest) = rest.split_once('>')?;
        let (inner, after) = rest.split_once(&format!("</{name}>"))?;
        Some(Self { before, tag, inner: inner.trim(), after })
    }
}

/// Parses token counts. The recorded input includes tokens read from and written to a cache.
fn read_usage(metrics: Value<'_>) -> Usage {
    let cached = [metrics.int("cacheReadTokens"), metrics.int("cacheWriteTokens")];
    let output = metrics.int("outputTokens");
    Usage { output, ..chat::without_cache(metrics.int("inputTokens"), cached) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_out_of_a_text() {
        let text = "a <mode_notice>now in act mode</mode_notice> b";
        let element = TextElement::find(text, "mode_notice").expect("there");
        assert_eq!((element.before, element.inner, element.after), ("a ", "now in act mode", " b"));
        assert!(TextElement::find("<user_input> without an end", "user_input").is_none());
        let command =
            TextElement::find("<user_command slash=\"team\">go</user_command>", "user_command");
        assert_eq!(command.map(|command| command.tag), Some(" slash=\"team\""));
    }
}
