//! The files that a search found, and what it could not read.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use schemas::problem::{Problem, ProblemKind};

use super::reach::{find_obstacle, shared_database};
use crate::provider::{FORMATS, assemblies};
use crate::source::candidate::{Container, LogCandidate};

/// The result of a search for files.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The files that may be logs, sorted by path.
    pub files: Vec<LogCandidate>,
    /// Files and folders that could not be read.
    pub problems: Vec<Problem>,
    /// The roots that could be read. A known file missing below them has vanished.
    pub roots: Vec<PathBuf>,
}

/// Returns whether a file inside a folder may be a log, by its name.
pub fn is_log_name(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let (_, plain) = Container::of_name(&name);

    let mut rules = FORMATS.iter().filter_map(|format| format.quirks.is_log_name);
    let by_rule = rules.find_map(|is_log_name| is_log_name(plain));
    let is_log = by_rule.unwrap_or(plain.ends_with(".jsonl") || plain.ends_with(".json"));
    is_log || assemblies().any(|assembly| assembly.shares_file && (assembly.is_source)(path))
}

impl Discovery {
    /// Leaves out files below `dir`, the folder of a store, which holds no logs.
    #[must_use]
    pub fn without_folder(mut self, dir: &Path) -> Self {
        if let Ok(dir) = dir.canonicalize() {
            let bytes = dir.as_os_str().as_encoded_bytes();
            self.files.retain(|file| {
                // Comparing bytes first is much faster than comparing the parts of the paths.
                let path = file.path.as_os_str().as_encoded_bytes();
                !(path.starts_with(bytes) && file.path.starts_with(&dir))
            });
        }
        self
    }

    /// Returns whether a log that was not found, known as `key`, is gone. It is not gone if it
    /// cannot be reached, or if its folder or database could not be read. A log behind a link was
    /// found at its own path, because links are not followed.
    pub fn has_lost(&self, key: &str) -> bool {
        let database = shared_database(key);
        let log = Path::new(database.unwrap_or(key));
        let mut unreadable =
            self.problems.iter().filter(|problem| problem.kind == ProblemKind::Unreadable);
        let is_covered = unreadable.any(|problem| log.starts_with(&problem.path));
        let is_there = database.is_none() && log.canonicalize().is_ok_and(|real| real == log);
        !is_covered && !is_there && find_obstacle(key).is_none()
    }

    /// Adds a file, or the sessions in it if it holds several.
    pub(super) fn add_file(&mut self, path: PathBuf, metadata: &Metadata) {
        let Some(assembly) = assemblies().find(|assembly| (assembly.is_source)(&path)) else {
            self.files.push(LogCandidate::from_metadata(path, metadata));
            return;
        };
        let list = match (assembly.sessions)(&path) {
            Ok(list) => list,
            Err(error) => return self.add_unreadable(&path, &error),
        };
        for defect in list.defects {
            self.add_problem(&path, defect.kind, defect.message);
        }
        if let Some(defect) = (assembly.find_defect)(&path) {
            self.add_unreadable(&path, &defect);
        }
        for session in list.sessions {
            self.files.push(LogCandidate {
                path: session.path,
                size: session.bytes,
                modified_us: session.updated_us,
                container: Container::Assembled(assembly),
            });
        }
    }

    /// Reports a file or folder that could not be read.
    pub(super) fn add_unreadable(&mut self, path: &Path, error: &dyn std::fmt::Display) {
        self.add_problem(path, ProblemKind::Unreadable, error.to_string());
    }

    /// Reports a problem of a file or folder.
    fn add_problem(&mut self, path: &Path, kind: ProblemKind, message: String) {
        let path = path.to_string_lossy().into_owned();
        self.problems.push(Problem { path, line: 0, byte: 0, kind, message });
    }
}
