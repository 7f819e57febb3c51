//! Replaces the secrets of sessions in the database of their agent.
//!
//! Everything is tried on a copy first: there the rows of each session are masked like the records of a log,
//! and the session is assembled and decoded again. What was found good is then done in the database itself,
//! in one transaction, and only if the database is still as it was copied.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Cursor, Write as _};
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, TransactionBehavior};
use schemas::Provider;
use xxhash_rust::xxh3::Xxh3;

use super::left_secrets::{ColumnWithSecrets, LeftSecrets, collect_spellings};
use super::log::{
    ANOTHER_SESSION, READ_OTHERWISE, ReplacedText, Replacer, ScrubOutcome, ScrubRules,
    is_same_session, rewind,
};
use crate::discover::raw_log::find_candidate;
use crate::discover::sniff::{Sniffed, sniff_content};
use crate::provider::shared::database::connection::{connect_private_copy, query_database};
use crate::provider::shared::database::tables::session_path;
use crate::rows::{
    CellChange, RowDocument, connect_for_writing, find_changed_cells, find_session, for_each_table,
    for_each_text_cell, hash_rows, quoted, read_legible_rows, replace_cells,
};
use crate::run::{DecodedLog, LogSecrets};
use crate::source::assembly::RowTables;
use crate::source::candidate::Container;
use crate::source::container::Content;

/// The cells of a session that are replaced.
#[derive(Debug)]
pub struct RowChange {
    tables: &'static RowTables,
    id: String,
    /// Hash of the session's rows as they were.
    hash: u64,
    cells: Vec<CellChange>,
}

/// Returns the database of the session that the store knows as `key`, if its rows can be changed.
pub fn find_database(key: &str) -> Option<PathBuf> {
    find_session(key).map(|(_, database, _)| database)
}

/// Copies a database as one state into the file `copy`, which is empty or a database. The folder of the
/// database stays as it is.
///
/// # Errors
/// Fails if the database cannot be read, or the copy cannot be written.
pub fn copy_database(database: &Path, copy: &Path) -> io::Result<()> {
    query_database(database, "its agent", |source| {
        let mut target = connect_private_copy(copy)?;
        copy_pages(source, &mut target)
    })
}

fn copy_pages(source: &Connection, target: &mut Connection) -> rusqlite::Result<()> {
    if Backup::new(source, target)?.step(-1)? == StepResult::Done {
        return Ok(());
    }
    let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    Err(rusqlite::Error::SqliteFailure(busy, Some("another program uses it".to_owned())))
}

/// Returns a hash of all rows of all tables in a database.
///
/// # Errors
/// Fails if the database cannot be read.
pub fn hash_database(database: &Path) -> io::Result<u64> {
    query_database(database, "its agent", hash_tables)
}

fn hash_tables(connection: &Connection) -> rusqlite::Result<u64> {
    let mut hash = Xxh3::new();
    for_each_table(connection, &mut |name, sql, rows| {
        hash_cell(ValueRef::Text(name.as_bytes()), &mut hash);
        hash_cell(sql, &mut hash);
        let columns = rows.as_ref().map_or(0, |statement| statement.column_count());
        while let Some(row) = rows.next()? {
            for at in 0..columns {
                hash_cell(row.get_ref(at)?, &mut hash);
            }
        }
        Ok(())
    })?;
    Ok(hash.digest())
}

fn hash_cell(cell: ValueRef<'_>, hash: &mut Xxh3) {
    let mut add = |kind: u8, bytes: &[u8]| {
        hash.update(&[kind]);
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    match cell {
        ValueRef::Null => add(0, &[]),
        ValueRef::Integer(number) => add(1, &number.to_le_bytes()),
        ValueRef::Real(number) => add(2, &number.to_bits().to_le_bytes()),
        ValueRef::Text(bytes) => add(3, bytes),
        ValueRef::Blob(bytes) => add(4, bytes),
    }
}

/// A copy of a database, in which the secrets of its sessions are replaced to see what becomes of them.
pub struct DatabaseCopy<'a> {
    path: &'a Path,
    connection: Connection,
    rules: &'a ScrubRules,
    /// The folder for files without a name.
    scratch: &'a Path,
    /// Kind and text of the secrets that were replaced, as a document of rows has them.
    replaced: BTreeSet<(String, String)>,
}

impl<'a> DatabaseCopy<'a> {
    /// Opens the copy at `path`. Files without a name are created in `scratch`.
    ///
    /// # Errors
    /// Fails if the copy cannot be opened.
    pub fn open(path: &'a Path, rules: &'a ScrubRules, scratch: &'a Path) -> io::Result<Self> {
        let connection = connect_private_copy(path).map_err(io::Error::other)?;
        // No other file with secrets, and nothing that a copy does not need.
        connection
            .execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
            .map_err(io::Error::other)?;
        Ok(Self { path, connection, rules, scratch, replaced: BTreeSet::new() })
    }

