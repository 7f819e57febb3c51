//! A log that is about to be replaced: whether it may be, and whether it is still as it was read.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::NamedTempFile;
use xxhash_rust::xxh3::Xxh3;

use crate::files::open_files::{MIN_AGE, OpenFiles};
use base::files::open_for_reading;

/// The ends of the names of the files that SQLite keeps next to a database.
const SIDE_FILES: [&str; 2] = ["-wal", "-journal"];

/// A log as it was when it was opened.
pub(super) struct LogFile {
    path: PathBuf,
    content: File,
    metadata: Metadata,
    hash: u64,
}

impl LogFile {
    /// Opens the log at `path`. An error is the reason why it must not be replaced.
    pub(super) fn open(path: PathBuf, open: &OpenFiles) -> Result<Self, String> {
        check_file(&path, open)?;
        let mut content = open_for_reading(&path).map_err(|error| describe_unreadable(&error))?;
        let metadata = content.metadata().map_err(|error| describe_unreadable(&error))?;
        check_owner(&metadata)?;
        let hash = hash_file(&mut content).map_err(|error| describe_unreadable(&error))?;
        Ok(Self { path, content, metadata, hash })
    }

    /// Opens a file next to `log`. An error is the reason why it must not be replaced: an agent that writes
    /// its log may write it, too.
    pub(super) fn open_next_to(
        log: &Path,
        path: PathBuf,
        open: &OpenFiles,
    ) -> Result<Self, String> {
        if let Ok(found) = fs::metadata(log) {
            check_use(&found, open).map_err(|reason| format!("its log is in use: {reason}"))?;
        }
        Self::open(path, open)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    pub(super) fn content(&self) -> &File {
        &self.content
    }

    /// Hash of the content as it was read.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Moves `new` to the place of the log, with its mode and its time of the last change: agents list
    /// and delete sessions by it. An error is the reason why the log stays as it is.
    pub(super) fn replace(self, new: NamedTempFile, open: &OpenFiles) -> Result<(), String> {
        let unwritable = |error: io::Error| format!("it cannot be replaced: {error}");
        new.as_file().set_permissions(self.metadata.permissions()).map_err(unwritable)?;
        if let Ok(changed) = self.metadata.modified() {
            new.as_file().set_modified(changed).map_err(unwritable)?;
        }
        new.as_file().sync_all().map_err(unwritable)?;

        let now = fs::symlink_metadata(&self.path).map_err(|error| describe_unreadable(&error))?;
        if open.includes(&now) {
            return Err("a process has it open".to_owned());
        }
        let mut content = open_for_reading(&self.path).map_err(unwritable)?;
        let is_same = is_same_file(&now, &self.metadata)
            && hash_file(&mut content).map_err(unwritable)? == self.hash;
        if !is_same {
            return Err("it changed while it was read".to_owned());
        }
        // Windows does not replace a file that is open.
        let Self { path, content: read, .. } = self;
        drop((content, read));
        new.persist(&path).map_err(|error| unwritable(error.error))?;
        // The rename is done whether the folder can be synced or not.
        if let Some(folder) = path.parent()
            && let Ok(folder) = File::open(folder)
        {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// Fails with the reason why the file at `path` must not be changed. Does not open it: closing a database
/// again would give up the locks of this process.
fn check_file(path: &Path, open: &OpenFiles) -> Result<(), String> {
    let found = fs::symlink_metadata(path).map_err(|error| describe_unreadable(&error))?;
    if found.is_symlink() {
        return Err("it is a symbolic link".to_owned());
    }
    check_owner(&found)?;
    check_use(&found, open)
}

/// Fails with the reason why a database must not be changed.
pub(super) fn check_database(database: &Path, open: &OpenFiles) -> Result<(), String> {
    check_file(database, open)?;
    for end in SIDE_FILES {
        let mut side_file = database.as_os_str().to_owned();
        side_file.push(end);
        let side_file = Path::new(&side_file);
        if side_file.exists() {
            check_file(side_file, open)?;
        }
    }
    Ok(())
}

fn describe_unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}

/// Returns whether a file has the size, the time and the identity that it had.
fn is_same_file(now: &Metadata, before: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if (now.dev(), now.ino()) != (before.dev(), before.ino()) {
            return false;
        }
    }
    now.is_file() && now.len() == before.len() && now.modified().ok() == before.modified().ok()
}

/// Fails if the file is not the user's to replace.
fn check_owner(metadata: &Metadata) -> Result<(), String> {
    if metadata.permissions().readonly() {
        return Err("it is read-only".to_owned());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err("it belongs to another user".to_owned());
        }
        if metadata.nlink() > 1 {
            return Err(
                "it has another name (a hard link), which would keep the secrets".to_owned()
            );
        }
    }
    Ok(())
}

/// Fails if the file may be in use.
fn check_use(metadata: &Metadata, open: &OpenFiles) -> Result<(), String> {
    if open.includes(metadata) {
        return Err("a process has it open".to_owned());
    }
    let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    // A time in the future is one of a clock that was set back.
    let age = SystemTime::now().duration_since(changed).unwrap_or_default();
    if age < MIN_AGE {
        return Err("it changed within the last minute".to_owned());
    }
    Ok(())
}

/// Returns a hash of the content of a file.
pub(super) fn hash_file(file: &mut File) -> io::Result<u64> {
    io::Seek::rewind(file)?;
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.digest()),
            Ok(read) => hash.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
