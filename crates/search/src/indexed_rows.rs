//! Finds the rows that may match a query, and those that do, from the word postings alone.

use super::query::pattern::QueryPattern;
use super::query::{Clause, Query};
use store::{KnownRows, SHORTEST_WORD, SkipIndex, StoreError, WordLookup, WordPattern};

/// Returns the rows that may match all clauses and those that do; `None` if no clause can be
/// decided.
pub(super) fn find_indexed_rows(
    index: &SkipIndex,
    query: &Query,
) -> Result<Option<KnownRows>, StoreError> {
    if query.clauses.is_empty() {
        return Ok(Some(KnownRows::all_certain(index.row_count())));
    }
    let words = index.word_lookup();
    let mut all: Option<KnownRows> = None;
    let mut has_undecided_clause = false;
    for clause in &query.clauses {
        let Some(rows) = find_clause_rows(&words, clause, query.is_case_sensitive)? else {
            has_undecided_clause = true;
            continue;
        };
        let rows = if clause.is_excluded { !rows } else { rows };
        all = Some(intersect_rows(all, rows));
    }
    if has_undecided_clause && let Some(all) = &mut all {
        all.certain.clear();
    }
    Ok(all)
}

/// Intersects two sets of rows; returns `rows` if there is no other set.
fn intersect_rows(all: Option<KnownRows>, rows: KnownRows) -> KnownRows {
    let Some(mut all) = all else { return rows };
    all.possible.intersect_with(&rows.possible);
    all.certain.intersect_with(&rows.certain);
    all
}

/// Returns the rows in which one of the patterns occurs; `None` if the index cannot tell.
fn find_clause_rows(
    words: &WordLookup<'_>,
    clause: &Clause,
    case_sensitive: bool,
) -> Result<Option<KnownRows>, StoreError> {
    let mut any: Option<KnownRows> = None;
    for pattern in &clause.any {
        let Some(rows) = find_pattern_rows(words, pattern, case_sensitive)? else {
            return Ok(None);
        };
        any = Some(match any {
            Some(mut any) => {
                any.possible.union_with(&rows.possible);
                any.certain.union_with(&rows.certain);
                any
            }
            None => rows,
        });
    }
    Ok(any)
}

/// Returns the rows in which a pattern occurs; `None` if the index cannot tell.
fn find_pattern_rows(
    words: &WordLookup<'_>,
    pattern: &QueryPattern,
    case_sensitive: bool,
) -> Result<Option<KnownRows>, StoreError> {
    let QueryPattern::Text(text) = pattern else { return Ok(None) };
    let mut known = find_text_rows(words, &text.to_ascii_lowercase())?;
    // The index does not distinguish upper and lower case.
    if case_sensitive && let Some(rows) = &mut known {
        rows.certain.clear();
    }
    Ok(known)
}

/// Returns the rows that contain a folded text; `None` if the index cannot tell.
///
/// An ASCII text occurs only in rows that have all its words. These rows are certain only if the
/// text is one word or a part of one. Texts beyond ASCII are searched composed, and the index lists
/// texts as they are written, so it cannot decide them.
pub(super) fn find_text_rows(
    words: &WordLookup<'_>,
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
            let wanted =
                WordPattern { letters, must_begin_word: begin, must_end_word: end < text.len() };
            all = Some(intersect_rows(all, words.find_rows_with(&wanted)?));
        }
    }

    let is_part_of_word = text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_part_of_word && let Some(rows) = &mut all {
        rows.certain.clear();
    }
    Ok(all)
}
