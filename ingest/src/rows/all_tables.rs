//! Reads all tables of a database, also those of which no row belongs to a session.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result, Rows};

use super::cell::text_of;
use super::session_tables::quoted;

/// Receives the name, the definition and the rows of a table.
type VisitTable<'v> = dyn FnMut(&str, ValueRef<'_>, &mut Rows<'_>) -> Result<()> + 'v;

/// Calls `visit` with each table of a database, in the order of their names. The tables of search indexes are
/// among them.
pub(crate) fn for_each_table(connection: &Connection, visit: &mut VisitTable<'_>) -> Result<()> {
    // What has no page of its own is made of other tables.
    let sql =
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY 1";
    let mut tables = connection.prepare(sql)?;
    let mut tables = tables.query([])?;
    while let Some(table) = tables.next()? {
        let name: String = table.get(0)?;
        let mut rows = connection.prepare(&format!("SELECT * FROM {}", quoted(&name)))?;
        visit(&name, table.get_ref(1)?, &mut rows.query([])?)?;
    }
    Ok(())
}

/// Calls `visit` with table, column and text of each cell that is text or bytes with text, also compressed
/// text.
pub(crate) fn for_each_text_cell(
    connection: &Connection,
    visit: &mut dyn FnMut(&str, &str, &str),
) -> Result<()> {
    for_each_table(connection, &mut |table, _, rows| {
        let names = rows.as_ref().into_iter().flat_map(|statement| statement.column_names());
        let names: Vec<String> = names.map(str::to_owned).collect();
        while let Some(row) = rows.next()? {
            for (at, column) in names.iter().enumerate() {
                if let Some(text) = text_of(row.get_ref(at)?) {
                    visit(table, column, &text);
                }
            }
        }
        Ok(())
    })
}
