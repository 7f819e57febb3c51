//! Encodes and decodes cursors. A cursor is opaque, bound to the call's other arguments, and based
//! on a position instead of an offset.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemas::{ErrorCode, ToolError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The content of a cursor.
#[derive(Serialize, Deserialize)]
struct CursorContent<P> {
    /// A hash of the arguments.
    b: String,
    /// The position.
    p: P,
}

/// The position where a page ended, and the number of matches on all pages so far.
#[derive(Serialize, Deserialize)]
pub struct PageEnd<P> {
    #[serde(rename = "a")]
    pub at: P,
    #[serde(rename = "n")]
    pub seen: usize,
}

/// Encodes a cursor at `position` that is valid only for the same `args`. `args` must not contain a
/// cursor.
pub fn encode<P: Serialize>(args: &impl Serialize, position: &P) -> String {
    let cursor = CursorContent { b: hash_arguments(args), p: position };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).unwrap_or_default())
}

/// Decodes the position of a cursor.
pub fn decode<P: DeserializeOwned>(args: &impl Serialize, cursor: &str) -> Result<P, ToolError> {
    let bytes = URL_SAFE_NO_PAD
        .decode(cursor.trim())
        .map_err(|_| invalid_cursor("it does not come from an earlier page"))?;
    let content: CursorContent<P> =
        serde_json::from_slice(&bytes).map_err(|_| other_call_error())?;
    if content.b != hash_arguments(args) {
        return Err(invalid_cursor("it belongs to a call with other arguments"));
    }
    Ok(content.p)
}

/// Returns the error for a cursor with a position of another kind.
pub fn other_call_error() -> ToolError {
    invalid_cursor("it belongs to another kind of call")
}

fn invalid_cursor(why: &str) -> ToolError {
    let message = format!(
        "cursor: {why}. Pass next_cursor of the previous page unchanged, with the same other arguments, or leave it out for the first page"
    );
    ToolError::new(ErrorCode::InvalidCursor, message).with_detail("field", "cursor")
}

/// Returns a hash of the arguments, to which a cursor is bound.
fn hash_arguments(args: &impl Serialize) -> String {
    let json = serde_json::to_vec(args).unwrap_or_default();
    format!("{:x}", xxh3_64(&json) >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_fits_its_own_call_only() {
        let cursor = encode(&("search", "a"), &(5, "x"));
        assert_eq!(
            decode::<(i64, String)>(&("search", "a"), &cursor).ok(),
            Some((5, "x".to_owned()))
        );
        for (args, text) in [
            (("search", "b"), cursor.as_str()),
            (("search", "a"), "nonsense!"),
            (("search", "a"), ""),
        ] {
            let error = decode::<(i64, String)>(&args, text).expect_err(text);
            assert_eq!(error.code, ErrorCode::InvalidCursor);
        }
        assert!(decode::<u8>(&("search", "a"), &cursor).is_err());
    }
}
