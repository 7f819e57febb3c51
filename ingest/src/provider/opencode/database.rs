//! Assembles sessions of the database of OpenCode since 1.2 (`opencode.db`, SQLite) into the bytes
//! of export documents (docs/formats.md#opencode). The database is never written to.
//!
//! ```text
//! versions 1  session(id, ...)      message(id, session_id, data)
//!                                   part(id, message_id, session_id, data)
//! versions 2  session_v2(id, ...)   session_message(id, session_id, type, seq, data)
//! ```
//!
//! Versions 2 copy the old tables once into the new ones, continue there under the same ids, and
//! leave the old rows in place.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use schemas::Provider;
use serde_json::{Map, Value as Json};

use super::rows::{MessageTables, read_messages};
use crate::provider::alias;
use crate::provider::shared::database::cells::{self, read_table_names};
use crate::provider::shared::database::connection::{find_unread_rows, query_database};
use crate::provider::shared::database::document_text::document_bytes;
use crate::provider::shared::database::listing::{
    DatabaseListing, ListedTable, ListedTables, TableGeneration, list_sessions,
};
use crate::provider::shared::database::tables::{
    missing_session, session_list, split_session_path,
};
use crate::source::assembly::{Assembly, RowTables};

/// Columns of a session that its document shows, each with its field name in the document.
const SESSION_COLUMNS: &[(&str, &str)] = &[
    ("id", "id"),
    ("slug", "slug"),
    ("project_id", "projectID"),
    ("parent_id", "parentID"),
    ("fork_session_id", "forkSessionID"),
    ("directory", "directory"),
    ("title", "title"),
    ("version", "version"),
    ("agent", "agent"),
    ("model", "model"),
    ("revert", "revert"),
];

/// The tables of both versions.
const TABLES: ListedTables<'_> = ListedTables {
    agent: "OpenCode",
    sessions: &[sessions_table("session"), sessions_table("session_v2")],
    records: &[records_table("message"), records_table("part"), records_table("session_message")],
    generations: &[
        TableGeneration {
            marks: &["session", "message", "part"],
            tables: &["session", "message", "part"],
        },
        TableGeneration { marks: &["session_v2"], tables: &["session_message"] },
    ],
};

const fn sessions_table(name: &str) -> ListedTable<'_> {
    ListedTable { name, session: "id", time: "time_updated", size: "512", state: &[] }
}

const fn records_table(name: &str) -> ListedTable<'_> {
    // SQLite reads no data to return its length.
    let size = "octet_length(data)";
    ListedTable { name, session: "session_id", time: "time_updated", size, state: &[] }
}

/// Maximum size in bytes of a cell of a session that is read. Only `revert` has more than a line:
/// it may hold the diff of what was undone.
const MAX_CELL_BYTES: u64 = 8 << 20;

/// Assembles the sessions in a database. The path of a session is `<database>#<session id>`.
pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "OpenCode database",
    source_suffix: ".db",
    is_source: is_database,
    sessions: |database| Ok(session_list(database, list_database(database)?)),
    find_defect: |database| find_unread_rows(database, agent_name(database)),
    assemble: |path| {
        let (database, session) = split_session_path(path).ok_or_else(missing_session)?;
        assemble_database(&database, &session)
    },
    rows: Some(RowTables {
        // Since 1.18: what changed, for other machines.
        named: &[("event_sequence", "aggregate_id"), ("event", "aggregate_id")],
        shared: &[("project", "id", "project_id")],
        ..RowTables::new("OpenCode", &[("session", "id"), ("session_v2", "id")])
    }),
    ..Assembly::NONE
};

/// Lists the databases in OpenCode's data folder, sorted by name: `opencode.db` and one per release
/// channel.
pub(super) fn find_databases(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut databases: Vec<PathBuf> = paths.filter(|path| is_database(path)).collect();
    databases.sort();
    databases
}

/// Returns whether the file is named like a database of OpenCode, or of an agent with the same
/// database.
fn is_database(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.ends_with(".db")
        && (name.starts_with("opencode") || alias::alias_at(Provider::OpenCode, path).is_some())
}

