//! Assembles sessions of the database of OpenCode since 1.2 (`opencode.db`, SQLite) into the bytes
//! of export documents (docs/formats.md#opencode). Versions 1 use `session`, `message` and `part`.
//! Versions 2 copy those tables once into `session_v2` and `session_message`, continue there under
//! the same ids, and leave the old rows in place. The database is never written to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Result, Row};
use serde_json::{Map, Value as Json};

use super::document_text::{document, message, object};
use crate::source::assembly::{AssembledSession, Assembly};
use crate::source::panics::caught;

/// Longest wait for a lock that OpenCode holds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Columns of a session that its document shows, each with its field name in the document.
const COLUMNS: &[(&str, &str)] = &[
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

/// A session in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DatabaseSession {
    id: String,
    /// Latest change of any row of the session, in microseconds.
    updated_us: i64,
    /// Approximate size of the session's document.
    bytes: u64,
}

/// Sessions in a database; the path of one is `<database>#<session id>`.
pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "OpenCode database",
    shares_file: true,
    is_source: is_database,
    is_part: |_| false,
    sessions: |database| {
        let sessions = database_sessions(database)?;
        Ok(sessions.into_iter().map(|session| session.at(database)).collect())
    },
    assemble: |path| {
        let path = path.to_string_lossy();
        let (database, session) = path.rsplit_once('#').ok_or_else(missing)?;
        assemble_database(Path::new(database), session)
    },
};

impl DatabaseSession {
    fn at(self, database: &Path) -> AssembledSession {
        let mut path = database.as_os_str().to_owned();
        path.push(format!("#{}", self.id));
        AssembledSession { path: path.into(), bytes: self.bytes, updated_us: self.updated_us }
    }
}

/// Lists the databases in OpenCode's data folder, sorted by name: `opencode.db` and one per release
/// channel.
pub(super) fn databases(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut databases: Vec<PathBuf> = paths.filter(|path| is_database(path)).collect();
    databases.sort();
    databases
}

/// True if the file is named like a database of OpenCode.
fn is_database(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.starts_with("opencode") && name.ends_with(".db")
}

/// Lists the sessions in a database, sorted by id.
fn database_sessions(db: &Path) -> io::Result<Vec<DatabaseSession>> {
    open(db, sessions)
}

/// Assembles the export document of a session in a database.
fn assemble_database(db: &Path, session_id: &str) -> io::Result<Vec<u8>> {
    open(db, |connection| assemble(connection, session_id))?.ok_or_else(missing)
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the session is not in the database")
}

/// Runs `query` on one state of a database without ever writing to its folder.
///
/// A running OpenCode keeps changes in a log (`-wal`) with a shared index (`-shm`). A log without
/// an index was left by a kill or by a copy. SQLite then builds the index in memory if it uses no
/// locks. Without a log, the database is opened as immutable, which keeps SQLite from creating
/// either file.
fn open<T>(db: &Path, query: impl Fn(&Connection) -> Result<T>) -> io::Result<T> {
    let beside = |extension: &str| {
        let mut name = OsString::from(db);
        name.push(extension);
        PathBuf::from(name)
    };
    let has_log = std::fs::metadata(beside("-wal")).is_ok_and(|log| log.len() > 0);
    if has_log && beside("-shm").exists() {
        let shared = connect(db, "mode=ro").and_then(|connection| read(&connection, &query));
        if let Ok(found) = shared {
            return Ok(found);
        }
    }
    if !has_log {
        let found = connect(db, "immutable=1").and_then(|connection| read(&connection, &query));
        return found.map_err(io::Error::other);
    }
    let found = connect_alone(db).and_then(|connection| read(&connection, &query));
    found.map_err(|error| {
        let hint = "its log of changes (-wal) cannot be read; open the database with OpenCode once";
        io::Error::other(format!("{error}: {hint}"))
    })
}

fn connect(db: &Path, parameters: &str) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri(db, parameters), flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// Connects without locks and with the log's index in memory. The log stays as it is: closing the
/// connection writes nothing of the log into the database.
fn connect_alone(db: &Path) -> Result<Connection> {
    let without_locks = if cfg!(windows) { "win32-none" } else { "unix-none" };
    let connection = connect(db, &format!("mode=ro&vfs={without_locks}"))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    Ok(connection)
}

/// Runs `query` in one transaction. Catches panics: the library panics on a damaged database, for
/// example if the name of a column is not UTF-8.
fn read<T>(connection: &Connection, query: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    connection.execute_batch("BEGIN")?;
    caught(|| query(connection)).unwrap_or_else(|| Err(damaged()))
}

/// Returns the error for a damaged database.
fn damaged() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(code, Some("the database is damaged".to_owned()))
}

