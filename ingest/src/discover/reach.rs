//! Finds the file that holds a known log, and what makes it unreachable.

use std::io;
use std::path::{Path, PathBuf};

use crate::provider::assemblies;
use crate::source::container::log_paths;

/// Finds the file of the log that the store knows as `key`: plain, compressed, or the database of a
/// session. `None` if it does not exist.
pub fn find_file(key: &str) -> Option<PathBuf> {
    let database = shared_database(key).map(PathBuf::from);
    let mut paths = log_paths(Path::new(key)).into_iter().chain(database);
    paths.find(|path| path.exists())
}

/// Returns whether a file or folder is known not to exist. What cannot be examined, as in a folder
/// without permission, may exist.
pub fn is_absent(path: &Path) -> bool {
    let error = std::fs::metadata(path).err();
    // A part of the path that is a file has nothing below it.
    error.is_some_and(|error| {
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    })
}

/// Returns the folder that makes the file of a log unreachable, and the error. `None` if the file
/// exists, or is known not to exist.
pub(crate) fn find_obstacle(key: &str) -> Option<(PathBuf, io::Error)> {
    let log = Path::new(shared_database(key).unwrap_or(key));
    let files = log_paths(log);
    let mut errors = files.iter().filter_map(|file| file.canonicalize().err());
    if !errors.any(|error| is_obstacle(&error)) {
        return None;
    }

    let mut folders: Vec<&Path> = log.ancestors().collect();
    folders.reverse();
    for folder in folders {
        if let Err(error) = std::fs::metadata(folder)
            && is_obstacle(&error)
        {
            return Some((folder.to_owned(), error));
        }
    }
    None
}

/// Returns whether an error does not mean that the file does not exist.
fn is_obstacle(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::NotFound
}

/// Returns whether the file of the log that the store knows as `key`, or its database, is at or below a root.
pub fn is_below_root(key: &str, root: &Path) -> bool {
    Path::new(shared_database(key).unwrap_or(key)).starts_with(root)
}

/// Returns the database of the session that the store knows as `key`, if it shares one.
pub(super) fn shared_database(key: &str) -> Option<&str> {
    let (database, _) = key.rsplit_once('#')?;
    let mut shared = assemblies().filter(|assembly| assembly.shares_file);
    shared.any(|assembly| assembly.has_source(database.as_ref())).then_some(database)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_a_database_has_sessions_after_a_number_sign() {
        let dir = tempfile::tempdir().expect("tempdir");
        let key = |path: &str| dir.path().join(path).to_string_lossy().into_owned();
        fs::create_dir_all(dir.path().join("harbor/sessions")).expect("creates");
        let database = dir.path().join("harbor/sessions/sessions.db");
        fs::write(&database, "").expect("writes");

        assert_eq!(find_file(&key("harbor#1/log.jsonl")), None);
        assert_eq!(find_file(&key("harbor#1")), None);
        assert_eq!(find_file(&key("harbor/sessions/sessions.db#1")), Some(database));
    }
}
