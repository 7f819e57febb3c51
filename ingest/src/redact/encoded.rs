//! Finds secrets in encoded text: decodes the text around the code, so that all rules can read it. Also
//! recognises a user name and a password in base64: `bWlyYTpmajByZC1uMHJ0aA==`.
//!
//! ```text
//! password%3D...   \u0070assword=...   &#112;assword=...   ｐａｓｓｗｏｒｄ＝...   "pass" + "word=..."
//! 00000000: 7061 7373 776f 7264 3d..                 password=.
//! echo ... | base64 -d
//! ```

use super::entropy::{is_placeholder, is_random, is_signed};
use super::pattern::LazyRegex;
use super::rule::Encoding;
use super::scan::{SecretScan, is_blank, is_quote};
use crate::text::names::decode_hex;

/// Number of bytes of a line that are decoded before a code, and after it.
const BEFORE_BYTES: usize = 160;
const AFTER_BYTES: usize = 2 << 10;

/// Maximum number of bytes of a value after the last code before it.
const MAX_VALUE_BYTES: usize = 200;

/// Maximum number of decoded bytes between a code and a secret that it makes visible.
const MAX_REACH_BYTES: usize = 48;

/// Number of bytes of a hexdump that are decoded.
const MAX_DUMP_BYTES: usize = 16 << 10;

/// Number of bytes that a line of a hexdump shows.
const DUMP_LINE_BYTES: usize = 16;

/// Number of bytes of a command with an encoded argument that are examined.
const MAX_ARGUMENT_BYTES: usize = 4 << 10;

/// A decoded text, and the place of the source that each of its bytes comes from.
#[derive(Default)]
struct DecodedText {
    text: String,
    /// Start and end in the source, for each byte.
    places: Vec<(usize, usize)>,
    /// Positions in the text right after a code.
    codes: Vec<usize>,
}

impl DecodedText {
    /// Appends a character that the source writes from `start` to `end`.
    fn push(&mut self, c: char, start: usize, end: usize) {
        self.text.push(c);
        self.places.resize(self.text.len(), (start, end));
    }

    /// Returns the part of the source that the given part of the text comes from. Returns `None` if
    /// no code is in it or near it: the rules find it in the source.
    fn source_of(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        let near_start = start.saturating_sub(MAX_REACH_BYTES);
        let next_code = self.codes.partition_point(|code| *code < near_start);
        if self.codes.get(next_code).is_none_or(|code| *code > end + 1) {
            return None;
        }
        let (source_start, _) = self.places.get(start)?;
        let (_, source_end) = self.places.get(end.checked_sub(1)?)?;
        Some((*source_start, *source_end))
    }
}

/// Masks the secrets of the text around the code at `at`.
pub(super) fn mask_text_around(scan: &mut SecretScan<'_>, at: usize) {
    let decoded = decode_around(scan, at);
    mask_decoded(scan, decoded);
}

/// Masks the secrets of the text around the letters of full width.
pub(super) fn mask_wide_text(scan: &mut SecretScan<'_>) {
    for at in wide_runs(scan.text()) {
        mask_text_around(scan, at);
    }
}

/// Masks the secrets of the hexdump whose first line includes `at`.
pub(super) fn mask_dump(scan: &mut SecretScan<'_>, at: usize) {
    let decoded = decode_dump(scan, at);
    mask_decoded(scan, decoded);
}

/// Masks the secrets of a decoded text.
fn mask_decoded(scan: &mut SecretScan<'_>, decoded: Option<DecodedText>) {
    let Some(decoded) = decoded else { return };
    for span in scan.find_decoded(&decoded.text) {
        if let Some((start, end)) = decoded.source_of(span.start, span.end) {
            scan.add_ranked(start, end, span.kind, span.rank);
        }
    }
}

/// Decodes the text around the code at `at`. Returns `None` if an earlier code included it.
fn decode_around(scan: &mut SecretScan<'_>, at: usize) -> Option<DecodedText> {
    if at < scan.decoded_end {
        return None;
    }
    let before = scan.text_before(at, BEFORE_BYTES);
    let start = at - before.rsplit('\n').next().unwrap_or_default().len();
    let is_joint = is_quote(scan.byte(at));

    let source = scan.text_from(start, BEFORE_BYTES + AFTER_BYTES);
    let mut decoded = DecodedText::default();
    // The position in the source right after the last code.
    let mut code_end = at - start;
    let mut at = 0;
    while let Some(c) = source.get(at..).and_then(|rest| rest.chars().next()) {
        if c == '\n' && !is_joint || at > code_end + MAX_VALUE_BYTES {
            break;
        }
        let code = if matches!(c, '\\' | '%' | '&' | '"' | '\'') || !c.is_ascii() {
            read_code(source.get(at..).unwrap_or_default(), c)
        } else {
            None
        };
        let length = code.map_or(c.len_utf8(), |code| code.length);
        match code {
            Some(Code { meaning: Some(meaning), .. }) => {
                decoded.push(char::from(meaning), start + at, start + at + length);
            }
            Some(Code { meaning: None, .. }) => {}
            None => decoded.push(c, start + at, start + at + length),
        }
        at += length;
        if code.is_some() {
            decoded.codes.push(decoded.text.len());
            code_end = at;
        }
    }
    scan.decoded_end = start + at;
    Some(decoded)
}

