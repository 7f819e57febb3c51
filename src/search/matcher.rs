//! Finds the rows of a page of text that match, with `memmem`, `aho-corasick` and `regex` over
//! its bytes.

use memchr::memmem::Finder;

use super::query::Query;
use super::query::multi::Multi;
use super::query::pattern::{LineRegex, Pattern};
use crate::base::fold::{composed, fold, unfold_offset};
use crate::store::TextValues;

/// One pattern, prepared for searching.
enum Needle {
    /// The text exactly as written.
    Exact(Finder<'static>),
    /// ASCII in any case, searched in the bytes with ASCII letters lowered.
    Lower(Finder<'static>),
    /// Text beyond ASCII, searched as written, and composed in the composed text. Both are
    /// folded unless case matters.
    Beyond(Box<Beyond>),
    Regex(LineRegex),
}

/// A needle with letters beyond ASCII.
struct Beyond {
    written: Finder<'static>,
    composed: Finder<'static>,
    case_sensitive: bool,
    /// Lowered ASCII letters that every text with the needle contains.
    run: Option<Finder<'static>>,
}

/// The way to find candidate rows on a page.
enum Driver {
    /// Every match contains this needle in its lowered bytes.
    Lower(Finder<'static>),
    /// Every match contains this needle in its original bytes.
    Exact(Finder<'static>),
    /// Every match contains one of these needles in its lowered bytes.
    Any(Multi),
    /// A row may match if this expression matches in its original bytes.
    Regex(LineRegex),
    /// Every row is examined.
    Rows,
}

/// All clauses of a query, prepared for searching.
pub(super) struct Matcher {
    driver: Driver,
    /// The required clause that a hit of `driver` already fulfils.
    driven: Option<usize>,
    /// The required clauses; one needle of each must occur.
    required: Vec<Vec<Needle>>,
    /// Excluded ASCII terms, all searched at once in the lowered bytes.
    excluded_lower: Option<Multi>,
    excluded: Vec<Needle>,
    /// True if any search needs the lowered bytes.
    lowers: bool,
}

/// Rows are examined one by one if fewer than one in `SPARSE` rows of a page pass the filters.
const SPARSE: usize = 4;

impl Matcher {
    pub(super) fn new(query: &Query) -> Self {
        let needles = |patterns: &[Pattern]| -> Vec<Needle> {
            patterns.iter().map(|pattern| Needle::new(pattern, query.case_sensitive)).collect()
        };
        let (excluded, required): (Vec<_>, Vec<_>) =
            query.clauses.iter().partition(|clause| clause.excluded);
        let mut required: Vec<_> = required.iter().map(|clause| needles(&clause.any)).collect();
        // The longest first: it is probably the rarest and decides most rows alone.
        required.sort_by_key(|needles| std::cmp::Reverse(weight(needles)));
        let excluded: Vec<_> = excluded.iter().flat_map(|clause| needles(&clause.any)).collect();
        let (lower, excluded): (Vec<_>, Vec<_>) =
            excluded.into_iter().partition(|needle| matches!(needle, Needle::Lower(_)));
        let lower: Vec<_> = lower.iter().filter_map(Needle::lower).collect();
        let excluded_lower = Multi::new(&lower);
        let (driver, driven) = driver(&required);
        let any_lower = required.iter().flatten().any(|n| matches!(n, Needle::Lower(_)));
        let lowers = any_lower || excluded_lower.is_some() || matches!(driver, Driver::Lower(_));
        Self { driver, driven, required, excluded_lower, excluded, lowers }
    }

    /// Calls `found` with each of `rows` (ascending) whose text on the page matches. `lower` is
    /// a scratch buffer.
    pub(super) fn rows(
        &self,
        page: &TextValues<'_>,
        rows: impl ExactSizeIterator<Item = usize>,
        lower: &mut Vec<u8>,
        found: &mut dyn FnMut(usize),
    ) {
        if matches!(self.driver, Driver::Rows) || rows.len() * SPARSE < page.len() {
            for row in rows {
                let text = page.get(row);
                self.lower(text, lower);
                if self.matches(text, lower, None) {
                    found(row);
                }
            }
            return;
        }
        let bytes = page.bytes();
        self.lower(bytes, lower);
        let (mut at, mut value, mut rows) = (0, 0, rows.peekable());
        while let Some((hit, length)) = self.next_hit(bytes, lower, at) {
            at += hit;
            value = page.row_at(at, value);
            let range = page.range(value);
            if at < range.start || at + length > range.end {
                // The hit is in a length field or crosses two values; a real one may follow.
                at += 1;
                continue;
            }
            while rows.next_if(|row| *row < value).is_some() {}
            if let Some(row) = rows.next_if_eq(&value) {
                let lower = if self.lowers { &lower[range.clone()] } else { &[] };
                if self.matches(&bytes[range.clone()], lower, self.driven) {
                    found(row);
                }
            }
            at = range.end;
        }
    }

    fn lower(&self, text: &[u8], lower: &mut Vec<u8>) {
        lower.clear();
        if self.lowers {
            lower.extend(text.iter().map(u8::to_ascii_lowercase));
        }
    }

    /// Returns the next possible match after `at`: its distance from `at` and its length.
    fn next_hit(&self, page: &[u8], lower: &[u8], at: usize) -> Option<(usize, usize)> {
        match &self.driver {
            Driver::Lower(finder) => Some((finder.find(&lower[at..])?, finder.needle().len())),
            Driver::Exact(finder) => Some((finder.find(&page[at..])?, finder.needle().len())),
            Driver::Any(any) => any.find(&lower[at..]),
            // The length of this match is useless: it may extend into the next row.
            Driver::Regex(regex) => Some((regex.find_in_rows(&page[at..])?, 0)),
            Driver::Rows => None,
        }
    }

    /// Returns true if a text matches. `lower` is the text with ASCII letters lowered; `known`
    /// is a clause that is known to hold.
    fn matches(&self, text: &[u8], lower: &[u8], known: Option<usize>) -> bool {
        let holds = |needle: &Needle| needle.is_in(text, lower);
        let mut required = self.required.iter().enumerate();
        required.all(|(at, any)| known == Some(at) || any.iter().any(holds))
            && !self.excluded_lower.as_ref().is_some_and(|any| any.is_match(lower))
            && !self.excluded.iter().any(holds)
    }

    /// Returns the start and end of the first required term in `text`.
    pub(super) fn first_match(&self, text: &str) -> Option<(usize, usize)> {
        self.required.iter().flatten().filter_map(|needle| needle.find(text)).min()
    }
}

/// Returns the length of the shortest needle of a clause.
fn weight(needles: &[Needle]) -> usize {
    let length = |needle: &Needle| match needle {
        Needle::Exact(finder) | Needle::Lower(finder) => finder.needle().len(),
        Needle::Beyond(_) | Needle::Regex(_) => 0,
    };
    needles.iter().map(length).min().unwrap_or(0)
}

/// Chooses the first clause that a byte search can decide, and returns its position if a hit
/// fulfils it.
fn driver(required: &[Vec<Needle>]) -> (Driver, Option<usize>) {
    for (at, needles) in required.iter().enumerate() {
        let driver = match needles.as_slice() {
            [Needle::Lower(finder)] => Driver::Lower(finder.clone()),
            [Needle::Exact(finder)] => Driver::Exact(finder.clone()),
            [Needle::Beyond(beyond)] => match &beyond.run {
                // The run does not decide the clause: the rest of the needle must be searched
                // too.
                Some(run) => return (Driver::Lower(run.clone()), None),
                None => continue,
            },
            // The row must be examined separately: a match may extend into the next one.
            [Needle::Regex(regex)] if regex.finds_rows() => {
                return (Driver::Regex(regex.clone()), None);
            }
            [_] => continue,
            several => {
                let lower: Option<Vec<_>> = several.iter().map(Needle::lower).collect();
                match lower.and_then(|lower| Multi::new(&lower)) {
                    Some(any) => Driver::Any(any),
                    None => continue,
                }
            }
        };
        return (driver, Some(at));
    }
    (Driver::Rows, None)
}

impl Needle {
    fn new(pattern: &Pattern, case_sensitive: bool) -> Self {
        let finder = |needle: &str| Finder::new(needle.as_bytes()).into_owned();
        let text = match pattern {
            Pattern::Regex { regex, .. } => return Self::Regex(regex.clone()),
            Pattern::Text(text) => text,
        };
        if text.is_ascii() {
            return match case_sensitive {
                true => Self::Exact(finder(text)),
                false => Self::Lower(finder(&text.to_ascii_lowercase())),
            };
        }
        let form = |text: &str| match case_sensitive {
            true => finder(text),
            false => finder(&fold(text)),
        };
        let composed = composed(text);
        Self::Beyond(Box::new(Beyond {
            written: form(text),
            composed: form(composed.as_deref().unwrap_or(text)),
            case_sensitive,
            run: ascii_run(composed.as_deref().unwrap_or(text)).map(|run| finder(&run)),
        }))
    }

    fn lower(&self) -> Option<&[u8]> {
        match self {
            Self::Lower(finder) => Some(finder.needle()),
            Self::Exact(_) | Self::Beyond(_) | Self::Regex(_) => None,
        }
    }

    fn is_in(&self, text: &[u8], lower: &[u8]) -> bool {
        match self {
            Self::Exact(finder) => finder.find(text).is_some(),
            Self::Lower(finder) => finder.find(lower).is_some(),
            // ASCII folds to ASCII, so an ASCII text cannot contain this needle, unless the
            // needle is composed to ASCII (K).
            Self::Beyond(beyond) => {
                let may = !text.is_ascii() || beyond.composed.needle().is_ascii();
                may && self.find(&String::from_utf8_lossy(text)).is_some()
            }
            Self::Regex(regex) => regex.is_match(text),
        }
    }

    /// Returns the start and end of the needle in `text`.
    fn find(&self, text: &str) -> Option<(usize, usize)> {
        match self {
            Self::Exact(finder) => {
                finder.find(text.as_bytes()).map(|at| (at, at + finder.needle().len()))
            }
            Self::Lower(finder) => {
                let at = finder.find(text.to_ascii_lowercase().as_bytes())?;
                Some((at, at + finder.needle().len()))
            }
            Self::Beyond(beyond) => beyond.find(text),
            Self::Regex(regex) => regex.find(text.as_bytes()),
        }
    }
}

/// Returns the longest ASCII run of a composed needle if it has more than two bytes. A text
/// that is not composed contains the same ASCII run, except for three characters that others are
/// composed to.
fn ascii_run(composed: &str) -> Option<String> {
    let runs = composed.split(|c: char| !c.is_ascii() || matches!(c, 'k' | 'K' | ';' | '`'));
    runs.max_by_key(|run| run.len()).filter(|run| run.len() > 2).map(str::to_ascii_lowercase)
}

impl Beyond {
    fn find(&self, text: &str) -> Option<(usize, usize)> {
        self.place(&self.written, text, text, false).or_else(|| {
            let composed = composed(text);
            // If the text is composed already, only the needle may have changed.
            let differs = composed.is_some() || self.written.needle() != self.composed.needle();
            let form = composed.as_deref().unwrap_or(text);
            differs.then(|| self.place(&self.composed, text, form, composed.is_some())).flatten()
        })
    }

    /// Returns the place in `text` where `finder` finds its needle in `form`, which is `text`
    /// or `text` composed.
    fn place(
        &self,
        finder: &Finder<'_>,
        text: &str,
        form: &str,
        compose: bool,
    ) -> Option<(usize, usize)> {
        let folded = if self.case_sensitive { form.into() } else { fold(form) };
        let at = finder.find(folded.as_bytes())?;
        let unfold = |at| unfold_offset(text, at, compose, self.case_sensitive);
        Some((unfold(at), unfold(at + finder.needle().len())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::query::Clause;
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;
    use schemas::Timestamp;

    /// The definition: in the folded text, or both composed.
    fn contains(text: &str, needle: &str, case_sensitive: bool) -> bool {
        let form =
            |text: &str| if case_sensitive { text.to_owned() } else { fold(text).into_owned() };
        let nfc = |text: &str| form(&composed(text).unwrap_or_else(|| text.to_owned()));
        form(text).contains(&form(needle)) || !needle.is_ascii() && nfc(text).contains(&nfc(needle))
    }

    fn naive(query: &Query, text: &str) -> bool {
        query.clauses.iter().all(|clause| {
            let any = clause.any.iter().any(|pattern| match pattern {
                Pattern::Text(needle) => contains(text, needle, query.case_sensitive),
                Pattern::Regex { regex, .. } => regex.is_match(text.as_bytes()),
            });
            any != clause.excluded
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
        Matcher::new(query).rows(&page, rows.into_iter(), &mut Vec::new(), &mut |row| {
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
        ] {
            let (from, to) = Matcher::new(&parse(query)).first_match(text).expect(query);
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
            case_sensitive in any::<bool>(), open in any::<u8>(),
        ) {
            // Needles are cut out of the texts, or hardly any would match.
            let mut query = Query { case_sensitive, ..Query::default() };
            for (index, from, length, kind, upper, joined) in cuts {
                if texts.is_empty() { break; }
                let text: String = index.get(&texts).chars().skip(from).take(length).collect();
                if text.is_empty() { continue; }
                let text = if upper { text.to_uppercase() } else { text };
                let pattern = match kind {
                    0 => Pattern::regex(&regex::escape(&text), case_sensitive).expect("a regex"),
                    _ => Pattern::Text(text),
                };
                match query.clauses.last_mut() {
                    Some(last) if joined => last.any.push(pattern),
                    _ => query.clauses.push(Clause { any: vec![pattern], excluded: kind == 1, optional: false }),
                }
            }
            let open = |row: usize| open == 0 || open & (1 << (row % 8)) != 0;
            let want: Vec<usize> = (0..texts.len()).filter(|row| open(*row) && naive(&query, &texts[*row])).collect();
            prop_assert_eq!(matches(&query, &texts, open), want);
        }
    }
}
