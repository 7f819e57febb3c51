//! The notes that the store has in place of images.

use std::borrow::Cow;
use std::ops::Range;

use super::numbers::format_bytes;

/// Maximum size of a note in bytes.
const MAX_NOTE_BYTES: usize = 128;

/// Shortens the notes in place of images: `[image/png 20480 bytes]` becomes `[image 20 KB]`.
pub fn shorten_image_notes(text: &str) -> Cow<'_, str> {
    replace_image_notes(text, |bytes| format!("[image {}]", format_bytes(bytes)))
}

/// Returns a title without the notes in place of images, unless it has nothing else.
pub fn title_without_images(title: &str) -> Cow<'_, str> {
    let words = match replace_image_notes(title, |_| String::new()) {
        Cow::Borrowed(title) => return Cow::Borrowed(title),
        Cow::Owned(words) => words,
    };
    if words.trim().is_empty() {
        return shorten_image_notes(title);
    }
    Cow::Owned(words.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Replaces the notes in place of images, each by what `replace` makes of its number of bytes.
fn replace_image_notes(text: &str, replace: impl Fn(u64) -> String) -> Cow<'_, str> {
    let mut out = String::new();
    let mut end = 0;
    for (place, _, bytes) in image_notes(text) {
        out.push_str(&text[end..place.start]);
        out.push_str(&replace(bytes));
        end = place.end;
    }
    if end == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[end..]);
    Cow::Owned(out)
}

/// Returns the notes in place of images: the place, the media type, and the number of bytes of the
/// image.
pub fn image_notes(text: &str) -> impl Iterator<Item = (Range<usize>, &str, u64)> {
    text.match_indices("[image/").filter_map(|(start, _)| {
        let end = text.floor_char_boundary(start + MAX_NOTE_BYTES);
        let (note, _) = text[start + 1..end].split_once(']')?;
        let (kind, bytes) = note.strip_suffix(" bytes")?.split_once(' ')?;
        // Notes do not overlap.
        let bytes = bytes.parse().ok().filter(|_| !kind.contains('['))?;
        Some((start..start + note.len() + 2, kind, bytes))
    })
}

/// Returns true if a text has the note of an image.
pub fn has_image_note(text: &str) -> bool {
    image_notes(text).next().is_some()
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

    #[test]
    fn titles_name_no_images_unless_they_have_nothing_else() {
        for (title, shown) in [
            ("[image/png 20480 bytes] Why is it red?", "Why is it red?"),
            ("Why [image/png 1 bytes]  is it red?", "Why is it red?"),
            ("[image/png 20480 bytes]", "[image 20 KB]"),
            ("[image/x]", "[image/x]"),
            ("Two  words", "Two  words"),
        ] {
            assert_eq!(title_without_images(title), shown);
        }
    }
}
