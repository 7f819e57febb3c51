//! Searches a value for any word of a fixed list.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;

/// Words that are searched in one pass, however long the list is. A text full of settings is
/// searched for each of them.
pub(super) struct Words {
    list: &'static [&'static str],
    automaton: OnceLock<Option<AhoCorasick>>,
}

impl Words {
    pub(super) const fn new(list: &'static [&'static str]) -> Self {
        Self { list, automaton: OnceLock::new() }
    }

    /// True if `text` contains any of the words.
    pub(super) fn any_in(&self, text: &str) -> bool {
        let automaton = self.automaton.get_or_init(|| AhoCorasick::new(self.list).ok());
        automaton.as_ref().is_some_and(|words| words.is_match(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_wherever_they_stand() {
        static COLOURS: Words = Words::new(&["red", "bl"]);
        assert!(COLOURS.any_in("tired") && COLOURS.any_in("red") && COLOURS.any_in("able"));
        assert!(!COLOURS.any_in("re d") && !COLOURS.any_in(""));
    }
}
