//! `cargo xtask demo`: shows on the sample sessions what `sessions` does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cargo::Cargo;
use crate::failure::{Result, TaskFailure};
use crate::options::TaskOptions;
use crate::scratch::create_scratch;
use crate::shell;

pub(crate) fn run(root: &Path, options: TaskOptions) -> Result<()> {
    options.refuse_rest("demo")?;
    // The dev profile is fast enough for the samples.
    let program = Cargo::new(root, options.bundled)?.build_program(false)?;
    let scratch = create_scratch(&std::env::temp_dir())?;
    let demo = Demo { root, program: &program, scratch: scratch.path() };

    shell::print_line("\nEvery command below also gets `--store` with a temporary directory.");
    demo.run_step("ingest", "Read the sample sessions:", &["ingest", "sample-sessions"])?;
    demo.run_step("list", "What is there:", &["list"])?;
    demo.run_step("search", "Who worked on the budget?", &["search", "budget.remaining"])?;
    demo.run_step("search failures", "What failed?", &["search", "assertion failed"])?;
    // This finds the newest test run in which the test passed.
    let event =
        demo.find_event("Which session fixed it?", "\"budget_is_shared ... ok\" tool:Bash")?;
    demo.run_step("show", "How it was fixed:", &["show", &event, "--detail-level", "turns"])?;

    let register = ["claude", "mcp", "add", "sessions", "--", &program.to_string_lossy(), "mcp"];
    shell::print_line("\nLet Claude Code search your own sessions:");
    shell::print_line(&format!("$ {}", shell::quote_arguments(register)));
    Ok(())
}

struct Demo<'a> {
    root: &'a Path,
    program: &'a PathBuf,
    scratch: &'a Path,
}

impl Demo<'_> {
    /// Shows one command and its output.
    fn run_step(&self, name: &str, title: &str, args: &[&str]) -> Result<()> {
        let status = self.prepare_command(title, args).status();
        let status = status.map_err(|error| step_failure(name, &error.to_string()))?;
        if status.success() { Ok(()) } else { Err(step_failure(name, &status.to_string())) }
    }

    /// Returns the id of the first event that matches.
    fn find_event(&self, title: &str, query: &str) -> Result<String> {
        let name = "find the session";
        let mut command = self.prepare_command(title, &["search", query, "--json"]);
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| step_failure(name, &error.to_string()))?;
        if !output.status.success() {
            return Err(step_failure(name, &output.status.to_string()));
        }
        let answer: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| step_failure(name, &error.to_string()))?;
        let event = answer["data"]["matches"][0]["event_id"].as_str();
        let event = event.ok_or_else(|| step_failure(name, "nothing was found"))?;
        // A command that takes a session takes one of its events as well.
        shell::print_line(&format!("first match: event {event}"));
        Ok(event.to_owned())
    }

    /// Announces a command and prepares it. The command sees neither the user's store nor the
    /// user's logs.
    fn prepare_command(&self, title: &str, args: &[&str]) -> Command {
        shell::print_line(&format!(
            "\n{title}\n$ sessions {}",
            shell::quote_arguments(args.iter().copied())
        ));
        let mut command = Command::new(self.program);
        command
            .arg("--store")
            .arg(self.scratch.join("store"))
            .args(args)
            .current_dir(self.root)
            .stdin(Stdio::null())
            .env("HOME", self.scratch);
        command
    }
}

fn step_failure(step: &str, why: &str) -> TaskFailure {
    TaskFailure::step(format!("demo: step `{step}` failed: {why}"))
}
