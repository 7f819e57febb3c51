//! No secret of the list survives anywhere: not in an answer, not in SQL, not on disk.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{RULES, Random, TestEnv, contents_below, copy_folder, files_below};
use crate::freshness::until;
use crate::hooks::{PROJECT, ask};
use crate::lake::{ingest_log, machine, objects, pull, push};
use crate::lake_compact::{compact, joined_files, read_rows};
use crate::mcp::Client;
use crate::web::Page;

const LIST: &str = include_str!("../../ingest/tests/redact/secrets.txt");

/// The cases of the list as texts, and the secrets in them.
fn planted() -> (Vec<String>, Vec<String>) {
    let list = LIST.replace("‹›", "");
    let (mut texts, mut secrets): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for line in list.lines() {
        match (line.starts_with("§ "), texts.last_mut()) {
            (true, _) => texts.push(String::new()),
            (false, Some(text)) => text.extend([line, "\n"]),
            (false, None) => {}
        }
    }
    let mut around = String::new();
    for text in &mut texts {
        let mut plain = String::new();
        let mut rest = text.as_str();
        while let Some((before, inside)) = rest.split_once('⟦') {
            let (marked, after) = inside.split_once('⟧').expect("a closed mark");
            let (_, secret) = marked.split_once(':').expect("a kind");
            plain.extend([before, secret]);
            around.extend([before, "\n"]);
            // On disk the lines of a key may stand apart.
            let lines = secret.lines().filter(|line| line.len() >= 24 && !line.starts_with("--"));
            secrets.extend(lines.map(str::to_owned));
            rest = after;
        }
        plain.push_str(rest);
        around.push_str(rest);
        *text = plain;
    }
    assert!(secrets.len() >= 200, "{}", secrets.len());
    // A few stand in the open elsewhere, as in a public key and the name of a tenant.
    let count = secrets.len();
    secrets.retain(|secret| !around.contains(secret.as_str()));
    assert!(count - secrets.len() <= 10, "{}", secrets.len());
    (texts, secrets)
}

/// The log of most tests.
const LOG: &str = "logs/5ec4e75a-1111-4000-8000-000000000000.jsonl";

/// Two texts of which a rule of the user masks the first one.
const BOAT: [&str; 2] = ["the boat is called Kittiwake", "nothing to hide"];

/// The two words of the secret in the texts, with their rule: not masked, and masked.
const MASKED: (&str, &str) = ("Kittiwake", "[REDACTED:boat]");

/// A Claude log in which every text stands as prompt, command, result, title and queued prompt.
fn write_log(env: &TestEnv, name: &str, texts: &[impl AsRef<str>]) {
    let session = "5ec4e75a-1111-4000-8000-000000000000";
    let mut lines: Vec<Value> = Vec::new();
    for (number, text) in texts.iter().map(AsRef::as_ref).enumerate() {
        let record = |kind: &str, part: u32, message: Value| {
            json!({
                "type": kind, "uuid": format!("{number:08x}-{part:04x}-4000-8000-000000000000"),
                "sessionId": session, "timestamp": "2026-05-01T10:00:00.000Z",
                "cwd": "/home/mira/code/harbor", "version": "2.1.0", "message": message,
            })
        };
        let call = format!("toolu_{number}");
        let blocks = json!([
            { "type": "thinking", "thinking": text },
            { "type": "text", "text": text },
            { "type": "tool_use", "id": call, "name": "Bash", "input": { "command": text } },
        ]);
        let result = json!([{ "type": "tool_result", "tool_use_id": call, "content": text, "is_error": true }]);
        lines.extend([
            record("user", 1, json!({ "role": "user", "content": text })),
            record(
                "assistant",
                2,
                json!({ "role": "assistant", "id": format!("msg_{number}"),
                "model": "claude-sonnet-5", "content": blocks }),
            ),
            record("user", 3, json!({ "role": "user", "content": result })),
            json!({ "type": "custom-title", "customTitle": text, "sessionId": session }),
            json!({ "type": "queue-operation", "operation": "enqueue", "content": text,
                "timestamp": "2026-05-01T10:00:01.000Z" }),
        ]);
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    // Half a line, as of a log that is being written, and a line that is no JSON.
    env.write(name, format!("{text}{{\"no json\": {}\n", texts[0].as_ref()));
}

/// Replaces the rules of the user by one for boats.
fn set_rule(env: &TestEnv, regex: &str) {
    env.write(RULES, format!("[[rule]]\nname = 'boat'\nregex = '{regex}'\n"));
}

/// Everything that can be asked, as one text.
fn everything(env: &TestEnv) -> String {
    let select = ["query", "--output", "ndjson", "--max-rows", "100000"];
    let commands: [&[&str]; 8] = [
        &[&select[..], &["SELECT * FROM events"]].concat(),
        &[&select[..], &["SELECT * FROM sessions"]].concat(),
        &[&select[..], &["SELECT * FROM problems"]].concat(),
        &["list", "--format", "full", "--json"],
        &["show", "5ec4e75a", "--detail-level", "turns", "--json"],
        &["search", "token", "--limit", "50", "--json"],
        &["status", "--json"],
        &["doctor", "--json"],
    ];
    let answers = commands.iter().map(|args| env.run(*args));
    answers.map(|ran| ran.stdout + &ran.stderr).collect()
}

/// Checks that a text has the mark of the rule for boats, and not the word that it masks.
#[track_caller]
fn check_masked(text: &str) {
    text.shows(MASKED.1).lacks(MASKED.0);
}

/// Checks that a text has none of the secrets.
#[track_caller]
fn check_none(secrets: &[String], haystack: &str) {
    assert_eq!(survivors(secrets, haystack), [""; 0]);
}

fn survivors<'s>(secrets: &'s [String], haystack: &str) -> Vec<&'s String> {
    secrets.iter().filter(|secret| haystack.contains(secret.as_str())).collect()
}

