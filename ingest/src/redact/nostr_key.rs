//! Masks private keys of Nostr, which are bech32 words: `nsec1` and 58 digits, the last six of which
//! are a checksum.

use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;

use super::scan::{Rank, SecretScan};

/// The part of a key before its digits.
const PREFIX: &str = "nsec1";

/// Number of digits of a key with its checksum.
const KEY_DIGITS: usize = 58;

/// Masks the key at `at` if its checksum is right.
pub(super) fn mask_nostr_key(scan: &mut SecretScan<'_>, at: usize) {
    let end =
        scan.skip_while(at + PREFIX.len(), KEY_DIGITS + 1, |byte| byte.is_ascii_alphanumeric());
    if scan.may_begin_token(at) && is_key(scan.slice(at, end)) {
        scan.add_secret(at, end, "nostr_key", Rank::Shape);
    }
}

/// Returns whether a word is a key with the right checksum.
fn is_key(word: &str) -> bool {
    word.len() == PREFIX.len() + KEY_DIGITS && CheckedHrpstring::new::<Bech32>(word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_checksum() {
        // The example of NIP-19.
        let key = concat!("nsec", "1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5");
        assert!(is_key(key));
        assert!(!is_key(&key.replace("vl02", "vl03")));
        assert!(!is_key(&key[..key.len() - 1]));
    }
}
