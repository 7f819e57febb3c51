//! Writes the records of a store into a document, and reports the damaged ones.
//!
//! Only the decoder of the document can report a problem at its place. So a damaged record says in
//! the document what was wrong with it, and one that is not a JSON object is replaced:
//!
//! ```text
//! {"id":"prt_1","damage":{"kinds":["invalid_utf8"],"table":"part","name":"prt_1"},"type":...}
//! {"id":"prt_1","damage":{"kinds":["bad_json"],"table":"part","name":"prt_1"},
//!  "type":"unreadable_record","data":"{\"type\":~"}
//! ```

use std::fmt::Write as _;

use schemas::problem::ProblemKind;
use serde::de::IgnoredAny;
use serde_json::{Value as Json, json};

use crate::provider::shared::database::plain_name;
use crate::stream::{RecordAt, Stream};
use crate::text::json::{JsonFields, Value, repair_text, string_value};
use crate::text::render;

/// The type of a record that replaces one that is not a JSON object.
pub(super) const UNREADABLE_RECORD: &str = "unreadable_record";

/// The type of the fields of a message that is missing although it has parts.
pub(super) const MISSING_MESSAGE: &str = "missing_message";

/// Maximum size in bytes of the text that is kept of a record that is not a JSON object.
const MAX_KEPT_BYTES: usize = 16 << 10;

/// Maximum number of bytes by which a repair may enlarge a record, so that its document stays below
/// the size that was computed for it.
const MAX_REPAIR_BYTES: usize = 4 << 10;

/// The place where a record is stored.
#[derive(Clone, Copy)]
pub(super) enum RecordPlace<'p> {
    /// A row of a table, by the id of the row.
    Row { table: &'p str, id: &'p str },
    /// A file of a tree, by its path from the folder of the tree.
    File(&'p str),
}

/// Returns a record as JSON with `ids` inserted before its fields. Bytes that are not valid in JSON
/// are repaired. A record that is not a JSON object is replaced, so that only this record is lost.
pub(super) fn record_with_ids(data: &[u8], place: RecordPlace<'_>, ids: &[(&str, &str)]) -> String {
    let first = match str::from_utf8(data).map(object_fields) {
        Ok(Ok(fields)) => return join_fields(ids, None, fields),
        Ok(Err(kind)) => kind,
        Err(_) => ProblemKind::BadJson,
    };

    let (repaired, repairs) = repair_text(data);
    if !repairs.is_empty()
        && repaired.len() <= data.len() + MAX_REPAIR_BYTES
        && let Ok(fields) = object_fields(&repaired)
    {
        let kinds: Vec<ProblemKind> = repairs.iter().map(|(kind, _)| *kind).collect();
        return join_fields(ids, Some(&damage_field(&kinds, place)), fields);
    }

    let text = String::from_utf8_lossy(data);
    let kept = text.get(..render::truncation_point(&text, MAX_KEPT_BYTES)).unwrap_or_default();
    let fields = format!("\"type\":\"{UNREADABLE_RECORD}\",\"data\":{}", Json::from(kept));
    // The record has a type of its own.
    let ids: Vec<_> = ids.iter().copied().filter(|(key, _)| *key != "type").collect();
    join_fields(&ids, Some(&damage_field(&[first], place)), &fields)
}

/// Returns the fields of a message that is missing. `first_part` is the id of one of its parts.
pub(super) fn missing_message(ids: &[(&str, &str)], first_part: &str) -> String {
    let place = RecordPlace::Row { table: "part", id: first_part };
    let damage = damage_field(&[ProblemKind::IncompleteRecord], place);
    join_fields(ids, Some(&damage), &format!("\"type\":\"{MISSING_MESSAGE}\""))
}

/// Returns the text between the braces of a JSON object, or what is wrong with it.
fn object_fields(json: &str) -> Result<&str, ProblemKind> {
    if serde_json::from_str::<IgnoredAny>(json).is_err() {
        return Err(ProblemKind::BadJson);
    }
    let inner = json.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.ok_or(ProblemKind::NotAnObject)
}

/// Returns a JSON object of ids, damage and fields, which are the text between its braces.
fn join_fields(ids: &[(&str, &str)], damage: Option<&Json>, fields: &str) -> String {
    // Texts may be large, so this reserves space for one of them only.
    let mut record = String::with_capacity(fields.len() + 64 * (ids.len() + 4));
    record.push('{');
    for (key, id) in ids {
        let _ = write!(record, "\"{key}\":{},", Json::from(*id));
    }
    if let Some(damage) = damage {
        let _ = write!(record, "\"damage\":{damage},");
    }
    if fields.trim().is_empty() {
        record.truncate(record.trim_end_matches(',').len());
    }
    record.push_str(fields);
    record.push('}');
    record
}

