//! Tells the drift of a format: record types and fields that a decoder does not know. The lists of
//! what it knows are sorted.

use crate::json::Value;
use crate::stream::Stream;

/// Counts a record type that is not `known`.
pub(super) fn record(kind: &str, known: &[&str], out: &mut Stream) {
    if known.binary_search(&kind).is_err() {
        out.drift("record", kind);
    }
}

/// Counts the fields of an object that are not `known`.
pub(super) fn fields(object: Value<'_>, known: &[&str], out: &mut Stream) {
    for (field, _) in object.as_object().iter().flatten() {
        if known.binary_search(&field).is_err() {
            out.drift("field", field);
        }
    }
}
