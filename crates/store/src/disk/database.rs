//! A file of SQLite in a store, which one writer changes and many read.
//!
//! Readers and the writer do not wait for each other, except in a network folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::files;
use crate::error::StoreError;

/// Ends of the names of the files that SQLite keeps next to one while it is open: the log of
/// transactions and its index, or what undoes a transaction (see [`journal_mode`]).
const SIDE_FILE_ENDS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// How long a transaction waits for another process. Readers wait only for one that recovers the file
/// after a kill; a writer waits for readers when it empties the log of transactions.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// An open database.
pub(crate) struct Database {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// Whether it was opened for the holder of the write lock.
    is_writer: bool,
}

impl Drop for Database {
    /// Moves all transactions into the file, so that it is complete without their log. SQLite does so
    /// only if no reader has the file open. After a kill, the next writer does it.
    fn drop(&mut self) {
        if self.is_writer {
            let _ = self.erase_deleted();
        }
    }
}

impl Database {
    /// Opens the file called `name` in the store in `dir` for reading. Returns `None` if there is none.
    pub(crate) fn open(dir: &Path, name: &str) -> Result<Option<Self>, StoreError> {
        let path = dir.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => {
                let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
                return Err(StoreError::io(&path)(error));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(&path)(error)),
        }
        match Self::connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
            // In a folder that cannot be written, SQLite cannot place its own files. Then no process
            // of this user writes either, and without a log of transactions the file is complete.
            Err(StoreError::Io { .. }) if !has_log_of_transactions(&path) => {
                Self::connect_immutable(&path).map(Some)
            }
            result => result.map(Some),
        }
    }

    /// Opens the file called `name` in the store in `dir` for the holder of the write lock.
    pub(crate) fn open_for_writing(dir: &Path, name: &str) -> Result<Self, StoreError> {
        let mut database = Self::connect(&dir.join(name), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        database.is_writer = true;
        // Deleted records are overwritten, so that a forgotten session leaves no byte.
        let prepared = database.lock().execute_batch(&format!(
            "PRAGMA journal_mode = {}; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;",
            journal_mode(is_on_network(dir)),
        ));
        prepared.map_err(|error| database.error(error))?;
        Ok(database)
    }

    /// Creates or replaces the file called `name` in the store in `dir` in one step, with what `fill`
    /// writes after the statement `settings`. The caller holds the write lock.
    pub(crate) fn create(
        dir: &Path,
        name: &str,
        settings: &str,
        fill: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let path = dir.join(name);
        files::remove_temporary_copies(&path);
        let new = files::new_temporary_copy(dir, &path).map_err(StoreError::io(&path))?;
        let filled = Connection::open(new.path()).and_then(|mut connection| {
            // The file is not visible before it is complete.
            connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
            connection.execute_batch(settings)?;
            let transaction = connection.transaction()?;
            fill(&transaction)?;
            transaction.commit()
        });
        filled.map_err(|error| read_error(&path, error))?;
        new.as_file().sync_all().map_err(StoreError::io(&path))?;
        // The transactions of a replaced file must not be applied to the new one.
        remove_side_files(&path)?;
        new.persist(&path).map_err(|error| StoreError::io(&path)(error.error))?;
        files::sync_dir(dir)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        // Links among the folders are fine, one in place of the file is not.
        let folder = path.parent().unwrap_or(Path::new(".")).canonicalize();
        let real = folder.map_err(StoreError::io(path))?.join(path.file_name().unwrap_or_default());
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        Self::checked(path, Connection::open_with_flags(real, flags))
    }

    fn connect_immutable(path: &Path) -> Result<Self, StoreError> {
        const ESCAPES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/');

        let path_text = path.to_string_lossy();
        let uri = format!("file:{}?immutable=1", utf8_percent_encode(&path_text, ESCAPES));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        Self::checked(path, Connection::open_with_flags(uri, flags))
    }

    /// Returns the database of a connection that can be read.
    fn checked(path: &Path, opened: rusqlite::Result<Connection>) -> Result<Self, StoreError> {
        let connection = opened.and_then(|connection| {
            connection.busy_timeout(MAX_WAIT)?;
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            Ok(connection)
        });
        let connection = connection.map_err(|error| read_error(path, error))?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection), is_writer: false })
    }

    /// Returns the connection, which one thread uses at a time.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error for one of SQLite.
    pub(crate) fn error(&self, error: rusqlite::Error) -> StoreError {
        read_error(&self.path, error)
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what was deleted from the log of transactions, too. Waits for readers that still need it.
    pub(crate) fn erase_deleted(&self) -> Result<(), StoreError> {
        let connection = self.lock();
        let is_busy = connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
            .map_err(|error| self.error(error))?;
        if is_busy == 0 { Ok(()) } else { Err(StoreError::Busy { path: self.path.clone() }) }
    }

    /// Checks the structure of the file.
    pub(crate) fn check_structure(&self) -> Result<(), StoreError> {
        let found: rusqlite::Result<String> =
            self.lock().query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
        match found.map_err(|error| self.error(error))? {
            found if found == "ok" => Ok(()),
            found => Err(StoreError::damaged(&self.path, found)),
        }
    }
}

/// Removes the files that SQLite kept next to a database that is not open.
pub(crate) fn remove_side_files(path: &Path) -> Result<(), StoreError> {
    for end in SIDE_FILE_ENDS {
        match fs::remove_file(side_file(path, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::io(path)(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn side_file(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Returns how SQLite keeps transactions. Readers and the writer do not wait for each other with a log
/// of transactions; but they share its index in memory, which machines cannot. In a network folder,
/// readers may wait for a commit instead.
pub(crate) fn journal_mode(is_on_network: bool) -> &'static str {
    if is_on_network { "DELETE" } else { "WAL" }
}

/// Returns whether the folder may be one of another machine.
#[cfg(target_os = "linux")]
fn is_on_network(dir: &Path) -> bool {
    // The numbers that statfs(2) gives NFS, SMB in three versions, AFS, 9P and FUSE.
    const TYPES: [u32; 7] =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x0102_1997, 0x6573_5546];
    rustix::fs::statfs(dir).is_ok_and(|found| TYPES.contains(&(found.f_type as u32)))
}

/// Returns false: only on Linux this is known.
#[cfg(not(target_os = "linux"))]
fn is_on_network(_dir: &Path) -> bool {
    false
}

/// Returns whether some transactions are not in the file itself.
fn has_log_of_transactions(path: &Path) -> bool {
    fs::metadata(side_file(path, SIDE_FILE_ENDS[0])).is_ok_and(|found| found.len() > 0)
}

/// Returns the error for one of SQLite. Whatever is not about reaching the file is damage.
fn read_error(path: &Path, error: rusqlite::Error) -> StoreError {
    let is_short = error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ);
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy { path: path.to_owned() }
        }
        Some(
            code @ (ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::OutOfMemory),
        ) if !is_short => {
            let kind = if code == ErrorCode::DiskFull {
                io::ErrorKind::StorageFull
            } else if matches!(code, ErrorCode::PermissionDenied | ErrorCode::ReadOnly) {
                io::ErrorKind::PermissionDenied
            } else {
                io::ErrorKind::Other
            };
            StoreError::io(path)(io::Error::new(kind, error))
        }
        Some(_) | None => StoreError::damaged(path, error),
    }
}
