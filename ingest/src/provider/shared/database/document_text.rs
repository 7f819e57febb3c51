//! Writes the text of an export document from records that are JSON already.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

/// Maximum length in bytes of a text that is written before the long fields of a session.
const MAX_SHORT_BYTES: usize = 256;

/// Returns a message with its parts, as JSON.
pub(crate) fn message_with_parts(info: &str, parts: &[String]) -> String {
    let mut message = String::with_capacity(info.len() + joined_length(parts));
    let _ = write!(message, "{{\"info\":{info},\"parts\":[");
    append_joined(&mut message, parts, ",");
    message.push_str("]}");
    message
}

/// Returns the fields of a session as JSON: that of its store, then the short ones, such as its id, then
/// those of any length. The beginning of a document thus tells whose it is.
pub(crate) fn info_json(store: &str, mut fields: Map<String, Json>) -> String {
    let is_long = |value: &Json| match value {
        Json::String(text) => text.len() > MAX_SHORT_BYTES,
        Json::Array(_) | Json::Object(_) => true,
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    };
    fields.remove("store");
    let (long, short): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(_, value)| is_long(value));
    let mut info = Map::new();
    info.insert("store".to_owned(), store.into());
    info.extend(short.into_iter().chain(long));
    Json::Object(info).to_string()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_fields_are_behind_those_that_tell_whose_a_document_is() {
        let long = "x".repeat(MAX_SHORT_BYTES + 1);
        let fields = serde_json::json!({ "title": long, "stats": [1], "id": "a", "parent": null });
        let info = info_json("s", fields.as_object().expect("fields").clone());
        assert_eq!(
            info,
            format!(r#"{{"store":"s","id":"a","parent":null,"title":"{long}","stats":[1]}}"#)
        );
    }
}
