//! Reads the beginning of a file, for the formats to recognize it.

use std::io;
use std::path::Path;

use crate::provider::FORMATS;
use crate::provider::format::LogHead;
use crate::provider::shared::document::first_elements;
use crate::source::candidate::{Container, LogCandidate};
use crate::source::line_source::LineSource;
use crate::source::lines::{LogLine, LogLines, MAX_LINE_BYTES, SMALL_CHUNK_BYTES, fitting_chunk};
use crate::text::damaged_json::{members, split_field};
use crate::text::json::legible_json;

/// Maximum number of objects examined. Objects that name a session are at the top, and the first
/// response of the model is mostly among these.
const MAX_OBJECTS: usize = 24;

/// Maximum number of lines examined in a file that gives no objects and does not begin as a document.
const MAX_LINES: usize = 2000;

/// Name of the list of messages at the top of a document.
const MESSAGES_KEY: &str = "messages";

/// Maximum number of bytes examined at the beginning of a document over several lines. Some describe
/// all tools of an agent before the session.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// Number of lines of an assembled document that are examined whatever their length: the fields of the
/// session and the first message.
const ASSEMBLED_LINES: usize = 2;

/// Returns the first objects on the lines of a file, as many as a claim needs, or the top-level
/// fields of a document over several lines. `None` if the file is blank.
pub(super) fn read_head(
    file: &LogCandidate,
    content: impl LineSource,
) -> io::Result<Option<LogHead<'_>>> {
    read_head_until(file, content, is_claim_complete)
}

/// Reads a head that ends at the first object for which `is_last` returns true.
fn read_head_until(
    file: &LogCandidate,
    content: impl LineSource,
    is_last: impl Fn(&serde_json::Value) -> bool,
) -> io::Result<Option<LogHead<'_>>> {
    let chunk = fitting_chunk(file.size, SMALL_CHUNK_BYTES);
    let mut lines = LogLines::with_bounds(content, 0, MAX_LINE_BYTES, chunk);
    let name = file.path.to_str();
    let path = name.map_or(&*file.path, |name| Path::new(Container::of_name(name).1));

    let is_assembled = matches!(file.container, Container::Assembled(_));
    let mut objects = Vec::new();
    let mut beginning = Vec::new();
    let mut line_count = 0;
    let mut is_blank = true;
    let mut is_document = false;
    let mut is_complete = false;
    // A single object may be a document.
    while !(is_complete && objects.len() > 1)
        && (line_count < MAX_LINES || is_document)
        && objects.len() < MAX_OBJECTS
        && (beginning.len() < MAX_DOCUMENT_BYTES || is_assembled && line_count < ASSEMBLED_LINES)
    {
        let Some(line) = lines.next_line()? else { break };
        line_count += 1;
        let (LogLine::Whole { bytes, .. }
        | LogLine::Tail { bytes, .. }
        | LogLine::Oversized { head: bytes, .. }) = line;
        is_blank &= bytes.iter().all(u8::is_ascii_whitespace);
        let is_whole = is_assembled && line_count <= ASSEMBLED_LINES;
        let limit = if is_whole { bytes.len() } else { bytes.len().min(MAX_DOCUMENT_BYTES) };
        beginning.extend_from_slice(&bytes[..limit]);
        beginning.push(b'\n');

        let text = legible_json(bytes);
        // In a document over several lines, or in a list, no line is a record.
        let opens_document =
            matches!(text.trim(), "{" | "[") || text.trim_start().starts_with("[{");
        is_document |= opens_document && objects.is_empty();
        if is_document {
            continue;
        }
        let values = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
        for object in values.map_while(Result::ok).filter(serde_json::Value::is_object) {
            is_complete |= is_last(&object);
            objects.push(object);
        }
    }
    if is_blank {
        return Ok(None);
    }

    if beginning.trim_ascii_start().starts_with(b"[") {
        let objects = first_elements(&legible_json(&beginning), MAX_OBJECTS);
        return Ok(Some(LogHead { path, objects, fields: None, is_list: true }));
    }
    // A document on one line is one object; one over several lines gives no objects.
    let may_be_document = objects.is_empty() || objects.len() == 1 && line_count == 1;
    let fields = if may_be_document { parse_top_fields(&legible_json(&beginning)) } else { None };
    Ok(Some(LogHead { path, objects, fields, is_list: false }))
}

