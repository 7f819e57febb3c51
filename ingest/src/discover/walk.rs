//! Finds log files in the known roots of every provider, or in the paths given.

use std::collections::{BTreeSet, HashMap};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::problem::{Problem, ProblemKind};

use super::folder_walk::{FileFilter, FolderWalk, walk_below};
use super::reach::{find_obstacle, is_absent, shared_database};
use super::real_path::real_path;
use crate::provider::format::AgentFolders;
use crate::provider::{all_providers, assemblies, log_folders};
use crate::source::candidate::{Container, FileState, LogCandidate};

/// The result of a search for files.
#[derive(Debug, Default, Clone)]
pub struct Discovery {
    /// The files that may be logs, sorted by path.
    pub files: Vec<LogCandidate>,
    /// Files and folders that could not be read.
    pub problems: Vec<Problem>,
    /// The folders and databases that are roots. A known log missing below them has vanished.
    pub roots: Vec<PathBuf>,
}

/// Returns the roots of every provider that exist, or that cannot be examined: [`discover`] reports
/// those. The environment variables that the agents themselves honour move them.
pub fn default_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let mut roots: Vec<_> =
        all_providers().flat_map(|provider| log_folders(provider, places)).collect();
    roots.retain(|root| !is_absent(root));
    roots.sort();
    roots.dedup();
    roots
}

/// Returns the folders below the home folder that do not exist and that the roots of some providers are in: what
/// was read below them has vanished with them.
pub fn absent_roots(places: &AgentFolders<'_>, providers: &BTreeSet<Provider>) -> Vec<PathBuf> {
    let home = places.home_path("");
    let roots = providers.iter().flat_map(|provider| log_folders(*provider, places));
    let absent = roots.filter_map(|root| {
        let folders = root.ancestors().take_while(|folder| is_absent(folder));
        let folder =
            folders.last().filter(|folder| folder.starts_with(&home) && *folder != home)?;
        // Logs are known by their real paths.
        Some(real_path(folder.parent()?).ok()?.join(folder.file_name()?))
    });
    absent.collect()
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
    discover_observed(roots, &|_| ())
}

/// Walks `roots` like [`discover`], and calls `observe` with each file as soon as it is found, on
/// several threads at once. A log may be there twice: plain and compressed, or below two roots.
pub fn discover_observed(roots: &[PathBuf], observe: &(dyn Fn(&LogCandidate) + Sync)) -> Discovery {
    let mut found = discover_wanted(roots, &|file| {
        observe(file);
        true
    });
    found.sort_files();
    found
}

/// Walks `roots` like [`discover`], and keeps only the files that are not as they were: those for which
/// `is_unchanged` is false. Most are, so nothing is kept of most files.
pub fn discover_changed(
    roots: &[PathBuf],
    is_unchanged: &(dyn Fn(&LogCandidate) -> bool + Sync),
) -> Discovery {
    let mut found = discover_wanted(roots, &|file| !is_unchanged(file));
    // A compressed file does not count if the log exists plain as well, which was not kept.
    if found.files.iter().any(is_compressed) {
        found = discover(roots);
        found.files.retain(|file| !is_unchanged(file));
    }
    found.sort_files();
    found
}

fn is_compressed(file: &LogCandidate) -> bool {
    matches!(file.container, Container::Zstd | Container::Gzip)
}

/// Walks `roots`, and keeps the files that `is_wanted` accepts, in no particular order.
fn discover_wanted(roots: &[PathBuf], is_wanted: FileFilter<'_>) -> Discovery {
    let mut found = Discovery::default();
    let mut folders = RealFolders::default();
    for root in roots {
        // Gives each file one name, however its path was spelled.
        match folders.resolve(root) {
            Ok((metadata, path)) if metadata.is_file() => {
                found.add_file(&path, &metadata, is_wanted);
                // A session that is missing in a database has vanished.
                let mut shared = assemblies().filter(|assembly| assembly.shares_file);
                if shared.any(|assembly| assembly.has_source(&path)) {
                    found.roots.push(path);
                }
            }
            Ok((metadata, path)) if metadata.is_dir() => walk_folder(&path, is_wanted, &mut found),
            Ok(_) => found.add_unreadable(root, &"it is neither a file nor a folder"),
            Err(error) => found.add_unreadable(root, &error),
        }
    }
    found
}

/// Folders, each with whether its path is the real one. A server names thousands of files of few
/// folders, and the system is asked for each part of a path that it resolves.
#[derive(Default)]
pub(super) struct RealFolders(HashMap<PathBuf, bool>);

impl RealFolders {
    /// Returns the metadata and the real path of a file or folder.
    fn resolve(&mut self, path: &Path) -> io::Result<(Metadata, PathBuf)> {
        if let Some(found) = self.find_real_file(path) {
            return Ok((found, path.to_owned()));
        }
        let path = real_path(path)?;
        Ok((std::fs::metadata(&path)?, path))
    }

