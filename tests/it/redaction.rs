//! No secret of the list survives anywhere: not in an answer, not in SQL, not on disk.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::env::{Random, TestEnv, copy_folder};
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

/// A Claude log in which every text stands as prompt, command, result, title and queued prompt.
fn write_log(path: &Path, texts: &[String]) {
    let mut log = String::new();
    for (number, text) in texts.iter().enumerate() {
        let record = |kind: &str, part: u32, message: serde_json::Value| {
            serde_json::json!({
                "type": kind, "uuid": format!("{number:08x}-{part:04x}-4000-8000-000000000000"),
                "sessionId": "5ec4e75a-1111-4000-8000-000000000000", "timestamp": "2026-05-01T10:00:00.000Z",
                "cwd": "/home/mira/code/harbor", "version": "2.1.0", "message": message,
            })
        };
        let call = format!("toolu_{number}");
        let lines = [
            record("user", 1, serde_json::json!({ "role": "user", "content": text })),
            record(
                "assistant",
                2,
                serde_json::json!({ "role": "assistant", "id": format!("msg_{number}"), "model": "claude-sonnet-5", "content": [
                    { "type": "thinking", "thinking": text }, { "type": "text", "text": text },
                    { "type": "tool_use", "id": call, "name": "Bash", "input": { "command": text } }] }),
            ),
            record(
                "user",
                3,
                serde_json::json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": call, "content": text, "is_error": true }] }),
            ),
            serde_json::json!({ "type": "custom-title", "customTitle": text, "sessionId": "5ec4e75a-1111-4000-8000-000000000000" }),
            serde_json::json!({ "type": "queue-operation", "operation": "enqueue", "content": text, "timestamp": "2026-05-01T10:00:01.000Z" }),
        ];
        for line in lines {
            log.push_str(&line.to_string());
            log.push('\n');
        }
    }
    // Half a line, as of a log that is being written, and a line that is no JSON.
    log.push_str(&format!("{{\"no json\": {}\n", texts[0]));
    fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
    fs::write(path, log).expect("writes");
}

/// Everything that can be asked, as one text.
fn everything(env: &TestEnv) -> String {
    let mut out = String::new();
    let mut add = |args: &[&str]| {
        let ran = env.run(args);
        out.push_str(&ran.stdout);
        out.push_str(&ran.stderr);
    };
    for table in ["events", "sessions", "problems"] {
        let sql = format!("SELECT * FROM {table}");
        add(&["query", "--output", "ndjson", "--max-rows", "100000", &sql]);
    }
    add(&["list", "--format", "full", "--json"]);
    add(&["show", "5ec4e75a", "--detail-level", "turns", "--json"]);
    add(&["search", "token", "--limit", "50", "--json"]);
    add(&["status", "--json"]);
    add(&["doctor", "--json"]);
    out
}

fn survivors<'s>(secrets: &'s [String], haystack: &str) -> Vec<&'s String> {
    secrets.iter().filter(|secret| haystack.contains(secret.as_str())).collect()
}

