//! The notes that the store has in place of images.

use base::numbers::format_bytes;

/// Shortens the notes in place of images: `[image/png 20480 bytes]` becomes `[image 20 KB]`.
pub(super) fn shorten_image_notes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("[image/") {
        let (before, note) = rest.split_at(at);
        let Some(end) = note.find(']') else { break };
        out.push_str(before);
        let words: Vec<&str> = note[1..end].split(' ').collect();
        match words.as_slice() {
            [_, bytes, "bytes"] if bytes.parse::<u64>().is_ok() => {
                let bytes = bytes.parse().unwrap_or(0);
                out.push_str(&format!("[image {}]", format_bytes(bytes)));
            }
            _ => out.push_str(&note[..=end]),
        }
        rest = &note[end + 1..];
    }
    out.push_str(rest);
    out
}

/// Returns true if a text has the note of an image.
pub(super) fn has_image_note(text: &str) -> bool {
    shorten_image_notes(text).len() < text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_by_their_size() {
        let text = "see [image/png 20480 bytes] and [image/x] or [image/png";
        assert_eq!(shorten_image_notes(text), "see [image 20 KB] and [image/x] or [image/png");
        assert_eq!(shorten_image_notes("none"), "none");
    }
}
