//! Finds the file that holds a known log, and what makes it unreachable.

use std::io;
use std::path::{Path, PathBuf};

use crate::provider::assemblies;
use crate::source::container::files_of;

/// Finds the file of the log that the store knows as `key`: plain, compressed, or the database of a
/// session. `None` if it does not exist.
pub fn file_of(key: &str) -> Option<PathBuf> {
    let database = key.rsplit_once('#').map_or(key, |(database, _)| database);
    let mut paths = files_of(Path::new(key)).into_iter().chain([database.into()]);
    paths.find(|path| path.exists())
}

/// Returns the folder that makes the file of a log unreachable, and the error. `None` if the file
/// exists, or is known not to exist.
pub(crate) fn find_obstacle(key: &str) -> Option<(PathBuf, io::Error)> {
    let log = Path::new(database_of(key).unwrap_or(key));
    let is_other = |error: &io::Error| error.kind() != io::ErrorKind::NotFound;
    files_of(log).iter().find_map(|file| file.canonicalize().err().filter(is_other))?;
    let mut folders: Vec<&Path> = log.ancestors().collect();
    folders.reverse();
    folders.into_iter().find_map(|folder| {
        let error = std::fs::metadata(folder).err().filter(is_other)?;
        Some((folder.to_owned(), error))
    })
}

/// Returns the database of the session that the store knows as `key`, if it shares one.
pub(super) fn database_of(key: &str) -> Option<&str> {
    let (database, _) = key.rsplit_once('#')?;
    let mut shared = assemblies().filter(|assembly| assembly.shares_file);
    shared.any(|assembly| (assembly.is_source)(database.as_ref())).then_some(database)
}
