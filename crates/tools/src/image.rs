//! Reads an image that the text of an event names, from the log of its session.
//!
//! The store does not keep images. The text of their event has their kind and size, by which they
//! are found again in the event's record:
//!
//! ```text
//! [image/png 152883 bytes]
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ingest::discover::RawLog;
use schemas::{ErrorCode, EventId, ToolError};
use serde_json::Value;

use super::reply::call::Call;
use super::reply::rows::{find_log, read_events};
use super::reply::tools::Tools;
use base::image_notes::image_notes;
use store::Snapshot;

/// Maximum size of an image in bytes.
const MAX_IMAGE_BYTES: usize = 10 << 20;

/// The kinds of images that are read, with the bytes that one begins with, and with those at its
/// ninth byte.
const KINDS: &[(&str, &[u8], &[u8])] = &[
    ("image/png", b"\x89PNG\r\n\x1a\n", b""),
    ("image/jpeg", b"\xff\xd8\xff", b""),
    ("image/gif", b"GIF8", b""),
    ("image/webp", b"RIFF", b"WEBP"),
];

/// An image of an event.
#[derive(Debug)]
pub struct EventImage {
    /// Its media type, such as `image/png`.
    pub kind: &'static str,
    pub bytes: Vec<u8>,
}

/// Reads the image with this number, counted from 0, among those that the event's text names.
pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    event_id: &str,
    number: usize,
    call: &Call<'_>,
) -> Result<EventImage, ToolError> {
    let id: EventId = event_id.parse()?;
    let session = tools.caller.find_session(snapshot, &id.session)?;
    let end = id.index.saturating_add(1);
    let Some(row) = read_events(snapshot, session, id.index, end)?.pop() else {
        return Err(no_image(event_id, "there is no such event"));
    };
    let Some((kind, size)) = find_marks(&row.text).nth(number) else {
        return Err(no_image(event_id, "its text names no image of a known kind with this number"));
    };
    if size > MAX_IMAGE_BYTES {
        return Err(no_image(event_id, "it is larger than 10 MB"));
    }
    call.ensure_running()?;

    let Some(source) = find_log(snapshot, session)? else {
        return Err(no_image(event_id, "the store does not know the log of its session"));
    };
    let offset = row.source_offset.cast_unsigned();
    let length = row.source_length.cast_unsigned();
    let record = RawLog::open(&source.path)
        .and_then(|mut log| log.read_record(offset, length))
        .map_err(|error| no_image(event_id, &format!("its log cannot be read: {error}")))?;
    let record: Value = serde_json::from_slice(&record)
        .map_err(|_| no_image(event_id, "its log changed, or keeps its records in another form"))?;
    let bytes = find_image(&record, kind, size)
        .ok_or_else(|| no_image(event_id, "its record in the log has no such image"))?;
    Ok(EventImage { kind, bytes })
}

/// Returns the number of images of known kinds that a text names.
pub fn count_images(text: &str) -> usize {
    find_marks(text).count()
}

/// Returns the kinds and sizes of the images that a text names.
fn find_marks(text: &str) -> impl Iterator<Item = (&'static str, usize)> {
    image_notes(text).filter_map(|(_, kind, bytes)| {
        let (kind, ..) = KINDS.iter().find(|(known, ..)| *known == kind)?;
        Some((*kind, usize::try_from(bytes).ok()?))
    })
}

/// Finds the base64 text of an image with this kind and size in a value, and decodes it.
fn find_image(value: &Value, kind: &str, size: usize) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => decode_image(text, kind, size),
        Value::Array(values) => values.iter().find_map(|value| find_image(value, kind, size)),
        Value::Object(fields) => fields.values().find_map(|value| find_image(value, kind, size)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Decodes a text, with or without `data:`, if it is an image with this kind and size.
fn decode_image(text: &str, kind: &str, size: usize) -> Option<Vec<u8>> {
    let base64 = match text.strip_prefix("data:") {
        Some(rest) => rest.strip_prefix(kind)?.strip_prefix(";base64,")?,
        None => text,
    };
    // Without decoding every text of the record.
    if base64.len().div_ceil(4) != size.div_ceil(3) {
        return None;
    }
    let bytes = STANDARD.decode(base64).ok()?;
    let (_, head, ninth) = KINDS.iter().find(|(name, ..)| *name == kind)?;
    let is_image = bytes.starts_with(head) && bytes.get(8..)?.starts_with(ninth);
    (bytes.len() == size && is_image).then_some(bytes)
}

fn no_image(event_id: &str, reason: &str) -> ToolError {
    let message = format!("The image of {event_id} cannot be shown: {reason}");
    ToolError::new(ErrorCode::EventNotFound, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    #[test]
    fn marks_are_of_known_kinds() {
        let text =
            "[image/png 12 bytes] [image/svg+xml 5 bytes] [image/gif x bytes] [image/webp 7 bytes]";
        assert!(find_marks(text).eq([("image/png", 12), ("image/webp", 7)]));
        assert_eq!(find_marks("[image] [image/png").count(), 0);
    }

    #[test]
    fn an_image_is_found_in_every_form_and_nothing_else_is() {
        let base64 = STANDARD.encode(PNG);
        let url = format!("data:image/png;base64,{base64}");
        for record in [
            json!({ "content": [{ "text": "a" }, { "source": { "data": base64 } }] }),
            json!({ "parts": [{ "inlineData": { "data": base64 } }] }),
            json!({ "image_url": url }),
        ] {
            assert_eq!(find_image(&record, "image/png", PNG.len()).as_deref(), Some(PNG));
            assert_eq!(find_image(&record, "image/png", PNG.len() + 1), None);
            assert_eq!(find_image(&record, "image/gif", PNG.len()), None);
        }
        let html = STANDARD.encode(b"<svg/><html>");
        assert_eq!(find_image(&json!([html]), "image/png", 12), None, "its bytes decide");
    }
}