/// A code at the beginning of a text.
#[derive(Clone, Copy)]
struct Code {
    /// The character of ASCII; `None` if the code joins two strings.
    meaning: Option<u8>,
    /// Its length in bytes.
    length: usize,
}

/// Names of characters in HTML.
const ENTITIES: &[(&str, u8)] = &[
    ("&quot;", b'"'),
    ("&apos;", b'\''),
    ("&amp;", b'&'),
    ("&lt;", b'<'),
    ("&gt;", b'>'),
    ("&equals;", b'='),
    ("&colon;", b':'),
    ("&nbsp;", b' '),
];

/// Reads the code at the beginning of a text, whose first character is `first`.
fn read_code(text: &str, first: char) -> Option<Code> {
    let bytes = text.as_bytes();
    let from_digits = |start: usize, count: usize, radix: u32, end: usize| {
        let digits = text.get(start..start + count)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u8::from_str_radix(digits, radix).ok().filter(|_| is_number)?;
        let meaning = (0x20..0x7f).contains(&value).then_some(value)?;
        Some(Code { meaning: Some(meaning), length: end })
    };
    match first {
        '%' => {
            // An encoded `%` of a code that is encoded twice.
            let digits = if text.starts_with("%25") { 3 } else { 1 };
            from_digits(digits, 2, 16, digits + 2).or_else(|| from_digits(1, 2, 16, 3))
        }
        '\\' => {
            let sign = bytes.iter().take(4).take_while(|byte| **byte == b'\\').count();
            match bytes.get(sign)? {
                b'u' => from_digits(sign + 1, 4, 16, sign + 5),
                b'x' => from_digits(sign + 1, 2, 16, sign + 3),
                b'"' | b'\'' => read_joint(bytes, sign),
                _ => None,
            }
        }
        '&' => {
            if let Some((name, meaning)) = ENTITIES.iter().find(|(name, _)| text.starts_with(name))
            {
                return Some(Code { meaning: Some(*meaning), length: name.len() });
            }
            let end = bytes.iter().take(8).position(|byte| *byte == b';')?;
            let number = text.get(..end)?.strip_prefix("&#")?;
            let (digits, radix) = match number.strip_prefix(['x', 'X']) {
                Some(digits) => (digits, 16),
                None => (number, 10),
            };
            from_digits(end - digits.len(), digits.len(), radix, end + 1)
        }
        '"' | '\'' => read_joint(bytes, 0),
        // A letter, digit or sign of full width.
        '\u{ff01}'..='\u{ff5e}' => {
            let ascii = u32::from(first) - 0xff01 + u32::from(b'!');
            Some(Code { meaning: u8::try_from(ascii).ok(), length: first.len_utf8() })
        }
        _ => None,
    }
}

/// Reads the end of one string, a `+` and the beginning of the next. The closing quote is at `quote`,
/// and the opening quote of the other string equals it.
fn read_joint(text: &[u8], quote: usize) -> Option<Code> {
    let blanks_end = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        at + rest.iter().take(40).take_while(|byte| byte.is_ascii_whitespace()).count()
    };
    let plus = blanks_end(quote + 1);
    if text.get(plus) != Some(&b'+') {
        return None;
    }
    let next = blanks_end(plus + 1);
    let closing = text.get(..=quote)?;
    (text.get(next..=next + quote)? == closing)
        .then_some(Code { meaning: None, length: next + quote + 1 })
}

/// Returns the places of letters of full width, at which a run of them begins.
fn wide_runs(text: &str) -> impl Iterator<Item = usize> {
    // The first byte of such letters.
    memchr::memchr_iter(0xef, text.as_bytes()).filter(|at| {
        let run = text.get(*at..).unwrap_or_default().chars().take(4);
        run.filter(|c| matches!(c, 'Ａ'..='Ｚ' | 'ａ'..='ｚ' | '０'..='９' | '＿')).count() == 4
    })
}

