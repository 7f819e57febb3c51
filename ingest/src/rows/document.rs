//! The document with the rows of a session.

use std::collections::BTreeMap;
use std::io;

use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

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

/// A row with the values of its columns.
pub(super) type Row = Vec<(String, Value)>;

pub(super) fn invalid_data(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}
