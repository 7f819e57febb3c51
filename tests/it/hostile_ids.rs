//! Ids that a log claims and no agent writes: they are replaced at ingest and in a lake, sessions that
//! name each other by them stay linked, and printed commands and errors are safe with them.

use std::fs;

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::TestEnv;
use crate::lake::{machine, pull, push};

/// Ids of a parent that a shell would run.
const PARENT: &str = "p$(touch PWNED)`touch PWNED`;x";

/// The sessions with their native ids, parents and relations.
fn sessions(env: &TestEnv) -> Vec<Vec<Value>> {
    env.rows("SELECT native_id, session_id, parent_session_id, relation FROM sessions ORDER BY native_id")
}

fn assert_safe(id: &str) {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_.:~@+=/".contains(c);
    assert!(id.chars().all(is_safe), "{id}");
}

/// Writes a session, a subagent of it, and another session whose id differs in one such character.
fn write_related(env: &TestEnv) {
    let log = |id: &str| env.log(id).cwd("/code/harbor");
    log(PARENT).user("Moor the boat").write_to("logs/parent.jsonl");
    let child = log("c|d").header("parent_session_id", PARENT).header("agent_id", "a&b");
    child.user("Tie the rope").write_to("logs/child.jsonl");
    log(&PARENT.replace(';', "&")).user("Paint the pier").write_to("logs/other.jsonl");
}

#[test]
fn logs_that_name_each_other_by_such_ids_stay_linked() {
    let orders = [["parent", "child", "other"], ["child", "other", "parent"]];
    let mut seen = Vec::new();
    for order in orders {
        let env = TestEnv::new();
        write_related(&env);
        for file in order {
            env.ingest(format!("logs/{file}.jsonl"));
        }
        let rows = sessions(&env);
        let natives: Vec<&str> = rows.iter().filter_map(|row| row[0].as_str()).collect();
        assert_eq!(natives, ["c|d", &PARENT.replace(';', "&"), PARENT]);
        for row in &rows {
            assert_safe(row[1].text());
        }
        assert_ne!(rows[1][1], rows[2][1]);
        assert_eq!(rows[0][2], rows[2][1], "the parent");
        assert_eq!(rows[0][3], "subagent_of");
        seen.push(rows);
        // A further ingest changes no id.
        env.write("logs/more.jsonl", "");
        env.run(["ingest", "--quiet", "--verify", &env.path("logs").to_string_lossy()]).ok();
        assert_eq!(Some(&sessions(&env)), seen.last());
    }
    assert_eq!(seen[0], seen[1], "in any order");
}

/// Subagents of Claude Code are joined to the calls that started them by the ids that their logs have.
#[test]
fn subagents_with_such_ids_are_found() {
    let env = TestEnv::new();
    let parent = env.log(PARENT).cwd("/code/harbor").command("start", "started", 0);
    parent.write_to("logs/parent.jsonl");
    let agent = "e'f$(touch PWNED)";
    let record = json!({ "type": "user", "isSidechain": true, "agentId": agent, "uuid": "u1",
        "sessionId": PARENT, "timestamp": "2026-10-29T06:00:00Z",
        "message": { "role": "user", "content": "Tie the rope" } });
    env.write("logs/agent-x.jsonl", format!("{record}\n"));
    let main = json!({ "type": "user", "uuid": "u0", "sessionId": PARENT,
        "timestamp": "2026-10-29T05:00:00Z", "message": { "role": "user", "content": "Moor" } });
    env.write("logs/main.jsonl", format!("{main}\n"));
    env.ingest("logs");
    let rows = env.rows(
        "SELECT c.session_id, c.native_id, c.agent_id, p.native_id, p.provider FROM sessions c \
         JOIN sessions p ON c.parent_session_id = p.session_id",
    );
    assert_eq!(rows.len(), 1);
    assert_safe(rows[0][0].text());
    assert_eq!(
        rows[0][1..],
        [json!(format!("agent-{agent}")), json!(agent), json!(PARENT), json!("claude")]
    );
}

#[test]
fn a_lake_and_those_who_pull_it_have_safe_ids() {
    let pier = machine("pier", "mira", "include = ['**']");
    write_related(&pier);
    pier.ingest("logs");
    let lake = pier.path("lake");
    push(&pier, &lake);
    let quay = machine("quay", "tom", "");
    assert_eq!(pull(&quay, &lake)["imported"], 3);
    let rows = sessions(&quay);
    assert_eq!(rows.len(), 3);
    for row in &rows {
        assert_safe(row[1].text());
    }
    assert_eq!(rows[0][2], rows[2][1], "the parent");
    assert_eq!(rows[2][0], PARENT);
    // Nothing changes with a second push and pull.
    push(&pier, &lake);
    assert_eq!(pull(&quay, &lake)["imported"], 0);
    assert_eq!(sessions(&quay), rows);
}

