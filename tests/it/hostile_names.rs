//! No secret and no invisible character leaves the store by a name, an id or a path.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{TestEnv, files_below};
use crate::mcp::Client;

/// Characters that must not be printed or answered.
const UNSEEN: &str = "\u{1b}\u{8}\u{7f}\u{9b}\u{ad}\u{34f}\u{61c}\u{115f}\u{180e}\u{200b}\u{202e}\u{2060}\u{2066}\u{2800}\u{3164}\u{feff}\u{ffa0}\u{fff9}\u{e0041}\u{e0100}\u{e01ef}";

/// A token that looks like one of GitHub; `mark` tells it from others.
fn token(mark: &str) -> String {
    format!("gh{}_{mark}r9Xk2LmQ7vT4sWb8Yc3Nd6Pf1Hj5ZaGe0uKt", "p")[..40].to_owned()
}

fn write_lines(env: &TestEnv, name: &str, lines: &[Value]) -> PathBuf {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    env.write(format!("logs/{name}"), text)
}

/// A generic log with a value of `name` in every column that a log can fill.
fn generic(name: &dyn Fn(&str) -> String) -> Vec<Value> {
    vec![
        json!({ "format": "sessions", "version": 1, "session_id": name("A0"), "agent": name("A1"),
            "agent_version": name("A2"), "cwd": format!("/home/{}", name("A3")),
            "git_branch": name("A4"), "model": name("A5"), "title": name("A6"),
            "parent_session_id": name("A7"), "agent_id": name("A8"),
            "repository": format!("https://h.example/o/{}", name("A9")) }),
        json!({ "type": "user", "timestamp": "2026-05-01T10:00:00Z", "text": "go" }),
        json!({ "type": "tool_call", "tool_name": name("B0"), "tool_call_id": format!("toolu_{}", name("B1")),
            "subtype": name("B2"), "request_id": name("B3"), "input": { "file_path": name("B4") },
            "usage": { "input_tokens": 5, "output_tokens": 2 } }),
        json!({ "type": "tool_result", "tool_call_id": format!("toolu_{}", name("B1")), "text": "done" }),
        json!({ "type": name("B5"), "text": "odd" }),
    ]
}

/// Everything that can be asked, as one text.
fn everything(env: &TestEnv) -> String {
    let mut out = String::new();
    for view in
        ["events", "sessions", "problems", "tool_calls", "usage", "files", "lineage", "turns"]
    {
        let sql = format!("SELECT * FROM {view}");
        append_output(env, &mut out, &["query", "--output", "ndjson", "--max-rows", "1000", &sql]);
        append_output(env, &mut out, &["query", &sql]);
    }
    for json in [false, true] {
        for args in [
            &["list"][..],
            &["show", "last", "--detail-level", "turns"],
            &["show", "last", "--detail-level", "full"],
            &["search", "done"],
            &["stats", "--by", "tool"],
            &["usage"],
            &["status"],
            &["doctor"],
            &["analyze", "last"],
        ] {
            let mut args = args.to_vec();
            if json {
                args.push("--json");
            }
            append_output(env, &mut out, &args);
        }
    }
    for format in ["jsonl", "markdown", "html"] {
        let to = env.path(format!("export-{format}"));
        append_output(
            env,
            &mut out,
            &["export", "--format", format, "--force", "-o", &to.to_string_lossy()],
        );
        append_files(&to, &mut out);
    }
    let report = env.path("report.html");
    append_output(env, &mut out, &["report", "-o", &report.to_string_lossy()]);
    append_files(&report, &mut out);
    append_answers(env, &mut out);
    out
}

/// Appends what a command prints.
fn append_output(env: &TestEnv, out: &mut String, args: &[&str]) {
    let ran = env.run(args);
    assert_ne!(ran.code, 2, "{args:?}: {}", ran.stderr);
    out.push_str(&ran.stdout);
    out.push_str(&ran.stderr);
}

/// Appends the content of a file, or of all files of a folder, and their names.
fn append_files(path: &Path, out: &mut String) {
    let files = if path.is_dir() { files_below(path) } else { vec![path.to_owned()] };
    for file in files {
        out.push_str(&file.strip_prefix(path.with_file_name("")).expect("below").to_string_lossy());
        out.push_str(&String::from_utf8_lossy(&fs::read(file).expect("reads")));
    }
}

