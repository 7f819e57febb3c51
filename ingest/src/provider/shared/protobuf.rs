//! Reads messages in the wire format of Protocol Buffers without their definitions: fields have
//! numbers, and the caller knows which of them are texts, numbers or messages.

use serde_json::{Map, Value as Json};

/// Maximum depth of messages inside messages that are read as text or as JSON.
const MAX_DEPTH: usize = 32;

/// Bits of a key that say how the value of its field is encoded.
const WIRE_TYPE_BITS: u32 = 3;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
enum WireValue<'a> {
    /// A number or a flag.
    Number(u64),
    /// A text, a message, or bytes.
    Bytes(&'a [u8]),
    /// A floating-point number of eight bytes.
    Float(f64),
    /// A number of four bytes, which is not read.
    Other,
}

/// A message: its fields in the order in which they were written.
#[derive(Debug, Default)]
pub(crate) struct WireMessage<'a>(Vec<(u32, WireValue<'a>)>);

impl<'a> WireMessage<'a> {
    /// Splits a message into its fields. Returns `None` if the bytes are not a whole message.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let key = take_number(&mut rest)?;
            let number = u32::try_from(key >> WIRE_TYPE_BITS).ok().filter(|number| *number > 0)?;
            let value = match key & 7 {
                0 => WireValue::Number(take_number(&mut rest)?),
                1 => WireValue::Float(f64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?)),
                2 => {
                    let length = usize::try_from(take_number(&mut rest)?).ok()?;
                    WireValue::Bytes(take(&mut rest, length)?)
                }
                5 => {
                    take(&mut rest, 4)?;
                    WireValue::Other
                }
                _ => return None,
            };
            fields.push((number, value));
        }
        Some(Self(fields))
    }

    /// Returns the numbers of the fields.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(number, _)| *number)
    }

    /// Returns the texts in a field, which may be repeated. Bytes that are not a text are left out.
    pub(crate) fn texts(&self, number: u32) -> impl Iterator<Item = &'a str> {
        self.bytes(number).filter_map(|bytes| str::from_utf8(bytes).ok())
    }

    /// Returns the text in a field.
    pub(crate) fn text(&self, number: u32) -> Option<&'a str> {
        self.texts(number).last()
    }

    /// Returns the messages in a field, which may be repeated.
    pub(crate) fn messages(&self, number: u32) -> impl Iterator<Item = WireMessage<'a>> {
        self.bytes(number).filter_map(WireMessage::parse)
    }

    /// Returns the message in a field.
    pub(crate) fn message(&self, number: u32) -> Option<Self> {
        self.messages(number).last()
    }

    /// Returns the message below several fields.
    pub(crate) fn message_at(&self, path: &[u32]) -> Option<Self> {
        let (first, rest) = path.split_first()?;
        let message = self.message(*first)?;
        if rest.is_empty() { Some(message) } else { message.message_at(rest) }
    }

    /// Returns the number in a field.
    pub(crate) fn int(&self, number: u32) -> Option<i64> {
        self.0.iter().rev().find_map(|(known, value)| {
            let WireValue::Number(found) = value else { return None };
            (*known == number).then(|| found.cast_signed())
        })
    }

    /// Returns the numbers in a field, which may be repeated, one by one or packed.
    pub(crate) fn numbers_in(&self, number: u32) -> Vec<i64> {
        let mut numbers = Vec::new();
        for (_, value) in self.0.iter().filter(|(known, _)| *known == number) {
            match value {
                WireValue::Number(found) => numbers.push(found.cast_signed()),
                WireValue::Bytes(packed) => {
                    let mut rest = *packed;
                    while let Some(found) = take_number(&mut rest) {
                        numbers.push(found.cast_signed());
                    }
                }
                WireValue::Float(_) | WireValue::Other => {}
            }
        }
        numbers
    }

    /// Appends all texts of the message and of those inside it, each on a line of its own. Bytes that
    /// are neither a text nor a message are left out.
    pub(crate) fn append_texts(&self, out: &mut String) {
        append_texts(self, MAX_DEPTH, out);
    }

    /// Returns the bytes in a field, which may be repeated.
    pub(crate) fn bytes(&self, number: u32) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter_map(move |(known, value)| {
            let WireValue::Bytes(bytes) = value else { return None };
            (*known == number).then_some(*bytes)
        })
    }
}

