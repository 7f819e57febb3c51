//! Reads a span of GitHub Copilot in Visual Studio: its attributes, times and counts, the JSON in
//! its strings, and the notification it may become (docs/formats.md#visual-studio-copilot).

use schemas::{EventType, Usage};
use simd_json::prelude::*;

use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded, string_value};
use crate::text::render;

/// Attributes that no notification shows: they repeat other spans or mean nothing to a reader.
const HIDDEN_ATTRIBUTES: &[&str] = &[
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.operation.name",
    "gen_ai.system_instructions",
    "gen_ai.tool.definitions",
    "gen_ai.tool.description",
    "virtual_parent.genai",
];

/// A span, or any other object that has attributes.
pub(super) struct TraceSpan<'a> {
    span: Value<'a>,
    attributes: Vec<Value<'a>>,
    /// Time of the start in microseconds.
    pub(super) start: Option<i64>,
    /// Time of the end in microseconds.
    pub(super) end: Option<i64>,
}

impl<'a> TraceSpan<'a> {
    /// Wraps an object that may have attributes and times.
    pub(super) fn new(span: Value<'a>) -> Self {
        Self {
            span,
            attributes: span.items("attributes"),
            start: read_time(span, "startTimeUnixNano"),
            end: read_time(span, "endTimeUnixNano"),
        }
    }

    /// Returns the value of an attribute: `{"stringValue": "x"}` is x.
    pub(super) fn attribute_value(&self, key: &str) -> Option<Value<'a>> {
        inner_value(self.find_attribute(key)?)
    }

    fn find_attribute(&self, key: &str) -> Option<Value<'a>> {
        self.attributes.iter().find(|attribute| attribute.text("key") == Some(key)).copied()
    }

    /// Returns an attribute that is a non-empty text.
    pub(super) fn attribute_text(&self, key: &str) -> Option<&'a str> {
        self.attribute_value(key).and_then(string_value).filter(|text| !text.is_empty())
    }

    /// Returns an attribute that is a whole number, which the protocol may write as a string.
    fn attribute_int(&self, key: &str) -> Option<i64> {
        let number = self.find_attribute(key)?.object("value")?.int("intValue");
        number.or_else(|| self.attribute_text(key)?.parse().ok())
    }

    /// Returns the operation: `chat`, `execute_tool` or `invoke_agent`.
    pub(super) fn operation(&self) -> &'a str {
        if let Some(operation) = self.attribute_text("gen_ai.operation.name") {
            return operation;
        }
        let name = self.span.text("name").and_then(|name| name.split(' ').next());
        name.unwrap_or("unnamed")
    }

    /// Returns whether the operation failed, by the status of the span or by its attributes.
    pub(super) fn has_failed(&self) -> bool {
        let has_error_status = self.span.object("status").is_some_and(|status| {
            status.int("code") == Some(2) || status.text("code") == Some("STATUS_CODE_ERROR")
        });
        has_error_status || self.attribute_text("error.type").is_some()
    }

    /// Returns the error message of a failed span.
    pub(super) fn error_message(&self) -> &'a str {
        self.span.object("status").and_then(|status| status.text("message")).unwrap_or("")
    }

    /// Returns the time from start to end in milliseconds.
    pub(super) fn duration_ms(&self) -> Option<i64> {
        let elapsed = self.end?.checked_sub(self.start?)?;
        (elapsed >= 0).then_some(elapsed / 1000)
    }

    /// Reads token counts. The log's input includes tokens read from and written to the cache.
    pub(super) fn read_usage(&self) -> Usage {
        let input = self.attribute_int("gen_ai.usage.input_tokens");
        let cache_read = self.attribute_int("gen_ai.usage.cache_read.input_tokens");
        let cache_write = self.attribute_int("gen_ai.usage.cache_creation.input_tokens");
        let reasoning = self
            .attribute_int("gen_ai.usage.reasoning.output_tokens")
            .or_else(|| self.attribute_int("gen_ai.usage.reasoning_tokens"));
        let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
        Usage {
            input: input.map(|input| input.saturating_sub(cached).max(0)),
            output: self.attribute_int("gen_ai.usage.output_tokens"),
            cache_read,
            cache_write,
            reasoning,
            ..Usage::default()
        }
    }
}

/// Reads a time in microseconds. The log has nanoseconds, as a string or as a number.
fn read_time(span: Value<'_>, key: &str) -> Option<i64> {
    let text = span.text(key).and_then(|text| text.parse::<i64>().ok());
    let nanos = text.or_else(|| span.field(key)?.as_i64())?;
    let micros = nanos / 1000;
    (micros > 0).then_some(micros)
}

/// Returns the value inside an attribute.
fn inner_value(attribute: Value<'_>) -> Option<Value<'_>> {
    let value = attribute.object("value")?.as_object()?;
    let (_, inner) = value.iter().next()?;
    Some(inner)
}

/// Pushes a notification with the span's attributes as its text.
pub(super) fn push_notification(span: &TraceSpan<'_>, text: &mut String, out: &mut Stream) {
    text.clear();
    for attribute in &span.attributes {
        let key = attribute.text("key").unwrap_or("");
        if HIDDEN_ATTRIBUTES.contains(&key) {
            continue;
        }
        let Some(value) = inner_value(*attribute) else { continue };
        text.push_str(key);
        text.push_str(": ");
        render::append_value(value, text);
        text.push('\n');
    }
    text.push_str(span.error_message());
    render::truncate_notification(text);
    let decoded = DecodedEvent {
        subtype: Some(span.operation()),
        text: text.trim_end(),
        is_error: span.has_failed().then_some(true),
        duration_ms: span.duration_ms(),
        ..DecodedEvent::default()
    };
    out.push(EventType::Notification, decoded);
}

/// Passes each message of an attribute, which is a list in a string, to a callback.
pub(super) fn for_each_message(json: &str, parser: &mut Parser, mut found: impl FnMut(Value<'_>)) {
    decode_embedded(&format!("{{\"messages\":{json}}}"), parser, |list| {
        for message in list.items("messages") {
            found(message);
        }
    });
}

/// Appends the text of a message, or of a part of one.
pub(super) fn append_text(value: Value<'_>, text: &mut String) {
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

/// Appends a result without its wrapping: `{"Value": "x"}` is x.
pub(super) fn append_unwrapped(json: &str, parser: &mut Parser, text: &mut String) {
    let mut is_wrapped = false;
    decode_embedded(json, parser, |value| {
        let has_one_field = value.as_object().is_some_and(|object| object.len() == 1);
        if has_one_field && let Some(inner) = value.text("Value") {
            text.push_str(inner);
            is_wrapped = true;
        }
    });
    if !is_wrapped {
        text.push_str(json);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, test: impl Fn(TraceSpan<'_>)) {
        let mut seen = false;
        decode_embedded(json, &mut Parser::default(), |value| {
            test(TraceSpan::new(value));
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
            assert!(span.has_failed());
            let usage = span.read_usage();
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
            append_unwrapped(json, &mut Parser::default(), &mut text);
            text
        };
        assert_eq!(result(r#"{"Value":"ok"}"#), "ok");
        assert_eq!(result(r#"{"Value":"ok","Code":1}"#), r#"{"Value":"ok","Code":1}"#);
        assert_eq!(result("plain"), "plain");
    }
}
