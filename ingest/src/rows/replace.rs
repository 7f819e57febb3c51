//! Replaces cells in the rows of a session, and changes nothing else in the database of its agent.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result, params_from_iter};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use super::cell;
use super::document::{CellKind, RowDocument};
use super::read::encode_tables;
use super::session_tables::{FoundTable, quoted, read_tables};
use crate::source::assembly::RowTables;

/// A cell of a session's rows, and what it is to become.
#[derive(Debug, Clone)]
pub(crate) struct CellChange {
    /// The number of its table in the document of the rows.
    table: usize,
    /// The number of its row in the table.
    row: usize,
    column: String,
    cell: Json,
    kind: Option<CellKind>,
}

/// Returns the cells of `after` that differ from those of `before`, which has the same rows.
pub(crate) fn find_changed_cells(before: &RowDocument, after: &RowDocument) -> Vec<CellChange> {
    let mut changes = Vec::new();
    for (table, (old, new)) in before.tables.iter().zip(&after.tables).enumerate() {
        for (row, (old, new)) in old.rows.iter().zip(&new.rows).enumerate() {
            for (column, cell) in &new.cells {
                if old.cells.get(column) != Some(cell) {
                    let kind = new.kinds.get(column).copied();
                    let (column, cell) = (column.clone(), cell.clone());
                    changes.push(CellChange { table, row, column, cell, kind });
                }
            }
        }
    }
    changes
}

/// Returns a hash of the rows of a session.
pub(crate) fn hash_rows(rows: &RowDocument) -> serde_json::Result<u64> {
    Ok(xxh3_64(&serde_json::to_vec(rows)?))
}

/// Reads the rows of a session, with compressed text as text. `None` if the database does not have it.
pub(crate) fn read_legible_rows(
    connection: &Connection,
    tables: &RowTables,
    id: &str,
) -> Result<Option<RowDocument>, String> {
    let found = read_tables(connection, tables, id).map_err(describe)?;
    found.map(|found| encode_tables(found, &cell::encode_legible).map_err(describe)).transpose()
}

/// Replaces these cells of a session in a transaction that is open. `hash` is that of the rows as they were
/// when the cells were chosen. Afterwards all rows of the session are as they were but for these cells: what
/// the agent's triggers change of them, such as times, is undone.
///
/// # Errors
/// Returns the reason why the transaction must be rolled back: the rows changed, or the database refuses.
pub(crate) fn replace_cells(
    transaction: &Connection,
    tables: &RowTables,
    id: &str,
    hash: u64,
    changes: &[CellChange],
) -> Result<(), String> {
    let read = || {
        let found = read_tables(transaction, tables, id).map_err(describe)?;
        found.ok_or_else(|| "its session is no longer in the database".to_owned())
    };
    let found = read()?;
    let rows = encode_tables(found.clone(), &cell::encode_legible).map_err(describe)?;
    if hash_rows(&rows).map_err(describe)? != hash {
        return Err("it changed while it was read".to_owned());
    }

    let mut wanted = found.clone();
    for change in changes {
        let row = wanted.get_mut(change.table).and_then(|table| table.rows.get_mut(change.row));
        let cell = row.and_then(|row| row.iter_mut().find(|(name, _)| *name == change.column));
        if let Some((_, value)) = cell {
            *value = cell::decode(&change.cell, change.kind).map_err(describe)?;
        }
    }
    update_rows(transaction, &found, &wanted).map_err(describe)?;
    // The triggers of the agent keep its search index, and may set the time of a change.
    let now = read()?;
    if now != wanted {
        let set_triggers =
            |is_on| transaction.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, is_on);
        set_triggers(false).map_err(describe)?;
        let undone = update_rows(transaction, &now, &wanted);
        set_triggers(true).map_err(describe)?;
        undone.map_err(describe)?;
        if read()? != wanted {
            return Err("the database does not keep what is written".to_owned());
        }
    }
    Ok(())
}

fn describe(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Writes the rows of `to` that differ from those of `from`, which has the same number of rows in the same
/// order. A row is changed only if each of its cells is still that of `from`.
fn update_rows(connection: &Connection, from: &[FoundTable], to: &[FoundTable]) -> Result<()> {
    for (from, to) in from.iter().zip(to) {
        for (old, new) in from.rows.iter().zip(&to.rows) {
            let changed: Vec<_> =
                new.iter().zip(old).filter(|(new, old)| new != old).map(|(new, _)| new).collect();
            if changed.is_empty() {
                continue;
            }
            let set: Vec<String> =
                changed.iter().map(|(name, _)| format!("{} = ?", quoted(name))).collect();
            let is_same: Vec<String> =
                old.iter().map(|(name, _)| format!("{} IS ?", quoted(name))).collect();
            let sql = format!(
                "UPDATE {} SET {} WHERE {}",
                quoted(&from.name),
                set.join(", "),
                is_same.join(" AND ")
            );
            let values = changed.iter().map(|(_, value)| value);
            let values = values.chain(old.iter().map(|(_, value)| value));
            connection.prepare(&sql)?.execute(params_from_iter(values))?;
        }
    }
    Ok(())
}