/// Returns the name of the program that keeps a database.
fn agent_name(database: &Path) -> &'static str {
    let alias = alias::alias_at(Provider::OpenCode, database);
    alias.map_or(Provider::OpenCode, |alias| alias.provider).agent_name()
}

/// Lists the sessions in a database.
fn list_database(db: &Path) -> io::Result<DatabaseListing> {
    query_database(db, agent_name(db), |connection| list_sessions(connection, &TABLES))
}

/// Assembles the export document of a session in a database.
fn assemble_database(db: &Path, session_id: &str) -> io::Result<Vec<u8>> {
    query_database(db, agent_name(db), |connection| assemble_document(connection, session_id))?
        .ok_or_else(missing_session)
}

/// Returns the export document of a session, or `None` if the database does not have the session.
fn assemble_document(connection: &Connection, id: &str) -> Result<Option<Vec<u8>>> {
    let tables = read_table_names(connection)?;
    let mut old = None;
    if tables.contains("session") {
        old = read_session_fields(connection, "session", id)?;
    }
    let mut new = None;
    if tables.contains("session_v2") {
        new = read_session_fields(connection, "session_v2", id)?;
    }

    let conversation = if is_in_new_tables(connection, &tables, id, new.is_some())? {
        Some(MessageTables::New)
    } else if tables.contains("message") {
        Some(MessageTables::Old { has_parts: tables.contains("part") })
    } else {
        None
    };
    let Some(info) = new.or(old) else { return Ok(None) };
    let info = Json::Object(info).to_string();
    let messages = match conversation {
        Some(tables) => read_messages(connection, id, tables, info.len() as u64)?,
        None => Vec::new(),
    };
    Ok(Some(document_bytes(&info, &messages)))
}

/// Returns whether the conversation of a session is in `session_message`. That table is older than
/// versions 2. In databases of versions 1, its rows only record switches (`agent-switched` and
/// others).
fn is_in_new_tables(
    connection: &Connection,
    tables: &HashSet<String>,
    id: &str,
    has_new_session: bool,
) -> Result<bool> {
    let has_conversation = tables.contains("session_message")
        && count_messages(connection, "session_message", id, "AND type IN ('user', 'assistant')")?
            > 0;
    if !has_conversation {
        return Ok(false);
    }
    let has_old_messages = !has_new_session
        && tables.contains("message")
        && count_messages(connection, "message", id, "")? > 0;
    Ok(!has_old_messages)
}

/// Counts the messages of a session in a table. `condition` is empty, or SQL that begins with AND.
fn count_messages(connection: &Connection, table: &str, id: &str, condition: &str) -> Result<i64> {
    let sql = format!("SELECT count(*) FROM {table} WHERE session_id = ?1 {condition}");
    connection.query_row(&sql, [id], |row| row.get(0))
}

/// Returns the columns of a table of sessions that a document shows, and the SQL of their cells. A
/// cell of more than [`MAX_CELL_BYTES`] is read as NULL, and other columns are not read at all:
/// `summary_diffs` may hold the contents of many files.
fn select_session_columns(connection: &Connection, table: &str) -> Result<(Vec<String>, String)> {
    let statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
    let names = statement.column_names().map(str::to_owned);
    let columns: Vec<String> =
        names.filter(|name| is_time(name) || session_field(name).is_some()).collect();
    let cells: Vec<String> = columns
        .iter()
        .map(|name| {
            let cell = format!("\"{}\"", name.replace('"', "\"\""));
            format!("CASE WHEN octet_length({cell}) <= {MAX_CELL_BYTES} THEN {cell} END")
        })
        .collect();
    Ok((columns, cells.join(", ")))
}

/// Returns whether a column of a session holds a time.
fn is_time(column: &str) -> bool {
    column.starts_with("time_")
}

/// Returns the field of a document for a column of a session. `None` if documents do not show it.
fn session_field(column: &str) -> Option<&'static str> {
    SESSION_COLUMNS.iter().find(|(known, _)| *known == column).map(|(_, field)| *field)
}

