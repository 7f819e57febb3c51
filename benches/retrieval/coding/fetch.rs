//! Brings the public logs of the benchmark to this machine.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A log in a public repository.
pub(super) struct PublicLog {
    provider: String,
    /// Owner and name.
    repository: String,
    /// A commit that has it; empty if none is known.
    commit: String,
    path: String,
    /// Its git hash.
    blob: String,
}

impl PublicLog {
    /// Returns its path below the folder of logs.
    pub(super) fn place(&self) -> String {
        format!("{}/{}/{}", self.provider, self.repository.replace('/', "+"), self.path)
    }
}

/// Reads the list of logs: a line of names, then provider, repository, commit, path and git hash of each,
/// and columns for people.
pub(super) fn read_list(file: &Path) -> Vec<PublicLog> {
    let text = fs::read_to_string(file).expect("the list of logs");
    let mut logs = Vec::new();
    for line in text.lines().skip(1) {
        let mut columns = line.split('\t').map(str::to_owned);
        let mut next = || columns.next().expect(line);
        let (provider, repository, commit) = (next(), next(), next());
        logs.push(PublicLog { provider, repository, commit, path: next(), blob: next() });
    }
    logs
}

/// Returns the places of logs that are not in a folder, or have other content there.
pub(super) fn find_missing(listed: &[PublicLog], folder: &Path) -> HashSet<String> {
    let (present, absent): (Vec<&PublicLog>, Vec<&PublicLog>) =
        listed.iter().partition(|log| folder.join(log.place()).is_file());
    let mut missing: HashSet<String> = absent.into_iter().map(PublicLog::place).collect();
    let paths: String = present.iter().map(|log| log.place() + "\n").collect();
    let hashes = hash_files(folder, &paths);
    for (log, hash) in present.iter().zip(hashes.lines()) {
        if log.blob != hash {
            missing.insert(log.place());
        }
    }
    missing
}

/// Returns the git hashes of files in a folder, given their paths, one a line each.
fn hash_files(folder: &Path, paths: &str) -> String {
    let list = tempfile::NamedTempFile::new().expect("a file");
    fs::write(list.path(), paths).expect("the list of files");
    let mut git = Command::new("git");
    git.args(["hash-object", "--no-filters", "--stdin-paths"]).current_dir(folder);
    let output = git.stdin(fs::File::open(list.path()).expect("the list")).output();
    String::from_utf8(output.expect("git is installed").stdout).expect("hashes")
}

/// Copies the listed logs of a folder into a new one, without its other files.
pub(super) fn copy_logs(listed: &[PublicLog], from: &Path, into: &Path) {
    for log in listed {
        let (from, to) = (from.join(log.place()), into.join(log.place()));
        if from.is_file() {
            fs::create_dir_all(to.parent().expect("a folder")).expect("makes it");
            fs::copy(from, to).expect("copies the log");
        }
    }
}

/// Fetches the logs from the repositories at `source`, which is the beginning of their addresses. Returns
/// the folder where those are that could be fetched.
pub(super) fn fetch_logs(listed: &[PublicLog], source: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/coding-logs");
    fs::create_dir_all(&folder).expect("the folder of the logs");
    let missing = find_missing(listed, &folder);
    let mut by_commit: BTreeMap<(&str, &str), Vec<&PublicLog>> = BTreeMap::new();
    for log in listed.iter().filter(|log| !log.commit.is_empty() && missing.contains(&log.place()))
    {
        by_commit.entry((&log.repository, &log.commit)).or_default().push(log);
    }
    for ((repository, commit), logs) in by_commit {
        let clone = folder.join("repositories").join(repository.replace('/', "+"));
        if !clone.exists() {
            fs::create_dir_all(&clone).expect("the folder of a repository");
            let address = format!("{source}/{repository}");
            run_git(&clone, &["init", "--quiet", "--bare"]);
            run_git(&clone, &["remote", "add", "origin", &address]);
        }
        // Only the named commit comes, and only the logs of its files.
        let fetch = ["fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", commit];
        if run_git(&clone, &fetch).is_none() {
            println!("{repository} has no commit {commit} that can be fetched");
            continue;
        }
        for log in logs {
            if let Some(content) =
                run_git(&clone, &["cat-file", "blob", &format!("{commit}:{}", log.path)])
            {
                let file = folder.join(log.place());
                fs::create_dir_all(file.parent().expect("a folder")).expect("makes it");
                fs::write(file, content).expect("writes the log");
            }
        }
    }
    folder
}

/// Runs git in a repository. Returns its output, or `None` if it failed.
fn run_git(repository: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(repository).stderr(Stdio::null());
    let output = git.output().expect("git is installed");
    output.status.success().then_some(output.stdout)
}
