//! Puts sessions together that an agent keeps in a table of sessions and in tables of records, such
//! as messages, whose rows name their session. A session becomes a document:
//!
//! ```text
//! sessions(id, title, ...)   messages(id, session_id, role, content_json, ...)
//!
//! {"info":{"store":"goose","id":"...","title":"...",...},
//!  "messages":[{"table":"messages","id":1,"role":"user","content_json":[...],...},...]}
//! ```
//!
//! Rows are read one by one. Long cells of rows that are left out are never loaded: SQLite returns
//! the length of a cell without its content.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Result, Row, Statement};
use schemas::Provider;
use schemas::event::Relation;
use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json};

use super::cells::{
    cell_integer, cell_json, cell_text, known_sql, read_columns, read_table_names, select_cells,
};
use super::connection::{find_unread_rows, query_database};
use super::document_text::{document_bytes, info_json};
use super::listing::{
    DatabaseListing, DatabaseSession, ListedTable, ListedTables, TableGeneration, list_sessions,
};
use super::size_limit::{OVERSIZED_RECORD, Piece, SizeLimit, limited_size};
use crate::provider::format::SessionClaim;
use crate::source::assembly::{AssembledSession, SessionList};

/// The usual name of the table of sessions. Its column `id` is the id of a session.
pub(crate) const SESSIONS: &str = "sessions";

/// The sessions of an agent in a database.
pub(crate) struct SessionTables {
    /// The name of the program that keeps the database.
    pub(crate) agent: &'static str,
    /// Value of `store` in the documents.
    pub(crate) store: &'static str,
    /// The table of sessions, usually [`SESSIONS`].
    pub(crate) sessions: &'static str,
    /// The columns of a session that its document shows under the same name.
    pub(crate) session_columns: &'static [&'static str],
    /// SQL of the time of the latest change of a session, in milliseconds since 1970.
    pub(crate) session_time: &'static str,
    /// The tables of records. The first one is in every database.
    pub(crate) records: &'static [RecordTable],
}

/// A table whose rows name their session in the column `session_id`.
pub(crate) struct RecordTable {
    pub(crate) name: &'static str,
    /// The short columns that a document shows under the same name.
    pub(crate) columns: &'static [&'static str],
    /// The column with the content of a record, which may be long.
    pub(crate) content: Option<&'static str>,
    /// The column whose integer orders the records of a session.
    pub(crate) order: &'static str,
    /// SQL of the time of the latest change of a record, in milliseconds since 1970.
    pub(crate) time: &'static str,
}

impl SessionTables {
    /// Lists the sessions in a database. The path of a session is `<database>#<session id>`.
    pub(crate) fn list(&self, database: &Path) -> io::Result<SessionList> {
        let sizes: Vec<String> = self.records.iter().map(RecordTable::size_sql).collect();
        let records: Vec<_> = self
            .records
            .iter()
            .zip(&sizes)
            .map(|(table, size)| ListedTable {
                name: table.name,
                session: "session_id",
                time: table.time,
                size,
                state: table.columns,
            })
            .collect();
        let tables =
            [self.sessions, self.records.first().map_or(self.sessions, |table| table.name)];
        let listed = ListedTables {
            agent: self.agent,
            sessions: &[ListedTable {
                name: self.sessions,
                session: "id",
                time: self.session_time,
                size: "512",
                state: self.session_columns,
            }],
            records: &records,
            generations: &[TableGeneration { marks: &tables, tables: &tables }],
        };
        listed.list(database)
    }

    /// Describes what the reader of a database leaves out.
    pub(crate) fn find_defect(&self, database: &Path) -> Option<String> {
        find_unread_rows(database, self.agent)
    }

    /// Assembles the document of the session at a path.
    pub(crate) fn assemble(&self, path: &Path) -> io::Result<Vec<u8>> {
        read_session_at(path, self.agent, |connection, id| self.read_document(connection, id))
    }

