//! Notices token counts in parts of a record that its decoder does not know. The tokens of such a
//! session are not all counted.

use simd_json::prelude::*;

use crate::stream::{Stream, UnknownItem};
use crate::text::json::{JsonFields, Value};

/// Endings of the names of fields that count tokens.
const COUNT_ENDINGS: &[&str] = &["tokens", "Tokens", "token_count", "TokenCount"];

/// Maximum depth at which counts are searched.
const MAX_DEPTH: usize = 6;

/// Lowers the confidence of a session if `record` has token counts in a part that its decoder
/// reported as unknown.
pub(super) fn note_unknown_usage(record: Value<'_>, out: &mut Stream) {
    for unknown in out.take_unknown_items() {
        let has_counts = match &unknown {
            UnknownItem::Field(name) => find_field(record, name)
                .is_some_and(|value| is_count(name, value) || has_token_counts(value, 0)),
            UnknownItem::Record(_) => has_token_counts(record, 0),
        };
        if has_counts {
            out.note_uncounted_usage(&unknown);
        }
    }
}

/// Returns the field of this name of a record, or of an object in it whose fields decoders check.
fn find_field<'v>(record: Value<'v>, name: &str) -> Option<Value<'v>> {
    let message = record.object("message");
    let usage = message.and_then(|message| message.object("usage"));
    let objects = [Some(record), record.object("payload"), message, usage];
    objects.into_iter().flatten().find_map(|object| object.field(name))
}

/// Returns whether a field counts tokens that were used. Limits begin with "max".
fn is_count(name: &str, value: Value<'_>) -> bool {
    let is_named_so = COUNT_ENDINGS.iter().any(|ending| name.ends_with(ending));
    is_named_so && !name.starts_with("max") && value.as_i64().is_some_and(|count| count > 0)
}

/// Returns whether a value contains fields that count tokens.
fn has_token_counts(value: Value<'_>, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    if let Some(object) = value.as_object() {
        return object
            .iter()
            .any(|(name, value)| is_count(name, value) || has_token_counts(value, depth + 1));
    }
    let Some(list) = value.as_array() else { return false };
    list.iter().any(|value| has_token_counts(value, depth + 1))
}
