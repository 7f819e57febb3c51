//! Which repository a working directory belongs to: worktrees of one repository belong together.

use std::path::Path;

/// Folders in which agents and people keep the worktrees of the repository around them.
const WORKTREES: &[&str] = &["/.claude/worktrees/", "/.worktrees/", "/.git/worktrees/"];

/// The folder of the repository that `cwd` lies in: told by the path where that says it, else by
/// git's own files where the folder is on this machine.
pub(crate) fn of(cwd: &str) -> Option<String> {
    let told = WORKTREES.iter().find_map(|marker| cwd.find(marker));
    told.map(|at| cwd[..at].to_owned()).or_else(|| look(Path::new(cwd)))
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
        assert_eq!(of("/nowhere/at/all"), None);
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
    fn names_are_the_last_part() {
        assert_eq!(name("/a/b/"), Some("b"));
        assert_eq!(name(r"C:\a\b"), Some("b"));
        assert_eq!(name("/"), None);
    }
}
