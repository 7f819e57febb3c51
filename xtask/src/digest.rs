//! Computes the integrity of a file as npm writes it: `sha512-` and the hash in base64.

use sha2::{Digest, Sha512};

const PREFIX: &str = "sha512-";

/// Number of characters of 64 bytes in base64, without the padding.
const HASH_CHARS: usize = 86;

/// Returns the integrity of these bytes.
pub(crate) fn compute_integrity(bytes: &[u8]) -> String {
    format!("{PREFIX}{}", encode_base64(&Sha512::digest(bytes)))
}

/// Returns true if `text` has the form of an integrity: a prefix and 64 bytes in base64.
pub(crate) fn is_integrity(text: &str) -> bool {
    let hash = text.strip_prefix(PREFIX).and_then(|hash| hash.strip_suffix("=="));
    hash.is_some_and(|hash| hash.len() == HASH_CHARS && hash.bytes().all(is_base64_char))
}

fn is_base64_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

/// Encodes bytes in base64.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    const CODE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut bits = 0_u32;
        for at in 0..3 {
            bits = bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0));
        }
        for at in 0..4 {
            let code = char::from(CODE[(bits >> (18 - 6 * at)) as usize & 63]);
            text.push(if at <= chunk.len() { code } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, coded) in cases {
            assert_eq!(encode_base64(plain.as_bytes()), coded);
        }
        assert_eq!(encode_base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn integrity_is_npms() {
        let want = "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1\
                    EI2Q86A4qmslPpUyknw==";
        assert_eq!(compute_integrity(b"abc"), want);
        assert!(is_integrity(want));
        assert!(!is_integrity("sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="));
        assert!(!is_integrity(&want.replace('3', "-")));
    }
}
