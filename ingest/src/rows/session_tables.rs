//! Finds the tables with the rows of a session, and reads these rows.

use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Result};

use super::document::Row;
use crate::provider::assemblies;
use crate::provider::shared::database::cells::read_table_names;
use crate::provider::shared::database::tables::split_session_path;
use crate::source::assembly::RowTables;
use crate::source::container::MAX_DOCUMENT_BYTES;

/// The column with the id of the session in tables that are not listed.
const SESSION_COLUMN: &str = "session_id";

/// The rows of a session in a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundTable {
    pub(super) name: String,
    pub(super) is_shared: bool,
    pub(super) rows: Vec<Row>,
}

/// Returns the tables, the database and the id of the session that the store knows as `key`. `None` if it
/// is not in a database whose tables are known.
pub(crate) fn find_session(key: &str) -> Option<(&'static RowTables, PathBuf, String)> {
    let (database, id) = split_session_path(Path::new(key))?;
    let assembly = assemblies().find(|assembly| assembly.has_source(&database))?;
    assembly.rows.as_ref().map(|tables| (tables, database, id))
}

/// Reads all rows of a session, those that others need first. `None` if the database does not have the
/// session, or more of it than a document may have.
pub(super) fn read_tables(
    connection: &Connection,
    tables: &RowTables,
    id: &str,
) -> Result<Option<Vec<FoundTable>>> {
    let mut names: Vec<String> = read_table_names(connection)?.into_iter().collect();
    names.sort();
    let mut reader = RowReader { connection, bytes: 0 };
    let mut sessions = Vec::new();
    let mut rest = Vec::new();
    for name in &names {
        if let Some((_, column)) = tables.sessions.iter().find(|(table, _)| table == name) {
            let found = reader.read(name, &format!("{} = ?1", quoted(column)), &[id])?;
            sessions.extend(found);
        } else if let Some((_, column, starts)) = tables.values.filter(|(table, ..)| table == name)
        {
            let (column, mut rows) = (quoted(column), Vec::new());
            for start in starts {
                // The rows of the session itself, and those of its parts.
                let keys =
                    [format!("{start}{id}"), format!("{start}{id}:"), format!("{start}{id};")];
                let condition = format!("{column} = ?1 OR ({column} >= ?2 AND {column} < ?3)");
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                rows.extend(reader.read(name, &condition, &keys)?.map(|found| found.rows));
            }
            let rows: Vec<Row> = rows.into_iter().flatten().collect();
            if !rows.is_empty() {
                sessions.push(FoundTable { name: name.clone(), is_shared: false, rows });
            }
        } else {
            let session = tables.session_column(name);
            if column_names(connection, name)?.iter().any(|column| column == session) {
                rest.extend(reader.read(name, &format!("{} = ?1", quoted(session)), &[id])?);
            }
        }
    }
    if sessions.is_empty() || reader.bytes > MAX_DOCUMENT_BYTES {
        return Ok(None);
    }
    let mut found = Vec::new();
    for (table, key, column) in
        tables.shared.iter().filter(|(table, ..)| names.iter().any(|name| name == table))
    {
        let named = sessions.iter().flat_map(|session| session.rows.iter().flatten());
        let named: Vec<&Value> =
            named.filter(|(name, _)| name == column).map(|(_, value)| value).collect();
        if let Some(Value::Text(other)) = named.first() {
            let shared = reader.read(table, &format!("{} = ?1", quoted(key)), &[other])?;
            found.extend(shared.map(|shared| FoundTable { is_shared: true, ..shared }));
        }
    }
    found.extend(sessions);
    found.extend(rest);
    Ok(Some(found))
}

/// Returns whether a database has a row of a session in a table of sessions.
pub(super) fn has_session(connection: &Connection, table: &TableKey<'_>) -> Result<bool> {
    let sql = format!(
        "SELECT 1 FROM {} WHERE {} = ?1 LIMIT 1",
        quoted(table.table),
        quoted(table.column)
    );
    Ok(connection.query_row(&sql, [table.id], |_| Ok(())).optional()?.is_some())
}

