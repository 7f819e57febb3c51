//! Finds secrets that no anchor and no name announces but whose checksum identifies them: seed
//! phrases and keys of Bitcoin.
//!
//! Both are long, so only every 47th byte of a text is examined. Most of these bytes are in a word
//! that excludes both.

use super::scan::SecretScan;
use super::seed_phrase::find_listed_word;
use super::{checksum_keys, seed_phrase};

/// Distance in bytes between two examined bytes. The shortest phrase has twelve words of three
/// letters and eleven blanks, and the shortest key has 51 characters.
const STRIDE: usize = 47;

/// Maximum number of bytes that are read on each side of an examined byte.
const MAX_SIDE_BYTES: usize = checksum_keys::MAX_KEY_CHARS + 1;

/// Maximum length of a word of a phrase in bytes.
const MAX_WORD_BYTES: usize = 8;

/// Masks the seed phrases and keys of a text.
pub(super) fn mask_bare_secrets(scan: &mut SecretScan<'_>) {
    let mut at = STRIDE - 1;
    while at < scan.len() {
        examine_place(scan, at);
        at += STRIDE;
    }
}

/// A key or phrase that may include an examined byte.
enum BareSecret {
    /// A key, which is a run from `start` to `end`.
    Key { start: usize, end: usize },
    /// A phrase with a word that ends here.
    Phrase { word_end: usize },
}

/// Masks the phrase or key that includes the byte at `at`.
fn examine_place(scan: &mut SecretScan<'_>, at: usize) {
    match find_candidate(scan, at) {
        Some(BareSecret::Key { start, end }) => checksum_keys::mask_bare_key(scan, start, end),
        Some(BareSecret::Phrase { word_end }) => seed_phrase::mask_bare_phrase(scan, word_end),
        None => {}
    }
}

/// Returns the candidate that includes the byte at `at`.
fn find_candidate(scan: &SecretScan<'_>, at: usize) -> Option<BareSecret> {
    // A run that ends within this many bytes on both sides is not a key.
    let near = MAX_WORD_BYTES + 2;
    let is_alphanumeric = |byte: u8| byte.is_ascii_alphanumeric();
    let mut start = scan.run_start(at, near, is_alphanumeric);
    let mut end = scan.skip_while(at, near, is_alphanumeric);
    if end - start > MAX_WORD_BYTES + 1 {
        if at - start < near && end - at < near {
            return None;
        }
        start = scan.run_start(start, MAX_SIDE_BYTES, is_alphanumeric);
        end = scan.skip_while(end, MAX_SIDE_BYTES, is_alphanumeric);
        return Some(BareSecret::Key { start, end });
    }

    // The byte may be between two words of a phrase.
    let word_end = if scan.byte(at).is_ascii_alphabetic() {
        scan.skip_while(at, MAX_WORD_BYTES, |byte| byte.is_ascii_alphabetic())
    } else {
        let before = seed_phrase::MAX_BETWEEN_BYTES;
        scan.run_start(at + 1, before, seed_phrase::is_bare_separator)
    };
    let word_start =
        scan.run_start(word_end, MAX_WORD_BYTES + 1, |byte| byte.is_ascii_alphabetic());
    if word_start < scan.phrase_end {
        return None;
    }
    let word = scan.slice(word_start, word_end).as_bytes();
    // The first letter may be that of an escape: `\nword`.
    let is_escaped = scan.byte_before(word_start) == b'\\';
    let is_listed = find_listed_word(word).is_some()
        || is_escaped && word.get(1..).and_then(find_listed_word).is_some();
    is_listed.then_some(BareSecret::Phrase { word_end })
}
