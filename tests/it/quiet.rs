//! `--quiet` leaves out remarks, and never an error.

use crate::checks::Checks;
use crate::env::{TestEnv, samples};

const MAIN: &str = "9ae82b3a";

/// Runs a command with and without `--quiet`. Both must end alike and say the same errors, one of
/// which contains `wanted`.
#[track_caller]
fn check(env: &TestEnv, args: &[&str], wanted: &str) {
    let loud = env.run(args);
    let quiet = env.run([&["--quiet"], args].concat());
    assert_eq!(quiet.code, loud.code, "{args:?}: {}", quiet.stderr);
    let is_error = |line: &&str| line.starts_with("error:");
    let errors: Vec<&str> = loud.stderr.lines().filter(is_error).collect();
    assert!(errors.iter().any(|error| error.contains(wanted)), "{args:?}: {}", loud.stderr);
    let quiet_errors: Vec<&str> = quiet.stderr.lines().filter(is_error).collect();
    assert_eq!(quiet_errors, errors, "{args:?}");
}

#[test]
fn damage_is_said_by_every_command_that_answers() {
    let env = TestEnv::with_samples();
    env.write("store/labels.json", "{");
    for args in [
        &["query", "SELECT * FROM labels WHERE label = 'kept'"][..],
        &["list"],
        &["list", "--label", "kept"],
        &["search", "retry"],
        &["search", "label:kept"],
        &["find", "retry"],
        &["show", MAIN],
        &["event", "9ae82b3a:1"],
        &["stats"],
        &["usage"],
        &["analyze", MAIN],
        &["compact", "--dry-run"],
        &["forget", MAIN],
        &["export", "markdown", MAIN],
        &["report", "-o", "-"],
    ] {
        check(&env, args, "labels.json");
    }
    for command in ["status", "doctor"] {
        // Their data says so.
        env.run(["--quiet", command]).stdout.shows("labels.json");
    }
}

#[test]
fn errors_of_arguments_and_stores_are_said() {
    let env = TestEnv::with_samples();
    check(&env, &["query", "SELEC 1"], "SELEC");
    check(&env, &["show", "nowhere"], "nowhere");
    check(&env, &["event", "nowhere:1"], "nowhere");
    check(&env, &["list", "--since", "never"], "since");
    check(&env, &["search", "/(/"], "regular expression");
    check(&env, &["query", "-f", "missing.sql"], "missing.sql");
    check(&env, &["ingest", "missing"], "missing");
    env.run(["--quiet", "list", "--wrong"]).fails(2).says("--wrong");
    env.run(["--quiet"]).fails(2).says("Usage: sessions");
}

#[test]
fn logs_that_cannot_be_read_are_said() {
    let env = TestEnv::new();
    env.write("logs/damaged.jsonl.gz", "no gzip");
    let said = env.run(["ingest", "--quiet", "logs"]).prints("");
    assert!(said.stderr.starts_with("error: 1 file could not be read"), "{}", said.stderr);
    said.stderr.shows("damaged.jsonl");
}

#[test]
fn sessions_that_are_not_published_are_said() {
    let env = TestEnv::new();
    env.write_settings("[publish]\ninclude = [\"/**\"]\n");
    env.run(["ingest", "--quiet", "--no-redact", &samples().to_string_lossy()]).ok();
    check(&env, &["push", "lake"], "--no-redact");
}
