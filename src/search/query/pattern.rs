//! Search patterns: a substring or a regular expression, and the literals that the skip index must
//! find for each.

use regex::bytes::{Regex, RegexBuilder};

use super::literals::literals;
use crate::base::fold::composed;
use crate::store::{Grams, grams};

/// One thing to search for.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// A text that may occur anywhere, with case folded.
    Text(String),
    /// A regular expression over lines: `^` and `$` match the ends of a line, `.` does not cross
    /// them.
    Regex { source: String, regex: LineRegex },
}

/// A compiled regular expression. ASCII texts, which most are, have a separate one: without Unicode
/// word boundaries it runs ten times as fast and finds the same matches in them.
#[derive(Debug, Clone)]
pub struct LineRegex {
    unicode: Regex,
    ascii: Regex,
    /// True if no match depends on its surroundings and none is empty.
    free: bool,
}

impl LineRegex {
    /// Returns the start and end of the first match.
    pub(crate) fn find(&self, text: &[u8]) -> Option<(usize, usize)> {
        self.fitting(text).find(text).map(|found| (found.start(), found.end()))
    }

    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.fitting(text).is_match(text)
    }

    /// Returns true if [`Self::find_in_rows`] finds every row with a match.
    pub(crate) fn finds_rows(&self) -> bool {
        self.free
    }

    /// Returns the start of the first match in a sequence of texts, which is never after the first
    /// match within one of them.
    pub(crate) fn find_in_rows(&self, texts: &[u8]) -> Option<usize> {
        self.unicode.find(texts).map(|found| found.start())
    }

    fn fitting(&self, text: &[u8]) -> &Regex {
        if text.is_ascii() { &self.ascii } else { &self.unicode }
    }
}

/// Maximum size in bytes of a compiled regular expression.
const REGEX_BYTES: usize = 8 << 20;
const TOO_LARGE: &str = "it is too large when compiled; use smaller counts, or [a-z] and [0-9] instead of \\w, \\d and \\p";

/// The reason why a regular expression is not valid, and the 1-based character of the mistake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadRegex {
    pub(super) position: Option<usize>,
    pub(super) reason: String,
}

impl Pattern {
    /// Compiles a regular expression.
    pub(crate) fn regex(source: &str, case_sensitive: bool) -> Result<Self, BadRegex> {
        let hir = regex_syntax::parse(source).map_err(|error| {
            let (position, reason) = match error {
                regex_syntax::Error::Parse(error) => {
                    (Some(error.span().start.column), error.kind().to_string())
                }
                regex_syntax::Error::Translate(error) => {
                    (Some(error.span().start.column), error.kind().to_string())
                }
                other => (None, other.to_string()),
            };
            BadRegex { position, reason }
        })?;
        let properties = hir.properties();
        let free = properties.look_set().is_empty()
            && properties.minimum_len().is_none_or(|least| least > 0);
        let build = |unicode: bool| {
            RegexBuilder::new(source)
                .case_insensitive(!case_sensitive)
                .multi_line(true)
                .unicode(unicode)
                .size_limit(REGEX_BYTES)
                .build()
        };
        let unicode =
            build(true).map_err(|_| BadRegex { position: None, reason: TOO_LARGE.to_owned() })?;
        // Classes like \p{Greek} need Unicode, and letters beyond ASCII may match ASCII (ſ).
        let escaped = ["\\x", "\\u", "\\U"].iter().any(|escape| source.contains(escape));
        let ascii = build(false).ok().filter(|_| source.is_ascii() && !escaped);
        let ascii = ascii.unwrap_or_else(|| unicode.clone());
        Ok(Self::Regex { source: source.to_owned(), regex: LineRegex { unicode, ascii, free } })
    }

    /// Returns groups of literals: a matching text contains one literal of each group.
    fn literals(&self) -> Vec<Vec<String>> {
        match self {
            Self::Text(text) => vec![std::iter::once(text.clone()).chain(composed(text)).collect()],
            Self::Regex { source, .. } => {
                regex_syntax::parse(source).map(|hir| literals(&hir)).unwrap_or_default()
            }
        }
    }
}

/// Returns groups of trigram sets: a text with one of `patterns` contains all trigrams of one
/// alternative of every group. An empty result excludes nothing.
pub(super) fn needs(patterns: &[Pattern]) -> Vec<Vec<Grams>> {
    let groups = match patterns {
        [single] => single.literals(),
        // One group that joins the most selective group of every pattern.
        several => {
            let shortest = |group: &Vec<String>| group.iter().map(String::len).min();
            let best = several.iter().map(|p| p.literals().into_iter().max_by_key(shortest));
            best.collect::<Option<Vec<_>>>().map(|groups| groups.concat()).into_iter().collect()
        }
    };
    let grams = |group: Vec<String>| group.iter().map(|literal| grams(literal)).collect();
    let rules_out = |group: &Vec<Grams>| group.iter().all(|grams| !grams.is_empty());
    groups.into_iter().map(grams).filter(rules_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_letter_stands_for_ascii_in_any_text() {
        for source in [r"\x{17f}kip", r"\u212aey"] {
            let Ok(Pattern::Regex { regex, .. }) = Pattern::regex(source, false) else {
                panic!("{source}")
            };
            assert!(regex.is_match(b"skip the key"), "{source}");
        }
    }

    #[test]
    fn a_bad_regex_says_where() {
        let error = Pattern::regex("ab(c", false).expect_err("open");
        assert_eq!((error.position, error.reason.as_str()), (Some(3), "unclosed group"));
        assert!(Pattern::regex(r"\w{500}{500}", false).is_err());
    }
}
