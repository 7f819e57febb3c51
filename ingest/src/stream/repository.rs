//! Finds the repository of a working directory. All worktrees of a repository belong to it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::source::bounded_file::read_bounded_file;

/// Name, or end of the name, of folders in which users and agents keep the worktrees of a
/// repository.
const WORKTREES: &str = "worktrees";

/// Maximum number of working directories remembered.
const MAX_REMEMBERED_FOLDERS: usize = 1024;

/// Maximum size in bytes of a configuration of git and of a file that names its folder.
const MAX_GIT_FILE_BYTES: u64 = 1 << 20;

/// The repository that contains a working directory.
#[derive(Debug, Clone, Default)]
pub(super) struct Repository {
    /// Its folder. `None` if the directory is in no repository.
    pub(super) folder: Option<String>,
    /// The address that the folder was cloned from, if this machine knows it.
    pub(super) origin: Option<String>,
}

/// Finds repositories, and remembers them during a run: finding one asks the system about each
/// parent folder, and most logs share their working directory with others.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    by_cwd: Mutex<HashMap<String, Repository>>,
}

impl Repositories {
    /// Returns the repository of a working directory.
    pub(super) fn find(&self, cwd: &str) -> Repository {
        let mut by_cwd = self.by_cwd.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = by_cwd.get(cwd) {
            return known.clone();
        }
        let folder = find_repository_folder(cwd);
        let origin = folder.as_deref().and_then(read_origin_url);
        let repository = Repository { folder, origin };
        if by_cwd.len() >= MAX_REMEMBERED_FOLDERS {
            by_cwd.clear();
        }
        by_cwd.insert(cwd.to_owned(), repository.clone());
        repository
    }
}

/// Returns the folder of the repository that contains `cwd`. The path decides if it names a folder
/// of worktrees, else git's own files if the folder is on this machine. `None` if neither names a
/// repository.
fn find_repository_folder(cwd: &str) -> Option<String> {
    folder_of_worktrees(cwd).or_else(|| find_git_folder(Path::new(cwd)))
}

/// Returns the address that a folder on this machine was cloned from, in its normalized form; see
/// [`normalize_address`]. `None` if it is in no repository, or if that was not cloned from an address.
pub fn find_origin(folder: &str) -> Option<String> {
    let address = find_repository_folder(folder).as_deref().and_then(read_origin_url)?;
    Some(normalize_address(&address).into_owned())
}

/// Derives the repository from a folder of worktrees in the path: one inside the repository
/// (`.worktrees`, `.claude/worktrees`, `.git/worktrees`), or one next to it (`harbor.worktrees`,
/// `harbor__worktrees`). The path may be one of Windows.
fn folder_of_worktrees(cwd: &str) -> Option<String> {
    let path = cwd.replace('\\', "/");
    let before = &path[..path.find(&format!("{WORKTREES}/"))?];

    // Inside the repository, or else next to it.
    let mut folder = ["/.claude/", "/.git/", "/."].iter().find_map(|end| before.strip_suffix(end));
    if folder.is_none() {
        let name = [".", "__"].iter().find_map(|sign| before.strip_suffix(sign));
        folder = name.filter(|name| !name.ends_with(['/', '.', '_', '-']));
    }
    folder.filter(|folder| !folder.is_empty()).map(|folder| cwd[..folder.len()].to_owned())
}

/// Returns the address that a folder on this machine was cloned from: the `url` of the remote
/// `origin` in git's configuration. `None` if the path is not absolute, if the configuration cannot
/// be read or names no `origin`, or if that is a folder.
fn read_origin_url(folder: &str) -> Option<String> {
    let folder = Path::new(folder);
    if !folder.is_absolute() {
        return None;
    }
    let config = read_git_file(&folder.join(".git/config"))?;

    let mut lines = config.lines().map(str::trim);
    lines.by_ref().find(|line| *line == r#"[remote "origin"]"#)?;
    let origin_lines = lines.take_while(|line| !line.starts_with('['));
    let mut values = origin_lines.filter_map(|line| line.split_once('='));
    let (_, url) = values.find(|(key, _)| key.trim() == "url")?;
    Some(url.trim().to_owned()).filter(|url| is_address(url))
}

/// Returns whether a repository is given by its address, and not by a folder.
pub(crate) fn is_address(repository: &str) -> bool {
    normalize_address(repository).contains("://")
}

/// Normalizes the address of a repository and removes the user. `git@host:owner/name.git`,
/// `ssh://git@host/owner/name` and `https://token@host/owner/name.git` all become
/// `https://host/owner/name`. A folder stays as it is.
pub fn normalize_address(repository: &str) -> Cow<'_, str> {
    let schemes = ["https://", "http://", "ssh://", "git://"];
    let parts = match schemes.iter().find_map(|scheme| repository.strip_prefix(scheme)) {
        Some(rest) => rest.split_once('/'),
        None => repository.strip_prefix("git@").and_then(|rest| rest.split_once(':')),
    };
    let Some((host, name)) = parts else { return repository.into() };

    let mut host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    // Drops the SSH port, which is not the port of the web service.
    if repository.starts_with("ssh://")
        && let Some((without_port, _)) = host.split_once(':')
    {
        host = without_port;
    }
    let name = name.trim_end_matches('/');
    format!("https://{host}/{}", name.strip_suffix(".git").unwrap_or(name)).into()
}

