//! Runs cargo in the workspace's root, with the features that the lane of DuckDB needs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::duckdb::{self, Lane};
use crate::failure::{Failure, Result};
use crate::json;
use crate::shell;

pub(crate) struct Cargo<'a> {
    root: &'a Path,
    pub(crate) lane: Lane,
}

impl<'a> Cargo<'a> {
    /// Chooses the lane, which may fetch DuckDB.
    pub(crate) fn new(root: &'a Path, bundled: bool) -> Result<Self> {
        Ok(Self { root, lane: duckdb::lane(root, bundled)? })
    }

    /// Runs `cargo <args> <features> <more>`, with its output where xtask's goes.
    pub(crate) fn run(&self, args: &[&str], more: &[String]) -> Result<()> {
        let mut args = self.with_features(args);
        args.extend(more.iter().map(String::as_str));
        let line = line(&args);
        eprintln!("$ {line}");
        let status = self.command(&args).status().map_err(|error| unstarted(&line, &error))?;
        if status.success() { Ok(()) } else { Err(Failure::Program { line, code: status.code() }) }
    }

    /// Whether cargo has this subcommand.
    pub(crate) fn has(&self, subcommand: &str) -> bool {
        let mut command = self.command(&[subcommand, "--version"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Builds the program `sessions` and returns its path.
    pub(crate) fn program(&self, release: bool) -> Result<PathBuf> {
        // Without `--package`, the features of the dependencies are those of `build`, so each of
        // the two reuses what the other compiled.
        let mut args = vec!["build", "--bin", "sessions"];
        if release {
            args.push("--release");
        }
        let mut args = self.with_features(&args);
        let shown = line(&args);
        eprintln!("$ {shown}");
        args.extend(["--message-format", "json-render-diagnostics"]);
        let mut command = self.command(&args);
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| unstarted(&shown, &error))?;
        if !output.status.success() {
            return Err(Failure::Program { line: shown, code: output.status.code() });
        }
        let found = executable(&String::from_utf8_lossy(&output.stdout));
        found.ok_or_else(|| Failure::step(format!("`{shown}` names no program that it built")))
    }

    fn with_features<'b>(&self, args: &[&'b str]) -> Vec<&'b str> {
        let mut args = args.to_vec();
        if self.lane == Lane::Bundled {
            args.extend(["--features", "sessions/bundled"]);
        }
        args
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(args).current_dir(self.root);
        command
    }
}

fn line(args: &[&str]) -> String {
    format!("cargo {}", shell::typed(args.iter().copied()))
}

fn unstarted(line: &str, error: &std::io::Error) -> Failure {
    Failure::step(format!("`{line}` could not be started: {error}"))
}

/// Returns the path of the program from cargo's JSON messages.
fn executable(messages: &str) -> Option<PathBuf> {
    let marks = [r#""reason":"compiler-artifact""#, r#""kind":["bin"]"#, r#""name":"sessions""#];
    let ours = |line: &&str| marks.iter().all(|mark| line.contains(mark));
    messages
        .lines()
        .filter(ours)
        .find_map(|line| json::string(line, "executable"))
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_the_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"sessions"},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"other"},"executable":"/t/other"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"sessions"},"executable":"/t/sessions"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(executable(messages), Some(PathBuf::from("/t/sessions")));
        assert_eq!(executable(""), None);
    }
}
