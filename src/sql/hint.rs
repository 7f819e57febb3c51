//! Rewrites DuckDB's errors for users: the message, its place, and the nearest existing name.

use std::collections::BTreeSet;

use schemas::view::{VIEWS, View};
use serde_json::Value;

use super::error::{Fault, Mistake};
use crate::base::sanitize::clean;

/// Minimum Jaro-Winkler similarity of a name that is suggested.
const LIKE: f64 = 0.8;

/// Returns the name among `names` that is most similar to `name`, if it is similar enough.
pub(super) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_ascii_lowercase();
    let scored = names.map(|known| (strsim::jaro_winkler(&name, known), known));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= LIKE).then_some(best.1)
}

/// Converts an error of DuckDB to a fault. `before` is the number of bytes before the query in the
/// statement that DuckDB got; `used` are the views that the query names.
pub(super) fn sql_error(error: &duckdb::Error, sql: &str, before: usize, used: &[&str]) -> Fault {
    let whole = message(error);
    if is_out_of_memory(&whole) {
        return Fault::OutOfMemory;
    }
    let Some(parsed) = parsed(&whole) else {
        return Fault::mistake(clean(&whole));
    };
    let text = parsed["exception_message"].as_str().unwrap_or(&whole);
    let mut said = clean(text.trim_end());
    let at = parsed["position"].as_str().and_then(|at| at.parse::<usize>().ok());
    let place = at.and_then(|at| at.checked_sub(before)).and_then(|at| place(sql, at));
    if let Some((line, column, near)) = &place {
        said = format!("{said}\nat line {line}, column {column}: {}", clean(near));
    }
    let help = unknown_column(&parsed, text).map(|name| (column_hint(&name, used), name));
    if let Some((Some(hint), _)) = &help {
        said = format!("{said}\n{hint}");
    }
    if parsed["exception_type"] == "Parser" {
        said = format!("{said}\nLeave out a semicolon and what follows it");
    }
    let place = place.map(|(line, column, _)| (line, column));
    Fault::Mistake(Mistake { message: said, place, name: help.map(|(_, name)| name) })
}

/// Returns DuckDB's message without its JSON frame.
pub(super) fn words(error: &duckdb::Error) -> String {
    let whole = message(error);
    let words = parsed(&whole).and_then(|said| said["exception_message"].as_str().map(clean));
    words.unwrap_or(whole)
}

fn message(error: &duckdb::Error) -> String {
    if let duckdb::Error::DuckDBFailure(_, Some(message)) = error {
        return message.clone();
    }
    error.to_string()
}

/// Parses a message of DuckDB. With `errors_as_json` it is the kind of error and an object.
fn parsed(message: &str) -> Option<Value> {
    serde_json::from_str(message.get(message.find('{')?..)?).ok()
}

fn is_out_of_memory(message: &str) -> bool {
    ["Out of Memory", "bad_alloc", "bad allocation", "Allocation failure"]
        .iter()
        .any(|words| message.contains(words))
}

/// Returns the 1-based line and column of a byte, and the text there.
pub(super) fn place(sql: &str, at: usize) -> Option<(usize, usize, String)> {
    let (before, rest) = (sql.get(..at)?, sql.get(at..)?);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    let near: String = rest.lines().next().unwrap_or("").chars().take(40).collect();
    Some((line, column, if near.is_empty() { "the end".to_owned() } else { near }))
}

/// Returns the name of the column that DuckDB does not know.
fn unknown_column(parsed: &Value, text: &str) -> Option<String> {
    if parsed["error_subtype"] == "COLUMN_NOT_FOUND" {
        return parsed["name"].as_str().map(str::to_owned);
    }
    let (_, name) = text.split_once("does not have a column named \"")?;
    name.split('"').next().map(str::to_owned)
}

/// Names the views that have the column, or the most similar column.
fn column_hint(name: &str, used: &[&str]) -> Option<String> {
    let has = |view: &&View| view.columns().any(|column| column.name.eq_ignore_ascii_case(name));
    let holders: Vec<_> = VIEWS.iter().filter(has).map(|view| view.name).collect();
    if !holders.is_empty() && !holders.iter().any(|holder| used.contains(holder)) {
        let holders = holders.join(", ");
        return Some(format!("'{name}' is a column of {holders}; JOIN it USING (session_id)"));
    }
    let asked = VIEWS.iter().filter(|view| used.is_empty() || used.contains(&view.name));
    let columns: BTreeSet<_> = asked.flat_map(View::columns).map(|column| column.name).collect();
    nearest(name, columns.into_iter()).map(|near| format!("Did you mean '{near}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_there_are_found() {
        assert_eq!(
            column_hint("even_index", &["events"]).as_deref(),
            Some("Did you mean 'event_index'?")
        );
        assert_eq!(
            column_hint("title", &["events"]).as_deref(),
            Some("'title' is a column of sessions, lineage; JOIN it USING (session_id)")
        );
        assert_eq!(column_hint("zzzz", &["labels"]), None);
    }

    #[test]
    fn a_place_has_line_and_column() {
        assert_eq!(place("SELECT\n é, x", 12), Some((2, 5, "x".to_owned())));
        assert_eq!(place("SELECT", 6), Some((1, 7, "the end".to_owned())));
        assert_eq!(place("é", 1), None);
        assert_eq!(place("", 3), None);
    }
}
