//! `cargo xtask demo`: shows on the sample sessions what `sessions` does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::Cargo;
use crate::failure::{Failure, Result};
use crate::json;
use crate::options::Options;
use crate::scratch::Scratch;
use crate::shell;

pub(crate) fn run(root: &Path, options: Options) -> Result<()> {
    options.no_more("demo")?;
    // The dev profile is used: its dependencies are optimised, and it builds in half the time.
    let program = Cargo::new(root, options.bundled)?.program(false)?;
    let scratch = Scratch::new(&std::env::temp_dir())?;
    let demo = Demo { root, program: &program, scratch: &scratch };

    shell::print("\nEvery command below also gets `--store` with a temporary directory.");
    demo.step("ingest", "Read the sample sessions:", &["ingest", "sample-sessions"])?;
    demo.step("list", "What is there:", &["list"])?;
    demo.step("search", "Who worked on the budget?", &["search", "budget.remaining"])?;
    demo.step("search failures", "What failed?", &["search", "assertion failed"])?;
    // This finds the newest test run of Claude Code in which the test passed.
    let session =
        demo.session("Which session fixed it?", "\"budget_is_shared ... ok\" tool:Bash")?;
    demo.step("show", "How it was fixed:", &["show", &session, "--detail-level", "turns"])?;

    let register = ["claude", "mcp", "add", "sessions", "--", &program.to_string_lossy(), "mcp"];
    shell::print("\nLet Claude Code search your own sessions:");
    shell::print(&format!("$ {}", shell::typed(register)));
    Ok(())
}

struct Demo<'a> {
    root: &'a Path,
    program: &'a PathBuf,
    scratch: &'a Scratch,
}

impl Demo<'_> {
    /// Shows one command and its output.
    fn step(&self, name: &str, title: &str, args: &[&str]) -> Result<()> {
        let status = self.command(title, args).status();
        let status = status.map_err(|error| failed(name, &error.to_string()))?;
        if status.success() { Ok(()) } else { Err(failed(name, &status.to_string())) }
    }

    /// Returns the session of the first event that matches.
    fn session(&self, title: &str, query: &str) -> Result<String> {
        let name = "find the session";
        let mut command = self.command(title, &["search", query, "--json"]);
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| failed(name, &error.to_string()))?;
        if !output.status.success() {
            return Err(failed(name, &output.status.to_string()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let session = json::string(&text, "session_id")
            .ok_or_else(|| failed(name, "the answer has no `session_id`"))?;
        shell::print(&format!("first match: session {session}"));
        Ok(session)
    }

    /// Announces a command and prepares it. The command sees neither the user's store nor the
    /// user's logs.
    fn command(&self, title: &str, args: &[&str]) -> Command {
        shell::print(&format!("\n{title}\n$ sessions {}", shell::typed(args.iter().copied())));
        let mut command = Command::new(self.program);
        command
            .arg("--store")
            .arg(self.scratch.path().join("store"))
            .args(args)
            .current_dir(self.root)
            .stdin(Stdio::null())
            .env("HOME", self.scratch.path());
        command
    }
}

fn failed(step: &str, why: &str) -> Failure {
    Failure::step(format!("demo: step `{step}` failed: {why}"))
}
