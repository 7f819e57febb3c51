//! Masks private keys of Nostr, which are bech32 words: `nsec1` and 58 digits, the last six of which
//! are a checksum.

use super::scan::{Rank, SecretScan};

/// The part of a key before its digits.
const PREFIX: &str = "nsec1";

/// The digits of bech32, in the order of their values.
const DIGITS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// Number of digits of a key with its checksum.
const KEY_DIGITS: usize = 58;

/// Factors of the checksum.
const GENERATORS: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];

/// Masks the key at `at` if its checksum is right.
pub(super) fn mask_nostr_key(scan: &mut SecretScan<'_>, at: usize) {
    let start = at + PREFIX.len();
    let end = scan.skip_while(start, KEY_DIGITS + 1, |byte| byte.is_ascii_alphanumeric());
    if scan.may_begin_token(at) && has_checksum(scan.slice(start, end)) {
        scan.add_secret(at, end, "nostr_key", Rank::Shape);
    }
}

/// Returns whether the digits after [`PREFIX`] are a key with the right checksum.
fn has_checksum(digits: &str) -> bool {
    if digits.len() != KEY_DIGITS {
        return false;
    }
    let mut checksum = 1;
    let name = PREFIX.trim_end_matches('1').bytes();
    for byte in name.clone() {
        checksum = next_checksum(checksum, u32::from(byte >> 5));
    }
    checksum = next_checksum(checksum, 0);
    for byte in name {
        checksum = next_checksum(checksum, u32::from(byte & 31));
    }
    for digit in digits.bytes() {
        let found = DIGITS.iter().zip(0..).find(|(known, _)| **known == digit);
        let Some((_, value)) = found else { return false };
        checksum = next_checksum(checksum, value);
    }
    checksum == 1
}

/// Returns the checksum after one more value of five bits.
fn next_checksum(checksum: u32, value: u32) -> u32 {
    let high = checksum >> 25;
    let mut next = ((checksum & 0x01ff_ffff) << 5) ^ value;
    for (bit, generator) in GENERATORS.iter().enumerate() {
        if (high >> bit) & 1 == 1 {
            next ^= generator;
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_checksum() {
        // The example of NIP-19.
        let key = "vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
        assert!(has_checksum(key));
        assert!(!has_checksum(&key.replace("vl02", "vl03")));
        assert!(!has_checksum(&key[1..]));
    }
}
