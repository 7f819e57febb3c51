//! Assembles sessions of the database of Hermes (`state.db`, SQLite) into documents of the form
//! that `message.rs` reads (docs/formats.md#hermes). The database is never written to.
//!
//! ```text
//! sessions(id, source, model, parent_session_id, started_at, ended_at, input_tokens, ...)
//! messages(id, session_id, role, content, tool_calls, tool_call_id, timestamp, active, ...)
//! session_model_usage(session_id, model, task, input_tokens, ..., first_seen, last_seen)
//!
//! {"info":{"store":"hermes","id":"...","usage":[{"model":"...","input_tokens":21,...}]},
//! "messages":[{"content_key":"...","role":"assistant","content":"...","share":0,"weight":90}]}
//! ```
//!
//! Older versions have fewer columns, and no table `session_model_usage`.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Result, Row};
use schemas::event::Relation;
use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::Xxh3;

use super::counts::{MODEL_TABLE, SessionCounts, TOKEN_COLUMNS, token_cells};
use super::rows::{length_sql, read_messages};
use crate::provider::shared::database::cells::{
    cell_integer, cell_json, cell_micros, cell_text, read_columns, read_table_names, select_cells,
};
use crate::provider::shared::database::connection::{find_unread_rows, query_database};
use crate::provider::shared::database::document_text::document_bytes;
use crate::provider::shared::database::size_limit::limited_size;
use crate::provider::shared::database::tables::{self, missing_session, session_path, stamp_state};
use crate::source::assembly::{AssembledSession, Assembly, SessionList};

/// Value of `store` in the documents of these sessions.
pub(super) const STORE: &str = "hermes";

/// File name of the database.
const DATABASE: &str = "state.db";

/// Columns of a session that its document shows under the same name.
const SESSION_COLUMNS: &[&str] = &[
    "id",
    "source",
    "model",
    "title",
    "title_source",
    "started_at",
    "ended_at",
    "cwd",
    "git_branch",
];

/// The column of the session that this one descends from.
const PARENT: &str = "parent_session_id";

/// Columns of a message that change after it was stored.
const CHANGING_COLUMNS: &[&str] = &["active", "compacted", "display_kind"];

/// Approximate size in bytes of a session without its messages.
const SESSION_BYTES: u64 = 512;

/// The name of the program that keeps the database.
const AGENT: &str = "Hermes";

/// Assembles the sessions in a database. The path of a session is `<database>#<session id>`.
pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "Hermes database",
    shares_file: true,
    source_suffix: DATABASE,
    is_source: |path| path.file_name().is_some_and(|name| name == DATABASE),
    is_part: |_| false,
    sessions: |database| list_sessions(database).map(SessionList::from),
    find_defect: |database| find_unread_rows(database, AGENT),
    assemble: |path| {
        let (database, session) = split_session_path(path).ok_or_else(missing_session)?;
        query_database(&database, AGENT, |connection| assemble_document(connection, &session))?
            .ok_or_else(missing_session)
    },
};

/// Returns the path of the database in a home folder of Hermes.
pub(super) fn database_path(home: &Path) -> PathBuf {
    home.join(DATABASE)
}

/// Splits the path of a session in a database into the database and the id. `None` for any other
/// path.
pub(super) fn split_session_path(path: &Path) -> Option<(PathBuf, String)> {
    tables::split_session_path(path).filter(|(database, _)| (ASSEMBLY.is_source)(database))
}

/// Returns the number of messages that a database has of a session; 0 if it cannot be read.
pub(super) fn count_messages(database: &Path, session_id: &str) -> u64 {
    if !database.is_file() {
        return 0;
    }
    let count = query_database(database, AGENT, |connection| {
        let tables = read_table_names(connection)?;
        if !tables.contains("messages") {
            return Ok(0);
        }
        let sql = "SELECT count(*) FROM messages WHERE session_id = ?1 AND role <> 'session_meta'";
        connection.query_row(sql, [session_id], |row| row.get::<_, i64>(0))
    });
    count.map_or(0, |count| count.max(0).cast_unsigned())
}

