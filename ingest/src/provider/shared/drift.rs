//! Detects drift of a format: record types and fields that a decoder does not know. The lists of
//! known names are sorted.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::stream::Stream;
use crate::text::json::Value;
use crate::text::render;

/// Maximum number of object shapes that are remembered.
const MAX_SHAPES: usize = 1024;

/// Counts a record type that is not in `known`.
pub(crate) fn count_unknown_type(kind: &str, known: &[&str], out: &mut Stream) {
    if known.binary_search(&kind).is_err() {
        out.count_unknown("record", kind);
    }
}

/// Counts the type of what a record of the type `kind` wraps, unless it is in `known`.
pub(crate) fn count_unknown_inner(kind: &str, inner: &str, known: &[&str], out: &mut Stream) {
    if known.binary_search(&inner).is_err() {
        out.count_unknown("record", &format!("{kind}/{inner}"));
    }
}

/// Counts a block of an unknown kind and pushes its fields as a notification.
pub(crate) fn push_unknown_block(kind: &str, block: Value<'_>, out: &mut Stream) {
    out.count_unknown("block", kind);
    push_fields(kind, block, &["type"], out);
}

/// Counts a record of an unknown kind and pushes its fields, except those in `skip`, as a notification.
pub(crate) fn push_unknown_record(
    kind: Option<&str>,
    record: Value<'_>,
    skip: &[&str],
    out: &mut Stream,
) {
    let kind = kind.unwrap_or("untyped");
    out.count_unknown("record", kind);
    push_fields(kind, record, skip, out);
}

fn push_fields(kind: &str, object: Value<'_>, skip: &[&str], out: &mut Stream) {
    let mut text = String::new();
    render::append_notification(object, skip, &mut text);
    out.push_notification(kind, &text);
}

/// Counts the fields of an object that are not in `known`. Most objects have the same fields as an
/// earlier one. Comparing a hash of the fields is faster than looking each of them up.
pub(crate) fn count_unknown_fields(object: Value<'_>, known: &[&str], out: &mut Stream) {
    let Some(object) = object.as_object() else { return };
    // The address of `known` tells the shapes of different lists apart.
    let mut shape = known.as_ptr().addr() as u64;
    for (field, _) in &object {
        shape = xxh3_64_with_seed(field.as_bytes(), shape);
    }
    if out.shapes.contains(&shape) {
        return;
    }

    let mut has_unknown = false;
    for (field, _) in &object {
        if known.binary_search(&field).is_err() {
            has_unknown = true;
            out.count_unknown("field", field);
        }
    }
    if !has_unknown && out.shapes.len() < MAX_SHAPES {
        out.shapes.insert(shape);
    }
}
