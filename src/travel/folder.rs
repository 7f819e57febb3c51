//! Finds the folder of this machine in which a session of another machine is resumed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ingest::discover::real_path;
use ingest::relocate::FolderMove;
use schemas::{ErrorCode, ToolError};

use crate::config::environment::home_dir;
use crate::git::{find_repository, find_root, is_same, is_same_remote};
use store::{Repository, SessionSummary, Snapshot};

/// Maximum number of repositories that are compared. Each takes some milliseconds.
const MAX_REPOSITORIES: usize = 200;

/// What a folder is looked for with.
pub(crate) struct FolderSearch<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// The working folder of the session on its machine, and the repository there.
    pub(crate) folder: Option<&'a str>,
    pub(crate) repository: Option<&'a Repository>,
    /// The present folder.
    pub(crate) here: Option<&'a Path>,
    /// The table `[projects]` of the settings.
    pub(crate) projects: &'a BTreeMap<String, String>,
}

/// Returns the folder of the same repository among the present one and those of sessions of this machine,
/// otherwise the one that the settings name. `None` if there is none.
///
/// # Errors
/// Fails if the settings name a folder that does not exist.
pub(crate) fn find_folder(search: &FolderSearch<'_>) -> Result<Option<PathBuf>, ToolError> {
    if let Some(wanted) = search.repository
        && let Some(folder) = find_by_repository(search, wanted)
    {
        return resolve_folder(&folder).map(Some);
    }
    match find_in_settings(search) {
        Some(folder) => resolve_folder(&folder).map(Some),
        None => Ok(None),
    }
}

/// Returns the folder as the agent will name it: a full path without links.
///
/// # Errors
/// Fails if it does not exist.
pub(crate) fn resolve_folder(folder: &Path) -> Result<PathBuf, ToolError> {
    real_path(folder).ok().filter(|folder| folder.is_dir()).ok_or_else(|| {
        let message = format!("The folder {} does not exist", folder.display());
        ToolError::new(ErrorCode::InvalidArgument, message).with_path(folder)
    })
}

/// Returns the folder in the first repository that is the wanted one.
fn find_by_repository(search: &FolderSearch<'_>, wanted: &Repository) -> Option<PathBuf> {
    let own = search.snapshot.sessions().iter().map(|session| &**session);
    let mut own: Vec<&SessionSummary> =
        own.filter(|session| session.origin.machine.is_none()).collect();
    own.sort_by_key(|session| Reverse(session.ended_at));
    let own = own.into_iter().filter_map(|session| session.origin.cwd.as_deref());
    let candidates = search.here.into_iter().chain(own.map(Path::new));
    let mut seen = BTreeSet::new();
    for folder in candidates {
        let Some(root) = Some(folder).filter(|it| it.is_absolute()).and_then(find_root) else {
            continue;
        };
        if !seen.insert(root.to_owned()) {
            continue;
        }
        if seen.len() > MAX_REPOSITORIES {
            break;
        }
        if find_repository(root).is_some_and(|found| is_same(&found, wanted)) {
            let below = root.join(&wanted.below);
            return Some(if below.is_dir() { below } else { root.to_owned() });
        }
    }
    None
}

/// Returns the folder that the settings name for the repository, otherwise for the folder or the nearest one
/// above it.
fn find_in_settings(search: &FolderSearch<'_>) -> Option<PathBuf> {
    let here = |folder: &String| match folder.strip_prefix('~') {
        Some(below) if below.is_empty() || below.starts_with('/') => {
            home_dir().join(below.trim_start_matches('/'))
        }
        Some(_) | None => PathBuf::from(folder),
    };
    if let Some(repository) = search.repository
        && let Some(remote) = &repository.remote
        && let Some((_, folder)) =
            search.projects.iter().find(|(name, _)| is_same_remote(name, remote))
    {
        let folder = here(folder);
        let below = folder.join(&repository.below);
        return Some(if below.is_dir() { below } else { folder });
    }
    let from = search.folder?;
    // The longest name is the nearest folder.
    let mut projects: Vec<(&String, &String)> = search.projects.iter().collect();
    projects.sort_by_key(|(name, _)| Reverse(name.len()));
    let mut moved = projects.into_iter().filter_map(|(name, folder)| {
        below_folder(name, from, &here(folder).to_string_lossy()).map(PathBuf::from)
    });
    moved.next()
}

/// Returns the path of this machine for a path at or below the folder `name` of another one.
fn below_folder(name: &str, path: &str, folder: &str) -> Option<String> {
    // A name that is not a full path is an address.
    let is_full = name.starts_with(['/', '\\']) || name.get(1..2) == Some(":");
    let moved = FolderMove::new(name, folder).map(path).filter(|_| is_full)?;
    moved.starts_with(folder.trim_end_matches(['/', '\\'])).then_some(moved)
}
