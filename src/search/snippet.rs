//! Cuts out the text around a match.

use schemas::limits::SNIPPET_CHARS;

/// A piece of text, and the number of characters omitted before and after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    pub text: String,
    pub omitted: [usize; 2],
}

/// Cuts about [`SNIPPET_CHARS`] characters of `text` around the bytes `start..end`, at character
/// boundaries; the match is always whole unless it is longer than a snippet.
pub fn cut_snippet(text: &str, start: usize, end: usize) -> Snippet {
    let match_start = text.floor_char_boundary(start.min(text.len()));
    let match_end = text.ceil_char_boundary(end.clamp(match_start, text.len()));

    let match_chars = text[match_start..match_end].chars().count().min(SNIPPET_CHARS);
    let room = SNIPPET_CHARS - match_chars;
    let before_chars = text[..match_start].chars().count();
    let after_chars = text[match_end..].chars().count();
    // A third goes before the match and the rest after it; room that one side does not need goes to
    // the other.
    let before = before_chars.min((room / 3).max(room.saturating_sub(after_chars)));
    let kept = match_chars + room - before;

    let snippet_start = text[..match_start]
        .char_indices()
        .rev()
        .take(before)
        .last()
        .map_or(match_start, |(at, _)| at);
    let rest = &text[snippet_start..];
    let length = rest.char_indices().nth(before + kept).map_or(rest.len(), |(at, _)| at);
    let piece = &rest[..length];
    Snippet {
        text: piece.to_owned(),
        omitted: [before_chars - before, rest[length..].chars().count()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_texts_are_whole() {
        let snippet = cut_snippet("a short text", 2, 7);
        assert_eq!(snippet, Snippet { text: "a short text".into(), omitted: [0, 0] });
    }

    proptest! {
        #[test]
        fn contains_the_match_and_counts_what_it_leaves_out(
            before in "[aé日\n]{0,400}", needle in "[xß]{1,20}", after in "[aé日\n]{0,400}",
        ) {
            let text = format!("{before}{needle}{after}");
            let snippet = cut_snippet(&text, before.len(), before.len() + needle.len());
            prop_assert!(snippet.text.contains(&needle));
            let chars = snippet.text.chars().count();
            prop_assert!(chars <= SNIPPET_CHARS);
            prop_assert_eq!(chars + snippet.omitted[0] + snippet.omitted[1], text.chars().count());
            let start: String = text.chars().skip(snippet.omitted[0]).take(chars).collect();
            prop_assert_eq!(start, snippet.text);
        }
    }
}
