//! Renders tool inputs, tool results and notifications as readable text.

use simd_json::prelude::*;

use crate::text::json::{Fields, Value, string};

/// Maximum text of a notification in bytes. The rest is in the source, and the text says so.
const NOTIFICATION_BYTES: usize = 16 << 10;

/// Appends a value: strings as they are, objects as `key: value` lines, array elements as `- `
/// lines. Deeper levels are indented.
pub(crate) fn value(value: Value<'_>, out: &mut String) {
    nested(value, 0, out);
}

fn nested(value: Value<'_>, depth: usize, out: &mut String) {
    if let Some(text) = string(value) {
        out.push_str(text);
    } else if let Some(object) = value.as_object() {
        for (key, field) in &object {
            line(depth, out);
            out.push_str(key);
            out.push_str(": ");
            nested(field, depth + 1, out);
        }
    } else if let Some(array) = value.as_array() {
        for element in array.iter() {
            line(depth, out);
            out.push_str("- ");
            nested(element, depth + 1, out);
        }
    } else {
        out.push_str(&value.encode());
    }
}

/// Begins a line at a depth, unless a list element has begun one.
fn line(depth: usize, out: &mut String) {
    if out.ends_with("- ") {
        return;
    }
    if out.ends_with(": ") {
        out.pop();
    }
    new_line(out);
    out.extend(std::iter::repeat_n("  ", depth));
}

pub(crate) fn new_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Appends `line` on a line of its own.
pub(crate) fn add_line(line: &str, out: &mut String) {
    new_line(out);
    out.push_str(line);
}

/// Appends the text of a notification: the fields of `record` except empty ones and those in
/// `skip`, cut at [`NOTIFICATION_BYTES`].
pub(crate) fn fields(record: Value<'_>, skip: &[&str], out: &mut String) {
    let Some(object) = record.as_object() else { return value(record, out) };
    for (key, field) in &object {
        if skip.contains(&key) || is_empty(field) {
            continue;
        }
        new_line(out);
        out.push_str(key);
        out.push_str(": ");
        nested(field, 1, out);
    }
    cut(out);
}

fn is_empty(value: Value<'_>) -> bool {
    matches!(value.value_type(), ValueType::Null)
        || string(value).is_some_and(str::is_empty)
        || value.as_array().is_some_and(|array| array.is_empty())
        || value.as_object().is_some_and(|object| object.is_empty())
}

/// Cuts a notification's text at [`NOTIFICATION_BYTES`] and appends how many bytes are missing.
pub(crate) fn cut(out: &mut String) {
    if out.len() > NOTIFICATION_BYTES {
        let at = end(out, NOTIFICATION_BYTES);
        let missing = out.len() - at;
        out.truncate(at);
        out.push_str(&format!("\n[{missing} more bytes in the source]"));
    }
}

/// Returns where to cut a text to at most `most` bytes. The cut is between two words if possible:
/// secrets are masked after cutting, and most are recognised only whole.
pub(crate) fn end(text: &str, most: usize) -> usize {
    let most = text.floor_char_boundary(most);
    let blank = text[..most].rfind(char::is_whitespace).unwrap_or_default();
    if blank * 2 > most { blank } else { most }
}

/// Appends the content of a message or tool result: a string, or a list of blocks. The text of
/// blocks is joined by newlines; binary data is named by type and size.
pub(crate) fn content(content: Value<'_>, out: &mut String) {
    let Some(blocks) = content.as_array() else {
        let is_text = matches!(content.text("type"), Some("text" | "input_text" | "output_text"));
        return if is_text { block(content, out) } else { value(content, out) };
    };
    for block in blocks.iter() {
        // Codex puts tags around images, as separate text blocks.
        if block
            .text("text")
            .is_some_and(|text| text == "</image>" || text.starts_with("<image name="))
        {
            continue;
        }
        new_line(out);
        self::block(block, out);
    }
}

/// Appends one content block as text.
pub(crate) fn block(block: Value<'_>, out: &mut String) {
    if let Some(source) = block.object("source") {
        return binary(source.text("media_type"), source.text("data"), out);
    }
    if let Some(data) = block.object("inlineData") {
        return binary(data.text("mimeType"), data.text("data"), out);
    }
    if let Some(url) = block.text("image_url").and_then(|url| url.strip_prefix("data:")) {
        let (kind, data) = url.split_once(";base64,").unwrap_or((url, ""));
        return binary(Some(kind), Some(data), out);
    }
    if let Some(text) = block.text("text") {
        return out.push_str(text);
    }
    if block.text("type") == Some("input_image") {
        let at = block.non_empty("image_url").map(|url| format!(" {url}"));
        return out.push_str(&format!("[image{}]", at.unwrap_or_default()));
    }
    value(block, out);
}

/// Appends `[image/png 48213 bytes]` for base64 data.
fn binary(kind: Option<&str>, base64: Option<&str>, out: &mut String) {
    let data = base64.unwrap_or("");
    let padding = data.bytes().rev().take(2).filter(|b| *b == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    out.push_str(&format!("[{} {bytes} bytes]", kind.unwrap_or("binary")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{Found, Parser};

    fn check(render: fn(Value<'_>, &mut String), json: &str, want: &str) {
        let mut out = String::new();
        Parser::default().each(format!("{{\"x\":{json}}}").as_bytes(), &mut |found| {
            let Found::Object(object, _) = found else { panic!("{json}") };
            render(object.field("x").expect("there"), &mut out);
        });
        assert_eq!(out, want);
    }

    #[test]
    fn inputs_have_real_newlines_and_quotes() {
        check(
            value,
            r#"{"command":"echo \"a\"\nls","timeout":5}"#,
            "command: echo \"a\"\nls\ntimeout: 5",
        );
        check(
            value,
            r#"{"edits":[{"old":"a","new":"b"},"c"]}"#,
            "edits:\n  - old: a\n    new: b\n  - c",
        );
        check(value, r#"[true,null,1.5]"#, "- true\n- null\n- 1.5");
    }

    #[test]
    fn results_are_flattened_and_images_named() {
        check(content, r#""plain""#, "plain");
        check(content, r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, "a\nb");
        let image = r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAABB=="}}]"#;
        check(content, image, "[image/png 4 bytes]");
        check(
            content,
            r#"[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]"#,
            "[image/png 3 bytes]",
        );
        let images = r#"[{"type":"input_image","image_url":null,"detail":"low"},{"type":"input_image","image_url":"file:///a.png"}]"#;
        check(content, images, "[image]\n[image file:///a.png]");
        check(content, r#"{"type":"input_text","text":"a.txt","detail":null}"#, "a.txt");
        check(
            content,
            r#"[{"inlineData":{"mimeType":"image/gif","data":"AAA="}}]"#,
            "[image/gif 2 bytes]",
        );
    }
}