#[test]
fn no_planted_secret_survives_in_answers_or_on_disk() {
    let (texts, secrets) = planted();
    let env = TestEnv::new();
    write_log(&env, LOG, &texts);
    check_none(&secrets, &env.run(["ingest", "--json", "logs"]).ok());
    check_none(&secrets, &everything(&env));
    for secret in secrets.iter().filter(|secret| !secret.contains(['\n', '"', '/', '\\'])) {
        env.run(["search", &format!("\"{secret}\"")]).fails(1);
    }
    let masked = env.json(["status"]);
    assert!(masked["redactions"].as_object().expect("counts by kind").len() >= 40);
    // Without masking the same log holds them all: the test can fail.
    let plain = TestEnv::new();
    write_log(&plain, "logs/x.jsonl", &texts);
    plain.run(["ingest", "--quiet", "--no-redact", "logs"]).ok();
    assert!(survivors(&secrets, &everything(&plain)).len() >= 150);
    // The store's own files: text and states are LZ4, whose literals stand there as they are.
    check_none(&secrets, &bytes_of(&env.store()));
}

#[test]
fn no_secret_survives_where_a_text_is_cut() {
    let env = TestEnv::new();
    let token = ["ghp", "_0rT3stsN0tR34l9zQx7H4rb0rM1r4K3yW1th"].concat();
    let line = "Vk2C0ff33B34nGr1nd3rW4lkTh3D0gTw1c3L4nt3rnP4rk8bZy6M4d3UpF0rT3s";
    let key = format!(
        "-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n",
        format!("{line}\n").repeat(400)
    );
    // Wherever the token lies across the end of what is kept: 4 KB of a command, 16 KB of a notice.
    for at in 0..12 {
        let long = |most: usize| {
            format!("{} {token}", "echo x; ".repeat(most).split_at(most - 20 - 3 * at).0)
        };
        let call = format!("toolu_{at}");
        let uuid = |part: u32| format!("{at:08x}-{part:04x}-4000-8000-000000000000");
        let blocks = |block: Value| json!({ "role": "assistant", "id": call, "content": [block] });
        let used = json!({ "type": "tool_use", "id": call, "name": "Bash", "input": { "command": long(4096) } });
        let result =
            json!({ "type": "tool_result", "tool_use_id": call, "content": "in the background" });
        for record in [
            json!({ "type": "assistant", "uuid": uuid(1), "sessionId": "c", "message": blocks(used) }),
            json!({ "type": "progress", "uuid": uuid(9), "sessionId": "c", "parentToolUseID": call,
                "data": { "type": "bash_progress", "fullOutput": key } }),
            json!({ "type": "user", "uuid": uuid(2), "sessionId": "c",
                "message": { "role": "user", "content": [result] } }),
            json!({ "type": "system", "subtype": "informational", "uuid": uuid(3), "sessionId": "c",
                "content": long(16384) }),
        ] {
            env.append_event("logs/c.jsonl", &record);
        }
    }
    env.ingest("logs");
    let all = everything(&env);
    all.shows(["in the background", "[REDACTED:private_key]"]);
    all.lacks([&token[..16], &token[4..20], &line[..24]]);
}

