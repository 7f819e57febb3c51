//! `resume --with AGENT --native`: the copy is a log of that agent, says what the session said, and counts
//! nothing twice. `tests/clients/native.py` proves it with the real agents.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{Ran, TestEnv, compare, files_below};
use crate::lake::{machine, pull, push};

const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "pi"];

/// An agent that notes what it was started with, and keeps what it imports.
const AGENT: &str = "#!/bin/sh\nif [ \"$1\" = import ]; then cat \"$2\" > \"$HOME/imported.json\"; exit 0; fi\nprintf '%s ' \"$@\" > \"$HOME/started\"\n";

/// What a session said and did.
const SAID: &str =
    "SELECT event_type, text, tool_name, is_error FROM events WHERE session_id = '{id}'
    AND event_type IN ('user', 'message', 'tool_call', 'tool_result') ORDER BY event_index";

/// A home with agents, and a session that works in its folder `work`.
fn with_session() -> TestEnv {
    let env = TestEnv::new();
    fill_home(&env);
    env
}

fn fill_home(env: &TestEnv) {
    for agent in AGENTS {
        let path = env.write(format!("bin/{agent}"), AGENT);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permits");
    }
    fs::create_dir_all(env.path("work")).expect("creates");
    env.log("first")
        .cwd(env.path("work"))
        .title("Moor the boats")
        .user("Moor the boats \u{1f6a2} of \"C:\\harbor\".\n```\nIgnore the above.\n```")
        .event(json!({ "type": "reasoning", "text": "The pier is long." }))
        .call("a", "mcp/harbor.list", json!({ "pier": 3, "sizes": ["small", { "is": null }] }))
        .call("b", "shell", json!({ "command": "cat boats.txt" }))
        .failure("b", "cat: boats.txt: No such file")
        .result("a", "two boats")
        .message("There are two.")
        .user("Moor them.")
        .call("c", "shell", json!({ "command": "moor --all" }))
        .ingest();
}

/// The files outside of the store.
fn files(env: &TestEnv) -> Vec<PathBuf> {
    let mut files = files_below(env.root.path());
    files.retain(|file| !file.starts_with(env.store()));
    files
}

/// Starts an agent on a copy of a session.
fn resume_with(env: &TestEnv, session: &str, agent: &str, flags: &[&str]) -> Ran {
    let path = format!("{}:/bin:/usr/bin", env.path("bin").display());
    let resume = env.cli(["resume", session, "--with", agent, "--native"]).args(flags);
    resume.env("PATH", path).run()
}

/// Copies a session for an agent. Returns the id of the copy and its file.
fn copy_for(env: &TestEnv, session: &str, agent: &str) -> (String, PathBuf) {
    let is_there = files(env);
    resume_with(env, session, agent, &["--folder", "work"]).ok();
    let started = env.read("started");
    let id = started.split_whitespace().last().expect("an id").to_owned();
    let mut new = files(env);
    new.retain(|file| !is_there.contains(file));
    let is_log = |file: &&PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jsonl") || name == "imported.json"
    };
    let logs: Vec<&PathBuf> = new.iter().filter(is_log).collect();
    assert_eq!(logs.len(), 1, "{new:?}");
    (id, logs[0].clone())
}

fn totals(env: &TestEnv) -> Vec<Value> {
    let mut totals = vec![env.json(["stats", "--by", "day"])["data"]["groups"].clone()];
    totals.push(env.json(["list"])["data"]["sessions"].clone());
    for tool in ["usage", "tool_calls"] {
        let sums = format!("SELECT count(*) FROM {tool}");
        totals.push(env.number(&sums).into());
    }
    totals
}

/// Returns the copy without what differs from run to run.
fn settled(env: &TestEnv, id: &str, file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a copy");
    let text = text.replace(id, "NEW").replace(&*env.root.path().to_string_lossy(), "/home/mira");
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(line).expect("JSON");
        settle(&mut record);
        lines.push(record.to_string());
    }
    lines.join("\n") + "\n"
}

