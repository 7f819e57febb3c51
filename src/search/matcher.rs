//! Tells which rows of a page of text match, with `memmem` and `aho-corasick` over its bytes.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;
use memchr::memmem;

use super::query::{Query, Term};
use crate::fold::{fold, unfold_offset};

/// One term, ready to be looked for.
enum Needle {
    /// Exactly as written.
    Exact(memmem::Finder<'static>),
    /// ASCII in any case: on the bytes with ASCII letters lowered.
    Lower(memmem::Finder<'static>),
    /// Folded, on the folded text.
    Folded(memmem::Finder<'static>),
}

/// All terms of a query.
pub(super) struct Matcher {
    /// The longest first: it is the likeliest to be rare and decides most rows alone.
    required: Vec<Needle>,
    /// Excluded ASCII terms, looked for all at once on the lowered bytes.
    excluded_lower: Option<AhoCorasick>,
    excluded: Vec<Needle>,
}

/// A page's values, one behind the other, and the same with ASCII letters lowered.
struct Bytes<'p> {
    page: &'p [u8],
    lower: &'p [u8],
}

/// Walks along the values of a page: each stands behind its length in four bytes.
struct Rows<'p> {
    page: &'p [u8],
    row: usize,
    start: usize,
    end: usize,
}

impl<'p> Rows<'p> {
    fn new(page: &'p [u8]) -> Self {
        let mut rows = Self { page, row: 0, start: 0, end: 0 };
        rows.place(0);
        rows
    }

    fn place(&mut self, at: usize) {
        let length =
            self.page.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
        self.start = at + 4;
        self.end = self.start + length as usize;
    }

    /// Goes on to the next value; false behind the last.
    fn next(&mut self) -> bool {
        if self.end >= self.page.len() {
            return false;
        }
        self.row += 1;
        self.place(self.end);
        self.end <= self.page.len()
    }

    /// Goes on to the value that ends behind `at`.
    fn reach(&mut self, at: usize) -> bool {
        while self.end <= at {
            if !self.next() {
                return false;
            }
        }
        true
    }
}

impl Matcher {
    pub(super) fn new(query: &Query) -> Self {
        let mut required: Vec<&Term> = query.terms.iter().filter(|term| !term.excluded).collect();
        required.sort_by_key(|term| std::cmp::Reverse(term.text.len()));
        let excluded: Vec<&Term> = query.terms.iter().filter(|term| term.excluded).collect();
        let (lower, rest): (Vec<&Term>, Vec<&Term>) =
            excluded.into_iter().partition(|term| term.text.is_ascii() && !query.case_sensitive);
        let lower: Vec<String> =
            lower.into_iter().map(|term| term.text.to_ascii_lowercase()).collect();
        let needle = |term: &Term| Needle::new(&term.text, query.case_sensitive);
        Self {
            required: required.into_iter().map(needle).collect(),
            // Patterns of at most a query's length always make an automaton.
            excluded_lower: (!lower.is_empty()).then(|| AhoCorasick::new(&lower).ok()).flatten(),
            excluded: rest.into_iter().map(needle).collect(),
        }
    }

    /// Calls `found` with every row of `page` that matches, ascending. `lower` is a buffer to use.
    pub(super) fn rows(&self, page: &[u8], lower: &mut Vec<u8>, found: &mut dyn FnMut(usize)) {
        lower.clear();
        let needs_lower = self.excluded_lower.is_some()
            || self.required.iter().any(|n| matches!(n, Needle::Lower(_)));
        if needs_lower {
            lower.extend_from_slice(page);
            lower.make_ascii_lowercase();
        }
        let bytes = Bytes { page, lower };
        let mut rows = Rows::new(page);
        if page.is_empty() {
            return;
        }
        let mut at = 0;
        loop {
            // The next place where the first needle may be; some are looked for row by row.
            let hit = match self.required.first() {
                Some(Needle::Exact(finder)) => {
                    finder.find(&page[at..]).map(|hit| (hit, finder.needle().len()))
                }
                Some(Needle::Lower(finder)) => {
                    finder.find(&bytes.lower[at..]).map(|hit| (hit, finder.needle().len()))
                }
                Some(Needle::Folded(_)) | None => Some((0, 0)),
            };
            let Some((hit, length)) = hit else { return };
            at += hit;
            if length > 0 {
                if !rows.reach(at) {
                    return;
                }
                if at < rows.start || at + length > rows.end {
                    // In a length or across the border of two values: but one may follow.
                    at += 1;
                    continue;
                }
            }
            if self.row_matches(&bytes, rows.start, rows.end) {
                found(rows.row);
            }
            at = rows.end;
            if !rows.next() {
                return;
            }
        }
    }