/// Returns the field that says what was wrong with a record.
fn damage_field(kinds: &[ProblemKind], place: RecordPlace<'_>) -> Json {
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    match place {
        RecordPlace::Row { table, id } => json!({"kinds": kinds, "table": table, "name": id}),
        RecordPlace::File(name) => json!({"kinds": kinds, "name": name}),
    }
}

/// What each kind of damage did to a record. The text follows the name of the record.
const DAMAGES: &[(ProblemKind, &str)] = &[
    (
        ProblemKind::BadJson,
        "is not valid JSON, so only its text was kept, as a notification; \
         correct it or restore it from a copy",
    ),
    (
        ProblemKind::NotAnObject,
        "is not a JSON object, so only its text was kept, as a notification; \
         correct it or restore it from a copy",
    ),
    (ProblemKind::InvalidUtf8, "has invalid UTF-8, which was replaced"),
    (ProblemKind::ControlCharacters, "has raw control characters, which were escaped"),
    (ProblemKind::LoneSurrogate, "has half a surrogate pair, which was replaced"),
    (
        ProblemKind::IncompleteRecord,
        "belongs to a message that is missing, so the parts of this message were kept as \
         notifications; correct the ids or restore the database from a copy",
    ),
];

/// Reports what was wrong with a record of a document.
pub(super) fn report_damage(record: Value<'_>, at: RecordAt, out: &mut Stream) {
    let Some(damage) = record.object("damage") else { return };
    let name = plain_name(damage.text("name").unwrap_or(""));
    let place = match damage.text("table") {
        Some(table) => format!("row {name} of the table {}", plain_name(table)),
        None => format!("the file {name}"),
    };
    for kind in damage.items("kinds") {
        let known = string_value(kind)
            .and_then(|kind| DAMAGES.iter().find(|(known, _)| known.as_str() == kind));
        if let Some((kind, effect)) = known {
            out.push_problem(at, *kind, format!("{place} {effect}"));
        }
    }
}

/// Returns whether a record of a document replaces one that is not a JSON object.
pub(super) fn is_unreadable(record: Value<'_>) -> bool {
    record.text("type") == Some(UNREADABLE_RECORD)
}

/// Pushes a notification with the text of a record that is not a JSON object.
pub(super) fn push_unreadable(record: Value<'_>, out: &mut Stream) {
    out.push_shortened(UNREADABLE_RECORD, record.text("data").unwrap_or(""));
}

/// Reports a record without a field that every record of its kind has, or with a wrong value of it.
pub(super) fn report_missing_field(kind: &str, field: &str, at: RecordAt, out: &mut Stream) {
    let message = format!(
        "a {kind} has no valid field `{field}`, so a part of it was not read; \
         compare the record with a copy of the log"
    );
    out.push_problem(at, ProblemKind::IncompleteRecord, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(data: &[u8]) -> Json {
        let place = RecordPlace::Row { table: "part", id: "x\"" };
        let text = record_with_ids(data, place, &[("id", "x\""), ("type", "user")]);
        serde_json::from_str(&text).expect("json")
    }

    #[test]
    fn ids_are_before_the_fields() {
        let place = RecordPlace::File("part/p.json");
        let whole = |data: &str, ids: &[(&str, &str)]| record_with_ids(data.as_bytes(), place, ids);
        assert_eq!(whole(r#"{"a":1}"#, &[("id", "x\"")]), r#"{"id":"x\"","a":1}"#);
        assert_eq!(whole(" { } ", &[("id", "x")]), r#"{"id":"x" }"#);
        assert_eq!(whole("{}", &[]), "{}");
    }

    #[test]
    fn records_that_are_not_objects_are_replaced() {
        for (data, kind) in [
            (&b"[1]"[..], "not_an_object"),
            (b"", "bad_json"),
            (b"{bad", "bad_json"),
            (b"\0\xff", "bad_json"),
            (b"{\"a\":1}{\"a\":2}", "bad_json"),
        ] {
            let want = json!({"id": "x\"", "type": UNREADABLE_RECORD,
                "data": String::from_utf8_lossy(data),
                "damage": {"kinds": [kind], "table": "part", "name": "x\""}});
            assert_eq!(record(data), want);
        }
        let long = [b'~'; 1 << 20];
        assert_eq!(record(&long)["data"].as_str().map(str::len), Some(MAX_KEPT_BYTES));
    }

    #[test]
    fn repaired_records_are_kept() {
        for (data, text, kind) in [
            (&b"{\n\"a\":\"x\xffy\"}"[..], "x\u{fffd}y", "invalid_utf8"),
            (b"{\n\"a\":\"x\x01\ny\"}", "x\u{1}\ny", "control_characters"),
        ] {
            let record = record(data);
            assert_eq!(record["a"], text);
            assert_eq!(record["damage"]["kinds"], json!([kind]));
        }
        let controls = [b"{\"a\":\"", &[1; 1 << 20][..], b"\"}"].concat();
        assert_eq!(record(&controls)["type"], UNREADABLE_RECORD);
    }
}
