//! Tells which rows of a text column match, over Arrow buffers, with `aho-corasick` and `memmem`.

use aho_corasick::AhoCorasick;
use arrow::array::StringArray;
use memchr::memmem;

use super::fold::{fold, unfold_offset};
use super::query::{Query, Term};

/// One term, ready to be looked for.
enum Needle {
    /// Exactly as written.
    Exact(memmem::Finder<'static>),
    /// ASCII in any case, on the text as it is.
    Ascii(AhoCorasick),
    /// Folded, on the folded text.
    Folded(memmem::Finder<'static>),
}

/// All terms of a query.
pub(super) struct Matcher {
    required: Vec<Needle>,
    excluded: Vec<Needle>,
}

impl Matcher {
    pub(super) fn new(query: &Query) -> Self {
        let needles = |excluded: bool| {
            let mut terms: Vec<&Term> =
                query.terms.iter().filter(|term| term.excluded == excluded).collect();
            // The longest is the likeliest to be rare: it decides most rows alone.
            terms.sort_by_key(|term| std::cmp::Reverse(term.text.len()));
            terms.into_iter().map(|term| Needle::new(&term.text, query.case_sensitive)).collect()
        };
        Self { required: needles(false), excluded: needles(true) }
    }

    /// Appends the rows of `texts` that match to `rows`.
    pub(super) fn rows(&self, texts: &StringArray, rows: &mut Vec<usize>) {
        let all = |row: usize| {
            let text = texts.value(row);
            self.required.iter().skip(1).all(|needle| needle.find(text).is_some())
                && !self.excluded.iter().any(|needle| needle.find(text).is_some())
        };
        match self.required.first() {
            None => rows.extend((0..arrow::array::Array::len(texts)).filter(|row| all(*row))),
            Some(needle) => needle.rows(texts, &mut |row| {
                if all(row) {
                    rows.push(row);
                }
            }),
        }
    }

    /// Where the first required term begins and ends in `text`.
    pub(super) fn first_match(&self, text: &str) -> Option<(usize, usize)> {
        self.required.iter().filter_map(|needle| needle.find(text)).min()
    }
}

impl Needle {
    fn new(text: &str, case_sensitive: bool) -> Self {
        if case_sensitive {
            return Self::Exact(memmem::Finder::new(text.as_bytes()).into_owned());
        }
        let ascii = text
            .is_ascii()
            .then(|| AhoCorasick::builder().ascii_case_insensitive(true).build([text]));
        match ascii {
            Some(Ok(automaton)) => Self::Ascii(automaton),
            // A needle too long for an automaton is looked for in the folded text.
            _ => Self::Folded(memmem::Finder::new(fold(text).as_bytes()).into_owned()),
        }
    }

    /// Calls `found` with every row that contains the needle, ascending.
    fn rows(&self, texts: &StringArray, found: &mut dyn FnMut(usize)) {
        let offsets = texts.value_offsets();
        let rows = offsets.len() - 1;
        let (first, last) = (offsets[0] as usize, offsets[rows] as usize);
        let values = &texts.value_data()[first..last];
        match self {
            Self::Exact(finder) => {
                scan_values(
                    values,
                    offsets,
                    |at| {
                        finder.find(&values[at..]).map(|found| (at + found, finder.needle().len()))
                    },
                    found,
                );
            }
            Self::Ascii(automaton) => scan_values(
                values,
                offsets,
                |at| {
                    let input = aho_corasick::Input::new(values).span(at..values.len());
                    automaton.find(input).map(|found| (found.start(), found.len()))
                },
                found,
            ),
            Self::Folded(finder) => {
                for row in 0..rows {
                    if finder.find(fold(texts.value(row)).as_bytes()).is_some() {
                        found(row);
                    }
                }
            }
        }
    }

    /// Where the needle begins and ends in `text`.
    fn find(&self, text: &str) -> Option<(usize, usize)> {
        match self {
            Self::Exact(finder) => {
                finder.find(text.as_bytes()).map(|at| (at, at + finder.needle().len()))
            }
            Self::Ascii(automaton) => {
                automaton.find(text).map(|found| (found.start(), found.end()))
            }
            Self::Folded(finder) => {
                let folded = fold(text);
                let at = finder.find(folded.as_bytes())?;
                Some((unfold_offset(text, at), unfold_offset(text, at + finder.needle().len())))
            }
        }
    }
}

/// Walks through the matches in a run of values that lie next to each other. A match across the
/// border of two values is none; the search goes on behind its first byte.
fn scan_values(
    values: &[u8],
    offsets: &[i32],
    next: impl Fn(usize) -> Option<(usize, usize)>,
    found: &mut dyn FnMut(usize),
) {
    let base = offsets[0] as usize;
    let mut at = 0;
    while let Some((start, length)) = next(at) {
        let row = offsets.partition_point(|offset| *offset as usize - base <= start) - 1;
        let end = offsets[row + 1] as usize - base;
        if start + length <= end {
            found(row);
            at = end;
        } else {
            at = start + 1;
        }
        if at >= values.len() {
            break;
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
        let mut rows = Vec::new();
        Matcher::new(query).rows(&StringArray::from_iter_values(texts), &mut rows);
        rows
    }

    #[test]
    fn a_match_across_two_rows_is_none() {
        let query = Query::parse("ab", Timestamp(0)).expect("parses");
        assert_eq!(matches(&query, &["xa".into(), "bx".into(), "aab".into(), "".into()]), [2]);
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
