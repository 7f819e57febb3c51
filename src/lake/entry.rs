//! Hashes of what is published.

use ingest::text::names::encode_hex;
use schemas::session::SessionRow;
use sha2::{Digest as _, Sha256};

use store::KEY_DIGITS;

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    encode_hex(Sha256::digest(bytes))
}

/// Returns the hash in the keys of objects of these bytes that a machine publishes.
pub(super) fn hash_in_key<'b>(machine_id: &str, bytes: impl Iterator<Item = &'b [u8]>) -> String {
    let mut all = Sha256::new();
    all.update(machine_id);
    for part in bytes {
        all.update((part.len() as u64).to_le_bytes());
        all.update(part);
    }
    let mut text = encode_hex(all.finalize());
    text.truncate(KEY_DIGITS);
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
