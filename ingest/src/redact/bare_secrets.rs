//! Finds secrets that no anchor and no name announces but whose checksum identifies them: seed
//! phrases and keys of Bitcoin.
//!
//! Both are long, so only every 47th byte of a text is examined. Most of these bytes are in a word
//! that excludes both.

use super::scan::SecretScan;
use super::seed_phrase::{find_listed_word, may_be_listed};
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
#[derive(Debug, PartialEq, Eq)]
enum BareSecret {
    /// A key, which is a run from `start` to `end`.
    Key { start: usize, end: usize },
    /// A phrase with a word that ends here.
    Phrase { word_end: usize },
}

/// Masks the phrase or key that includes the byte at `at`.
fn examine_place(scan: &mut SecretScan<'_>, at: usize) {
    if is_in_other_word(scan.bytes(), at) {
        return;
    }
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

/// Returns true if the byte at `at` is in a word that no phrase and no key has, as most bytes are.
/// Examines sixteen bytes at once, and returns false if these do not decide.
fn is_in_other_word(text: &[u8], at: usize) -> bool {
    const ONES: u128 = u128::MAX / 0xff;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let window = at.checked_sub(MAX_WORD_BYTES).and_then(|start| text.get(start..));
    let Some(window) = window.and_then(<[u8]>::first_chunk::<{ 2 * MAX_WORD_BYTES }>) else {
        return false;
    };
    let bytes = u128::from_le_bytes(*window);
    let lower = bytes | (0x20 * ONES);
    // Adding 128 minus a letter sets the highest bit of bytes from that letter on.
    let low = lower & (0x7f * ONES);
    let from_a = low + (0x80 - u128::from(b'a')) * ONES;
    let beyond_z = low + (0x80 - u128::from(b'z') - 1) * ONES;
    let letters = from_a & !beyond_z & !bytes;

    // The letters from the examined one on, and those before it.
    let after = (!((letters >> 64) as u64) & HIGH).trailing_zeros() / 8;
    let before = (!(letters as u64) & HIGH).leading_zeros() / 8;
    let side = MAX_WORD_BYTES as u32;
    if after == 0 || after == side || before == side {
        return false;
    }
    let first = side - before;
    let byte_before = (bytes >> (8 * (first - 1))) as u8;
    let byte_behind = (bytes >> (8 * (side + after))) as u8;
    if byte_before == b'\\' || byte_before.is_ascii_digit() || byte_behind.is_ascii_digit() {
        return false;
    }
    let length = before + after;
    length > side || !may_be_listed((lower >> (8 * first)) as u64 & u64::MAX >> (64 - 8 * length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quick_look_excludes_no_candidate(
            words in proptest::collection::vec("[a-cA-C]{1,12}|[a-z0-9]{1,4}|zoo|Abandon|absolute|nzoo|é", 1..12),
            gaps in proptest::collection::vec("[ \\\\.,_@\\[0-9`{]{0,2}", 12),
        ) {
            let parts = words.iter().zip(&gaps);
            let text: String = parts.flat_map(|(word, gap)| [word.as_str(), gap.as_str()]).collect();
            let scan = SecretScan::new(&text, |_| Vec::new());
            for at in 0..text.len() {
                if is_in_other_word(text.as_bytes(), at) {
                    prop_assert_eq!(find_candidate(&scan, at), None, "{} at {}", text, at);
                }
            }
        }
    }

    #[test]
    fn most_words_need_no_second_look() {
        let text = "Pending modules rewrote those strings, whose parsers skipped trailing spaces.";
        let places = 8..text.len() - 8;
        let letters = places.clone().filter(|at| text.as_bytes()[*at].is_ascii_alphabetic());
        let decided = places.filter(|at| is_in_other_word(text.as_bytes(), *at));
        assert!(decided.count() * 10 > letters.count() * 8);
    }
}
