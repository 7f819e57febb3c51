//! Keeps the logs as they were before their secrets were replaced, or before `resume` made them longer, until
//! the user removes them.
//!
//! ```text
//! log-backup/20261129-223015-4711/1-rollout-x.jsonl.bak   the log, byte for byte
//! log-backup/20261129-223015-4711/2-opencode.db.bak       the database with its rows
//! log-backup/20261129-223015-4711/index                   one line for each log, in the same order:
//! {"file":"1-rollout-x.jsonl.bak","path":"/home/mira/..","bytes":7,"hash":"..","scrubbed_hash":".."}
//! ```

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;

use ingest::scrub::{copy_database, hash_database, put_back_database};
use jiff::Timestamp;
use schemas::{ErrorCode, ToolError};
use serde::{Deserialize, Serialize};
use tempfile::{NamedTempFile, TempPath};

use super::log_file::{LogFile, check_database, hash_file};
use crate::files::leftovers::create_temporary;
use crate::files::open_files::OpenFiles;
use crate::update::write_lock::take_write_lock;
use base::files::{open_for_reading, private_dir_builder};
use base::sanitize::clean_text;
use store::{LOG_BACKUP_FOLDER, Store, StoreWriter};
use tools::error::{store_error, unusable_path};
use tools::secrets::LogBackup;

/// Name of the file that lists the logs of a run.
const INDEX: &str = "index";

/// Maximum length of a log's name in the name of its backup.
const MAX_NAME_CHARS: usize = 100;

/// A log in the folder of a run.
#[derive(Debug, Serialize, Deserialize)]
struct BackupEntry {
    file: String,
    /// The place of the log.
    path: PathBuf,
    bytes: u64,
    /// Hash of the log as it was.
    hash: String,
    /// Hash of the log without its secrets.
    scrubbed_hash: String,
    /// The sessions in the file as the store knows them, if it is a database. The hashes are then those of its
    /// rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sessions: Vec<String>,
    /// The log next to which the file is; `None` if it is a log or a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    /// True if `resume` extended the log. The copy is not put back, because the extension would be lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_extended: bool,
}

/// What a command does, or would do, with the backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupAction {
    Forget,
    Restore,
}

/// The outcome of `--forget-backup` and `--restore-backup`.
#[derive(Debug, Serialize)]
pub struct BackupData {
    pub action: BackupAction,
    /// False if this only shows what would be done.
    pub is_done: bool,
    pub backup: LogBackup,
    /// The logs that were put back, or would be.
    pub restored: Vec<String>,
    /// The logs that stay as they are, each with the reason and the file of its backup.
    pub left_out: Vec<UnrestoredLog>,
}

/// A log that is not put back.
#[derive(Debug, Serialize)]
pub struct UnrestoredLog {
    pub file: String,
    pub backup: String,
    pub reason: String,
}

/// The folder of a run's backups.
pub(super) struct BackupFolder {
    dir: PathBuf,
    index: Mutex<(File, usize)>,
}

impl BackupFolder {
    /// Creates the folder of this run in that of the store.
    pub(super) fn create(store: &Store) -> Result<Self, ToolError> {
        let all = store.dir().join(LOG_BACKUP_FOLDER);
        let name = format!("{}-{}", Timestamp::now().strftime("%Y%m%d-%H%M%S"), std::process::id());
        let dir = all.join(name);
        for folder in [&all, &dir] {
            create_private_folder(folder).map_err(|error| unusable_path(folder, error))?;
        }
        let path = dir.join(INDEX);
        let index = create_private_file(&path).map_err(|error| unusable_path(&path, error))?;
        Ok(Self { dir, index: Mutex::new((index, 0)) })
    }

