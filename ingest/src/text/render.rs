//! Renders tool inputs, tool results and notifications as readable text.

use std::borrow::Cow;
use std::cell::RefCell;

use simd_json::prelude::*;

use crate::text::json::{JsonFields, Value, string_value};

/// Maximum length in bytes of the text of a notification. The rest is in the source, and the text
/// says so.
const MAX_NOTIFICATION_BYTES: usize = 16 << 10;

/// Appends a value: strings as they are, objects as `key: value` lines, array elements as `- `
/// lines. Deeper levels are indented.
pub(crate) fn append_value(value: Value<'_>, out: &mut String) {
    append_nested(value, 0, out);
}

/// Appends a value whose fields or elements are at a depth.
fn append_nested(value: Value<'_>, depth: usize, out: &mut String) {
    if let Some(text) = string_value(value) {
        out.push_str(text);
    } else if let Some(object) = value.as_object() {
        for (key, field) in &object {
            begin_line(depth, out);
            out.push_str(key);
            out.push_str(": ");
            append_nested(field, depth + 1, out);
        }
    } else if let Some(array) = value.as_array() {
        for element in &array {
            begin_line(depth, out);
            out.push_str("- ");
            append_nested(element, depth + 1, out);
        }
    } else {
        out.push_str(&value.encode());
    }
}

