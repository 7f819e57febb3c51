//! Finds out which repository a folder belongs to, by running `git` with a time limit, and recognises the
//! same repository on another machine.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::config::environment::find_program;
use store::Repository;

/// Maximum time of one command. Only the first commit of a very large repository takes longer.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Maximum number of bytes that are read of what a command prints.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// A repository on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalRepository {
    /// The folder of the repository.
    pub(crate) root: PathBuf,
    pub(crate) repository: Repository,
}

/// Returns the folder of the repository at `folder` or above it. `None` if there is none.
pub(crate) fn find_root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// Returns the repository of a folder. `None` if the folder is in none, or if nothing is known of it that
/// would be the same on another machine.
pub(crate) fn find_repository(folder: &Path) -> Option<LocalRepository> {
    let root = find_root(folder)?;
    let git = find_program("git")?;
    let repository = Repository {
        remote: find_remote(&git, root),
        first_commit: find_first_commit(&git, root),
        below: name_below(root, folder)?,
    };
    let is_known = repository.remote.is_some() || repository.first_commit.is_some();
    is_known.then(|| LocalRepository { root: root.to_owned(), repository })
}

/// Returns whether two descriptions are of one repository. Forks have the first commit in common, and an
/// address may have been given to another repository, so both count where both are known.
pub(crate) fn is_same(one: &Repository, other: &Repository) -> bool {
    let remotes = one.remote.as_ref().zip(other.remote.as_ref()).map(|(a, b)| a == b);
    let commits = one.first_commit.as_ref().zip(other.first_commit.as_ref()).map(|(a, b)| a == b);
    match (remotes, commits) {
        (Some(remotes), commits) => remotes && commits != Some(false),
        (None, commits) => commits == Some(true),
    }
}

/// Returns the address of a remote in the form in which all machines have it: the host in lower case and
/// the path, without scheme, credentials, port and ending. `None` for a folder, which is another one on
/// another machine.
pub(crate) fn normalise_remote(address: &str) -> Option<String> {
    let address = address.trim();
    let (host, path) = match address.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?,
        // As in `git@example.org:mira/harbor.git`. A drive of Windows has one letter.
        None => {
            address.split_once(':').filter(|(host, _)| host.len() > 1 && !host.contains('/'))?
        }
    };
    let host = host.rsplit('@').next().unwrap_or(host);
    let host = host.split(':').next().unwrap_or(host).to_lowercase();
    let path = path.split(['?', '#']).next().unwrap_or(path).trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}"))
}

/// Returns the path of a folder below another one, with slashes.
fn name_below(root: &Path, folder: &Path) -> Option<String> {
    let names = folder.strip_prefix(root).ok()?.iter().map(|name| name.to_str());
    Some(names.collect::<Option<Vec<&str>>>()?.join("/"))
}

/// Returns the address of `origin`, or of another remote.
fn find_remote(git: &Path, root: &Path) -> Option<String> {
    let text = run(git, root, &["config", "--get-regexp", r"^remote\..*\.url$"])?;
    let remotes = text.lines().filter_map(|line| line.split_once(' '));
    let mut remotes: Vec<(&str, &str)> = remotes.collect();
    remotes.sort_by_key(|(name, _)| *name != "remote.origin.url");
    remotes.into_iter().find_map(|(_, address)| normalise_remote(address))
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
    command.env("GIT_NO_LAZY_FETCH", "1").env("LC_ALL", "C");
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
    fn an_address_is_the_same_however_it_is_written() {
        for address in [
            "https://example.org/mira/harbor.git",
            "https://mira:s3cret@Example.org/mira/harbor",
            "https://example.org:8443/mira/harbor/",
            "ssh://git@example.org:22/mira/harbor.git",
            "git@example.org:mira/harbor.git",
            "example.org:/mira/harbor.git",
            " git://example.org/mira/harbor.git?x=y ",
        ] {
            assert_eq!(normalise_remote(address).as_deref(), Some("example.org/mira/harbor"));
        }
        for folder in ["/srv/git/harbor.git", "../harbor", r"C:\git\harbor", "file:///srv/x", ""] {
            assert_eq!(normalise_remote(folder), None, "{folder}");
        }
    }

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
    }
}