#[test]
fn no_planted_secret_survives_in_answers_or_on_disk() {
    let (texts, secrets) = planted();
    let env = TestEnv::new();
    let log = env.path("logs/5ec4e75a-1111-4000-8000-000000000000.jsonl");
    write_log(&log, &texts);
    let ingest = env.run(&["ingest", "--json", &env.path("logs").to_string_lossy()]);
    assert_eq!(ingest.code, 0, "{}", ingest.stderr);
    assert_eq!(survivors(&secrets, &ingest.stdout), Vec::<&String>::new(), "report");
    assert_eq!(survivors(&secrets, &everything(&env)), Vec::<&String>::new(), "answers");
    for secret in secrets.iter().filter(|secret| !secret.contains(['\n', '"', '/', '\\'])) {
        let quoted = format!("\"{secret}\"");
        assert_eq!(env.run(&["search", &quoted]).code, 1, "{secret} is found");
    }
    let masked = env.json(&["status"]);
    let kinds = masked["redactions"].as_object().expect("counts by kind");
    assert!(kinds.len() >= 40, "{kinds:?}");
    // Without masking the same log holds them all: the test can fail.
    let plain = TestEnv::new();
    write_log(&plain.path("logs/x.jsonl"), &texts);
    plain.run(&["ingest", "--quiet", "--no-redact", &plain.path("logs").to_string_lossy()]).ok();
    assert!(survivors(&secrets, &everything(&plain)).len() >= 150);
    // The store's own files: text and states are LZ4, whose literals stand there as they are.
    assert_eq!(survivors(&secrets, &bytes_of(&env.store())), Vec::<&String>::new(), "disk");
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
    let progress = |call: &str| {
        serde_json::json!({
            "type": "progress", "uuid": "00000000-0009-4000-8000-000000000000", "sessionId": "c", "parentToolUseID": call,
            "data": { "type": "bash_progress", "fullOutput": key },
        })
    };
    let mut log = String::new();
    // Wherever the token lies across the end of what is kept: 4 KB of a command, 16 KB of a notice.
    for at in 0..12 {
        let long = |most: usize| {
            format!("{} {token}", "echo x; ".repeat(most).split_at(most - 20 - 3 * at).0)
        };
        let call = format!("toolu_{at}");
        let uuid = |part: u32| format!("{at:08x}-{part:04x}-4000-8000-000000000000");
        for record in [
            serde_json::json!({ "type": "assistant", "uuid": uuid(1), "sessionId": "c", "message": { "role": "assistant", "id": call, "content": [
                { "type": "tool_use", "id": call, "name": "Bash", "input": { "command": long(4096) } }] } }),
            progress(&call),
            serde_json::json!({ "type": "user", "uuid": uuid(2), "sessionId": "c", "message": { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": call, "content": "in the background" }] } }),
            serde_json::json!({ "type": "system", "subtype": "informational", "uuid": uuid(3), "sessionId": "c", "content": long(16384) }),
        ] {
            log.push_str(&format!("{record}\n"));
        }
    }
    let path = env.path("logs/c.jsonl");
    fs::create_dir_all(path.with_file_name("")).expect("creates");
    fs::write(&path, log).expect("writes");
    env.run(&["ingest", "--quiet", &path.to_string_lossy()]).ok();
    let all = everything(&env);
    assert!(all.contains("in the background") && all.contains("[REDACTED:private_key]"));
    for part in [&token[..16], &token[4..20], &line[..24]] {
        assert!(!all.contains(part), "{part}");
    }
}

/// The bytes of every file below a folder, as text.
fn bytes_of(dir: &Path) -> String {
    let mut out = String::new();
    for entry in fs::read_dir(dir).expect("lists") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            out.push_str(&bytes_of(&path));
        } else {
            out.push_str(&String::from_utf8_lossy(&fs::read(&path).expect("reads")));
        }
    }
    out
}

#[test]
fn a_rule_of_the_user_masks_what_was_read_before() {
    let env = TestEnv::new();
    let texts = ["the boat is called Kittiwake", "nothing to hide"].map(str::to_owned);
    write_log(&env.path("logs/5ec4e75a-1111-4000-8000-000000000000.jsonl"), &texts);
    let logs = env.path("logs").to_string_lossy().into_owned();
    env.run(&["ingest", "--quiet", &logs]).ok();
    assert_eq!(env.run(&["search", "kittiwake"]).code, 0);
    let rules = env.path(".config/sessions/redact.toml");
    fs::create_dir_all(rules.parent().expect("a folder")).expect("creates");
    fs::write(&rules, "[[rule]]\nname = \"boat\"\nregex = \"Kittiwake\"\n").expect("writes");
    let again = env.json(&["ingest", &logs]);
    assert_eq!(again["files_rewritten"], 1, "{again}");
    assert_eq!(env.run(&["search", "kittiwake"]).code, 1);
    assert_eq!(env.run(&["search", "REDACTED:boat"]).code, 0);
    let third = env.json(&["ingest", &logs]);
    assert_eq!(third["files_opened"], 0, "{third}");
    // A rule that is no regex is named, and nothing is read.
    fs::write(&rules, "[[rule]]\nname = \"boat\"\nregex = \"(\"\n").expect("writes");
    let wrong = env.run(&["ingest", &logs]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("boat"), "{}", wrong.stderr);
}

/// A watch of days follows the rules that are in force by then, not those of its start.
#[test]
fn a_watch_masks_by_rules_that_are_newer_than_it() {
    let env = TestEnv::new();
    let log = env.path("logs/5ec4e75a-1111-4000-8000-000000000000.jsonl");
    let texts = ["nothing to hide", "the boat is called Kittiwake"].map(str::to_owned);
    write_log(&log, &texts[..1]);
    let mut watch = env
        .command()
        .args(["ingest", "--watch", "--quiet"])
        .arg(env.path("logs"))
        .spawn()
        .expect("starts");
    let is_found = |word: &str| env.run(&["search", word, "--no-refresh"]).code == 0;
    let wait_for = |word: &str| (0..600).any(|_| is_found(word) || pause());
    let mut is_masked = wait_for("hide");

    // A file in the middle of an edit stops nothing for good.
    let rules = env.path(".config/sessions/redact.toml");
    fs::create_dir_all(rules.parent().expect("a folder")).expect("creates");
    fs::write(&rules, "[[rule]]\nname = \"boat\"\nregex = \"(\"\n").expect("writes");
    write_log(&log, &texts);
    pause();
    fs::write(&rules, "[[rule]]\nname = \"boat\"\nregex = \"Kittiwake\"\n").expect("writes");
    is_masked &= wait_for("REDACTED:boat");
    watch.kill().expect("ends");
    watch.wait().expect("ends");
    assert!(is_masked && !is_found("kittiwake"));
}

/// Waits for a moment. Returns false.
fn pause() -> bool {
    std::thread::sleep(std::time::Duration::from_millis(100));
    false
}

/// The names and ids in a log that ends within a call are kept until its result comes. The token is
/// joined to a word, as a client joins the name of a tool to what it writes next.
#[test]
fn no_byte_of_the_store_holds_a_secret_of_an_unfinished_call() {
    let token = |mark: &str| {
        let token = ["gh", "p_", mark, "r9Xk2LmQ7vT4sWb8Yc3Nd6Pf1Hj5ZaGe0uKt"].concat();
        token[..40].to_owned()
    };
    let at = "2026-05-01T10:00:00.000Z";
    let record = |kind: &str, payload: serde_json::Value| {
        format!("{}\n", serde_json::json!({ "timestamp": at, "type": kind, "payload": payload }))
    };
    let meta = record(
        "session_meta",
        serde_json::json!({ "id": "5ec4e75a-4444-4000-8000-000000000000", "timestamp": at, "cwd": "/home/mira" }),
    );
    let call = |name: &str, id: &str| {
        let arguments = serde_json::json!({ "cmd": "true" }).to_string();
        record(
            "response_item",
            serde_json::json!({ "type": "function_call", "name": name, "arguments": arguments, "call_id": id }),
        )
    };
    let output = |id: &str| {
        record(
            "response_item",
            serde_json::json!({ "type": "function_call_output", "call_id": id, "output": "done" }),
        )
    };
    let ended = |id: &str| {
        record(
            "event_msg",
            serde_json::json!({ "type": "exec_command_end", "call_id": id, "exit_code": 0,
                "duration": { "secs": 2, "nanos": 0 } }),
        )
    };

    let env = TestEnv::new();
    let log =
        env.path("logs/rollout-2026-05-01T10-00-00-5ec4e75a-4444-4000-8000-000000000000.jsonl");
    fs::create_dir_all(log.with_file_name("")).expect("creates");
    let marks = ["Aa0", "Ab1", "Ac2", "Ad3"].map(token);
    let calls = [
        (format!("exec_command{}", marks[0]), format!("call_{}", marks[1])),
        (format!("{}exec", marks[2]), format!("call{}", marks[3])),
    ];
    let logs = env.path("logs").to_string_lossy().into_owned();
    let mut text = meta;
    let mut seen = String::new();
    for (part, changed) in [
        (call(&calls[0].0, &calls[0].1) + &call(&calls[1].0, &calls[1].1), "files_new"),
        (output(&calls[0].1), "files_grown"),
        // The decoder now remembers the id with the secret, so the log is read again.
        (ended(&calls[1].1), "files_grown"),
        (output(&calls[1].1), "files_rewritten"),
    ] {
        text.push_str(&part);
        fs::write(&log, &text).expect("writes");
        let report = env.json(&["ingest", &logs]);
        assert_eq!(report[changed], 1, "{part}: {report}");
        seen.push_str(&bytes_of(&env.store()));
        seen.push_str(&everything(&env));
    }
    for mark in &marks {
        assert!(!seen.contains(&mark[4..24]), "{mark}");
    }
    let joined = "SELECT tool_name, duration_ms FROM tool_calls WHERE result_event_id IS NOT NULL ORDER BY ALL";
    let joined = env.rows(joined);
    assert_eq!(joined.len(), 2, "{joined:?}");
    let all = format!("{joined:?}");
    assert!(all.contains("exec_command[REDACTED:github_token]") && all.contains("2000"), "{all}");
}

/// The bytes of the segments that the manifest names, as text: others are kept for readers for some
/// minutes.
fn live_bytes(env: &TestEnv) -> String {
    let manifest = crate::env::manifest_of(&env.store());
    let segments = manifest["segments"].as_array().expect("segments");
    let number = |segment: &serde_json::Value| segment["number"].as_i64().expect("a number");
    let dirs = segments.iter().map(|segment| format!("store/segments/{:010}", number(segment)));
    dirs.map(|dir| bytes_of(&env.path(&dir))).collect()
}

#[test]
fn a_rule_of_the_user_masks_what_is_kept_of_logs_that_are_gone() {
    let env = TestEnv::new();
    let texts = ["the boat is called Kittiwake", "nothing to hide"].map(str::to_owned);
    let gone = env.path("logs/5ec4e75a-1111-4000-8000-000000000000.jsonl");
    write_log(&gone, &texts);
    let logs = env.path("logs").to_string_lossy().into_owned();
    env.run(&["ingest", "--quiet", &logs]).ok();
    // The rest of the log lies in a segment of its own.
    let mut log = fs::read_to_string(&gone).expect("reads");
    let more = log.replace("00000000-", "00000077-").replace("00000001-", "00000078-");
    log.push_str(&more.replace("msg_", "msg_7"));
    fs::write(&gone, log).expect("writes");
    let grown = env.json(&["ingest", &logs]);
    assert_eq!(grown["files_grown"], 1, "{grown}");
    let columns = "event_id, event_index, turn_index, step_index, event_type, source_offset";
    let shape = || env.rows(&format!("SELECT {columns} FROM events ORDER BY ALL"));
    let problems = || env.rows("SELECT path, line, byte, kind FROM problems ORDER BY ALL");
    let before = (shape(), problems());
    assert!(!before.1.is_empty() && live_bytes(&env).contains("Kittiwake"));
    fs::remove_file(&gone).expect("removes");
    assert_eq!(env.json(&["ingest", &logs])["files_vanished"], 1);

    let rules = env.path(".config/sessions/redact.toml");
    fs::create_dir_all(rules.parent().expect("a folder")).expect("creates");
    fs::write(&rules, "[[rule]]\nname = \"boat\"\nregex = \"Kittiwake\"\n").expect("writes");
    env.run(&["ingest", "--quiet", &logs]).ok();
    assert_eq!(env.run(&["search", "kittiwake"]).code, 1);
    assert_eq!(env.run(&["search", "REDACTED:boat"]).code, 0);
    let found = everything(&env);
    assert!(found.contains("[REDACTED:boat]") && !found.contains("Kittiwake"), "{found}");
    assert!(!live_bytes(&env).contains("Kittiwake"));
    assert_eq!((shape(), problems()), before, "the rest is as it was");
    let boats = env.json(&["status"])["redactions"]["boat"].as_u64();
    assert!(boats > Some(5), "{boats:?}");
    // Done once: the next run changes nothing.
    let manifest = || crate::env::manifest_of(&env.store());
    let masked = manifest();
    env.run(&["ingest", "--quiet", &logs]).ok();
    assert_eq!(manifest(), masked);

    // A log that vanishes in the moment in which the rules grow, and one that comes back.
    write_log(&gone, &texts);
    assert_eq!(env.json(&["ingest", &logs])["files_rewritten"], 1);
    fs::remove_file(&gone).expect("removes");
    let two = "[[rule]]\nname = \"boat\"\nregex = \"Kittiwake\"\n[[rule]]\nname = \"hidden\"\nregex = \"nothing to hide\"\n";
    fs::write(&rules, two).expect("writes");
    assert_eq!(env.json(&["ingest", &logs])["files_vanished"], 1);
    assert!(!everything(&env).contains("nothing to hide"));
}

/// Neither logs in other folders nor the names of files that are no logs may be missed.
#[test]
fn a_rule_of_the_user_masks_what_is_outside_the_folders_of_the_next_ingest() {
    let env = TestEnv::new();
    // Writes a log whose ids differ from those of the other folders.
    let write = |folder: &str, digit: &str, text: &str| {
        let path = env.path(folder).join(format!("{digit}.jsonl"));
        write_log(&path, &[text.to_owned()]);
        let log = fs::read_to_string(&path).expect("reads");
        let log = log.replace("5ec4e75a-1111", &format!("5ec4e75a-{}", digit.repeat(4)));
        let log = log.replace("00000000-", &format!("0000000{digit}-"));
        fs::write(&path, log.replace("msg_", &format!("msg_{digit}"))).expect("writes");
        path
    };
    let kept = write("kept", "1", "the boat is called Kittiwake");
    write("lost", "2", "the boat is called Kittiwake too");
    write("other", "3", "hello");
    for name in ["Kittiwake-1.jsonl", "Kittiwake-2.jsonl"] {
        fs::write(env.path("other").join(name), "{\"unknown\":1}\n").expect("writes");
    }
    let folder = |name: &str| env.path(name).to_string_lossy().into_owned();
    for name in ["kept", "lost", "other"] {
        env.run(&["ingest", "--quiet", &folder(name)]).ok();
    }
    assert!(everything(&env).contains("Kittiwake"));
    fs::remove_dir_all(env.path("lost")).expect("removes");
    fs::remove_file(env.path("other/Kittiwake-2.jsonl")).expect("removes");

    let rules = env.path(".config/sessions/redact.toml");
    fs::create_dir_all(rules.parent().expect("a folder")).expect("creates");
    fs::write(&rules, "[[rule]]\nname = \"boat\"\nregex = \"Kittiwake\"\n").expect("writes");
    env.run(&["ingest", "--quiet", &folder("other")]).ok();
    let exported = env.run(&["export", "--format", "jsonl"]).stdout;
    assert!(exported.contains("[REDACTED:boat]") && !exported.contains("Kittiwake"), "{exported}");
    // Problems that were found before with files that are no logs go with the compaction.
    env.run(&["compact"]).ok();
    let found = everything(&env);
    assert!(found.contains("[REDACTED:boat]") && !found.contains("Kittiwake"), "{found}");
    assert!(!env.rows("SELECT path FROM problems").is_empty(), "problems stay");

    // A log that still exists is continued when it grows.
    let boats = "SELECT count(*) FROM events WHERE text LIKE '%REDACTED:boat%'";
    let before = env.rows(boats)[0][0].as_u64().expect("a number");
    let log = fs::read_to_string(&kept).expect("reads");
    let more = log.replace("00000001-", "00000077-").replace("msg_", "msg_7");
    fs::write(&kept, log + &more).expect("writes");
    env.run(&["ingest", "--quiet", &folder("kept")]).ok();
    let after = env.rows(boats)[0][0].as_u64().expect("a number");
    assert!(after > before && !everything(&env).contains("Kittiwake"), "{before} {after}");
}

/// Adds a rule to the user's file of rules.
fn write_rule(env: &TestEnv, name: &str, regex: &str) {
    let rules = env.path(".config/sessions/redact.toml");
    fs::create_dir_all(rules.parent().expect("a folder")).expect("creates");
    let before = fs::read_to_string(&rules).unwrap_or_default();
    fs::write(&rules, format!("{before}[[rule]]\nname = \"{name}\"\nregex = \"{regex}\"\n"))
        .expect("writes");
}

/// The rows of every Parquet file below a folder, as text.
fn parquet_rows(dir: &Path) -> String {
    let mut out = String::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            out.push_str(&parquet_rows(&path));
        } else if path.extension().is_some_and(|ext| ext == "parquet") {
            out.push_str(&format!("{:?}", read_rows(&path)));
        }
    }
    out
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
    write_log(&env.path("logs/5ec4e75a-1111-4000-8000-000000000000.jsonl"), &[text.to_owned()]);
    env.run(&["ingest", "--quiet", &env.path("logs").to_string_lossy()]).ok();
    ingest_log(&env, GONE, PROJECT, "the lost boat Kittiwake");
    fs::remove_file(env.path(&format!("{GONE}.jsonl"))).expect("removes");
    pull(&env, &lake);
    env.run(&["label", "5ec4e75a", "--add", "of Kittiwake", "--note", "Kittiwake sails"]).ok();
    let old = env.path("old");
    copy_folder(&env.store(), &old);
    write_rule(&env, "boat", "Kittiwake");
    let begin_anew = || {
        fs::remove_dir_all(env.store()).expect("removes");
        copy_folder(&old, &env.store());
        let _ = fs::remove_dir_all(env.path("out"));
        fs::create_dir(env.path("out")).expect("creates");
    };
    let check = |way: &str, shown: &str| {
        assert!(!shown.contains("Kittiwake"), "{way}: {shown}");
        assert!(shown.contains("[REDACTED:boat]"), "{way} shows nothing of it: {shown}");
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
        begin_anew();
        // Also where nothing is read before the answer.
        let ran = env.run(&[&["--no-refresh"], *command].concat());
        assert!(ran.code <= 1, "{command:?}: {}", ran.stderr);
        let files = bytes_of(&env.path("out")) + &parquet_rows(&env.path("out"));
        check(&command.join(" "), &(ran.stdout + &ran.stderr + &files));
        assert!(!live_bytes(&env).contains("Kittiwake"), "{command:?}");
    }

    begin_anew();
    let mut client = Client::legacy(&env);
    for (tool, arguments) in [
        ("search_events", json!({ "query": "boat" })),
        ("get_session_details", json!({ "session_id": GONE, "detail_level": "turns" })),
        ("list_sessions", json!({})),
    ] {
        check(tool, &client.call(tool, arguments).to_string());
    }
    assert_eq!(client.end(), 0);

    begin_anew();
    let page = Page::start(&env, &[]);
    check("page", &page.call(&page.cookie(), "search_events", json!({ "query": "boat" })).body);

    begin_anew();
    let input =
        json!({"session_id": "live", "cwd": PROJECT, "permission_mode": "x", "source": "startup"});
    assert_eq!(ask(&env, "session-start", &input), "", "a hook waits for the ingest behind it");

    // The session from the lake is still known as imported.
    begin_anew();
    env.run(&["list", "--no-refresh"]).ok();
    let again = pull(&env, &lake);
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(0), &json!(1)), "{again}");
    check("pull", &everything(&env));
}