/// Appends what a server answers about the newest session.
fn append_answers(env: &TestEnv, out: &mut String) {
    let mut client = Client::modern(env);
    let listed = client.call("list_sessions", json!({}));
    let session = listed["data"]["sessions"][0]["session_id"].text();
    for (tool, arguments) in [
        ("get_session_details", json!({ "session_id": session, "detail_level": "full" })),
        ("get_event_details", json!({ "event_ids": [format!("{session}:0")] })),
        ("search_events", json!({ "query": "done" })),
        ("analyze_session", json!({ "session_id": session })),
        ("session_stats", json!({ "group_by": ["tool"] })),
    ] {
        out.push_str(&client.call(tool, arguments).to_string());
    }
    for uri in ["sessions://status", &format!("sessions://session/{session}")] {
        out.push_str(&client.request("resources/read", json!({ "uri": uri })).to_string());
    }
    out.push_str(&listed.to_string());
}

/// A log of Claude and one of Codex, with a value of `name` where they name things.
fn write_agents_logs(env: &TestEnv, name: &dyn Fn(&str) -> String) {
    let line = |record: Value| {
        let mut record = record;
        record["sessionId"] = json!("5ec4e75a-2222-4000-8000-000000000000");
        record["timestamp"] = json!("2026-05-01T10:00:00.000Z");
        record["cwd"] = json!(format!("/home/{}", name("C0")));
        record["gitBranch"] = json!(name("C1"));
        record["version"] = json!(name("C2"));
        record
    };
    let claude = [
        line(json!({ "type": "user", "uuid": "5ec4e75a-0001-4000-8000-000000000000",
            "message": { "role": "user", "content": "go" } })),
        line(json!({ "type": "assistant", "uuid": "5ec4e75a-0002-4000-8000-000000000000",
            "requestId": format!("req_{}", name("C3")), "message": { "id": "msg_1",
                "role": "assistant", "model": name("C4"), "content": [{ "type": "tool_use",
                "id": format!("toolu_{}", name("C5")), "name": name("C6"),
                "input": { "file_path": name("C7") } }],
                "usage": { "input_tokens": 5, "output_tokens": 2 } } })),
        line(json!({ "type": "system", "uuid": "5ec4e75a-0003-4000-8000-000000000000",
            "subtype": name("C8"), "content": "a notice" })),
        line(json!({ "type": name("C9"), "uuid": "5ec4e75a-0004-4000-8000-000000000000" })),
    ];
    write_lines(env, "claude.jsonl", &claude);
    let at = "2026-05-01T10:00:00.000Z";
    let codex = [
        json!({ "timestamp": at, "type": "session_meta", "payload": {
            "id": "5ec4e75a-3333-4000-8000-000000000000", "timestamp": at,
            "cwd": format!("/home/{}", name("D0")), "originator": name("D1"),
            "cli_version": name("D2"), "git": { "branch": name("D3"),
                "repository_url": format!("https://h.example/o/{}", name("D4")) } } }),
        json!({ "timestamp": at, "type": "response_item", "payload": { "type": "function_call",
            "name": name("D5"), "arguments": "{}", "call_id": format!("call_{}", name("D6")) } }),
        json!({ "timestamp": at, "type": "response_item", "payload": {
            "type": "function_call_output", "call_id": format!("call_{}", name("D6")),
            "output": "done" } }),
        json!({ "timestamp": at, "type": "event_msg", "payload": { "type": name("D7") } }),
        json!({ "timestamp": at, "type": name("D8"), "payload": {} }),
    ];
    write_lines(env, "codex.jsonl", &codex);
}

/// A log, with a secret in every name, in its own name and its folder's.
fn ingest_secrets(env: &TestEnv) -> (PathBuf, String) {
    let name = format!("{}/log_{}.jsonl", token("P0"), token("P1"));
    let log = write_lines(env, &name, &generic(&token));
    write_agents_logs(env, &token);
    write_lines(env, &format!("{}.jsonl", token("P2")), &[json!({ "odd": 1 })]);
    let ran = env.run(["ingest", "logs"]).exits(0);
    let report = env.run(["ingest", "--json", "logs"]);
    (log, ran.stdout + &ran.stderr + &report.stdout)
}

#[test]
fn secrets_in_names_ids_and_paths_are_masked() {
    let env = TestEnv::new();
    let (_, printed) = ingest_secrets(&env);
    let mut all = printed + &everything(&env);
    for format in ["arrow", "parquet"] {
        let to = env.path(format!("export-{format}"));
        append_output(&env, &mut all, &["export", "--format", format, "-o", &to.to_string_lossy()]);
        append_files(&to, &mut all);
    }
    let marks =
        ["A", "B", "C", "D"].iter().flat_map(|set| (0..10).map(move |n| format!("{set}{n}")));
    let marks = marks.chain(["P0", "P1", "P2"].map(str::to_owned));
    let left: Vec<String> = marks.filter(|mark| all.contains(&token(mark)[4..])).collect();
    assert_eq!(left, Vec::<String>::new());
    assert!(all.contains("toolu_[REDACTED:github_token]"), "the call keeps its id's prefix");
    let joined = "SELECT count(*) FROM tool_calls WHERE result_event_id IS NOT NULL";
    assert_eq!(env.number(joined), 2);
}

