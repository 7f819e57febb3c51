//! What the rows that a segment lists for its frequent words say of a query, without any text.

use super::pattern::Pattern;
use super::query::{Clause, Query};
use crate::store::{KnownRows, SkipIndex, StoreError};

/// The rows that may match all clauses and those that do; `None` when nothing is known of any.
pub(super) fn known(index: &SkipIndex, query: &Query) -> Result<Option<KnownRows>, StoreError> {
    if query.clauses.is_empty() {
        return Ok(Some(KnownRows::all(index.rows())));
    }
    let (mut all, mut of_every) = (None, true);
    for clause in &query.clauses {
        match of_clause(index, clause, query.case_sensitive)? {
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

/// The rows of both, or of the one that there is.
fn both(all: Option<KnownRows>, rows: KnownRows) -> KnownRows {
    let Some(mut all) = all else { return rows };
    all.may.intersect_with(&rows.may);
    all.certain.intersect_with(&rows.certain);
    all
}

/// Rows in which one of the patterns occurs.
fn of_clause(
    index: &SkipIndex,
    clause: &Clause,
    case_sensitive: bool,
) -> Result<Option<KnownRows>, StoreError> {
    let mut any: Option<KnownRows> = None;
    for pattern in &clause.any {
        let Some(rows) = of_pattern(index, pattern, case_sensitive)? else { return Ok(None) };
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

/// A text of ASCII occurs only where all its words do, and is certain where it is one word.
fn of_pattern(
    index: &SkipIndex,
    pattern: &Pattern,
    case_sensitive: bool,
) -> Result<Option<KnownRows>, StoreError> {
    let Pattern::Text(text) = pattern else { return Ok(None) };
    if !text.is_ascii() {
        return Ok(None);
    }
    let text = text.to_ascii_lowercase();
    let mut all: Option<KnownRows> = None;
    for word in text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
        let Some(rows) = index.rows_with(word)? else { continue };
        all = Some(both(all, rows));
    }
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphabetic());
    Ok(all.map(|mut rows| {
        if case_sensitive || !is_word {
            rows.certain.clear();
        }
        rows
    }))
}
