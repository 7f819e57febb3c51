//! Puts the rows of a session back into the database of its agent, all of them or none.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, ffi, params_from_iter,
};

use super::cell;
use super::document::{RowDocument, StoredRow, TableRows, VERSION};
use super::session_tables::{
    FoundTable, column_names, find_session, has_session, quoted, read_tables,
};
use crate::provider::shared::database::cells::read_table_names;
use crate::provider::shared::database::connection::connect_private_copy;
use crate::source::assembly::RowTables;

/// The column with the id of a record, such as a message.
const RECORD_COLUMN: &str = "id";

/// Maximum wait for a lock that another process holds.
const MAX_LOCK_WAIT: Duration = Duration::from_millis(500);

/// Which rows of a session are put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutBack {
    /// All rows of a session that the database lacks. If the database has it, that is an error.
    Missing,
    /// The rows that the session lacks in the database, unless it has a record that the document lacks.
    Longer,
}

/// Puts the rows of a document back into the database of the session that the store knows as `key`, in one
/// transaction. No row that is there changes. The caller makes sure that the agent does not run. To try it,
/// `copy` is a private copy of the database, which gets the rows instead.
///
/// # Errors
/// Returns why nothing was put back.
pub fn put_back_rows(
    key: &str,
    document: &[u8],
    what: PutBack,
    copy: Option<&Path>,
) -> Result<(), String> {
    let Some((tables, database, id)) = find_session(key) else {
        return Err("its database is not one whose tables are known".to_owned());
    };
    let mut document: RowDocument = serde_json::from_slice(document)
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
    let connection = match copy {
        Some(copy) => connect_private_copy(copy),
        None => connect_for_writing(&database),
    };
    let mut connection = connection.map_err(failed)?;
    let behavior = TransactionBehavior::Exclusive;
    let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
    // Rows may name others that come later.
    transaction.execute_batch("PRAGMA defer_foreign_keys = ON").map_err(failed)?;
    let names = read_table_names(&transaction).map_err(failed)?;
    let value_key = tables.value_key(&id);
    let mut is_there = false;
    for place in tables.keys_of(&id, &value_key) {
        is_there |=
            names.contains(place.table) && has_session(&transaction, &place).map_err(failed)?;
    }
    match what {
        PutBack::Missing if is_there => {
            return Err("the database has a session of this id".to_owned());
        }
        PutBack::Longer if is_there => {
            let found = read_tables(&transaction, tables, &id).map_err(failed)?;
            check_beginning(&found.unwrap_or_default(), tables, &document)?;
        }
        PutBack::Missing | PutBack::Longer => {}
    }
    // Triggers on other rows change the row of the session if it is there.
    document.tables.sort_by_key(|table| tables.has_sessions(&table.table));
    for table in &document.tables {
        if !names.contains(&table.table) {
            return Err(format!(
                "the database has no table {}: another version of {agent} wrote it",
                table.table
            ));
        }
        insert_rows(&transaction, table, tables)?;
    }
    let sessions = document.tables.iter().filter(|table| tables.has_sessions(&table.table));
    for table in sessions.filter(|_| !is_there) {
        for row in &table.rows {
            if !has_row(&transaction, &table.table, row)? {
                return Err(format!("a trigger of {agent} changes the row of the session"));
            }
        }
    }
    transaction.commit().map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => {
            "it names a row that is not in the database. Restore the session that it continues, then this one".to_owned()
        }
        _ => failed(error),
    })
}

/// Returns an error if a session in the database has a record that the document lacks: both were continued.
fn check_beginning(
    found: &[FoundTable],
    tables: &RowTables,
    document: &RowDocument,
) -> Result<(), String> {
    for table in found.iter().filter(|table| !table.is_shared && !tables.has_sessions(&table.name))
    {
        let Some(longer) = document.tables.iter().find(|other| other.table == table.name) else {
            continue;
        };
        let mut ids = Vec::new();
        for row in &longer.rows {
            let cell = row.cells.get(RECORD_COLUMN).map(|cell| {
                cell::decode(cell, row.kinds.get(RECORD_COLUMN).copied()).map_err(invalid_rows)
            });
            ids.extend(cell.transpose()?);
        }
        let own = table.rows.iter().flatten().filter(|(name, _)| name == RECORD_COLUMN);
        if own.into_iter().any(|(_, id)| !ids.contains(id)) {
            return Err(format!(
                "the session here has a row of {} that the one from there lacks. Run `sessions ingest`, then the command again",
                table.name
            ));
        }
    }
    Ok(())
}

fn invalid_rows(error: std::io::Error) -> String {
    format!("its rows in the archive are not valid: {error}")
}

/// Ends a change that a killed process left in the middle, as any program does that opens the database.
/// The caller makes sure that no process has it open.
pub fn roll_back(database: &Path) {
    // What fails here is named when the database is used.
    let _ = connect_for_writing(database)
        .and_then(|connection| connection.execute_batch("PRAGMA schema_version"));
}