/// Returns a path as an SQLite URI with parameters.
fn uri(db: &Path, parameters: &str) -> String {
    let path = db.to_string_lossy();
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    if cfg!(windows) {
        format!("file:///{}?{parameters}", path.trim_start_matches(r"\\%3f\").replace('\\', "/"))
    } else {
        format!("file:{path}?{parameters}")
    }
}

fn tables(connection: &Connection) -> Result<HashSet<String>> {
    // A view or a virtual table may have an unlimited number of rows.
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'";
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn sessions(connection: &Connection) -> Result<Vec<DatabaseSession>> {
    let tables = tables(connection)?;
    let mut found: BTreeMap<String, DatabaseSession> = BTreeMap::new();
    for table in ["session", "session_v2"].into_iter().filter(|table| tables.contains(*table)) {
        let sql = format!("SELECT id, time_updated, 512 FROM {table}");
        let mut statement = connection.prepare(&sql)?;
        for session in statement.query_map([], change)? {
            let session = session?;
            match found.get_mut(&session.id) {
                Some(known) => grow(known, &session),
                None => {
                    found.insert(session.id.clone(), session);
                }
            }
        }
    }
    // Rows are read in table order, because an index would read all over the file. Grouping in
    // SQLite would hold the rows with their data in memory. SQLite reads no data to return its
    // length.
    for table in ["message", "part", "session_message"] {
        if !tables.contains(table) {
            continue;
        }
        let sql = format!("SELECT session_id, time_updated, octet_length(data) FROM {table}");
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let change = change(row)?;
            if let Some(session) = found.get_mut(&change.id) {
                grow(session, &change);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Reads a row of three columns: a session's id, a time in milliseconds, and a size in bytes.
fn change(row: &Row<'_>) -> Result<DatabaseSession> {
    Ok(DatabaseSession {
        id: text(row.get_ref(0)?),
        updated_us: number(row.get_ref(1)?).saturating_mul(1000),
        bytes: number(row.get_ref(2)?).max(0).cast_unsigned(),
    })
}

fn grow(session: &mut DatabaseSession, rows: &DatabaseSession) {
    session.updated_us = session.updated_us.max(rows.updated_us);
    session.bytes = session.bytes.saturating_add(rows.bytes);
}

fn assemble(connection: &Connection, id: &str) -> Result<Option<Vec<u8>>> {
    let tables = tables(connection)?;
    let of = |table: &str| {
        if tables.contains(table) { info(connection, table, id) } else { Ok(None) }
    };
    let (old, new) = (of("session")?, of("session_v2")?);
    let count = |table: &str, condition: &str| {
        if !tables.contains(table) {
            return Ok(0);
        }
        let sql = format!("SELECT count(*) FROM {table} WHERE session_id = ?1 {condition}");
        connection.query_row(&sql, [id], |row| row.get::<_, i64>(0))
    };
    // The new table is older than the new version. Until then its rows only record switches.
    let said = count("session_message", "AND type IN ('user', 'assistant')")?;
    let is_new = said > 0 && (new.is_some() || count("message", "")? == 0);
    let messages = match (is_new, tables.contains("message")) {
        (true, _) => new_messages(connection, id)?,
        (false, true) => old_messages(connection, id, tables.contains("part"))?,
        (false, false) => Vec::new(),
    };
    let info = new.or(old);
    Ok(info.map(|info| document(&Json::Object(info).to_string(), &messages)))
}

/// Reads the fields of a session.
fn info(connection: &Connection, table: &str, id: &str) -> Result<Option<Map<String, Json>>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table} WHERE id = ?1"))?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let read = |row: &Row<'_>| {
        let mut info = Map::new();
        let mut time = Map::new();
        for (at, column) in columns.iter().enumerate() {
            let Some(value) = json(row.get_ref(at)?) else { continue };
            if let Some(moment) = column.strip_prefix("time_") {
                time.insert(moment.to_owned(), value);
            } else if let Some((_, field)) = COLUMNS.iter().find(|(known, _)| known == column) {
                info.insert((*field).to_owned(), value);
            }
        }
        info.insert("time".to_owned(), time.into());
        Ok(info)
    };
    statement.query_row([id], read).optional()
}

/// Reads the messages of versions 2. Messages are sorted here, like the rows below, because SQLite
/// sorts rows together with their data and holds several copies of that data.
fn new_messages(connection: &Connection, id: &str) -> Result<Vec<String>> {
    let sql = "SELECT seq, id, type, data FROM session_message WHERE session_id = ?1";
    let read = |row: &Row<'_>| {
        let seq = number(row.get_ref(0)?);
        let (message, kind) = (text(row.get_ref(1)?), text(row.get_ref(2)?));
        Ok((seq, object(&text(row.get_ref(3)?), &[("id", &message), ("type", &kind)])))
    };
    let mut statement = connection.prepare(sql)?;
    let mut messages = statement.query_map([id], read)?.collect::<Result<Vec<_>>>()?;
    messages.sort_by_key(|(seq, _)| *seq);
    Ok(messages.into_iter().map(|(_, message)| message).collect())
}

/// Reads the messages of versions 1, with their parts if the database has a table of parts.
fn old_messages(connection: &Connection, id: &str, has_parts: bool) -> Result<Vec<String>> {
    let mut parts = if has_parts { old_parts(connection, id)? } else { HashMap::new() };
    let sql = "SELECT time_created, id, data FROM message WHERE session_id = ?1";
    let mut statement = connection.prepare(sql)?;
    let read =
        |row: &Row<'_>| Ok((number(row.get_ref(0)?), text(row.get_ref(1)?), text(row.get_ref(2)?)));
    let mut messages = statement.query_map([id], read)?.collect::<Result<Vec<_>>>()?;
    messages.sort();
    let whole = |(_, owner, data): (i64, String, String)| {
        let info = object(&data, &[("id", &owner), ("sessionID", id)]);
        let mut parts = parts.remove(&owner).unwrap_or_default();
        parts.sort_by(|(a, _), (b, _)| a.cmp(b));
        let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
        message(&info, &parts)
    };
    Ok(messages.into_iter().map(whole).collect())
}

/// Reads the parts of versions 1, grouped by message, each with its id and in no particular order.
fn old_parts(connection: &Connection, id: &str) -> Result<HashMap<String, Vec<(String, String)>>> {
    let mut parts: HashMap<String, Vec<(String, String)>> = HashMap::new();
    let sql = "SELECT message_id, id, data FROM part WHERE session_id = ?1";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let (owner, part) = (text(row.get_ref(0)?), text(row.get_ref(1)?));
        let ids = [("id", part.as_str()), ("sessionID", id), ("messageID", owner.as_str())];
        let content = object(&text(row.get_ref(2)?), &ids);
        parts.entry(owner).or_default().push((part, content));
    }
    Ok(parts)
}

/// Returns a cell as text.
fn text(cell: ValueRef<'_>) -> String {
    match cell {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => String::new(),
    }
}

/// Returns a cell as an integer.
fn number(cell: ValueRef<'_>) -> i64 {
    if let ValueRef::Integer(number) = cell { number } else { 0 }
}

/// Returns a cell as JSON. Text that holds a JSON object is parsed.
fn json(cell: ValueRef<'_>) -> Option<Json> {
    match cell {
        ValueRef::Null | ValueRef::Blob(_) => None,
        ValueRef::Integer(number) => Some(number.into()),
        ValueRef::Real(number) => Some(number.into()),
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let parsed =
                if text.starts_with('{') { serde_json::from_str(&text).ok() } else { None };
            Some(parsed.unwrap_or_else(|| text.into()))
        }
    }
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
        sql.iter().for_each(|sql| connection.execute_batch(sql).expect("sql"));
        (dir, path, connection)
    }

    fn assembled(path: &Path) -> Json {
        let document = assemble_database(path, "ses_1").expect("assembles");
        serde_json::from_slice(&document).expect("json")
    }

    #[test]
    fn a_database_in_use_and_one_at_rest_give_the_same() {
        let (dir, path, connection) = database(&[TABLES]);
        let sessions = database_sessions(&path).expect("sessions");
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
        assert_eq!(database_sessions(&path).expect("sessions"), sessions);
        let files = std::fs::read_dir(dir.path()).expect("lists").count();
        assert_eq!(files, 1, "nothing is left beside a database at rest");
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
        assert_eq!(database_sessions(&path).expect("sessions").len(), 1);
        assert_eq!(assembled(&path)["messages"][0]["parts"], json!([]));
    }

    #[test]
    fn the_new_tables_win_once_they_hold_the_conversation() {
        let (_dir, path, connection) = database(&[TABLES, NEW_TABLES]);
        let json = assembled(&path);
        assert_eq!(json["info"]["model"]["id"], "m");
        let user = json!({"id": "msg_1", "type": "user", "text": "x"});
        assert_eq!(json["messages"][0], user);
        assert_eq!(json["messages"][1]["type"], "assistant");
        assert_eq!(database_sessions(&path).expect("sessions")[0].updated_us, 30_000);
        connection.execute("UPDATE session_message SET type = 'agent-switched'", []).expect("sql");
        assert!(assembled(&path)["messages"][0]["parts"].is_array());
    }
}
