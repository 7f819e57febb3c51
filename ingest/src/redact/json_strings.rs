//! Walks over the strings of JSON text where they are written, so that a part of one can be replaced and
//! every other byte stays; and knows which of them an agent expects unchanged.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;
use serde::de::IgnoredAny;

/// Maximum length in bytes of an id or a hash.
const MAX_ID_BYTES: usize = 256;

/// Minimum length in bytes of data that is known by its alphabet only.
const MIN_DATA_BYTES: usize = 64;

/// Ends of the keys of values that only a service can read, and checks, in any case.
const SEALED_ENDS: [&str; 2] = ["signature", "opaque"];

/// Ends of the keys of ids and hashes.
const ID_ENDS: [&str; 13] = [
    "Id", "_id", "ID", "uuid", "Uuid", "UUID", "hash", "Hash", "sha", "sha1", "sha256", "etag",
    "checksum",
];

/// Words in the keys of values that are secrets, whatever else the keys say.
const SECRET_WORDS: [&str; 5] = ["password", "secret", "token", "key", "client"];

/// Keys of pictures and other files.
const DATA_KEYS: [&str; 7] = ["data", "base64", "bytes", "blob", "image", "b64_json", "imageBytes"];

/// Beginnings of images and documents in base64: PNG, JPEG, GIF, WebP, PDF, and a URL of data.
const DATA_STARTS: [&str; 6] = ["iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "JVBERi0", "data:"];

/// A string of a JSON text, between its quotes.
pub(crate) struct JsonString<'a> {
    pub(crate) range: Range<usize>,
    pub(crate) raw: &'a [u8],
    /// The key of the value; empty in a list without one.
    pub(crate) key: &'a [u8],
    /// The string that `name` or `key` of the same object has before it; empty without one.
    pub(crate) name: &'a [u8],
    /// The key of the object or list that the value is in; empty at the top.
    pub(crate) outer: &'a [u8],
    /// Number of objects and lists around it.
    pub(crate) depth: usize,
    pub(crate) is_key: bool,
}

/// The object or list that a scan is in.
#[derive(Clone, Copy, Default)]
struct OpenValue<'a> {
    key: &'a [u8],
    name: &'a [u8],
}

impl JsonString<'_> {
    /// Returns whether the value is one that an agent sends back or compares, or data that is not text.
    pub(crate) fn is_opaque(&self) -> bool {
        if self.is_key {
            return false;
        }
        let Ok(key) = std::str::from_utf8(self.key) else { return false };
        let is_sealed = contains_word(key, "encrypted")
            || SEALED_ENDS.iter().any(|end| ends_with_word(key, end));
        let is_id = matches!(key, "id" | "ids") || ID_ENDS.iter().any(|end| key.ends_with(end));
        let is_short = self.raw.len() <= MAX_ID_BYTES && !self.raw.contains(&b' ');
        if (is_sealed || is_id && is_short)
            && !SECRET_WORDS.iter().any(|word| contains_word(key, word))
        {
            return true;
        }
        let is_data = DATA_STARTS.iter().any(|start| self.raw.starts_with(start.as_bytes()));
        (is_data || DATA_KEYS.contains(&key))
            && self.raw.len() >= MIN_DATA_BYTES
            && has_data_only(self.raw)
    }
}

/// Returns whether a key has a word, in any case.
fn contains_word(key: &str, word: &str) -> bool {
    let mut parts = key.as_bytes().windows(word.len());
    parts.any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// Returns whether a key ends with a word, in any case.
fn ends_with_word(key: &str, word: &str) -> bool {
    let end = key.len().checked_sub(word.len()).and_then(|start| key.as_bytes().get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
}

/// Returns whether bytes are base64 or a URL of such data.
fn has_data_only(raw: &[u8]) -> bool {
    let is_data = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_-:;,.\\".contains(byte);
    raw.iter().all(is_data)
}

/// Returns whether bytes look like an object or a list.
pub(crate) fn is_bracketed(bytes: &[u8]) -> bool {
    let bytes = bytes.trim_ascii();
    matches!((bytes.first(), bytes.last()), (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')))
}

pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns whether a text is one or more values of JSON.
pub(crate) fn is_json_sequence(text: &[u8]) -> bool {
    let mut values =
        serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>().peekable();
    values.peek().is_some() && values.all(|value| value.is_ok())
}

/// Calls `visit` with each string of a JSON text. A string without an end goes to the end of the text.
pub(crate) fn for_each_string<'a>(bytes: &'a [u8], visit: &mut dyn FnMut(JsonString<'a>)) {
    let mut open = vec![OpenValue::default()];
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                let key = open.last().map_or(&b""[..], |value| value.key);
                open.push(OpenValue { key, name: b"" });
            }
            b'}' | b']' if open.len() > 1 => {
                open.pop();
            }
            b'"' => {
                let range = at..string_end(bytes, at);
                at = range.end + 1;
                let raw = bytes.get(range.clone()).unwrap_or_default();
                let rest = bytes.get(at..).unwrap_or_default().trim_ascii_start();
                let is_key = rest.first() == Some(&b':');
                let depth = open.len() - 1;
                let outer = depth.checked_sub(1).map_or(&b""[..], |around| open[around].key);
                let Some(value) = open.last_mut() else { continue };
                let (key, name) = (value.key, value.name);
                if is_key {
                    value.key = raw;
                } else if matches!(key, b"name" | b"key") {
                    value.name = raw;
                }
                visit(JsonString { range, raw, key, name, outer, depth, is_key });
            }
            _ => {}
        }
    }
}

/// Returns the position of the quote that ends a string, which begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

/// Where a part of a decoded string begins, in it and in the bytes of the log. A part is one escape,
/// or a run of other characters.
pub(crate) struct DecodedPart {
    decoded: usize,
    raw: usize,
}

/// Decodes a JSON string. What is not valid becomes a placeholder character.
pub(crate) fn decode_string<'s>(
    raw: &'s [u8],
    mut parts: Option<&mut Vec<DecodedPart>>,
) -> Cow<'s, str> {
    if memchr::memchr(b'\\', raw).is_none()
        && let Ok(text) = std::str::from_utf8(raw)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let rest = &raw[at..];
        let mut add_part = |decoded: usize, raw: usize| {
            if let Some(parts) = parts.as_deref_mut() {
                parts.push(DecodedPart { decoded, raw });
            }
        };
        if rest[0] == b'\\' {
            add_part(text.len(), at);
            let (decoded, length) = decode_escape(rest);
            text.push(decoded);
            at += length;
            continue;
        }
        let run = &rest[..memchr::memchr(b'\\', rest).unwrap_or(rest.len())];
        for chunk in run.utf8_chunks() {
            add_part(text.len(), at);
            text.push_str(chunk.valid());
            at += chunk.valid().len();
            if !chunk.invalid().is_empty() {
                add_part(text.len(), at);
                text.push(char::REPLACEMENT_CHARACTER);
                at += chunk.invalid().len();
            }
        }
    }
    if let Some(parts) = parts {
        parts.push(DecodedPart { decoded: text.len(), raw: raw.len() });
    }
    Cow::Owned(text)
}