    /// Copies a log into the folder, or a file next to the log `its_log`. `new` is its version without secrets,
    /// or its longer one. When this returns, the copy is on the disk.
    pub(super) fn add(
        &self,
        log: &LogFile,
        new: &NamedTempFile,
        its_log: Option<&str>,
        is_extended: bool,
    ) -> Result<(), ToolError> {
        let file = self.next_name(log.path());
        let copy = self.dir.join(&file);
        let write = || {
            let bytes = copy_log(log, &copy)?;
            self.write_entry(&BackupEntry {
                file,
                path: std::path::absolute(log.path())?,
                bytes,
                hash: format_hash(log.hash()),
                scrubbed_hash: format_hash(hash_file(&mut new.reopen()?)?),
                sessions: Vec::new(),
                log: its_log.map(str::to_owned),
                is_extended,
            })
        };
        write().map_err(|error| unwritable_backup(&copy, &error))
    }

    /// Copies a database into the folder. The copy is removed again unless it is kept. In the answer an error
    /// is the reason why the database cannot be copied.
    pub(super) fn copy_database(
        &self,
        database: &Path,
    ) -> Result<Result<DatabaseBackup, String>, ToolError> {
        let file = self.next_name(database);
        let place = self.dir.join(&file);
        let created = create_private_file(&place).and_then(|_| TempPath::try_from_path(&place));
        let copy = created.map_err(|error| unwritable_backup(&place, &error))?;
        let copied = copy_database(database, &copy).and_then(|()| {
            File::options().write(true).open(&copy)?.sync_all()?;
            hash_database(&copy)
        });
        Ok(match copied {
            Ok(hash) => Ok(DatabaseBackup { copy, file, database: database.to_owned(), hash }),
            Err(error) => Err(format!("it cannot be copied: {error}")),
        })
    }

    /// The folder of this run.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the name of the next copy.
    fn next_name(&self, path: &Path) -> String {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.1 += 1;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().take(MAX_NAME_CHARS).collect();
        // The name must not be that of a log, which an ingest of the folder would read.
        format!("{}-{name}.bak", index.1)
    }

    fn write_entry(&self, entry: &BackupEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.0.write_all(&line)?;
        index.0.sync_all()?;
        sync_folder(&self.dir)
    }
}

fn unwritable_backup(copy: &Path, error: &io::Error) -> ToolError {
    let what =
        format_args!("{error}. No log was replaced without a backup; check the free disk space");
    unusable_path(copy, what)
}

/// The copy of a database in the folder of a run.
pub(super) struct DatabaseBackup {
    copy: TempPath,
    file: String,
    database: PathBuf,
    hash: u64,
}

impl DatabaseBackup {
    pub(super) fn path(&self) -> &Path {
        &self.copy
    }

    /// Hash of the rows of the database.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Keeps the copy. When this returns, it is on the disk. `sessions` are those that are about to change, and
    /// `scrubbed_hash` is the hash of the database after that.
    pub(super) fn keep(
        self,
        folder: &BackupFolder,
        sessions: &HashSet<&str>,
        scrubbed_hash: u64,
    ) -> Result<(), ToolError> {
        let place = self.copy.to_path_buf();
        let write = || {
            let entry = BackupEntry {
                file: self.file,
                path: std::path::absolute(self.database)?,
                bytes: fs::metadata(&place)?.len(),
                hash: format_hash(self.hash),
                scrubbed_hash: format_hash(scrubbed_hash),
                sessions: sessions.iter().map(|&session| session.to_owned()).collect(),
                log: None,
                is_extended: false,
            };
            self.copy.keep()?;
            folder.write_entry(&entry)
        };
        write().map_err(|error| unwritable_backup(&place, &error))
    }
}

impl Drop for BackupFolder {
    /// Removes the folder if no log was copied.
    fn drop(&mut self) {
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if index.0.metadata().is_ok_and(|index| index.len() == 0) {
            let _ = fs::remove_file(self.dir.join(INDEX));
            let _ = fs::remove_dir(&self.dir);
            if let Some(all) = self.dir.parent() {
                // Fails if other runs have backups.
                let _ = fs::remove_dir(all);
            }
        }
    }
}

