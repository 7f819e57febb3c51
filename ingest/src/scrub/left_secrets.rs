//! Searches a whole database for secrets that were replaced in the rows of its sessions.

use std::collections::{BTreeMap, BTreeSet};

use crate::redact::json_strings::decode_string;
use crate::redact::{KnownSecrets, find_known_places};

/// Number of JSON texts inside each other in which a secret of a document of rows may be: the document, a
/// cell, and a value of it.
const MAX_ESCAPES: usize = 3;

/// A column of a database with secrets that were replaced in other cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnWithSecrets {
    /// The name of the table.
    pub table: String,
    /// The name of the column.
    pub column: String,
    /// The number of cells with a secret by kind.
    pub cells: BTreeMap<String, u64>,
}

/// Collects the columns of a database that have some of these secrets.
pub(super) struct LeftSecrets<'k> {
    known: KnownSecrets<'k>,
    /// The number of cells by kind, by table and column.
    columns: BTreeMap<(String, String), BTreeMap<String, u64>>,
}

impl<'k> LeftSecrets<'k> {
    /// Creates the collection. `spellings` has kind and text of the secrets, as cells may have them.
    pub(super) fn new(spellings: &'k [(String, String)]) -> Self {
        Self { known: KnownSecrets::new(spellings, true), columns: BTreeMap::new() }
    }

    /// Searches the text of a cell.
    pub(super) fn search(&mut self, table: &str, column: &str, text: &str) {
        let places = find_known_places(text, &self.known);
        let kinds: BTreeSet<String> = places.into_iter().map(|place| place.kind).collect();
        for kind in kinds {
            let cells = self.columns.entry((table.to_owned(), column.to_owned())).or_default();
            *cells.entry(kind).or_default() += 1;
        }
    }

    /// Returns the columns, by the names of their tables.
    pub(super) fn finish(self) -> Vec<ColumnWithSecrets> {
        let columns = self.columns.into_iter();
        columns.map(|((table, column), cells)| ColumnWithSecrets { table, column, cells }).collect()
    }
}

/// Returns kind and text of each secret of a document of rows, as cells may have it: as it is, and escaped.
pub(super) fn collect_spellings(replaced: &BTreeSet<(String, String)>) -> Vec<(String, String)> {
    let mut written = BTreeSet::new();
    for (kind, text) in replaced {
        let mut text = text.clone();
        for _ in 0..MAX_ESCAPES {
            let plain = decode_string(text.as_bytes(), None).into_owned();
            written.insert((kind.clone(), std::mem::replace(&mut text, plain)));
        }
        written.insert((kind.clone(), text));
    }
    written.into_iter().collect()
}
