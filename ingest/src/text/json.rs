//! Decodes one line into JSON objects with simd-json, and repairs damaged lines if possible.
//!
//! Two objects on one line both count. Invalid UTF-8, raw control characters and lone surrogates
//! are replaced and reported, never fatal (docs/formats.md#lines-and-documents).

use std::ops::Range;

use schemas::problem::ProblemKind;
use simd_json::prelude::*;
use simd_json::{INPUT_PADDING, Node, Tape};

/// A decoded JSON value that borrows from the parser.
pub type Value<'a> = simd_json::tape::Value<'a, 'a>;

/// One item found on a line.
pub enum Found<'a> {
    /// An object, and its byte range in the line.
    Object(Value<'a>, Range<usize>),
    /// A value that is not an object, or text that is not JSON.
    Problem(ProblemKind, Range<usize>, String),
}

/// Reusable buffers of the decoder.
pub struct Parser {
    scratch: Vec<u8>,
    buffers: simd_json::Buffers,
    tape: Tape<'static>,
}

impl Default for Parser {
    fn default() -> Self {
        let (scratch, buffers) = (Vec::new(), simd_json::Buffers::default());
        Self { scratch, buffers, tape: Tape(Vec::new()) }
    }
}

/// Bytes kept of the buffers between lines. Buffers that grew beyond this for one giant record are
/// freed.
const KEEP: usize = 8 << 20;