    /// Replaces the secrets of the session that the store knows as `key` in the copy. `provider` is the agent
    /// whose log the store has it for. The change is empty if the session is left out or has none.
    ///
    /// # Errors
    /// Returns the errors of reading and writing.
    pub fn scrub_session(
        &mut self,
        key: &str,
        provider: Provider,
    ) -> io::Result<(ScrubOutcome, Option<RowChange>)> {
        let left_out = |reason| Ok((ScrubOutcome::LeftOut(reason), None));
        let Some((tables, _, id)) = find_session(key) else {
            return left_out("it is no longer recognised as a log");
        };
        let candidate = find_candidate(key)?;
        let Container::Assembled(assembly) = candidate.container else {
            return left_out("it is no longer recognised as a log");
        };
        let assemble = || (assembly.assemble)(&session_path(self.path, &id));
        let redactor = &self.rules.redactor;
        let claim_of =
            |document: &[u8]| sniff_content(&candidate, document, Some(redactor.as_ref()));

        let document = assemble()?;
        let Sniffed::Log(claim) = claim_of(&document)? else {
            return left_out("it is no longer recognised as a log");
        };
        if claim.provider != provider {
            return left_out("another agent wrote it than the store knows");
        }
        let decoded =
            DecodedLog { claim: &claim, path: key, redactor, aliases: &self.rules.aliases };
        let read_secrets = |document: Vec<u8>| {
            let size = document.len() as u64;
            decoded.read_secrets(Content::Memory(Cursor::new(document)), size)
        };
        let before = read_secrets(document)?;

        let mut session = CopiedSession { connection: &mut self.connection, tables, id: &id };
        let original = session.read()?;
        let mut text = tempfile::tempfile_in(self.scratch)?;
        text.write_all(&serde_json::to_vec(&original)?)?;
        let mut read_replaced = |text: &File| -> io::Result<LogSecrets> {
            session.write(&serde_json::from_reader(io::BufReader::new(rewind(text)?))?)?;
            read_secrets(assemble()?)
        };
        let replacer = Replacer {
            rules: self.rules,
            is_document: true,
            scratch: self.scratch,
            before: &before,
        };
        let scrubbed = replacer.replace(text, &mut read_replaced);
        // The copy may have a round that was given up.
        let Ok(Some(ReplacedText { text, log: mut scrubbed, values })) = scrubbed else {
            session.write(&original)?;
            scrubbed?;
            return left_out(READ_OTHERWISE);
        };
        let wanted = serde_json::from_reader(io::BufReader::new(text))?;
        session.write(&wanted)?;
        let sniffed = claim_of(&assemble()?)?;
        if !is_same_session(sniffed, &claim, &self.rules.aliases, &mut scrubbed) {
            session.write(&original)?;
            return left_out(ANOTHER_SESSION);
        }
        self.replaced.extend(values);
        let cells = find_changed_cells(&original, &wanted);
        let hash = hash_rows(&original)?;
        let change = (!cells.is_empty()).then_some(RowChange { tables, id, hash, cells });
        Ok((ScrubOutcome::Scrubbed(scrubbed), change))
    }
}

impl DatabaseCopy<'_> {
    /// Searches all cells of the copy for the secrets that were replaced. Returns the columns that still have
    /// some: those of other sessions, and of tables whose rows no session has.
    ///
    /// # Errors
    /// Fails if the copy cannot be read.
    pub fn find_left_secrets(&self) -> io::Result<Vec<ColumnWithSecrets>> {
        let spellings = collect_spellings(&self.replaced);
        let mut left = LeftSecrets::new(&spellings);
        let mut search = |table: &str, column: &str, text: &str| left.search(table, column, text);
        if !spellings.is_empty() {
            for_each_text_cell(&self.connection, &mut search).map_err(io::Error::other)?;
        }
        Ok(left.finish())
    }
}

/// A session in a copy.
struct CopiedSession<'c> {
    connection: &'c mut Connection,
    tables: &'static RowTables,
    id: &'c str,
}

impl CopiedSession<'_> {
    fn read(&self) -> io::Result<RowDocument> {
        let rows = read_legible_rows(self.connection, self.tables, self.id);
        rows.map_err(io::Error::other)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Makes the rows of the session those of a document, which has the same rows.
    fn write(&mut self, wanted: &RowDocument) -> io::Result<()> {
        let now = self.read()?;
        let cells = find_changed_cells(&now, wanted);
        let hash = hash_rows(&now)?;
        let transaction = self.connection.transaction().map_err(io::Error::other)?;
        replace_cells(&transaction, self.tables, self.id, hash, &cells)
            .map_err(io::Error::other)?;
        transaction.commit().map_err(io::Error::other)
    }
}

