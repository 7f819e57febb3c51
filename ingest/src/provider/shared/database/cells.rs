//! Reads names and cells of a database.

use std::collections::HashSet;
use std::fmt::Write as _;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use serde_json::Value as Json;

/// Returns the names of the tables in a database.
pub(crate) fn read_table_names(connection: &Connection) -> Result<HashSet<String>> {
    // A view or a virtual table may have an unlimited number of rows.
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Returns the names of the columns of a table.
pub(crate) fn read_columns(connection: &Connection, table: &str) -> Result<HashSet<String>> {
    let statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
    Ok(statement.column_names().map(str::to_owned).collect())
}

/// Returns SQL of a value of a row, in which NULL is in place of the columns that the table does not
/// have. Other versions of an agent may not have all columns.
///
/// # Errors
/// Returns the errors of SQL that is wrong for another reason.
pub(crate) fn known_sql(connection: &Connection, table: &str, sql: &str) -> Result<String> {
    let mut known = sql.to_owned();
    loop {
        let Err(error) = connection.prepare(&format!("SELECT {known} FROM {table}")) else {
            return Ok(known);
        };
        let message = error.to_string();
        let missing = message.split_once(NO_COLUMN).map(|(_, rest)| rest.split(' ').next());
        let Some(column) = missing.flatten().filter(|column| !column.is_empty()) else {
            return Err(error);
        };
        let replaced = replace_word(&known, column, "NULL");
        if replaced == known {
            return Err(error);
        }
        known = replaced;
    }
}

/// The beginning of SQLite's message about a column that a table does not have.
const NO_COLUMN: &str = "no such column: ";

/// Returns SQL with another word in place of each `word`.
fn replace_word(sql: &str, word: &str, by: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let mut replaced = String::new();
    let mut end = 0;
    for (at, _) in sql.match_indices(word) {
        let after = at + word.len();
        if !sql[..at].ends_with(is_part) && !sql[after..].starts_with(is_part) {
            replaced.push_str(&sql[end..at]);
            replaced.push_str(by);
            end = after;
        }
    }
    replaced + &sql[end..]
}

/// Maximum size in bytes of a cell with a name, a title or a mark. A larger one is read as NULL.
const MAX_SHORT_CELL_BYTES: u64 = 64 << 10;

/// Returns SQL of the cells of short columns, each after a comma.
pub(crate) fn select_cells(columns: &[&str]) -> String {
    let mut sql = String::new();
    for name in columns {
        let _ = write!(
            sql,
            ", CASE WHEN octet_length({name}) <= {MAX_SHORT_CELL_BYTES} THEN {name} END"
        );
    }
    sql
}

/// Returns a cell as text. A cell that is neither text nor a number is an empty text.
pub(crate) fn cell_text(cell: ValueRef<'_>) -> String {
    match cell {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Null | ValueRef::Real(_) => String::new(),
    }
}

/// Returns the bytes of a cell with text or binary data. A cell of another type has none.
pub(crate) fn cell_bytes(cell: ValueRef<'_>) -> &[u8] {
    match cell {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
    }
}

/// Returns a cell as an integer. A cell of another type is 0.
pub(crate) fn cell_integer(cell: ValueRef<'_>) -> i64 {
    if let ValueRef::Integer(number) = cell { number } else { 0 }
}

/// Returns a cell with seconds since 1970 in microseconds.
pub(crate) fn cell_micros(cell: ValueRef<'_>) -> Option<i64> {
    let seconds = match cell {
        #[expect(clippy::cast_precision_loss, reason = "seconds are far below 2^52")]
        ValueRef::Integer(number) => number as f64,
        ValueRef::Real(number) => number,
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => return None,
    };
    #[expect(clippy::cast_possible_truncation, reason = "below 1e17")]
    let micros = (seconds * 1e6).round() as i64;
    (1.0..1e11).contains(&seconds).then_some(micros)
}

/// Returns a cell as JSON. `None` if it has no value.
pub(crate) fn cell_json(cell: ValueRef<'_>) -> Option<Json> {
    match cell {
        ValueRef::Null | ValueRef::Blob(_) => None,
        ValueRef::Integer(number) => Some(number.into()),
        ValueRef::Real(number) => Some(number.into()),
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_a_table_does_not_have_are_null() {
        let connection = Connection::open_in_memory().expect("opens");
        let known = |sql: &str| known_sql(&connection, "talks", sql);
        connection.execute_batch("CREATE TABLE talks (id, changed, at_most)").expect("creates");
        let sql = "ifnull(changed, at) + at_most + (SELECT t.at FROM talks t WHERE t.id = talk)";
        assert_eq!(
            known(sql).expect("is known"),
            "ifnull(changed, NULL) + at_most + (SELECT NULL FROM talks t WHERE t.id = NULL)"
        );
        known("id +").expect_err("wrong SQL");
        known("lasts(id)").expect_err("an unknown function");
    }
}
