//! Masks seed phrases of wallets: 12, 15, 18, 21 or 24 lower-case words after a word like
//! `mnemonic`.
//!
//! The words of the list of BIP 39 have three to eight letters, and none of them is an article or
//! a preposition. A sentence has such words, or shorter ones, long before twelve words have passed.

use std::collections::HashMap;
use std::sync::LazyLock;

use bip39::{Language, Mnemonic};

use super::scan::{MASK, SecretScan, is_blank, is_name_byte};

/// Number of bytes in which the name is searched.
const NAME_WINDOW_BYTES: usize = 24;

/// Maximum length in bytes of a name around the word.
const MAX_NAME_BYTES: usize = 40;

/// Maximum offset in bytes of the first word from the start of the name.
const MAX_PHRASE_START: usize = 64;

/// Maximum number of bytes between two words: quotes, commas, the numbers of a list.
pub(super) const MAX_BETWEEN_BYTES: usize = 12;

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
        scan.add_secret(at + phrase_start, at + end);
    }
}

/// Returns whether the name at `at` is the kind of a placeholder.
fn is_in_placeholder(scan: &SecretScan<'_>, at: usize) -> bool {
    scan.has_text_before(scan.run_start(at, MAX_NAME_BYTES, is_name_byte), MASK)
}

/// Length of the longest word of the list in bytes.
const MAX_LISTED_BYTES: usize = 8;

/// The words of the list by their letters, with zeros behind them.
static LISTED_WORDS: LazyLock<HashMap<[u8; MAX_LISTED_BYTES], &'static str>> =
    LazyLock::new(|| {
        let words = Language::English.word_list().iter();
        words.filter_map(|word| Some((listed_key(word.as_bytes())?, *word))).collect()
    });

/// Returns the key of a word in the list; `None` if it is longer than any of them.
fn listed_key(word: &[u8]) -> Option<[u8; MAX_LISTED_BYTES]> {
    let mut key = [0; MAX_LISTED_BYTES];
    key.get_mut(..word.len())?.copy_from_slice(word);
    key.make_ascii_lowercase();
    Some(key)
}

/// Returns the word of the list that equals `word` in upper or lower case.
pub(super) fn find_listed_word(word: &[u8]) -> Option<&'static str> {
    LISTED_WORDS.get(&listed_key(word)?).copied()
}

/// Returns whether words of the list are a phrase: the last one contains the right checksum.
pub(super) fn is_phrase(words: &[&str]) -> bool {
    Mnemonic::parse_in_normalized(Language::English, &words.join(" ")).is_ok()
}

/// Maximum number of words of the list before a phrase and after it, such as those of a sentence.
const MAX_OTHER_WORDS: usize = 4;

/// Maximum number of words that are read on each side of a word.
const MAX_SIDE_WORDS: usize = 24 + MAX_OTHER_WORDS;

/// A word of the list of BIP 39 in a text. Positions are in bytes.
struct PhraseWord {
    start: usize,
    end: usize,
    word: &'static str,
}

/// Masks the phrase that includes the word that ends at `word_end`, with nothing that announces it.
/// All its words are in the list, the same signs separate them, and its checksum is right.
pub(super) fn mask_bare_phrase(scan: &mut SecretScan<'_>, word_end: usize) {
    let words = words_around(scan, word_end);
    let Some(last) = words.last() else { return };
    scan.phrase_end = last.end;
    for count in WORD_COUNTS {
        // A longer run of words is a list of something else.
        if words.len() > count + MAX_OTHER_WORDS {
            return;
        }
        for phrase in words.windows(*count) {
            let texts: Vec<&str> = phrase.iter().map(|word| word.word).collect();
            if !texts.is_sorted() && has_same_separators(scan, phrase) && is_phrase(&texts) {
                let (Some(first), Some(last)) = (phrase.first(), phrase.last()) else { return };
                scan.add_secret(first.start, last.end);
                return;
            }
        }
    }
}