/// Begins a line at a depth, unless a list element has already begun one.
fn begin_line(depth: usize, out: &mut String) {
    if out.ends_with("- ") {
        return;
    }
    if out.ends_with(": ") {
        out.pop();
    }
    begin_new_line(out);
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Begins a new line, unless the text is empty or its last line is.
pub(crate) fn begin_new_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Appends `line` on a line of its own.
pub(crate) fn append_line(line: &str, out: &mut String) {
    begin_new_line(out);
    out.push_str(line);
}

/// Appends the text of a notification: the fields of `record` except empty ones and those in
/// `skip`, cut at [`MAX_NOTIFICATION_BYTES`].
pub(crate) fn append_notification(record: Value<'_>, skip: &[&str], out: &mut String) {
    let Some(object) = record.as_object() else { return append_value(record, out) };
    for (key, field) in &object {
        if skip.contains(&key) || is_empty(field) {
            continue;
        }
        begin_new_line(out);
        out.push_str(key);
        out.push_str(": ");
        append_nested(field, 1, out);
    }
    truncate_notification(out);
}

fn is_empty(value: Value<'_>) -> bool {
    matches!(value.value_type(), ValueType::Null)
        || string_value(value).is_some_and(str::is_empty)
        || value.as_array().is_some_and(|array| array.is_empty())
        || value.as_object().is_some_and(|object| object.is_empty())
}

/// Cuts a notification's text as [`shorten_notification`] does.
pub(crate) fn truncate_notification(out: &mut String) {
    if let Cow::Owned(shortened) = shorten_notification(out) {
        *out = shortened;
    }
}

/// Returns a notification's text, cut at [`MAX_NOTIFICATION_BYTES`], with the number of bytes that are
/// missing. A text that was cut must not be cut again, which would cut that number.
pub(crate) fn shorten_notification(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_NOTIFICATION_BYTES {
        return Cow::Borrowed(text);
    }
    let at = truncation_point(text, MAX_NOTIFICATION_BYTES);
    Cow::Owned(format!("{}\n[{} more bytes in the source]", &text[..at], text.len() - at))
}

/// Returns where to cut a text to at most `max_bytes`. The cut is between two words, unless that
/// would drop half of the text or more: secrets are masked after cutting, and most are recognised
/// only whole.
pub(crate) fn truncation_point(text: &str, max_bytes: usize) -> usize {
    let max = text.floor_char_boundary(max_bytes);
    let blank = text[..max].rfind(char::is_whitespace).unwrap_or_default();
    if blank * 2 > max { blank } else { max }
}

/// Appends the content of a message or tool result: a string, or a list of blocks. The text of
/// blocks is joined by newlines. Binary data is named by type and size.
pub(crate) fn append_content(content: Value<'_>, out: &mut String) {
    let Some(blocks) = content.as_array() else {
        let is_text = matches!(content.text("type"), Some("text" | "input_text" | "output_text"));
        return if is_text { append_block(content, out) } else { append_value(content, out) };
    };
    for block in &blocks {
        // Codex puts tags around images, as separate text blocks.
        if block.text("text").is_some_and(is_image_tag) {
            continue;
        }
        begin_new_line(out);
        self::append_block(block, out);
    }
}

/// Appends the content in a field of a message or tool result, if it has the field.
pub(crate) fn append_field(message: Value<'_>, key: &str, out: &mut String) {
    if let Some(content) = message.field(key) {
        append_content(content, out);
    }
}

/// Returns whether a text block only marks the place of an image.
pub(crate) fn is_image_tag(text: &str) -> bool {
    text == "</image>" || text.starts_with("<image name=")
}

/// The types of content blocks that decoders expect inside a message or a result. Sorted.
#[rustfmt::skip]
const KNOWN_BLOCKS: &[&str] = &[
    "Text", "audio", "audio_url", "document", "file", "function", "function_group", "image",
    "image_blob_ref", "image_url", "input_image", "input_text", "json", "knowledge", "markdown",
    "namespace", "output_text", "reasoning_text", "resource", "resource_link", "summary_text",
    "text", "think", "thinking", "tool_reference", "video", "video_url",
];

/// Maximum number of unknown types that are remembered at a time.
const MAX_UNKNOWN_BLOCKS: usize = 64;

thread_local! {
    static UNKNOWN_BLOCKS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Notes the type of a content block if no decoder knows it. The block is rendered all the same.
pub(crate) fn note_block(block: Value<'_>) {
    let Some(kind) = block.text("type") else { return };
    if KNOWN_BLOCKS.binary_search(&kind).is_err() {
        UNKNOWN_BLOCKS.with_borrow_mut(|unknown| {
            if unknown.len() < MAX_UNKNOWN_BLOCKS {
                unknown.push(kind.to_owned());
            }
        });
    }
}

/// Returns the unknown types of the blocks that this thread rendered since the last call. Texts are
/// rendered in many places, which need not pass the stream that counts.
pub(crate) fn take_unknown_blocks() -> Vec<String> {
    UNKNOWN_BLOCKS.take()
}

/// Appends one content block as text.
pub(crate) fn append_block(block: Value<'_>, out: &mut String) {
    note_block(block);
    if let Some(source) = block.object("source") {
        return append_binary_summary(source.text("media_type"), source.text("data"), out);
    }
    if let Some(data) = block.object("inlineData") {
        return append_binary_summary(data.text("mimeType"), data.text("data"), out);
    }
    if let Some(url) = block.text("image_url").and_then(|url| url.strip_prefix("data:")) {
        let (kind, data) = url.split_once(";base64,").unwrap_or((url, ""));
        return append_binary_summary(Some(kind), Some(data), out);
    }
    if let Some(text) = block.text("text") {
        return out.push_str(text);
    }
    if block.text("type") == Some("input_image") {
        let address = block.non_empty("image_url").map(|url| format!(" {url}"));
        return out.push_str(&format!("[image{}]", address.unwrap_or_default()));
    }
    append_value(block, out);
}

/// Appends `[image/png 48213 bytes]` for base64 data.
pub(crate) fn append_binary_summary(kind: Option<&str>, base64: Option<&str>, out: &mut String) {
    let data = base64.unwrap_or("");
    let padding = data.bytes().rev().take(2).filter(|b| *b == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    out.push_str(&format!("[{} {bytes} bytes]", kind.unwrap_or("binary")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{LineItem, Parser};

    fn check(render: fn(Value<'_>, &mut String), json: &str, want: &str) {
        let mut out = String::new();
        Parser::default().for_each_item(format!("{{\"x\":{json}}}").as_bytes(), &mut |found| {
            let LineItem::Object(object, _) = found else { panic!("{json}") };
            render(object.field("x").expect("there"), &mut out);
        });
        assert_eq!(out, want);
    }

    #[test]
    fn known_blocks_are_sorted() {
        assert!(KNOWN_BLOCKS.is_sorted());
    }

    #[test]
    fn inputs_have_real_newlines_and_quotes() {
        check(
            append_value,
            r#"{"command":"echo \"a\"\nls","timeout":5}"#,
            "command: echo \"a\"\nls\ntimeout: 5",
        );
        check(
            append_value,
            r#"{"edits":[{"old":"a","new":"b"},"c"]}"#,
            "edits:\n  - old: a\n    new: b\n  - c",
        );
        check(append_value, r#"[true,null,1.5]"#, "- true\n- null\n- 1.5");
    }

    #[test]
    fn results_are_flattened_and_images_named() {
        check(append_content, r#""plain""#, "plain");
        check(append_content, r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, "a\nb");
        let image = r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAABB=="}}]"#;
        check(append_content, image, "[image/png 4 bytes]");
        check(
            append_content,
            r#"[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]"#,
            "[image/png 3 bytes]",
        );
        let images = r#"[{"type":"input_image","image_url":null,"detail":"low"},{"type":"input_image","image_url":"file:///a.png"}]"#;
        check(append_content, images, "[image]\n[image file:///a.png]");
        check(append_content, r#"{"type":"input_text","text":"a.txt","detail":null}"#, "a.txt");
        check(
            append_content,
            r#"[{"inlineData":{"mimeType":"image/gif","data":"AAA="}}]"#,
            "[image/gif 2 bytes]",
        );
    }
}
