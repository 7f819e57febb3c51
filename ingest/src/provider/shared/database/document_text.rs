//! Writes the text of an export document from records that are JSON already.

use std::fmt::Write as _;

use serde::de::IgnoredAny;
use serde_json::Value as Json;

/// Returns a JSON record with `ids` inserted before its fields. Text that is not a JSON object
/// becomes the field `unreadable`, so that only this record is lost.
pub(crate) fn object_with_ids(json: &str, ids: &[(&str, &str)]) -> String {
    // Texts may be large, so this reserves room for one of them only.
    let mut record = String::with_capacity(json.len() + 64 * (ids.len() + 1));
    record.push('{');
    for (key, id) in ids {
        let _ = write!(record, "\"{key}\":{},", Json::from(*id));
    }

    let inner = json.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let is_object = inner.is_some() && serde_json::from_str::<IgnoredAny>(json).is_ok();
    match inner {
        Some(inner) if is_object && inner.trim().is_empty() => {
            record.truncate(record.trim_end_matches(',').len());
        }
        Some(inner) if is_object => record.push_str(inner),
        _ => {
            let _ = write!(record, "\"unreadable\":{}", Json::from(json));
        }
    }
    record.push('}');
    record
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stand_before_the_fields() {
        assert_eq!(object_with_ids(r#"{"a":1}"#, &[("id", "x\"")]), r#"{"id":"x\"","a":1}"#);
        assert_eq!(object_with_ids(" { } ", &[("id", "x")]), r#"{"id":"x"}"#);
        assert_eq!(object_with_ids("{}", &[]), "{}");
        assert_eq!(object_with_ids("[1]", &[("id", "x")]), r#"{"id":"x","unreadable":"[1]"}"#);
    }
}
