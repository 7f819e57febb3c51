//! Regexes and lists of words that are compiled on first use. Most are never needed in a run.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::{Captures, Regex};

/// The number of a line, or the sign of a diff, before it.
pub(super) static LINE_LEAD: LazyRegex =
    LazyRegex::at_start(r"(?:[ \t]*[0-9]+(?:→|[\t:|])[ ]?)?\+?");

/// A built-in regex.
pub(super) struct LazyRegex {
    before: &'static str,
    pub(super) source: &'static str,
    after: &'static str,
    /// `None` if the source is not a regex. Tests compile every one.
    compiled: OnceLock<Option<Regex>>,
}

impl LazyRegex {
    /// Creates a pattern that matches only at the beginning of a text.
    pub(super) const fn at_start(source: &'static str) -> Self {
        Self::within("^(?:", source, ")")
    }

    /// Creates a pattern that matches anywhere in a text.
    pub(super) const fn anywhere(source: &'static str) -> Self {
        Self::within("", source, "")
    }

    /// Creates a pattern from a source and what is before and after it in the regex.
    pub(super) const fn within(
        before: &'static str,
        source: &'static str,
        after: &'static str,
    ) -> Self {
        Self { before, source, after, compiled: OnceLock::new() }
    }

    /// Returns the first match.
    pub(super) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }

    /// Returns all matches.
    pub(super) fn captures_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        self.regex().into_iter().flat_map(move |regex| regex.captures_iter(text))
    }

    pub(super) fn regex(&self) -> Option<&Regex> {
        let compile = || Regex::new(&[self.before, self.source, self.after].concat()).ok();
        self.compiled.get_or_init(compile).as_ref()
    }
}

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
