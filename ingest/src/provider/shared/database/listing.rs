//! Lists the sessions of a database, and finds rows that would be missing in them.
//!
//! SQLite finds the rows of a session by an index, and believes it. So each index is compared with
//! its table: the sums of the hashes of all rows must be equal. An index is small, and the tables
//! are read for the sizes and times of the sessions anyway.

use std::collections::{BTreeMap, HashSet};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Result, Row};
use schemas::problem::ProblemKind;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::cells::{cell_integer, cell_text, known_sql, read_columns, read_table_names};
use super::plain_name;
use crate::source::assembly::SourceDefect;

/// A session in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseSession {
    pub(crate) id: String,
    /// Time of the latest change of any row of the session, in microseconds.
    pub(crate) updated_us: i64,
    /// Approximate size of the session's rows in bytes.
    pub(crate) bytes: u64,
    /// Sum of the hashes of the [state](ListedTable::state) of all rows of the session.
    pub(crate) state: u64,
}

/// The tables of an agent that name sessions.
pub(crate) struct ListedTables<'t> {
    /// The name of the program that keeps the database.
    pub(crate) agent: &'t str,
    /// The tables of sessions. A session may be in several.
    pub(crate) sessions: &'t [ListedTable<'t>],
    /// The tables whose rows name their session.
    pub(crate) records: &'t [ListedTable<'t>],
    /// The tables that a database has together.
    pub(crate) generations: &'t [TableGeneration<'t>],
}

/// A table that names sessions. Its column `id` identifies a row, or its number if it has none.
pub(crate) struct ListedTable<'t> {
    pub(crate) name: &'t str,
    /// The column with the id of the session.
    pub(crate) session: &'t str,
    /// SQL of the time of the latest change of a row, in milliseconds since 1970. Columns that the
    /// table lacks are NULL, here and in the size.
    pub(crate) time: &'t str,
    /// SQL of the size of a row in bytes.
    pub(crate) size: &'t str,
    /// Columns that may change without a new time. Those that the table lacks are ignored.
    pub(crate) state: &'t [&'t str],
}

/// Tables that one version of an agent writes.
pub(crate) struct TableGeneration<'t> {
    /// A database with any of these tables is of this version.
    pub(crate) marks: &'t [&'t str],
    /// The tables that it then has.
    pub(crate) tables: &'t [&'t str],
}

/// What to do about a damaged database.
const ADVICE: &str = "check it with `PRAGMA integrity_check` of sqlite3, and rebuild it with `REINDEX` \
    or `.recover`, or restore it from a copy";

/// The sessions of a database, and its defects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DatabaseListing {
    /// The sessions, sorted by id.
    pub(crate) sessions: Vec<DatabaseSession>,
    pub(crate) defects: Vec<SourceDefect>,
}

/// Lists the sessions in a database.
pub(crate) fn list_sessions(
    connection: &Connection,
    listed: &ListedTables<'_>,
) -> Result<DatabaseListing> {
    let tables = read_table_names(connection)?;
    let mut lister = SessionLister { connection, found: BTreeMap::new(), defects: Vec::new() };
    lister.report_missing_tables(&tables, listed)?;
    for table in listed.sessions.iter().filter(|table| tables.contains(table.name)) {
        lister.add_sessions(table)?;
    }
    for table in listed.records.iter().filter(|table| tables.contains(table.name)) {
        lister.add_records(table)?;
    }
    let sessions = lister.found.into_values().collect();
    Ok(DatabaseListing { sessions, defects: lister.defects })
}

/// Collects the sessions of a database.
struct SessionLister<'c> {
    connection: &'c Connection,
    found: BTreeMap<String, DatabaseSession>,
    defects: Vec<SourceDefect>,
}