    /// Reads the document of a session, or returns `None` if the database does not have the session.
    fn read_document(&self, connection: &Connection, id: &str) -> Result<Option<Vec<u8>>> {
        let tables = read_table_names(connection)?;
        if !tables.contains(self.sessions) {
            return Ok(None);
        }
        let Some(info) = read_session(connection, self.sessions, self.session_columns, id)? else {
            return Ok(None);
        };
        let info = info_json(self.store, info);

        let mut readers = Vec::new();
        for table in self.records.iter().filter(|table| tables.contains(table.name)) {
            readers.push(RecordReader::new(connection, table)?);
        }
        let mut rows = Vec::new();
        for (table, reader) in readers.iter_mut().enumerate() {
            reader.add_rows(connection, id, table, &mut rows)?;
        }
        rows.sort();
        let pieces = rows.iter().map(RecordRow::piece).collect();
        let limit = SizeLimit::of_session(pieces, info.len() as u64);
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(reader) = readers.get_mut(row.table) else { continue };
            records.push(reader.read(&row, limit.includes(&row.piece()))?);
        }
        Ok(Some(document_bytes(&info, &records)))
    }
}

/// Reads the fields of a session in these columns of a table. `None` if it does not have the session.
pub(crate) fn read_session(
    connection: &Connection,
    table: &str,
    columns: &[&'static str],
    id: &str,
) -> Result<Option<Map<String, Json>>> {
    let shown = present_columns(columns, &read_columns(connection, table)?);
    let sql = format!("SELECT id{} FROM {table} WHERE id = ?1", select_cells(&shown));
    let read = |row: &Row<'_>| {
        let mut info = Map::new();
        info.insert("id".to_owned(), cell_text(row.get_ref(0)?).into());
        add_cells(row, &shown, &mut info)?;
        Ok(info)
    };
    connection.query_row(&sql, [id], read).optional()
}

impl RecordTable {
    /// Returns SQL of the size of a row in bytes.
    fn size_sql(&self) -> String {
        // SQLite reads no data to return its length.
        self.content.map_or_else(
            || "64".to_owned(),
            |content| format!("64 + ifnull(octet_length({content}), 0)"),
        )
    }
}

/// A row of a session. Rows are sorted by these fields in this order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RecordRow {
    order: i64,
    /// The number of its table.
    table: usize,
    number: i64,
    bytes: u64,
}

impl RecordRow {
    /// Returns the row as a piece of a document.
    fn piece(&self) -> Piece {
        Piece { bytes: self.bytes, id: format!("{} {:020}", self.table, self.number) }
    }
}

/// Reads the rows of one table.
struct RecordReader<'c> {
    table: &'static RecordTable,
    columns: Vec<&'static str>,
    /// Selects the short columns of a row, and its content if the argument `?2` is 1.
    select: Statement<'c>,
}

impl<'c> RecordReader<'c> {
    fn new(connection: &'c Connection, table: &'static RecordTable) -> Result<Self> {
        let present = read_columns(connection, table.name)?;
        let columns = present_columns(table.columns, &present);
        let content = table.content.filter(|content| present.contains(*content));
        let sql = format!(
            "SELECT CASE WHEN ?2 THEN {} END{} FROM {} WHERE rowid = ?1",
            content.unwrap_or("NULL"),
            select_cells(&columns),
            table.name
        );
        Ok(Self { table, columns, select: connection.prepare(&sql)? })
    }

    /// Adds the rows of a session to `rows`. `table` is the number of the table.
    fn add_rows(
        &self,
        connection: &Connection,
        id: &str,
        table: usize,
        rows: &mut Vec<RecordRow>,
    ) -> Result<()> {
        let name = self.table.name;
        let order = known_sql(connection, name, self.table.order)?;
        let size = known_sql(connection, name, &self.table.size_sql())?;
        let sql = format!("SELECT {order}, rowid, {size} FROM {name} WHERE session_id = ?1");
        let mut statement = connection.prepare(&sql)?;
        let mut found = statement.query([id])?;
        while let Some(row) = found.next()? {
            rows.push(RecordRow {
                order: cell_integer(row.get_ref(0)?),
                table,
                number: cell_integer(row.get_ref(1)?),
                bytes: cell_integer(row.get_ref(2)?).max(0).cast_unsigned(),
            });
        }
        Ok(())
    }

    /// Reads a row as JSON. A row that is left out says how large it is.
    fn read(&mut self, row: &RecordRow, is_included: bool) -> Result<String> {
        let Self { table, columns, select } = self;
        select.query_row((row.number, is_included), |found| {
            let mut fields = Map::new();
            fields.insert("table".to_owned(), table.name.into());
            add_cells(found, columns, &mut fields)?;
            if !is_included {
                fields.insert("type".to_owned(), OVERSIZED_RECORD.into());
                fields.insert("bytes".to_owned(), row.bytes.into());
            }
            let mut record = Json::Object(fields).to_string();
            if let Some(content) = table.content.filter(|_| is_included) {
                record.pop();
                record.push_str(&format!(",\"{content}\":{}}}", content_json(found.get_ref(0)?)));
            }
            Ok(record)
        })
    }
}