/// Copies a log and checks that the copy is the log as it was read. Returns its size.
fn copy_log(log: &LogFile, copy: &Path) -> io::Result<u64> {
    let mut from = log.content().try_clone()?;
    from.rewind()?;
    let mut to = create_private_file(copy)?;
    let bytes = io::copy(&mut from, &mut to)?;
    to.sync_all()?;
    if hash_file(&mut open_for_reading(copy)?)? != log.hash() {
        return Err(io::Error::other("the log changed while it was copied"));
    }
    Ok(bytes)
}

fn create_private_folder(dir: &Path) -> io::Result<()> {
    if fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    private_dir_builder(false).create(dir)
}

fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn sync_folder(dir: &Path) -> io::Result<()> {
    // Windows cannot open a folder for that.
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

/// The backups of a run.
struct BackupRun {
    dir: PathBuf,
    entries: Vec<BackupEntry>,
}

/// Reads the backups of all runs, from the oldest on.
fn read_runs(store: &Store) -> Vec<BackupRun> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    for run in fs::read_dir(store.dir().join(LOG_BACKUP_FOLDER)).into_iter().flatten().flatten() {
        if run.file_type().is_ok_and(|kind| kind.is_dir()) {
            dirs.push(run.path());
        }
    }
    dirs.sort();
    let mut runs = Vec::new();
    for dir in dirs {
        let mut entries = Vec::new();
        if let Ok(index) = open_for_reading(&dir.join(INDEX)) {
            for line in BufReader::new(index).lines().map_while(Result::ok) {
                // A kill may have cut the last line: its log was not replaced.
                entries.extend(serde_json::from_str::<BackupEntry>(&line).ok());
            }
        }
        runs.push(BackupRun { dir, entries });
    }
    runs
}

/// Returns what the folder of backups holds; `None` if there is none.
pub fn find_backup(store: &Store) -> Option<LogBackup> {
    let folder = store.dir().join(LOG_BACKUP_FOLDER);
    if !folder.is_dir() {
        return None;
    }
    let mut backup =
        LogBackup { folder: clean_text(&folder.to_string_lossy()), ..LogBackup::default() };
    for run in read_runs(store) {
        backup.logs += run.entries.len();
        backup.bytes += run.entries.iter().map(|entry| entry.bytes).sum::<u64>();
    }
    Some(backup)
}

fn require_backup(store: &Store) -> Result<LogBackup, ToolError> {
    find_backup(store).ok_or_else(|| {
        let message = "There is no backup of logs: `sessions secrets --scrub --yes` makes one";
        ToolError::new(ErrorCode::InvalidArgument, message)
    })
}

/// Removes all backups if `is_done`, else shows what would be removed.
///
/// # Errors
/// Fails if there is no backup, or if it cannot be removed.
pub fn forget_backup(store: &Store, is_done: bool) -> Result<BackupData, ToolError> {
    let backup = require_backup(store)?;
    if is_done {
        let _writer = take_write_lock(store)?;
        let folder = store.dir().join(LOG_BACKUP_FOLDER);
        fs::remove_dir_all(&folder).map_err(|error| unusable_path(&folder, error))?;
    }
    let restored = Vec::new();
    let left_out = Vec::new();
    Ok(BackupData { action: BackupAction::Forget, is_done, backup, restored, left_out })
}

