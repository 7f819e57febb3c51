//! Writes a cell of a database as JSON, and reads it again.

use std::borrow::Cow;
use std::io::{self, Read as _};

use rusqlite::types::{Value, ValueRef};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use super::document::{CellKind, invalid_data};
use crate::source::container::MAX_DOCUMENT_BYTES;
use crate::text::names::{decode_hex, encode_hex};

/// Level of compression of text that was compressed in the database.
const LEVEL: i32 = 3;

/// The first bytes of text that is compressed with Zstandard.
const ZSTD_START: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Writes a cell. `is_text_only` says whether compressed text is written as text, and other bytes are an
/// error.
pub(super) fn encode(value: Value, is_text_only: bool) -> io::Result<(Json, Option<CellKind>)> {
    Ok(match value {
        Value::Null => (Json::Null, None),
        Value::Integer(number) => (number.into(), None),
        Value::Real(number) => (number.to_string().into(), Some(CellKind::Real)),
        Value::Text(text) => (text.into(), None),
        Value::Blob(bytes) => match String::from_utf8(bytes) {
            Ok(text) => (text.into(), Some(CellKind::Utf8)),
            Err(error) if is_text_only => {
                let text = unpack_text(error.as_bytes());
                let text =
                    text.ok_or_else(|| invalid_data("a cell has bytes that are not text"))?;
                (text.into(), Some(CellKind::Zstd))
            }
            Err(error) => (encode_hex(error.as_bytes()).into(), Some(CellKind::Hex)),
        },
    })
}

/// Writes a cell in which secrets are searched, and which is compared. Bytes without text are written as
/// their hash.
pub(super) fn encode_legible(value: Value) -> io::Result<(Json, Option<CellKind>)> {
    let Value::Blob(bytes) = &value else { return encode(value, true) };
    let hash = format!("{:016x}", xxh3_64(bytes));
    Ok(encode(value, true).unwrap_or_else(|_| (hash.into(), Some(CellKind::Hash))))
}

/// Returns the text of a cell: of text, and of bytes that are text or compressed text.
pub(super) fn text_of(cell: ValueRef<'_>) -> Option<Cow<'_, str>> {
    match cell {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Some(text.into()),
            Err(_) => unpack_text(bytes).map(Cow::Owned),
        },
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    }
}

/// Returns the text of compressed bytes. `None` if they are not compressed text.
fn unpack_text(bytes: &[u8]) -> Option<String> {
    if !bytes.starts_with(&ZSTD_START) {
        return None;
    }
    let mut text = Vec::new();
    let unpacked = zstd::stream::read::Decoder::new(bytes).ok()?;
    unpacked.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut text).ok()?;
    let is_whole = text.len() as u64 <= MAX_DOCUMENT_BYTES;
    String::from_utf8(text).ok().filter(|_| is_whole)
}

/// Reads a cell.
pub(super) fn decode(cell: &Json, kind: Option<CellKind>) -> io::Result<Value> {
    let invalid = || invalid_data("a cell is not valid");
    Ok(match (cell, kind) {
        (Json::Null, None) => Value::Null,
        (Json::Number(number), None) => Value::Integer(number.as_i64().ok_or_else(invalid)?),
        (Json::String(text), None) => Value::Text(text.clone()),
        (Json::String(text), Some(kind)) => match kind {
            CellKind::Real => Value::Real(text.parse().map_err(|_| invalid())?),
            CellKind::Utf8 => Value::Blob(text.as_bytes().to_vec()),
            CellKind::Zstd => Value::Blob(zstd::bulk::compress(text.as_bytes(), LEVEL)?),
            CellKind::Hex => Value::Blob(decode_hex(text).ok_or_else(invalid)?),
            CellKind::Hash => return Err(invalid()),
        },
        _ => return Err(invalid()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_read_as_it_was_written() {
        let packed = zstd::bulk::compress("text \u{1f6a2}".repeat(9).as_bytes(), LEVEL);
        for value in [
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Real(0.1),
            Value::Real(-3.0),
            Value::Real(f64::INFINITY),
            Value::Text("{\"a\":1}".to_owned()),
            Value::Blob(Vec::new()),
            Value::Blob(b"text".to_vec()),
            Value::Blob(vec![0, 0xff, 0x80]),
            Value::Blob(packed.expect("packs")),
        ] {
            let (cell, kind) = encode(value.clone(), false).expect("encodes");
            let json = serde_json::to_string(&cell).expect("JSON");
            let cell: Json = serde_json::from_str(&json).expect("JSON");
            assert_eq!(decode(&cell, kind).expect("decodes"), value, "{json}");
        }
        assert!(encode(Value::Blob(vec![0xff]), true).is_err());
        let packed = zstd::bulk::compress("text".as_bytes(), LEVEL).expect("packs");
        let (cell, kind) = encode(Value::Blob(packed.clone()), true).expect("encodes");
        assert_eq!((&cell, kind), (&Json::from("text"), Some(CellKind::Zstd)));
        assert_eq!(decode(&cell, kind).expect("decodes"), Value::Blob(packed));
        for (bad, kind) in [
            ("true", None),
            ("[]", None),
            ("1.5", None),
            ("1", Some(CellKind::Real)),
            (r#""abc""#, Some(CellKind::Hex)),
            (r#""é1""#, Some(CellKind::Hex)),
        ] {
            assert!(decode(&serde_json::from_str(bad).expect("JSON"), kind).is_err(), "{bad}");
        }
    }
}
