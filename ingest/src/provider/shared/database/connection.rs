//! Opens a database of an agent for one query, without ever writing to its folder.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Result};

use super::wal::find_log_defect;
use crate::source::panics::catch_panic;

/// The name of SQLite's access to files without locks.
const VFS_WITHOUT_LOCKS: &str = if cfg!(windows) { "win32-none" } else { "unix-none" };

/// Maximum wait for a lock that the agent holds.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(5);

/// Runs `query` on one state of a database without ever writing to its folder. `agent` is the name
/// of the program that keeps the database.
///
/// A running agent keeps changes in a log (`-wal`) with a shared index (`-shm`). If the agent was
/// killed or the database was copied, there may be a log without an index. SQLite then builds the
/// index in memory if it uses no locks. Without a log, the database is opened as immutable, which
/// keeps SQLite from creating either file. It ignores locks, so a database with a rollback journal
/// (`-journal`), in which a change is not committed yet, is opened with locks instead: the query waits
/// for the change, and fails if the agent does not end it.
pub(crate) fn query_database<T>(
    db: &Path,
    agent: &str,
    query: impl Fn(&Connection) -> Result<T>,
) -> io::Result<T> {
    let has_bytes =
        |suffix| std::fs::metadata(with_suffix(db, suffix)).is_ok_and(|file| file.len() > 0);
    if !has_bytes("-wal") {
        let read = |parameters| {
            connect_read_only(db, parameters).and_then(|connection| run_query(&connection, &query))
        };
        if !has_bytes("-journal") {
            let result = read("immutable=1");
            // A change that began meanwhile may be half in the result.
            if !has_bytes("-journal") {
                return result.map_err(io::Error::other);
            }
        }
        return read("mode=ro").map_err(|error| {
            io::Error::other(format!(
                "{agent} is changing it (-journal): {error}; the next run tries again"
            ))
        });
    }

    if with_suffix(db, "-shm").exists() {
        let result =
            connect_read_only(db, "mode=ro").and_then(|connection| run_query(&connection, &query));
        if let Ok(found) = result {
            return Ok(found);
        }
    }

    let result = connect_without_locks(db).and_then(|connection| run_query(&connection, &query));
    result.map_err(|error| {
        io::Error::other(format!(
            "its write-ahead log (-wal) cannot be read: {error}; open the database once with {agent}"
        ))
    })
}

/// Describes the bytes of the write-ahead log of a database that SQLite ignores. `None` if there are
/// none. `agent` is the name of the program that keeps the database.
pub(crate) fn find_unread_rows(db: &Path, agent: &str) -> Option<String> {
    let defect = find_log_defect(&with_suffix(db, "-wal"))?;
    Some(format!(
        "a part of its write-ahead log (-wal) is not readable, so the latest rows may be missing: \
         {defect}; if the files were copied, copy them again while {agent} is closed"
    ))
}

/// Returns the path of a file that SQLite keeps next to the database.
fn with_suffix(db: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(db);
    path.push(suffix);
    PathBuf::from(path)
}

/// Connects to a database, read-only, with these parameters of its URI.
fn connect_read_only(db: &Path, parameters: &str) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(sqlite_uri(db, parameters), flags)?;
    connection.busy_timeout(MAX_LOCK_WAIT)?;
    Ok(connection)
}

/// Connects to a private copy of a database for writing, without locks: the copy may be locked as a
/// temporary file.
pub(crate) fn connect_private_copy(copy: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let uri = sqlite_uri(copy, &format!("vfs={VFS_WITHOUT_LOCKS}"));
    let connection = Connection::open_with_flags(uri, flags)?;
    // A write-ahead log needs no shared index then, which there is not without locks.
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    Ok(connection)
}

/// Connects without locks and with the log's index in memory. The log stays as it is: closing the
/// connection writes nothing of the log into the database.
fn connect_without_locks(db: &Path) -> Result<Connection> {
    let connection = connect_read_only(db, &format!("mode=ro&vfs={VFS_WITHOUT_LOCKS}"))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    Ok(connection)
}

/// Runs `query` in one transaction. Catches panics: the library panics on a damaged database, for
/// example if the name of a column is not UTF-8.
fn run_query<T>(connection: &Connection, query: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    connection.execute_batch("BEGIN")?;
    catch_panic(|| query(connection)).unwrap_or_else(|| Err(damaged_error()))
}

/// Returns the error for a damaged database.
fn damaged_error() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(code, Some("the database is damaged".to_owned()))
}

/// Returns a path as an SQLite URI with parameters.
fn sqlite_uri(db: &Path, parameters: &str) -> String {
    let path = db.to_string_lossy();
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    if cfg!(windows) {
        format!("file:///{}?{parameters}", path.trim_start_matches(r"\\%3f\").replace('\\', "/"))
    } else {
        format!("file:{path}?{parameters}")
    }
}