/// Puts the logs back as they were before their secrets were replaced, if `is_done`, else shows which.
/// A log that was changed since stays as it is. The backup stays, too.
///
/// # Errors
/// Fails if there is no backup, or if the store cannot be written.
pub fn restore_backup(store: &Store, is_done: bool) -> Result<BackupData, ToolError> {
    let backup = require_backup(store)?;
    let writer = if is_done { Some(take_write_lock(store)?) } else { None };
    let mut data = BackupData {
        action: BackupAction::Restore,
        is_done,
        backup,
        restored: Vec::new(),
        left_out: Vec::new(),
    };
    let open = OpenFiles::find();
    // The latest run first: a log that was replaced twice goes back step by step.
    for run in read_runs(store).into_iter().rev() {
        for entry in run.entries.into_iter().filter(|entry| !entry.is_extended) {
            let copy = run.dir.join(&entry.file);
            let restore = || {
                if !entry.sessions.is_empty() {
                    return restore_database(&entry, &copy, &open, writer.as_ref());
                }
                let Some(log) = open_scrubbed(&entry, &open)? else { return Ok(false) };
                let Some(writer) = &writer else { return Ok(true) };
                let new = copy_backup(&entry, &copy, &log)?;
                let path = entry.path.to_string_lossy();
                writer
                    .note_scrubbed_logs(&[entry.log.as_deref().unwrap_or(&path)].into(), &[])
                    .map_err(|error| store_error(error).message)?;
                log.replace(new, &open).map(|()| true)
            };
            match restore() {
                Ok(true) => data.restored.push(clean_text(&entry.path.to_string_lossy())),
                Ok(false) => {}
                Err(reason) => data.left_out.push(UnrestoredLog {
                    file: clean_text(&entry.path.to_string_lossy()),
                    backup: clean_text(&copy.to_string_lossy()),
                    reason,
                }),
            }
        }
    }
    if let Some(writer) = writer {
        writer.unlock();
    }
    Ok(data)
}

/// Opens a log whose secrets were replaced. `None` if it is as it was before. An error is the reason why
/// the log stays as it is.
fn open_scrubbed(entry: &BackupEntry, open: &OpenFiles) -> Result<Option<LogFile>, String> {
    let log = match &entry.log {
        Some(log) => LogFile::open_next_to(Path::new(log), entry.path.clone(), open)?,
        None => LogFile::open(entry.path.clone(), open)?,
    };
    let hash = format_hash(log.hash());
    if hash == entry.hash {
        return Ok(None);
    }
    if hash != entry.scrubbed_hash {
        return Err("it changed since its secrets were replaced".to_owned());
    }
    Ok(Some(log))
}

/// Makes a database again what it was before the secrets of its sessions were replaced, if there is a writer.
/// False if it is that. An error is the reason why it stays as it is.
fn restore_database(
    entry: &BackupEntry,
    copy: &Path,
    open: &OpenFiles,
    writer: Option<&StoreWriter>,
) -> Result<bool, String> {
    check_database(&entry.path, open)?;
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let scrubbed_hash = hash_database(&entry.path).map_err(unreadable)?;
    let hash = format_hash(scrubbed_hash);
    if hash == entry.hash {
        return Ok(false);
    }
    if hash != entry.scrubbed_hash {
        return Err("it changed since its secrets were replaced".to_owned());
    }
    if hash_database(copy).map(format_hash).ok().as_ref() != Some(&entry.hash) {
        return Err("its backup is damaged".to_owned());
    }
    let Some(writer) = writer else { return Ok(true) };
    let sessions: HashSet<&str> = entry.sessions.iter().map(String::as_str).collect();
    writer.note_scrubbed_logs(&sessions, &[]).map_err(|error| store_error(error).message)?;
    put_back_database(&entry.path, copy, scrubbed_hash).map(|()| true)
}

/// Copies a backup to the folder of its log.
fn copy_backup(entry: &BackupEntry, copy: &Path, log: &LogFile) -> Result<NamedTempFile, String> {
    let failed = |error: io::Error| format!("its backup cannot be copied: {error}");
    let mut new = create_temporary(log.folder()).map_err(failed)?;
    let mut from = open_for_reading(copy).map_err(failed)?;
    io::copy(&mut from, new.as_file_mut()).map_err(failed)?;
    let hash = hash_file(new.as_file_mut()).map_err(failed)?;
    if format_hash(hash) == entry.hash { Ok(new) } else { Err("its backup is damaged".to_owned()) }
}

fn format_hash(hash: u64) -> String {
    format!("{hash:016x}")
}