/// A session in a database.
#[derive(Default)]
struct ListedSession {
    /// Whether it has messages or token counts.
    has_content: bool,
    bytes: u64,
    /// Time of the latest change that has a time, in microseconds.
    updated_us: i64,
    /// Sum of the hashes of all rows of the session.
    state: u64,
}

/// The sessions in a database by id.
type ListedSessions = BTreeMap<String, ListedSession>;

/// Lists the sessions in a database that have messages or token counts.
fn list_sessions(database: &Path) -> io::Result<Vec<AssembledSession>> {
    let listed = query_database(database, AGENT, collect_sessions)?;
    let mut sessions = Vec::new();
    for (id, session) in listed {
        if !session.has_content {
            continue;
        }
        sessions.push(AssembledSession {
            path: session_path(database, &id),
            bytes: limited_size(0, session.bytes),
            updated_us: stamp_state(session.updated_us, session.state),
        });
    }
    Ok(sessions)
}

/// Returns the sessions in a database by id.
fn collect_sessions(connection: &Connection) -> Result<ListedSessions> {
    let tables = read_table_names(connection)?;
    let mut found = ListedSessions::new();
    if !tables.contains("sessions") || !tables.contains("messages") {
        return Ok(found);
    }

    let columns = read_columns(connection, "sessions")?;
    let shown = SESSION_COLUMNS.iter().chain(TOKEN_COLUMNS).chain(&[PARENT]).copied();
    let shown: Vec<&str> = shown.filter(|name| columns.contains(*name)).collect();
    let sql = format!("SELECT id, started_at{} FROM sessions", select_cells(&shown));
    let mut statement = connection.prepare(&sql)?;
    let count = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let session = found.entry(cell_text(row.get_ref(0)?)).or_default();
        session.bytes = SESSION_BYTES;
        session.note_row(row, 2..count, row.get_ref(1)?)?;
    }

    note_messages(connection, &mut found)?;
    if tables.contains(MODEL_TABLE) {
        note_model_counts(connection, &mut found)?;
    }
    for (id, session) in &mut found {
        if !session.has_content {
            session.has_content = SessionCounts::read_totals(connection, id)?.total() > 0;
        }
    }
    Ok(found)
}

/// Adds the messages of a database to the sessions in it.
fn note_messages(connection: &Connection, found: &mut ListedSessions) -> Result<()> {
    // Rows are read in table order, because an index would read all over the file. SQLite reads no
    // data to return its length.
    let columns = read_columns(connection, "messages")?;
    let mut cells = vec!["session_id", "timestamp", "id"];
    cells.extend(CHANGING_COLUMNS.iter().filter(|name| columns.contains(**name)));
    let sql = format!("SELECT {}, {} FROM messages", cells.join(", "), length_sql(&columns));
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(session) = found.get_mut(&cell_text(row.get_ref(0)?)) else { continue };
        session.has_content = true;
        let bytes = cell_integer(row.get_ref(cells.len())?).max(0).cast_unsigned();
        session.bytes = session.bytes.saturating_add(bytes);
        session.note_row(row, 2..cells.len() + 1, row.get_ref(1)?)?;
    }
    Ok(())
}

/// Adds the counts by model to the sessions in a database.
fn note_model_counts(connection: &Connection, found: &mut ListedSessions) -> Result<()> {
    let cells = token_cells(connection, MODEL_TABLE)?;
    let sql = format!("SELECT session_id, last_seen, model, task, {cells} FROM {MODEL_TABLE}");
    let mut statement = connection.prepare(&sql)?;
    let count = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(session) = found.get_mut(&cell_text(row.get_ref(0)?)) else { continue };
        session.has_content = true;
        session.note_row(row, 2..count, row.get_ref(1)?)?;
    }
    Ok(())
}