/// Returns a cell with content as JSON: as it is if it holds JSON, and else as a string.
fn content_json(cell: ValueRef<'_>) -> String {
    let text = cell_text(cell);
    let is_json = text.starts_with(['[', '{']) && serde_json::from_str::<IgnoredAny>(&text).is_ok();
    if is_json { text } else { Json::from(text).to_string() }
}

/// Adds the cells of a row from the second on under the names of their columns.
fn add_cells(row: &Row<'_>, columns: &[&str], fields: &mut Map<String, Json>) -> Result<()> {
    for (at, name) in columns.iter().enumerate() {
        if let Some(value) = cell_json(row.get_ref(at + 1)?) {
            fields.insert((*name).to_owned(), value);
        }
    }
    Ok(())
}

/// Returns the columns that a table has.
fn present_columns(wanted: &[&'static str], present: &HashSet<String>) -> Vec<&'static str> {
    wanted.iter().copied().filter(|name| present.contains(*name)).collect()
}

impl ListedTables<'_> {
    /// Lists the sessions in a database.
    pub(crate) fn list(&self, database: &Path) -> io::Result<SessionList> {
        let list = |connection: &Connection| list_sessions(connection, self);
        Ok(session_list(database, query_database(database, self.agent, list)?))
    }
}

/// Converts the sessions in `database` to their descriptions for the store.
pub(crate) fn session_list(database: &Path, listing: DatabaseListing) -> SessionList {
    let describe = |session: &DatabaseSession| AssembledSession {
        path: session_path(database, &session.id),
        bytes: limited_size(0, session.bytes),
        updated_us: stamp_state(session.updated_us, session.state),
    };
    let sessions = listing.sessions.iter().map(describe).collect();
    SessionList { sessions, defects: listing.defects }
}

/// Returns what `read` finds in the database of the session at a path, by the id of the session.
/// `agent` is the name of the program that keeps the database.
///
/// # Errors
/// Returns an error of the kind [`io::ErrorKind::NotFound`] if `read` finds nothing.
pub(crate) fn read_session_at<T>(
    path: &Path,
    agent: &str,
    read: impl Fn(&Connection, &str) -> Result<Option<T>>,
) -> io::Result<T> {
    let (database, id) = split_session_path(path).ok_or_else(missing_session)?;
    query_database(&database, agent, |connection| read(connection, &id))?
        .ok_or_else(missing_session)
}

/// Returns a time with `state` in place of its microseconds. Counts, titles and marks change
/// without a new time, and a session is read again only if its time changes.
pub(crate) fn stamp_state(time_us: i64, state: u64) -> i64 {
    let fraction = i64::try_from(state % 1_000_000).unwrap_or(0);
    time_us.saturating_sub(time_us.rem_euclid(1_000_000)).saturating_add(fraction)
}

/// Returns the path of a session in a database. A `#` in the id is escaped: the last one in a path
/// separates the database and the id.
pub(crate) fn session_path(database: &Path, id: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(format!("#{}", id.replace('%', "%25").replace('#', "%23")));
    path.into()
}

/// Splits the path of a session into that of its database and the id of the session.
pub(crate) fn split_session_path(path: &Path) -> Option<(PathBuf, String)> {
    let (database, session) = path.to_str()?.rsplit_once('#')?;
    Some((PathBuf::from(database), session.replace("%23", "#").replace("%25", "%")))
}

/// Claims the session with an id. It is a subagent's if the field of its parent has an id.
pub(crate) fn claim_stored(provider: Provider, id: &str, parent: &Json) -> SessionClaim {
    let parent = parent.as_str().filter(|parent| !parent.is_empty());
    let claim = SessionClaim::new(provider, id).with_parent(&[(Relation::SubagentOf, parent)]);
    SessionClaim { agent_id: parent.map(|_| id.to_owned()), ..claim }
}

/// Returns the error for a session that a database does not have.
pub(crate) fn missing_session() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the session is not in the database")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_session_gives_its_id_back() {
        let database = Path::new("agents#1/harbor.db");
        for id in ["a", "a#b", "#", "a%23b", "%2523", "%", "%25#%"] {
            let path = session_path(database, id);
            assert_eq!(split_session_path(&path), Some((database.to_owned(), id.to_owned())));
        }
    }
}
