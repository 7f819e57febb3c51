//! Masks seed phrases of wallets: 12, 15, 18, 21 or 24 lower-case words after a word like
//! `mnemonic`.
//!
//! The words of the list of BIP 39 have three to eight letters, and none of them is an article or
//! a preposition. A sentence has such words, or shorter ones, long before twelve words have passed.

use super::placeholder::MASK;
use super::scan::{Rank, Scan};

/// Most bytes between the name and the first word.
const MAX_LINK: usize = 40;

/// Most bytes between two words: quotes, commas, the numbers of a list.
const MAX_BETWEEN: usize = 12;

/// Longest phrase, in bytes.
const MAX_PHRASE: usize = 640;

/// Possible numbers of words of a phrase, the largest first.
const COUNTS: &[usize] = &[24, 21, 18, 15, 12];

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
pub(super) fn find(scan: &mut Scan<'_>, at: usize) {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let mut name = at;
    while at - name < MAX_LINK && is_part(scan.before(name)) {
        name -= 1;
    }
    // The kind of a placeholder is not a name.
    if scan.slice(name.saturating_sub(MASK.len()), name) == MASK {
        return;
    }
    let text = scan.window(at, MAX_LINK + MAX_PHRASE);
    let Some(from) = phrase_begins(text) else { return };
    let (mut ends, mut here) = (Vec::new(), from);
    loop {
        let rest = text.get(here..).unwrap_or_default();
        let length = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let word = rest.get(..length).unwrap_or_default();
        let goes_on = rest.as_bytes().get(length).is_some_and(|byte| is_part(*byte));
        if !(3..=8).contains(&length) || goes_on || WORDS_OF_SENTENCES.contains(&word) {
            break;
        }
        here += length;
        ends.push(here);
        let between = rest.bytes().skip(length).take_while(|byte| is_separator(*byte)).count();
        if between == 0 || between > MAX_BETWEEN {
            break;
        }
        here += between;
    }
    // A longer run of words is a list of something else.
    let count = COUNTS.iter().find(|count| **count <= ends.len());
    if let Some(count) = count.filter(|count| ends.len() <= **count + 2)
        && let Some(end) = ends.get(count - 1)
    {
        scan.add(at + from, at + end, "seed_phrase", Rank::Around);
    }
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte.is_ascii_digit() || b"\"'`,\\.):>".contains(&byte)
}

/// Returns where the first word begins after the name, a sign and an opening quote: `mnemonic = "`,
/// `seed phrase is `, `MNEMONIC: [`.
fn phrase_begins(text: &str) -> Option<usize> {
    const SIGNS: &[&str] = &[":=", "=", ":", " is", " was", " are", "("];
    let bytes = text.as_bytes();
    let named = ["mnemonic", "phrase", "words", "seed"]
        .iter()
        .filter_map(|word| Some(text.get(..24)?.to_ascii_lowercase().find(word)? + word.len()))
        .max()?;
    let behind = bytes.iter().skip(named);
    let rest_of_name = behind
        .take_while(|byte| {
            byte.is_ascii_uppercase() || matches!(**byte, b'_' | b'"' | b'\'' | b'\\' | b'*')
        })
        .count();
    let after_name = named + rest_of_name;
    let blank =
        bytes.iter().skip(after_name).take_while(|byte| matches!(**byte, b' ' | b'\t')).count();
    let rest = text.get(after_name + blank..)?;
    let spaced = text.get(after_name..)?;
    let sign = SIGNS.iter().find_map(|sign| {
        let end = |text: &str, from| text.starts_with(sign).then_some(from + sign.len());
        end(spaced, after_name).or_else(|| end(rest, after_name + blank))
    });
    // `seed "word ..."`: quotes are a sign as well.
    let from = sign.or_else(|| rest.starts_with(['"', '\'']).then_some(after_name + blank))?;
    let opening = bytes
        .iter()
        .skip(from)
        .take_while(|byte| is_separator(**byte) || matches!(**byte, b'[' | b'(' | b'-' | b'*'));
    let begins = from + opening.count();
    (begins <= MAX_LINK + 24 && begins > from).then_some(begins).or_else(|| {
        (begins == from && text.as_bytes().get(from - 1).is_some_and(|byte| b"=:(".contains(byte)))
            .then_some(begins)
    })
}
