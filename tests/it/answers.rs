//! Whether an agent can act on what the tools answer: which sessions an answer covers, that totals
//! agree, why nothing matches, and what fixed a failure.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::mcp::Client;

/// Writes a log of the format `sessions` and returns its path. `lines` follow the header.
pub(crate) fn write_log(env: &TestEnv, session: &str, header: &Value, lines: &[Value]) -> String {
    let mut whole = json!({ "format": "sessions", "version": 1, "session_id": session });
    for (name, value) in header.as_object().expect("an object") {
        whole[name] = value.clone();
    }
    let mut text = format!("{whole}\n");
    for (second, line) in lines.iter().enumerate() {
        let mut line = line.clone();
        if line.get("timestamp").is_none() {
            line["timestamp"] =
                json!(format!("2026-10-29T06:{:02}:{:02}Z", second / 60, second % 60));
        }
        text.push_str(&format!("{line}\n"));
    }
    let folder = env.path("logs");
    std::fs::create_dir_all(&folder).expect("creates");
    let path = folder.join(format!("{session}.jsonl"));
    std::fs::write(&path, text).expect("writes");
    path.to_string_lossy().into_owned()
}

pub(crate) fn ingest(env: &TestEnv) {
    env.run(&["ingest", "--quiet", &env.path("logs").to_string_lossy()]).ok();
}

pub(crate) fn user(text: &str) -> Value {
    json!({ "type": "user", "text": text })
}

/// A call of a command and its result.
pub(crate) fn command(id: &str, input: Value, output: &str, exit_code: i32) -> [Value; 2] {
    [
        json!({ "type": "tool_call", "tool_name": "shell", "tool_call_id": id, "input": input }),
        json!({ "type": "tool_result", "tool_call_id": id, "text": output, "exit_code": exit_code,
                "is_error": exit_code != 0 }),
    ]
}

fn findings(answer: &Value) -> &[Value] {
    answer["data"]["findings"].as_array().expect("findings")
}

fn text<'a>(answer: &'a Value, pointer: &str) -> &'a str {
    answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

const BROKEN: &str = "error: the ledger of berths is locked";

#[test]
fn a_fix_is_shown_with_the_failure_that_it_fixed() {
    let env = TestEnv::new();
    let header = json!({ "cwd": "/home/mira/harbor" });
    for (session, day, is_fixed) in [("old", 1, true), ("newer", 2, false), ("newest", 3, false)] {
        let mut lines = vec![user("Build it.")];
        lines.extend(command("c1", json!({ "command": "make berths" }), BROKEN, 2));
        if is_fixed {
            lines.extend(command("c2", json!({ "command": "make berths" }), "done", 0));
        }
        for (second, line) in lines.iter_mut().enumerate() {
            line["timestamp"] = json!(format!("2026-10-0{day}T06:00:0{second}Z"));
        }
        write_log(&env, session, &header, &lines);
    }
    ingest(&env);
    let answer = env.json(&["analyze"]);
    let [finding] = findings(&answer) else { panic!("{answer:#}") };
    assert_eq!(
        (&finding["event_id"], &finding["fix"]["event_id"]),
        (&"old:2".into(), &"old:3".into())
    );
    assert_eq!(
        finding["reason"],
        "3 times in 3 sessions, fixed once, not the last 2 times. The time shown: The same command succeeded right afterwards."
    );
    assert_eq!(finding["related_event_ids"], json!(["newest:2", "newer:2"]));
}

#[test]
fn a_call_in_parallel_with_a_failure_does_not_fix_it() {
    let env = TestEnv::new();
    let [first, failed] = command("c1", json!({ "command": "make berths" }), BROKEN, 2);
    let [second, worked] = command("c2", json!({ "command": "make berths -j1" }), "done", 0);
    write_log(&env, "parallel", &json!({}), &[user("Build it."), first, second, failed, worked]);
    ingest(&env);
    let answer = env.json(&["analyze", "parallel", "--checks", "failures"]);
    let [finding] = findings(&answer) else { panic!("{answer:#}") };
    assert!(finding.get("fix").is_none(), "{finding:#}");
}

