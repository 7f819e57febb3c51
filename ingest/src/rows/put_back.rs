//! Puts the rows of a session back into the database of its agent, all of them or none.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params_from_iter};

use super::cell;
use super::document::{SessionRows, TableRows, VERSION};
use super::session_tables::{column_names, find_session, has_session, quoted};
use crate::provider::shared::database::cells::read_table_names;

/// Maximum wait for a lock that another process holds.
const MAX_LOCK_WAIT: Duration = Duration::from_millis(500);

/// Puts the rows of a document back into the database of the session that the store knows as `key`, in one
/// transaction. No row that is there changes. The caller makes sure that the agent does not run.
///
/// # Errors
/// Returns why nothing was put back.
pub fn put_back_rows(key: &str, document: &[u8]) -> Result<(), String> {
    let Some((tables, database, id)) = find_session(key) else {
        return Err("its database is not one whose tables are known".to_owned());
    };
    let document: SessionRows = serde_json::from_slice(document)
        .map_err(|error| format!("its rows in the archive are not valid: {error}"))?;
    if document.version != VERSION {
        return Err(format!(
            "its rows in the archive have version {}, which this version of the program does not read",
            document.version
        ));
    }
    let agent = tables.agent;
    if !database.is_file() {
        return Err(format!(
            "the database {} does not exist. Start {agent} once, which creates it, and end it",
            database.display()
        ));
    }
    let failed = |error: rusqlite::Error| {
        format!("its database cannot be written: {error}. End {agent}, then run the command again")
    };
    let mut connection = connect_for_writing(&database).map_err(failed)?;
    let behavior = TransactionBehavior::Exclusive;
    let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
    // Rows may name others that come later.
    transaction.execute_batch("PRAGMA defer_foreign_keys = ON").map_err(failed)?;
    let names = read_table_names(&transaction).map_err(failed)?;
    let value_key = tables.value_key(&id);
    for place in tables.keys_of(&id, &value_key) {
        if names.contains(place.table) && has_session(&transaction, &place).map_err(failed)? {
            return Err("the database has a session of this id".to_owned());
        }
    }
    for table in &document.tables {
        if !names.contains(&table.table) {
            return Err(format!(
                "the database has no table {}: another version of {agent} wrote it",
                table.table
            ));
        }
        insert_rows(&transaction, table, agent)?;
    }
    transaction.commit().map_err(failed)
}

/// Opens a database that exists for writing.
pub(crate) fn connect_for_writing(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(MAX_LOCK_WAIT)?;
    Ok(connection)
}

/// Inserts the rows of a table. Those that are there stay: agents leave some rows of a session that they
/// delete.
fn insert_rows(
    transaction: &Transaction<'_>,
    table: &TableRows,
    agent: &str,
) -> Result<(), String> {
    let name = &table.table;
    let failed = |error: rusqlite::Error| format!("a row of its table {name} is refused: {error}");
    let columns = column_names(transaction, name).map_err(failed)?;
    let mut missing = Vec::new();
    for row in &table.rows {
        if let Some(unknown) = row.keys().find(|column| !columns.contains(column)) {
            return Err(format!(
                "the table {name} has no column {unknown}: another version of {agent} wrote it"
            ));
        }
        let cells: Vec<String> = row.keys().map(|column| quoted(column)).collect();
        let values = row.values().map(cell::decode).collect::<Result<Vec<_>, _>>();
        let values =
            values.map_err(|error| format!("its rows in the archive are not valid: {error}"))?;
        let equal: Vec<String> = cells.iter().map(|cell| format!("{cell} IS ?")).collect();
        let sql = format!("SELECT 1 FROM {} WHERE {}", quoted(name), equal.join(" AND "));
        let is_there =
            transaction.prepare(&sql).and_then(|mut sql| sql.exists(params_from_iter(&values)));
        if !is_there.map_err(failed)? {
            missing.push((cells, values));
        }
    }
    for (cells, values) in missing {
        let marks = vec!["?"; cells.len()].join(", ");
        let verb = if table.is_shared { "INSERT OR IGNORE" } else { "INSERT" };
        let sql = format!("{verb} INTO {} ({}) VALUES ({marks})", quoted(name), cells.join(", "));
        transaction.execute(&sql, params_from_iter(values)).map_err(failed)?;
    }
    Ok(())
}
