//! `sessions compact` merges full segments into large ones, one commit after the other.

use std::fs;
use std::sync::Arc;

use ingest::discover::discover;
use ingest::plan::plan;
use ingest::redact::Redactor;
use ingest::run::run;
use serde_json::{Value, json};
use store::{Store, Verify};

use crate::checks::JsonChecks;
use crate::env::{TestEnv, manifest_of};

/// Ingests that the store of the test has, each with a segment of its own.
const ROUNDS: usize = 15;

/// Adds a prompt to a log, which begins with it if it is new.
fn append(env: &TestEnv, name: &str, text: &str) {
    let path = format!("logs/{name}.jsonl");
    if !env.path(&path).exists() {
        env.log(name).cwd("/home/mira").write();
    }
    env.append_prompt(path, "2026-01-05T10:00:00Z", text);
}

/// Adds a line to a log that is no JSON, which is a problem.
fn append_broken_line(env: &TestEnv, name: &str) {
    env.append(format!("logs/{name}.jsonl"), "{broken\n");
}

/// Reads what is new in the logs into one segment, which is not merged with others.
fn ingest_one_segment(env: &TestEnv) {
    let redactor = Arc::new(Redactor::new(&[]).expect("rules"));
    let writer = Store::new(env.store()).open_writer(Verify::Some).expect("opens");
    let known = writer.collect_known_logs().expect("reads");
    let plan = plan(discover(&[env.path("logs")]), &known, Some(&redactor));
    run(plan, &&writer, Some(&redactor), &()).expect("runs");
}

/// The store after some ingests: a session that grows in each, one in every fourth, one that only one
/// ingest reads, and one whose log is replaced twice.
fn grown_store() -> TestEnv {
    let env = TestEnv::new();
    for round in 0..ROUNDS {
        append(&env, "steady", &format!("steadyword in round {round}"));
        append(&env, &format!("fourth{}", round % 4), &format!("fourthword in round {round}"));
        append(&env, &format!("single{round}"), &format!("singleword{round} alone"));
        if round % 5 == 2 {
            fs::remove_file(env.path("logs/replaced.jsonl")).unwrap_or_default();
            append(&env, "replaced", &format!("replacedword by round {round}"));
            append_broken_line(&env, "replaced");
        }
        append_broken_line(&env, &format!("single{round}"));
        ingest_one_segment(&env);
    }
    env
}

/// Returns what the store answers: every event, every session without the places of its rows, problems, and
/// searches.
fn answers(env: &TestEnv) -> Vec<Value> {
    let events =
        "SELECT session_id, event_index, text, timestamp::VARCHAR FROM events ORDER BY ALL";
    let sessions =
        "SELECT session_id, events, user_messages, source_path FROM sessions ORDER BY ALL";
    let problems = "SELECT path, line, kind FROM problems ORDER BY ALL";
    let show = env.json(["show", "steady", "--detail-level", "full"]);
    let mut answers = [events, sessions, problems].map(|sql| json!(env.rows(sql))).to_vec();
    answers.push(show["data"].clone());
    for query in ["steadyword", "round", "replacedword", "singleword7", "absentword"] {
        let found = env.json(["search", query, "--limit", "50"]);
        assert_eq!(found["status"], "ok");
        answers.push(found["data"].clone());
    }
    answers
}

/// The numbers of the segments, in the order of the manifest.
fn numbers(env: &TestEnv) -> Vec<i64> {
    let manifest = manifest_of(&env.store());
    let segments = manifest["segments"].list().iter();
    segments.map(|segment| segment["number"].as_i64().expect("a number")).collect()
}

/// A size of groups by which the segments of the store form four groups or more.
fn group_bytes(env: &TestEnv) -> u64 {
    let snapshot = Store::new(env.store()).take_snapshot().expect("reads");
    let largest = snapshot.segments().iter().map(|segment| segment.entry.bytes()).max();
    largest.expect("segments") * 3
}

/// Merges the next group. Returns false if there is none.
fn merge_next(env: &TestEnv, group_bytes: u64) -> bool {
    let writer = Store::new(env.store()).open_writer(Verify::Some).expect("opens");
    writer.merge_full_segments(group_bytes).expect("merges")
}

#[test]
fn answers_stay_the_same_after_each_merge() {
    let env = grown_store();
    let group_bytes = group_bytes(&env);
    let before = answers(&env);
    assert_eq!(numbers(&env).len(), ROUNDS);
    let mut merges = 0;
    while merge_next(&env, group_bytes) {
        merges += 1;
        assert_eq!(answers(&env), before, "after {merges} merges");
        assert!(numbers(&env).is_sorted_by(|one, next| one < next), "{:?}", numbers(&env));
    }
    assert!(merges >= 3, "{merges}");
    assert!(numbers(&env).len() < ROUNDS / 3, "{:?}", numbers(&env));
    // The states of the logs are kept, so none is read again.
    let report = env.ingest("logs");
    assert_eq!(report["files_unchanged"], report["files"]);
    // New events follow the merged ones.
    append(&env, "steady", "a late steadyword");
    ingest_one_segment(&env);
    while merge_next(&env, group_bytes) {}
    let rows = env.rows("SELECT count(*) FROM events WHERE session_id = 'steady'");
    assert_eq!(rows[0][0], ROUNDS + 1);
}

#[test]
fn sessions_grow_and_are_replaced_between_two_merges() {
    let env = grown_store();
    let group_bytes = group_bytes(&env);
    assert!(merge_next(&env, group_bytes));
    append(&env, "steady", "steadyword between merges");
    env.remove("logs/replaced.jsonl");
    append(&env, "replaced", "replacedword at last");
    ingest_one_segment(&env);
    let grown = answers(&env);
    while merge_next(&env, group_bytes) {
        assert_eq!(answers(&env), grown);
    }
    let rows = env.rows("SELECT text FROM events WHERE session_id = 'replaced'");
    assert_eq!(json!(rows), json!([["replacedword at last"]]));
    // No number is used twice.
    let last = *numbers(&env).last().expect("segments");
    append(&env, "steady", "one more");
    ingest_one_segment(&env);
    assert!(numbers(&env).last() > Some(&last));
}

/// An edit writes segments again from the first one that it changes, and merges continue afterwards.
#[test]
fn segments_are_written_again_between_two_merges() {
    let env = grown_store();
    let group_bytes = group_bytes(&env);
    assert!(merge_next(&env, group_bytes));
    env.run(["forget", "single1", "--yes"]).ok();
    let left = answers(&env);
    let count = numbers(&env).len();
    while merge_next(&env, group_bytes) {
        assert_eq!(answers(&env), left);
    }
    assert!(numbers(&env).len() < count / 2, "{:?} of {count}", numbers(&env));
    assert!(env.rows("SELECT 1 FROM sessions WHERE session_id = 'single1'").is_empty());
}

#[test]
fn a_damaged_segment_is_not_merged() {
    let env = grown_store();
    let group_bytes = group_bytes(&env);
    let writer = Store::new(env.store()).open_writer(Verify::Some).expect("opens");
    let before = numbers(&env);
    for number in &before {
        let events = env.store().join(format!("segments/{number:010}/events.parquet"));
        fs::write(events, "damaged").expect("writes");
    }
    assert!(writer.merge_full_segments(group_bytes).is_err());
    drop(writer);
    assert_eq!(numbers(&env), before);
}
