//! Runs cargo in the workspace's root, with the features that the lane of DuckDB needs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::duckdb::{self, Lane};
use crate::failure::{Result, TaskFailure};
use crate::shell;
use crate::spark;
use crate::zig::Zig;

/// The profile of published programs.
const DIST: &str = "dist";

/// Leaves out copies of DuckDB's loops for special cases, which are a third of its code.
const SMALL_DUCKDB: &str = "-DDUCKDB_SMALLER_BINARY";

/// Makes clang, which zig contains, keep one copy of functions with equal code. In five large files
/// of DuckDB this saved 8 % of the code.
const MERGE_FUNCTIONS: &str = "-Xclang -fmerge-functions";

/// Cargo in a workspace, with DuckDB from one lane.
pub(crate) struct Cargo<'a> {
    root: &'a Path,
    pub(crate) lane: Lane,
    /// The compiler of protocol buffers if the feature `spark` is built.
    protoc: Option<PathBuf>,
    /// Variables that commands get in addition.
    variables: Vec<(&'static str, OsString)>,
}

impl<'a> Cargo<'a> {
    /// Chooses the lane, which may fetch DuckDB.
    pub(crate) fn new(root: &'a Path, bundled: bool) -> Result<Self> {
        let lane = duckdb::choose_lane(root, bundled)?;
        Ok(Self { root, lane, protoc: None, variables: Vec::new() })
    }

    /// Links the library of DuckDB in this folder, whatever the platform.
    pub(crate) fn with_library(root: &'a Path, folder: &Path) -> Self {
        let lane = Lane::Prebuilt(folder.to_owned());
        let variables = vec![("DUCKDB_LIB_DIR", folder.as_os_str().to_owned())];
        Self { root, lane, protoc: None, variables }
    }

    /// Builds the feature `spark` as well, and gives tests the address of the cluster.
    pub(crate) fn with_spark(self, root: &Path) -> Result<Self> {
        Ok(Self { protoc: Some(spark::protoc(root)?), ..self })
    }

    /// Adds a variable to the environment of all commands.
    pub(crate) fn with_variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Runs `cargo <args> <features> <more>`, with its output where xtask's goes.
    pub(crate) fn run(&self, args: &[&str], more: &[String]) -> Result<()> {
        let mut args = self.with_features(args);
        args.extend(more.iter().map(String::as_str));
        shell::run_command(self.cargo_command(&args))
    }

    /// Returns true if cargo has this subcommand.
    pub(crate) fn has_subcommand(&self, subcommand: &str) -> bool {
        let mut command = self.cargo_command(&[subcommand, "--version"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Builds the program `sessions` and returns its path.
    pub(crate) fn build_program(&self, release: bool) -> Result<PathBuf> {
        self.build("build", if release { &["--release"] } else { &[] }, None)
    }

    /// Builds the program `sessions` for publication and returns its path.
    pub(crate) fn build_for_release(&self, triple: &str) -> Result<PathBuf> {
        self.build("build", &release_arguments(triple), None)
    }

    /// Builds the program like [`Self::build_for_release`], with zig. A version of glibc may follow
    /// the triple: `x86_64-unknown-linux-gnu.2.28`.
    pub(crate) fn build_with_zig(&self, zig: &Zig, triple: &str) -> Result<PathBuf> {
        self.build("zigbuild", &release_arguments(triple), Some(zig))
    }

    /// Builds the development program for another platform with zig, and returns its path.
    pub(crate) fn build_foreign_program(&self, zig: &Zig, triple: &str) -> Result<PathBuf> {
        self.build("zigbuild", &["--target", triple], Some(zig))
    }

    /// Tests lakes in buckets with an S3 server, which is the program `server`.
    pub(crate) fn test_buckets(&self, server: &str) -> Result<()> {
        let args = ["test", "-p", "sessions-mcp", "--features", "cloud", "--test", "it"];
        let args = self.with_features(&args);
        let args = [&args[..], &["--", "buckets"]].concat();
        let mut command = self.cargo_command(&args);
        command.env("SESSIONS_S3_SERVER", server);
        shell::run_command(command)
    }

    /// Packages the crates, compiles each from its package, and uploads nothing.
    pub(crate) fn dry_run_publish(&self) -> Result<()> {
        // Checks run before a change is committed, too.
        let flags = ["--dry-run", "--allow-dirty", "--workspace", "--exclude", "xtask"];
        self.run(&[&["publish"], &flags[..]].concat(), &[])
    }

    fn build(&self, subcommand: &str, more: &[&str], zig: Option<&Zig>) -> Result<PathBuf> {
        // Without `--package`, the features of the dependencies are those of `build`, so each of
        // the two reuses what the other compiled.
        let args = [&[subcommand, "--bin", "sessions"], more].concat();
        let mut args = self.with_features(&args);

        let shown = command_line(&args);
        eprintln!("$ {shown}");
        args.extend(["--message-format", "json-render-diagnostics"]);
        let mut command = match zig {
            Some(zig) => {
                let mut command = zig.cargo_command(self.root, &args);
                command.envs(self.variables.iter().map(|(name, value)| (name, value)));
                command
            }
            None => self.cargo_command(&args),
        };
        if args.contains(&DIST) {
            let flags = match zig {
                Some(_) => format!("{SMALL_DUCKDB} {MERGE_FUNCTIONS}"),
                None => SMALL_DUCKDB.to_owned(),
            };
            command.env("CXXFLAGS", flags);
        }
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| {
            TaskFailure::step(format!("`{shown}` could not be started: {error}"))
        })?;
        if !output.status.success() {
            return Err(TaskFailure::Program { line: shown, code: output.status.code() });
        }
        let found = find_executable(&String::from_utf8_lossy(&output.stdout));
        found.ok_or_else(|| TaskFailure::step(format!("`{shown}` names no program that it built")))
    }

    /// Returns the arguments with the features that the lane needs.
    fn with_features<'b>(&self, args: &[&'b str]) -> Vec<&'b str> {
        let mut args = args.to_vec();
        if self.lane == Lane::Bundled {
            args.extend(["--features", "sessions-mcp/bundled"]);
        }
        // The documentation of other packages has no such feature.
        if self.protoc.is_some() && args.contains(&"--workspace") {
            args.extend(["--features", "sessions-mcp/spark"]);
        }
        args
    }

    fn cargo_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(args).current_dir(self.root);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(protoc) = &self.protoc {
            command
                .env("PROTOC", protoc)
                .env(spark::ADDRESS_VARIABLE, spark::ADDRESS)
                .env(spark::PROCESSES_VARIABLE, spark::processes_folder(self.root));
        }
        command
    }
}

/// Returns the arguments that build a program for publication. It can use lakes in buckets.
fn release_arguments(triple: &str) -> [&str; 7] {
    ["--profile", DIST, "--locked", "--target", triple, "--features", "sessions-mcp/cloud"]
}

/// Returns a command of cargo as the user would type it.
fn command_line(args: &[&str]) -> String {
    format!("cargo {}", shell::quote_arguments(args.iter().copied()))
}

/// Returns the path of the program from cargo's JSON messages.
fn find_executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| {
        message["target"]["kind"][0] == "bin" && message["target"]["name"] == "sessions"
    });
    programs.find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)))
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
        assert_eq!(find_executable(messages), Some(PathBuf::from("/t/sessions")));
        assert_eq!(find_executable(""), None);
    }
}