/// A store that cannot be masked says so, and nothing leaves it.
#[test]
fn what_cannot_be_masked_is_not_passed_on() {
    let env = machine("pier", "mira", "include = ['**']");
    ingest_log(&env, "moor", "/code/harbor", "the boat Kittiwake");
    write_rule(&env, "boat", "(Kittiwake");
    let lake = env.path("lake");
    for command in [
        &["push", &lake.to_string_lossy()][..],
        &["export", "--format", "jsonl", "-o", "events.jsonl"],
        &["report", "-o", "report.html"],
        &["resume", "moor", "--with", "codex", "--print"],
    ] {
        let error = env.run(&[&["--no-refresh"], command].concat()).fails(2);
        assert!(error.contains("rule boat") && !error.contains("the boat"), "{error}");
    }
    assert!(!lake.exists() && !env.path("events.jsonl").exists());
    let mut client = Client::legacy(&env);
    let refused = client.fails("search_events", json!({ "query": "boat" }));
    assert_eq!(refused["code"], "store_unavailable", "{refused}");
    assert!(
        refused["message"].as_str().is_some_and(|text| text.contains("rule boat")),
        "{refused}"
    );
    assert_eq!(client.end(), 0);
    let shown = env.run(&["search", "boat", "--no-refresh"]);
    assert!(shown.stderr.contains("could not be applied to the store"), "{}", shown.stderr);
}

