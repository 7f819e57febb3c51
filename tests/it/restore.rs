//! `sessions restore`: gives a file back as agents last read or wrote it, and says what is not certain.

use std::fs;

use serde_json::{Value, json};

use crate::answers::{ingest, user, write_log};
use crate::env::TestEnv;

const PATH: &str = "/home/mira/harbor/src/pier.rs";

fn call(id: &str, tool: &str, input: &Value) -> Value {
    json!({ "type": "tool_call", "tool_name": tool, "tool_call_id": id, "input": input })
}

fn result(id: &str, text: &str) -> Value {
    json!({ "type": "tool_result", "tool_call_id": id, "text": text })
}

/// A session that wrote the file (1, 2), edited it (3, 4) and read a part of it (5, 6).
fn with_edits() -> TestEnv {
    let env = TestEnv::new();
    let write = json!({ "file_path": PATH, "content": "one\n  two\n\nthree  \n" });
    let edit = json!({ "file_path": PATH, "old_string": "  two\n", "new_string": "  2\n  zwei\n" });
    let part = json!({ "file_path": PATH, "offset": 2, "limit": 1 });
    let lines = [
        user("Build a pier"),
        call("w", "Write", &write),
        result("w", &format!("File created successfully at: {PATH}")),
        call("e", "Edit", &edit),
        result("e", "updated"),
        call("r", "Read", &part),
        result("r", "     2→  2"),
    ];
    write_log(&env, "builder", &json!({ "cwd": "/home/mira/harbor" }), &lines);
    ingest(&env);
    env
}

const EDITED: &str = "one\n  2\n  zwei\n\nthree  \n";

/// Adds a session of the next day.
fn add_session(env: &TestEnv, id: &str, lines: &[Value]) {
    let mut lines = lines.to_vec();
    for line in &mut lines {
        line["timestamp"] = json!("2026-10-30T06:00:00Z");
    }
    write_log(env, id, &json!({ "cwd": "/home/mira/harbor" }), &lines);
    ingest(env);
}

fn restore(env: &TestEnv, args: &[&str]) -> String {
    env.run(&[&["restore", "--file", PATH], args].concat()).ok()
}

#[test]
fn a_written_file_comes_back_with_its_edits() {
    let env = with_edits();
    let ran = env.run(&["restore", "--file", PATH]);
    assert_eq!(ran.stdout, EDITED);
    assert!(ran.stderr.contains("builder:1") && ran.stderr.contains("1 edit"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("not certain"), "{}", ran.stderr);
    // A call is not carried out yet; its result shows what it did.
    assert_eq!(restore(&env, &["--at", "builder:3"]), "one\n  two\n\nthree  \n");
    assert_eq!(restore(&env, &["--at", "builder:4"]), EDITED);
    assert_eq!(env.run(&["restore", "--file", PATH, "--at", "builder:1"]).code, 1);
    let unknown = env.run(&["restore", "--file", PATH, "--at", "builder:99"]).fails(1);
    assert!(unknown.contains("builder:99"), "{unknown}");
    let answer: Value = env.json(&["restore", "--file", PATH]);
    assert_eq!(
        [&answer["text"], &answer["base"]["how"], &answer["edits"][0]["event_id"]],
        [&json!(EDITED), &json!("written"), &json!("builder:3")]
    );
}

#[test]
fn later_sessions_count_and_what_is_not_known_is_said() {
    let env = with_edits();
    let lines = "     1→uno\n     2→dos\n\n<system-reminder>mind the gap</system-reminder>";
    let read = [call("r", "Read", &json!({ "file_path": PATH })), result("r", lines)];
    add_session(&env, "reader", &[&[user("Read it")], &read[..]].concat());
    assert_eq!(restore(&env, &[]), "uno\ndos\n");

    // Two places fit, so the edit is not applied.
    let edit = json!({ "file_path": PATH, "old_string": "o", "new_string": "0" });
    add_session(
        &env,
        "s-later",
        &[user("Change it"), call("e", "Edit", &edit), result("e", "updated")],
    );
    let ran = env.run(&["restore", "--file", PATH]);
    assert_eq!(ran.stdout, "uno\ndos\n");
    assert!(
        ran.stderr.contains("not certain") && ran.stderr.contains("s-later:1"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_patch_adds_changes_and_deletes() {
    let env = TestEnv::new();
    let patch = |body: &str| {
        let text = format!("*** Begin Patch\n{body}\n*** End Patch");
        json!({ "input": text })
    };
    let add = patch("*** Add File: src/pier.rs\n+one\n+two");
    let update = patch("*** Update File: src/pier.rs\n@@\n one\n-two\n+2");
    let delete = patch("*** Delete File: src/pier.rs");
    let mut lines = vec![user("Build a pier")];
    for (id, input) in [("a", &add), ("u", &update), ("d", &delete)] {
        let mut patch = call(id, "apply_patch", input);
        patch["files"] = json!([PATH]);
        lines.extend([patch, result(id, "Success")]);
    }
    write_log(&env, "coder", &json!({ "cwd": "/home/mira/harbor" }), &lines);
    ingest(&env);
    let gone = env.run(&["restore", "--file", PATH]);
    assert_eq!((gone.code, &*gone.stdout), (1, ""));
    assert!(gone.stderr.contains("--at coder:5"), "{}", gone.stderr);
    assert_eq!(restore(&env, &["--at", "coder:5"]), "one\n2\n");
    assert_eq!(restore(&env, &["--at", "coder:2"]), "one\ntwo\n");
}

#[test]
fn a_file_is_replaced_only_on_request() {
    let env = with_edits();
    let out = env.path("pier.rs");
    fs::write(&out, "mine").expect("writes");
    let place = out.to_string_lossy().into_owned();
    let refused = env.run(&["restore", "--file", PATH, "-o", &place]).fails(2);
    assert!(refused.contains("--force"), "{refused}");
    assert_eq!(fs::read_to_string(&out).expect("reads"), "mine");
    restore(&env, &["-o", &place, "--force"]);
    assert_eq!(fs::read_to_string(&out).expect("reads"), EDITED);
}

#[test]
fn masked_secrets_are_counted() {
    let env = TestEnv::new();
    let token = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
    let write = json!({ "file_path": PATH, "content": format!("TOKEN={token}\n") });
    let done = result("w", &format!("File created successfully at: {PATH}"));
    write_log(&env, "leak", &json!({}), &[user("Write"), call("w", "Write", &write), done]);
    ingest(&env);
    let ran = env.run(&["restore", "--file", PATH]);
    assert!(ran.stdout.contains("[REDACTED:") && !ran.stdout.contains("ghp_"), "{}", ran.stdout);
    assert!(ran.stderr.contains("1 secret masked"), "{}", ran.stderr);
}
