//! Finds log files: the known roots of every provider, or the paths that were named.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use schemas::problem::{Problem, ProblemKind};

/// A file that may be a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub path: PathBuf,
    pub size: u64,
    pub modified_us: i64,
}

impl Candidate {
    /// The path as the store keeps it.
    pub fn key(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// What a search for files found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Sorted by path.
    pub files: Vec<Candidate>,
    pub problems: Vec<Problem>,
    /// The roots that could be read: what is missing below them has vanished.
    pub roots: Vec<PathBuf>,
}

/// The roots of every provider below `home`, moved by the environment variables that the agents
/// themselves honour. Only those that exist.
pub fn default_roots(home: &Path, variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut roots = Vec::new();
    match set("CLAUDE_CONFIG_DIR") {
        Some(list) => {
            roots.extend(list.split(',').map(|dir| Path::new(dir.trim()).join("projects")))
        }
        None => roots.extend([home.join(".claude/projects"), home.join(".config/claude/projects")]),
    }
    let codex = set("CODEX_HOME").map_or_else(|| home.join(".codex"), PathBuf::from);
    roots.extend([codex.join("sessions"), codex.join("archived_sessions")]);
    roots.push(home.join(".gemini/tmp"));
    roots.retain(|root| root.is_dir());
    roots
}

/// Walks `roots`; a root may be a single file, which is taken whatever its name. Symbolic links
/// are followed for roots only.
pub fn discover(roots: &[PathBuf]) -> Discovery {
    let mut found = Discovery::default();
    for root in roots {
        // One file has one name, however it was spelled.
        match root.canonicalize().and_then(|path| Ok((std::fs::metadata(&path)?, path))) {
            Ok((metadata, path)) if metadata.is_file() => found.add(&path, &metadata),
            Ok((metadata, path)) if metadata.is_dir() => walk(&path, &mut found),
            Ok(_) => found.unreadable(root, &"it is neither a file nor a folder"),
            Err(error) => found.unreadable(root, &error),
        }
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    found.files.dedup_by(|a, b| a.path == b.path);
    found
}

fn walk(root: &Path, found: &mut Discovery) {
    // A folder must at least list: else everything below it would count as vanished.
    if let Err(error) = std::fs::read_dir(root) {
        return found.unreadable(root, &error);
    }
    found.roots.push(root.to_owned());
    let mut walker = ignore::WalkBuilder::new(root);
    walker.standard_filters(false).follow_links(false);
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

/// Whether a file inside a folder may be a log, by its name.
fn is_log_name(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "jsonl" || ext == "json")
}

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
    /// Leaves out what lies below `dir`: a store is no log.
    #[must_use]
    pub fn without(mut self, dir: &Path) -> Self {
        if let Ok(dir) = dir.canonicalize() {
            self.files.retain(|file| !file.path.starts_with(&dir));
        }
        self
    }

    fn add(&mut self, path: &Path, metadata: &std::fs::Metadata) {
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_us =
            modified.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
        self.files.push(Candidate { path: path.to_owned(), size: metadata.len(), modified_us });
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
        let roots = default_roots(home.path(), |name| {
            (name == "CLAUDE_CONFIG_DIR").then(|| other.to_string_lossy().into_owned())
        });
        assert_eq!(roots, [other.join("projects"), home.path().join(".gemini/tmp")]);
    }
}