#[test]
fn a_log_with_a_secret_in_its_path_goes_on() {
    let env = TestEnv::new();
    let (log, _) = ingest_secrets(&env);
    env.append_event(&log, &json!({ "type": "message", "text": "a later word" }));
    env.ingest("logs").has(json!({"files_grown": 1, "files_new": 0}));
    env.remove(&log);
    env.ingest("logs").has(json!({"files_vanished": 1}));
    env.run(["query", "--output", "ndjson", "SELECT source_gone FROM sessions"]).shows("true");
}

#[test]
fn no_unseen_character_is_printed_or_answered() {
    let env = TestEnv::new();
    let log = "od\u{1b}]0;x\u{7}d\u{202e}\u{200b}\u{e0101}.jsonl";
    let dirty = |mark: &str| {
        let mut name = format!("n{mark}");
        for unseen in UNSEEN.chars() {
            name.push(unseen);
            name.push('x');
        }
        name
    };
    write_lines(&env, log, &generic(&dirty));
    write_agents_logs(&env, &dirty);
    write_lines(&env, "no\u{1b}[31m\u{202e}log.jsonl", &[json!({ "odd": 1 })]);
    let ran = env.run(["ingest", &env.path("logs").to_string_lossy()]);
    let all = ran.stdout + &ran.stderr + &everything(&env);
    let seen: Vec<char> = UNSEEN.chars().filter(|unseen| all.contains(*unseen)).collect();
    assert_eq!(seen, Vec::<char>::new());
    let missing = env.run(["ingest", "nowhere\u{1b}[2J\u{202e}"]);
    assert!(!missing.stderr.contains(['\u{1b}', '\u{202e}']), "{}", missing.stderr);
}

#[test]
fn a_secret_split_by_unseen_characters_is_masked_and_joiners_stay() {
    let env = TestEnv::new();
    let secret = token("S0");
    let split = |by: &str| format!("{}{by}{}", &secret[..9], &secret[9..]);
    let kept = "👩\u{200d}💻 می\u{200c}خواهم क्\u{200d}ष";
    let mut lines = generic(&|mark: &str| format!("n{mark}"));
    for by in ["\0", "\u{8}", "\u{200b}", "\u{1b}[0m", "\u{ad}"] {
        lines.push(json!({ "type": "message", "text": format!("it is {}", split(by)) }));
    }
    lines.push(json!({ "type": "message", "text": kept }));
    write_lines(&env, "a.jsonl", &lines);
    env.ingest("logs");
    let all = everything(&env);
    assert!(!all.contains(&secret[9..]), "{all}");
    assert!(all.contains(kept));
}

#[test]
fn a_name_with_line_breaks_makes_no_line_of_its_own() {
    let env = TestEnv::new();
    env.write("logs/x\nproblems: none.jsonl", "garbage\n");
    let said = env.run(["ingest", "logs"]).ok();
    said.shows("x problems: none.jsonl");
    assert!(!said.lines().any(|line| line.starts_with("problems: none")));
}

/// The names of a model and of a tool are what a log says they are.
#[test]
fn names_in_a_log_make_no_lines_of_their_own() {
    let env = TestEnv::new();
    let lines = [
        json!({ "format": "sessions", "version": 1, "session_id": "s", "model": "m\nerror: fake" }),
        json!({ "type": "user", "text": "begin" }),
        json!({ "type": "message", "text": "an answer", "model": "m\nerror: fake\u{2028}error: more" }),
        json!({ "type": "tool_call", "call_id": "c", "tool_name": "Bash\nerror: fake", "text": "run" }),
        json!({ "type": "tool_result", "call_id": "c", "text": "failed", "is_error": true }),
    ];
    write_lines(&env, "a.jsonl", &lines);
    env.ingest("logs");
    let mut said = 0;
    for args in [
        &["list"][..],
        &["usage"],
        &["stats", "--by", "tool"],
        &["search", "run"],
        &["show", "s"],
        &["analyze", "s"],
        &["export", "--format", "markdown", "--session-id", "s"],
    ] {
        let ran = env.run(args);
        let out = ran.stdout + &ran.stderr;
        assert!(!out.lines().any(|line| line.starts_with("error: ")), "{args:?}: {out}");
        said += out.matches("fake").count();
    }
    assert!(said > 3, "the names are shown");
}