/// The rows of a session that lost some of them cannot be masked, so the user has to remove them.
#[test]
fn what_is_left_of_a_damaged_session_is_not_passed_on() {
    let env = machine("pier", "mira", "include = ['**']");
    ingest_log(&env, "moor", "/code/harbor", "the boat is new");
    let log = env.path("moor.jsonl");
    let more =
        json!({ "type": "user", "timestamp": "2026-10-29T07:00:00Z", "text": "it is Kittiwake" });
    let text = fs::read_to_string(&log).expect("reads") + &format!("{more}\n");
    fs::write(&log, text).expect("writes");
    env.run(&["ingest", "--quiet", &log.to_string_lossy()]).ok();
    fs::remove_file(&log).expect("removes");
    fs::remove_dir_all(env.path("store/segments/0000000001")).expect("removes");
    ingest_log(&env, "dock", "/code/harbor", "the boat Kittiwake of dock");
    write_rule(&env, "boat", "Kittiwake");

    let lake = env.path("lake");
    for command in
        [&["export", "--format", "jsonl"][..], &["push", &lake.to_string_lossy()], &["report"]]
    {
        let error = env.run(command).fails(3);
        assert!(error.contains("1 sessions that lost events") && error.contains("moor"), "{error}");
    }
    assert!(!lake.exists());
    let shown = env.run(&["search", "boat"]);
    assert!(shown.stderr.contains("could not be applied to the store"), "{}", shown.stderr);
    assert!(shown.stdout.contains("[REDACTED:boat] of dock"), "{}", shown.stdout);
    env.run(&["forget", "moor", "--yes"]).ok();
    let exported = env.run(&["export", "--format", "jsonl"]).ok();
    assert!(exported.contains("[REDACTED:boat]") && !exported.contains("Kittiwake"), "{exported}");
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
    fs::remove_file(env.path("dock.jsonl")).expect("removes");
    write_rule(&env, "boat", "Kittiwake");

    let before = objects(&lake);
    let dry = env.json(&["push", "--dry-run", "--no-refresh", &lake.to_string_lossy()]);
    assert_eq!(objects(&lake), before);
    let replaced: Vec<_> = dry["published"].as_array().expect("sessions").iter().collect();
    let unmasked = |id: &str| {
        let found = replaced.iter().find(|session| {
            session["session_id"].as_str().is_some_and(|found| found.starts_with(id))
        });
        found.map(|session| session["unmasked"]["boat"].clone())
    };
    assert_eq!(unmasked("moor"), Some(json!(1)), "{dry}");
    assert!(unmasked("dock").is_some_and(|count| count.as_u64() > Some(0)), "{dry}");
    assert_eq!(unmasked("stay"), Some(json!(null)), "{dry}");
    let shown = env.run(&["push", "--dry-run", "--no-refresh", &lake.to_string_lossy()]);
    assert!(shown.stdout.contains("1 boat"), "{}", shown.stdout);
    assert!(shown.stderr.contains("2 sessions in the lake showed"), "{}", shown.stderr);

    let pushed = env.json(&["push", "--no-refresh", &lake.to_string_lossy()]);
    let warnings = pushed["warnings"].as_array().expect("warnings");
    assert_eq!(warnings.len(), 1, "{pushed}");
    let warning = warnings[0].as_str().expect("text");
    assert!(warning.contains("2 sessions") && warning.contains("boat"), "{warning}");
    assert!(warning.contains("rotate") && warning.contains("Others may have read"), "{warning}");
    assert!(joined_files(&lake).is_empty(), "joined objects repeat the old rows");
    let found = bytes_of(&lake) + &parquet_rows(&lake);
    assert!(!found.contains("Kittiwake") && found.contains("[REDACTED:boat]"), "{found}");
    assert_eq!(
        objects(&lake)
            .keys()
            .filter(|key| key.extension().is_some_and(|ext| ext == "parquet"))
            .count(),
        6,
        "a row and the events of each session"
    );

    // Said once, and those who pull again have what is there now.
    let again = env.json(&["push", "--no-refresh", &lake.to_string_lossy()]);
    assert_eq!((&again["unchanged"], &again["warnings"]), (&json!(3), &json!([])), "{again}");
    compact(&env, &lake);
    pull(&reader, &lake);
    let found = everything(&reader);
    assert!(!found.contains("Kittiwake") && found.contains("[REDACTED:boat]"), "{found}");
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
    fs::remove_file(env.path("moor.jsonl")).expect("removes");
    fs::remove_dir_all(env.path("store/segments/0000000001")).expect("removes");
    env.run(&["ingest", "--quiet", &env.path("dock.jsonl").to_string_lossy()]).ok();
    assert!(push(&env, &lake)["warnings"].as_array().is_some_and(Vec::is_empty));
    write_rule(&env, "boat", "Kittiwake");
    let pushed = push(&env, &lake);
    let lost = pushed["irreplaceable"].as_array().expect("ids");
    assert_eq!(lost.len(), 1, "{pushed}");
    assert!(lost[0].as_str().is_some_and(|id| id.starts_with("moor")), "{pushed}");
    let warnings = pushed["warnings"].to_string();
    assert!(warnings.contains("cannot be replaced") && warnings.contains("moor"), "{warnings}");
}

