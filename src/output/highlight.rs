//! Finds the words of a query where they occur in a text.

use std::ops::Range;

use anstyle::Style;
use regex::{Regex, RegexBuilder};
use schemas::tool::search::ParsedQuery;

use super::painted::{FOUND, Painted};

/// The words of a query.
#[derive(Debug, Clone, Default)]
pub(crate) struct Highlighter(Option<Regex>);

impl Highlighter {
    /// Collects the words, phrases and patterns that a query looks for.
    pub(crate) fn new(query: &ParsedQuery) -> Self {
        let terms = query.all_of.iter().chain(&query.any_of);
        Self::find_any(terms.flat_map(|term| term.split(" OR ")))
    }

    /// Finds a text as it was typed, also where a line breaks within it; `/regex/` is a pattern.
    pub(crate) fn phrase(text: &str) -> Self {
        Self::find_any([text].into_iter())
    }

    fn find_any<'t>(terms: impl Iterator<Item = &'t str>) -> Self {
        let mut patterns: Vec<String> = terms.filter_map(term_pattern).collect();
        // The longest first: of two that begin at the same place, it is marked.
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
        if patterns.is_empty() {
            return Self(None);
        }
        let pattern = patterns.join("|");
        Self(RegexBuilder::new(&pattern).case_insensitive(true).build().ok())
    }

    /// Returns the places of the matches in bytes, from the first on.
    pub(crate) fn find_in(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let found = self.0.iter().flat_map(|pattern| pattern.find_iter(text));
        found.map(|found| found.range()).filter(|place| !place.is_empty())
    }

    /// Appends a text with its matches marked, and the rest in `style`.
    pub(super) fn push(&self, painted: &mut Painted, style: Style, text: &str) {
        let mut done = 0;
        for Range { start, end } in self.find_in(text) {
            painted.push(style, &text[done..start]).push(FOUND, &text[start..end]);
            done = end;
        }
        painted.push(style, &text[done..]);
    }
}

/// Returns the regular expression of a term as the query repeats it: `word`, `"a phrase"`, `/regex/`.
fn term_pattern(term: &str) -> Option<String> {
    let term = term.trim();
    if let Some(pattern) = term.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'))
        && !pattern.is_empty()
    {
        return Regex::new(pattern).is_ok().then(|| format!("(?:{pattern})"));
    }
    let phrase = term.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let literal = phrase.map_or_else(|| term.to_owned(), |phrase| phrase.replace("\\\"", "\""));
    // A phrase may continue on the next line of a screen.
    let words: Vec<String> = literal.split_whitespace().map(regex::escape).collect();
    (!words.is_empty()).then(|| words.join(r"\s+"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_phrases_and_patterns_are_marked() {
        let all_of = ["budget", "\"is shared\" OR clone", "/e+d/"].map(str::to_owned).to_vec();
        let highlighter = Highlighter::new(&ParsedQuery { all_of, ..ParsedQuery::default() });
        let text = "The Budget is\n shared, a CLONE of feed";
        let pattern = highlighter.0.expect("words");
        let found: Vec<_> = pattern.find_iter(text).map(|found| found.as_str()).collect();
        assert_eq!(found, ["Budget", "is\n shared", "CLONE", "eed"]);
    }
}
