//! The notes that the store has in place of images.

use std::borrow::Cow;

use super::numbers::format_bytes;

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
    if !text.contains("[image/") {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("[image/") {
        let (before, note) = rest.split_at(at);
        let Some(end) = note.find(']') else { break };
        out.push_str(before);
        let words: Vec<&str> = note[1..end].split(' ').collect();
        let bytes = match words.as_slice() {
            [_, bytes, "bytes"] => bytes.parse().ok(),
            _ => None,
        };
        out.push_str(&bytes.map_or_else(|| note[..=end].to_owned(), &replace));
        rest = &note[end + 1..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns true if a text has the note of an image.
pub fn has_image_note(text: &str) -> bool {
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