/// Returns the character of an escape, and the number of its bytes.
fn decode_escape(bytes: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(bytes.get(at..at + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let decoded = match bytes.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => {
            let Some(first) = unit(2) else { return (char::REPLACEMENT_CHARACTER, 2) };
            if (0xd800..0xdc00).contains(&first)
                && bytes.get(6..8) == Some(b"\\u")
                && let Some(second) = unit(8).filter(|unit| (0xdc00..0xe000).contains(unit))
            {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
            }
            return (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6);
        }
        Some(other) if other.is_ascii() => char::from(*other),
        Some(_) | None => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (decoded, 2)
}

/// Returns the position in the bytes of the log of a position in the decoded string.
pub(crate) fn raw_offset(parts: &[DecodedPart], decoded: usize) -> usize {
    let after = parts.partition_point(|part| part.decoded <= decoded);
    let part = &parts[after.saturating_sub(1)];
    part.raw + (decoded - part.decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_with_the_field_that_holds_them() {
        let json = br#" {"a":"x\"y","b": ["1",{"c" : "2\\"},"3"],"d":{},"":"4"} "5""#;
        let mut found = Vec::new();
        for_each_string(json, &mut |string| {
            if !string.is_key {
                found.push((string.key, string.raw));
            }
        });
        let expected =
            [("a", r#"x\"y"#), ("b", "1"), ("c", r"2\\"), ("b", "3"), ("", "4"), ("", "5")];
        assert_eq!(found, expected.map(|(key, raw)| (key.as_bytes(), raw.as_bytes())));
    }

    #[test]
    fn escapes_are_decoded_and_found_again() {
        let written = r#"a\n\u00e9\ud83d\ude00\ud83d\/é"#;
        let mut parts = Vec::new();
        let decoded = decode_string(written.as_bytes(), Some(&mut parts));
        assert_eq!(decoded, "a\né😀\u{fffd}/é");
        for (at, c) in decoded.char_indices() {
            let (start, end) = (raw_offset(&parts, at), raw_offset(&parts, at + c.len_utf8()));
            let again = decode_string(&written.as_bytes()[start..end], None);
            assert_eq!(again.chars().next(), Some(c), "{at}");
        }
    }

    #[test]
    fn what_an_agent_sends_back_is_opaque() {
        let is_opaque = |key: &str, value: &str| {
            let json = format!(r#"{{"{key}":"{value}"}}"#);
            let mut is_opaque = false;
            for_each_string(json.as_bytes(), &mut |string| is_opaque |= string.is_opaque());
            is_opaque
        };
        for key in [
            "signature",
            "thoughtSignature",
            "thought_signature",
            "encrypted_content",
            "reasoningOpaque",
            "id",
            "tool_use_id",
            "sessionId",
            "uuid",
            "parentUuid",
            "sha256",
        ] {
            assert!(is_opaque(key, "Kittiwake"), "{key}");
        }
        for key in ["text", "access_key_id", "client_id", "api_token_hash", "grid", "idea"] {
            assert!(!is_opaque(key, "Kittiwake"), "{key}");
        }
        assert!(is_opaque("data", &"Kittiwake".repeat(20)));
        assert!(is_opaque("url", &format!("data:image/png;base64,{}", "Kittiwake".repeat(20))));
        assert!(!is_opaque("data", "some Kittiwakes"));
    }
}
