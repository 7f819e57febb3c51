//! Finds the rows that may match a query, and those that do, from the word postings alone.

use super::query::pattern::Pattern;
use super::query::{Clause, Query};
use crate::store::{KnownRows, Letters, SHORTEST_WORD, SkipIndex, StoreError, WordsOfRows};

/// Returns the rows that may match all clauses and those that do; `None` if no clause can be
/// decided.
pub(super) fn known(index: &SkipIndex, query: &Query) -> Result<Option<KnownRows>, StoreError> {
    if query.clauses.is_empty() {
        return Ok(Some(KnownRows::all(index.rows())));
    }
    let words = index.words();
    let (mut all, mut of_every) = (None, true);
    for clause in &query.clauses {
        match of_clause(&words, clause, query.case_sensitive)? {
            Some(rows) => {
                let rows = if clause.excluded { !rows } else { rows };
                all = Some(both(all, rows));
            }
            None => of_every = false,
        }
    }
    if let Some(all) = all.as_mut().filter(|_| !of_every) {
        all.certain.clear();
    }
    Ok(all)
}

/// Intersects two sets of rows; returns `rows` if there is no other set.
fn both(all: Option<KnownRows>, rows: KnownRows) -> KnownRows {
    let Some(mut all) = all else { return rows };
    all.may.intersect_with(&rows.may);
    all.certain.intersect_with(&rows.certain);
    all
}

/// Returns the rows in which one of the patterns occurs; `None` if the index cannot tell.
fn of_clause(
    words: &WordsOfRows<'_>,
    clause: &Clause,
    case_sensitive: bool,
) -> Result<Option<KnownRows>, StoreError> {
    let mut any: Option<KnownRows> = None;
    for pattern in &clause.any {
        let Some(rows) = of_pattern(words, pattern, case_sensitive)? else { return Ok(None) };
        any = Some(match any {
            Some(mut any) => {
                any.may.union_with(&rows.may);
                any.certain.union_with(&rows.certain);
                any
            }
            None => rows,
        });
    }
    Ok(any)
}

/// Returns the rows in which a pattern occurs; `None` if the index cannot tell.
fn of_pattern(
    words: &WordsOfRows<'_>,
    pattern: &Pattern,
    case_sensitive: bool,
) -> Result<Option<KnownRows>, StoreError> {
    let Pattern::Text(text) = pattern else { return Ok(None) };
    let mut known = of_text(words, &text.to_ascii_lowercase())?;
    if let Some(rows) = known.as_mut().filter(|_| case_sensitive) {
        rows.certain.clear();
    }
    Ok(known)
}

/// Returns the rows that contain a folded text; `None` if the index cannot tell. An ASCII text
/// occurs only in rows with all its words, and certainly in rows with the text if it is one word or
/// a part of one. The index lists texts as written; other texts are searched composed, so the index
/// cannot decide them.
pub(super) fn of_text(
    words: &WordsOfRows<'_>,
    text: &str,
) -> Result<Option<KnownRows>, StoreError> {
    if !text.is_ascii() {
        return Ok(None);
    }
    let mut all: Option<KnownRows> = None;
    let mut end = 0;
    for letters in text.split(|c: char| !c.is_ascii_alphabetic()) {
        let begin = end > 0;
        end += letters.len() + 1;
        if letters.len() >= SHORTEST_WORD {
            let wanted = Letters { letters, begin, end: end < text.len() };
            all = Some(both(all, words.rows_with(&wanted)?));
        }
    }
    if let Some(rows) = all.as_mut().filter(|_| !text.bytes().all(|b| b.is_ascii_alphabetic())) {
        rows.certain.clear();
    }
    Ok(all)
}
