//! `cargo xtask`: runs the chores of this workspace, starting from a clean clone.
//!
//! It calls cargo, npm and tar as programs. It must not depend on the workspace's other crates,
//! because it has to run before DuckDB is available to link them.

mod cargo;
mod checks;
mod clients;
mod demo;
mod digest;
mod dist;
mod duckdb;
mod failure;
mod foreign;
mod install;
mod lock;
mod npm;
mod options;
mod pin;
mod python;
mod release;
mod scratch;
mod shell;
mod spark;
mod suite;
mod web;
mod zig;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::failure::{Result, TaskFailure};
use crate::options::TaskOptions;

fn main() -> ExitCode {
    match run_command() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// One command of `cargo xtask`.
struct XtaskCommand {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    details: &'static str,
    run: fn(&Path, TaskOptions) -> Result<()>,
}

const COMMANDS: &[XtaskCommand] = &[
    XtaskCommand {
        name: "fetch",
        arguments: "",
        about: "Get the prebuilt DuckDB library into target/duckdb, once",
        details: "\
Takes the npm package that xtask/duckdb.lock pins for this platform, checks its SHA-512 and unpacks
the library. A second call does nothing and needs no network. Where the library cannot be had, the
other commands compile DuckDB from source; a wrong checksum is an error.",
        run: fetch_duckdb,
    },
    XtaskCommand {
        name: "build",
        arguments: "[--bundled] [CARGO BUILD ARGS]...",
        about: "Fetch DuckDB and build the workspace (`--release` for a release build)",
        details: "Arguments other than --bundled go to `cargo build`.",
        run: build_workspace,
    },
    XtaskCommand {
        name: "test",
        arguments: "[--bundled] [--full] [--spark] [RUNNER ARGS]...",
        about: "Run the test suite (`--full`: every round of it, as CI does)",
        details: "\
Runs `cargo nextest run --workspace`, or `cargo test --workspace` where cargo-nextest is not
installed. Arguments other than these flags go to that command.
Tests that try many cases do a fifth of their rounds; with --full they do all of them.
SESSIONS_TEST_ROUNDS=500 (percent) does five times as many.
At the end it prints what was left out and why: rounds, and tests that need programs or logs.
With --spark it builds the feature `spark`, and runs its tests on the cluster of `cargo xtask spark
up`, which it starts and ends; see there for what it needs.
SESSIONS_REAL_LOGS=<dir> adds the tests that read real logs.",
        run: suite::run,
    },
    XtaskCommand {
        name: "spark",
        arguments: "install|up|down",
        about: "Start or end a small cluster of Apache Spark for the tests of --engine",
        details: "\
`up` starts a master, two workers and the Connect server on loopback, and prints its address; what
runs already stays. `down` ends them. `install` only installs pyspark, and the protoc that the feature
`spark` is built with: set PROTOC=target/spark/protoc. Needs Python 3 with venv, PyPI, and Java 17.
Everything is in target/spark.",
        run: spark::run,
    },
    XtaskCommand {
        name: "clients",
        arguments: "[--bundled]",
        about: "Run the server under the official clients and the conformance suite of MCP",
        details: "\
Needs Python 3.11 or newer with venv, npm, and the registries of both. Puts the clients into
target/clients and tests/clients/typescript/node_modules.",
        run: clients::run,
    },
    XtaskCommand {
        name: "checks",
        arguments: "[--bundled] [NAME]...",
        about: "Run what other programs check: spelling, licences, exports, reports, the page, sums",
        details: "\
NAME is one of spelling, licences, export, analysts, report, web, app, bucket, workflows, crates,
platforms, windows, arm, packages, plugins, agents, stats, ccusage, harbor and metadata; without one all
run. Needs Python 3.11 or newer (harbor: 3.12) with venv, npm, and the registries of both; what else a
check needs, it says. Packages go into target/checks. SESSIONS_REAL_LOGS=<dir> gives the logs; without it exports and
reports are made of the sample sessions, ccusage and harbor compare those only, and stats and metadata do not run.",
        run: checks::run,
    },
    XtaskCommand {
        name: "web",
        arguments: "[--check]",
        about: "Build the page of `sessions web` into the files that the program embeds",
        details: "\
Installs the packages that src/page/source/package-lock.json pins into target/web, checks the
types, and writes src/page/bundle. With --check it compares instead of writing. Needs npm and
its registry.",
        run: web::run,
    },
    XtaskCommand {
        name: "pictures",
        arguments: "[--bundled]",
        about: "Draw the pictures of README that are out of date",
        details: "\
They show the sample sessions. Needs Chromium for the page; the screens are SVG.",
        run: draw_pictures,
    },
    XtaskCommand {
        name: "demo",
        arguments: "[--bundled]",
        about: "Build, then ingest the sample sessions and search them",
        details: "Works on a temporary store, which it removes in the end.",
        run: demo::run,
    },
    XtaskCommand {
        name: "install",
        arguments: "[--prefix DIR] [--bundled]",
        about: "Install a release build under ~/.local, or under DIR",
        details: "\
Puts the program into DIR/bin and the DuckDB library into DIR/lib/sessions. With --bundled DuckDB is
inside the program.",
        run: install::run,
    },
    XtaskCommand {
        name: "dist",
        arguments: "[--binary FILE] [--target TRIPLE] [--out DIR] [--compression 0-9] [--summary]",
        about: "Package the program for PyPI, npm, Debian, MCPB and others",
        details: "\
Builds the program with DuckDB inside, in the profile `dist`, or takes the program FILE. Writes into
target/dist-packages, or DIR: an archive, the wheel, two npm packages, the MCPB bundle, the Debian
package, the bill of materials, manifests for Homebrew, Nix, Scoop and winget, install.sh, and the
SHA-256 sums. With --summary it packages nothing, and writes manifests, install.sh and sums again for
the archives of all platforms that are in DIR.",
        run: dist::run,
    },
    XtaskCommand {
        name: "release",
        arguments: "--dry-run",
        about: "Check without a network that everything for a release is ready",
        details: "\
Prints one line for each check, and then the commands that a person runs (docs/releasing.md). Builds
nothing, and changes nothing.",
        run: release::run,
    },
    XtaskCommand {
        name: "bench",
        arguments: "[--bundled] [CARGO BENCH ARGS]...",
        about: "Run the benchmarks in the release profile",
        details: "\
Arguments other than --bundled are the sizes of the generated logs in GB (0.1).
`retrieval FILE_OR_FOLDER` measures which sessions are found instead: on LoCoMo, or with
`retrieval QUESTIONS LOGS` on questions about a folder of logs. `hooks LOGS` replays a folder of logs
to the hooks, and compares what they say with what the sessions did next.",
        run: run_benchmarks,
    },
    XtaskCommand {
        name: "pin",
        arguments: "[VERSION]",
        about: "Rewrite xtask/duckdb.lock for VERSION, or for the version in it",
        details: "\
Asks npm for each platform's checksum. A platform whose package npm does not have gets no line. It
is an error if a package that is already pinned now has another checksum.",
        run: pin::run,
    },
];

/// Runs the command that the arguments name.
fn run_command() -> Result<()> {
    let mut args = options::process_arguments()?.into_iter();
    let Some(name) = args.next() else {
        return Err(TaskFailure::usage(format!("no command given\n\n{}", overview_text())));
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        shell::print_line(&overview_text());
        return Ok(());
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        return Err(TaskFailure::usage(format!(
            "there is no command `{name}`; the commands are {}",
            names.join(", ")
        )));
    };

    let options = TaskOptions::parse(args);
    if options.help {
        shell::print_line(&command.help_text());
        return Ok(());
    }
    (command.run)(&workspace_root(), options)
}

impl XtaskCommand {
    fn help_text(&self) -> String {
        let usage = format!("cargo xtask {} {}", self.name, self.arguments);
        let mut text = format!("{}\n\nUsage: {}\n\n{}", self.about, usage.trim(), self.details);
        if self.arguments.contains("--bundled") {
            text.push_str(
                "\n--bundled compiles DuckDB from source, about half an hour on two cores.",
            );
        }
        text
    }
}

fn overview_text() -> String {
    let mut text = String::from("Usage: cargo xtask COMMAND [ARGS]...\n\nCommands:\n");
    for command in COMMANDS {
        text.push_str(&format!("  {:<9}{}\n", command.name, command.about));
    }
    text.push_str("\n`cargo xtask COMMAND --help` describes a command.");
    text
}

/// Runs the tests that compare the pictures, and write those that differ.
fn draw_pictures(root: &Path, options: TaskOptions) -> Result<()> {
    options.refuse_rest("pictures")?;
    let cargo = cargo::Cargo::new(root, options.bundled)?.with_variable("UPDATE_DOCS", "1");
    cargo.run(&["test", "--test", "it"], &["--", "pictures::"].map(str::to_owned))
}

fn fetch_duckdb(root: &Path, options: TaskOptions) -> Result<()> {
    options.refuse_rest("fetch")?;
    if options.bundled {
        return Err(TaskFailure::usage("with --bundled there is nothing to fetch"));
    }
    duckdb::choose_lane(root, false).map(|_| ())
}

fn build_workspace(root: &Path, options: TaskOptions) -> Result<()> {
    cargo::Cargo::new(root, options.bundled)?.run(&["build"], &options.rest)
}

fn run_benchmarks(root: &Path, options: TaskOptions) -> Result<()> {
    cargo::Cargo::new(root, options.bundled)?
        .run(&["bench", "--bench", "sessions", "--"], &options.rest)
}

/// Returns the root of the workspace that xtask runs in.
fn workspace_root() -> PathBuf {
    let member = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    member.parent().map(Path::to_path_buf).unwrap_or(member)
}
