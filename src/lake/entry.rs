//! Hashes of what is published.

use std::fmt::Write as _;

use schemas::session::SessionRow;
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns a hash of everything that the objects of a session depend on: its row without the
/// bookkeeping of the store, the versions of what read and masked it, and how it is published.
pub(super) fn hash_row(row: &SessionRow, versions: [i64; 2], published_as: &str) -> String {
    let plain = SessionRow {
        row_start: 0,
        row_count: 0,
        live_from: 0,
        segment: 0,
        source_gone: false,
        ..row.clone()
    };
    let json = serde_json::to_string(&(&plain, versions, published_as)).unwrap_or_default();
    let mut hash = sha256(json.as_bytes());
    hash.truncate(32);
    hash
}
