//! Finds the known word that is closest to a mistyped one, for "did you mean" messages.

/// Longest word in characters that counts as mistyped. Longer words are not mistyped names.
const MOST_CHARS: usize = 80;

/// Returns the word of `known` that is closest to `wanted`, if it is close enough to be the word
/// that was meant. It is if `wanted` is its beginning, or becomes the word by a few edits.
pub fn nearest<'k>(wanted: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let wanted = wanted.trim().to_lowercase();
    let length = wanted.chars().count();
    if !(2..=MOST_CHARS).contains(&length) {
        return None;
    }
    let most = 1 + length / 5;
    let distance = |word: &str| {
        let word = word.to_lowercase();
        // A word that was cut short is as close as one that was mistyped once.
        let cut_short = length >= 3 && word.starts_with(&wanted);
        if cut_short { 1 } else { strsim::osa_distance(&wanted, &word) }
    };
    let near = known.into_iter().map(|word| (distance(word), word));
    near.filter(|(distance, _)| *distance <= most.min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
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
