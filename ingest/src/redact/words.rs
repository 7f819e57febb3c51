//! Lists of words, any of which may stand in a value.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// Words that are looked for in one pass, however many they are: a text full of settings asks for
/// each of them.
pub(super) struct Words(LazyLock<Option<AhoCorasick>, fn() -> Option<AhoCorasick>>);

impl Words {
    /// `make` is [`words`] of a list.
    pub(super) const fn new(make: fn() -> Option<AhoCorasick>) -> Self {
        Self(LazyLock::new(make))
    }

    /// Whether one of them stands in `text`.
    pub(super) fn are_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|words| words.is_match(text))
    }
}

/// What finds the words of a list.
pub(super) fn words(list: &[&str]) -> Option<AhoCorasick> {
    AhoCorasick::new(list).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_wherever_they_stand() {
        static COLOURS: Words = Words::new(|| words(&["red", "bl"]));
        assert!(COLOURS.are_in("tired") && COLOURS.are_in("red") && COLOURS.are_in("able"));
        assert!(!COLOURS.are_in("re d") && !COLOURS.are_in(""));
    }
}
