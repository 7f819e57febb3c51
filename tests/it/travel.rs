//! Two laptops and a lake: a session begins on one, continues on the other, and returns.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{SETTINGS, TestEnv, contents_below, files_below, samples};
use crate::lake::{machine, objects, pull, push};
use crate::log::claude_record;

/// The settings of a machine that publishes everything, with its logs.
const PUBLISH: &str = "include = ['**']\ncontent = 'full'\n[store]\nkeep_logs = 'masked'";

const ID: &str = "3f9a0c11-2222-4333-8444-555566667777";

/// A token in the shape of one of GitHub's, and what is shown in its place.
const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const MASK: &str = "[REDACTED:github_token]";

/// A laptop with an own clone of the repository at `code/harbor`.
fn laptop(name: &str) -> TestEnv {
    let env = machine(name, "mira", PUBLISH);
    clone_repository(&env, "code/harbor");
    env
}

/// Creates a clone of the one repository of these tests: its first commit is the same everywhere.
fn clone_repository(env: &TestEnv, folder: &str) -> PathBuf {
    let folder = env.path(folder);
    fs::create_dir_all(&folder).expect("creates");
    git(&folder, &["init", "--quiet"]);
    git(&folder, &["commit", "--quiet", "--allow-empty", "--message", "Begin"]);
    let address = format!("https://{}@Example.org/mira/harbor.git", env.store().display().to_string().len());
    git(&folder, &["remote", "add", "origin", &address]);
    folder
}

fn git(folder: &Path, arguments: &[&str]) {
    let time = "2026-01-01T00:00:00Z";
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=Mira", "-c", "user.email=mira@example.org"])
        .args(["-c", "commit.gpgsign=false"])
        .args(arguments)
        .env("GIT_AUTHOR_DATE", time)
        .env("GIT_COMMITTER_DATE", time)
        .output()
        .expect("runs git");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The encoded folder of a project of Claude Code.
fn encoded(folder: &Path) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric();
    folder.to_string_lossy().chars().map(|c| if is_kept(c) { c } else { '-' }).collect()
}

/// The log of the session of Claude Code in the folder of a machine.
fn claude_log(env: &TestEnv, folder: &Path) -> PathBuf {
    env.path(format!(".claude/projects/{}/{ID}.jsonl", encoded(folder)))
}

/// A record of Claude Code, with what follows the one before it.
fn claude_line(folder: &Path, number: u32, role: &str, text: &str) -> String {
    let mut record = claude_record(ID, folder, number, role, text);
    if role == "assistant" {
        record["message"] = json!({
            "id": format!("msg_{number}"), "type": "message", "role": role,
            "model": "claude-opus-4-6", "content": [{ "type": "text", "text": text }],
            "usage": { "input_tokens": 10 + number, "output_tokens": 7 },
        });
        record["requestId"] = json!(format!("req_{number}"));
    }
    format!("{record}\n")
}

/// Runs a command of a machine in a folder, with git in the PATH. Agents are not.
fn in_folder(env: &TestEnv, folder: &Path, arguments: &[&str]) -> crate::env::Ran {
    let mut command = env.command();
    command.current_dir(folder).env("PATH", tool_path(env)).args(arguments);
    crate::env::Ran::of(&mut command)
}

/// A PATH with git and agents that print their arguments.
fn tool_path(env: &TestEnv) -> String {
    let system = std::env::var("PATH").unwrap_or_default();
    format!("{}:{system}", env.path("agents").display())
}

/// Lets the agents be programs that print their folder and their arguments.
fn write_agents(env: &TestEnv) {
    for agent in ["claude", "codex", "gemini", "pi"] {
        let path = env.write(format!("agents/{agent}"), "#!/bin/sh\necho \"$PWD: $0 $*\"\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("sets the mode");
        }
    }
}

fn sync(env: &TestEnv, lake: &Path) {
    env.cli(["ingest", "--quiet"]).env("PATH", tool_path(env)).run().ok();
    env.cli(["push", &lake.to_string_lossy()]).env("PATH", tool_path(env)).run().ok();
    env.run(["pull", &lake.to_string_lossy()]).ok();
}

/// Lets a log be one that no agent writes now.
fn make_old(log: &Path) {
    let before = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().append(true).open(log).expect("opens").set_modified(before).expect("sets");
}

/// What counts in a store.
fn totals(env: &TestEnv) -> Value {
    let answer = env.json(["stats"]);
    answer["data"]["total"].clone()
}
