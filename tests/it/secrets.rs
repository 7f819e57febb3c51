//! `sessions secrets`: says where secrets lie in the logs on this machine, and never what they are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{TestEnv, make_old};
use crate::lake::{machine, push};
use crate::log::claude_record;
use crate::scrub::{content, scrub};

fn token() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
}

/// Ingests a log of two prompts; the second one has the token twice.
fn ingest_leak(env: &TestEnv, id: &str, cwd: &str, time: &str) -> std::path::PathBuf {
    let token = token();
    let log = env.log(id).cwd(cwd).at(time).user("Look at the harbor");
    log.user(&format!("Use {token}, I mean {token}")).ingest()
}

/// Runs the command, which must not print the token, and returns its answer.
fn secrets(env: &TestEnv, args: &[&str]) -> Value {
    let ran = env.run([&["secrets", "--json"], args].concat());
    ran.stdout.lacks("ghp_a1");
    let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let is_clean = answer["secrets"] == json!([]) && answer["unmasked_logs"] == 0;
    assert_eq!(ran.code, i32::from(!is_clean), "{}", ran.stderr);
    answer
}

#[test]
fn each_secret_is_found_at_its_place_in_the_log() {
    let env = TestEnv::new();
    let log = ingest_leak(&env, "leak", "/work/harbor", "2026-11-20T08:00:00Z");
    let answer = secrets(&env, &[]);
    let found = &answer["secrets"][0];
    assert_eq!(answer["secrets"].list().len(), 1);
    assert_eq!(answer["by_kind"], json!({ "github_token": 2 }));
    found.has(json!({
        "kind": "github_token", "count": 2, "session_id": "leak", "log_exists": true,
    }));
    assert_eq!(found["places"][0]["event_id"], "leak:1");
    let text = env.read(&log);
    let at = |name: &str| found["places"][0][name].as_u64().expect("a number") as usize;
    let record = &text[at("byte")..at("byte") + at("bytes")];
    assert_eq!(record.matches(&token()).count(), 2, "{record}");
    assert_eq!(found["file"], log.to_string_lossy().as_ref());

    env.run(["secrets"]).fails(1).shows("leak:1").lacks("ghp_a1");
}

#[test]
fn filters_narrow_what_is_listed() {
    let env = TestEnv::new();
    ingest_leak(&env, "old", "/work/harbor", "2026-05-20T08:00:00Z");
    ingest_leak(&env, "new", "/work/pier", "2026-11-20T08:00:00Z");
    let ids = |args: &[&str]| -> Vec<Value> {
        let answer = secrets(&env, args);
        let list = answer["secrets"].list();
        list.iter().map(|found| found["session_id"].clone()).collect()
    };
    assert_eq!(ids(&[]), ["new", "old"]);
    assert_eq!(ids(&["--project", "harbor"]), ["old"]);
    assert_eq!(ids(&["--since", "2026-11-01"]), ["new"]);
    assert_eq!(ids(&["--kind", "github_token"]).len(), 2);
    assert!(ids(&["--kind", "aws_secret_key"]).is_empty());
    env.run(["secrets", "--kind", "github-token"]).fails(2).says("github_token");
    env.run(["forget", "new", "--yes"]).ok();
    assert_eq!(ids(&[]), ["old"]);
}

#[test]
fn a_session_says_whether_its_log_exists_and_whether_it_was_pushed() {
    let env = machine("pier", "mira", "include = ['**']\ncontent = 'full'");
    let log = ingest_leak(&env, "leak", "/work/harbor", "2026-11-20T08:00:00Z");
    assert_eq!(secrets(&env, &[])["secrets"][0]["published"], false);
    push(&env, &env.path("lake"));
    assert_eq!(secrets(&env, &[])["secrets"][0]["published"], true);
    env.remove(&log);
    env.ingest(env.root.path());
    assert_eq!(secrets(&env, &[])["secrets"][0]["log_exists"], false);
}

#[test]
fn places_are_counted_as_status_counts_them() {
    let env = TestEnv::with_samples();
    ingest_leak(&env, "leak", "/work/harbor", "2026-11-20T08:00:00Z");
    let name = format!("/work/{}.txt", token());
    env.log("reader")
        .header("model", token())
        .user("Read it, and mind [REDACTED:github_token]")
        .event(json!({ "type": "tool_call", "tool_name": "Read", "tool_call_id": "r",
            "input": { "file_path": name }, "files": [name] }))
        .result("r", "empty")
        .ingest();
    let counted = env.json(["status"])["redactions"].clone();
    let answer = secrets(&env, &[]);
    let mut in_store = BTreeMap::<&str, u64>::new();
    for found in answer["secrets"].list().iter().filter(|found| found["in_store"] == true) {
        let kind = found["kind"].as_str().expect("a kind");
        *in_store.entry(kind).or_default() += found["count"].as_u64().expect("a number");
    }
    assert_eq!(json!(in_store), counted);
    let reader = answer["secrets"].list().iter().find(|found| found["session_id"] == "reader");
    assert_eq!(reader.expect("found")["places"].each("event_id"), ["reader:0", "reader:1"]);
}

/// Records have more than their events, such as a whole file of which the event shows the changed lines.
#[test]
fn secrets_that_no_event_shows_are_listed() {
    let env = TestEnv::new();
    let mut records = Vec::new();
    for number in 0..3 {
        let mut record = claude_record("leak", "/work", number, "user", "Look at the harbor");
        if number == 1 {
            record["toolUseResult"] = json!({ "originalFile": format!("KEY={}", token()),
                "structuredPatch": [{ "lines": [token()] }], "password": "kJ8dPq2mXv7Lr4TzWb9" });
        }
        records.push(format!("{record}\n"));
    }
    let log = env.write("logs/leak.jsonl", records.concat());
    make_old(&log);
    env.ingest("logs");
    assert_eq!(env.json(["status"])["redactions"], json!({}));

    let answer = secrets(&env, &[]);
    assert_eq!(answer["by_kind"], json!({ "github_token": 2, "password": 1 }));
    let found = &answer["secrets"][0];
    found.has(json!({ "in_store": false, "session_id": "leak", "count": 2 }));
    found["places"][0].has(json!({
        "event_id": null, "count": 2, "byte": records[0].len(), "bytes": records[1].len() - 1,
    }));
    env.run(["secrets"]).fails(1).shows("Only the files have 3 places").lacks("ghp_a1");
    assert_eq!(secrets(&env, &["--kind", "password"])["by_kind"], json!({ "password": 1 }));
    // The record is of 10:00:01.
    assert_eq!(secrets(&env, &["--since", "2026-10-01T10:00:01Z"])["secrets"].list().len(), 2);
    assert!(secrets(&env, &["--since", "2026-10-01T10:00:02Z"])["secrets"].list().is_empty());

    let before = content(&env);
    scrub(&env, &["--yes"], 0);
    env.read(&log).lacks([&token(), "kJ8dPq2mXv7Lr4TzWb9"]);
    env.ingest("logs");
    assert_eq!(content(&env), before);
    env.run(["secrets"]).ok().shows("No secrets were found");
}

#[test]
fn logs_read_without_masking_are_named() {
    let env = TestEnv::new();
    let log = ingest_leak(&env, "leak", "/work/harbor", "2026-11-20T08:00:00Z");
    let fresh = TestEnv::new();
    fresh.run(["ingest", "--quiet", "--no-redact", &log.to_string_lossy()]).ok();
    fresh.run(["secrets"]).fails(1).shows("--no-redact");
    assert_eq!(secrets(&fresh, &[])["unmasked_logs"], 1);
}
