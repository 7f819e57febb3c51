//! Searches a value for any word of a fixed list.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;

/// A list of words that are searched in one pass, however long the list is. In a text full of
/// settings, each value is searched.
pub(super) struct WordList {
    list: &'static [&'static str],
    /// `None` if the automaton cannot be built.
    automaton: OnceLock<Option<AhoCorasick>>,
}

impl WordList {
    /// Creates a list without building its automaton.
    pub(super) const fn new(list: &'static [&'static str]) -> Self {
        Self { list, automaton: OnceLock::new() }
    }

    /// Returns whether `text` contains any of the words.
    pub(super) fn any_in(&self, text: &str) -> bool {
        let automaton = self.automaton.get_or_init(|| AhoCorasick::new(self.list).ok());
        automaton.as_ref().is_some_and(|words| words.is_match(text))
    }
}

/// Returns whether `text` ends with any of the words.
pub(super) fn ends_with_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_wherever_they_stand() {
        static COLOURS: WordList = WordList::new(&["red", "bl"]);
        assert!(COLOURS.any_in("tired") && COLOURS.any_in("red") && COLOURS.any_in("able"));
        assert!(!COLOURS.any_in("re d") && !COLOURS.any_in(""));
    }
}