/// Returns whether no format needs a record after this one. The format that writes such records
/// decides that for all.
fn is_claim_complete(record: &serde_json::Value) -> bool {
    FORMATS
        .iter()
        .filter_map(|format| format.quirks.is_claim_complete)
        .any(|is_claim_complete| is_claim_complete(record))
}

/// Returns the fields at the top of a document that may be cut anywhere, and of its messages the first
/// one. An object that is cut has the fields before the cut, any other value is null.
fn parse_top_fields(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    let text = text.trim_start();
    let mut fields = serde_json::Map::new();
    for (key, value) in members(text).filter_map(split_field) {
        let value = if key == MESSAGES_KEY {
            let first = members(value).next().and_then(|first| serde_json::from_str(first).ok());
            first.map_or(serde_json::Value::Null, |first: serde_json::Value| vec![first].into())
        } else {
            serde_json::from_str(value).unwrap_or_else(|_| fields_before_cut(value))
        };
        // The key alone is useful even if its value is cut.
        fields.insert(key, value);
    }
    (text.starts_with('{') && !fields.is_empty()).then_some(fields)
}

/// Returns the fields of an object that are JSON; null if the text is no object.
fn fields_before_cut(text: &str) -> serde_json::Value {
    if !text.starts_with('{') {
        return serde_json::Value::Null;
    }
    let mut fields = serde_json::Map::new();
    for (key, value) in members(text).filter_map(split_field) {
        if let Ok(value) = serde_json::from_str(value) {
            fields.insert(key, value);
        }
    }
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::discover;
    use crate::discover::sniff::claim_head;
    use crate::source::container::Content;

    const ID: &str = "0d4c1a2b-0000-4000-8000-00000000000a";

    /// A record of a Claude log.
    fn record(kind: &str, is_sidechain: bool) -> String {
        let message = format!(r#"{{"role":"{kind}","id":"m","content":[]}}"#);
        format!(
            r#"{{"type":"{kind}","isSidechain":{is_sidechain},"uuid":"{ID}","sessionId":"s","message":{message}}}"#
        )
    }

    /// Returns the number of objects in the head of a log that begins with these records.
    fn count_objects(first: &[String], more: usize) -> usize {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("x.jsonl");
        let mut lines = first.to_vec();
        lines.extend(std::iter::repeat_n(record("user", false), more));
        let content = lines.join("\n");
        std::fs::write(&path, &content).expect("writes");
        let file = LogCandidate::from_path(path).expect("there");
        read_head(&file, content.as_bytes()).expect("reads").map_or(0, |head| head.objects.len())
    }

    #[test]
    fn a_head_ends_with_the_record_that_completes_a_claim() {
        let own = [record("user", false), record("assistant", false)];
        let of_subagent = [record("user", true), record("assistant", true)];
        let without_uuid = own.clone().map(|record| record.replace(ID, "m1"));
        assert_eq!(count_objects(&own, MAX_OBJECTS), 2);
        assert_eq!(count_objects(&of_subagent, MAX_OBJECTS), MAX_OBJECTS);
        assert_eq!(count_objects(&without_uuid, MAX_OBJECTS), MAX_OBJECTS);

        let meta = [r#"{"type":"session_meta","payload":{"id":"c"}}"#.to_owned()];
        assert_eq!(count_objects(&meta, MAX_OBJECTS), 2);
        assert_eq!(count_objects(&meta, 0), 1);
    }

    #[test]
    fn logs_claim_the_same_with_more_records() {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-sessions");
        let mut shortened = 0;
        for file in discover(&[samples]).files {
            let open = || Content::open_stream(&file).expect("opens");
            let short = read_head(&file, open()).expect("reads");
            let long = read_head_until(&file, open(), |_| false).expect("reads");
            let count = |head: &Option<LogHead<'_>>| head.as_ref().map(|head| head.objects.len());
            shortened += usize::from(count(&short) < count(&long));
            assert_eq!(
                short.as_ref().and_then(claim_head),
                long.as_ref().and_then(claim_head),
                "{}",
                file.path.display()
            );
        }
        assert!(shortened > 0, "no sample is longer than its claim needs");
    }
}
