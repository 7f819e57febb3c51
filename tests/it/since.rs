//! What answers say happened since a passage: exactly, or not at all.

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::hooks::{PROJECT, ask};
use crate::log::{Log, claude_record};
use crate::mcp::Client;

const HARBOR: &str = "/home/mira/harbor";

/// Returns the log of a session of the project that begins on a day of March 2026.
fn session<'e>(env: &'e TestEnv, id: &str, day: u32) -> Log<'e> {
    env.log(id).cwd(HARBOR).at(&format!("2026-03-{day:02}T08:00:00Z"))
}

/// Adds a call that edits a file, and its result, which says that it did not fail.
fn edit<'e>(log: Log<'e>, file: &str) -> Log<'e> {
    let input = json!({ "file_path": file, "old_string": "five", "new_string": "six" });
    log.call("e", "Edit", input).ended("e", "The file has been updated.", 0)
}

/// Returns the line of the session `early` in the answer to a question.
fn since(env: &TestEnv, question: &str) -> Value {
    let answer = env.json(["find", question]);
    let sessions = answer["data"]["sessions"].as_array().expect("sessions");
    let early = sessions.iter().find(|session| session["session_id"] == "early");
    early.expect("the session is found")["since"].clone()
}

/// A session that reads a file and says what is in it.
fn with_named_file(env: &TestEnv) {
    let early = session(env, "early", 1).user("Where is the retry budget of the lamp?");
    let early = early.call("r", "Read", json!({ "file_path": "src/limits.rs" }));
    let early = early.result("r", "1: const RETRY_BUDGET");
    early.message("The retry budget of the lamp is in `src/limits.rs:3`, as five.").write();
}

#[test]
fn the_last_later_edit_of_a_file_is_named() {
    let env = TestEnv::new();
    with_named_file(&env);
    env.ingest("logs");
    assert_eq!(since(&env, "retry budget of the lamp"), Value::Null);
    edit(session(&env, "next", 2).user("Raise it"), "src/limits.rs").write();
    let last =
        edit(session(&env, "lately", 4).user("Once more"), &format!("{HARBOR}/src/limits.rs"));
    edit(last, "src/other.rs").write();
    env.ingest("logs");
    assert_eq!(
        since(&env, "retry budget of the lamp"),
        "src/limits.rs edited: lately:2 (2026-03-04)"
    );
    env.run(["find", "retry budget of the lamp"])
        .shows("since then: src/limits.rs edited: lately:2");
    let mut client = Client::legacy(&env);
    let answer = client.call("search_sessions", json!({ "query": "retry budget of the lamp" }));
    answer.shows("src/limits.rs edited: lately:2 (2026-03-04)");
    env.json(["show", "early"])["data"]["summary"]
        .has(json!({ "since": "src/limits.rs edited: lately:2 (2026-03-04)" }));
    env.run(["show", "early"]).shows("Since then").shows("src/limits.rs edited: lately:2");
    env.run(["resume", "early", "--with", "codex", "--print"]).shows("since then: `src/limits.rs");
    env.run(["forget", "lately", "--yes"]).ok();
    assert_eq!(
        since(&env, "retry budget of the lamp"),
        "src/limits.rs edited: next:2 (2026-03-02)"
    );
}

#[test]
fn edits_that_failed_came_before_or_are_of_another_file_are_not_named() {
    let env = TestEnv::new();
    with_named_file(&env);
    let input = json!({ "file_path": "src/limits.rs", "old_string": "a", "new_string": "b" });
    let before = session(&env, "before", 1).all_at("2026-02-01T08:00:00Z");
    edit(before, "src/limits.rs").write();
    session(&env, "failed", 2).call("e", "Edit", input.clone()).failure("e", "Not found").write();
    let unknown = session(&env, "unknown", 2).call("e", "Edit", input.clone());
    unknown.result("e", "Edited?").write();
    session(&env, "open", 2).call("e", "Edit", input).write();
    let read = session(&env, "read", 2).call("r", "Read", json!({ "file_path": "src/limits.rs" }));
    read.ended("r", "1: const RETRY_BUDGET", 0).write();
    edit(session(&env, "elsewhere", 2), "docs/src/limits.rs").write();
    edit(session(&env, "pier", 2).cwd("/home/mira/pier"), "src/limits.rs").write();
    env.ingest("logs");
    assert_eq!(since(&env, "retry budget of the lamp"), Value::Null);
}

