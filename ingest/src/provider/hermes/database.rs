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

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Result};
use schemas::event::Relation;
use serde_json::{Map, Value as Json};

use super::counts::{MODEL_TABLE, SessionCounts, TOKEN_COLUMNS};
use super::rows::{length_sql, read_messages};
use crate::provider::shared::database::cells::{
    cell_text, read_columns, read_table_names, select_cells,
};
use crate::provider::shared::database::connection::{find_unread_rows, query_database};
use crate::provider::shared::database::document_text::{document_bytes, info_json};
use crate::provider::shared::database::listing::{
    self, DatabaseListing, ListedTable, ListedTables,
};
use crate::provider::shared::database::tables;
use crate::source::assembly::{Assembly, RowTables, SessionList};

/// Value of `store` in the documents of these sessions.
pub(super) const STORE: &str = "hermes";

/// File name of the database.
const DATABASE: &str = "state.db";

/// Columns of a session that its document shows under the same name.
const SESSION_COLUMNS: &[&str] =
    &["source", "model", "title", "title_source", "started_at", "ended_at", "cwd", "git_branch"];

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
    source_suffix: DATABASE,
    is_source: |path| path.file_name().is_some_and(|name| name == DATABASE),
    sessions: list_sessions,
    find_defect: |database| find_unread_rows(database, AGENT),
    assemble: |path| tables::read_session_at(path, AGENT, assemble_document),
    rows: Some(RowTables::new(AGENT, &[("sessions", "id")])),
    ..Assembly::NONE
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

/// Lists the sessions in a database that have messages or token counts.
fn list_sessions(database: &Path) -> io::Result<SessionList> {
    let listing = query_database(database, AGENT, |connection| {
        let names = read_table_names(connection)?;
        // Other programs have files of this name, too.
        if !names.contains("sessions") || !names.contains("messages") {
            return Ok(DatabaseListing::default());
        }

        let length = length_sql(&read_columns(connection, "messages")?);
        let mut listing = listing::list_sessions(
            connection,
            &ListedTables {
                agent: AGENT,
                sessions: &[ListedTable {
                    name: "sessions",
                    session: "id",
                    time: "CAST(started_at * 1000 AS INTEGER)",
                    size: &SESSION_BYTES.to_string(),
                    state: &[SESSION_COLUMNS, TOKEN_COLUMNS, &[PARENT]].concat(),
                }],
                records: &[
                    ListedTable {
                        name: "messages",
                        session: "session_id",
                        time: "CAST(timestamp * 1000 AS INTEGER)",
                        size: &format!("1 + {length}"),
                        state: CHANGING_COLUMNS,
                    },
                    ListedTable {
                        name: MODEL_TABLE,
                        session: "session_id",
                        time: "CAST(last_seen * 1000 AS INTEGER)",
                        size: "1",
                        state: &[&["model", "task"], TOKEN_COLUMNS].concat(),
                    },
                ],
                generations: &[],
            },
        )?;
        let mut sessions = Vec::with_capacity(listing.sessions.len());
        for session in listing.sessions {
            if session.bytes > SESSION_BYTES
                || SessionCounts::read_totals(connection, &session.id)?.total() > 0
            {
                sessions.push(session);
            }
        }
        listing.sessions = sessions;
        Ok(listing)
    })?;
    Ok(tables::session_list(database, listing))
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

    info.insert("usage".to_owned(), counts.into_json());
    Ok(Some(document_bytes(&info_json(STORE, info), &messages)))
}

/// Reads the fields of a session, or returns `None` if the database does not have the session.
fn read_session(connection: &Connection, id: &str) -> Result<Option<Map<String, Json>>> {
    let Some(mut info) = tables::read_session(connection, tables::SESSIONS, SESSION_COLUMNS, id)?
    else {
        return Ok(None);
    };
    let columns = read_columns(connection, "sessions")?;
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