fn append_texts(message: &WireMessage<'_>, depth: usize, out: &mut String) {
    for (_, value) in &message.0 {
        let WireValue::Bytes(bytes) = value else { continue };
        let text = str::from_utf8(bytes).ok();
        // The key of a message's first field is a control character or a character that texts
        // seldom begin with, and its length must fit.
        let looks_like_text = text.is_some_and(|text| {
            let has_control =
                |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}');
            !text.contains(has_control) && !text.starts_with(['\n', '\r'])
        });
        let inner = if looks_like_text || depth == 0 { None } else { WireMessage::parse(bytes) };
        match (inner, text) {
            (Some(inner), _) => append_texts(&inner, depth - 1, out),
            (None, Some(text)) if !text.is_empty() => {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(text);
            }
            (None, _) => {}
        }
    }
}

/// Returns a `google.protobuf.Struct` as JSON.
pub(crate) fn struct_json(fields: &WireMessage<'_>) -> Json {
    struct_value(fields, MAX_DEPTH)
}

fn struct_value(fields: &WireMessage<'_>, depth: usize) -> Json {
    let mut object = Map::new();
    for entry in fields.messages(1) {
        let value = entry.message(2).map_or(Json::Null, |value| json_value(&value, depth));
        object.insert(entry.text(1).unwrap_or("").to_owned(), value);
    }
    Json::Object(object)
}

/// Returns a `google.protobuf.Value` as JSON.
fn json_value(value: &WireMessage<'_>, depth: usize) -> Json {
    let Some(depth) = depth.checked_sub(1) else { return Json::Null };
    match value.0.first() {
        Some((2, WireValue::Float(number))) => Json::from(*number),
        Some((3, _)) => value.text(3).into(),
        Some((4, WireValue::Number(flag))) => Json::from(*flag != 0),
        Some((5, _)) => value.message(5).map_or(Json::Null, |inner| struct_value(&inner, depth)),
        Some((6, _)) => {
            let list = value.message(6).unwrap_or_default();
            list.messages(1).map(|item| json_value(&item, depth)).collect()
        }
        _ => Json::Null,
    }
}

/// Takes a number of variable length.
fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let [byte] = take(rest, 1)? else { return None };
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Takes `length` bytes.
fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{1: "Hi", 2: 300, 3: {1: "in", 2: {1: "deep"}}, 4: 1.5}`
    const BYTES: &[u8] =
        b"\x0a\x02Hi\x10\xac\x02\x1a\x0c\x0a\x02in\x12\x06\x0a\x04deep\x21\0\0\0\0\0\0\xf8\x3f";

    #[test]
    fn fields_are_found_by_their_numbers() {
        let message = WireMessage::parse(BYTES).expect("a message");
        assert_eq!(message.text(1), Some("Hi"));
        assert_eq!(message.int(2), Some(300));
        assert_eq!(message.message_at(&[3, 2]).and_then(|deep| deep.text(1)), Some("deep"));
        assert_eq!(message.numbers().collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(message.message(9).is_none() && message.int(1).is_none());
        assert_eq!(message.numbers_in(2), [300]);
        let packed = WireMessage::parse(b"\x12\x03\x05\xac\x02").expect("a message");
        assert_eq!(packed.numbers_in(2), [5, 300]);
        let mut text = String::new();
        message.append_texts(&mut text);
        assert_eq!(text, "Hi\nin\ndeep");
    }

    #[test]
    fn every_cut_is_no_message_or_a_shorter_one() {
        for end in 0..BYTES.len() {
            if let Some(message) = WireMessage::parse(&BYTES[..end]) {
                assert!(message.numbers().count() < 4);
            }
        }
        assert!(WireMessage::parse(&[0xff; 12]).is_none());
        assert!(WireMessage::parse(b"\x02\x00").is_none(), "no field has the number 0");
        assert!(WireMessage::parse(b"\x0a\xff\xff\xff\xff\x0f").is_none());
    }

    #[test]
    fn structs_become_json() {
        // {"a": {"string_value": "b"}, "n": {"number_value": 1.5}, "f": {"bool_value": true}}
        let bytes = b"\x0a\x08\x0a\x01a\x12\x03\x1a\x01b\x0a\x0e\x0a\x01n\x12\x09\x11\0\0\0\0\0\0\xf8\x3f\x0a\x07\x0a\x01f\x12\x02\x20\x01";
        let message = WireMessage::parse(bytes).expect("a message");
        assert_eq!(struct_json(&message), serde_json::json!({"a": "b", "n": 1.5, "f": true}));
    }
}