/// The bytes of every file below a folder, as text.
fn bytes_of(dir: &Path) -> String {
    let files = contents_below(dir).into_values();
    files.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

#[test]
fn a_rule_of_the_user_masks_what_was_read_before() {
    let env = TestEnv::new();
    write_log(&env, LOG, &BOAT);
    env.ingest("logs");
    env.run(["search", "kittiwake"]).ok();
    set_rule(&env, "Kittiwake");
    env.ingest("logs").has(json!({"files_rewritten": 1}));
    env.run(["search", "kittiwake"]).fails(1);
    env.run(["search", "REDACTED:boat"]).ok();
    env.ingest("logs").has(json!({"files_opened": 0}));
    // A rule that is no regex is named, and nothing is read.
    set_rule(&env, "(");
    env.run(["ingest", "logs"]).fails(2).says("boat");
}

/// A watch of days follows the rules that are in force by then, not those of its start.
#[test]
fn a_watch_masks_by_rules_that_are_newer_than_it() {
    let env = TestEnv::new();
    let texts = [BOAT[1], BOAT[0]];
    write_log(&env, LOG, &texts[..1]);
    let watch = env.cli(["ingest", "--watch", "--quiet", "logs"]).start();
    let is_found = |word: &str| env.run(["search", word, "--no-refresh"]).code == 0;
    until(|| is_found("hide"));

    // A file in the middle of an edit stops nothing for good.
    set_rule(&env, "(");
    write_log(&env, LOG, &texts);
    std::thread::sleep(std::time::Duration::from_millis(100));
    set_rule(&env, "Kittiwake");
    until(|| is_found("REDACTED:boat"));
    drop(watch);
    assert!(!is_found("kittiwake"));
}

/// The names and ids in a log that ends within a call are kept until its result comes. The token is
/// joined to a word, as a client joins the name of a tool to what it writes next.
#[test]
fn no_byte_of_the_store_holds_a_secret_of_an_unfinished_call() {
    let token = |mark: &str| {
        let token = ["gh", "p_", mark, "r9Xk2LmQ7vT4sWb8Yc3Nd6Pf1Hj5ZaGe0uKt"].concat();
        token[..40].to_owned()
    };
    let record = |kind: &str, payload: Value| {
        format!(
            "{}\n",
            json!({ "timestamp": "2026-05-01T10:00:00.000Z", "type": kind, "payload": payload })
        )
    };
    let id = "5ec4e75a-4444-4000-8000-000000000000";
    let call = |name: &str, id: &str| {
        record(
            "response_item",
            json!({ "type": "function_call", "name": name, "call_id": id,
            "arguments": json!({ "cmd": "true" }).to_string() }),
        )
    };
    let output = |id: &str| {
        let output = json!({ "type": "function_call_output", "call_id": id, "output": "done" });
        record("response_item", output)
    };
    let ended = |id: &str| {
        record(
            "event_msg",
            json!({ "type": "exec_command_end", "call_id": id, "exit_code": 0,
            "duration": { "secs": 2, "nanos": 0 } }),
        )
    };

    let env = TestEnv::new();
    let marks = ["Aa0", "Ab1", "Ac2", "Ad3"].map(token);
    let calls = [
        (format!("exec_command{}", marks[0]), format!("call_{}", marks[1])),
        (format!("{}exec", marks[2]), format!("call{}", marks[3])),
    ];
    let log = format!("logs/rollout-2026-05-01T10-00-00-{id}.jsonl");
    let meta = json!({ "id": id, "timestamp": "2026-05-01T10:00:00.000Z", "cwd": "/home/mira" });
    env.write(&log, record("session_meta", meta));
    let mut seen = String::new();
    for (part, changed) in [
        (call(&calls[0].0, &calls[0].1) + &call(&calls[1].0, &calls[1].1), "files_new"),
        (output(&calls[0].1), "files_grown"),
        // The decoder now remembers the id with the secret, so the log is read again.
        (ended(&calls[1].1), "files_grown"),
        (output(&calls[1].1), "files_rewritten"),
    ] {
        env.append(&log, &part);
        assert_eq!(env.ingest("logs")[changed], 1, "{part}");
        seen.push_str(&bytes_of(&env.store()));
        seen.push_str(&everything(&env));
    }
    for mark in &marks {
        seen.lacks(&mark[4..24]);
    }
    let joined = env.rows("SELECT tool_name, duration_ms FROM tool_calls WHERE result_event_id IS NOT NULL ORDER BY ALL");
    assert_eq!(joined.len(), 2, "{joined:?}");
    format!("{joined:?}").shows(["exec_command[REDACTED:github_token]", "2000"]);
}

/// The bytes of the segments that the manifest names, as text: others are kept for readers for some
/// minutes.
fn live_bytes(env: &TestEnv) -> String {
    let manifest = crate::env::manifest_of(&env.store());
    let segments = manifest["segments"].list();
    let number = |segment: &Value| segment["number"].as_i64().expect("a number");
    let dirs = segments.iter().map(|segment| format!("store/segments/{:010}", number(segment)));
    dirs.map(|dir| bytes_of(&env.path(&dir))).collect()
}

#[test]
fn a_rule_of_the_user_masks_what_is_kept_of_logs_that_are_gone() {
    let env = TestEnv::new();
    write_log(&env, LOG, &BOAT);
    env.ingest("logs");
    // The rest of the log lies in a segment of its own.
    let log = env.read(LOG);
    let more = log.replace("00000000-", "00000077-").replace("00000001-", "00000078-");
    env.append(LOG, &more.replace("msg_", "msg_7"));
    env.ingest("logs").has(json!({"files_grown": 1}));
    let columns = "event_id, event_index, turn_index, step_index, event_type, source_offset";
    let shape = || env.rows(&format!("SELECT {columns} FROM events ORDER BY ALL"));
    let problems = || env.rows("SELECT path, line, byte, kind FROM problems ORDER BY ALL");
    let before = (shape(), problems());
    assert!(!before.1.is_empty() && live_bytes(&env).contains("Kittiwake"));
    env.remove(LOG);
    env.ingest("logs").has(json!({"files_vanished": 1}));

    set_rule(&env, "Kittiwake");
    env.ingest("logs");
    env.run(["search", "kittiwake"]).fails(1);
    env.run(["search", "REDACTED:boat"]).ok();
    check_masked(&everything(&env));
    live_bytes(&env).lacks("Kittiwake");
    assert_eq!((shape(), problems()), before, "the rest is as it was");
    assert!(env.json(["status"])["redactions"]["boat"].as_u64() > Some(5));
    // Done once: the next run changes nothing.
    let manifest = || crate::env::manifest_of(&env.store());
    let masked = manifest();
    env.ingest("logs");
    assert_eq!(manifest(), masked);

    // A log that vanishes in the moment in which the rules grow, and one that comes back.
    write_log(&env, LOG, &BOAT);
    env.ingest("logs").has(json!({"files_rewritten": 1}));
    env.remove(LOG);
    env.write_rule("hidden", "nothing to hide");
    env.ingest("logs").has(json!({"files_vanished": 1}));
    everything(&env).lacks("nothing to hide");
}

/// Neither logs in other folders nor the names of files that are no logs may be missed.
#[test]
fn a_rule_of_the_user_masks_what_is_outside_the_folders_of_the_next_ingest() {
    let env = TestEnv::new();
    // Writes a log whose ids differ from those of the other folders.
    let write = |folder: &str, digit: &str, text: &str| {
        let name = format!("{folder}/{digit}.jsonl");
        write_log(&env, &name, &[text]);
        env.replace(&name, "5ec4e75a-1111", &format!("5ec4e75a-{}", digit.repeat(4)));
        env.replace(&name, "00000000-", &format!("0000000{digit}-"));
        env.replace(&name, "msg_", &format!("msg_{digit}"));
    };
    write("kept", "1", "the boat is called Kittiwake");
    write("lost", "2", "the boat is called Kittiwake too");
    write("other", "3", "hello");
    env.write("other/Kittiwake-1.jsonl", "{\"unknown\":1}\n");
    env.write("other/Kittiwake-2.jsonl", "{\"unknown\":1}\n");
    for name in ["kept", "lost", "other"] {
        env.ingest(name);
    }
    everything(&env).shows("Kittiwake");
    env.remove("lost");
    env.remove("other/Kittiwake-2.jsonl");

    set_rule(&env, "Kittiwake");
    env.ingest("other");
    check_masked(&env.run(["export", "--format", "jsonl"]).stdout);
    // Problems that were found before with files that are no logs go with the compaction.
    env.run(["compact"]).ok();
    check_masked(&everything(&env));
    assert!(!env.rows("SELECT path FROM problems").is_empty(), "problems stay");

    // A log that still exists is continued when it grows.
    let boats = || env.number("SELECT count(*) FROM events WHERE text LIKE '%REDACTED:boat%'");
    let before = boats();
    let log = env.read("kept/1.jsonl");
    env.append("kept/1.jsonl", &log.replace("00000001-", "00000077-").replace("msg_", "msg_7"));
    env.ingest("kept");
    assert!(boats() > before);
    everything(&env).lacks("Kittiwake");
}

/// The rows of every Parquet file below a folder, as text.
fn parquet_rows(dir: &Path) -> String {
    let files = files_below(dir).into_iter();
    let tables = files.filter(|path| path.extension().is_some_and(|end| end == "parquet"));
    tables.map(|path| format!("{:?}", read_rows(&path))).collect()
}

/// Text under an old rule: of a log that still exists, of one that is gone, of a session that came from
/// a lake, and of labels and notes.
#[test]
fn no_way_out_of_the_store_shows_what_a_new_rule_masks() {
    const GONE: &str = "gone-aaaaaaaaaaaaaaaaaaaaa";
    let tom = machine("lap-tom", "tom", "include = ['**']\ncontent = 'full'");
    ingest_log(&tom, "tide-bbbbbbbbbbbbbbbbbbbbb", PROJECT, "Kittiwake is the boat of tom");
    let lake = tom.path("lake");
    push(&tom, &lake);

    let env =
        machine("pier", "mira", "include = ['**']\ncontent = 'full'\n[hooks]\ntimeout_ms = 60000");
    let text = "what did we decide about the boat Kittiwake?";
    write_log(&env, LOG, &[text]);
    env.ingest("logs");
    ingest_log(&env, GONE, PROJECT, "the lost boat Kittiwake");
    env.remove(format!("{GONE}.jsonl"));
    pull(&env, &lake);
    env.run(["label", "5ec4e75a", "--add", "of Kittiwake", "--note", "Kittiwake sails"]).ok();
    let old = env.path("old");
    copy_folder(&env.store(), &old);
    env.write_rule("boat", "Kittiwake");
    let begin_again = || {
        fs::remove_dir_all(env.store()).expect("removes");
        copy_folder(&old, &env.store());
        let _ = fs::remove_dir_all(env.path("out"));
        fs::create_dir(env.path("out")).expect("creates");
    };

    let own = "5ec4e75a-1111-4000-8000-000000000000";
    let tide = "tide-bbbbbbbbbbbbbbbbbbbbb";
    let commands: &[&[&str]] = &[
        &["search", "boat", "--json"],
        &["search", "boat"],
        &["find", "boat", "--json"],
        &["list", "--json"],
        &["show", own, "--detail-level", "turns", "--json"],
        &["show", GONE, "--detail-level", "turns"],
        &["event", &format!("{tide}:0")],
        &["query", "SELECT text FROM events"],
        &["query", "SELECT label, note FROM labels"],
        &["analyze", own, "--json"],
        &["forget", own],
        &["resume", own, "--with", "codex", "--print"],
        &["report", "-o", "out/report.html"],
        &["export", "--format", "jsonl", "-o", "out/events.jsonl"],
        &["export", "--format", "parquet", "-o", "out/lake"],
        &["export", "--format", "arrow", "-o", "out/events.arrow"],
        &["export", "jsonl", "--table", "sessions", "-o", "out/sessions.jsonl"],
        &["export", "--format", "markdown", "--session-id", tide, "-o", "out/one.md"],
        &["export", "--format", "html", "--session-id", GONE, "-o", "out/one.html"],
        &["push", "out/lake"],
    ];
    for command in commands {
        begin_again();
        // Also where nothing is read before the answer.
        let ran = env.run([&["--no-refresh"], *command].concat());
        assert!(ran.code <= 1, "{command:?}: {}", ran.stderr);
        let files = bytes_of(&env.path("out")) + &parquet_rows(&env.path("out"));
        check_masked(&(ran.stdout + &ran.stderr + &files));
        live_bytes(&env).lacks("Kittiwake");
    }

    begin_again();
    let mut client = Client::legacy(&env);
    for (tool, arguments) in [
        ("search_events", json!({ "query": "boat" })),
        ("get_session_details", json!({ "session_id": GONE, "detail_level": "turns" })),
        ("list_sessions", json!({})),
    ] {
        check_masked(&client.call(tool, arguments).to_string());
    }
    assert_eq!(client.end(), 0);

    begin_again();
    let page = Page::start(&env, &[]);
    check_masked(&page.call(&page.cookie(), "search_events", json!({ "query": "boat" })).body);

    begin_again();
    let input =
        json!({"session_id": "live", "cwd": PROJECT, "permission_mode": "x", "source": "startup"});
    assert_eq!(ask(&env, "session-start", &input), "", "a hook waits for the ingest behind it");

    // The session from the lake is still known as imported.
    begin_again();
    env.run(["list", "--no-refresh"]).ok();
    pull(&env, &lake).has(json!({"imported": 0, "unchanged": 1}));
    check_masked(&everything(&env));
}

/// A store that cannot be masked says so, and nothing leaves it.
#[test]
fn what_cannot_be_masked_is_not_passed_on() {
    let env = machine("pier", "mira", "include = ['**']");
    ingest_log(&env, "moor", "/code/harbor", "the boat Kittiwake");
    env.write_rule("boat", "(Kittiwake");
    let lake = env.path("lake");
    for command in [
        &["push", &lake.to_string_lossy()][..],
        &["export", "--format", "jsonl", "-o", "events.jsonl"],
        &["report", "-o", "report.html"],
        &["resume", "moor", "--with", "codex", "--print"],
    ] {
        env.run([&["--no-refresh"], command].concat()).fails(2).says("rule boat").lacks("the boat");
    }
    assert!(!lake.exists() && !env.path("events.jsonl").exists());
    let mut client = Client::legacy(&env);
    let refused = client.fails("search_events", json!({ "query": "boat" }));
    assert_eq!(refused["code"], "store_unavailable", "{refused}");
    refused["message"].shows("rule boat");
    assert_eq!(client.end(), 0);
    env.run(["search", "boat", "--no-refresh"]).says("could not be applied to the store");
}

/// The rows of a session that lost some of them cannot be masked, so the user has to remove them.
#[test]
fn what_is_left_of_a_damaged_session_is_not_passed_on() {
    let env = machine("pier", "mira", "include = ['**']");
    ingest_log(&env, "moor", "/code/harbor", "the boat is new");
    let log = env.path("moor.jsonl");
    let more =
        json!({ "type": "user", "timestamp": "2026-10-29T07:00:00Z", "text": "it is Kittiwake" });
    let text = env.read(&log) + &format!("{more}\n");
    env.write(&log, text);
    env.ingest(&log);
    env.remove(&log);
    env.remove("store/segments/0000000001");
    ingest_log(&env, "dock", "/code/harbor", "the boat Kittiwake of dock");
    env.write_rule("boat", "Kittiwake");

    let lake = env.path("lake");
    for command in
        [&["export", "--format", "jsonl"][..], &["push", &lake.to_string_lossy()], &["report"]]
    {
        env.run(command).fails(3).says(["1 sessions that lost events", "moor"]);
    }
    assert!(!lake.exists());
    env.run(["search", "boat"])
        .shows("[REDACTED:boat] of dock")
        .says("could not be applied to the store");
    env.run(["forget", "moor", "--yes"]).ok();
    env.run(["export", "--format", "jsonl"]).shows("[REDACTED:boat]").lacks("Kittiwake");
}

#[test]
fn what_an_old_rule_let_through_is_replaced_in_the_lake() {
    let env = machine("pier", "mira", "include = ['**']\ncontent = 'full'");
    for (id, cwd) in [("moor", "/code/harbor"), ("dock", "/code/Kittiwake"), ("stay", "/code/x")] {
        let boat = if id == "stay" { "Gull" } else { "Kittiwake" };
        ingest_log(&env, id, cwd, &format!("The boat {boat} and its crew of {id}"));
    }
    let lake = env.path("lake");
    push(&env, &lake);
    compact(&env, &lake);
    assert!(!joined_files(&lake).is_empty());
    let reader = machine("reader", "ana", "");
    pull(&reader, &lake);
    env.remove("dock.jsonl");
    env.write_rule("boat", "Kittiwake");

    let before = objects(&lake);
    let dry = env.json(["push", "--dry-run", "--no-refresh", &lake.to_string_lossy()]);
    assert_eq!(objects(&lake), before);
    let replaced: Vec<_> = dry["published"].list().iter().collect();
    let unmasked = |id: &str| {
        let found = replaced.iter().find(|session| {
            session["session_id"].as_str().is_some_and(|found| found.starts_with(id))
        });
        found.map(|session| session["unmasked"]["boat"].clone())
    };
    assert_eq!(unmasked("moor"), Some(json!(1)));
    assert!(unmasked("dock").is_some_and(|count| count.as_u64() > Some(0)));
    assert_eq!(unmasked("stay"), Some(json!(null)));
    env.run(["push", "--dry-run", "--no-refresh", &lake.to_string_lossy()])
        .shows("1 boat")
        .says("2 sessions in the lake showed");

    let pushed = env.json(["push", "--no-refresh", &lake.to_string_lossy()]);
    let warnings = pushed["warnings"].list();
    assert_eq!(warnings.len(), 1);
    warnings[0].shows(["2 sessions", "boat", "rotate", "Others may have read"]);
    assert!(joined_files(&lake).is_empty(), "joined objects repeat the old rows");
    let found = bytes_of(&lake) + &parquet_rows(&lake);
    found.shows("[REDACTED:boat]").lacks("Kittiwake");
    assert_eq!(
        objects(&lake)
            .keys()
            .filter(|key| key.extension().is_some_and(|ext| ext == "parquet"))
            .count(),
        6,
        "a row and the events of each session"
    );

    // Said once, and those who pull again have what is there now.
    env.json(["push", "--no-refresh", &lake.to_string_lossy()]).has(json!({
        "unchanged": 3, "warnings": [],
    }));
    compact(&env, &lake);
    pull(&reader, &lake);
    let found = everything(&reader);
    found.shows("[REDACTED:boat]").lacks("Kittiwake");
    let fresh = machine("fresh", "tom", "");
    assert_eq!(pull(&fresh, &lake)["imported"], 3);
    assert!(!everything(&fresh).contains("Kittiwake"));
}

/// A session that the store lost cannot be written again, so the lake keeps what it has.
#[test]
fn what_cannot_be_replaced_in_the_lake_is_named() {
    let env = machine("pier", "mira", "include = ['**']");
    for id in ["moor", "dock"] {
        ingest_log(&env, id, "/code/harbor", &format!("The boat Kittiwake of {id}"));
    }
    let lake = env.path("lake");
    push(&env, &lake);
    env.remove("moor.jsonl");
    env.remove("store/segments/0000000001");
    env.ingest("dock.jsonl");
    assert!(push(&env, &lake)["warnings"].as_array().is_some_and(Vec::is_empty));
    env.write_rule("boat", "Kittiwake");
    let pushed = push(&env, &lake);
    let lost = pushed["irreplaceable"].list();
    assert_eq!(lost.len(), 1);
    assert!(lost[0].as_str().is_some_and(|id| id.starts_with("moor")));
    let warnings = pushed["warnings"].to_string();
    warnings.shows(["cannot be replaced", "moor"]);
}

/// The longest label is as long as many tokens, and a note may end within any.
#[test]
fn no_secret_survives_in_labels_and_notes() {
    const SESSION: &str = "5ec4e75a-1111-4000-8000-000000000000";
    let (texts, secrets) = planted();
    let env = TestEnv::new();
    write_log(&env, LOG, &["hello"]);
    env.ingest("logs");
    let mut client = Client::legacy_with(&env, &["--allow-labels"]);
    let mut words: Vec<String> = Vec::new();
    let token = ["ghp", "_0rT3stsN0tR34l9zQx7H4rb0rM1r4K3yW1th"].concat()[..40].to_owned();
    let short = texts.iter().map(|text| text.trim()).filter(|text| !text.contains('\n'));
    for text in short.chain([token.as_str()]) {
        let length = text.chars().count();
        words.push(text.to_owned());
        for wanted in [39_usize, 40, 41].into_iter().filter(|wanted| *wanted > length + 1) {
            words.push(format!("{} {text}", "x".repeat(wanted - length - 1)));
        }
    }
    let mut seen = String::new();
    let mut kept: Vec<Value> = Vec::new();
    let mut random = Random(7);
    for some in words.chunks(15) {
        let mut updates = vec![json!({ "session_id": SESSION, "remove": kept })];
        for word in some {
            // The note ends with the text, at its greatest length or next to it.
            let text = &texts[random.below(texts.len())];
            let length = 999 + random.below(3);
            // A table or a prompt begins with its line.
            let padding = length.saturating_sub(text.chars().count() + 1);
            let note = format!("{}\n{text}", "x".repeat(padding));
            updates.push(json!({ "session_id": SESSION, "add": [word] }));
            updates.push(json!({ "session_id": SESSION, "note": note }));
        }
        let answer = client.call("update_session_labels", json!({ "updates": updates }));
        let last = answer["data"]["succeeded"].list().last().cloned();
        kept = last.expect("the removal")["labels"].list().to_vec();
        seen.push_str(&answer.to_string());
        seen.push_str(&env.read("store/labels.json"));
    }
    assert_eq!(client.end(), 0);
    assert_eq!(survivors(&secrets, &seen), Vec::<&String>::new());
    assert!(!seen.contains(&token), "a label of exactly 40 characters");
    assert!(seen.matches("[REDACTED:").count() > 300, "labels and notes are stored");
}

#[test]
fn labels_and_notes_obey_rules_that_were_added_later() {
    let env = TestEnv::new();
    for id in ["moor", "dock"] {
        ingest_log(&env, id, "/code/harbor", "hello");
    }
    let label = |id: &str, word: &str| {
        env.run(["label", id, "--add", word, "--note", &format!("{word} sails")]).ok()
    };
    let check = |hidden: &str, shown: &str| {
        let file = env.read("store/labels.json");
        assert!(!file.contains(hidden) && file.contains(shown), "{file}");
        env.run(["query", "SELECT * FROM labels"]).shows(shown).lacks(hidden);
    };
    // An ingest, a label on another session, and an answer.
    label("moor", "Kittiwake");
    env.write_rule("boat", "Kittiwake");
    env.ingest("moor.jsonl");
    check("Kittiwake", "[REDACTED:boat]");
    label("moor", "Gannet");
    env.write_rule("bird", "Gannet");
    label("dock", "plain");
    check("Gannet", "[REDACTED:bird]");
    label("moor", "Pelican");
    env.write_rule("fish", "Pelican");
    env.run(["--no-refresh", "list", "--label", "plain"]).lacks("Pelican");
    check("Pelican", "[REDACTED:fish]");
    // A masked label is removed by the word that was written, too.
    env.run(["label", "moor", "--remove", "Pelican", "--json"])
        .shows("[REDACTED:bird]")
        .lacks("[REDACTED:fish]");
}

/// The rules are found from the masked texts, by any id of an event or a session, and on another machine.
#[test]
fn doctor_tells_which_rule_masked_what() {
    const SESSION: &str = "5ec4e75a-1111-4000-8000-000000000000";
    const SECRETS: [&str; 3] = ["fj0rd-n0rth", "0rT3stsN0tR34l9z", "Kittiwake"];
    let env = machine("laptop", "mira", "include = ['**']\ncontent = 'full'");
    env.write_rule("boat", "Kittiwake");
    let token = ["gh", "p_0rT3stsN0tR34l9zQx7H4rb0rM1r4K3yW1th"].concat();
    let texts = [
        "nothing to hide".to_owned(),
        format!("curl -u mira:fj0rd-n0rth https://h.example -H 'X: {token}' -H 'Y: {token}'"),
        "the boat is called Kittiwake".to_owned(),
    ];
    write_log(&env, LOG, &texts);
    env.ingest("logs");

    let whole = env.json(["doctor", "--why-masked", SESSION]);
    assert_eq!(whole["session_id"], SESSION);
    let masked = whole["masked"].list();
    let find = |kind: &str, field: &str| {
        let is_found = |mask: &&Value| mask["kind"] == kind && mask["field"] == field;
        masked.iter().find(is_found).unwrap_or_else(|| panic!("no {kind} in {field}: {whole}"))
    };
    let of_curl = find("basic_auth", "text");
    assert_eq!(of_curl["rules"], json!(["a command or call with `curl`"]));
    assert_eq!(find("basic_auth", "command")["rules"], of_curl["rules"]);
    find("github_token", "text").has(json!({"count": 2, "rules": ["a token with `ghp_?`"]}));
    assert_eq!(find("boat", "text")["is_of_user"], true);
    assert_eq!(find("boat", "title")["event_id"], Value::Null, "of the session");

    let event = of_curl["event_id"].text();
    let (_, index) = event.rsplit_once(':').expect("an index");
    let alone = env.json(["doctor", "--why-masked", event]);
    let kinds: Vec<_> = alone["masked"].list().iter().collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|mask| mask["event_id"] == event));
    assert_eq!(env.json(["doctor", "--why-masked", &format!("5ec4e75a:{index}")]), alone);
    let of_events = masked.iter().filter(|mask| !mask["event_id"].is_null()).count();
    let range = env.json(["doctor", "--why-masked", "5ec4e75a:0-99"]);
    assert_eq!(range["masked"].list().len(), of_events);
    assert_eq!(env.json(["doctor", "--why-masked", "last"]), whole);

    let shown = env.run(["doctor", "--why-masked", "5ec4e75a"]).ok();
    shown.shows(format!("{event} text: github_token ×2\n    a token with `ghp_?`\n"));
    shown.shows("    your rule boat in redact.toml\n");
    env.run(["doctor", "--why-masked", "5ec4e75a:0"])
        .fails(1)
        .shows(["Nothing is masked", "hint: "]);
    for unknown in
        ["5ec4e75a:999", "5ec4e75a:4294967295", "../etc", "'; x", "\u{1b}[2J", "::", "0:0-"]
    {
        let ran = env.run(["doctor", "--why-masked", unknown]);
        assert!(
            matches!(ran.code, 1 | 2) && ran.stderr.contains("error"),
            "{unknown}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains('\u{1b}'), "{unknown}");
    }

    let lake = env.path("lake");
    push(&env, &lake);
    let desk = machine("desk", "noa", "");
    pull(&desk, &lake);
    let pulled = desk.json(["doctor", "--why-masked", SESSION]);
    let is_known = pulled["masked"].list().iter().any(|mask| mask["rules"] == of_curl["rules"]);
    assert!(is_known);
    let of_boat = desk.run(["doctor", "--why-masked", SESSION]).ok();
    assert!(of_boat.contains("no rule of today"), "its rule is on the other machine: {of_boat}");
    for text in [whole.to_string(), shown, pulled.to_string(), of_boat] {
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
    }
}