/// The row of a table that has an id in a column.
pub(super) struct TableKey<'a> {
    pub(super) table: &'a str,
    pub(super) column: &'a str,
    pub(super) id: &'a str,
}

impl RowTables {
    /// Returns whether the rows of a table are the sessions themselves.
    pub(super) fn has_sessions(&self, table: &str) -> bool {
        self.sessions.iter().any(|(name, _)| *name == table)
    }

    /// Returns the column with the id of the session in a table that has several rows of it.
    pub(super) fn session_column(&self, table: &str) -> &'static str {
        let named = self.named.iter().find(|(name, _)| *name == table);
        named.map_or(SESSION_COLUMN, |(_, column)| column)
    }

    /// Returns the column with the id of the session in any table with rows of it.
    pub(super) fn key_column(&self, table: &str) -> &'static str {
        let session = self.sessions.iter().find(|(name, _)| *name == table);
        session.map_or_else(|| self.session_column(table), |(_, column)| column)
    }

    /// Returns the rows by which a session is known to be in its database.
    pub(super) fn keys_of<'a>(&'a self, id: &'a str, value_key: &'a str) -> Vec<TableKey<'a>> {
        let sessions = self.sessions.iter().map(|(table, column)| TableKey { table, column, id });
        let values =
            self.values.map(|(table, column, _)| TableKey { table, column, id: value_key });
        sessions.chain(values).collect()
    }

    /// Returns the key of the first value of a session.
    pub(super) fn value_key(&self, id: &str) -> String {
        let start = self.values.and_then(|(_, _, starts)| starts.first().copied());
        format!("{}{id}", start.unwrap_or_default())
    }
}

/// Reads rows, and counts their bytes.
struct RowReader<'c> {
    connection: &'c Connection,
    bytes: u64,
}

impl RowReader<'_> {
    /// Reads the rows of a table that meet a condition. `None` if there are none. Reads no more once the
    /// rows have more bytes than a document.
    fn read(&mut self, table: &str, condition: &str, keys: &[&str]) -> Result<Option<FoundTable>> {
        let columns = column_names(self.connection, table)?;
        let cells: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        let table_name = quoted(table);
        // In the order in which they were added, whichever index finds them.
        let has_numbers =
            self.connection.prepare(&format!("SELECT rowid FROM {table_name} LIMIT 0")).is_ok();
        let order = if has_numbers { " ORDER BY rowid" } else { "" };
        let cells = cells.join(", ");
        let sql = format!("SELECT {cells} FROM {table_name} WHERE ({condition}){order}");
        let mut statement = self.connection.prepare(&sql)?;
        let mut found = statement.query(rusqlite::params_from_iter(keys))?;
        let mut rows = Vec::new();
        while self.bytes <= MAX_DOCUMENT_BYTES
            && let Some(row) = found.next()?
        {
            let mut cells = Row::with_capacity(columns.len());
            for (at, name) in columns.iter().enumerate() {
                let value: Value = row.get(at)?;
                self.bytes += match &value {
                    Value::Text(text) => text.len() as u64,
                    Value::Blob(bytes) => bytes.len() as u64,
                    Value::Null | Value::Integer(_) | Value::Real(_) => 8,
                };
                cells.push((name.clone(), value));
            }
            rows.push(cells);
        }
        let found = FoundTable { name: table.to_owned(), is_shared: false, rows };
        Ok((!found.rows.is_empty()).then_some(found))
    }
}

/// Returns the names of the columns of a table that hold values of their own, in their order.
pub(super) fn column_names(connection: &Connection, table: &str) -> Result<Vec<String>> {
    let sql = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0 ORDER BY cid";
    connection.prepare(sql)?.query_map([table], |row| row.get(0))?.collect()
}

/// Returns a name as SQL.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
