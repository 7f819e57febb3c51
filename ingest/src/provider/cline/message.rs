//! Decodes one message of a Cline session: Anthropic's blocks with Cline's own ids and times, and
//! with the tokens of the request in `metrics` (docs/formats.md#cline).

use schemas::{Confidence, EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::Outcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::stream::{Draft, RecordAt, Stream};
use crate::text::json::{Fields, Parser, Value, embedded};
use crate::text::render;

/// Names of elements that Cline puts into a prompt.
const NOTICES: &[&str] = &["mode_notice", "environment_notice"];

/// Decoder of the messages of a session, which must be passed in order.
#[derive(Default)]
pub(super) struct Decoder {
    text: String,
    inner: Parser,
}

impl Decoder {
    pub(super) fn message(
        &mut self,
        message: Value<'_>,
        at: RecordAt,
        out: &mut Stream,
    ) -> Outcome {
        let time = chat::millis(Some(message), "ts");
        let identity = message.non_empty("id").map(|id| xxh3_64(id.as_bytes()) | 1);
        out.begin_record(at, identity, time);
        let said = message.text("content");
        let blocks = message.items("content");
        match message.text("role") {
            Some("user") => self.user(message, said, &blocks, out),
            Some("assistant") => self.assistant(message, said, &blocks, out),
            role => {
                out.drift("record", role.unwrap_or("untyped"));
                self.text.clear();
                render::fields(message, &["role", "id", "ts"], &mut self.text);
                self.notify(role.unwrap_or("untyped"), out);
            }
        }
        Outcome::Events
    }

    fn user(
        &mut self,
        message: Value<'_>,
        said: Option<&str>,
        blocks: &[Value<'_>],
        out: &mut Stream,
    ) {
        // The summary of a compaction, and other text that the client wrote.
        let kind = message.object("metadata").and_then(|metadata| {
            let kind = metadata.non_empty("kind").unwrap_or("system");
            let by_system = metadata.text("displayRole") == Some("system");
            (by_system || kind.starts_with("compaction")).then_some(kind)
        });
        if let Some(kind) = kind {
            self.text.clear();
            message.field("content").inspect(|words| render::content(*words, &mut self.text));
            return self.notify(kind, out);
        }
        let mut words = String::new();
        if let Some(said) = said {
            typed(said, &mut words, out);
        }
        for block in blocks {
            match block.text("type") {
                Some("text") => typed(block.text("text").unwrap_or(""), &mut words, out),
                Some("image") => render::add_line(&image(*block), &mut words),
                _ => {}
            }
        }
        for file in blocks.iter().filter(|block| block.text("type") == Some("file")) {
            let path = file.text("path").unwrap_or("file");
            let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
            if !words.contains(name) {
                render::add_line(&format!("[{path}]"), &mut words);
            }
        }
        if !words.is_empty() {
            out.prompt(&words);
        }
        for block in blocks {
            match block.text("type") {
                Some("tool_result") => self.result(*block, out),
                Some("text" | "image") => {}
                Some("file") => {
                    let path = block.text("path").unwrap_or("");
                    let content = block.text("content").unwrap_or("");
                    self.text = format!("{path}\n{content}");
                    self.notify("attached_file", out);
                }
                kind => self.side_block(kind, *block, out),
            }
        }
    }

    fn assistant(
        &mut self,
        message: Value<'_>,
        said: Option<&str>,
        blocks: &[Value<'_>],
        out: &mut Stream,
    ) {
        out.set_model(message.object("modelInfo").and_then(|model| model.text("id")));
        out.begin_step();
        let write = |text: &str, out: &mut Stream| {
            if !text.is_empty() {
                out.push(EventType::Message, Draft { text, ..Draft::default() });
            }
        };
        if let Some(said) = said {
            write(said, out);
        }
        for block in blocks {
            match block.text("type") {
                Some("text") => write(block.text("text").unwrap_or(""), out),
                Some("thinking") => {
                    let text = block.text("thinking").unwrap_or("");
                    out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
                }
                Some("redacted_thinking") => {
                    let bytes = block.text("data").map_or(0, str::len);
                    let text = format!("[encrypted reasoning, {bytes} bytes]");
                    out.push(EventType::Reasoning, Draft { text: &text, ..Draft::default() });
                }
                Some("tool_use") => {
                    let mut arguments = Arguments::default();
                    block.field("input").inspect(|input| arguments.read(*input));
                    let tool_call_id = block.non_empty("id");
                    let tool_name = block.text("name");
                    let draft = Draft { tool_name, tool_call_id, ..arguments.draft() };
                    out.push(EventType::ToolCall, draft);
                }
                kind => self.side_block(kind, *block, out),
            }
        }
        match message.object("metrics").map(usage).filter(|usage| usage.total() > 0) {
            Some(usage) => {
                let request_id = message.non_empty("id");
                let draft = Draft { usage, request_id, ..Draft::default() };
                out.push(EventType::TokenUsage, draft);
            }
            None => out.set_confidence(Confidence::Partial),
        }
    }

    /// Decodes the answer of a tool. Some tools do several things at once and report the success of
    /// each. Others report it in JSON inside a string.
    fn result(&mut self, block: Value<'_>, out: &mut Stream) {
        let Self { text, inner } = self;
        text.clear();
        let is_failed = |part: Value<'_>| part.flag("success") == Some(false);
        let mut failed = block.items("content").into_iter().any(is_failed);
        let is_json = block.text("content").is_some_and(|json| {
            embedded(json, inner, |part| {
                render::value(part, text);
                failed = is_failed(part);
            })
        });
        if !is_json {
            block.field("content").inspect(|content| render::content(*content, text));
        }
        let draft = Draft {
            text: &self.text,
            tool_name: block.text("name"),
            tool_call_id: block.non_empty("tool_use_id"),
            is_error: Some(failed || block.flag("is_error") == Some(true)),
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }

    fn side_block(&mut self, kind: Option<&str>, block: Value<'_>, out: &mut Stream) {
        let kind = kind.unwrap_or("untyped");
        if kind != "media" {
            out.drift("block", kind);
        }
        self.text.clear();
        render::fields(block, &["type"], &mut self.text);
        self.notify(kind, out);
    }

    fn notify(&mut self, subtype: &str, out: &mut Stream) {
        render::cut(&mut self.text);
        let draft = Draft { subtype: Some(subtype), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}

/// Appends the text that the user typed to `words`. Elements that Cline inserted become
/// notifications.
fn typed(text: &str, words: &mut String, out: &mut Stream) {
    let notify = |subtype: &str, text: &str, out: &mut Stream| {
        let draft = Draft { subtype: Some(subtype), text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    };
    if text.trim_start().starts_with("<SYSTEM_NOTICE>") {
        return notify("system_notice", text, out);
    }
    let mut rest = text.trim().to_owned();
    for tag in NOTICES.iter().copied() {
        while let Some(element) = Element::find(&rest, tag) {
            notify(tag, element.inner, out);
            rest = format!("{}{}", element.before, element.after).trim().to_owned();
        }
    }
    let plain = match (Element::find(&rest, "user_input"), Element::find(&rest, "user_command")) {
        (Some(input), _) => input.inner.to_owned(),
        (None, Some(command)) => {
            let slash =
                command.tag.split("slash=\"").nth(1).and_then(|name| name.split('"').next());
            format!("/{} {}", slash.unwrap_or(""), command.inner).trim_end().to_owned()
        }
        (None, None) => rest.clone(),
    };
    if !plain.is_empty() {
        render::add_line(&plain, words);
    }
}

/// An XML-like element inside a text.
struct Element<'a> {
    before: &'a str,
    /// The opening tag without its `<` and name, up to its end.
    tag: &'a str,
    inner: &'a str,
    after: &'a str,
}

impl<'a> Element<'a> {
    fn find(text: &'a str, name: &str) -> Option<Self> {
        let (before, rest) = text.split_once(&format!("<{name}"))?;
        let (tag, rest) = rest.split_once('>')?;
        let (inner, after) = rest.split_once(&format!("</{name}>"))?;
        Some(Self { before, tag, inner: inner.trim(), after })
    }
}

/// Describes a picture as `[image/png 48213 bytes]`.
fn image(block: Value<'_>) -> String {
    let data = block.text("data").unwrap_or("");
    let padding = data.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    format!("[{} {bytes} bytes]", block.text("mediaType").unwrap_or("image"))
}

/// Parses token counts. The recorded input includes tokens read from and written to a cache.
fn usage(metrics: Value<'_>) -> Usage {
    let (read, write) = (metrics.int("cacheReadTokens"), metrics.int("cacheWriteTokens"));
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    Usage {
        input: metrics.int("inputTokens").map(|input| input.saturating_sub(cached).max(0)),
        output: metrics.int("outputTokens"),
        cache_read: read,
        cache_write: write,
        cache_write_1h: None,
        reasoning: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_out_of_a_text() {
        let text = "a <mode_notice>now in act mode</mode_notice> b";
        let element = Element::find(text, "mode_notice").expect("there");
        assert_eq!((element.before, element.inner, element.after), ("a ", "now in act mode", " b"));
        assert!(Element::find("<user_input> without an end", "user_input").is_none());
        let command =
            Element::find("<user_command slash=\"team\">go</user_command>", "user_command");
        assert_eq!(command.map(|command| command.tag), Some(" slash=\"team\""));
    }
}
