//! The rounds of tests that try many cases: a fifth of them, or all with `cargo xtask test --full`. The
//! tests of `ingest` share this file.

use crate::left_out::report_left_out;

/// The variable with the rounds to do, in percent of all; `cargo xtask test --full` sets it to 100.
const ROUNDS_VARIABLE: &str = "SESSIONS_TEST_ROUNDS";

/// Percentage of rounds without the variable.
const USUAL_PERCENT: usize = 20;

/// Returns how many of `all` rounds a test does: at least one.
pub(crate) fn rounds(all: usize) -> usize {
    let percent = std::env::var(ROUNDS_VARIABLE).map_or(USUAL_PERCENT, |percent| {
        percent.parse().expect("SESSIONS_TEST_ROUNDS is a number")
    });
    let rounds = (all * percent).div_ceil(100).max(1);
    if rounds < all {
        let reason = "`cargo xtask test --full` does all rounds of tests that try many cases";
        report_left_out(reason, &format!("{rounds} of {all} rounds"));
    }
    rounds
}