#[test]
fn a_command_after_cd_is_the_same_command_there_and_another_one_elsewhere() {
    let env = TestEnv::new();
    let header = json!({ "cwd": "/home/mira/harbor" });
    let run = |session: &str, failed: Value, worked: Value| {
        let mut lines = vec![user("Build it.")];
        lines.extend(command("c1", failed, BROKEN, 2));
        lines.extend(command("c2", worked, "done", 0));
        write_log(&env, session, &header, &lines);
    };
    run(
        "there",
        json!({ "command": "cd /home/mira/harbor && make berths" }),
        json!({ "command": "make berths" }),
    );
    run(
        "named",
        json!({ "command": "cd web && make berths" }),
        json!({ "command": "make berths", "workdir": "/home/mira/harbor/web" }),
    );
    run(
        "moved",
        json!({ "command": "make berths" }),
        json!({ "command": "cd web && make berths" }),
    );
    run(
        "elsewhere",
        json!({ "command": "make berths", "workdir": "/home/mira/pier" }),
        json!({ "command": "make berths" }),
    );
    ingest(&env);
    for (session, matched) in [
        ("there", "same_call"),
        ("named", "same_call"),
        ("moved", "similar_command"),
        ("elsewhere", "similar_command"),
    ] {
        let answer = env.json(&["analyze", session, "--checks", "failures"]);
        let [finding] = findings(&answer) else { panic!("{answer:#}") };
        assert_eq!(finding["fix"]["match"], matched, "{session}: {finding:#}");
        assert_eq!(finding["fix"].get("diff").is_some(), matched != "same_call", "{finding:#}");
    }
    // Over all sessions the same is found, although fewer columns are read.
    let answer = env.json(&["analyze"]);
    let [finding] = findings(&answer) else { panic!("{answer:#}") };
    let id = text(finding, "/session_id");
    let matched = if matches!(id, "there" | "named") { "same_call" } else { "similar_command" };
    assert_eq!(finding["fix"]["match"], matched, "{finding:#}");
}

#[test]
fn filters_that_match_nothing_are_named_with_the_nearest_names() {
    let env = TestEnv::new();
    let header = json!({ "cwd": "/home/mira/harbor", "git_branch": "berth-ledger" });
    write_log(
        &env,
        "one",
        &header,
        &[user("Count the berths."), json!({ "type": "message", "text": "Nine." })],
    );
    ingest(&env);
    let typo = "No session has project 'harbour'; did you mean 'harbor'?";
    for words in [
        &["list", "--project", "harbour"][..],
        &["stats", "--by", "tool", "--project", "harbour"],
        &["search", "berths", "--project", "harbour"],
        &["search", "berths sort:relevance", "--project", "harbour"],
        &["analyze", "--project", "harbour"],
    ] {
        let answer = env.json(words);
        assert!(text(&answer, "/hint").contains(typo), "{words:?}: {answer:#}");
        assert_eq!(
            text(&answer, "/metadata/scope"),
            "0 sessions of project 'harbour'",
            "{words:?}"
        );
    }
    let answer = env.json(&["analyze", "last", "--project", "harbour"]);
    assert!(text(&answer, "/error/message").contains(typo), "{answer:#}");
    assert!(env.run(&["search", "berths", "--project", "harbour"]).fails(1).contains(typo));
    for (words, says) in [
        (
            &["list", "--provider", "kiro"][..],
            "No session has provider 'kiro'; sessions by provider: generic 1.",
        ),
        (&["list", "--label", "bug"], "No session has label 'bug', and none has any."),
        (
            &["search", "berths branch:berth-leger"],
            "No event has branch 'berth-leger'; did you mean 'berth-ledger'?",
        ),
        (
            &["list", "--since", "2026-11-01"],
            "No session was active since 2026-11-01T00:00:00.000Z.",
        ),
        (&["search", "berths tool:Bash"], "No event has tool 'bash', and none has any."),
    ] {
        let answer = env.json(words);
        assert!(text(&answer, "/hint").contains(says), "{words:?}: {answer:#}");
    }
    let scope = env.json(&["list", "--project", "harbor"]);
    assert_eq!(text(&scope, "/metadata/scope"), "1 session of project 'harbor'");
}

#[test]
fn totals_of_sessions_agree_and_say_what_they_leave_out() {
    let env = TestEnv::with_samples();
    let total = env.rows("SELECT count(*) FROM sessions")[0][0].as_u64().expect("a number");
    let status = env.json(&["status"]);
    assert_eq!(status["sessions"], total);
    let classes = status["sessions_by_class"].as_object().expect("classes");
    assert_eq!(classes.values().filter_map(Value::as_u64).sum::<u64>(), total, "{classes:?}");
    let class = |name: &str| classes[name].as_u64().expect("a count");

    let listed = env.json(&["list", "--limit", "1"]);
    let own = class("conversations");
    assert_eq!(listed["metadata"]["results_total"], own);
    assert!(
        text(&listed, "/metadata/scope")
            .starts_with(&format!("{own} of {total} sessions; left out: ")),
        "{listed:#}"
    );
    let listed = env.json(&["list", "--limit", "1", "--subagents"]);
    assert_eq!(listed["metadata"]["results_total"], own + class("subagents"));
    let analyzed = env.json(&["analyze"]);
    assert_eq!(analyzed["data"]["sessions"], own + class("subagents"));

    let stats = env.json(&["stats", "--by", "provider"]);
    let groups = stats["data"]["groups"].as_array().expect("groups");
    let counted: u64 = groups.iter().filter_map(|group| group["sessions"].as_u64()).sum();
    assert_eq!(counted, total - class("copies"), "{stats:#}");
    assert!(
        text(&stats, "/metadata/scope")
            .starts_with(&format!("{counted} of {total} sessions; left out: ")),
        "{stats:#}"
    );
    let sql = env.json(&["query", "SELECT 1"]);
    assert!(
        text(&sql, "/metadata/scope").starts_with(&format!("the whole store: {total} sessions (")),
        "{sql:#}"
    );
}