/// Returns the words of the list around the word that ends at `word_end`, in their order.
fn words_around(scan: &SecretScan<'_>, word_end: usize) -> Vec<PhraseWord> {
    let mut words = Vec::new();
    let mut end = word_end;
    while words.len() < MAX_SIDE_WORDS
        && let Some(word) = listed_word_before(scan, end)
    {
        // The letter of an escape is before the word: `\nword`.
        let is_escaped = scan.byte_before(word.start).is_ascii_alphanumeric();
        let lead = word.start - usize::from(is_escaped);
        end = scan.run_start(lead, MAX_BETWEEN_BYTES, is_bare_separator);
        words.push(word);
        if end == lead {
            break;
        }
    }
    words.reverse();

    let mut at = word_end;
    while words.len() < 2 * MAX_SIDE_WORDS {
        let mut start = scan.skip_while(at, MAX_BETWEEN_BYTES, is_bare_separator);
        if scan.is_escape_letter(start) {
            start = scan.skip_while(start + 1, MAX_BETWEEN_BYTES, is_bare_separator);
        }
        let end = scan.skip_while(start, 9, |byte| byte.is_ascii_alphabetic());
        let Some(word) = find_listed_word(scan.slice(start, end).as_bytes()) else { break };
        if start == at || scan.byte(end).is_ascii_alphanumeric() {
            break;
        }
        words.push(PhraseWord { start, end, word });
        at = end;
    }
    words
}

/// Returns the word of the list that ends at `end`, without the letter of an escape before it.
fn listed_word_before(scan: &SecretScan<'_>, end: usize) -> Option<PhraseWord> {
    let start = scan.run_start(end, 9, |byte| byte.is_ascii_alphabetic());
    if scan.byte_before(start) == b'\\'
        && let Some(word) = find_listed_word(scan.slice(start + 1, end).as_bytes())
    {
        return Some(PhraseWord { start: start + 1, end, word });
    }
    let word = find_listed_word(scan.slice(start, end).as_bytes())?;
    let is_whole = !scan.byte_before(start).is_ascii_alphanumeric();
    is_whole.then_some(PhraseWord { start, end, word })
}

/// Returns whether the same signs are between all words, apart from blanks, numbers and escapes.
fn has_same_separators(scan: &SecretScan<'_>, words: &[PhraseWord]) -> bool {
    let mut first_signs: Option<Vec<u8>> = None;
    for pair in words.windows(2) {
        let [before, after] = pair else { continue };
        let between = scan.slice(before.end, after.start).as_bytes();
        let signs: Vec<u8> = between
            .iter()
            .copied()
            .filter(|byte| byte.is_ascii_punctuation() && *byte != b'\\')
            .collect();
        if first_signs.get_or_insert_with(|| signs.clone()) != &signs {
            return false;
        }
    }
    true
}

/// Whether each byte may separate two words of a phrase that nothing announces. Many bytes are
/// examined, so this is a table.
const BARE_SEPARATORS: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < BARE_SEPARATOR_BYTES.len() {
        table[BARE_SEPARATOR_BYTES[at] as usize] = true;
        at += 1;
    }
    table
};

/// Blanks, digits, and the signs of [`is_separator`] and of lists, tables and diffs.
const BARE_SEPARATOR_BYTES: &[u8] = b" \t\n\r\x0c0123456789\"'`,\\.):>+-|*[](;/_";

/// Returns whether the byte may separate two words of a phrase that nothing announces.
pub(super) fn is_bare_separator(byte: u8) -> bool {
    BARE_SEPARATORS[usize::from(byte)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_separators_are_bare_separators_too() {
        for byte in 0..=u8::MAX {
            assert!(!is_separator(byte) || is_bare_separator(byte), "{byte}");
        }
    }

    #[test]
    fn words_are_found_in_any_case() {
        for word in Language::English.word_list() {
            assert_eq!(find_listed_word(word.as_bytes()), Some(*word));
        }
        assert_eq!(find_listed_word(b"Zoo"), Some("zoo"));
        for other in ["", "the", "aband", "abandonment"] {
            assert_eq!(find_listed_word(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_phrase_has_a_checksum() {
        let is_phrase = |phrase: &str| is_phrase(&phrase.split(' ').collect::<Vec<_>>());
        // The phrases of the test vectors of BIP 39.
        assert!(is_phrase(
            "legal winner thank year wave sausage worth useful legal winner thank yellow"
        ));
        assert!(is_phrase(
            "letter advice cage absurd amount doctor acoustic avoid letter advice cage absurd \
             amount doctor acoustic avoid letter advice cage absurd amount doctor acoustic bless"
        ));
        assert!(!is_phrase(
            "legal winner thank year wave sausage worth useful legal winner yellow thank"
        ));
    }
}