impl ListedSession {
    /// Adds the state of a row: its cells in `columns`, and its time in seconds.
    fn note_row(
        &mut self,
        row: &Row<'_>,
        columns: std::ops::Range<usize>,
        time: ValueRef<'_>,
    ) -> Result<()> {
        self.updated_us = self.updated_us.max(cell_micros(time).unwrap_or(0));
        let mut hash = Xxh3::new();
        for at in columns {
            match row.get_ref(at)? {
                ValueRef::Null => hash.update(b"n"),
                ValueRef::Integer(number) => hash.update(&number.to_le_bytes()),
                ValueRef::Real(number) => hash.update(&number.to_le_bytes()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => hash.update(bytes),
            }
            hash.update(b"\0");
        }
        self.state = self.state.wrapping_add(hash.digest());
        Ok(())
    }
}

/// Returns the document of a session, or `None` if the database does not have the session.
fn assemble_document(connection: &Connection, id: &str) -> Result<Option<Vec<u8>>> {
    let tables = read_table_names(connection)?;
    if !tables.contains("sessions") || !tables.contains("messages") {
        return Ok(None);
    }
    let Some(mut info) = read_session(connection, id)? else { return Ok(None) };
    let mut counts = SessionCounts::read(connection, id, tables.contains(MODEL_TABLE))?;
    let header_bytes = Json::Object(info.clone()).to_string().len() + counts.header_bytes();
    let messages = read_messages(connection, id, header_bytes as u64, &mut counts)?;

    info.insert("store".to_owned(), STORE.into());
    info.insert("usage".to_owned(), counts.into_json());
    Ok(Some(document_bytes(&Json::Object(info).to_string(), &messages)))
}

/// Reads the fields of a session, or returns `None` if the database does not have the session.
fn read_session(connection: &Connection, id: &str) -> Result<Option<Map<String, Json>>> {
    let columns = read_columns(connection, "sessions")?;
    let shown: Vec<&str> =
        SESSION_COLUMNS.iter().copied().filter(|name| columns.contains(*name)).collect();
    let sql = format!("SELECT id{} FROM sessions WHERE id = ?1", select_cells(&shown));
    let read = |row: &Row<'_>| {
        let mut info = Map::new();
        for (at, name) in shown.iter().enumerate() {
            if let Some(value) = cell_json(row.get_ref(at + 1)?) {
                info.insert((*name).to_owned(), value);
            }
        }
        Ok(info)
    };
    let Some(mut info) = connection.query_row(&sql, [id], read).optional()? else {
        return Ok(None);
    };
    if let Some((parent, relation)) = read_parent(connection, id, &columns)? {
        info.insert(PARENT.to_owned(), parent.into());
        info.insert("relation".to_owned(), relation.to_string().into());
    }
    Ok(Some(info))
}

/// Reads the parent of a session and the relation to it. A session that began when a chat was reset
/// has its own conversation, and so no parent here.
fn read_parent(
    connection: &Connection,
    id: &str,
    columns: &HashSet<String>,
) -> Result<Option<(String, Relation)>> {
    if !columns.contains(PARENT) {
        return Ok(None);
    }
    let config = if columns.contains("model_config") { "model_config" } else { "NULL" };
    let end = if columns.contains("end_reason") { "end_reason" } else { "NULL" };
    let sql = format!(
        "SELECT child.parent_session_id, (SELECT {end} FROM sessions \
         WHERE id = child.parent_session_id){} FROM sessions AS child WHERE child.id = ?1",
        select_cells(&[config]),
    );
    let (parent, end, config) = connection.query_row(&sql, [id], |row| {
        Ok((cell_text(row.get_ref(0)?), cell_text(row.get_ref(1)?), cell_text(row.get_ref(2)?)))
    })?;
    if parent.is_empty() {
        return Ok(None);
    }

    let config: Json = serde_json::from_str(&config).unwrap_or_default();
    // A continuation inherits the marks of its parent, so a mark counts only if it names the parent.
    let is_marked = |mark: &str| config[mark] == parent.as_str();
    let relation = if is_marked("_branched_from") || end == "branched" {
        Relation::ForkedFrom
    } else if is_marked("_reset_from") || RESET_REASONS.contains(&end.as_str()) {
        return Ok(None);
    } else if end == "compression" && !is_marked("_delegate_from") {
        Relation::ContinuedFrom
    } else {
        Relation::SubagentOf
    };
    Ok(Some((parent, relation)))
}

/// The `end_reason` of sessions after which a chat begins a conversation of its own.
const RESET_REASONS: &[&str] =
    &["session_reset", "session_switch", "idle", "daily", "suspended", "resume_pending_expired"];