impl Parser {
    /// Passes every object and every problem of `line` to `found`. Blank lines hold nothing.
    pub fn each(&mut self, line: &[u8], found: &mut dyn FnMut(Found<'_>)) {
        let line_len = line.len();
        let start = line.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(line_len);
        let end = line.iter().rposition(|b| !b.is_ascii_whitespace()).map_or(start, |at| at + 1);
        let body = &line[start..end];
        if body.is_empty() {
            return;
        }
        if body.iter().all(|b| *b == 0) {
            let message = format!("{} NUL bytes instead of a record", body.len());
            return found(Found::Problem(ProblemKind::ControlCharacters, start..end, message));
        }
        if !self.value(body, start..end, found) {
            self.salvage(body, start, found);
        }
        let tape = self.tape.0.capacity() * size_of::<Node<'_>>();
        if self.scratch.capacity().max(tape) > KEEP {
            *self = Self::default();
        }
    }

    /// Returns where the last complete object ends in a line that may still be written. Bytes that
    /// follow later change neither this object nor those before it.
    pub fn whole(&mut self, line: &[u8]) -> usize {
        let mut end = 0;
        self.each(line, &mut |found| {
            if let Found::Object(_, at) = found {
                end = at.end;
            }
        });
        end
    }

    /// Decodes `body` as one value. Returns false if it is not JSON.
    fn value(&mut self, body: &[u8], at: Range<usize>, found: &mut dyn FnMut(Found<'_>)) -> bool {
        self.scratch.clear();
        self.scratch.reserve(body.len() + INPUT_PADDING);
        self.scratch.extend_from_slice(body);
        self.scratch.extend_from_slice(&[0; INPUT_PADDING]);
        let mut tape: Tape<'_> = std::mem::replace(&mut self.tape, Tape(Vec::new()));
        let (scratch, buffers) = (&mut self.scratch, &mut self.buffers);
        let is_json = simd_json::fill_tape_padded(scratch, body.len(), buffers, &mut tape).is_ok();
        if is_json {
            let value = tape.as_value();
            if value.is_object() {
                found(Found::Object(value, at));
            } else {
                let message = format!("a JSON {:?} where an object belongs", value.value_type());
                found(Found::Problem(ProblemKind::NotAnObject, at, message));
            }
        }
        self.tape = tape.reset();
        is_json
    }

    /// Repairs the bytes, then decodes every value on the line.
    fn salvage(&mut self, body: &[u8], start: usize, found: &mut dyn FnMut(Found<'_>)) {
        let (text, repairs) = repair(body);
        let whole = start..start + body.len();
        for (kind, message) in repairs {
            found(Found::Problem(kind, whole.clone(), message));
        }
        let place =
            |range: Range<usize>| start + text.place(range.start)..start + text.place(range.end);
        let mut values = serde_json::Deserializer::from_str(&text.json)
            .into_iter::<&serde_json::value::RawValue>();
        loop {
            let from = values.byte_offset();
            match values.next() {
                Some(Ok(raw)) => {
                    let end = values.byte_offset();
                    let range = place(end - raw.get().len()..end);
                    if !self.value(raw.get().as_bytes(), range.clone(), found) {
                        let message = "no JSON".to_owned();
                        found(Found::Problem(ProblemKind::BadJson, range, message));
                    }
                }
                Some(Err(error)) => {
                    let at = place(from..text.json.len());
                    let message = format!("no JSON: {}", describe(&error));
                    return found(Found::Problem(ProblemKind::BadJson, at, message));
                }
                None => return,
            }
        }
    }
}

/// Returns serde_json's message without its line number, which is always 1 here.
fn describe(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let cut = message.rfind(" at line ").unwrap_or(message.len());
    format!("{} at column {}", &message[..cut], error.column())
}

/// A line repaired to legible JSON.
#[derive(Default)]
struct Legible {
    json: String,
    /// Pairs of a position in `json` and the matching position in the line. Both advance together
    /// from one pair to the next.
    seams: Vec<(usize, usize)>,
}

impl Legible {
    /// Returns the position in the line for a position in `json`.
    fn place(&self, at: usize) -> usize {
        let next = self.seams.partition_point(|(here, _)| *here <= at);
        let before = next.checked_sub(1).and_then(|last| self.seams.get(last));
        before.map_or(at, |(here, there)| there + (at - here))
    }
}

/// Makes a line valid UTF-8 without raw control characters or lone surrogate escapes, and returns
/// the problems repaired. Each repair depends only on its own place in the line.
fn repair(body: &[u8]) -> (Legible, Vec<(ProblemKind, String)>) {
    use std::fmt::Write as _;
    let mut legible = Legible::default();
    let (mut invalid, mut controls) = (false, 0);
    let (mut in_text, mut escaped) = (false, false);
    let mut at = 0;
    for chunk in body.utf8_chunks() {
        for c in chunk.valid().chars() {
            at += c.len_utf8();
            let is_control = c < ' ' && (in_text || !matches!(c, '\t' | '\r'));
            controls += usize::from(is_control);
            if is_control && in_text {
                let _ = write!(legible.json, "\\u{:04x}", u32::from(c));
                legible.seams.push((legible.json.len(), at));
            } else {
                // Between values only blanks are valid JSON.
                legible.json.push(if is_control { ' ' } else { c });
            }
            in_text ^= c == '"' && !escaped;
            escaped = in_text && c == '\\' && !escaped;
        }
        if !chunk.invalid().is_empty() {
            invalid = true;
            at += chunk.invalid().len();
            legible.json.push(char::REPLACEMENT_CHARACTER);
            legible.seams.push((legible.json.len(), at));
        }
    }
    let mut repairs = Vec::new();
    if invalid {
        repairs.push((ProblemKind::InvalidUtf8, "invalid UTF-8 was replaced".to_owned()));
    }
    if controls > 0 {
        let message = format!("{controls} raw control characters were escaped");
        repairs.push((ProblemKind::ControlCharacters, message));
    }
    if let Some(mended) = mend_surrogates(&legible.json) {
        repairs.push((ProblemKind::LoneSurrogate, "half a surrogate pair was replaced".to_owned()));
        legible.json = mended;
    }
    (legible, repairs)
}

/// Replaces `\uD8xx` without its other half by `\ufffd`. Returns `None` if there is nothing to
/// replace.
fn mend_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u32> {
        let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(hex, 16).ok()
    };
    let mut out: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        let escape = at + found;
        at = match unit(escape) {
            Some(0xd800..=0xdbff) if matches!(unit(escape + 6), Some(0xdc00..=0xdfff)) => {
                escape + 12
            }
            Some(0xd800..=0xdfff) => {
                let out = out.get_or_insert_with(|| bytes.to_vec());
                out[escape..escape + 6].copy_from_slice(b"\\ufffd");
                escape + 6
            }
            _ => (escape + 2).min(bytes.len()),
        };
    }
    out.and_then(|bytes| String::from_utf8(bytes).ok())
}

/// Largest absolute value accepted as a whole number; beyond it the agents' own numbers are not
/// exact.
const MOST: u64 = 1 << 53;

/// Reads fields that may be missing or of another type than expected.
pub trait Fields<'a>: Sized {
    fn field(&self, key: &str) -> Option<Value<'a>>;

    /// Returns the field unless it is null.
    fn given(&self, key: &str) -> Option<Value<'a>> {
        self.field(key).filter(|value| !value.is_null())
    }

    /// Returns a string field.
    fn text(&self, key: &str) -> Option<&'a str>;

    /// Returns a string field that is not empty.
    fn non_empty(&self, key: &str) -> Option<&'a str> {
        self.text(key).filter(|text| !text.is_empty())
    }

    /// Returns a whole number, also if it is written as a float. Numbers far beyond any count or
    /// time are `None`, so that hundreds of them can be added without overflow.
    fn int(&self, key: &str) -> Option<i64>;

    fn flag(&self, key: &str) -> Option<bool>;

    /// Returns the elements of an array field; nothing if the field is not an array.
    fn items(&self, key: &str) -> Vec<Value<'a>>;

    /// Returns the field if it is an object.
    fn object(&self, key: &str) -> Option<Value<'a>>;
}

