//! Which repository a working directory belongs to: worktrees of one repository belong together.

use std::borrow::Cow;
use std::path::Path;

/// How folders are called in which people and agents keep the worktrees of a repository.
const WORKTREES: &str = "worktrees";

/// The folder of the repository that `cwd` lies in: told by the path where that says it, else by
/// git's own files where the folder is on this machine.
pub(crate) fn of(cwd: &str) -> Option<String> {
    told(cwd).or_else(|| look(Path::new(cwd)))
}

/// By a folder of worktrees in the repository (`.worktrees`, `.claude/worktrees`, `.git/worktrees`), or
/// beside it (`harbor.worktrees`, `harbor__worktrees`).
fn told(cwd: &str) -> Option<String> {
    let at = cwd.find(&format!("{WORKTREES}/"))?;
    let before = &cwd[..at];
    let inside = ["/.claude/", "/.git/", "/."].iter().find_map(|end| before.strip_suffix(end));
    let beside = || {
        let name = [".", "__"].iter().find_map(|sign| before.strip_suffix(sign))?;
        (!name.ends_with(['/', '.', '_', '-'])).then_some(name)
    };
    inside.or_else(beside).filter(|folder| !folder.is_empty()).map(str::to_owned)
}

/// The address of a repository in one form: `git@host:owner/name.git` and `ssh://git@host/owner/name`
/// are `https://host/owner/name.git`.
pub(crate) fn address(repository: &str) -> Cow<'_, str> {
    let address = match repository.strip_prefix("ssh://") {
        Some(rest) => rest.split_once('@').map_or(rest, |(_, rest)| rest).split_once('/'),
        None if repository.contains("://") => None,
        None => repository.strip_prefix("git@").and_then(|rest| rest.split_once(':')),
    };
    match address {
        Some((host, name)) => {
            format!("https://{host}/{}.git", name.trim_end_matches(".git")).into()
        }
        None => repository.into(),
    }
}

/// Follows `.git` upwards; that of a worktree is a file that names the repository's own.
fn look(cwd: &Path) -> Option<String> {
    if !cwd.is_absolute() {
        return None;
    }
    cwd.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        let metadata = git.symlink_metadata().ok()?;
        if metadata.is_dir() {
            return Some(dir.to_string_lossy().into_owned());
        }
        let pointer = std::fs::read_to_string(git).ok()?;
        let target = pointer.strip_prefix("gitdir: ")?.trim();
        let at = target.find("/.git/")?;
        Some(target[..at].to_owned())
    })
}

/// Last part of a path, with either separator.
pub(crate) fn name(path: &str) -> Option<&str> {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worktrees_belong_to_their_repository() {
        assert_eq!(of("/home/x/harbor/.claude/worktrees/fix").as_deref(), Some("/home/x/harbor"));
        for cwd in [
            "/home/x/harbor/.worktrees/mira/fix",
            "/home/x/harbor/.git/worktrees/fix",
            "/home/x/harbor.worktrees/fix/src",
            "/home/x/harbor__worktrees/fix",
        ] {
            assert_eq!(of(cwd).as_deref(), Some("/home/x/harbor"), "{cwd}");
        }
        for cwd in
            ["/nowhere/at/all", "/nowhere/worktrees/fix", "/worktrees/fix", "/my-worktrees/x"]
        {
            assert_eq!(of(cwd), None, "{cwd}");
        }
        let dir = tempfile::tempdir().expect("tempdir");
        let at = |path: &str| dir.path().join(path).to_string_lossy().into_owned();
        std::fs::create_dir_all(dir.path().join("harbor/.git/worktrees/fix")).expect("creates");
        std::fs::create_dir_all(dir.path().join("harbor/src")).expect("creates");
        std::fs::create_dir_all(dir.path().join("fix")).expect("creates");
        let pointer = format!("gitdir: {}\n", at("harbor/.git/worktrees/fix"));
        std::fs::write(dir.path().join("fix/.git"), pointer).expect("writes");
        assert_eq!(of(&at("harbor/src")), Some(at("harbor")));
        assert_eq!(of(&at("fix")), Some(at("harbor")));
    }

    #[test]
    fn addresses_have_one_form() {
        for other in [
            "git@example.org:mira/harbor.git",
            "ssh://git@example.org/mira/harbor.git",
            "ssh://example.org/mira/harbor",
            "https://example.org/mira/harbor.git",
        ] {
            assert_eq!(address(other), "https://example.org/mira/harbor.git");
        }
        for same in ["/home/mira/harbor", r"C:\harbor", "https://example.org/mira/harbor", ""] {
            assert_eq!(address(same), same);
        }
    }

    #[test]
    fn names_are_the_last_part() {
        assert_eq!(name("/a/b/"), Some("b"));
        assert_eq!(name(r"C:\a\b"), Some("b"));
        assert_eq!(name("/"), None);
    }
}
