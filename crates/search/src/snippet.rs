//! Cuts out the text around a match, from the beginning of a sentence, line or word.

/// A piece of text, and the number of characters omitted before and after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    pub text: String,
    pub omitted: [usize; 2],
}

/// Cuts about `chars` characters of `text` around the bytes `start..end`, at character boundaries; the
/// match is always whole unless it is longer than that. If a sentence, a line or at least a word begins
/// shortly before the match, the snippet begins there.
pub fn cut_snippet(text: &str, start: usize, end: usize, chars: usize) -> Snippet {
    let match_start = text.floor_char_boundary(start.min(text.len()));
    let match_end = text.ceil_char_boundary(end.clamp(match_start, text.len()));

    let match_chars = text[match_start..match_end].chars().count().min(chars);
    let spare = chars - match_chars;
    let before_chars = text[..match_start].chars().count();
    let after_chars = text[match_end..].chars().count();
    // A third goes before the match and the rest after it; space that one side does not need goes
    // to the other.
    let before = before_chars.min((spare / 3).max(spare.saturating_sub(after_chars)));

    let lead_start = text[..match_start]
        .char_indices()
        .rev()
        .take(before)
        .last()
        .map_or(match_start, |(at, _)| at);
    let lead = &text[lead_start..match_start];
    let skipped = if lead_start == 0 { 0 } else { find_clean_start(lead) };
    let snippet_start = lead_start + skipped;
    let before = lead[skipped..].chars().count();
    let rest = &text[snippet_start..];
    let length = rest.char_indices().nth(match_chars + spare).map_or(rest.len(), |(at, _)| at);
    let piece = &rest[..length];
    Snippet {
        text: piece.to_owned(),
        omitted: [before_chars - before, rest[length..].chars().count()],
    }
}

/// Returns the position in the text before a match at which a sentence or line begins, or else a
/// word; 0 if none does.
fn find_clean_start(lead: &str) -> usize {
    let sentence = [". ", "! ", "? ", "\n"]
        .into_iter()
        .filter_map(|end| lead.find(end).map(|at| at + end.len()))
        .min();
    let word = || lead.find(char::is_whitespace).map(|at| at + 1);
    let Some(start) = sentence.or_else(word) else { return 0 };
    let start = lead.ceil_char_boundary(start);
    let blanks = lead[start..].len() - lead[start..].trim_start().len();
    start + blanks
}

#[cfg(test)]
mod tests {
    use schemas::limits::SNIPPET_CHARS;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_texts_are_whole() {
        let snippet = cut_snippet("a short text", 2, 7, SNIPPET_CHARS);
        assert_eq!(snippet, Snippet { text: "a short text".into(), omitted: [0, 0] });
    }

    #[test]
    fn a_snippet_begins_with_a_sentence_or_a_word() {
        let end = " tail".repeat(100);
        let cut = |before: &str| {
            let text = format!("{before}needle{end}");
            cut_snippet(&text, before.len(), before.len() + 6, SNIPPET_CHARS)
        };
        let long = "word ".repeat(60);
        let snippet = cut(&format!("{long}It ended. Then the "));
        assert!(snippet.text.starts_with("Then the needle tail"), "{snippet:?}");
        assert_eq!(snippet.text.chars().count(), SNIPPET_CHARS);
        let snippet = cut(&format!("{long}unit\n  fn "));
        assert!(snippet.text.starts_with("fn needle"), "{snippet:?}");
        assert!(cut(&long).text.starts_with("word word"));
        assert!(cut(&"x".repeat(300)).text.starts_with("xxx"));
    }

    proptest! {
        #[test]
        fn contains_the_match_and_counts_what_it_leaves_out(
            before in "[aé日\n]{0,400}", needle in "[xß]{1,20}", after in "[aé日\n]{0,400}",
        ) {
            let text = format!("{before}{needle}{after}");
            let snippet = cut_snippet(&text, before.len(), before.len() + needle.len(), SNIPPET_CHARS);
            prop_assert!(snippet.text.contains(&needle));
            let chars = snippet.text.chars().count();
            prop_assert!(chars <= SNIPPET_CHARS);
            prop_assert_eq!(chars + snippet.omitted[0] + snippet.omitted[1], text.chars().count());
            let start: String = text.chars().skip(snippet.omitted[0]).take(chars).collect();
            prop_assert_eq!(start, snippet.text);
        }
    }
}
