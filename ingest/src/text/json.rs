//! Decodes one line into JSON objects with simd-json, and repairs damaged lines if possible.
//!
//! Two objects on one line both count. Invalid UTF-8, raw control characters and lone surrogates
//! are replaced and reported, never fatal (docs/formats.md#lines-and-documents).

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;

use schemas::problem::ProblemKind;
use simd_json::prelude::*;
use simd_json::{INPUT_PADDING, Node, Tape};

pub(crate) use super::repair::replace_lone_surrogates;
use super::repair::{is_plain, repair_body};

/// A decoded JSON value, which borrows from the parser.
pub type Value<'a> = simd_json::tape::Value<'a, 'a>;

/// One item found on a line.
pub enum LineItem<'a> {
    /// An object, and its byte range in the line.
    Object(Value<'a>, Range<usize>),
    /// A value that is not an object, or text that is not JSON, and its message. The message is
    /// formatted by the receiver, because most of them are only counted.
    Problem(ProblemKind, Range<usize>, &'a dyn Display),
}

/// Reusable buffers of the decoder.
pub struct Parser {
    scratch: Vec<u8>,
    buffers: simd_json::Buffers,
    tape: Tape<'static>,
}

impl Default for Parser {
    fn default() -> Self {
        Self { scratch: Vec::new(), buffers: simd_json::Buffers::default(), tape: Tape(Vec::new()) }
    }
}

/// Maximum size in bytes of a buffer that is kept between lines. Buffers that grew beyond this for
/// one giant record are freed.
const MAX_KEPT_BYTES: usize = 8 << 20;

impl Parser {
    /// Passes every object and every problem of `line` to `found`, in the order of the line, except
    /// that the repairs of a damaged line come first. A blank line contains neither.
    pub fn for_each_item(&mut self, line: &[u8], found: &mut dyn FnMut(LineItem<'_>)) {
        let line_len = line.len();
        let start = line.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(line_len);
        let end = line.iter().rposition(|b| !b.is_ascii_whitespace()).map_or(start, |at| at + 1);
        let body = &line[start..end];
        if body.is_empty() {
            return;
        }

        if body.iter().all(|b| *b == 0) {
            let message = &format_args!("{} NUL bytes instead of a record", body.len());
            return found(LineItem::Problem(ProblemKind::ControlCharacters, start..end, message));
        }
        if !has_ends_of_value(body) || !self.decode_value(body, start..end, found) {
            self.decode_damaged(body, start, found);
        }

        let tape_bytes = self.tape.0.capacity() * size_of::<Node<'_>>();
        if self.scratch.capacity().max(tape_bytes) > MAX_KEPT_BYTES {
            *self = Self::default();
        }
    }

    /// Returns where the last complete object ends in a line that may still be written. Bytes that
    /// follow later change neither this object nor those before it.
    pub fn complete_length(&mut self, line: &[u8]) -> usize {
        let mut end = 0;
        self.for_each_item(line, &mut |found| {
            if let LineItem::Object(_, at) = found {
                end = at.end;
            }
        });
        end
    }

    /// Decodes `body`, which is at the range `at` of the line, as one value. Returns false if it is
    /// not JSON.
    fn decode_value(
        &mut self,
        body: &[u8],
        at: Range<usize>,
        found: &mut dyn FnMut(LineItem<'_>),
    ) -> bool {
        self.scratch.clear();
        self.scratch.reserve(body.len() + INPUT_PADDING);
        self.scratch.extend_from_slice(body);
        self.scratch.extend_from_slice(&[0; INPUT_PADDING]);

        let mut tape: Tape<'_> = std::mem::replace(&mut self.tape, Tape(Vec::new()));
        let scratch = &mut self.scratch;
        let buffers = &mut self.buffers;
        let is_json = simd_json::fill_tape_padded(scratch, body.len(), buffers, &mut tape).is_ok();
        if is_json {
            let value = tape.as_value();
            if value.is_object() {
                found(LineItem::Object(value, at));
            } else {
                let message =
                    &format_args!("expected a JSON object, found {:?}", value.value_type());
                found(LineItem::Problem(ProblemKind::NotAnObject, at, message));
            }
        }
        self.tape = tape.reset();
        is_json
    }

    /// Repairs the bytes of `body`, which begins at `start` of the line, and decodes every value in
    /// it.
    fn decode_damaged(&mut self, body: &[u8], start: usize, found: &mut dyn FnMut(LineItem<'_>)) {
        let whole = start..start + body.len();
        // Needs no parser: a log of garbage has millions of such lines.
        if !begins_value(body) && is_plain(body) {
            let message = &"not valid JSON: expected value at column 1";
            return found(LineItem::Problem(ProblemKind::BadJson, whole, message));
        }

        let (text, repairs) = repair_body(body);
        for (kind, message) in repairs {
            found(LineItem::Problem(kind, whole.clone(), &message));
        }

        let mut values = serde_json::Deserializer::from_str(&text.json)
            .into_iter::<&serde_json::value::RawValue>();
        loop {
            let value_start = values.byte_offset();
            match values.next() {
                Some(Ok(raw)) => {
                    let end = values.byte_offset();
                    let range = text.line_range(start, end - raw.get().len()..end);
                    if !self.decode_value(raw.get().as_bytes(), range.clone(), found) {
                        let message = &"not valid JSON";
                        found(LineItem::Problem(ProblemKind::BadJson, range, message));
                    }
                }
                Some(Err(error)) => {
                    let range = text.line_range(start, value_start..text.json.len());
                    let message = &BadJsonMessage(&error);
                    return found(LineItem::Problem(ProblemKind::BadJson, range, message));
                }
                None => return,
            }
        }
    }
}

/// Makes the bytes of a JSON value valid UTF-8 without raw control characters or lone surrogate
/// escapes. Returns the text and the problems repaired.
pub(crate) fn repair_text(bytes: &[u8]) -> (Cow<'_, str>, Vec<(ProblemKind, String)>) {
    let (line, repairs) = repair_body(bytes);
    (line.json, repairs)
}

/// Returns the text of JSON for serde_json, which takes neither invalid UTF-8 nor half a surrogate pair:
/// JavaScript writes one where it cuts a text.
pub(crate) fn legible_json(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    replace_lone_surrogates(&text).map_or(text, Cow::Owned)
}

/// Describes bytes that are not JSON, with serde_json's message without its line number, which is
/// always 1 here.
struct BadJsonMessage<'e>(&'e serde_json::Error);

impl Display for BadJsonMessage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let message = self.0.to_string();
        let cut = message.rfind(" at line ").unwrap_or(message.len());
        write!(f, "not valid JSON: {} at column {}", &message[..cut], self.0.column())
    }
}

/// Returns whether the first byte of `body` may begin a JSON value.
fn begins_value(body: &[u8]) -> bool {
    body.first().is_some_and(|first| {
        matches!(first, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
    })
}

/// Returns whether the first and the last byte of `body` may be those of one JSON value.
fn has_ends_of_value(body: &[u8]) -> bool {
    match (body.first(), body.last()) {
        (Some(b'{'), Some(last)) => *last == b'}',
        (Some(b'['), Some(last)) => *last == b']',
        (Some(b'"'), Some(last)) => *last == b'"' && body.len() > 1,
        (Some(b't' | b'f'), Some(last)) => *last == b'e',
        (Some(b'n'), Some(last)) => *last == b'l',
        (Some(_), Some(_)) => begins_value(body),
        (None, _) | (_, None) => false,
    }
}

/// Largest absolute value accepted as a whole number. Beyond it, the agents' own numbers are not
/// exact.
const MAX_WHOLE_NUMBER: u64 = 1 << 53;

/// A cost of a request in US dollars is lower than this.
const MAX_COST: f64 = 1e6;

/// Reads fields of a JSON object that may be missing or of another type than expected. All methods
/// return `None`, or nothing, if the value is not an object.
pub trait JsonFields<'a>: Sized {
    /// Returns the field, also if it is null.
    fn field(&self, key: &str) -> Option<Value<'a>>;

    /// Returns the field. `None` if it is missing or null.
    fn non_null(&self, key: &str) -> Option<Value<'a>> {
        self.field(key).filter(|value| !value.is_null())
    }

    /// Returns a string field.
    fn text(&self, key: &str) -> Option<&'a str>;

    /// Returns a string field that is not empty.
    fn non_empty(&self, key: &str) -> Option<&'a str> {
        self.text(key).filter(|text| !text.is_empty())
    }

    /// Returns a whole number, also if it is written as a float, whose fraction is dropped. Numbers
    /// far beyond any count or time are `None`, so that hundreds of them can be added without
    /// overflow.
    fn int(&self, key: &str) -> Option<i64>;

    /// Returns a number like [`Self::int`], such as the code with which a process ended.
    fn int32(&self, key: &str) -> Option<i32> {
        i32::try_from(self.int(key)?).ok()
    }

    /// Returns a cost in US dollars. Agents write 0 where they know no price, and where a subscription
    /// pays; that is `None`.
    fn cost(&self, key: &str) -> Option<f64> {
        let cost = self.field(key)?.cast_f64()?;
        (cost > 0.0 && cost < MAX_COST).then_some(cost)
    }

    /// Returns a boolean field.
    fn flag(&self, key: &str) -> Option<bool>;

    /// Returns the elements of an array field, or nothing if the field is not an array.
    fn items(&self, key: &str) -> Vec<Value<'a>>;

    /// Returns the field if it is an object.
    fn object(&self, key: &str) -> Option<Value<'a>>;
}