/// Replaces cells of sessions in their database, all of them or none, if the hash of the database is `hash`.
/// `before_commit` gets the hash that the database will have. The bytes that are replaced are overwritten.
/// The caller makes sure that the agent does not run.
///
/// # Errors
/// Returns the reason why the database is as it was.
pub fn replace_rows(
    database: &Path,
    hash: u64,
    changes: &[RowChange],
    before_commit: impl FnOnce(u64) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |error: rusqlite::Error| format!("it cannot be written: {error}");
    let mut connection = connect_for_writing(database).map_err(failed)?;
    connection.execute_batch("PRAGMA secure_delete = ON").map_err(failed)?;
    let behavior = TransactionBehavior::Exclusive;
    let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
    transaction.execute_batch("PRAGMA defer_foreign_keys = ON").map_err(failed)?;
    if hash_tables(&transaction).map_err(failed)? != hash {
        return Err("it changed while it was read".to_owned());
    }
    for change in changes {
        replace_cells(&transaction, change.tables, &change.id, change.hash, &change.cells)?;
    }
    merge_search_indexes(&transaction).map_err(failed)?;
    before_commit(hash_tables(&transaction).map_err(failed)?)?;
    transaction.commit().map_err(failed)?;
    empty_write_ahead_log(&connection);
    Ok(())
}

/// Merges the parts of each search index, which keep words that were replaced until then.
fn merge_search_indexes(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0
        AND (sql LIKE '%USING fts5%' OR sql LIKE '%USING fts4%' OR sql LIKE '%USING fts3%')";
    let names: Vec<String> =
        connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for name in names {
        let name = quoted(&name);
        connection.execute(&format!("INSERT INTO {name} ({name}) VALUES ('optimize')"), [])?;
    }
    Ok(())
}

/// Empties the write-ahead log of a database, which has bytes that were replaced. If a reader prevents it,
/// SQLite does it when the last connection is closed.
fn empty_write_ahead_log(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// Makes a database again what it was in `copy`, in one transaction, if its hash is still `hash`. The caller
/// makes sure that the agent does not run.
///
/// # Errors
/// Returns the reason why the database stays as it is.
pub fn put_back_database(database: &Path, copy: &Path, hash: u64) -> Result<(), String> {
    let is_put_back = query_database(copy, "its agent", |source| {
        let mut connection = connect_for_writing(database)?;
        if hash_tables(&connection)? != hash {
            return Ok(false);
        }
        copy_pages(source, &mut connection)?;
        empty_write_ahead_log(&connection);
        Ok(true)
    });
    match is_put_back {
        Ok(true) => Ok(()),
        Ok(false) => Err("it changed while it was read".to_owned()),
        Err(error) => Err(format!("it cannot be written: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::redact::{Redactor, UserRule};

    const SESSION: &str = "ses_ea7f62808fffffeX7Gh9COlzBlDEM";

    #[test]
    fn a_database_that_changed_since_it_was_copied_stays_as_it_is() {
        let dir = tempfile::tempdir().expect("tempdir");
        let dir = dir.path().canonicalize().expect("there");
        let database = dir.join("opencode.db");
        let sample =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../sample-sessions/opencode/opencode.db");
        std::fs::copy(sample, &database).expect("copies");
        let rule = UserRule { name: "topic".to_owned(), regex: "jitter".to_owned() };
        let rules = ScrubRules {
            redactor: Arc::new(Redactor::new(&[rule]).expect("a rule")),
            kind: None,
            aliases: Arc::default(),
        };
        let copy = dir.join("copy");
        File::create(&copy).expect("creates");
        copy_database(&database, &copy).expect("copies");
        let hash = hash_database(&database).expect("reads");
        assert_eq!(hash_database(&copy).expect("reads"), hash);

        let key = format!("{}#{SESSION}", database.display());
        let mut scrubbed = DatabaseCopy::open(&copy, &rules, &dir).expect("opens");
        let (_, change) = scrubbed.scrub_session(&key, Provider::OpenCode).expect("reads");
        let changes = [change.expect("a change")];
        drop(scrubbed);
        let scrubbed_hash = hash_database(&copy).expect("reads");
        assert_ne!(scrubbed_hash, hash);

        let write = |sql: &str| {
            Connection::open(&database).and_then(|it| it.execute_batch(sql)).expect("writes");
            hash_database(&database).expect("reads")
        };
        // A row of the session, also if the caller did not notice.
        let other = write("UPDATE part SET time_updated = time_updated + 1");
        for known in [hash, other] {
            let failed = replace_rows(&database, known, &changes, |_| Ok(())).expect_err("fails");
            assert_eq!(failed, "it changed while it was read");
            assert_eq!(hash_database(&database).expect("reads"), other);
        }
        assert_eq!(write("UPDATE part SET time_updated = time_updated - 1"), hash);
        // Without a backup nothing changes.
        let failed = replace_rows(&database, hash, &changes, |_| Err("full".to_owned()));
        assert_eq!(failed, Err("full".to_owned()));
        assert_eq!(hash_database(&database).expect("reads"), hash);

        let told = std::cell::Cell::new(0);
        let done = replace_rows(&database, hash, &changes, |hash| {
            told.set(hash);
            Ok(())
        });
        assert_eq!(done, Ok(()));
        assert_eq!(hash_database(&database).expect("reads"), scrubbed_hash);
        assert_eq!(told.get(), scrubbed_hash);
    }
}