const ERROR: &str = "error: unrecognized subcommand 'bun'\n\nUsage: rtk <COMMAND>";

#[test]
fn the_same_failure_of_a_later_session_is_named() {
    let env = TestEnv::new();
    session(&env, "early", 1).user("Run it").command("rtk bun run test", ERROR, 2).write();
    session(&env, "other", 2).command("rtk bun run test", "error: no such file 'bun'", 2).write();
    session(&env, "worked", 3).command("rtk bun run test", "12 pass", 0).write();
    env.ingest("logs");
    assert_eq!(since(&env, "unrecognized subcommand bun"), Value::Null);
    session(&env, "late", 5).user("Again").command("rtk bun run lint", ERROR, 2).ingest();
    assert_eq!(since(&env, "unrecognized subcommand bun"), "failed again: late:2 (2026-03-05)");
    env.json(["show", "early"])["data"]["summary"]
        .has(json!({ "since": "failed again: late:2 (2026-03-05)" }));
    assert_eq!(env.json(["show", "late"])["data"]["summary"]["since"], Value::Null);
}

#[test]
fn a_later_statement_that_changes_a_passage_is_named() {
    let env = TestEnv::new();
    let early = session(&env, "early", 1).user("What decides how often the lamp tries?");
    let early = early.message("The lamp tries as often as `retryBudget` of `LampQueue` says.");
    early.user("Fine.").message("`retryBudget` is shared with `LampQueue` now.").write();
    let late = session(&env, "late", 3).user("Simplify the queue.");
    let late = late.message("I'll use a constant instead of `retryBudget` in `LampQueue`.");
    let late = late.message("Done: `LampQueue` no longer has a `retryBudget`.");
    late.message("Should `retryBudget` of `LampQueue` be dropped?").write();
    env.ingest("logs");
    let question = "how often does the lamp try";
    assert_eq!(since(&env, question), "revisited: late:2 (2026-03-03)");
    let words = "`GullCount` was replaced, the lamp is no longer lit, `retryBudget` stays.";
    session(&env, "unsure", 6).message(words).ingest();
    assert_eq!(since(&env, question), "revisited: late:2 (2026-03-03)");
}

#[test]
fn copies_are_not_later() {
    let env = TestEnv::new();
    let [original, copy] =
        ["11111111", "22222222"].map(|id| format!("{id}-7777-4000-8000-000000000000"));
    let record = |session: &str, number, role, content: Value| {
        claude_record(session, HARBOR, number, role, content).to_string()
    };
    let edit = json!([{"type": "tool_use", "id": "t1", "name": "Edit", "input":
        {"file_path": format!("{HARBOR}/src/limits.rs"), "old_string": "a", "new_string": "b"}}]);
    let edited = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "updated"}]);
    let log = |session: &str| {
        [
            record(session, 1, "user", json!("Is the retry budget in src/limits.rs?")),
            record(session, 2, "assistant", edit.clone()),
            record(session, 3, "user", edited.clone()),
        ]
        .join("\n")
    };
    env.write(format!("logs/{original}.jsonl"), log(&original));
    let own = record(&copy, 9, "user", json!("Thanks"));
    env.write(format!("logs/{copy}.jsonl"), log(&copy) + "\n" + &own);
    env.ingest("logs");
    let answer = env.json(["find", "retry budget"]);
    answer.lacks("since");
}

#[test]
fn a_hook_says_what_happened_since() {
    let env = TestEnv::new();
    let early = env.log("early").cwd(PROJECT).at("2026-03-01T08:00:00Z");
    let early = early.user("Where is the retry budget of the importer?");
    let early = early.call("r", "Read", json!({ "file_path": "src/limits.rs" })).result("r", "x");
    early.message("We decided that the retry budget of the importer is in src/limits.rs.").write();
    let last = env.log("lately").cwd(PROJECT).at("2026-03-04T08:00:00Z").user("Change it");
    edit(last, "src/limits.rs").write();
    env.ingest("logs");
    env.write_settings("[hooks]\ntimeout_ms = 60000\n");
    let input = json!({
        "session_id": "now", "cwd": PROJECT, "hook_event_name": "UserPromptSubmit",
        "prompt": "What did we decide about the retry budget of the importer?",
    });
    let said = ask(&env, "prompt", &input);
    said.shows("since then: \\\"src/limits.rs edited: lately:2 (2026-03-04)\\\"");
}
