//! Masks private keys of Bitcoin in the wallet import format: base58 with a checksum, after a word
//! that announces a key.

use sha2::{Digest, Sha256};

use super::scan::{Rank, SecretScan};

/// Number of bytes that are read from the word on.
const MAX_DISTANCE_BYTES: usize = 160;

/// Lengths of a key in characters, without and with the mark of a compressed public key.
const KEY_LENGTHS: [usize; 2] = [51, 52];

/// Maximum length of a key in characters.
pub(super) const MAX_KEY_CHARS: usize = 52;

/// First characters of a key: of the network of Bitcoin and of its tests, without and with the mark
/// of a compressed public key.
const FIRST_CHARS: &[u8] = b"59KLc";

/// Maximum number of bytes that a word of [`MAX_KEY_CHARS`] digits of base58 decodes to.
const MAX_KEY_BYTES: usize = 39;

/// Masks the keys that follow the word at `at`.
pub(super) fn mask_bitcoin_keys(scan: &mut SecretScan<'_>, at: usize) {
    let text = scan.text_from(at, MAX_DISTANCE_BYTES);
    let mut word_start = 0;
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        if KEY_LENGTHS.contains(&word.len()) && is_key(word) {
            scan.add_secret(
                at + word_start,
                at + word_start + word.len(),
                "bitcoin_private_key",
                Rank::Shape,
            );
        }
        word_start += word.len();
        word_start +=
            text.get(word_start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    }
}

/// Masks the letters and digits from `start` to `end` if they are a key.
pub(super) fn mask_bare_key(scan: &mut SecretScan<'_>, start: usize, end: usize) {
    // The first letter may be that of an escape: `\nKx...`.
    let is_escape =
        scan.byte_before(start) == b'\\' && matches!(scan.byte(start), b'n' | b'r' | b't');
    let start = start + usize::from(is_escape);
    if KEY_LENGTHS.contains(&(end - start))
        && FIRST_CHARS.contains(&scan.byte(start))
        && is_key(scan.slice(start, end))
    {
        scan.add_secret(start, end, "bitcoin_private_key", Rank::Shape);
    }
}

/// Returns whether a word is a key: its first byte names the network, its last four bytes are the
/// checksum.
fn is_key(word: &str) -> bool {
    let mut bytes = [0; MAX_KEY_BYTES];
    let Ok(length) = bs58::decode(word).onto(&mut bytes) else { return false };
    let bytes = bytes.get(..length).unwrap_or_default();
    let Some((body, checksum)) = bytes.split_last_chunk::<4>() else { return false };
    let hash = Sha256::digest(Sha256::digest(body));
    matches!(body.len(), 33 | 34)
        && matches!(body.first(), Some(0x80 | 0xef))
        && hash.starts_with(checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_checksum() {
        // The key of the documentation of the format.
        let key = concat!("5HueCGU8rMjxEXxiPuD5BDku4MkFqe", "Zyd4dZ1jvhTVqvbTLvyTJ");
        assert!(is_key(key));
        assert!(!is_key(&key.replace("TJ", "TK")));
    }
}