#[test]
fn a_rare_word_of_another_project_does_not_silence_the_words_of_this_one() {
    let env = TestEnv::new();
    let mut harbor = Vec::new();
    for number in 0..30 {
        let word = if number % 3 == 0 { "an error in" } else { "a look at" };
        harbor.push(user(&format!("There is {word} the ledger of berth {number}.")));
    }
    write_log(&env, "here", &json!({ "cwd": "/home/mira/harbor" }), &harbor);
    let mut pier = vec![user("Sentry shows an alarm.")];
    pier.extend((0..300).map(|number| user(&format!("Paint error plank {number} again."))));
    write_log(&env, "there", &json!({ "cwd": "/home/mira/pier" }), &pier);
    ingest(&env);
    let count = |words: &[&str]| env.json(words)["metadata"]["results_total"].as_u64();
    let query =
        ["search", "Sentry error Magento sort:relevance total:exact", "--project", "harbor"];
    assert_eq!(count(&["search", "error total:exact", "--project", "harbor"]), Some(10));
    assert_eq!(count(&query), Some(10));
    let answer = env.json(&query);
    assert!(
        text(&answer, "/hint").starts_with(
            "\"Sentry\" occurs only outside the current filters. \"Magento\" occurs in no event."
        ),
        "{answer:#}"
    );
    // A filter by type or tool counts as well.
    assert_eq!(
        count(&[
            "search",
            "Sentry error sort:relevance total:exact",
            "--event-type",
            "user",
            "--session-id",
            "here"
        ]),
        Some(10)
    );
    // Without ranking all words are required, and those that are missing are named.
    let none = env.json(&["search", "error Magento"]);
    assert!(text(&none, "/hint").contains("\"Magento\" occurs in no event."), "{none:#}");
    assert!(!text(&none, "/hint").contains("\"error\" occurs"), "{none:#}");
}

#[test]
fn tools_fold_case_and_files_have_one_path() {
    let env = TestEnv::new();
    let call = |id: &str, tool: &str, path: &str| {
        [
            json!({ "type": "tool_call", "tool_name": tool, "tool_call_id": id, "input": { "file_path": path } }),
            json!({ "type": "tool_result", "tool_call_id": id, "text": "failed", "is_error": true }),
        ]
    };
    let mut lines = vec![user("Look at it.")];
    lines.extend(call("c1", "Read", "/home/mira/harbor/src/berth.rs"));
    lines.extend(call("c2", "read", "src/berth.rs"));
    lines.extend(call("c3", "Read", "./src/../src/berth.rs"));
    write_log(&env, "one", &json!({ "cwd": "/home/mira/harbor" }), &lines);
    ingest(&env);
    let groups = |by: &str| env.json(&["stats", "--by", by])["data"]["groups"].clone();
    let tools = groups("tool");
    assert_eq!(
        (&tools[0]["group"]["tool"], &tools[0]["tool_calls"]),
        (&"Read".into(), &3.into()),
        "{tools:#}"
    );
    assert_eq!(tools.as_array().map(Vec::len), Some(1), "{tools:#}");
    let files = groups("file");
    assert_eq!(files[0]["group"]["file"], "/home/mira/harbor/src/berth.rs", "{files:#}");
    assert_eq!(files.as_array().map(Vec::len), Some(1), "{files:#}");
    let analyzed = env.json(&["analyze"]);
    assert_eq!(
        analyzed["data"]["tools"],
        json!([{ "tool_name": "Read", "calls": 3, "errors": 3 }]),
        "{analyzed:#}"
    );
}

