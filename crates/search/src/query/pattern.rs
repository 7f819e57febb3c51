//! Search patterns: a substring or a regular expression, and the literals that the skip index must
//! find for each.

use regex::bytes::{Regex, RegexBuilder};

use super::literals::extract_literals;
use base::fold::nfc_if_different;
use store::{Grams, needle_grams};

/// One thing to search for.
#[derive(Debug, Clone)]
pub enum QueryPattern {
    /// A text that may occur anywhere, with case folded.
    Text(String),
    /// A regular expression over lines: `^` and `$` match the ends of a line, `.` does not cross
    /// them.
    Regex { source: String, regex: LineRegex },
}

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct LineRegex {
    regex: Regex,
    /// True if no match depends on its surroundings and none is empty.
    is_independent: bool,
}

impl LineRegex {
    /// Returns the start and end of the first match.
    pub(crate) fn find(&self, text: &[u8]) -> Option<(usize, usize)> {
        self.regex.find(text).map(|found| (found.start(), found.end()))
    }

    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// Returns true if [`Self::find_in_rows`] finds every row with a match.
    pub(crate) fn can_search_rows(&self) -> bool {
        self.is_independent
    }

    /// Returns the start of the first match in a sequence of texts, which is never after the first
    /// match within one of them.
    pub(crate) fn find_in_rows(&self, texts: &[u8]) -> Option<usize> {
        self.regex.find(texts).map(|found| found.start())
    }
}

/// Maximum size in bytes of a compiled regular expression.
const MAX_REGEX_BYTES: usize = 8 << 20;

const TOO_LARGE: &str = "it is too large when compiled; use smaller counts, or [a-z] and [0-9] instead of \\w, \\d and \\p";

/// The reason why a regular expression is not valid, and the 1-based character of the mistake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RegexMistake {
    pub(super) position: Option<usize>,
    pub(super) reason: String,
}

impl QueryPattern {
    /// Compiles a regular expression.
    pub(crate) fn regex(source: &str, case_sensitive: bool) -> Result<Self, RegexMistake> {
        let hir = regex_syntax::parse(source).map_err(RegexMistake::from)?;
        let properties = hir.properties();
        let is_independent = properties.look_set().is_empty()
            && properties.minimum_len().is_none_or(|least| least > 0);

        let built = RegexBuilder::new(source)
            .case_insensitive(!case_sensitive)
            .multi_line(true)
            .size_limit(MAX_REGEX_BYTES)
            .build();
        let Ok(regex) = built else {
            return Err(RegexMistake { position: None, reason: TOO_LARGE.to_owned() });
        };
        let regex = LineRegex { regex, is_independent };
        Ok(Self::Regex { source: source.to_owned(), regex })
    }

    /// Returns groups of literals: a matching text contains one literal of each group.
    fn required_literals(&self) -> Vec<Vec<String>> {
        match self {
            Self::Text(text) => {
                vec![std::iter::once(text.clone()).chain(nfc_if_different(text)).collect()]
            }
            Self::Regex { source, .. } => {
                regex_syntax::parse(source).map(|hir| extract_literals(&hir)).unwrap_or_default()
            }
        }
    }
}

impl From<regex_syntax::Error> for RegexMistake {
    fn from(error: regex_syntax::Error) -> Self {
        let (position, reason) = match error {
            regex_syntax::Error::Parse(error) => {
                (Some(error.span().start.column), error.kind().to_string())
            }
            regex_syntax::Error::Translate(error) => {
                (Some(error.span().start.column), error.kind().to_string())
            }
            other => (None, other.to_string()),
        };
        Self { position, reason }
    }
}

/// Returns groups of trigram sets: a text with one of `patterns` contains all trigrams of one
/// alternative of every group. An empty result excludes nothing.
pub(super) fn required_grams(patterns: &[QueryPattern]) -> Vec<Vec<Grams>> {
    let groups = match patterns {
        [single] => single.required_literals(),
        // One group that joins the most selective group of every pattern.
        several => {
            let best: Option<Vec<_>> = several.iter().map(most_selective_group).collect();
            best.map(|groups| groups.concat()).into_iter().collect()
        }
    };

    let mut needs = Vec::new();
    for group in groups {
        let alternatives: Vec<Grams> = group.iter().map(|literal| needle_grams(literal)).collect();
        // A literal without trigrams may be in every block.
        if alternatives.iter().all(|grams| !grams.is_empty()) {
            needs.push(alternatives);
        }
    }
    needs
}

/// Returns the group of literals whose shortest literal is longest; `None` if there is no group.
fn most_selective_group(pattern: &QueryPattern) -> Option<Vec<String>> {
    let groups = pattern.required_literals().into_iter();
    groups.max_by_key(|group| group.iter().map(String::len).min())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_letter_stands_for_ascii_in_any_text() {
        for source in [r"\x{17f}kip", r"\u212aey"] {
            let Ok(QueryPattern::Regex { regex, .. }) = QueryPattern::regex(source, false) else {
                panic!("{source}")
            };
            assert!(regex.is_match(b"skip the key"), "{source}");
        }
    }

    #[test]
    fn a_bad_regex_says_where() {
        let error = QueryPattern::regex("ab(c", false).expect_err("open");
        assert_eq!((error.position, error.reason.as_str()), (Some(3), "unclosed group"));
        assert!(QueryPattern::regex(r"\w{500}{500}", false).is_err());
    }
}
