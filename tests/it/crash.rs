//! Killed at any instant and run again, an ingest ends with the content of an undisturbed one.

use std::time::Instant;

use serde_json::json;

use crate::checks::JsonChecks;
use crate::env::{Random, TestEnv, real_logs, samples};
use crate::rounds::rounds;

/// Hashes of the content of every session, whatever segments it lies in.
pub(crate) fn content(env: &TestEnv) -> serde_json::Value {
    let events = "SELECT session_id, count(*), max(event_index), bit_xor(hash(e)) FROM events e GROUP BY 1 ORDER BY 1";
    let sessions = "SELECT bit_xor(hash(s)), count(*) FROM sessions s";
    json!([env.rows(events), env.rows(sessions)])
}

fn killed_runs(paths: &[String], kills: usize, seed: u64) {
    let args: Vec<&str> =
        ["ingest", "--quiet"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let calm = TestEnv::new();
    let start = Instant::now();
    calm.run(&args).ok();
    let whole = start.elapsed();
    let want = content(&calm);
    let mut random = Random(seed);
    let mut env = TestEnv::new();
    let mut killed = 0;
    let mut rounds = 0;
    while killed < kills {
        rounds += 1;
        let is_killed = env.cli(&args).kill_within(whole, &mut random);
        killed += usize::from(is_killed);
        if !is_killed || rounds % 5 == 0 {
            env.run(&args).ok();
            compare(&want, &content(&env), killed);
            env = TestEnv::new();
        }
        assert!(rounds < 20 * kills, "the ingest is too quick to be killed");
    }
    env.run(&args).ok();
    compare(&want, &content(&env), killed);
}

/// Names the sessions that differ, not all of them.
pub(crate) fn compare(want: &serde_json::Value, got: &serde_json::Value, killed: usize) {
    let rows = |content: &serde_json::Value| content[0].list().to_vec();
    let differing: Vec<_> = rows(want)
        .into_iter()
        .filter(|row| !rows(got).contains(row))
        .chain(rows(got).into_iter().filter(|row| !rows(want).contains(row)))
        .collect();
    assert!(differing.is_empty(), "after {killed} kills: {differing:?}");
    assert_eq!(want[1], got[1], "after {killed} kills the session rows differ");
}

#[test]
fn samples_survive_ten_kills() {
    killed_runs(&[samples().to_string_lossy().into_owned()], 10, 7);
}

#[test]
fn real_logs_survive_kills() {
    let Some(logs) = real_logs() else { return };
    // A part of them: fifty times all of it, without optimisation, takes ten minutes.
    let paths = ["codex", "gemini", "opencode", "pi"];
    let paths = paths.map(|name| logs.join(name).to_string_lossy().into_owned());
    killed_runs(&paths, rounds(50), 42);
}
