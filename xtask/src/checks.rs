//! `cargo xtask checks`: the checks that the test suite leaves to other programs: spelling,
//! licences, and a comparison of the figures and files of `sessions` with independent readers.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::Cargo;
use crate::failure::{Failure, Result};
use crate::options::Options;
use crate::shell;
use crate::suite::REAL_LOGS;

/// Directories that Python's packages and npm's packages are installed into.
const VENV: &str = "target/checks";
const PACKAGES: &str = "target/checks/npm";

const SPELLING: &str = "typos==1.52.0";
const AXE: &str = "axe-core@4.14.1";
const CCUSAGE: &str = "@ccusage/ccusage-linux-x64@20.0.24";

/// One check, and what it needs to run.
struct Check {
    name: &'static str,
    /// Requirements in addition to Python and npm.
    needs: Needs,
    run: fn(&Setup<'_>) -> Result<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// One of these programs. The text says how to get it.
    Program(&'static [&'static str], &'static str),
    /// Real logs, in the folder that [`REAL_LOGS`] names.
    Logs,
}

const CHECKS: &[Check] = &[
    Check { name: "spelling", needs: Needs::Nothing, run: spelling },
    Check {
        name: "licences",
        needs: Needs::Program(&["cargo-deny"], "cargo install cargo-deny --locked"),
        run: licences,
    },
    Check { name: "export", needs: Needs::Nothing, run: export },
    Check {
        name: "report",
        needs: Needs::Program(
            &["chromium", "chromium-browser", "google-chrome"],
            "the package chromium of the system",
        ),
        run: report,
    },
    Check { name: "stats", needs: Needs::Logs, run: stats },
    Check { name: "ccusage", needs: Needs::Logs, run: ccusage },
    Check { name: "metadata", needs: Needs::Logs, run: metadata },
];

/// The settings that the checks run with.
struct Setup<'a> {
    root: &'a Path,
    bundled: bool,
    logs: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, options: Options) -> Result<()> {
    let known = |name: &String| CHECKS.iter().any(|check| check.name == name);
    if let Some(unknown) = options.rest.iter().find(|name| !known(name)) {
        let names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        return Err(Failure::usage(format!(
            "there is no check `{unknown}`; there are {}",
            names.join(", ")
        )));
    }
    let logs = std::env::var_os(REAL_LOGS).filter(|logs| !logs.is_empty()).map(PathBuf::from);
    let setup = Setup { root, bundled: options.bundled, logs };
    let mut wrong = Vec::new();
    for check in CHECKS {
        if !options.rest.is_empty() && options.rest.iter().all(|name| name != check.name) {
            continue;
        }
        let result = setup.missing(check.needs).map_or_else(|| (check.run)(&setup), Err);
        if let Err(failure) = result {
            wrong.push(format!("{}: {failure}", check.name));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::step(wrong.join("\n       "))) }
}

impl Setup<'_> {
    /// Returns why a check cannot run, or `None` if it can.
    fn missing(&self, needs: Needs) -> Option<Failure> {
        match needs {
            Needs::Program(programs, from) if !programs.iter().any(is_installed) => {
                Some(Failure::step(format!("needs {}: {from}", programs.join(" or "))))
            }
            Needs::Logs if self.logs.is_none() => Some(Failure::step(format!(
                "needs real logs: set {REAL_LOGS}=<dir> to a folder with one folder an agent"
            ))),
            Needs::Nothing | Needs::Program(..) | Needs::Logs => None,
        }
    }

    /// Returns the folder of real logs, or of the sample sessions if there are none.
    fn logs(&self) -> String {
        let logs = self.logs.clone().unwrap_or_else(|| self.root.join("sample-sessions"));
        logs.to_string_lossy().into_owned()
    }

    fn step(&self, program: &str, args: &[&str]) -> Result<()> {
        shell::step(self.root, program, args)
    }

    fn install(&self, args: &[&str]) -> Result<()> {
        self.step("python3", &["-m", "venv", VENV])?;
        let python = self.python();
        self.step(&python, &[&["-m", "pip", "install", "--quiet"], args].concat())
    }

    fn python(&self) -> String {
        self.root.join(VENV).join("bin/python").to_string_lossy().into_owned()
    }

    fn npm(&self, package: &str) -> Result<()> {
        self.step("npm", &["install", "--no-audit", "--no-fund", "--prefix", PACKAGES, package])
    }

    /// Runs a script in `tests/` with the binary and further arguments.
    fn script(&self, script: &str, args: &[&str]) -> Result<()> {
        self.install(&["-r", "tests/requirements.txt"])?;
        let program = Cargo::new(self.root, self.bundled)?.program(false)?;
        let (python, script) = (self.python(), format!("tests/{script}"));
        let program = program.to_string_lossy();
        self.step(&python, &[&[script.as_str(), &*program], args].concat())
    }
}

fn is_installed(program: &&str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

fn spelling(setup: &Setup<'_>) -> Result<()> {
    setup.install(&[SPELLING])?;
    let typos = setup.root.join(VENV).join("bin/typos");
    setup.step(&typos.to_string_lossy(), &[])
}

fn licences(setup: &Setup<'_>) -> Result<()> {
    setup.step("cargo", &["deny", "check", "bans", "licenses", "sources"])
}

fn export(setup: &Setup<'_>) -> Result<()> {
    setup.script("check_export.py", &[&setup.logs()])
}

fn report(setup: &Setup<'_>) -> Result<()> {
    setup.npm(AXE)?;
    let axe = format!("{PACKAGES}/node_modules/axe-core/axe.min.js");
    setup.script("check_report.py", &[&setup.logs(), "--axe", &axe])
}

fn stats(setup: &Setup<'_>) -> Result<()> {
    setup.script("check_stats.py", &[&setup.logs()])
}

fn ccusage(setup: &Setup<'_>) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Failure::step("needs Linux on x86-64, for which the package is"));
    }
    setup.npm(CCUSAGE)?;
    let ccusage = format!("{PACKAGES}/node_modules/@ccusage/ccusage-linux-x64/bin/ccusage");
    // The package does not mark the file as executable.
    setup.step("chmod", &["+x", &ccusage])?;
    setup.script("compare_ccusage.py", &[&ccusage, &setup.logs()])
}

fn metadata(setup: &Setup<'_>) -> Result<()> {
    setup.script("compare_metadata.py", &[&setup.logs()])
}
