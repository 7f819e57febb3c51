//! Masks seed phrases of wallets: 12, 15, 18, 21 or 24 lower-case words after a word like
//! `mnemonic`.
//!
//! The words of the list of BIP 39 have three to eight letters, and none of them is an article or
//! a preposition. A sentence has such words, or shorter ones, long before twelve words have passed.

use super::placeholder::MASK;
use super::scan::{Rank, SecretScan, is_name_byte};
use super::value::is_blank;

/// Number of bytes in which the name is searched.
const NAME_WINDOW_BYTES: usize = 24;

/// Maximum length in bytes of a name around the word.
const MAX_NAME_BYTES: usize = 40;

/// Maximum offset in bytes of the first word from the start of the name.
const MAX_PHRASE_START: usize = 64;

/// Maximum number of bytes between two words: quotes, commas, the numbers of a list.
const MAX_BETWEEN_BYTES: usize = 12;

/// Number of bytes, from the start of the name, in which the phrase is read.
const PHRASE_WINDOW_BYTES: usize = 680;

/// Possible numbers of words of a phrase, the largest first.
const WORD_COUNTS: &[usize] = &[24, 21, 18, 15, 12];

/// Frequent words of sentences that are not in the list of BIP 39.
#[rustfmt::skip]
const WORDS_OF_SENTENCES: &[&str] = &[
    "the", "and", "for", "with", "are", "was", "were", "has", "from", "not", "but", "your", "its",
    "our", "their", "they", "them", "which", "where", "these", "those", "been", "being", "does",
    "did", "words", "phrase", "phrases", "mnemonic", "seed", "seeds", "using", "used", "uses",
    "must", "should", "would", "could", "than", "other", "some", "such", "each", "every", "into",
    "over", "more", "most", "only", "both", "because", "through", "returns", "valid", "string",
    "wallet", "wallets", "test", "tests", "file", "files", "null", "true", "false", "how", "who",
];

/// Masks the phrase after the name at `at`.
pub(super) fn mask_seed_phrase(scan: &mut SecretScan<'_>, at: usize) {
    if is_in_placeholder(scan, at) {
        return;
    }
    let text = scan.text_from(at, PHRASE_WINDOW_BYTES);
    let Some(phrase_start) = find_phrase_start(text) else { return };
    let word_ends = collect_word_ends(text, phrase_start);

    let Some(count) = WORD_COUNTS.iter().find(|count| **count <= word_ends.len()) else { return };
    // A longer run of words is a list of something else.
    if word_ends.len() > count + 2 {
        return;
    }
    if let Some(end) = word_ends.get(count - 1) {
        scan.add_secret(at + phrase_start, at + end, "seed_phrase", Rank::Around);
    }
}

/// Returns whether the name at `at` is the kind of a placeholder.
fn is_in_placeholder(scan: &SecretScan<'_>, at: usize) -> bool {
    let mut name = at;
    while at - name < MAX_NAME_BYTES && is_name_byte(scan.byte_before(name)) {
        name -= 1;
    }
    scan.has_text_before(name, MASK)
}

/// Returns the end of each word of the phrase that begins at `phrase_start`.
fn collect_word_ends(text: &str, phrase_start: usize) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut word_start = phrase_start;
    loop {
        let rest = text.get(word_start..).unwrap_or_default();
        let length = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let word = rest.get(..length).unwrap_or_default();
        let is_part_of_name = rest.as_bytes().get(length).is_some_and(|byte| is_name_byte(*byte));
        if !(3..=8).contains(&length) || is_part_of_name || WORDS_OF_SENTENCES.contains(&word) {
            return ends;
        }
        word_start += length;
        ends.push(word_start);

        let between = rest.bytes().skip(length).take_while(|byte| is_separator(*byte)).count();
        if between == 0 || between > MAX_BETWEEN_BYTES {
            return ends;
        }
        word_start += between;
    }
}

/// Returns whether the byte may separate two words of a phrase.
fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte.is_ascii_digit() || b"\"'`,\\.):>".contains(&byte)
}

/// Returns where the first word begins after the name, an assignment and an opening quote:
/// `mnemonic = "`, `seed phrase is `, `MNEMONIC: [`. `None` if the name or the assignment is
/// missing, if the assignment is the beginning of a longer word, or if the first word begins after
/// [`MAX_PHRASE_START`].
fn find_phrase_start(text: &str) -> Option<usize> {
    let window = text.get(..NAME_WINDOW_BYTES)?.to_ascii_lowercase();
    let name_ends = ["mnemonic", "phrase", "words", "seed"]
        .iter()
        .filter_map(|word| Some(window.find(word)? + word.len()));
    let name_end = name_ends.max()?;
    let after_name = end_of_run(text, name_end, |byte| {
        byte.is_ascii_uppercase() || matches!(byte, b'_' | b'"' | b'\'' | b'\\' | b'*')
    });
    let after_blanks = end_of_run(text, after_name, is_blank);

    let rest = text.get(after_blanks..)?;
    // `seed "word ..."`: quotes are an assignment as well.
    let assignment_end = match find_assignment_end(text, [after_name, after_blanks]) {
        Some(end) => end,
        None if rest.starts_with(['"', '\'']) => after_blanks,
        None => return None,
    };
    let first_word = end_of_run(text, assignment_end, |byte| {
        is_separator(byte) || matches!(byte, b'[' | b'(' | b'-' | b'*')
    });
    if first_word > assignment_end {
        return (first_word <= MAX_PHRASE_START).then_some(first_word);
    }
    // Nothing in between: ` is` may begin a longer word, `=`, `:` and `(` may not.
    let last_byte = text.as_bytes().get(assignment_end - 1);
    last_byte.is_some_and(|byte| b"=:(".contains(byte)).then_some(first_word)
}

/// Returns the end of the assignment that is at one of two places.
fn find_assignment_end(text: &str, places: [usize; 2]) -> Option<usize> {
    const ASSIGNMENTS: &[&str] = &[":=", "=", ":", " is", " was", " are", "("];
    for assignment in ASSIGNMENTS {
        for place in places {
            if text.get(place..)?.starts_with(assignment) {
                return Some(place + assignment.len());
            }
        }
    }
    None
}

/// Returns the end of the bytes from `at` on that fit.
fn end_of_run(text: &str, at: usize, fits: impl Fn(u8) -> bool) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| fits(**byte)).count()
}