impl<'a> JsonFields<'a> for Value<'a> {
    fn field(&self, key: &str) -> Option<Self> {
        self.as_object()?.get(key)
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        string_value(self.field(key)?)
    }

    fn int(&self, key: &str) -> Option<i64> {
        let value = self.field(key)?;
        #[expect(clippy::cast_possible_truncation, reason = "saturated values are too large")]
        let int = value.as_i64().or_else(|| value.as_f64().map(|float| float as i64))?;
        (int.unsigned_abs() <= MAX_WHOLE_NUMBER).then_some(int)
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.field(key)?.as_bool()
    }

    fn items(&self, key: &str) -> Vec<Self> {
        self.field(key)
            .and_then(|value| value.as_array())
            .map_or_else(Vec::new, |array| array.iter().collect())
    }

    fn object(&self, key: &str) -> Option<Self> {
        self.field(key).filter(simd_json::tape::Value::is_object)
    }
}

/// Decodes the JSON in a string and passes its object to `found`. Returns false without passing
/// anything if the string is not a single object.
pub(crate) fn decode_embedded(
    json: &str,
    parser: &mut Parser,
    mut found: impl FnMut(Value<'_>),
) -> bool {
    if !json.trim_start().starts_with('{') {
        return false;
    }
    let mut is_whole = false;
    parser.for_each_item(json.as_bytes(), &mut |item| {
        if let LineItem::Object(value, at) = item
            && at.len() == json.trim().len()
        {
            is_whole = true;
            found(value);
        }
    });
    is_whole
}

/// Returns the text of a string value, or `None` if the value is not a string.
pub fn string_value<'a>(value: Value<'a>) -> Option<&'a str> {
    value.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per finding: `object <range> <value of "a">` or `<kind> <range>`.
    fn check(line: &[u8], want: &[&str]) {
        let mut got = Vec::new();
        Parser::default().for_each_item(line, &mut |found| {
            got.push(match found {
                LineItem::Object(value, at) => {
                    format!("object {at:?} {}", value.text("a").unwrap_or("-"))
                }
                LineItem::Problem(kind, at, _) => format!("{kind} {at:?}"),
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
    fn garbage_has_the_message_of_the_parser() {
        for first in (b' '..=b'~').filter(|first| !matches!(first, b' ' | b'\\')) {
            for rest in ["", "x y", "}", "]"] {
                let line = [&[first], rest.as_bytes()].concat();
                let text = str::from_utf8(&line).expect("text");
                let Err(error) = serde_json::from_str::<serde_json::Value>(text) else { continue };
                let mut messages = Vec::new();
                Parser::default().for_each_item(&line, &mut |found| {
                    if let LineItem::Problem(_, _, message) = found {
                        messages.push(message.to_string());
                    }
                });
                if !begins_value(&line) {
                    assert_eq!(messages, [BadJsonMessage(&error).to_string()], "{text}");
                }
                assert!(!messages.is_empty(), "{text}");
            }
        }
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
        Parser::default().for_each_item(line, &mut |found| {
            let LineItem::Object(object, _) = found else { panic!("an object") };
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
            assert_eq!(parser.complete_length(line), want, "{}", String::from_utf8_lossy(line));
        }
    }
}
