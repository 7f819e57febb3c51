//! Finds the strings of JSON text where they are written, so that a part of one can be replaced and
//! every other byte stays.

use std::borrow::Cow;
use std::ops::Range;

/// A string value of JSON text.
pub(super) struct JsonString<'j> {
    /// The name of the field that holds it, or that holds the list that it is in; empty at the top.
    pub(super) key: &'j str,
    /// Its place between the quotes.
    pub(super) range: Range<usize>,
}

/// An object or a list that is open.
struct OpenValue<'j> {
    is_object: bool,
    /// The name of the present field, or of the field that holds the list.
    key: &'j str,
}

/// Passes each string value of valid JSON text to `visit`, in order. Names of fields are not values.
pub(super) fn for_each_string<'j>(json: &'j str, visit: &mut dyn FnMut(JsonString<'j>)) {
    let bytes = json.as_bytes();
    let mut open: Vec<OpenValue<'j>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                let key = open.last().map_or("", |value| value.key);
                open.push(OpenValue { is_object: *byte == b'{', key });
            }
            b'}' | b']' => {
                open.pop();
            }
            b'"' => {
                let range = at..string_end(bytes, at);
                at = range.end + 1;
                let is_name = bytes
                    .get(at..)
                    .is_some_and(|rest| rest.trim_ascii_start().first() == Some(&b':'));
                match open.last_mut() {
                    Some(value) if value.is_object && is_name => {
                        value.key = json.get(range).unwrap_or_default();
                    }
                    value => visit(JsonString { key: value.map_or("", |value| value.key), range }),
                }
            }
            _ => {}
        }
    }
}

/// Returns where the string that begins at `start` ends.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return at + found,
            Some(found) => at += found + 2,
            None => return bytes.len(),
        }
    }
}

/// The text of a string, and where each of its characters is written.
pub(super) struct DecodedString<'j> {
    pub(super) text: Cow<'j, str>,
    /// For each byte of the text, and for its end, the position in the written string. Empty if the
    /// string is written without escapes, so that positions are equal.
    written: Vec<usize>,
}

impl<'j> DecodedString<'j> {
    /// Decodes a string as it is written between its quotes. `None` if it has an invalid escape.
    pub(super) fn decode(written: &'j str) -> Option<Self> {
        if !written.contains('\\') {
            return Some(Self { text: Cow::Borrowed(written), written: Vec::new() });
        }
        let mut text = String::with_capacity(written.len());
        let mut positions = Vec::with_capacity(written.len() + 1);
        let mut at = 0;
        while let Some(rest) = written.get(at..).filter(|rest| !rest.is_empty()) {
            let (c, length) = decode_char(rest)?;
            positions.extend(std::iter::repeat_n(at, c.len_utf8()));
            text.push(c);
            at += length;
        }
        positions.push(at);
        Some(Self { text: Cow::Owned(text), written: positions })
    }

    /// Returns where a part of the text is written.
    pub(super) fn written_range(&self, range: &Range<usize>) -> Range<usize> {
        let position = |at: usize| self.written.get(at).copied().unwrap_or(at);
        position(range.start)..position(range.end)
    }
}

/// Decodes the first character of a written string. Returns it and the length of how it is written.
/// A surrogate without its other half is the replacement character.
fn decode_char(written: &str) -> Option<(char, usize)> {
    let first = written.chars().next()?;
    if first != '\\' {
        return Some((first, first.len_utf8()));
    }
    let c = match written.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let unit = decode_unit(written)?;
            let low = written.get(6..).and_then(decode_unit);
            let pair = low.and_then(|low| char::decode_utf16([unit, low]).next()?.ok());
            return Some(match pair.filter(|c| c.len_utf16() == 2) {
                Some(c) => (c, 12),
                None => (char::from_u32(u32::from(unit)).unwrap_or('\u{fffd}'), 6),
            });
        }
        _ => return None,
    };
    Some((c, 2))
}

/// Returns the unit of UTF-16 in an escape such as `\u00e9` at the beginning of a text.
fn decode_unit(written: &str) -> Option<u16> {
    u16::from_str_radix(written.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_with_the_field_that_holds_them() {
        let json = r#" {"a":"x\"y","b": ["1",{"c" : "2\\"},"3"],"d":{},"":"4"} "5""#;
        let mut found = Vec::new();
        for_each_string(json, &mut |string| found.push((string.key, &json[string.range])));
        let expected =
            [("a", r#"x\"y"#), ("b", "1"), ("c", r"2\\"), ("b", "3"), ("", "4"), ("", "5")];
        assert_eq!(found, expected);
    }

    #[test]
    fn escapes_are_decoded_and_found_again() {
        let written = r#"a\n\u00e9\ud83d\ude00\ud83d\/é"#;
        let decoded = DecodedString::decode(written).expect("decodes");
        assert_eq!(decoded.text, "a\né😀\u{fffd}/é");
        for (at, c) in decoded.text.char_indices() {
            let range = decoded.written_range(&(at..at + c.len_utf8()));
            let (again, length) = decode_char(&written[range.start..]).expect("decodes");
            assert_eq!((again, length), (c, range.len()), "{at}");
        }
        assert!(DecodedString::decode(r"\x").is_none());
    }
}