/// The longest label is as long as many tokens, and a note may end within any.
#[test]
fn no_secret_survives_in_labels_and_notes() {
    const SESSION: &str = "5ec4e75a-1111-4000-8000-000000000000";
    let (texts, secrets) = planted();
    let env = TestEnv::new();
    write_log(&env.path(&format!("logs/{SESSION}.jsonl")), &["hello".to_owned()]);
    env.run(&["ingest", "--quiet", &env.path("logs").to_string_lossy()]).ok();
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
    let mut kept: Vec<serde_json::Value> = Vec::new();
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
        let last = answer["data"]["succeeded"].as_array().expect("a list").last().cloned();
        kept = last.expect("the removal")["labels"].as_array().expect("labels").clone();
        seen.push_str(&answer.to_string());
        seen.push_str(&fs::read_to_string(env.path("store/labels.json")).expect("reads"));
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
        env.run(&["label", id, "--add", word, "--note", &format!("{word} sails")]).ok()
    };
    let check = |hidden: &str, shown: &str| {
        let file = fs::read_to_string(env.path("store/labels.json")).expect("reads");
        assert!(!file.contains(hidden) && file.contains(shown), "{file}");
        let labels = env.run(&["query", "SELECT * FROM labels"]).ok();
        assert!(!labels.contains(hidden) && labels.contains(shown), "{labels}");
    };
    // An ingest, a label on another session, and an answer.
    label("moor", "Kittiwake");
    write_rule(&env, "boat", "Kittiwake");
    env.run(&["ingest", "--quiet", &env.path("moor.jsonl").to_string_lossy()]).ok();
    check("Kittiwake", "[REDACTED:boat]");
    label("moor", "Gannet");
    write_rule(&env, "bird", "Gannet");
    label("dock", "plain");
    check("Gannet", "[REDACTED:bird]");
    label("moor", "Pelican");
    write_rule(&env, "fish", "Pelican");
    let listed = env.run(&["--no-refresh", "list", "--label", "plain"]).ok();
    assert!(!listed.contains("Pelican"), "{listed}");
    check("Pelican", "[REDACTED:fish]");
    // A masked label is removed by the word that was written, too.
    let left = env.run(&["label", "moor", "--remove", "Pelican", "--json"]).ok();
    assert!(left.contains("[REDACTED:bird]") && !left.contains("[REDACTED:fish]"), "{left}");
}

