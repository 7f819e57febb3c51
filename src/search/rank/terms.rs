//! Splits a question into the words by which results are ranked.

use std::collections::HashSet;

use crate::base::fold::{fold_text, nfc_if_different};
use crate::base::stem::stem;
use crate::search::query::Query;
use crate::search::query::pattern::QueryPattern;

/// One word of the question.
#[derive(Debug, Clone)]
pub(super) struct QueryTerm {
    /// The text to search for: folded and without its ending.
    pub(super) stem: String,
    /// Number of bytes of the removed ending.
    pub(super) ending: usize,
}

/// Returns the words of a query by which results are ranked.
pub(super) fn ranked_terms(query: &Query) -> Vec<QueryTerm> {
    let mut terms: Vec<QueryTerm> = Vec::new();
    for clause in query.clauses.iter().filter(|clause| !clause.is_excluded) {
        for pattern in &clause.any {
            let QueryPattern::Text(text) = pattern else { continue };
            let folded =
                fold_text(&nfc_if_different(text).unwrap_or_else(|| text.clone())).into_owned();
            if clause.is_optional {
                terms.extend(split_words(&folded));
            } else {
                terms.push(QueryTerm { stem: folded, ending: 0 });
            }
        }
    }

    let mut known = HashSet::new();
    terms.retain(|term| known.insert(term.stem.clone()));
    // Words of one or two bytes count only if there are no longer ones.
    if terms.iter().any(|term| term.stem.len() > 2) {
        terms.retain(|term| term.stem.len() > 2);
    }
    terms
}

/// Splits a folded text into words: runs without spaces and outer punctuation. Chinese, Japanese
/// and Korean text, which has no spaces, is split into pairs of characters.
fn split_words(text: &str) -> impl Iterator<Item = QueryTerm> {
    let mut words = Vec::new();
    for run in text.split_whitespace() {
        let run = run.trim_matches(|c: char| c.is_ascii_punctuation() && !matches!(c, '_' | '/'));
        let chars: Vec<char> = run.chars().collect();
        for part in chars.chunk_by(|a, b| is_cjk(*a) == is_cjk(*b)) {
            if is_cjk(part[0]) && part.len() > 1 {
                let pairs = part.windows(2).map(|pair| pair.iter().collect());
                words.extend(pairs.map(|stem| QueryTerm { stem, ending: 0 }));
            } else {
                let word: String = part.iter().collect();
                let stem = stem(&word).to_owned();
                words.push(QueryTerm { ending: word.len() - stem.len(), stem });
            }
        }
    }
    words.into_iter().filter(|term| !term.stem.is_empty())
}

/// Returns the text by which a ranked search looks for a bare word of the question.
pub(in crate::search) fn question_stem(word: &str) -> String {
    let folded = fold_text(&nfc_if_different(word).unwrap_or_else(|| word.to_owned())).into_owned();
    let words: Vec<QueryTerm> = split_words(&folded).collect();
    match words.as_slice() {
        [only] => only.stem.clone(),
        _ => folded,
    }
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}
