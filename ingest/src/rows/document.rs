//! The document with the rows of a session.

use std::io;

use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Version of the document. Others are not read.
pub(super) const VERSION: u32 = 1;

/// The document.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionRows {
    pub(super) version: u32,
    pub(super) tables: Vec<TableRows>,
}

/// Rows of a table, each with its cells by the names of their columns.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TableRows {
    pub(super) table: String,
    /// True if other sessions need these rows as well. One that is there stays as it is.
    #[serde(default, skip_serializing_if = "schemas::is_default")]
    pub(super) is_shared: bool,
    pub(super) rows: Vec<Map<String, Json>>,
}

/// A row with the values of its columns.
pub(super) type Row = Vec<(String, Value)>;

pub(super) fn invalid_data(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}