    /// Returns the metadata of the file at a path that is its only one. `None` if there is no such file,
    /// or if it is not certain.
    pub(super) fn find_real_file(&mut self, path: &Path) -> Option<Metadata> {
        // Elsewhere a file may be found under several spellings of its name.
        if !cfg!(target_os = "linux") {
            return None;
        }
        let found = std::fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
        path.parent().is_some_and(|folder| self.is_real(folder)).then_some(found)
    }

    fn is_real(&mut self, folder: &Path) -> bool {
        if let Some(is_real) = self.0.get(folder) {
            return *is_real;
        }
        let is_real = real_path(folder).is_ok_and(|real| real == folder);
        self.0.insert(folder.to_owned(), is_real);
        is_real
    }
}

/// Adds the files below a folder.
fn walk_folder(root: &Path, is_wanted: FileFilter<'_>, found: &mut Discovery) {
    // A root that cannot be listed is not read: everything below it would count as vanished.
    if let Err(error) = std::fs::read_dir(root) {
        found.add_unreadable(root, &error);
        return;
    }
    found.roots.push(root.to_owned());

    let FolderWalk { files, mut assembled, mut errors } = walk_below(root, is_wanted);
    if found.files.is_empty() {
        found.files = files;
    } else {
        found.files.extend(files);
    }
    // The order in which threads find something is not always the same.
    assembled.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, metadata) in assembled {
        found.add_file(&path, &metadata, is_wanted);
    }
    errors.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, error) in errors {
        found.add_unreadable(&path, &format_args!("{}: {error}", path.display()));
    }
}

impl Discovery {
    /// Adds files that were found in another way.
    pub(super) fn add_candidates(&mut self, files: Vec<LogCandidate>) {
        self.files.extend(files);
        self.sort_files();
    }

    fn sort_files(&mut self) {
        self.files.sort_by(LogCandidate::compare);
        // If a log exists both plain and compressed, the plain file counts: it may still grow.
        self.files.dedup_by(|later, first| later.has_key_of(first));
    }

    /// Adds what another search found.
    pub fn append(&mut self, other: Self) {
        self.problems.extend(other.problems);
        self.roots.extend(other.roots);
        self.add_candidates(other.files);
    }

    /// Leaves out files below `dir`, the folder of a store, which holds no logs.
    #[must_use]
    pub fn without_folder(mut self, dir: &Path) -> Self {
        if let Ok(dir) = real_path(dir) {
            // Most paths differ at once, which is faster to see than to compare them part by part.
            let begins_alike = |file: &LogCandidate| {
                let path = file.path.as_os_str().as_encoded_bytes();
                path.starts_with(dir.as_os_str().as_encoded_bytes())
            };
            self.files.retain(|file| !(begins_alike(file) && file.path.starts_with(&dir)));
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
        let is_there = database.is_none() && real_path(log).is_ok_and(|real| real == log);
        !is_covered && !is_there && find_obstacle(key).is_none()
    }

    /// Adds a file, or the sessions in it if it holds several, if they are wanted.
    fn add_file(&mut self, path: &Path, metadata: &Metadata, is_wanted: FileFilter<'_>) {
        let Some(assembly) = assemblies().find(|assembly| assembly.has_source(path)) else {
            let file = LogCandidate::new(path.to_owned(), FileState::of_metadata(metadata));
            self.files.extend(Some(file).filter(is_wanted));
            return;
        };
        let list = match (assembly.sessions)(path) {
            Ok(list) => list,
            Err(error) => return self.add_unreadable(path, &error),
        };
        for defect in list.defects {
            self.add_problem(path, defect.kind, defect.message);
        }
        if let Some(defect) = (assembly.find_defect)(path) {
            self.add_unreadable(path, &defect);
        }
        for session in list.sessions {
            let session = LogCandidate {
                path: session.path,
                size: session.bytes,
                modified_us: session.updated_us,
                container: Container::Assembled(assembly),
            };
            self.files.extend(Some(session).filter(is_wanted));
        }
    }

    /// Reports a file or folder that could not be read.
    fn add_unreadable(&mut self, path: &Path, error: &dyn std::fmt::Display) {
        self.add_problem(path, ProblemKind::Unreadable, error.to_string());
    }

    /// Reports a problem of a file or folder.
    fn add_problem(&mut self, path: &Path, kind: ProblemKind, message: String) {
        let path = path.to_string_lossy().into_owned();
        self.problems.push(Problem { path, line: 0, byte: 0, kind, message });
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
        let roots = default_roots(&AgentFolders::new(home.path(), &variable));
        assert_eq!(roots, [home.path().join(".gemini/tmp"), other.join("projects")]);
    }

    #[test]
    fn folders_of_an_agent_are_listed_once_and_in_the_spelling_of_the_system() {
        let home = Path::new("home/");
        let variable = |name: &str| ["TMP", "TEMP"].contains(&name).then(|| "temp/".to_owned());
        let places = AgentFolders::new(home, &variable);
        for provider in all_providers() {
            let folders = log_folders(provider, &places);
            for (at, folder) in folders.iter().enumerate() {
                assert!(!folders[..at].contains(folder), "{folders:?}");
                let native = folder.components().collect::<PathBuf>();
                assert_eq!(folder.as_os_str(), native.as_os_str());
            }
        }
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