impl SessionLister<'_> {
    /// Reports tables that a database of the agent has and this one has not.
    fn report_missing_tables(
        &mut self,
        tables: &HashSet<String>,
        listed: &ListedTables<'_>,
    ) -> Result<()> {
        if !listed.sessions.iter().chain(listed.records).any(|table| tables.contains(table.name)) {
            // A database that the agent is about to fill has no pages yet.
            let pages: i64 =
                self.connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            if pages > 0 {
                let agent = listed.agent;
                self.report_damage(format!("the database has none of the tables of {agent}"));
            }
            return Ok(());
        }

        for generation in listed.generations {
            if !generation.marks.iter().any(|mark| tables.contains(*mark)) {
                continue;
            }
            for table in generation.tables.iter().filter(|table| !tables.contains(**table)) {
                self.report_damage(format!(
                    "the database has no table `{table}`, so its rows are missing"
                ));
            }
        }
        Ok(())
    }

    /// Adds the sessions in a table.
    fn add_sessions(&mut self, table: &ListedTable<'_>) -> Result<()> {
        let found = &mut self.found;
        let scan = scan_table(self.connection, table, &mut |session, _| {
            match found.get_mut(&session.id) {
                Some(known) => add_change(known, &session),
                None => {
                    found.insert(session.id.clone(), session);
                }
            }
            Ok(())
        })?;
        self.compare_indexes(table, &scan)
    }

    /// Adds the sizes and times of the rows in a table to their sessions, and reports rows without
    /// a session.
    fn add_records(&mut self, table: &ListedTable<'_>) -> Result<()> {
        let found = &mut self.found;
        let mut strays = 0_u64;
        let mut example = String::new();
        let scan = scan_table(self.connection, table, &mut |change, row| {
            match found.get_mut(&change.id) {
                Some(session) => add_change(session, &change),
                None => {
                    if strays == 0 {
                        example = cell_text(row.get_ref(4)?);
                    }
                    strays += 1;
                }
            }
            Ok(())
        })?;
        if strays > 0 {
            let message = format!(
                "{strays} rows of the table `{}` name a session that the database does not \
                 have, and were not read (the first is `{}`): either their session was deleted, or \
                 the database is damaged; {ADVICE}",
                table.name,
                plain_name(&example)
            );
            self.defects.push(SourceDefect { kind: ProblemKind::IncompleteRecord, message });
        }
        self.compare_indexes(table, &scan)
    }

    /// Compares a table with the indexes that find its rows.
    fn compare_indexes(&mut self, table: &ListedTable<'_>, scan: &TableScan) -> Result<()> {
        let ListedTable { name: table, session: key, .. } = *table;
        if let Some(error) = &scan.error {
            self.report_damage(format!(
                "the table `{table}` can only be read up to its row number {} ({error}), so rows \
                 are missing",
                scan.rows.count
            ));
            return Ok(());
        }
        for (index, column) in find_indexes(self.connection, table)? {
            let of_table = match column.as_str() {
                "id" => scan.rows.by_id,
                column if column == key => scan.rows.by_key,
                _ => continue,
            };
            match sum_index(self.connection, table, &index, &column) {
                Ok((count, sum)) if (count, sum) == (scan.rows.count, of_table) => {}
                Ok((count, _)) => self.report_damage(format!(
                    "the table `{table}` ({} rows) and its index `{}` ({count} rows) do not list \
                     the same rows, so rows may be missing",
                    scan.rows.count,
                    plain_name(&index)
                )),
                Err(error) if is_damage(&error) => self.report_damage(format!(
                    "the index `{}` of the table `{table}` cannot be read ({error}), so rows may \
                     be missing",
                    plain_name(&index)
                )),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reports damage of the database.
    fn report_damage(&mut self, what: String) {
        let message = format!("{what}; {ADVICE}");
        self.defects.push(SourceDefect { kind: ProblemKind::Unreadable, message });
    }
}

/// The number of rows of a table, and the sums of the hashes of their cells.
#[derive(Default)]
struct RowSums {
    count: u64,
    /// Sum over the column `id`.
    by_id: u64,
    /// Sum over the column that names the session.
    by_key: u64,
}

/// The result of reading a table.
struct TableScan {
    rows: RowSums,
    /// The error at which the reading ended, if the table is damaged.
    error: Option<String>,
}

/// Passes the change that each row of a table describes to `take`, with the row. Its fifth column is
/// the id.
///
/// Rows are read in table order, because an index would read all over the file. Grouping in SQLite
/// would hold the rows with their data in memory.
fn scan_table(
    connection: &Connection,
    table: &ListedTable<'_>,
    take: &mut dyn FnMut(DatabaseSession, &Row<'_>) -> Result<()>,
) -> Result<TableScan> {
    let ListedTable { name, session, time, size, state } = table;
    let known = read_columns(connection, name)?;
    let id = if known.contains("id") { "id" } else { "rowid" };
    let time = known_sql(connection, name, time)?;
    let size = known_sql(connection, name, size)?;
    let state: String = state
        .iter()
        .filter(|column| known.contains(**column))
        .map(|column| format!(", {column}"))
        .collect();
    let sql =
        format!("SELECT {session}, {time}, {size}, rowid, {id}{state} FROM {name} NOT INDEXED");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut sums = RowSums::default();
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                let number = cell_integer(row.get_ref(3)?);
                sums.count += 1;
                sums.by_key = sums.by_key.wrapping_add(hash_cell(number, row.get_ref(0)?));
                sums.by_id = sums.by_id.wrapping_add(hash_cell(number, row.get_ref(4)?));
                take(read_change(row)?, row)?;
            }
            Ok(None) => return Ok(TableScan { rows: sums, error: None }),
            Err(error) if is_damage(&error) => {
                return Ok(TableScan { rows: sums, error: Some(error.to_string()) });
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the indexes of all rows of a table, each with its first column.
fn find_indexes(connection: &Connection, table: &str) -> Result<Vec<(String, String)>> {
    let sql = "SELECT list.name, info.name FROM pragma_index_list(?1) AS list, \
        pragma_index_info(list.name) AS info \
        WHERE info.seqno = 0 AND info.name IS NOT NULL AND NOT list.partial";
    let mut statement = connection.prepare(sql)?;
    statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Returns the number of rows in an index, and the sum of the hashes of its first column.
fn sum_index(
    connection: &Connection,
    table: &str,
    index: &str,
    column: &str,
) -> Result<(u64, u64)> {
    let index = index.replace('"', "\"\"");
    let sql = format!("SELECT rowid, {column} FROM {table} INDEXED BY \"{index}\"");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut count = 0;
    let mut sum = 0_u64;
    while let Some(row) = rows.next()? {
        count += 1;
        sum = sum.wrapping_add(hash_cell(cell_integer(row.get_ref(0)?), row.get_ref(1)?));
    }
    Ok((count, sum))
}

/// Returns a hash of a cell and the number of its row.
fn hash_cell(row: i64, cell: ValueRef<'_>) -> u64 {
    let seed = row.cast_unsigned();
    match cell {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => xxh3_64_with_seed(bytes, seed),
        ValueRef::Integer(number) => xxh3_64_with_seed(&number.to_le_bytes(), seed),
        ValueRef::Real(number) => xxh3_64_with_seed(&number.to_le_bytes(), seed),
        ValueRef::Null => xxh3_64_with_seed(b"null", seed),
    }
}

/// Returns whether an error shows that a database is damaged.
fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// Reads the columns of a row: a session's id, a time in milliseconds, a size in bytes, and from the
/// sixth on its state.
fn read_change(row: &Row<'_>) -> Result<DatabaseSession> {
    let mut state = 0_u64;
    // The columns from 3 on tell the rows apart.
    for at in 3..row.as_ref().column_count() {
        if at != 4 {
            state = hash_cell(state.cast_signed(), row.get_ref(at)?);
        }
    }
    Ok(DatabaseSession {
        state,
        id: cell_text(row.get_ref(0)?),
        updated_us: cell_integer(row.get_ref(1)?).saturating_mul(1000),
        bytes: cell_integer(row.get_ref(2)?).max(0).cast_unsigned(),
    })
}

/// Adds the size and the time of other rows of a session.
fn add_change(session: &mut DatabaseSession, rows: &DatabaseSession) {
    session.updated_us = session.updated_us.max(rows.updated_us);
    session.bytes = session.bytes.saturating_add(rows.bytes);
    session.state = session.state.wrapping_add(rows.state);
}
