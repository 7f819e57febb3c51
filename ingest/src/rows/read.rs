//! Reads the rows of a session.

use std::io;

use rusqlite::types::Value;
use serde_json::Value as Json;

use super::cell;
use super::document::{CellKind, Row, RowDocument, StoredRow, TableRows, VERSION};
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
    let document = encode_tables(found, &move |value| cell::encode(value, is_text_only))?;
    Ok(serde_json::to_vec(&document)?)
}

/// Writes a cell.
type EncodeCell = dyn Fn(Value) -> io::Result<(Json, Option<CellKind>)>;

/// Writes the rows of a session as a document, each cell by `encode`.
pub(super) fn encode_tables(
    found: Vec<FoundTable>,
    encode: &EncodeCell,
) -> io::Result<RowDocument> {
    let mut document = RowDocument { version: VERSION, tables: Vec::new() };
    for table in found {
        let mut rows = Vec::with_capacity(table.rows.len());
        for row in table.rows {
            rows.push(encode_row(row, encode)?);
        }
        document.tables.push(TableRows { table: table.name, is_shared: table.is_shared, rows });
    }
    Ok(document)
}

/// Writes compressed text in a document that was read with other bytes as text, so that secrets can be
/// found in it.
///
/// # Errors
/// Fails if the document is not valid, or has bytes that are not text.
pub fn make_text_only(document: &[u8]) -> io::Result<Vec<u8>> {
    let mut document: RowDocument = serde_json::from_slice(document)?;
    for row in document.tables.iter_mut().flat_map(|table| &mut table.rows) {
        let cells = row.cells.iter().map(|(name, cell)| {
            Ok((name.clone(), cell::decode(cell, row.kinds.get(name).copied())?))
        });
        let cells = cells.collect::<io::Result<Row>>()?;
        *row = encode_row(cells, &|value| cell::encode(value, true))?;
    }
    Ok(serde_json::to_vec(&document)?)
}

fn encode_row(row: Row, encode: &EncodeCell) -> io::Result<StoredRow> {
    let mut stored = StoredRow::default();
    for (name, value) in row {
        let (cell, kind) = encode(value)?;
        stored.kinds.extend(kind.map(|kind| (name.clone(), kind)));
        stored.cells.insert(name, cell);
    }
    Ok(stored)
}