/// Runs what a printed command would run in `sh`, and returns its arguments.
fn arguments_in_sh(env: &TestEnv, program: &str, line: &str) -> Vec<String> {
    let script = format!("{program}() {{ printf '%s\\0' \"$@\"; }}\n{line}\n");
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(env.root.path())
        .output()
        .expect("runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn printed_commands_take_ids_and_folders_literally() {
    let env = TestEnv::new();
    // Two logs of one id, so that one gets a number after a tilde.
    let long = "The lamp shines over the harbor. ".repeat(200);
    let folder = env.path("it's $(touch PWNED) `touch PWNED`");
    fs::create_dir_all(&folder).expect("creates");
    for name in ["one", "two"] {
        let log = env.log("same").cwd(&folder).header("model", name);
        log.user("Paint the lighthouse").message(&long).write_to(&format!("logs/{name}.jsonl"));
    }
    env.ingest("logs");
    assert_eq!(env.rows("SELECT session_id FROM sessions ORDER BY 1")[1][0], "same~2");

    // A command that reads an event of the session with a tilde.
    let text = env.run(["export", "md", "same~2"]).stdout;
    if let Some((_, rest)) = text.split_once("sessions event ") {
        let word = rest.split_whitespace().next().expect("a word");
        let arguments = arguments_in_sh(&env, "sessions", &format!("sessions event {word}"));
        assert!(arguments[1].starts_with("same~2:"), "{arguments:?}");
    }

    // The command that resumes a session, with its folder.
    let record = json!({ "type": "user", "uuid": "u1", "sessionId": "9ae82b3a-1", "cwd": folder,
        "timestamp": "2026-10-29T06:00:00Z",
        "message": { "role": "user", "content": "Moor the boat" } });
    env.append_event("logs/claude.jsonl", &record);
    env.ingest("logs");
    let line = env.run(["resume", "9ae82b3a-1", "--print"]).ok();
    assert_eq!(arguments_in_sh(&env, "claude", &line), ["--resume", "9ae82b3a-1"]);
    let place = arguments_in_sh(&env, "claude", &format!("{line}\nclaude \"$(pwd)\""));
    assert_eq!(place.last().map(String::as_str), folder.to_str());

    // A command in an error.
    env.run(["open", "x$(touch PWNED)'"]).fails(2).says("`sessions show 'x$(touch PWNED)'\\'`");
    assert!(!env.path("PWNED").exists() && !env.path("logs/PWNED").exists());
}

/// Whatever is given as an id, a message about it stays short and ends with what to do.
#[test]
fn an_error_does_not_repeat_a_long_value() {
    let env = TestEnv::new();
    write_related(&env);
    env.ingest("logs");
    let long = "x".repeat(100_000);
    for arguments in [
        &["show", &long][..],
        &["event", &format!("{long}:1")],
        &["show", "p__", "--detail-level", &long],
        &["list", "--session-id", &long],
        &["list", "--since", &long],
        &["search", "boat", "--cursor", &long],
        &["label", &long, "--add", "x"],
        &["forget", &long, "--yes"],
        &["export", "md", &long],
        &["resume", &long],
        &["ingest", &long],
        &[&long],
        // Similar flags are looked for, which takes long with a long one.
        &[&format!("--{}", &long[..2_000])],
    ] {
        for json in [false, true] {
            let flags: &[&str] = if json { &["--json"] } else { &[] };
            let ran = env.cli(flags).args(arguments).run();
            let head: Vec<_> = arguments.iter().map(|word| &word[..word.len().min(20)]).collect();
            assert_ne!(ran.code, 0, "{head:?}");
            let size = ran.stdout.len() + ran.stderr.len();
            assert!(size < 8_000, "{head:?}: {size} bytes");
        }
    }
}

/// Each of two sessions says that the other one started it.
#[test]
fn a_cycle_of_subagents_counts_each_session_once() {
    let env = TestEnv::new();
    for (id, parent) in [("one", "two"), ("two", "one")] {
        let log = env.log(id).header("parent_session_id", parent).header("agent_id", id);
        log.user("Moor the boat").write_to(&format!("logs/{id}.jsonl"));
    }
    env.ingest("logs");
    let answer = env.json(["list", "--subagents"]);
    let sessions = answer["data"]["sessions"].list();
    assert_eq!(sessions.len(), 2);
    for session in sessions {
        assert_eq!(session["with_subagents"]["subagents"], 1);
        assert_eq!(session["with_subagents"]["counts"]["events"], 2);
    }
}
