//! Finds log files in the known roots of every provider, or in the paths given.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use schemas::problem::{Problem, ProblemKind};

use crate::container::{Container, files_of};
use crate::provider::opencode::database::database_sessions;
use crate::provider::{FORMATS, Places, opencode};

/// A file that may be a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub path: PathBuf,
    pub size: u64,
    pub modified_us: i64,
    pub container: Container,
}

impl Candidate {
    /// Returns the candidate for a single file.
    pub fn named(path: PathBuf) -> io::Result<Self> {
        let metadata = std::fs::metadata(&path)?;
        Ok(Self::file(path, &metadata))
    }

    fn file(path: PathBuf, metadata: &Metadata) -> Self {
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_us =
            modified.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
        let name = path.to_string_lossy();
        let (container, _) = Container::of_name(&name);
        Self { size: metadata.len(), modified_us, container, path }
    }

    /// Finds the log that the store knows as `key`, plain or compressed. `None` if it does not
    /// exist.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        let found = discover(file_of(key).as_slice());
        found.files.into_iter().find(|file| file.key() == key)
    }

    /// Returns the path as the store keeps it: without the extension of a compression, so that a
    /// log stays the same one when it is compressed.
    pub fn key(&self) -> String {
        let path = self.path.to_string_lossy();
        Container::of_name(&path).1.to_owned()
    }
}

/// Finds the file of the log that the store knows as `key`: plain, compressed, or the database of a
/// session. `None` if it does not exist.
pub fn file_of(key: &str) -> Option<PathBuf> {
    let database = key.rsplit_once('#').map_or(key, |(database, _)| database);
    let mut paths = files_of(Path::new(key)).into_iter().chain([database.into()]);
    paths.find(|path| path.exists())
}

/// Returns whether the log that the store knows as `key` is in none of its possible files any more.
/// A file that cannot be reached, as in a folder without permission, is not gone.
pub(crate) fn is_gone(key: &str) -> bool {
    match file_of(key) {
        Some(file) => {
            let found = discover(&[file]);
            found.problems.is_empty() && found.files.iter().all(|file| file.key() != key)
        }
        None => find_obstacle(key).is_none(),
    }
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

/// Returns the database of the session that the store knows as `key`, if it is in one.
fn database_of(key: &str) -> Option<&str> {
    let (database, _) = key.rsplit_once('#')?;
    opencode::store::is_database(database.as_ref()).then_some(database)
}

/// The result of a search for files.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Sorted by path.
    pub files: Vec<Candidate>,
    pub problems: Vec<Problem>,
    /// The roots that could be read. A known file missing below them has vanished.
    pub roots: Vec<PathBuf>,
}

/// Returns the existing roots of every provider. The environment variables that the agents
/// themselves honour move them.
pub fn default_roots(places: &Places<'_>) -> Vec<PathBuf> {
    let mut roots: Vec<_> = FORMATS.iter().flat_map(|format| (format.roots)(places)).collect();
    roots.retain(|root| root.exists());
    roots.sort();
    roots.dedup();
    roots
}

/// Walks `roots`. A root may be a single file, which is taken whatever its name. Symbolic links are
/// followed for roots only.
pub fn discover(roots: &[PathBuf]) -> Discovery {
    let mut found = Discovery::default();
    for root in roots {
        // Gives each file one name, however its path was spelled.
        match root.canonicalize().and_then(|path| Ok((std::fs::metadata(&path)?, path))) {
            Ok((metadata, path)) if metadata.is_file() => found.add(&path, &metadata),
            Ok((metadata, path)) if metadata.is_dir() => walk(&path, &mut found),
            Ok(_) => found.unreadable(root, &"it is neither a file nor a folder"),
            Err(error) => found.unreadable(root, &error),
        }
    }
    // If a log exists both plain and compressed, the plain file counts: it may still grow.
    found.files.sort_by_cached_key(|file| (file.key(), file.path.clone()));
    found.files.dedup_by_key(|file| file.key());
    found
}

fn walk(root: &Path, found: &mut Discovery) {
    // A root that cannot be listed is not read: everything below it would count as vanished.
    if let Err(error) = std::fs::read_dir(root) {
        return found.unreadable(root, &error);
    }
    found.roots.push(root.to_owned());
    let mut walker = ignore::WalkBuilder::new(root);
    walker.standard_filters(false).follow_links(false);
    // The parts of an OpenCode tree are read with their sessions.
    walker.filter_entry(|entry| !opencode::store::is_part(entry.path()));
    for entry in walker.build() {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                if !is_log_name(entry.path()) {
                    continue;
                }
                match entry.metadata() {
                    Ok(metadata) => found.add(entry.path(), &metadata),
                    Err(error) => found.unreadable(entry.path(), &error),
                }
            }
            Ok(_) => {}
            Err(error) => {
                let path = error_path(&error).unwrap_or_else(|| root.to_owned());
                found.unreadable(&path, &error);
            }
        }
    }
}

