//! Rewrites DuckDB's errors for users: the message, its place, and the nearest existing name.

use std::fmt;

use schemas::nearest;
use schemas::view::{SqlView, VIEWS};
use serde_json::Value;

use super::error::{Fault, Mistake};
use base::sanitize::{clean_text, truncate_for_json, truncate_middle_for_json};

/// Maximum number of characters of a query that a message shows.
const MAX_SHOWN_CHARS: usize = 40;

/// Maximum size in bytes of JSON of DuckDB's own text in a message. A query may make it as long as it
/// likes.
const MAX_MESSAGE_BYTES: usize = 600;

/// Maximum size in bytes of JSON of an unknown name in a message.
const MAX_NAME_BYTES: usize = 200;

/// A place in a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueryPlace {
    /// 1-based.
    pub(super) line: usize,
    /// 1-based, in characters.
    pub(super) column: usize,
    /// The beginning of the text there.
    text: String,
}

impl fmt::Display for QueryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at line {}, column {}: {}", self.line, self.column, self.text)
    }
}

/// A query in a statement that was sent to DuckDB.
pub(super) struct SentQuery<'q> {
    pub(super) sql: &'q str,
    /// Number of bytes before the query in the statement.
    pub(super) before: usize,
    /// The views that the query names.
    pub(super) used: &'q [&'q str],
}

/// Converts an error of DuckDB about a query to a fault.
pub(super) fn query_fault(error: &duckdb::Error, query: &SentQuery<'_>) -> Fault {
    let whole = raw_message(error);
    if is_out_of_memory(&whole) {
        return Fault::OutOfMemory;
    }
    let Some(parsed) = parse_message(&whole) else {
        return Fault::mistake(shorten_message(&whole));
    };
    let text = parsed["exception_message"].as_str().unwrap_or(&whole);
    let mut lines = vec![shorten_message(text.trim_end())];

    let sent_at = parsed["position"].as_str().and_then(|at| at.parse::<usize>().ok());
    let query_at = sent_at.and_then(|at| at.checked_sub(query.before));
    let place = query_at.and_then(|at| query_place(query.sql, at));
    lines.extend(place.as_ref().map(|place| clean_text(&place.to_string())));

    let name = unknown_column(&parsed, text)
        .map(|name| truncate_for_json(&clean_text(&name), MAX_NAME_BYTES).0.to_owned());
    if let Some(name) = name.as_deref() {
        lines.extend(suggest_column(name, query.used));
        lines.extend(list_columns(query.used));
    }
    if parsed["exception_type"] == "Parser" {
        lines.push("If there is a semicolon, remove it and everything after it".to_owned());
    }

    let place = place.map(|place| (place.line, place.column));
    Fault::Mistake(Mistake { message: lines.join("\n"), place, name })
}

/// Returns DuckDB's message without its JSON frame.
pub(super) fn describe_error(error: &duckdb::Error) -> String {
    let whole = raw_message(error);
    let parsed = parse_message(&whole);
    let text = parsed.as_ref().and_then(|parsed| parsed["exception_message"].as_str());
    shorten_message(text.unwrap_or(&whole))
}

/// Returns a text of DuckDB as a message shows it, without its middle if it is too long.
fn shorten_message(text: &str) -> String {
    truncate_middle_for_json(&clean_text(text), MAX_MESSAGE_BYTES).0
}

/// Returns the message of an error as DuckDB wrote it.
fn raw_message(error: &duckdb::Error) -> String {
    if let duckdb::Error::DuckDBFailure(_, Some(message)) = error {
        return message.clone();
    }
    error.to_string()
}

/// Parses a message of DuckDB. With `errors_as_json` it is the kind of error and an object.
fn parse_message(message: &str) -> Option<Value> {
    serde_json::from_str(message.get(message.find('{')?..)?).ok()
}

fn is_out_of_memory(message: &str) -> bool {
    ["Out of Memory", "bad_alloc", "bad allocation", "Allocation failure"]
        .iter()
        .any(|words| message.contains(words))
}

/// Returns the place of a byte. Returns `None` if the byte is not the first of a character, or is
/// after the end.
pub(super) fn query_place(sql: &str, at: usize) -> Option<QueryPlace> {
    let (before, rest) = sql.split_at_checked(at)?;
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let first_line = rest.lines().next().unwrap_or("");
    let shown: String = first_line.chars().take(MAX_SHOWN_CHARS).collect();
    Some(QueryPlace {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        text: if shown.is_empty() { "the end".to_owned() } else { shown },
    })
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
fn suggest_column(name: &str, used: &[&str]) -> Option<String> {
    let mut holders = Vec::new();
    for view in VIEWS {
        if view.columns().any(|column| column.name.eq_ignore_ascii_case(name)) {
            holders.push(view.name);
        }
    }
    if !holders.is_empty() && !holders.iter().any(|holder| used.contains(holder)) {
        let holder_names = holders.join(", ");
        return Some(format!("'{name}' is a column of {holder_names}; JOIN it USING (session_id)"));
    }

    let views = VIEWS.iter().filter(|view| used.is_empty() || used.contains(&view.name));
    let columns = views.flat_map(SqlView::columns).map(|column| column.name);
    nearest(name, columns).map(|near| format!("Did you mean '{near}'?"))
}

/// Lists all columns of each view that a query names.
fn list_columns(used: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for view in VIEWS.iter().filter(|view| used.contains(&view.name)) {
        let names: Vec<_> = view.columns().map(|column| column.name).collect();
        lines.push(format!("Columns of {}: {}", view.name, names.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_there_are_found() {
        assert_eq!(
            suggest_column("even_index", &["events"]).as_deref(),
            Some("Did you mean 'event_index'?")
        );
        assert_eq!(
            suggest_column("title", &["events"]).as_deref(),
            Some("'title' is a column of sessions, lineage; JOIN it USING (session_id)")
        );
        assert_eq!(suggest_column("zzzz", &["labels"]), None);
        assert_eq!(
            list_columns(&["labels"]),
            ["Columns of labels: session_id, label, note, updated_at"]
        );
    }

    #[test]
    fn a_place_has_line_and_column() {
        let describe = |sql, at| query_place(sql, at).map(|place| place.to_string());
        let x = describe("SELECT\n é, x", 12);
        assert_eq!(x.as_deref(), Some("at line 2, column 5: x"));
        assert_eq!(describe("SELECT", 6).as_deref(), Some("at line 1, column 7: the end"));
        assert_eq!(query_place("é", 1), None);
        assert_eq!(query_place("", 3), None);
    }
}
