//! `sessions secrets`: says where secrets lie in the logs on this machine, and never what they are.

use std::fs;

use serde_json::{Value, json};

use crate::answers::{ingest, write_log};
use crate::env::TestEnv;
use crate::lake::{machine, push};

fn token() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
}

/// Ingests a log of two prompts; the second one has the token twice.
fn ingest_leak(env: &TestEnv, id: &str, cwd: &str, time: &str) -> std::path::PathBuf {
    let log = env.path(&format!("{id}.jsonl"));
    let token = token();
    let lines = [
        json!({ "format": "sessions", "version": 1, "session_id": id, "cwd": cwd }),
        json!({ "type": "user", "timestamp": time, "text": "Look at the harbor" }),
        json!({ "type": "user", "timestamp": time, "text": format!("Use {token}, I mean {token}") }),
    ];
    fs::write(&log, lines.map(|line| format!("{line}\n")).concat()).expect("writes");
    env.run(&["ingest", "--quiet", &log.to_string_lossy()]).ok();
    log
}

/// Runs the command, which must not print the token, and returns its answer.
fn secrets(env: &TestEnv, args: &[&str]) -> Value {
    let ran = env.run(&[&["secrets", "--json"], args].concat());
    assert!(!ran.stdout.contains("ghp_a1"), "{}", ran.stdout);
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
    assert_eq!(answer["secrets"].as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!(answer["by_kind"], json!({ "github_token": 2 }));
    assert_eq!(
        [&found["kind"], &found["count"], &found["session_id"], &found["log_exists"]],
        [&json!("github_token"), &json!(2), &json!("leak"), &json!(true)]
    );
    assert_eq!(found["places"][0]["event_id"], "leak:1");
    let text = fs::read_to_string(&log).expect("reads");
    let at = |name: &str| found["places"][0][name].as_u64().expect("a number") as usize;
    let record = &text[at("byte")..at("byte") + at("bytes")];
    assert_eq!(record.matches(&token()).count(), 2, "{record}");
    assert_eq!(found["file"], log.to_string_lossy().as_ref());

    let shown = env.run(&["secrets"]);
    assert!(
        shown.stdout.contains("leak:1") && !shown.stdout.contains("ghp_a1"),
        "{}",
        shown.stdout
    );
    assert_eq!(shown.code, 1);
}

#[test]
fn filters_narrow_what_is_listed() {
    let env = TestEnv::new();
    ingest_leak(&env, "old", "/work/harbor", "2026-05-20T08:00:00Z");
    ingest_leak(&env, "new", "/work/pier", "2026-11-20T08:00:00Z");
    let ids = |args: &[&str]| -> Vec<Value> {
        let answer = secrets(&env, args);
        let list = answer["secrets"].as_array().expect("a list");
        list.iter().map(|found| found["session_id"].clone()).collect()
    };
    assert_eq!(ids(&[]), ["new", "old"]);
    assert_eq!(ids(&["--project", "harbor"]), ["old"]);
    assert_eq!(ids(&["--since", "2026-11-01"]), ["new"]);
    assert_eq!(ids(&["--kind", "github_token"]).len(), 2);
    assert!(ids(&["--kind", "aws_secret_key"]).is_empty());
    let unknown = env.run(&["secrets", "--kind", "github-token"]).fails(2);
    assert!(unknown.contains("github_token"), "{unknown}");
    env.run(&["forget", "new", "--yes"]).ok();
    assert_eq!(ids(&[]), ["old"]);
}

#[test]
fn a_session_says_whether_its_log_exists_and_whether_it_was_pushed() {
    let env = machine("pier", "mira", "include = ['**']\ncontent = 'full'");
    let log = ingest_leak(&env, "leak", "/work/harbor", "2026-11-20T08:00:00Z");
    assert_eq!(secrets(&env, &[])["secrets"][0]["published"], false);
    push(&env, &env.path("lake"));
    assert_eq!(secrets(&env, &[])["secrets"][0]["published"], true);
    fs::remove_file(&log).expect("removes");
    env.run(&["ingest", "--quiet", &env.root.path().to_string_lossy()]).ok();
    assert_eq!(secrets(&env, &[])["secrets"][0]["log_exists"], false);
}

#[test]
fn places_are_counted_as_status_counts_them() {
    let env = TestEnv::with_samples();
    ingest_leak(&env, "leak", "/work/harbor", "2026-11-20T08:00:00Z");
    let name = format!("/work/{}.txt", token());
    let read = [
        json!({ "type": "user", "text": "Read it, and mind [REDACTED:github_token]" }),
        json!({ "type": "tool_call", "tool_name": "Read", "tool_call_id": "r",
            "input": { "file_path": name }, "files": [name] }),
        json!({ "type": "tool_result", "tool_call_id": "r", "text": "empty" }),
    ];
    write_log(&env, "reader", &json!({ "model": token() }), &read);
    ingest(&env);
    let counted = env.json(&["status"])["redactions"].clone();
    let answer = secrets(&env, &[]);
    assert_eq!(answer["by_kind"], counted);
    let reader = answer["secrets"].as_array().expect("a list").iter();
    let reader = reader.clone().find(|found| found["session_id"] == "reader").expect("found");
    let events: Vec<&Value> =
        reader["places"].as_array().expect("places").iter().map(|at| &at["event_id"]).collect();
    assert_eq!(events, ["reader:0", "reader:1"], "{reader}");
}

#[test]
fn logs_read_without_masking_are_named() {
    let env = TestEnv::new();
    let log = ingest_leak(&env, "leak", "/work/harbor", "2026-11-20T08:00:00Z");
    let fresh = TestEnv::new();
    fresh.run(&["ingest", "--quiet", "--no-redact", &log.to_string_lossy()]).ok();
    let ran = fresh.run(&["secrets"]);
    assert!(ran.stdout.contains("--no-redact"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(secrets(&fresh, &[])["unmasked_logs"], 1);
}
