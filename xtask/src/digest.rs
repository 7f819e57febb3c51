//! Computes the integrity of a file as npm writes it: `sha512-` and the hash in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha512};

const PREFIX: &str = "sha512-";

/// Returns the integrity of these bytes.
pub(crate) fn compute_integrity(bytes: &[u8]) -> String {
    format!("{PREFIX}{}", STANDARD.encode(Sha512::digest(bytes)))
}

/// Returns true if `text` has the form of an integrity: a prefix and 64 bytes in base64.
pub(crate) fn is_integrity(text: &str) -> bool {
    let hash = text.strip_prefix(PREFIX).and_then(|hash| STANDARD.decode(hash).ok());
    hash.is_some_and(|hash| hash.len() == 64)
}

#[cfg(test)]
mod tests {
    use super::*;

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