#[test]
fn sql_has_the_texts_of_calls_and_says_what_became_of_files() {
    let env = TestEnv::new();
    let patch = "*** Begin Patch\n*** Add File: new.rs\n+x\n*** Update File: old.rs\n@@\n-a\n+b\n*** Delete File: gone.rs\n*** End Patch";
    let call = |id: &str, tool: &str, input: Value, output: &str| {
        [
            json!({ "type": "tool_call", "tool_name": tool, "tool_call_id": id, "input": input }),
            json!({ "type": "tool_result", "tool_call_id": id, "text": output }),
        ]
    };
    let mut lines = vec![user("Change it.")];
    lines.extend(call("c1", "apply_patch", json!(patch), "Success."));
    lines.extend(call(
        "c2",
        "Write",
        json!({ "file_path": "/a", "content": "x" }),
        "File created successfully at: /a",
    ));
    lines.extend(call(
        "c3",
        "Write",
        json!({ "file_path": "/b", "content": "x" }),
        "The file /b has been updated.",
    ));
    lines.extend(call("c4", "Write", json!({ "file_path": "/c", "content": "x" }), "ok"));
    lines.extend(call(
        "c5",
        "Edit",
        json!({ "file_path": "/d", "old_string": "x", "new_string": "y" }),
        "ok",
    ));
    lines.extend(call("c6", "Read", json!({ "file_path": "/e" }), "file created"));
    write_log(&env, "one", &json!({ "cwd": "/home/mira/harbor" }), &lines);
    ingest(&env);
    let rows = env.rows("SELECT path, change FROM files ORDER BY event_index, path");
    assert_eq!(
        json!(rows),
        json!([
            ["gone.rs", "deleted"],
            ["new.rs", "added"],
            ["old.rs", "changed"],
            ["/a", "added"],
            ["/b", "changed"],
            ["/c", "written"],
            ["/d", "changed"],
            ["/e", null]
        ])
    );
    let texts = env.rows("SELECT input, output FROM tool_calls WHERE tool_call_id = 'c4'");
    assert!(texts[0][0].as_str().is_some_and(|input| input.contains("/c")), "{texts:?}");
    assert_eq!(texts[0][1], "ok");
    let wrong = env.json(&["query", "SELECT nosuchcolumn FROM labels"]);
    let message = text(&wrong, "/error/message");
    assert!(
        message.contains("Columns of labels: session_id, label, note, updated_at"),
        "{message}"
    );
}

#[test]
fn blank_optional_arguments_are_absent() {
    let env = TestEnv::new();
    write_log(&env, "one", &json!({ "cwd": "/home/mira/harbor" }), &[user("Count the berths.")]);
    ingest(&env);
    let mut client = Client::legacy(&env);
    for (tool, arguments, blank) in [
        (
            "search_events",
            json!({ "query": "berths" }),
            &["cursor", "since", "project", "provider", "session_id", "event_type"][..],
        ),
        (
            "list_sessions",
            json!({}),
            &["cursor", "since", "project", "provider", "label", "format", "sort", "session_ids"],
        ),
        (
            "get_session_details",
            json!({ "session_id": "one" }),
            &["cursor", "turns", "detail_level"],
        ),
        ("get_event_details", json!({ "event_ids": ["one:0"] }), &["cursor", "fields"]),
        (
            "analyze_session",
            json!({}),
            &["cursor", "since", "project", "provider", "session_id", "checks"],
        ),
        (
            "session_stats",
            json!({ "group_by": "provider" }),
            &["since", "until", "project", "provider", "session_id", "sort"],
        ),
        ("tool_metadata", json!({}), &["tools"]),
    ] {
        let plain = client.call(tool, arguments.clone());
        let mut blanks = arguments;
        for name in blank {
            blanks[*name] = json!("");
        }
        let answer = client.call(tool, blanks);
        assert_eq!(answer["data"], plain["data"], "{tool}");
        assert_eq!(answer["warnings"], plain["warnings"], "{tool}");
    }
    let all = client.call("list_sessions", json!({}));
    let answer = client.call("list_sessions", json!({ "session_ids": [] }));
    assert_eq!(answer["data"], all["data"], "an empty list");
    assert_eq!(answer["hint"], all["hint"], "an empty list");
}

#[test]
fn all_groups_that_are_asked_for_are_printed() {
    let env = TestEnv::new();
    let mut log = String::from("{\"format\":\"sessions\",\"version\":1,\"session_id\":\"s\"}\n");
    for number in 0..400 {
        let name = format!("tool_{number:03}_{}", "x".repeat(200));
        log.push_str(&format!("{{\"type\":\"tool_call\",\"tool_name\":\"{name}\"}}\n"));
    }
    std::fs::write(env.path("s.jsonl"), log).expect("writes");
    env.run(&["ingest", "--quiet", "s.jsonl"]).ok();
    let shown = |flags: &[&str]| {
        let stats = env.json(&[&["stats", "--by", "tool"], flags].concat());
        let groups = stats["data"]["groups"].as_array().expect("groups").len();
        (
            groups,
            stats["pagination"]["has_more"].as_bool(),
            stats["metadata"]["results_total"].as_u64(),
        )
    };
    assert_eq!(shown(&["-n", "500"]), (400, Some(false), Some(400)));
    assert_eq!(shown(&[]), (50, Some(true), Some(400)));
}