/// Decodes the hexdump whose first line includes `at`.
fn decode_dump(scan: &mut SecretScan<'_>, at: usize) -> Option<DecodedText> {
    if at < scan.decoded_end {
        return None;
    }
    let mut decoded = DecodedText::default();
    let mut line_start = at;
    for line in scan.text_from(at, MAX_DUMP_BYTES).split('\n') {
        let line_end = line_start + line.len();
        let bytes = read_dump_line(line);
        if bytes.is_empty() {
            break;
        }
        for (byte, offset) in bytes {
            let c = if byte.is_ascii() { char::from(byte) } else { ' ' };
            // The text at the end of the line shows the same bytes.
            decoded.push(c, line_start + offset, line_end);
            decoded.codes.push(decoded.text.len());
        }
        line_start = line_end + 1;
    }
    scan.decoded_end = line_start;
    (!decoded.text.is_empty()).then_some(decoded)
}

/// Returns the bytes that a line of a hexdump shows, each with its offset in the line.
fn read_dump_line(line: &str) -> Vec<(u8, usize)> {
    let bytes = line.as_bytes();
    let run_end = |start: usize, fits: fn(u8) -> bool| {
        let rest = bytes.get(start..).unwrap_or_default();
        start + rest.iter().take_while(|byte| fits(**byte)).count()
    };
    let is_hex = |byte: u8| byte.is_ascii_hexdigit();
    let lead = run_end(0, is_blank);
    let offset_end = run_end(lead, is_hex);
    let has_colon = bytes.get(offset_end) == Some(&b':');
    let mut shown = Vec::new();
    let mut at = run_end(offset_end + usize::from(has_colon), is_blank);
    if !(4..=10).contains(&(offset_end - lead)) || at == offset_end {
        return shown;
    }
    while shown.len() < DUMP_LINE_BYTES {
        let group_end = run_end(at, is_hex);
        let length = group_end - at;
        if !matches!(length, 2 | 4 | 8) {
            break;
        }
        let first = shown.len();
        for digits in (at..group_end).step_by(2) {
            let byte =
                line.get(digits..digits + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
            shown.extend(byte.map(|byte| (byte, at)));
        }
        // Words of two bytes show the second one first, except those of `xxd`.
        if length == 4 && !has_colon {
            shown.get_mut(first..).unwrap_or_default().reverse();
        }
        at = run_end(group_end, is_blank);
        if at > group_end + 2 {
            break;
        }
    }
    shown
}

/// Masks the argument that the command at `at` decodes if it is or contains a secret. The argument is
/// the group of the pattern.
pub(super) fn mask_argument(
    scan: &mut SecretScan<'_>,
    at: usize,
    encoding: Encoding,
    pattern: &LazyRegex,
) {
    let Some(found) = pattern.captures(scan.text_from(at, MAX_ARGUMENT_BYTES)) else { return };
    let Some(argument) = found.get(1) else { return };
    let bytes = match encoding {
        Encoding::Base64 => decode_base64_bytes(argument.as_str()),
        Encoding::Hex => decode_hex(argument.as_str()),
    };
    let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) else { return };
    let kind = scan.find_decoded(&text).first().map(|span| span.kind);
    if let Some(kind) = kind.or_else(|| is_secret_word(&text).then_some("secret")) {
        scan.add_secret_of(at + argument.start(), at + argument.end(), kind);
    }
}

/// Returns whether a decoded text is a secret by itself.
fn is_secret_word(text: &str) -> bool {
    let text = text.trim_ascii_end();
    let is_word = text.bytes().all(|byte| byte.is_ascii_graphic());
    is_word && !is_placeholder(text) && (is_random(text) || is_signed(text))
}

/// Returns whether a value is `user:password` in base64 and the password is not a placeholder.
pub(super) fn is_encoded_login(value: &str) -> bool {
    let Some(text) = decode_base64(value) else { return false };
    let Some((user, password)) = text.split_once(':') else { return false };
    password.len() >= 3 && password != user && !is_placeholder(password)
}

/// Returns the text in a base64 value. `None` if the value is too short or not base64, or if the
/// text is not printable ASCII.
pub(super) fn decode_base64(value: &str) -> Option<String> {
    let bytes = decode_base64_bytes(value)?;
    let is_printable = bytes.iter().all(|byte| (0x20..0x7f).contains(byte));
    String::from_utf8(bytes).ok().filter(|_| is_printable)
}

/// Returns the bytes in a base64 value. `None` if the value is too short or not base64.
fn decode_base64_bytes(value: &str) -> Option<Vec<u8>> {
    let digits = value.trim_end_matches('=');
    if digits.len() < 4 || digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len());
    let mut bits: u32 = 0;
    // Number of bits that no byte contains yet.
    let mut held = 0;
    for byte in digits.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = ((bits << 6) | u32::from(six)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            let [byte, ..] = (bits >> held).to_le_bytes();
            bytes.push(byte);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_in_base64_are_read() {
        assert!(is_encoded_login("bWlyYTpmajByZC1uMHJ0aA=="));
        assert!(!is_encoded_login("dXNlcjpwYXNzd29yZA=="), "user:password");
        assert!(!is_encoded_login("authentication"));
    }
}
