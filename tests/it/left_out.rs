//! Reports what tests leave out: tests whose logs or programs are missing, and rounds of tests that
//! try many cases. `cargo xtask test` prints it at its end. The tests of `ingest` share this file.

use std::fs::OpenOptions;
use std::io::Write as _;

/// The variable that names the file to which tests append what they leave out; `cargo xtask test` sets
/// it.
const FILE_VARIABLE: &str = "SESSIONS_TESTS_LEFT_OUT";

/// Reports why the test that runs, or a part of it, is left out. `part` is empty or names the part.
#[expect(clippy::print_stderr, reason = "a skipped test must be noticed")]
pub(crate) fn report_left_out(reason: &str, part: &str) {
    let thread = std::thread::current();
    let mut test = thread.name().unwrap_or("a test").to_owned();
    if !part.is_empty() {
        test = format!("{test} ({part})");
    }
    eprintln!("SKIPPED: {test}: {reason}");
    if let Some(path) = std::env::var_os(FILE_VARIABLE) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // One write, so that tests that run at the same time do not mix their lines.
        file.expect("opens").write_all(format!("{reason}\t{test}\n").as_bytes()).expect("appends");
    }
}
