//! Finds log files in the known roots of every provider, or in the paths given.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use super::discovery::Discovery;
use super::folders::walk_folder;
use super::reach::is_absent;
use crate::provider::FORMATS;
use crate::provider::format::AgentFolders;
use crate::source::candidate::LogCandidate;

/// Returns the roots of every provider that exist, or that cannot be examined: [`discover`] reports
/// those. The environment variables that the agents themselves honour move them.
pub fn default_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let mut roots: Vec<_> = FORMATS.iter().flat_map(|format| (format.roots)(places)).collect();
    roots.retain(|root| !is_absent(root));
    roots.sort();
    roots.dedup();
    roots
}

/// Walks `roots`. A root may be a single file, which is taken whatever its name. Symbolic links are
/// followed for roots only.
///
/// ```rust
/// use ingest::discover::discover;
///
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("session.jsonl"), "{}\n")?;
/// std::fs::write(dir.path().join("notes.txt"), "no log")?;
///
/// let found = discover(&[dir.path().to_owned()]);
/// assert_eq!(found.files.len(), 1);
/// assert!(found.files[0].path.ends_with("session.jsonl"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn discover(roots: &[PathBuf]) -> Discovery {
    let mut found = Discovery::default();
    let mut folders = RealFolders::default();
    for root in roots {
        // Gives each file one name, however its path was spelled.
        match folders.resolve(root) {
            Ok((metadata, path)) if metadata.is_file() => found.add_file(path, &metadata),
            Ok((metadata, path)) if metadata.is_dir() => walk_folder(&path, &mut found),
            Ok(_) => found.add_unreadable(root, &"it is neither a file nor a folder"),
            Err(error) => found.add_unreadable(root, &error),
        }
    }

    // If a log exists both plain and compressed, the plain file counts: it may still grow.
    sort_by_key(&mut found.files);
    found.files.dedup_by(|later, first| later.has_key_of(first));
    found
}

/// Sorts files by key, and those of one key by path.
fn sort_by_key(files: &mut [LogCandidate]) {
    if files.iter().all(|file| file.path.to_str().is_some()) {
        files.sort_by(LogCandidate::compare_bytes);
    } else {
        // The key of a path that is not a text differs from its bytes.
        files.sort_by_cached_key(|file| (file.key(), file.path.clone()));
    }
}

/// Folders, each with whether its path is the real one. A server names thousands of files of few
/// folders, and the system is asked for each part of a path that it resolves.
#[derive(Default)]
struct RealFolders(HashMap<PathBuf, bool>);

impl RealFolders {
    /// Returns the metadata and the real path of a file or folder.
    fn resolve(&mut self, path: &Path) -> io::Result<(Metadata, PathBuf)> {
        let found = std::fs::symlink_metadata(path)?;
        // Elsewhere a file may be found under several spellings of its name.
        let has_one_name = cfg!(target_os = "linux") && found.is_file();
        if has_one_name && path.parent().is_some_and(|folder| self.is_real(folder)) {
            return Ok((found, path.to_owned()));
        }
        let path = path.canonicalize()?;
        Ok((std::fs::metadata(&path)?, path))
    }

    fn is_real(&mut self, folder: &Path) -> bool {
        if let Some(is_real) = self.0.get(folder) {
            return *is_real;
        }
        let is_real = folder.canonicalize().is_ok_and(|real| real == folder);
        self.0.insert(folder.to_owned(), is_real);
        is_real
    }
}

#[cfg(test)]
mod tests {
    use schemas::problem::ProblemKind;

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
        let roots = default_roots(&AgentFolders::new(home.path(), &variable));
        assert_eq!(roots, [home.path().join(".gemini/tmp"), other.join("projects")]);
    }

    #[cfg(unix)]
    #[test]
    fn a_root_that_cannot_be_examined_is_reported_and_one_that_is_absent_is_not() {
        let home = tempfile::tempdir().expect("tempdir");
        // A link to itself cannot be followed, not even by root.
        std::os::unix::fs::symlink(".codex", home.path().join(".codex")).expect("links");
        std::os::unix::fs::symlink("nowhere", home.path().join(".gemini")).expect("links");
        std::fs::write(home.path().join(".claude"), "a file").expect("writes");

        let roots = default_roots(&AgentFolders::new(home.path(), &|_| None));

        assert!(roots.contains(&home.path().join(".codex/sessions")), "{roots:?}");
        for name in [".gemini", ".claude"] {
            let folder = home.path().join(name);
            assert!(!roots.iter().any(|root| root.starts_with(&folder)), "{roots:?}");
        }
        let found = discover(&roots);
        let paths: Vec<&str> = found.problems.iter().map(|problem| &*problem.path).collect();
        assert_eq!(paths.len(), roots.len(), "{paths:?}");
        assert!(found.roots.is_empty() && found.files.is_empty());
    }
}
