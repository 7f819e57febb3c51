//! Finds the rows of a page of text that match, with `memmem`, `aho-corasick` and `regex` over
//! its bytes.

use std::cmp::Reverse;

use memchr::memmem::Finder;

use super::needle::Needle;
use super::query::Query;
use super::query::multi::AnyNeedleFinder;
use super::query::pattern::LineRegex;
use base::dropped_text::{kept_length, kept_part};
use store::TextValues;

/// The way to find candidate rows on a page.
enum CandidateFinder {
    /// Every match contains this needle in its lowered bytes.
    Lower(Finder<'static>),
    /// Every match contains this needle in its original bytes.
    Exact(Finder<'static>),
    /// Every match contains one of these needles in its lowered bytes.
    Any(AnyNeedleFinder),
    /// A row may match if this expression matches in its original bytes.
    Regex(LineRegex),
    /// Every row must be examined.
    Rows,
}

/// All clauses of a query, prepared for searching.
pub(super) struct Matcher {
    candidate_finder: CandidateFinder,
    /// Position of the required clause that every hit of `driver` fulfills.
    decided_clause: Option<usize>,
    /// The required clauses; one needle of each must occur.
    required: Vec<Vec<Needle>>,
    /// Excluded ASCII terms, all searched at once in the lowered bytes.
    excluded_lower: Option<AnyNeedleFinder>,
    excluded: Vec<Needle>,
    /// True if any search needs the lowered bytes.
    must_lower: bool,
}

/// Most places of a term that are compared for a snippet. Each one costs a pass over the text.
const MAX_PLACES: usize = 4;

/// Bytes between two terms that fit one snippet.
const NEAR_BYTES: usize = 160;

/// Rows are examined one by one if fewer than one in this many rows of a page pass the filters.
const SPARSE_ROWS_THRESHOLD: usize = 4;

impl Matcher {
    pub(super) fn new(query: &Query) -> Self {
        let mut required: Vec<Vec<Needle>> = Vec::new();
        let mut excluded: Vec<Needle> = Vec::new();
        for clause in &query.clauses {
            let needles = clause.any.iter().map(|any| Needle::new(any, query.is_case_sensitive));
            if clause.is_excluded {
                excluded.extend(needles);
            } else {
                required.push(needles.collect());
            }
        }
        // The longest needles first: they are probably the rarest and decide most rows alone.
        required.sort_by_key(|any| {
            let shortest = any.iter().map(Needle::literal_length).min();
            std::cmp::Reverse(shortest.unwrap_or(0))
        });

        let (lower, excluded): (Vec<_>, Vec<_>) =
            excluded.into_iter().partition(|needle| matches!(needle, Needle::Lower(_)));
        let lower: Vec<_> = lower.iter().filter_map(Needle::lowered_bytes).collect();
        let excluded_lower = AnyNeedleFinder::new(&lower);

        let (driver, decided_clause) = choose_candidate_finder(&required);
        let must_lower = excluded_lower.is_some()
            || matches!(driver, CandidateFinder::Lower(_))
            || required.iter().flatten().any(|needle| matches!(needle, Needle::Lower(_)));
        Self {
            candidate_finder: driver,
            decided_clause,
            required,
            excluded_lower,
            excluded,
            must_lower,
        }
    }

    /// Calls `found` with each of `rows` (ascending) whose text on the page matches. `lower` is
    /// a scratch buffer.
    pub(super) fn find_rows(
        &self,
        page: &TextValues<'_>,
        rows: impl ExactSizeIterator<Item = usize>,
        lower: &mut Vec<u8>,
        found: &mut dyn FnMut(usize),
    ) {
        let is_sparse = rows.len() * SPARSE_ROWS_THRESHOLD < page.len();
        if is_sparse || matches!(self.candidate_finder, CandidateFinder::Rows) {
            for row in rows {
                let text = page.get(row);
                self.fill_lowered(text, lower);
                if self.is_match(text, lower, None) {
                    found(row);
                }
            }
            return;
        }

        let bytes = page.bytes();
        self.fill_lowered(bytes, lower);
        let mut rows = rows.peekable();
        let mut at = 0;
        let mut value = 0;
        while let Some((hit, length)) = self.next_hit(bytes, lower, at) {
            at += hit;
            value = page.row_at(at, value);
            let range = page.text_range(value);
            if at < range.start || at + length > range.end {
                // The hit is in a length field or crosses two values; a real one may follow.
                at += 1;
                continue;
            }

            while rows.next_if(|row| *row < value).is_some() {}
            if let Some(row) = rows.next_if_eq(&value) {
                let lower = if self.must_lower { &lower[range.clone()] } else { &[] };
                if self.is_match(&bytes[range.clone()], lower, self.decided_clause) {
                    found(row);
                }
            }
            at = range.end;
        }
    }

    /// Fills `lower` with `text` in which ASCII letters are lowered, if a search needs it.
    fn fill_lowered(&self, text: &[u8], lower: &mut Vec<u8>) {
        lower.clear();
        if self.must_lower {
            lower.extend(text.iter().map(u8::to_ascii_lowercase));
        }
    }

    /// Returns the next possible match after `at`: its distance from `at` and its length.
    fn next_hit(&self, page: &[u8], lower: &[u8], at: usize) -> Option<(usize, usize)> {
        match &self.candidate_finder {
            CandidateFinder::Lower(finder) => {
                Some((finder.find(&lower[at..])?, finder.needle().len()))
            }
            CandidateFinder::Exact(finder) => {
                Some((finder.find(&page[at..])?, finder.needle().len()))
            }
            CandidateFinder::Any(any) => any.find(&lower[at..]),
            // The length of this match is useless: it may extend into the next row.
            CandidateFinder::Regex(regex) => Some((regex.find_in_rows(&page[at..])?, 0)),
            CandidateFinder::Rows => None,
        }
    }

    /// Returns true if a text matches. `lower` is the text with ASCII letters lowered; `decided`
    /// is the position of a required clause that is known to hold. The mark of a dropped text is
    /// not searched.
    fn is_match(&self, text: &[u8], lower: &[u8], decided: Option<usize>) -> bool {
        let kept = kept_length(text);
        if kept == text.len() {
            return self.matches_clauses(text, lower, decided);
        }
        // The hit that decided a clause may be in the mark.
        self.matches_clauses(&text[..kept], &lower[..kept.min(lower.len())], None)
    }

    /// Returns true if a text matches, by the rules of [`Self::is_match`].
    fn matches_clauses(&self, text: &[u8], lower: &[u8], decided: Option<usize>) -> bool {
        for (at, needles) in self.required.iter().enumerate() {
            if decided != Some(at) && !needles.iter().any(|needle| needle.is_in(text, lower)) {
                return false;
            }
        }
        if self.excluded_lower.as_ref().is_some_and(|any| any.is_match(lower)) {
            return false;
        }
        !self.excluded.iter().any(|needle| needle.is_in(text, lower))
    }

    /// Returns the start and end of a required term in `text`: of the one that occurs least often, or
    /// of the longest of those, where most others are near.
    pub(super) fn find_best_place(&self, text: &str) -> Option<(usize, usize)> {
        let text = kept_part(text);
        let places: Vec<Vec<(usize, usize)>> = self
            .required
            .iter()
            .flatten()
            .map(|needle| find_places(needle, text))
            .filter(|places| !places.is_empty())
            .collect();
        let rarest = places.iter().min_by_key(|places| {
            let (start, end) = places[0];
            (places.len(), Reverse(end - start))
        })?;

        let count_near = |place: &(usize, usize)| {
            let is_near = |other: &(usize, usize)| other.0.abs_diff(place.0) <= NEAR_BYTES;
            places.iter().filter(|places| places.iter().any(is_near)).count()
        };
        rarest.iter().copied().min_by_key(|place| (Reverse(count_near(place)), place.0))
    }
}

/// Returns the first places of a needle in a text. Of a regex it is one place only, because what
/// matches may depend on the text before it.
fn find_places(needle: &Needle, text: &str) -> Vec<(usize, usize)> {
    let max_places = if matches!(needle, Needle::Regex(_)) { 1 } else { MAX_PLACES };
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() < max_places
        && let Some((start, end)) = text.get(from..).and_then(|rest| needle.find(rest))
    {
        places.push((from + start, from + end));
        from = text.ceil_char_boundary(from + end.max(start + 1));
    }
    places
}

/// Chooses the first clause that a byte search can decide, and returns its position if a hit
/// fulfills it.
fn choose_candidate_finder(required: &[Vec<Needle>]) -> (CandidateFinder, Option<usize>) {
    for (at, needles) in required.iter().enumerate() {
        let driver = match needles.as_slice() {
            [Needle::Lower(finder)] => CandidateFinder::Lower(finder.clone()),
            [Needle::Exact(finder)] => CandidateFinder::Exact(finder.clone()),
            [Needle::Beyond(beyond)] => {
                let Some(run) = &beyond.ascii_run else { continue };
                // The run does not decide the clause: the rest of the needle must be searched
                // too.
                return (CandidateFinder::Lower(run.clone()), None);
            }
            // The row must be examined separately: a match may extend into the next one.
            [Needle::Regex(regex)] if regex.can_search_rows() => {
                return (CandidateFinder::Regex(regex.clone()), None);
            }
            [_] => continue,
            several => {
                let lower: Option<Vec<_>> = several.iter().map(Needle::lowered_bytes).collect();
                let Some(any) = lower.and_then(|lower| AnyNeedleFinder::new(&lower)) else {
                    continue;
                };
                CandidateFinder::Any(any)
            }
        };
        return (driver, Some(at));
    }
    (CandidateFinder::Rows, None)
}

#[cfg(test)]
mod tests {
    use super::super::query::Clause;
    use super::super::query::pattern::QueryPattern;
    use super::*;
    use base::fold::{fold_text, nfc_if_different};
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;
    use schemas::Timestamp;

    /// The definition: in the folded text, or both composed.
    fn contains(text: &str, needle: &str, case_sensitive: bool) -> bool {
        let form = |text: &str| {
            if case_sensitive { text.to_owned() } else { fold_text(text).into_owned() }
        };
        let nfc = |text: &str| form(&nfc_if_different(text).unwrap_or_else(|| text.to_owned()));
        form(text).contains(&form(needle)) || !needle.is_ascii() && nfc(text).contains(&nfc(needle))
    }

    fn naive(query: &Query, text: &str) -> bool {
        query.clauses.iter().all(|clause| {
            let any = clause.any.iter().any(|pattern| match pattern {
                QueryPattern::Text(needle) => contains(text, needle, query.is_case_sensitive),
                QueryPattern::Regex { regex, .. } => regex.is_match(text.as_bytes()),
            });
            any != clause.is_excluded
        })
    }

    fn matches(query: &Query, texts: &[String], open: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut page = Vec::new();
        for text in texts {
            page.extend(u32::try_from(text.len()).expect("short").to_le_bytes());
            page.extend(text.as_bytes());
        }
        let rows: Vec<usize> = (0..texts.len()).filter(|row| open(*row)).collect();
        let (mut found, mut starts) = (Vec::new(), Vec::new());
        let page = TextValues::new(&page, &mut starts);
        assert!(texts.iter().enumerate().all(|(at, text)| page.get(at) == text.as_bytes()));
        Matcher::new(query).find_rows(&page, rows.into_iter(), &mut Vec::new(), &mut |row| {
            found.push(row);
        });
        found
    }

    fn parse(text: &str) -> Query {
        Query::parse(text, Timestamp(0)).expect("parses")
    }

    #[test]
    fn a_match_across_two_rows_is_none() {
        let texts = ["xa".into(), "bx".into(), "aab".into(), "".into()];
        assert_eq!(matches(&parse("ab"), &texts, |_| true), [2]);
        assert_eq!(matches(&parse("ab OR x"), &texts, |_| true), [0, 1, 2]);
    }

    #[test]
    fn the_length_of_a_row_is_no_text() {
        // 97 bytes long: the length reads as the letter a.
        let texts = ["x".repeat(97), "y".repeat(65), "za".into()];
        assert_eq!(matches(&parse("a"), &texts, |_| true), [2]);
    }

    #[test]
    fn a_longer_alternative_that_reads_a_length_hides_no_shorter_one() {
        // The length of the second text reads as an s.
        let texts = ["a quokka".to_owned(), "x".repeat(115), "quokkas".into()];
        for query in ["quokkas OR quokka", "quokka OR quokkas"] {
            assert_eq!(matches(&parse(query), &texts, |_| true), [0, 2], "{query}");
        }
    }

    #[test]
    fn a_regex_beyond_ascii_finds_the_same_in_every_text() {
        let texts = ["a skip".into(), "é skip".into(), "ſkip \u{212a}".into()];
        for query in ["/skip/", "/ſkip/", "/[ſ]kip/", "/s\u{212a}ip/"] {
            assert_eq!(matches(&parse(query), &texts, |_| true), [0, 1, 2], "{query}");
        }
    }

    #[test]
    fn regexes_see_lines() {
        let texts = ["one\ntwo".into(), "one two".into(), "ONE".into()];
        assert_eq!(matches(&parse("/^one$/"), &texts, |_| true), [0, 2]);
        assert_eq!(matches(&parse("/^one$/ case:yes"), &texts, |_| true), [0]);
        assert_eq!(matches(&parse("-/two$/ one"), &texts, |_| true), [2]);
    }

    #[test]
    fn positions_are_those_of_the_text() {
        for (query, text, want) in [
            ("Größe", "Ⱥ die GRÖßE zählt", "GRÖßE"),
            ("café", "Ⱥ im Cafe\u{301} da", "Cafe\u{301}"),
            ("Cafe\u{301}", "im CAFÉ da", "CAFÉ"),
            ("café case:yes", "CAFÉ, cafe\u{301}!", "cafe\u{301}"),
            ("/z.hlt/", "Ⱥ zählt", "zählt"),
            ("한국", "이것은 한국어", "한국"),
            ("a zebra", "a cat, a dog and a Zebra", "Zebra"),
            ("zebra lion", &format!("zebra {} Zebra LION lion lion", "x".repeat(400)), "Zebra"),
        ] {
            let (from, to) = Matcher::new(&parse(query)).find_best_place(text).expect(query);
            assert_eq!(&text[from..to], want, "{query}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
                "tests/proptest-regressions/matcher.txt",
            ))),
            ..ProptestConfig::default()
        })]

        #[test]
        fn equals_the_naive_oracle(
            texts in proptest::collection::vec("[aAbBéÉßẞeſ\\n\" K\u{212a}\u{301}ςΣ]{0,12}", 0..8),
            cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..6, 1usize..4, 0u8..4, any::<bool>(), any::<bool>()), 1..5),
            is_case_sensitive in any::<bool>(), open in any::<u8>(),
        ) {
            // Needles are cut out of the texts, or hardly any would match.
            let mut query = Query { is_case_sensitive, ..Query::default() };
            for (index, from, length, kind, upper, joined) in cuts {
                if texts.is_empty() { break; }
                let text: String = index.get(&texts).chars().skip(from).take(length).collect();
                if text.is_empty() { continue; }
                let text = if upper { text.to_uppercase() } else { text };
                let pattern = match kind {
                    0 => QueryPattern::regex(&regex::escape(&text), is_case_sensitive).expect("a regex"),
                    _ => QueryPattern::Text(text),
                };
                match query.clauses.last_mut() {
                    Some(last) if joined => last.any.push(pattern),
                    _ => query.clauses.push(Clause { any: vec![pattern], is_excluded: kind == 1, is_optional: false }),
                }
            }
            let open = |row: usize| open == 0 || open & (1 << (row % 8)) != 0;
            let want: Vec<usize> = (0..texts.len()).filter(|row| open(*row) && naive(&query, &texts[*row])).collect();
            prop_assert_eq!(matches(&query, &texts, open), want);
        }
    }
}
