//! Reads a span of GitHub Copilot in Visual Studio: its attributes, times and counts, the JSON in
//! its strings, and the notification it may become (docs/formats.md#visual-studio-copilot).

use schemas::{EventType, Usage};
use simd_json::prelude::*;

use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Parser, Value, embedded};
use crate::text::render;

/// Attributes that repeat other spans or mean nothing to a reader.
const SILENT: &[&str] = &[
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.operation.name",
    "gen_ai.system_instructions",
    "gen_ai.tool.definitions",
    "gen_ai.tool.description",
    "virtual_parent.genai",
];

/// A span, or any other object that has attributes.
pub(super) struct Span<'a> {
    span: Value<'a>,
    attributes: Vec<Value<'a>>,
    /// Start and end, in microseconds.
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

impl<'a> Span<'a> {
    pub(super) fn of(span: Value<'a>) -> Self {
        let time = |key: &str| {
            let nanos = span.text(key).and_then(|text| text.parse().ok());
            let nanos = nanos.or_else(|| span.field(key)?.as_i64());
            nanos.map(|nanos: i64| nanos / 1000).filter(|time| *time > 0)
        };
        let (start, end) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
        Self { span, attributes: span.items("attributes"), start, end }
    }

    /// Returns the value of an attribute: `{"stringValue": "x"}` is x.
    pub(super) fn value(&self, key: &str) -> Option<Value<'a>> {
        plain(*self.attributes.iter().find(|attribute| attribute.text("key") == Some(key))?)
    }

    /// Returns an attribute that is a non-empty text.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.value(key).and_then(crate::text::json::string).filter(|text| !text.is_empty())
    }

    /// Returns an attribute that is a whole number, which the protocol may write as a string.
    fn int(&self, key: &str) -> Option<i64> {
        let attribute = self.attributes.iter().find(|attribute| attribute.text("key") == Some(key));
        let number = attribute?.object("value")?.int("intValue");
        number.or_else(|| self.text(key)?.parse().ok())
    }

    /// Returns the operation: `chat`, `execute_tool` or `invoke_agent`.
    pub(super) fn operation(&self) -> &'a str {
        let name = || self.span.text("name").and_then(|name| name.split(' ').next());
        self.text("gen_ai.operation.name").or_else(name).unwrap_or("unnamed")
    }

    pub(super) fn failed(&self) -> bool {
        let status = self.span.object("status");
        let error = |status: Value<'a>| {
            status.int("code") == Some(2) || status.text("code") == Some("STATUS_CODE_ERROR")
        };
        status.is_some_and(error) || self.text("error.type").is_some()
    }

    /// Returns the error message of a failed span.
    pub(super) fn message(&self) -> &'a str {
        self.span.object("status").and_then(|status| status.text("message")).unwrap_or("")
    }

    pub(super) fn duration_ms(&self) -> Option<i64> {
        let elapsed = self.end?.checked_sub(self.start?)?;
        (elapsed >= 0).then_some(elapsed / 1000)
    }

    /// Reads token counts. The log's input includes tokens read from and written to the cache.
    pub(super) fn usage(&self) -> Usage {
        let count = |name: &str| self.int(&format!("gen_ai.usage.{name}"));
        let cache_read = count("cache_read.input_tokens");
        let cache_write = count("cache_creation.input_tokens");
        let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
        Usage {
            input: count("input_tokens").map(|input| input.saturating_sub(cached).max(0)),
            output: count("output_tokens"),
            cache_read,
            cache_write,
            reasoning: count("reasoning.output_tokens").or_else(|| count("reasoning_tokens")),
            ..Usage::default()
        }
    }
}

/// Returns the value inside an attribute.
fn plain(attribute: Value<'_>) -> Option<Value<'_>> {
    let value = attribute.object("value")?.as_object()?;
    let (_, inner) = value.iter().next()?;
    Some(inner)
}

/// Appends a notification with the span's attributes as its text.
pub(super) fn notice(span: &Span<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    for attribute in &span.attributes {
        let key = attribute.text("key").unwrap_or("");
        let Some(value) = plain(*attribute).filter(|_| !SILENT.contains(&key)) else { continue };
        text.push_str(key);
        text.push_str(": ");
        render::value(value, text);
        text.push('\n');
    }
    text.push_str(span.message());
    render::cut(text);
    let draft = Draft {
        subtype: Some(span.operation()),
        text: text.trim_end(),
        is_error: span.failed().then_some(true),
        duration_ms: span.duration_ms(),
        ..Draft::default()
    };
    out.push(EventType::Notification, draft);
}

/// Passes each message of an attribute, which is a list in a string, to a callback.
pub(super) fn messages(json: &str, parser: &mut Parser, mut found: impl FnMut(Value<'_>)) {
    embedded(&format!("{{\"messages\":{json}}}"), parser, |list| {
        list.items("messages").into_iter().for_each(&mut found);
    });
}

/// Appends the text of a message, or of a part of one.
pub(super) fn said(value: Value<'_>, text: &mut String) {
    if let Some(content) = value.text("content") {
        return text.push_str(content);
    }
    for part in value.items("parts") {
        if part.text("type") == Some("text") {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(part.text("content").unwrap_or(""));
        }
    }
}

/// Appends a result: `{"Value": "x"}` is x.
pub(super) fn unwrapped(json: &str, parser: &mut Parser, text: &mut String) {
    let mut found = false;
    embedded(json, parser, |value| {
        let alone = value.as_object().is_some_and(|object| object.len() == 1);
        if let Some(inner) = value.text("Value").filter(|_| alone) {
            text.push_str(inner);
            found = true;
        }
    });
    if !found {
        text.push_str(json);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, test: impl Fn(Span<'_>)) {
        let mut seen = false;
        embedded(json, &mut Parser::default(), |value| {
            test(Span::of(value));
            seen = true;
        });
        assert!(seen, "{json}");
    }

    #[test]
    fn attributes_times_and_counts() {
        let json = r#"{"name":"chat m","startTimeUnixNano":"1791000000000000000","endTimeUnixNano":"1791000002500000000","status":{"code":2},"attributes":[
            {"key":"gen_ai.usage.input_tokens","value":{"intValue":"100"}},
            {"key":"gen_ai.usage.cache_read.input_tokens","value":{"intValue":80}},
            {"key":"gen_ai.usage.output_tokens","value":{"stringValue":"7"}}]}"#;
        check(&json.replace('\n', ""), |span| {
            assert_eq!(span.operation(), "chat");
            assert_eq!(span.start, Some(1_791_000_000_000_000));
            assert_eq!(span.duration_ms(), Some(2500));
            assert!(span.failed());
            let usage = span.usage();
            assert_eq!(
                (usage.input, usage.cache_read, usage.output),
                (Some(20), Some(80), Some(7))
            );
        });
    }

    #[test]
    fn results_are_unwrapped() {
        let result = |json: &str| {
            let mut text = String::new();
            unwrapped(json, &mut Parser::default(), &mut text);
            text
        };
        assert_eq!(result(r#"{"Value":"ok"}"#), "ok");
        assert_eq!(result(r#"{"Value":"ok","Code":1}"#), r#"{"Value":"ok","Code":1}"#);
        assert_eq!(result("plain"), "plain");
    }
}
