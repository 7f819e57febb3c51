//! Searches a whole database for secrets that were replaced in the rows of its sessions.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use super::database::for_each_table;
use crate::redact::json_strings::decode_string;
use crate::redact::{KnownSecrets, find_known_places};
use crate::rows::text_of;

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

/// Returns the columns with these secrets: pairs of kind and text, as a document of rows has them.
pub(super) fn find_left_secrets(
    connection: &Connection,
    replaced: &BTreeSet<(String, String)>,
) -> rusqlite::Result<Vec<ColumnWithSecrets>> {
    if replaced.is_empty() {
        return Ok(Vec::new());
    }
    let written = collect_spellings(replaced);
    let known = KnownSecrets::new(&written, true);
    let mut columns: BTreeMap<(String, String), BTreeMap<String, u64>> = BTreeMap::new();
    for_each_table(connection, &mut |table, _, rows| {
        let names = rows.as_ref().into_iter().flat_map(|statement| statement.column_names());
        let names: Vec<String> = names.map(str::to_owned).collect();
        while let Some(row) = rows.next()? {
            for (at, name) in names.iter().enumerate() {
                let Some(text) = text_of(row.get_ref(at)?) else { continue };
                let places = find_known_places(&text, &known);
                let kinds: BTreeSet<String> = places.into_iter().map(|place| place.kind).collect();
                for kind in kinds {
                    let column = (table.to_owned(), name.clone());
                    *columns.entry(column).or_default().entry(kind).or_default() += 1;
                }
            }
        }
        Ok(())
    })?;
    let columns = columns.into_iter();
    Ok(columns.map(|((table, column), cells)| ColumnWithSecrets { table, column, cells }).collect())
}

/// Returns kind and text of each secret, as cells may have it: as it is, and escaped.
fn collect_spellings(replaced: &BTreeSet<(String, String)>) -> Vec<(String, String)> {
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