/// Opens a database that exists for writing.
pub(crate) fn connect_for_writing(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(MAX_LOCK_WAIT)?;
    Ok(connection)
}

/// Inserts the rows of a table. Those that are there stay, as they are: agents leave some rows of a
/// session that they delete.
fn insert_rows(
    transaction: &Transaction<'_>,
    table: &TableRows,
    tables: &RowTables,
) -> Result<(), String> {
    let agent = tables.agent;
    let name = &table.table;
    let session = tables.session_column(name);
    let failed = |error: rusqlite::Error| format!("a row of its table {name} is refused: {error}");
    let columns = column_names(transaction, name).map_err(failed)?;
    let mut missing = Vec::new();
    for row in &table.rows {
        if let Some(unknown) = row.cells.keys().find(|column| !columns.contains(column)) {
            return Err(format!(
                "the table {name} has no column {unknown}: another version of {agent} wrote it"
            ));
        }
        if !has_row(transaction, name, row)? {
            missing.push(row);
        }
    }
    for row in missing {
        let cells: Vec<String> = row.cells.keys().map(|column| quoted(column)).collect();
        let marks = vec!["?"; cells.len()].join(", ");
        // Whatever the table does with rows that are there: they stay.
        let verb = if table.is_shared { "INSERT OR IGNORE" } else { "INSERT OR ABORT" };
        let sql = format!("{verb} INTO {} ({}) VALUES ({marks})", quoted(name), cells.join(", "));
        match transaction.execute(&sql, params_from_iter(decode_cells(row)?)) {
            Err(error) if is_taken(&error) => {
                if !has_own_row(transaction, name, session, row).map_err(failed)? {
                    return Err(format!(
                        "a row of its table {name} has a key that another row has ({error})"
                    ));
                }
            }
            result => {
                result.map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// Returns whether another row has the key of a row.
fn is_taken(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(
        code,
        Some(
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                | ffi::SQLITE_CONSTRAINT_ROWID
                | ffi::SQLITE_CONSTRAINT_UNIQUE
        )
    )
}

fn decode_cells(row: &StoredRow) -> Result<Vec<Value>, String> {
    let values =
        row.cells.iter().map(|(name, cell)| cell::decode(cell, row.kinds.get(name).copied()));
    values.collect::<Result<_, _>>().map_err(invalid_rows)
}

/// Returns whether a table has a row with all of these cells.
fn has_row(transaction: &Transaction<'_>, table: &str, row: &StoredRow) -> Result<bool, String> {
    let equal: Vec<String> =
        row.cells.keys().map(|column| format!("{} IS ?", quoted(column))).collect();
    let sql = format!("SELECT 1 FROM {} WHERE {}", quoted(table), equal.join(" AND "));
    let values = decode_cells(row)?;
    let found = transaction.prepare(&sql).and_then(|mut sql| sql.exists(params_from_iter(&values)));
    found.map_err(|error| format!("its table {table} cannot be read: {error}"))
}

/// Returns whether a table has a row with the key of this one, and of the same session, whose id is in the
/// column `session`.
fn has_own_row(
    transaction: &Transaction<'_>,
    table: &str,
    session: &str,
    row: &StoredRow,
) -> rusqlite::Result<bool> {
    let sql = "SELECT name FROM pragma_index_list(?1) WHERE \"unique\" = 1";
    let indexes: Vec<String> = transaction
        .prepare(sql)?
        .query_map([table], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let columns_of = |sql: &str, of: &str| -> rusqlite::Result<Vec<Option<String>>> {
        transaction.prepare(sql)?.query_map([of], |row| row.get(0))?.collect()
    };
    let mut keys = vec![columns_of("SELECT name FROM pragma_table_info(?1) WHERE pk > 0", table)?];
    for index in &indexes {
        keys.push(columns_of("SELECT name FROM pragma_index_info(?1)", index)?);
    }
    for key in keys.iter().filter(|key| !key.is_empty()) {
        // Keys of expressions have no names.
        let Some(mut columns) = key.iter().cloned().collect::<Option<Vec<String>>>() else {
            continue;
        };
        if row.cells.contains_key(session) {
            columns.push(session.to_owned());
        }
        let mut values = Vec::with_capacity(columns.len());
        for column in &columns {
            let Some(cell) = row.cells.get(column) else { break };
            values.extend(cell::decode(cell, row.kinds.get(column).copied()).ok());
        }
        let equal: Vec<String> =
            columns.iter().map(|column| format!("{} IS ?", quoted(column))).collect();
        let sql = format!("SELECT 1 FROM {} WHERE {}", quoted(table), equal.join(" AND "));
        if values.len() == columns.len()
            && transaction.prepare(&sql)?.exists(params_from_iter(&values))?
        {
            return Ok(true);
        }
    }
    Ok(false)
}