/// Reads the fields of a session, or returns `None` if the table does not have the session.
fn read_session_fields(
    connection: &Connection,
    table: &str,
    id: &str,
) -> Result<Option<Map<String, Json>>> {
    let (columns, cells) = select_session_columns(connection, table)?;
    let sql = format!("SELECT {cells} FROM {table} WHERE id = ?1");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([id])?;
    let Some(row) = rows.next()? else { return Ok(None) };

    let mut info = Map::new();
    let mut time = Map::new();
    for (at, column) in columns.iter().enumerate() {
        let Some(value) = cell_json(row.get_ref(at)?) else { continue };
        if let Some(moment) = column.strip_prefix("time_") {
            time.insert(moment.to_owned(), value);
        } else if let Some(field) = session_field(column) {
            info.insert(field.to_owned(), value);
        }
    }
    info.insert("time".to_owned(), time.into());
    Ok(Some(info))
}

/// Returns a cell as JSON. Text that holds a JSON object is parsed.
fn cell_json(cell: ValueRef<'_>) -> Option<Json> {
    let value = cells::cell_json(cell)?;
    let parsed = value.as_str().filter(|text| text.starts_with('{'));
    Some(parsed.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLES: &str = "
        CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT,
            directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
        CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
            time_updated INTEGER, data TEXT);
        CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
            time_created INTEGER, time_updated INTEGER, data TEXT);
        INSERT INTO session VALUES ('ses_1', 'p', NULL, '/w', 'A title', '1.2.0', 1, 2);
        INSERT INTO message VALUES ('msg_2', 'ses_1', 2, 5, '{\"role\":\"assistant\"}');
        INSERT INTO message VALUES ('msg_1', 'ses_1', 1, 1, '{\"role\":\"user\"}');
        INSERT INTO part VALUES ('prt_2', 'msg_1', 'ses_1', 2, 3, '{\"type\":\"file\"}');
        INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1, 9, '{\"type\":\"text\"}');";

    const NEW_TABLES: &str = "
        CREATE TABLE session_v2 (id TEXT PRIMARY KEY, fork_session_id TEXT, model TEXT,
            time_created INTEGER, time_updated INTEGER);
        CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT,
            seq INTEGER, time_created INTEGER, time_updated INTEGER, data TEXT);
        INSERT INTO session_v2 VALUES ('ses_1', NULL, '{\"id\":\"m\"}', 1, 20);
        INSERT INTO session_message VALUES ('msg_2', 'ses_1', 'assistant', 1, 2, 30, '{}'),
            ('msg_1', 'ses_1', 'user', 0, 1, 1, '{\"text\":\"x\"}');";

    fn database(sql: &[&str]) -> (tempfile::TempDir, PathBuf, Connection) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("open code#1.db");
        let connection = Connection::open(&path).expect("opens");
        connection.pragma_update(None, "journal_mode", "wal").expect("wal");
        for sql in sql {
            connection.execute_batch(sql).expect("sql");
        }
        (dir, path, connection)
    }

    fn assembled(path: &Path) -> Json {
        let document = assemble_database(path, "ses_1").expect("assembles");
        serde_json::from_slice(&document).expect("json")
    }

    #[test]
    fn a_database_in_use_and_one_at_rest_give_the_same() {
        let (dir, path, connection) = database(&[TABLES]);
        let sessions = list_database(&path).expect("lists").sessions;
        let [session] = sessions.as_slice() else { panic!("{sessions:?}") };
        assert_eq!((session.id.as_str(), session.updated_us), ("ses_1", 9000));
        let json = assembled(&path);
        assert_eq!(json["info"]["time"]["updated"], 2);
        assert_eq!(json["messages"][0]["info"]["id"], "msg_1");
        let part =
            json!({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "text"});
        assert_eq!(json["messages"][0]["parts"][0], part);
        assert_eq!(json["messages"][0]["parts"][1]["id"], "prt_2");
        assert_eq!(json["messages"][1]["parts"], json!([]));
        drop(connection);
        assert_eq!(assembled(&path), json);
        let again = list_database(&path).expect("lists");
        assert_eq!((again.sessions, again.defects), (sessions, Vec::new()));
        let files = std::fs::read_dir(dir.path()).expect("lists").count();
        assert_eq!(files, 1, "no file remains next to a database at rest");
        let missing = assemble_database(&path, "ses_2").expect_err("not there");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    /// Rows without end, which a view makes of nothing.
    #[test]
    fn only_tables_are_read() {
        let endless = "ALTER TABLE part RENAME TO part0; CREATE VIEW part AS
            WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)
            SELECT id, message_id, session_id, time_created, time_updated, data FROM part0, t;";
        let (_dir, path, _connection) = database(&[TABLES, endless]);
        assert_eq!(list_database(&path).expect("lists").sessions.len(), 1);
        assert_eq!(assembled(&path)["messages"][0]["parts"], json!([]));
    }

    #[test]
    fn rows_of_too_many_bytes_are_left_out() {
        let giant = "INSERT INTO part VALUES ('prt_3', 'msg_1', 'ses_1', 3, 3,
            '{\"text\":\"' || printf('%.*c', 70000000, 'x') || '\"}');
            INSERT INTO part SELECT 'prt_4', message_id, session_id, 4, 4, data FROM part
                WHERE id = 'prt_3';
            INSERT INTO message SELECT 'msg_3', session_id, 3, 3, data FROM part
                WHERE id = 'prt_3';
            INSERT INTO session_message SELECT 'msg_3', 'ses_2', 'user', 3, 3, 3, data FROM part
                WHERE id = 'prt_3';
            INSERT INTO session_message VALUES ('msg_4', 'ses_2', 'user', 4, 4, 4, '{}');
            INSERT INTO session_v2 VALUES ('ses_2', NULL, NULL, 1, 1);
            ALTER TABLE session ADD COLUMN summary_diffs TEXT;
            UPDATE session SET summary_diffs = title, title = (SELECT data FROM part
                WHERE id = 'prt_3');";
        let (_dir, path, connection) = database(&[TABLES, NEW_TABLES, giant]);
        let sessions = list_database(&path).expect("lists").sessions;
        assert!(sessions.iter().all(|session| session.bytes > 64 << 20));
        let sessions = (ASSEMBLY.sessions)(&path).expect("lists").sessions;
        assert!(sessions.iter().all(|session| session.bytes == 64 << 20));

        // The old tables.
        connection.execute("DELETE FROM session_v2 WHERE id = 'ses_1'", []).expect("sql");
        connection
            .execute("DELETE FROM session_message WHERE session_id = 'ses_1'", [])
            .expect("sql");
        let json = assembled(&path);
        assert_eq!(json["info"]["title"], Json::Null);
        let ids = |list: &Json| {
            let list = list.as_array().expect("list");
            list.iter().map(|part| part["id"].as_str().expect("id").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids(&json["messages"][0]["parts"]), ["prt_1", "prt_2", "prt_3", "prt_4"]);
        let part = json!({"id": "prt_3", "sessionID": "ses_1", "messageID": "msg_1",
            "type": "oversized_record", "bytes": 70000011});
        assert_eq!(json["messages"][0]["parts"][2], part);
        let info = json!({"id": "msg_3", "sessionID": "ses_1", "type": "oversized_record",
            "bytes": 70000011, "time": {"created": 3}});
        assert_eq!(json["messages"][2]["info"], info);

        let document = assemble_database(&path, "ses_2").expect("assembles");
        let json: Json = serde_json::from_slice(&document).expect("json");
        let message = json!({"id": "msg_3", "type": "oversized_record", "bytes": 70000011});
        assert_eq!(json["messages"], json!([message, {"id": "msg_4", "type": "user"}]));
    }

    #[test]
    fn the_new_tables_win_once_they_hold_the_conversation() {
        let (_dir, path, connection) = database(&[TABLES, NEW_TABLES]);
        let json = assembled(&path);
        assert_eq!(json["info"]["model"]["id"], "m");
        let user = json!({"id": "msg_1", "type": "user", "text": "x"});
        assert_eq!(json["messages"][0], user);
        assert_eq!(json["messages"][1]["type"], "assistant");
        assert_eq!(list_database(&path).expect("lists").sessions[0].updated_us, 30_000);
        connection.execute("UPDATE session_message SET type = 'agent-switched'", []).expect("sql");
        assert!(assembled(&path)["messages"][0]["parts"].is_array());
    }
}
