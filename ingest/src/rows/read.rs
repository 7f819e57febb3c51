//! Reads the rows of a session.

use std::io;

use rusqlite::types::Value;
use serde_json::{Map, Value as Json};

use super::cell;
use super::document::{SessionRows, TableRows, VERSION};
use super::session_tables::{FoundTable, find_session, read_tables};
use crate::provider::shared::database::connection::query_database;

/// Returns whether the rows of the session that the store knows as `key` can be read and put back.
pub fn has_rows(key: &str) -> bool {
    find_session(key).is_some()
}

/// Reads the rows of the session that the store knows as `key` into a document. The same rows give the
/// same bytes. `is_text_only` says whether secrets are to be found in it: compressed text is then
/// written as text, and other bytes are an error.
///
/// # Errors
/// Fails if the database cannot be read, does not have the session, or has a cell that is not valid.
pub fn read_rows(key: &str, is_text_only: bool) -> io::Result<Vec<u8>> {
    let (tables, database, id) = find_session(key).ok_or(io::ErrorKind::NotFound)?;
    let found =
        query_database(&database, tables.agent, |connection| read_tables(connection, tables, &id))?;
    let found = found.ok_or(io::ErrorKind::NotFound)?;
    let document = encode_tables(found, &|value| cell::encode(value, is_text_only))?;
    Ok(serde_json::to_vec(&document)?)
}

/// Writes the rows of a session as a document, each cell by `encode`.
pub(super) fn encode_tables(
    found: Vec<FoundTable>,
    encode: &dyn Fn(Value) -> io::Result<Json>,
) -> io::Result<SessionRows> {
    let mut document = SessionRows { version: VERSION, tables: Vec::new() };
    for table in found {
        let mut rows = Vec::with_capacity(table.rows.len());
        for row in table.rows {
            let cells = row.into_iter().map(|(name, value)| encode(value).map(|cell| (name, cell)));
            rows.push(cells.collect::<io::Result<Map<String, Json>>>()?);
        }
        document.tables.push(TableRows { table: table.name, is_shared: table.is_shared, rows });
    }
    Ok(document)
}
