//! Masks private keys that have a checksum: those of Bitcoin in the wallet import format, which is
//! base58, and those of Nostr, which are bech32 words: `nsec1` and 58 digits.

use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use sha2::{Digest, Sha256};

use super::scan::SecretScan;

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
        if KEY_LENGTHS.contains(&word.len()) && is_bitcoin_key(word) {
            scan.add_secret(at + word_start, at + word_start + word.len());
        }
        word_start += word.len();
        word_start +=
            text.get(word_start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    }
}

/// Masks the letters and digits from `start` to `end` if they are a key.
pub(super) fn mask_bare_key(scan: &mut SecretScan<'_>, start: usize, end: usize) {
    // The first letter may be that of an escape: `\nKx...`.
    let start = start + usize::from(scan.is_escape_letter(start));
    if KEY_LENGTHS.contains(&(end - start))
        && FIRST_CHARS.contains(&scan.byte(start))
        && is_bitcoin_key(scan.slice(start, end))
    {
        scan.add_secret_of(start, end, "bitcoin_private_key");
    }
}

/// Returns whether a word is a key: its first byte names the network, its last four bytes are the
/// checksum.
fn is_bitcoin_key(word: &str) -> bool {
    let mut bytes = [0; MAX_KEY_BYTES];
    let Ok(length) = bs58::decode(word).onto(&mut bytes) else { return false };
    let bytes = bytes.get(..length).unwrap_or_default();
    let Some((body, checksum)) = bytes.split_last_chunk::<4>() else { return false };
    let hash = Sha256::digest(Sha256::digest(body));
    matches!(body.len(), 33 | 34)
        && matches!(body.first(), Some(0x80 | 0xef))
        && hash.starts_with(checksum)
}

/// The part of a key of Nostr before its digits.
const NOSTR_PREFIX: &str = "nsec1";

/// Number of digits of a key of Nostr with its checksum.
const NOSTR_DIGITS: usize = 58;

/// Masks the key of Nostr at `at` if its checksum is right.
pub(super) fn mask_nostr_key(scan: &mut SecretScan<'_>, at: usize) {
    let end = scan
        .skip_while(at + NOSTR_PREFIX.len(), NOSTR_DIGITS + 1, |byte| byte.is_ascii_alphanumeric());
    if scan.may_begin_token(at) && is_nostr_key(scan.slice(at, end)) {
        scan.add_secret(at, end);
    }
}

/// Returns whether a word is a key of Nostr with the right checksum.
fn is_nostr_key(word: &str) -> bool {
    word.len() == NOSTR_PREFIX.len() + NOSTR_DIGITS && CheckedHrpstring::new::<Bech32>(word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_checksum() {
        // The key of the documentation of the format.
        let key = concat!("5HueCGU8rMjxEXxiPuD5BDku4MkFqe", "Zyd4dZ1jvhTVqvbTLvyTJ");
        assert!(is_bitcoin_key(key));
        assert!(!is_bitcoin_key(&key.replace("TJ", "TK")));
        // The example of NIP-19.
        let key = concat!("nsec", "1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5");
        assert!(is_nostr_key(key));
        assert!(!is_nostr_key(&key.replace("vl02", "vl03")));
        assert!(!is_nostr_key(&key[..key.len() - 1]));
    }
}
