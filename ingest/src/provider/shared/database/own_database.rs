//! Lists a session that has a database to itself. An agent keeps a thousand of them, so a run that finds
//! nothing new opens none.

use std::fs;
use std::io;
use std::path::Path;

use super::cells::read_table_names;
use super::connection::query_database;
use super::size_limit::limited_size;
use crate::provider::shared::sidecar::file_time;
use crate::source::assembly::{AssembledSession, SessionList};

/// The part of the files that counts as the size of the document. A size above that of the document
/// would look like a log that ends within a line.
const SIZE_DIVISOR: u64 = 16;

/// Lists the one session in a database, whose path is that of the database. It has changed if the
/// database has, its write-ahead log, or one of the files with the names `next_to`.
pub(crate) fn list_own_database(database: &Path, next_to: &[&str]) -> io::Result<SessionList> {
    let mut bytes = fs::metadata(database)?.len();
    let mut updated_us = file_time(database);
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let others = next_to.iter().map(|name| database.with_file_name(name));
    for path in others.chain([log.into()]) {
        let length = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        // An empty log of changes says nothing.
        if length > 0 {
            bytes += length;
            updated_us = updated_us.max(file_time(&path));
        }
    }
    let session = AssembledSession {
        path: database.to_owned(),
        bytes: limited_size(0, bytes / SIZE_DIVISOR),
        updated_us: updated_us.unwrap_or(0),
    };
    Ok(vec![session].into())
}

/// Returns whether a database can be read and has these tables.
pub(crate) fn has_tables(database: &Path, agent: &str, tables: &[&str]) -> bool {
    let names = query_database(database, agent, read_table_names);
    names.is_ok_and(|names| tables.iter().all(|table| names.contains(*table)))
}
