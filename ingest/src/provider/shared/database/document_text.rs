//! Writes the text of an export document from records that are JSON already.

use std::fmt::Write as _;

/// Returns a message with its parts, as JSON.
pub(crate) fn message_with_parts(info: &str, parts: &[String]) -> String {
    let mut message = String::with_capacity(info.len() + joined_length(parts));
    let _ = write!(message, "{{\"info\":{info},\"parts\":[");
    append_joined(&mut message, parts, ",");
    message.push_str("]}");
    message
}

/// Returns an export document. Every message begins on its own line, and no line is valid JSON by
/// itself. Otherwise the document would look like a file of lines.
pub(crate) fn document_bytes(info: &str, messages: &[String]) -> Vec<u8> {
    let mut document = String::with_capacity(info.len() + joined_length(messages));
    let _ = write!(document, "{{\"info\":{info},\n\"messages\":[");
    append_joined(&mut document, messages, "\n,");
    document.push_str("\n]}\n");
    document.into_bytes()
}

/// Returns an upper bound for the bytes of `parts` with separators and the surrounding text.
fn joined_length(parts: &[String]) -> usize {
    parts.iter().map(|part| part.len() + 2).sum::<usize>() + 64
}

/// Appends `parts` with `between` as the separator.
fn append_joined(text: &mut String, parts: &[String], between: &str) {
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            text.push_str(between);
        }
        text.push_str(part);
    }
}
