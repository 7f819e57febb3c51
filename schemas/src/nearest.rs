//! Finds the known word that is closest to a mistyped one, for "did you mean" messages.

/// Maximum number of characters of a mistyped word. Longer words are not mistyped names.
const MAX_WORD_CHARS: usize = 80;

/// Minimum number of characters of a word that counts as the beginning of a longer one.
const MIN_PREFIX_CHARS: usize = 3;

/// Maximum number of edits between a mistyped word and the word that was meant.
const MAX_EDITS: usize = 3;

/// Returns the word of `known` that is closest to `wanted`, if it is close enough to be the word
/// that was meant. It is close enough if it begins with `wanted`, or if a few edits turn `wanted`
/// into it; of several, the shortest. Returns `None` if no word is, or if `wanted` is too short or too long to be compared.
pub fn nearest<'k>(wanted: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let wanted = wanted.trim().to_lowercase();
    let length = wanted.chars().count();
    if !(2..=MAX_WORD_CHARS).contains(&length) {
        return None;
    }

    let max_edits = MAX_EDITS.min(1 + length / 5);
    known
        .into_iter()
        .map(|word| (count_edits(&wanted, length, &word.to_lowercase()), word))
        .filter(|(edits, _)| *edits <= max_edits)
        .min_by_key(|(edits, word)| (*edits, word.len()))
        .map(|(_, word)| word)
}

/// Returns the number of edits that turn `wanted`, which has `length` characters, into `word`. A
/// word that was cut short is as close as one that was mistyped once.
fn count_edits(wanted: &str, length: usize, word: &str) -> usize {
    if length >= MIN_PREFIX_CHARS && word.starts_with(wanted) {
        return 1;
    }
    strsim::osa_distance(wanted, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_and_shortened_words_are_known_others_are_not() {
        let names = ["user", "message", "tool_call", "tool_result", "search_events"];
        for (wanted, meant) in [
            ("tool", Some("tool_call")),
            ("toolcall", Some("tool_call")),
            ("Tool_Result", Some("tool_result")),
            ("serach_events", Some("search_events")),
            ("search", Some("search_events")),
            ("mesage", Some("message")),
            ("usr", Some("user")),
            ("colour", None),
            ("", None),
            ("u", None),
        ] {
            assert_eq!(nearest(wanted, names), meant, "{wanted}");
        }
    }
}
