//! Detects drift of a format: record types and fields that a decoder does not know. The lists of
//! known names are sorted.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::stream::Stream;
use crate::text::json::Value;

/// Maximum number of object shapes that are remembered.
const MOST_SHAPES: usize = 1024;

/// Counts a record type that is not in `known`.
pub(crate) fn record(kind: &str, known: &[&str], out: &mut Stream) {
    if known.binary_search(&kind).is_err() {
        out.drift("record", kind);
    }
}

/// Counts the fields of an object that are not in `known`. Most objects have the same fields as an
/// earlier one. Comparing a hash of the fields is faster than looking each of them up.
pub(crate) fn fields(object: Value<'_>, known: &[&str], out: &mut Stream) {
    let Some(object) = object.as_object() else { return };
    let fields = || object.iter().map(|(field, _)| field);
    let list = known.as_ptr().addr() as u64;
    let shape = fields().fold(list, |hash, field| xxh3_64_with_seed(field.as_bytes(), hash));
    if out.shapes.contains(&shape) {
        return;
    }
    let unknown: Vec<&str> = fields().filter(|field| known.binary_search(field).is_err()).collect();
    if unknown.is_empty() && out.shapes.len() < MOST_SHAPES {
        out.shapes.insert(shape);
    }
    unknown.into_iter().for_each(|field| out.drift("field", field));
}
