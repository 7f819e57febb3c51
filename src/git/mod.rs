//! Finds out which repository a folder belongs to, and recognises it on another machine: by the address of
//! the remote, and by the first commit, for which `git` runs with a time limit.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use ingest::stream::{find_origin, normalize_address};

use crate::config::environment::find_program;
use store::Repository;

/// Maximum time of one command. Only the first commit of a very large repository takes longer.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Maximum number of bytes that are read of what a command prints.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// Returns the folder of the repository at `folder` or above it. `None` if there is none.
pub(crate) fn find_root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// Returns the repository of a folder. `None` if the folder is in none, or if nothing is known of it that
/// would be the same on another machine.
pub(crate) fn find_repository(folder: &Path) -> Option<Repository> {
    let root = find_root(folder)?;
    let repository = Repository {
        remote: root.to_str().and_then(find_origin),
        first_commit: find_program("git").and_then(|git| find_first_commit(&git, root)),
        below: name_below(root, folder)?,
    };
    let is_known = repository.remote.is_some() || repository.first_commit.is_some();
    is_known.then_some(repository)
}

/// Returns whether two descriptions are of one repository. Forks have the first commit in common, and an
/// address may have been given to another repository, so both count where both are known.
pub(crate) fn is_same(one: &Repository, other: &Repository) -> bool {
    let remotes = one.remote.as_ref().zip(other.remote.as_ref());
    let remotes = remotes.map(|(a, b)| is_same_remote(a, b));
    let commits = one.first_commit.as_ref().zip(other.first_commit.as_ref()).map(|(a, b)| a == b);
    match (remotes, commits) {
        (Some(remotes), commits) => remotes && commits != Some(false),
        (None, commits) => commits == Some(true),
    }
}

/// Returns whether two addresses are of one remote, with or without a scheme. Hosts of repositories do not
/// distinguish case.
pub(crate) fn is_same_remote(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(normalize_address);
    let plain = |address: &str| address.strip_prefix("https://").unwrap_or(address).to_lowercase();
    plain(&one) == plain(&other)
}

/// Returns the path of a folder below another one, with slashes.
fn name_below(root: &Path, folder: &Path) -> Option<String> {
    let names = folder.strip_prefix(root).ok()?.iter().map(|name| name.to_str());
    Some(names.collect::<Option<Vec<&str>>>()?.join("/"))
}

/// Returns the oldest commit without parents. `None` if the history is cut.
fn find_first_commit(git: &Path, root: &Path) -> Option<String> {
    let is_shallow = run(git, root, &["rev-parse", "--is-shallow-repository"])?;
    if is_shallow.trim() != "false" {
        return None;
    }
    let commits = run(git, root, &["rev-list", "--max-parents=0", "HEAD"])?;
    let first = commits.lines().last()?.trim();
    first.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| first.to_owned())
}

/// Returns what a command of git prints. `None` if it fails or takes too long.
fn run(git: &Path, root: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(git);
    command.arg("-C").arg(root).args(arguments);
    // Nothing is asked, locked or fetched, and the variables of a hook do not name another repository.
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let output = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = output.take(MAX_OUTPUT_BYTES).read_to_string(&mut text);
        // Nobody receives it after the time limit.
        let _ = sender.send(read.map(|_| text));
    });
    let text = receiver.recv_timeout(MAX_TIME);
    end(&mut child, text.is_ok()).filter(|is_done| *is_done)?;
    text.ok()?.ok()
}

/// Ends a process, and returns whether it succeeded. One that closed its output ends by itself.
fn end(child: &mut Child, has_closed: bool) -> Option<bool> {
    if !has_closed {
        let _ = child.kill();
    }
    child.wait().ok().map(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_both_must_agree() {
        let repository = |remote: Option<&str>, commit: Option<&str>| Repository {
            remote: remote.map(str::to_owned),
            first_commit: commit.map(str::to_owned),
            below: String::new(),
        };
        for (one, other, wanted) in [
            (repository(Some("a"), Some("1")), repository(Some("a"), Some("1")), true),
            (repository(Some("a"), Some("1")), repository(Some("a"), Some("2")), false),
            (repository(Some("a"), Some("1")), repository(Some("b"), Some("1")), false),
            (repository(Some("a"), Some("1")), repository(Some("a"), None), true),
            (repository(Some("a"), Some("1")), repository(None, Some("1")), true),
            (repository(Some("a"), None), repository(None, Some("1")), false),
            (repository(None, None), repository(None, None), false),
        ] {
            assert_eq!(is_same(&one, &other), wanted, "{one:?} {other:?}");
        }
        let address = "https://example.org/mira/harbor";
        for other in ["git@Example.org:mira/harbor.git", "example.org/mira/harbor", address] {
            assert!(is_same_remote(address, other), "{other}");
        }
        assert!(!is_same_remote(address, "https://example.org/mira/harbor2"));
    }
}