impl<'a> Fields<'a> for Value<'a> {
    fn field(&self, key: &str) -> Option<Value<'a>> {
        self.as_object()?.get(key)
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        string(self.field(key)?)
    }

    fn int(&self, key: &str) -> Option<i64> {
        let value = self.field(key)?;
        #[expect(clippy::cast_possible_truncation, reason = "what does not fit is too much")]
        let int = value.as_i64().or_else(|| value.as_f64().map(|float| float as i64))?;
        (int.unsigned_abs() <= MOST).then_some(int)
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.field(key)?.as_bool()
    }

    fn items(&self, key: &str) -> Vec<Value<'a>> {
        self.field(key)
            .and_then(|value| value.as_array())
            .map_or_else(Vec::new, |array| array.iter().collect())
    }

    fn object(&self, key: &str) -> Option<Value<'a>> {
        self.field(key).filter(|value| value.is_object())
    }
}

/// Decodes the JSON in a string. Returns false if it is not a single object.
pub(crate) fn embedded(json: &str, parser: &mut Parser, mut found: impl FnMut(Value<'_>)) -> bool {
    if !json.trim_start().starts_with('{') {
        return false;
    }
    let mut whole = false;
    parser.each(json.as_bytes(), &mut |item| {
        if let Found::Object(value, at) = item
            && at.len() == json.trim().len()
        {
            whole = true;
            found(value);
        }
    });
    whole
}

/// Returns the text of a string value.
pub fn string<'a>(value: Value<'a>) -> Option<&'a str> {
    value.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per finding: `object <range> <value of "a">` or `<kind> <range>`.
    fn check(line: &[u8], want: &[&str]) {
        let mut got = Vec::new();
        Parser::default().each(line, &mut |found| {
            got.push(match found {
                Found::Object(value, at) => {
                    format!("object {at:?} {}", value.text("a").unwrap_or("-"))
                }
                Found::Problem(kind, at, _) => format!("{kind} {at:?}"),
            });
        });
        assert_eq!(got, want, "{}", String::from_utf8_lossy(line));
    }

    #[test]
    fn objects_and_blank_lines() {
        check(br#" {"a":"x"} "#, &["object 1..10 x"]);
        check(b"", &[]);
        check(b"  \r", &[]);
    }

    #[test]
    fn two_objects_on_one_line_both_count() {
        check(br#"{"a":"x"}{"a":"y"}"#, &["object 0..9 x", "object 9..18 y"]);
        check(br#"{"a":"x"} {"a":"y"#, &["object 0..9 x", "bad_json 9..17"]);
    }

    #[test]
    fn other_json_and_no_json() {
        check(b"42", &["not_an_object 0..2"]);
        check(b"[1]", &["not_an_object 0..3"]);
        check(br#"{"a":"#, &["bad_json 0..5"]);
    }

    #[test]
    fn repairs_are_reported_and_the_record_is_kept() {
        check(b"{\"a\":\"x\xff\"}", &["invalid_utf8 0..10", "object 0..10 x\u{fffd}"]);
        check(b"{\"a\":\"x\0y\"}", &["control_characters 0..11", "object 0..11 x\0y"]);
        check(br#"{"a":"\ud83d!"}"#, &["lone_surrogate 0..15", "object 0..15 \u{fffd}!"]);
        check(br#"{"a":"\ud83d\ude00"}"#, &["object 0..20 \u{1f600}"]);
        check(br#"{"a":"\\ud83d"}"#, &["object 0..15 \\ud83d"]);
        check(&[0; 8], &["control_characters 0..8"]);
    }

    #[test]
    fn repairs_leave_every_object_in_its_place() {
        let line = b"{\"a\":\"x\xff\xff\"}\r{\"a\":\"\0\"}{\"a\":\"z\"}";
        check(
            line,
            &[
                "invalid_utf8 0..30",
                "control_characters 0..30",
                "object 0..11 x\u{fffd}\u{fffd}",
                "object 12..21 \0",
                "object 21..30 z",
            ],
        );
        check(b"\0\0{\"a\":\"x\"}", &["control_characters 0..11", "object 2..11 x"]);
    }

    #[test]
    fn numbers_beyond_reason_are_none() {
        let line = br#"{"a":12,"b":12.0,"c":9223372036854775807,"d":-1e300,"e":"12"}"#;
        Parser::default().each(line, &mut |found| {
            let Found::Object(object, _) = found else { panic!("an object") };
            let ints = ["a", "b", "c", "d", "e"].map(|key| object.int(key));
            assert_eq!(ints, [Some(12), Some(12), None, None, None]);
        });
    }

    #[test]
    fn whole_objects_are_told_from_what_is_still_written() {
        let mut parser = Parser::default();
        for (line, want) in [
            (&br#"{"a":1}"#[..], 7),
            (br#" {"a":1} [1] {"b":2} "#, 20),
            (br#"{"a":1"#, 0),
            (b"", 0),
            (b"12", 0),
            (br#"{"a":1}{"b""#, 7),
            (br#"{"a":1}-0"#, 7),
            (b"{\"a\":1}\0\0\0\x1d", 7),
            (b"{}\xa7\0\0{}", 2),
        ] {
            assert_eq!(parser.whole(line), want, "{}", String::from_utf8_lossy(line));
        }
    }
}