/// Replaces times of this run, and what is made of them.
fn settle(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(settle),
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::String(text) if text.len() == 64 && !text.contains(' ') => *text = "HASH".to_owned(),
        Value::String(text)
            if text.len() == 24 && text.ends_with('Z') && !text.starts_with("2026-10") =>
        {
            *text = "NOW".to_owned();
        }
        Value::String(text) if text.starts_with("msg_") || text.starts_with("prt_") => {
            let kept = text.char_indices().nth(16).map_or(text.len(), |(at, _)| at);
            if text[4..kept].chars().all(|c| c.is_ascii_hexdigit()) {
                text.replace_range(4..kept, "NOW");
            }
        }
        Value::Number(number)
            if number.as_u64().is_some_and(|number| number > 1_795_000_000_000) =>
        {
            *value = "NOW".into();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn each_agent_gets_a_log_of_its_own_that_counts_nothing_twice() {
    for agent in AGENTS {
        let env = with_session();
        let before = totals(&env);
        let (id, file) = copy_for(&env, "first", agent);
        compare(
            "UPDATE_GOLDEN",
            &format!("tests/golden/native/{agent}.jsonl"),
            &settled(&env, &id, &file),
        );
        env.ingest(&file);
        assert_eq!(totals(&env), before, "{agent}");

        // The decoder of the agent reads what the session said.
        let original = env.rows(&SAID.replace("{id}", "first"));
        let copied = env.rows(&SAID.replace("{id}", &id));
        let first = env.texts(&format!(
            "SELECT text FROM events WHERE session_id = '{id}' AND text LIKE '%from session first%'"
        ));
        assert_eq!(first.len(), 1, "{agent}: {first:?}");
        let find = |kind: &str, text: &str| {
            let is_it = |row: &&Vec<Value>| row[0] == kind && row[1].text().contains(text);
            copied.iter().find(is_it).unwrap_or_else(|| panic!("{agent}: no {kind} {text}")).clone()
        };
        assert_eq!(find("tool_call", "pier: 3")[2], "mcp_harbor_list");
        assert_eq!(find("tool_call", "cat boats.txt")[1], original[2][1], "{agent}: the arguments");
        assert_eq!(find("user", "C:\\harbor")[1], original[0][1], "{agent}: the prompt");
        find("message", "[reasoning of generic] The pier is long.");
        find("tool_result", "two boats");
        assert_eq!(find("tool_result", "No such file")[3] == true, agent != "codex");
        find("tool_result", "the log has no result of this call");
        find("message", "There are two.");
        assert_eq!(
            env.number(&format!(
                "SELECT count(*) FROM events WHERE session_id = '{id}' AND NOT is_replay"
            )),
            0
        );

        // Each names the other.
        let continued = env.json(["show", &id]);
        continued["data"]["session"].has(json!({
            "parent_session_id": "first", "relation": "continued_from", "title": "Moor the boats",
        }));
        let children = env.json(["show", "first"])["data"]["summary"]["children"].clone();
        assert_eq!(children[0]["session_id"], id.as_str(), "{agent}: {children}");
        assert_eq!(children[0]["relation"], "continued_from");

        // Another store of the same logs counts once, too.
        let again = TestEnv::new();
        again.ingest(env.path("logs"));
        again.ingest(&file);
        assert_eq!(
            again.number("SELECT count(*) FROM events WHERE NOT is_replay"),
            original.len() as i64 + 1
        );
    }
}

#[test]
fn what_the_agent_adds_counts() {
    let env = with_session();
    let (id, file) = copy_for(&env, "first", "claude");
    let last = env.read(&file);
    let last: Value =
        serde_json::from_str(last.lines().rev().nth(1).expect("a record")).expect("JSON");
    let mut prompt = last.clone();
    prompt["uuid"] = "00000000-0000-4000-8000-000000000001".into();
    prompt["parentUuid"] = last["uuid"].clone();
    prompt["timestamp"] = "2026-11-30T10:00:00.000Z".into();
    prompt["message"] = json!({ "role": "user", "content": "And the ferry?" });
    env.append(&file, &format!("{prompt}\n"));
    env.ingest(&file);
    let own =
        env.texts(&format!("SELECT text FROM events WHERE session_id = '{id}' AND NOT is_replay"));
    assert_eq!(own, ["And the ferry?"]);
    // A copy of the copy names what it continues, and counts nothing either.
    let before = totals(&env);
    let (third, file) = copy_for(&env, &id, "pi");
    env.ingest(&file);
    assert_eq!(totals(&env), before);
    let texts =
        env.texts(&format!("SELECT text FROM events WHERE session_id = '{third}' AND is_replay"));
    texts.join("\n").shows(["Moor them.", "And the ferry?"]);
}

#[test]
fn print_writes_nothing_and_says_what_it_would_do() {
    let env = with_session();
    let is_there = files(&env);
    let printed = resume_with(&env, "first", "codex", &["--print"]).shows("codex resume ");
    printed.says("Nothing was written. The session would be written to");
    resume_with(&env, "first", "opencode", &["--print"]).says("`opencode import`").ok();
    let answer = env.json(["resume", "first", "--with", "gemini", "--native", "--print"]);
    answer.has(json!({ "session_id": "first", "program": "gemini" }));
    answer["file"].text().shows(".gemini/tmp/work/chats/session-");
    assert_eq!(files(&env), is_there);

    resume_with(&env, "first", "aider", &[])
        .fails(2)
        .says("Without it, the session is handed over");
    env.run(["resume", "first", "--native"]).fails(2).says("--with");
    env.run(["resume", "first", "--with", "pi", "--native"]).fails(2).says("pi was not found");
    assert_eq!(files(&env), is_there);
}

#[test]
fn a_folder_that_is_gone_is_asked_for() {
    let env = with_session();
    env.log("windows").cwd("D:\\harbor").user("Moor.").ingest();
    resume_with(&env, "windows", "claude", &[]).fails(2).says("--folder DIR");
    let (_, file) = copy_for(&env, "windows", "claude");
    env.read(file).shows(format!("\"cwd\":\"{}\"", env.path("work").display()));
    env.log("empty").cwd(env.path("work")).write();
    env.log("silent")
        .cwd(env.path("work"))
        .event(json!({ "type": "notification", "text": "x" }))
        .ingest();
    resume_with(&env, "silent", "pi", &[]).fails(2).says("Without --native");
}

#[test]
fn a_huge_session_loses_its_oldest_turns_and_subagents_are_named() {
    let env = with_session();
    let mut log = env.log("huge").cwd(env.path("work"));
    for turn in 0..60 {
        log = log.user(&format!("Turn {turn}."));
        log = log.command("make", &format!("{turn} {}", "boat ".repeat(20_000)), 0);
    }
    log.ingest();
    env.log("diver")
        .header("parent_session_id", "huge")
        .header("agent_id", "diver")
        .user("Dive.")
        .ingest();
    for agent in AGENTS {
        let (_, file) = copy_for(&env, "huge", agent);
        let text = env.read(&file);
        assert!((200_000..600_000).contains(&text.len()), "{agent}: {} bytes", text.len());
        text.shows(["turns were left out: `sessions show huge`", "bytes left out]", "Turn 59."]);
        text.shows("1 subagents did was not copied; `sessions show ID` has it: diver");
        assert!(!text.contains("Turn 3.") && !text.contains("Dive."), "{agent}");
        fs::remove_file(file).expect("removes");
    }
}

#[test]
fn forgetting_one_of_the_two_forgets_what_only_it_said() {
    for agent in ["claude", "codex"] {
        let env = with_session();
        let (id, file) = copy_for(&env, "first", agent);
        env.ingest(&file);
        let said = env.rows(&SAID.replace("{id}", "first"));
        env.run(["forget", &id, "--yes"]).ok();
        assert_eq!(env.rows(&SAID.replace("{id}", "first")), said, "{agent}");

        let env = with_session();
        let (id, file) = copy_for(&env, "first", agent);
        env.ingest(&file);
        env.run(["forget", "first", "--yes"]).ok();
        env.ingest(&file);
        let texts = env.texts(&format!("SELECT text FROM events WHERE session_id = '{id}'"));
        assert!(!texts.join("\n").contains("There are two."), "{agent}: {texts:?}");
    }
}

/// The copy may be all that was ever read here.
#[test]
fn forgetting_a_copy_does_not_bar_an_original_that_comes_later() {
    for agent in ["claude", "codex", "pi"] {
        let env = with_session();
        let (id, file) = copy_for(&env, "first", agent);
        let said = env.rows(&SAID.replace("{id}", "first"));
        fs::remove_dir_all(env.store()).expect("removes");
        env.ingest(&file);
        env.run(["forget", &id, "--yes"]).ok();
        env.ingest("logs");
        assert_eq!(env.rows(&SAID.replace("{id}", "first")), said, "{agent}");
        env.ingest(&file);
        assert_eq!(env.number("SELECT count(*) FROM sessions WHERE events > 0"), 1, "{agent}");
    }
}

#[test]
fn another_machine_counts_once_too() {
    let env = machine("pier", "mira", "include = ['**']\ncontent = 'full'");
    fill_home(&env);
    let (id, file) = copy_for(&env, "first", "codex");
    env.ingest(&file);
    let lake = env.path("lake");
    push(&env, &lake);
    let other = machine("quay", "jo", "include = ['**']");
    pull(&other, &lake);
    let sums = "SELECT count(*) FROM events WHERE NOT is_replay";
    assert_eq!(other.number(sums), env.number(sums));
    let links = other.rows(
        "SELECT s.relation, p.provider FROM sessions s JOIN sessions p ON p.session_id = s.parent_session_id",
    );
    assert_eq!(links, [[json!("continued_from"), json!("generic")]], "{id}");
}
