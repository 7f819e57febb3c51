//! `cargo xtask test`: the whole test suite.

use std::env;
use std::path::Path;

use crate::cargo::Cargo;
use crate::failure::Result;
use crate::options::Options;

pub(crate) const REAL_LOGS: &str = "SESSIONS_REAL_LOGS";

pub(crate) fn run(root: &Path, options: Options) -> Result<()> {
    let cargo = Cargo::new(root, options.bundled)?;
    // A CI takes the runner's summary from the last lines, so there the notice comes first.
    let ci = env::var_os("CI").is_some();
    if ci {
        tell_what_is_skipped();
    }
    let result = if cargo.has("nextest") {
        cargo.run(&["nextest", "run", "--workspace"], &options.rest)
    } else {
        cargo.run(&["test", "--workspace"], &options.rest)
    };
    if !ci {
        tell_what_is_skipped();
    }
    result
}

fn tell_what_is_skipped() {
    if env::var_os(REAL_LOGS).is_none_or(|value| value.is_empty()) {
        eprintln!("real-log tests were skipped: set {REAL_LOGS}=<dir> to run them");
    }
}
