//! Finds secrets in encoded text: decodes the text around the code, so that all rules can read it.
//!
//! ```text
//! password%3D...   \u0070assword=...   &#112;assword=...   ｐａｓｓｗｏｒｄ＝...   "pass" + "word=..."
//! 00000000: 7061 7373 776f 7264 3d..                 password=.
//! echo ... | base64 -d
//! ```

use super::encoded_login::decode_base64_bytes;
use super::entropy::{is_placeholder, is_random, is_signed};
use super::pattern::PrefixPattern;
use super::scan::{SecretScan, is_blank, is_quote};

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
pub(super) struct DecodedText {
    pub(super) text: String,
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
    pub(super) fn source_of(&self, start: usize, end: usize) -> Option<(usize, usize)> {
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

/// Decodes the text around the code at `at`. Returns `None` if an earlier code included it.
pub(super) fn decode_around(scan: &mut SecretScan<'_>, at: usize) -> Option<DecodedText> {
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
pub(super) fn wide_runs(text: &str) -> impl Iterator<Item = usize> {
    // The first byte of such letters.
    memchr::memchr_iter(0xef, text.as_bytes()).filter(|at| {
        let run = text.get(*at..).unwrap_or_default().chars().take(4);
        run.filter(|c| matches!(c, 'Ａ'..='Ｚ' | 'ａ'..='ｚ' | '０'..='９' | '＿')).count() == 4
    })
}

/// Decodes the hexdump whose first line includes `at`.
pub(super) fn decode_dump(scan: &mut SecretScan<'_>, at: usize) -> Option<DecodedText> {
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

/// The encoding of an argument.
#[derive(Clone, Copy)]
enum Encoding {
    Base64,
    Hex,
}

/// A command or a call that decodes its argument, which is the group of the pattern.
pub(super) struct DecodingCommand {
    pub(super) anchor: &'static str,
    encoding: Encoding,
    pattern: PrefixPattern,
}

const fn base64(anchor: &'static str, source: &'static str) -> DecodingCommand {
    DecodingCommand { anchor, encoding: Encoding::Base64, pattern: PrefixPattern::new(source) }
}

const fn hex(anchor: &'static str, source: &'static str) -> DecodingCommand {
    DecodingCommand { anchor, encoding: Encoding::Hex, pattern: PrefixPattern::new(source) }
}

/// Builds the regex of a command that pipes its argument into another one.
macro_rules! piped_into {
    ($says:literal, $decoder:literal) => {
        concat!(
            $says,
            r#"(?:\s+-\S+)*\s+(?:\\{0,3}["']?%s(?:\\{1,4}n)?\\{0,3}["']?\s+)?\\{0,3}["']?([A-Za-z0-9+/=_-]{8,})\\{0,3}["']?\s*\|\s*"#,
            $decoder
        )
    };
}

/// Builds the regex of a call whose first argument is a string.
macro_rules! called {
    ($call:literal, $rest:literal) => {
        concat!($call, r#"\(\s*b?\\{0,3}["']([A-Za-z0-9+/=_-]{8,})\\{0,3}["']"#, $rest)
    };
}

/// All commands and calls that decode an argument. Their anchors leave out the first letters, with which
/// many words begin.
#[rustfmt::skip]
pub(super) static DECODING_COMMANDS: [DecodingCommand; 14] = [
    base64("echo", piped_into!("echo", r"(?:openssl\s+)?base64\s+(?:-A\s+)?(?:-[dD]|--decode)")),
    base64("printf", piped_into!("printf", r"(?:openssl\s+)?base64\s+(?:-A\s+)?(?:-[dD]|--decode)")),
    base64("se64 -", r#"se64\s+(?:-[dDi]+|--decode)\s*<<<\s*\\{0,3}["']?([A-Za-z0-9+/=_-]{8,})"#),
    base64("b64decode(", called!("b64decode", "")),
    base64("atob(", called!("atob", "")),
    base64("se64String(", called!("se64String", "")),
    base64("de64(", called!("de64", "")),
    base64("se64_decode(", called!("se64_decode", "")),
    base64("fer.from(", called!("fer\\.from", r#"\s*,\s*\\{0,3}["']base64"#)),
    hex("fer.from(", called!("fer\\.from", r#"\s*,\s*\\{0,3}["']hex"#)),
    hex("omhex(", called!("omhex", "")),
    hex("unhexlify(", called!("unhexlify", "")),
    hex("echo", piped_into!("echo", r"xxd\s+(?:-p\s+)?-r")),
    hex("printf", piped_into!("printf", r"xxd\s+(?:-p\s+)?-r")),
];

/// An encoded argument and its place in the source.
pub(super) struct EncodedArgument {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: String,
}

impl EncodedArgument {
    /// Reads the argument that the command at `at` decodes. `None` if it is not a text.
    pub(super) fn read(
        scan: &SecretScan<'_>,
        at: usize,
        command: &DecodingCommand,
    ) -> Option<Self> {
        let found = command.pattern.at_start(scan.text_from(at, MAX_ARGUMENT_BYTES))?.get(1)?;
        let bytes = match command.encoding {
            Encoding::Base64 => decode_base64_bytes(found.as_str())?,
            Encoding::Hex => decode_hex(found.as_str())?,
        };
        let text = String::from_utf8(bytes).ok()?;
        Some(Self { start: at + found.start(), end: at + found.end(), text })
    }

    /// Returns whether the text is a secret by itself.
    pub(super) fn is_secret(&self) -> bool {
        let text = self.text.trim_ascii_end();
        let is_word = text.bytes().all(|byte| byte.is_ascii_graphic());
        is_word && !is_placeholder(text) && (is_random(text) || is_signed(text))
    }
}

/// Returns the bytes that hexadecimal digits show.
fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    if digits.len() % 2 == 1 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}