/// Searches `cwd` and its parents for `.git`. In a worktree, `.git` is a file that names the
/// repository's own folder.
fn find_git_folder(cwd: &Path) -> Option<String> {
    if !cwd.is_absolute() {
        return None;
    }
    cwd.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        let metadata = git.symlink_metadata().ok()?;
        if metadata.is_dir() {
            return Some(dir.to_string_lossy().into_owned());
        }
        let pointer = read_git_file(&git)?;
        let target = pointer.strip_prefix("gitdir: ")?.trim();
        // Git writes slashes on Windows, too.
        let folder: PathBuf = Path::new(&target[..target.find("/.git/")?]).components().collect();
        Some(folder.to_string_lossy().into_owned())
    })
}

/// Returns the text of a file of git. `None` if it is not such a file.
fn read_git_file(path: &Path) -> Option<String> {
    String::from_utf8(read_bounded_file(path, MAX_GIT_FILE_BYTES)?).ok()
}

/// Returns the last part of a path, with either separator. `None` if the path has no part.
pub(crate) fn last_path_part(path: &str) -> Option<&str> {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worktrees_belong_to_their_repository() {
        assert_eq!(
            find_repository_folder("/home/x/harbor/.claude/worktrees/fix").as_deref(),
            Some("/home/x/harbor")
        );
        for cwd in [
            "/home/x/harbor/.worktrees/mira/fix",
            "/home/x/harbor/.git/worktrees/fix",
            "/home/x/harbor.worktrees/fix/src",
            "/home/x/harbor__worktrees/fix",
        ] {
            assert_eq!(find_repository_folder(cwd).as_deref(), Some("/home/x/harbor"), "{cwd}");
        }
        for cwd in [r"C:\code\harbor\.claude\worktrees\fix", r"C:\code\harbor.worktrees\fix\src"] {
            assert_eq!(find_repository_folder(cwd).as_deref(), Some(r"C:\code\harbor"), "{cwd}");
        }
        for cwd in
            ["/nowhere/at/all", "/nowhere/worktrees/fix", "/worktrees/fix", "/my-worktrees/x"]
        {
            assert_eq!(find_repository_folder(cwd), None, "{cwd}");
        }
        let dir = tempfile::tempdir().expect("tempdir");
        let at = |path: &str| dir.path().join(path).to_string_lossy().into_owned();
        std::fs::create_dir_all(dir.path().join("harbor/.git/worktrees/fix")).expect("creates");
        std::fs::create_dir_all(dir.path().join("harbor/src")).expect("creates");
        std::fs::create_dir_all(dir.path().join("fix")).expect("creates");
        let pointer = format!("gitdir: {}\n", at("harbor/.git/worktrees/fix"));
        std::fs::write(dir.path().join("fix/.git"), pointer).expect("writes");
        assert_eq!(find_repository_folder(&at("harbor/src")), Some(at("harbor")));
        assert_eq!(find_repository_folder(&at("fix")), Some(at("harbor")));
    }

    #[test]
    fn addresses_have_one_form() {
        for other in [
            "git@example.org:mira/harbor.git",
            "ssh://git@example.org/mira/harbor.git",
            "ssh://example.org/mira/harbor",
            "ssh://git@example.org:2222/mira/harbor.git",
            "https://example.org/mira/harbor.git",
            "https://example.org/mira/harbor/",
            "https://mira:t0ken@example.org/mira/harbor",
        ] {
            assert_eq!(normalize_address(other), "https://example.org/mira/harbor");
            assert!(is_address(other));
        }
        for same in ["/home/mira/harbor", r"C:\harbor", ""] {
            assert_eq!(normalize_address(same), same);
            assert!(!is_address(same));
        }
    }

    #[test]
    fn the_origin_is_that_of_gits_configuration() {
        let dir = tempfile::tempdir().expect("tempdir");
        let here = dir.path().to_string_lossy().into_owned();
        let write = |config: &str| {
            std::fs::create_dir_all(dir.path().join(".git")).expect("creates");
            std::fs::write(dir.path().join(".git/config"), config).expect("writes");
        };
        assert_eq!(read_origin_url(&here), None);
        write("[core]\n\tbare = false\n[remote \"fork\"]\n\turl = https://a.example/b/c\n");
        assert_eq!(read_origin_url(&here), None);
        write(
            "[remote \"origin\"]\n\tfetch = +refs/*\n\turl = git@a.example:b/c.git\n[branch \"x\"]\n",
        );
        assert_eq!(read_origin_url(&here).as_deref(), Some("git@a.example:b/c.git"));
        // Cloned from a folder.
        write("[remote \"origin\"]\n\turl = /srv/c\n");
        assert_eq!(read_origin_url(&here), None);
    }

    #[test]
    fn names_are_the_last_part() {
        assert_eq!(last_path_part("/a/b/"), Some("b"));
        assert_eq!(last_path_part(r"C:\a\b"), Some("b"));
        assert_eq!(last_path_part("/"), None);
    }
}
