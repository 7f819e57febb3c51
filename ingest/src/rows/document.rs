//! The document with the rows of a session.

use std::collections::BTreeMap;
use std::io;

use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::source::assembly::RowTables;

/// Version of the document. Others are not read.
pub(super) const VERSION: u32 = 1;

/// The document.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RowDocument {
    pub(super) version: u32,
    pub(super) tables: Vec<TableRows>,
}

/// Rows of a table.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TableRows {
    pub(super) table: String,
    /// True if other sessions need these rows as well. One that is there stays as it is.
    #[serde(default, skip_serializing_if = "schemas::is_default")]
    pub(super) is_shared: bool,
    pub(super) rows: Vec<StoredRow>,
}

/// The cells of a row by the names of their columns, so that secrets are found by these names.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredRow {
    pub(super) cells: Map<String, Json>,
    /// What the text of a cell stands for, if the cell is not text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) kinds: BTreeMap<String, CellKind>,
}

/// A cell that is written as text, and is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CellKind {
    Real,
    /// Bytes that are text.
    Utf8,
    /// Text that is compressed with Zstandard.
    Zstd,
    /// Other bytes.
    Hex,
    /// The hash of other bytes, which are not in the document.
    Hash,
}

impl RowDocument {
    /// Keeps the rows of the session `id` and those that it needs. `left_columns` returns the columns of a table
    /// that are left out, and `None` if the whole table is. Of shared rows the `shared_columns` stay.
    ///
    /// # Errors
    /// Returns the reason if a row is of another session.
    pub(crate) fn keep_rows_of(
        &mut self,
        tables: &RowTables,
        id: &str,
        shared_columns: &[&str],
        left_columns: &dyn Fn(&str) -> Option<&'static [&'static str]>,
    ) -> Result<(), String> {
        let mut named = Vec::new();
        for table in self.tables.iter().filter(|table| tables.has_sessions(&table.table)) {
            named.extend(table.rows.iter().map(|row| row.cells.clone()));
        }
        let shared_of = |table: &str| tables.shared.iter().find(|(name, ..)| *name == table);
        self.tables.retain(|table| {
            shared_of(&table.table).is_some() || left_columns(&table.table).is_some()
        });
        for table in &mut self.tables {
            let shared = shared_of(&table.table);
            table.is_shared = shared.is_some();
            if let Some((_, key, column)) = shared {
                let is_named = |row: &StoredRow| {
                    let key = row.cells.get(*key);
                    key.is_some() && named.iter().any(|session| session.get(*column) == key)
                };
                table.rows.retain(is_named);
                for row in &mut table.rows {
                    row.cells.retain(|column, _| shared_columns.contains(&column.as_str()));
                }
                continue;
            }
            let column = tables.key_column(&table.table);
            let left = left_columns(&table.table).unwrap_or_default();
            for row in &mut table.rows {
                if row.cells.get(column).and_then(Json::as_str) != Some(id) {
                    return Err(format!("its table {} has a row of another session", table.table));
                }
                row.cells.retain(|column, _| !left.contains(&column.as_str()));
            }
        }
        Ok(())
    }

    /// Changes the texts in a column of a table for which `change` returns another one.
    pub(crate) fn change_texts(
        &mut self,
        table: &str,
        column: &str,
        change: &dyn Fn(&str) -> Option<String>,
    ) {
        let tables = self.tables.iter_mut().filter(|found| found.table == table);
        for row in tables.flat_map(|table| &mut table.rows) {
            if let Some(Json::String(text)) = row.cells.get_mut(column)
                && let Some(changed) = change(text)
            {
                *text = changed;
            }
        }
    }
}

/// A row with the values of its columns.
pub(super) type Row = Vec<(String, Value)>;

pub(super) fn invalid_data(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}