/// The rules are found from the masked texts, by any id of an event or a session, and on another machine.
#[test]
fn doctor_tells_which_rule_masked_what() {
    const SESSION: &str = "5ec4e75a-1111-4000-8000-000000000000";
    const SECRETS: [&str; 3] = ["fj0rd-n0rth", "0rT3stsN0tR34l9z", "Kittiwake"];
    let env = machine("laptop", "mira", "include = ['**']\ncontent = 'full'");
    write_rule(&env, "boat", "Kittiwake");
    let token = ["gh", "p_0rT3stsN0tR34l9zQx7H4rb0rM1r4K3yW1th"].concat();
    let texts = [
        "nothing to hide".to_owned(),
        format!("curl -u mira:fj0rd-n0rth https://h.example -H 'X: {token}' -H 'Y: {token}'"),
        "the boat is called Kittiwake".to_owned(),
    ];
    write_log(&env.path(&format!("logs/{SESSION}.jsonl")), &texts);
    env.run(&["ingest", "--quiet", &env.path("logs").to_string_lossy()]).ok();

    let whole = env.json(&["doctor", "--why-masked", SESSION]);
    assert_eq!(whole["session_id"], SESSION, "{whole}");
    let masked = whole["masked"].as_array().expect("a list");
    let find = |kind: &str, field: &str| {
        let is_found = |mask: &&serde_json::Value| mask["kind"] == kind && mask["field"] == field;
        masked.iter().find(is_found).unwrap_or_else(|| panic!("no {kind} in {field}: {whole}"))
    };
    let of_curl = find("basic_auth", "text");
    assert_eq!(of_curl["rules"], json!(["a command or call with `curl`"]));
    assert_eq!(find("basic_auth", "command")["rules"], of_curl["rules"]);
    let of_token = find("github_token", "text");
    assert_eq!(of_token["count"], 2, "{of_token}");
    assert_eq!(of_token["rules"], json!(["a token with `ghp_?`"]));
    assert_eq!(find("boat", "text")["is_of_user"], true);
    assert_eq!(find("boat", "title")["event_id"], serde_json::Value::Null, "of the session");

    let event = of_curl["event_id"].as_str().expect("an event");
    let (_, index) = event.rsplit_once(':').expect("an index");
    let alone = env.json(&["doctor", "--why-masked", event]);
    let kinds: Vec<_> = alone["masked"].as_array().expect("a list").iter().collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|mask| mask["event_id"] == event), "{alone}");
    assert_eq!(env.json(&["doctor", "--why-masked", &format!("5ec4e75a:{index}")]), alone);
    let of_events = masked.iter().filter(|mask| !mask["event_id"].is_null()).count();
    let range = env.json(&["doctor", "--why-masked", "5ec4e75a:0-99"]);
    assert_eq!(range["masked"].as_array().expect("a list").len(), of_events);
    assert_eq!(env.json(&["doctor", "--why-masked", "last"]), whole);

    let shown = env.run(&["doctor", "--why-masked", "5ec4e75a"]).ok();
    assert!(
        shown.contains(&format!("{event} text: github_token ×2\n    a token with `ghp_?`\n")),
        "{shown}"
    );
    assert!(shown.contains("    your rule boat in redact.toml\n"), "{shown}");
    let plain = env.run(&["doctor", "--why-masked", "5ec4e75a:0"]);
    assert_eq!(plain.code, 1, "{}", plain.stdout);
    assert!(plain.stdout.contains("Nothing is masked") && plain.stdout.contains("hint: "));
    for unknown in
        ["5ec4e75a:999", "5ec4e75a:4294967295", "../etc", "'; x", "\u{1b}[2J", "::", "0:0-"]
    {
        let ran = env.run(&["doctor", "--why-masked", unknown]);
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
    let pulled = desk.json(&["doctor", "--why-masked", SESSION]);
    let is_known = pulled["masked"]
        .as_array()
        .expect("a list")
        .iter()
        .any(|mask| mask["rules"] == of_curl["rules"]);
    assert!(is_known, "{pulled}");
    let of_boat = desk.run(&["doctor", "--why-masked", SESSION]).ok();
    assert!(of_boat.contains("no rule of today"), "its rule is on the other machine: {of_boat}");
    for text in [whole.to_string(), shown, pulled.to_string(), of_boat] {
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
    }
}