/// Returns whether a file inside a folder may be a log, by its name.
pub fn is_log_name(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let (_, plain) = Container::of_name(&name);
    // OpenClaw keeps copies under names that continue after the extension
    // (docs/formats.md#openclaw).
    let copy =
        [".jsonl.reset.", ".jsonl.deleted.", ".jsonl.bak"].iter().any(|mark| plain.contains(mark));
    // OpenClaw's trajectories repeat the log in another schema.
    let log = plain.ends_with(".jsonl") && !plain.ends_with(".trajectory.jsonl");
    log || plain.ends_with(".json") || copy || opencode::store::is_database(path)
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "only these errors of a foreign crate name a path"
)]
fn error_path(error: &ignore::Error) -> Option<PathBuf> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.clone()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            error_path(err)
        }
        _ => None,
    }
}

impl Discovery {
    /// Leaves out files below `dir`, the folder of a store, which holds no logs.
    #[must_use]
    pub fn without(mut self, dir: &Path) -> Self {
        if let Ok(dir) = dir.canonicalize() {
            self.files.retain(|file| !file.path.starts_with(&dir));
        }
        self
    }

    /// Returns whether a log that was not found, known as `key`, is gone. It is not gone if it
    /// cannot be reached, or if its folder or database could not be read. A log behind a link was
    /// found at its own path, because links are not followed.
    pub fn has_lost(&self, key: &str) -> bool {
        let database = database_of(key);
        let log = Path::new(database.unwrap_or(key));
        let is_covered = self.problems.iter().any(|problem| log.starts_with(&problem.path));
        let is_there = database.is_none() && log.canonicalize().is_ok_and(|real| real == log);
        !is_covered && !is_there && find_obstacle(key).is_none()
    }

    fn add(&mut self, path: &Path, metadata: &Metadata) {
        let added = if opencode::store::is_database(path) {
            self.add_database(path)
        } else if opencode::store::is_tree_session(path) {
            opencode::store::tree_state(path).map(|(size, modified_us)| {
                let container = Container::OpenCodeTree;
                self.files.push(Candidate { path: path.to_owned(), size, modified_us, container });
            })
        } else {
            self.files.push(Candidate::file(path.to_owned(), metadata));
            Ok(())
        };
        if let Err(error) = added {
            self.unreadable(path, &error);
        }
    }

    /// Adds every session in a database as its own log.
    fn add_database(&mut self, database: &Path) -> io::Result<()> {
        for session in database_sessions(database)? {
            let mut path = database.as_os_str().to_owned();
            path.push(format!("#{}", session.id));
            self.files.push(Candidate {
                path: path.into(),
                size: session.bytes,
                modified_us: session.updated_us,
                container: Container::OpenCodeDatabase,
            });
        }
        Ok(())
    }

    fn unreadable(&mut self, path: &Path, error: &dyn std::fmt::Display) {
        self.problems.push(Problem {
            path: path.to_string_lossy().into_owned(),
            line: 0,
            byte: 0,
            kind: ProblemKind::Unreadable,
            message: error.to_string(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_logs_by_name_and_single_files_by_any_name() {
        let dir = tempfile::tempdir().expect("tempdir");
        let write = |name: &str| std::fs::write(dir.path().join(name), "x").expect("writes");
        for name in ["a.jsonl", "b.json", "c.txt", "d.log"] {
            write(name);
        }
        let names = |found: Discovery| {
            found
                .files
                .iter()
                .map(|f| f.path.file_name().expect("name").to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(discover(&[dir.path().into()])), ["a.jsonl", "b.json"]);
        assert_eq!(names(discover(&[dir.path().join("d.log")])), ["d.log"]);
        let missing = discover(&[dir.path().join("nowhere")]);
        assert_eq!(missing.problems[0].kind, ProblemKind::Unreadable);
        assert!(missing.roots.is_empty());
    }

    #[test]
    fn roots_honour_the_agents_own_variables() {
        let home = tempfile::tempdir().expect("tempdir");
        let other = home.path().join("elsewhere");
        std::fs::create_dir_all(other.join("projects")).expect("creates");
        std::fs::create_dir_all(home.path().join(".claude/projects")).expect("creates");
        std::fs::create_dir_all(home.path().join(".gemini/tmp")).expect("creates");
        let variable = |name: &str| {
            (name == "CLAUDE_CONFIG_DIR").then(|| other.to_string_lossy().into_owned())
        };
        let roots = default_roots(&Places::new(home.path(), &variable));
        assert_eq!(roots, [home.path().join(".gemini/tmp"), other.join("projects")]);
    }
}
