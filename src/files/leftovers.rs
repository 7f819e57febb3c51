//! Creates temporary files next to an output. Their names show that they belong to this program,
//! and a lock shows that they are in use, so that the files of killed runs can be found and
//! removed.
//!
//! ```text
//! .sessions-tmp-<process id>-<12 letters and digits>
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

#[cfg(unix)]
use base::files::open_for_reading;
use tempfile::NamedTempFile;

/// Beginning of the name of every temporary file.
const PREFIX: &str = ".sessions-tmp-";

/// Letters and digits at the end of the name.
const RANDOM_CHARS: usize = 12;

/// Maximum number of temporary files that are created in place of one which another process took for
/// abandoned, because it was not locked yet.
const MAX_ATTEMPTS: usize = 10;

/// Folders in which this process has looked for abandoned files.
static CLEANED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Creates a temporary file in `dir`, readable by the owner only. It is deleted when it is
/// dropped. The first call for a folder removes what killed runs left there.
pub(crate) fn create_temporary(dir: &Path) -> io::Result<NamedTempFile> {
    let is_first = CLEANED.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.to_path_buf());
    if is_first {
        remove_abandoned(dir);
    }

    let prefix = format!("{PREFIX}{}-", std::process::id());
    for _ in 0..MAX_ATTEMPTS {
        let file =
            tempfile::Builder::new().prefix(&prefix).rand_bytes(RANDOM_CHARS).tempfile_in(dir)?;
        if lock_temporary(file.as_file())? {
            return Ok(file);
        }
    }
    Err(io::Error::other("other processes remove temporary files in this folder"))
}

/// Locks a temporary file that was just created. Returns false if another process is removing it as
/// abandoned, or has done so.
#[cfg(unix)]
fn lock_temporary(file: &File) -> io::Result<bool> {
    use std::fs::TryLockError;
    use std::os::unix::fs::MetadataExt as _;

    match file.try_lock() {
        Ok(()) => Ok(file.metadata()?.nlink() > 0),
        Err(TryLockError::WouldBlock) => Ok(false),
        // If the file system has no locks, no file is ever treated as abandoned either.
        Err(TryLockError::Error(_)) => Ok(true),
    }
}

/// Does not lock: a lock of Windows keeps even this process from reading the file by its name.
#[cfg(not(unix))]
fn lock_temporary(_file: &File) -> io::Result<bool> {
    Ok(true)
}

/// Removes the temporary files in `dir` that no process uses any more. Files that cannot be
/// removed stay: the output does not depend on them.
pub(crate) fn remove_abandoned(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(parse_process_id).is_some() {
            let _ = remove_if_abandoned(&entry.path());
        }
    }
}

/// Returns the process id in the name of a temporary file of this program; `None` for every other
/// name.
fn parse_process_id(name: &str) -> Option<u32> {
    let (process, random) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let is_random =
        random.len() == RANDOM_CHARS && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_random || !process.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    process.parse().ok()
}

/// Removes a temporary file if it belongs to this user and no process holds its lock. The process of
/// its name does not matter: its id may have been given to another process since.
#[cfg(unix)]
fn remove_if_abandoned(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let file = open_for_reading(path)?;
    if file.try_lock().is_ok() {
        // The lock is held meanwhile, so that a process that just created the file notices.
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Does nothing: nothing is removed where locks are not taken.
#[cfg(not(unix))]
fn remove_if_abandoned(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// The id of a process that has ended.
    fn ended_process() -> u32 {
        let mut child = std::process::Command::new("true").spawn().expect("spawns");
        child.wait().expect("ends");
        child.id()
    }

    #[test]
    fn only_names_of_ours_are_recognised() {
        assert_eq!(parse_process_id(".sessions-tmp-7-abcDEF012345"), Some(7));
        for name in [
            ".sessions-tmp-",
            ".sessions-tmp-7",
            ".sessions-tmp-7-short",
            ".sessions-tmp-7-abcDEF01234!",
            ".sessions-tmp-+7-abcDEF012345",
            ".sessions-tmp-7-abcDEF012345.bak",
            ".sessions-tmp-99999999999-abcDEF012345",
            ".tmpABCDEF",
            "sessions-tmp-7-abcDEF012345",
        ] {
            assert_eq!(parse_process_id(name), None, "{name}");
        }
    }

    #[test]
    fn files_of_killed_runs_are_removed_and_nothing_else() {
        let dir = tempfile::tempdir().expect("tempdir");
        let ended = ended_process();
        // The id of a killed run may be that of another process by now, even of this one.
        let reused = std::process::id();
        let abandoned = [
            dir.path().join(format!(".sessions-tmp-{ended}-abcDEF012345")),
            dir.path().join(format!(".sessions-tmp-{reused}-abcDEF012345")),
        ];
        for path in &abandoned {
            fs::write(path, "half").expect("writes");
        }
        let locked = dir.path().join(format!(".sessions-tmp-{ended}-lockedlocked"));
        fs::write(&locked, "another run").expect("writes");
        let lock = File::open(&locked).expect("opens");
        lock.try_lock().expect("locks");
        let kept = [
            locked,
            dir.path().join(format!(".sessions-tmp-{ended}-abcDEF012345.txt")),
            dir.path().join(".tmpABCDEF"),
            dir.path().join("report.html"),
        ];
        for path in &kept[1..] {
            fs::write(path, "theirs").expect("writes");
        }
        let folder = dir.path().join(format!(".sessions-tmp-{ended}-folderfolder"));
        fs::create_dir(&folder).expect("creates");
        let link = dir.path().join(format!(".sessions-tmp-{ended}-linklinklink"));
        std::os::unix::fs::symlink("report.html", &link).expect("links");

        let temporary = create_temporary(dir.path()).expect("creates");

        for path in &abandoned {
            assert!(!path.exists(), "{}", path.display());
        }
        for path in kept.iter().chain([&folder, &link]) {
            assert!(path.exists(), "{}", path.display());
        }
        remove_abandoned(dir.path());
        assert!(temporary.path().exists(), "one in use stays");
        let name = temporary.path().file_name().and_then(|name| name.to_str());
        assert_eq!(name.and_then(parse_process_id), Some(reused));
    }

    /// A file that is not locked yet may be removed; its creator must not use it then.
    #[test]
    fn a_file_in_use_is_there_however_often_others_clean_up() {
        let dir = tempfile::tempdir().expect("tempdir");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    remove_abandoned(dir.path());
                }
            });
            for _ in 0..2_000 {
                let file = create_temporary(dir.path()).expect("creates");
                assert!(file.path().exists());
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}