    fn row_matches(&self, bytes: &Bytes<'_>, start: usize, end: usize) -> bool {
        let holds = |needle: &Needle| match needle {
            Needle::Exact(finder) => finder.find(&bytes.page[start..end]).is_some(),
            Needle::Lower(finder) => finder.find(&bytes.lower[start..end]).is_some(),
            Needle::Folded(finder) => {
                let text = &bytes.page[start..end];
                // ASCII folds to ASCII, and this needle has more.
                !text.is_ascii() && finder.find(fold(&text_of(text)).as_bytes()).is_some()
            }
        };
        self.required.iter().all(holds)
            && !self
                .excluded_lower
                .as_ref()
                .is_some_and(|any| any.is_match(&bytes.lower[start..end]))
            && !self.excluded.iter().any(holds)
    }

    /// Where the first required term begins and ends in `text`.
    pub(super) fn first_match(&self, text: &str) -> Option<(usize, usize)> {
        self.required.iter().filter_map(|needle| needle.find(text)).min()
    }
}

fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

impl Needle {
    fn new(text: &str, case_sensitive: bool) -> Self {
        let finder = |needle: &str| memmem::Finder::new(needle.as_bytes()).into_owned();
        match (case_sensitive, text.is_ascii()) {
            (true, _) => Self::Exact(finder(text)),
            (false, true) => Self::Lower(finder(&text.to_ascii_lowercase())),
            (false, false) => Self::Folded(finder(&fold(text))),
        }
    }

    /// Where the needle begins and ends in `text`.
    fn find(&self, text: &str) -> Option<(usize, usize)> {
        match self {
            Self::Exact(finder) => {
                finder.find(text.as_bytes()).map(|at| (at, at + finder.needle().len()))
            }
            Self::Lower(finder) => {
                let at = finder.find(text.to_ascii_lowercase().as_bytes())?;
                Some((at, at + finder.needle().len()))
            }
            Self::Folded(finder) => {
                let folded = fold(text);
                let at = finder.find(folded.as_bytes())?;
                Some((unfold_offset(text, at), unfold_offset(text, at + finder.needle().len())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use schemas::Timestamp;

    /// The definition: every required term's folded text is part of the folded text, no excluded one is.
    fn naive(query: &Query, text: &str) -> bool {
        query.terms.iter().all(|term| {
            let contains = if query.case_sensitive {
                text.contains(&term.text)
            } else {
                fold(text).contains(&*fold(&term.text))
            };
            contains != term.excluded
        })
    }

    fn matches(query: &Query, texts: &[String]) -> Vec<usize> {
        let mut page = Vec::new();
        for text in texts {
            page.extend(u32::try_from(text.len()).expect("short").to_le_bytes());
            page.extend(text.as_bytes());
        }
        let mut rows = Vec::new();
        Matcher::new(query).rows(&page, &mut Vec::new(), &mut |row| rows.push(row));
        rows
    }

    #[test]
    fn a_match_across_two_rows_is_none() {
        let query = Query::parse("ab", Timestamp(0)).expect("parses");
        assert_eq!(matches(&query, &["xa".into(), "bx".into(), "aab".into(), "".into()]), [2]);
    }

    #[test]
    fn the_length_of_a_row_is_no_text() {
        // 97 bytes long: the length reads as the letter a.
        let query = Query::parse("a", Timestamp(0)).expect("parses");
        assert_eq!(matches(&query, &["x".repeat(97), "y".repeat(65), "za".into()]), [2]);
    }

    #[test]
    fn positions_are_those_of_the_text() {
        let query = Query::parse("Größe", Timestamp(0)).expect("parses");
        let text = "Ⱥ die GRÖßE zählt";
        let (from, to) = Matcher::new(&query).first_match(text).expect("matches");
        assert_eq!(&text[from..to], "GRÖßE");
    }

    proptest! {
        #[test]
        fn equals_the_naive_oracle(
            texts in proptest::collection::vec("[aAbBéÉßẞ\\n\" K\u{212a}]{0,12}", 0..8),
            cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..6, 1usize..4, any::<bool>(), any::<bool>()), 1..4),
            case_sensitive in any::<bool>(),
        ) {
            // Needles are cut out of the texts, or hardly any would match.
            let terms = cuts.iter().filter(|_| !texts.is_empty()).map(|(index, from, length, excluded, upper)| {
                let text: String = index.get(&texts).chars().skip(*from).take(*length).collect();
                let text = if *upper { text.to_uppercase() } else { text };
                Term { text, excluded: *excluded }
            }).filter(|term| !term.text.is_empty()).collect();
            let query = Query { terms, case_sensitive, ..Query::default() };
            let want: Vec<usize> = (0..texts.len()).filter(|row| naive(&query, &texts[*row])).collect();
            prop_assert_eq!(matches(&query, &texts), want);
        }
    }
}
