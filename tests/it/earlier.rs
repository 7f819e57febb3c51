//! Logs that are cut or begun again: what was ingested of them stays as an earlier version of the
//! session, counts once, and goes with the session.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::env::{Random, TestEnv};
use crate::forget::files_with;
use crate::lake::machine;

/// The id that the log of a test gives its session.
const ID: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

/// A turn: a prompt and its answer, whose records have ids.
fn turn(n: usize, more: &str) -> String {
    let time =
        |second: usize| format!("2026-11-01T{:02}:{:02}:{second:02}.000Z", n / 60 % 24, n % 60);
    let prompt = json!({
        "type": "user", "uuid": format!("{n:08}-0000-4000-8000-000000000001"), "sessionId": ID,
        "cwd": "/home/mira/code/harbor", "timestamp": time(1),
        "message": {"role": "user", "content": format!("prompt {n}{more}")},
    });
    let answer = json!({
        "type": "assistant", "uuid": format!("{n:08}-0000-4000-8000-000000000002"),
        "sessionId": ID, "timestamp": time(2), "requestId": format!("req_{n}"),
        "message": {
            "id": format!("msg_{n}"), "role": "assistant", "model": "claude-opus-4-8",
            "content": [{"type": "text", "text": format!("answer {n}")}],
            "usage": {"input_tokens": 10, "output_tokens": 5},
        },
    });
    format!("{prompt}\n{answer}\n")
}

fn turns(numbers: impl IntoIterator<Item = usize>) -> String {
    numbers.into_iter().map(|n| turn(n, "")).collect()
}

fn log(env: &TestEnv) -> PathBuf {
    env.path("logs").join(format!("{ID}.jsonl"))
}

fn ingest(env: &TestEnv) -> Value {
    env.json(&["ingest", &env.path("logs").to_string_lossy()])
}

/// Writes the log and ingests it.
fn read(env: &TestEnv, text: &str) -> Value {
    fs::create_dir_all(env.path("logs")).expect("creates");
    fs::write(log(env), text).expect("writes");
    ingest(env)
}

/// The prompts that SQL finds, and the output tokens that it counts.
fn found(env: &TestEnv) -> (Vec<String>, i64) {
    let rows =
        env.rows("SELECT text FROM events WHERE event_type = 'user' AND NOT is_replay ORDER BY timestamp, text");
    let prompts = rows.iter().map(|row| row[0].as_str().expect("text").to_owned()).collect();
    let tokens = env.rows("SELECT CAST(sum(output_tokens) AS BIGINT) FROM sessions");
    (prompts, tokens[0][0].as_i64().unwrap_or(0))
}

fn expect(env: &TestEnv, numbers: impl IntoIterator<Item = usize>) {
    let prompts: Vec<String> = numbers.into_iter().map(|n| format!("prompt {n}")).collect();
    let tokens = prompts.len() as i64 * 5;
    assert_eq!(found(env), (prompts, tokens));
}

/// The ids of the earlier versions.
fn versions(env: &TestEnv) -> Vec<String> {
    let rows =
        env.rows("SELECT session_id FROM lineage WHERE relation = 'earlier_version_of' ORDER BY 1");
    rows.iter().map(|row| row[0].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn every_prompt_is_found_once_however_its_log_is_rewritten() {
    let all = turns(1..4);
    let middle = turns(1..3);
    let ways = [
        ("cut behind a record", turns(1..2), 1..4),
        ("cut in a record", middle[..middle.len() - 100].to_owned(), 1..4),
        ("emptied", String::new(), 1..4),
        ("nothing known", "{\"x\":1}\n".to_owned(), 1..4),
        ("begun again", turns(4..5), 1..5),
        ("longer, with another beginning", turns([4, 5, 6, 7]), 1..8),
        ("without its beginning", turns(3..5), 1..5),
    ];
    for (way, text, expected) in ways {
        let env = TestEnv::new();
        read(&env, &all);
        read(&env, &text);
        assert_eq!(
            found(&env).0,
            expected.clone().map(|n| format!("prompt {n}")).collect::<Vec<_>>(),
            "{way}"
        );
        ingest(&env);
        let matches = env.json(&["search", "prompt", "--limit", "20"])["data"]["matches"].clone();
        assert_eq!(matches.as_array().map(Vec::len), Some(expected.len()), "{way}");
        // Restored from a backup, it is as before.
        read(&env, &all);
        let expected: Vec<String> = expected.map(|n| format!("prompt {n}")).collect();
        assert_eq!(found(&env).0, expected, "{way}, and restored");
    }
}

#[test]
fn the_report_and_the_list_name_the_earlier_version() {
    let env = TestEnv::new();
    read(&env, &turns(1..4));
    let report = read(&env, &turns([1, 9]));
    let kept = &report["earlier_versions"][0];
    assert_eq!(
        (kept["session_id"].as_str(), report["files_rewritten"].as_u64()),
        (Some(ID), Some(1))
    );
    let version = kept["kept_as"].as_str().expect("an id").to_owned();
    assert_eq!(versions(&env), std::slice::from_ref(&version));
    expect(&env, [1, 2, 3, 9]);

    let list = env.json(&["list"]);
    let listed = |id: &str| {
        let sessions = list["data"]["sessions"].as_array().expect("sessions");
        sessions.iter().find(|row| row["session_id"] == id).cloned().expect("listed")
    };
    let row = listed(&version);
    assert_eq!(
        (&row["relation"], &row["parent_session_id"]),
        (&json!("earlier_version_of"), &json!(ID))
    );
    assert_eq!(
        (row["source_gone"].as_bool(), listed(ID)["source_gone"].as_bool()),
        (Some(true), None)
    );
    let shown = env.run(&["show", ID]).ok();
    assert!(shown.contains("earlier version"), "{shown}");
    let resumed = env.run(&["resume", &version, "--print"]);
    assert!(
        resumed.code != 0 && resumed.stderr.contains(&format!("Resume {ID}")),
        "{}",
        resumed.stderr
    );
    let last = env.json(&["show", "last"]);
    assert_eq!(last["data"]["session"]["session_id"], ID);

    // A place that was cited before says where it is now.
    let moved = env.run(&["event", &format!("{ID}:7")]);
    assert!(moved.stderr.contains(&format!("{version}:7")), "{}", moved.stderr);

    // Once the content is back, the earlier version has nothing of its own.
    read(&env, &turns([1, 2, 3, 9]));
    expect(&env, [1, 2, 3, 9]);
    let list = env.json(&["list"]);
    assert_eq!(list["data"]["sessions"].as_array().map(Vec::len), Some(1));
    let status = env.json(&["status"]);
    assert_eq!(status["sessions"].as_u64(), Some(2), "{status}");
}

#[test]
fn labels_stay_with_the_session_of_the_log() {
    let env = TestEnv::new();
    read(&env, &turns(1..4));
    env.run(&["label", ID, "--add", "kept"]).ok();
    read(&env, &turns(8..9));
    let labels = env.rows("SELECT session_id, label FROM labels");
    assert_eq!(labels, [[json!(ID), json!("kept")]]);
}

#[test]
fn an_earlier_version_is_forgotten_with_its_session_or_alone() {
    let env = TestEnv::new();
    let secret = || turns(1..2) + &turn(2, " zebrafinch") + &turns(3..4);
    read(&env, &secret());
    read(&env, &turns([1, 7]));
    let version = versions(&env).remove(0);
    let preview = env.json(&["forget", ID]);
    let sessions = preview["sessions"].as_array().expect("sessions").clone();
    assert_eq!(sessions.len(), 2, "{preview}");
    let of_version = sessions.iter().find(|entry| entry["session_id"] == version.as_str());
    assert_eq!(of_version.map(|entry| &entry["is_earlier_version"]), Some(&json!(true)));
    env.run(&["forget", ID, "--yes"]).ok();
    assert_eq!(files_with(&env, "zebrafinch"), [""; 0]);
    ingest(&env);
    assert_eq!(found(&env).0, [""; 0]);
    env.run(&["forget", "--undo", ID]).ok();
    ingest(&env);
    expect(&env, [1, 7]);

    // Alone: the session of the log stays, and the same content is not kept again.
    let env = TestEnv::new();
    read(&env, &secret());
    read(&env, &turns([1, 7]));
    let version = versions(&env).remove(0);
    env.run(&["forget", &version, "--yes"]).ok();
    assert_eq!(files_with(&env, "zebrafinch"), [""; 0]);
    ingest(&env);
    expect(&env, [1, 7]);
    read(&env, &secret());
    read(&env, &turns([1, 7]));
    assert!(!versions(&env).contains(&version));
    expect(&env, [1, 7]);
}

#[test]
fn an_earlier_version_is_masked_by_new_rules() {
    let env = TestEnv::new();
    read(&env, &(turns(1..3) + &turn(3, " kittiwake")));
    read(&env, &(turns([1, 4]) + &turn(5, " kittiwake")));
    let settings = env.path(".config/sessions");
    fs::create_dir_all(&settings).expect("creates");
    let rule = "[[rule]]\nname = 'boat'\nregex = 'kittiwake'\n";
    fs::write(settings.join("redact.toml"), rule).expect("writes");
    // The rules are new when the log is rewritten again.
    read(&env, &turns([1, 6]));
    env.run(&["compact"]).ok();
    assert_eq!(files_with(&env, "kittiwake"), [""; 0]);
    let prompts = found(&env).0;
    assert_eq!(
        prompts.iter().filter(|text| text.contains("[REDACTED:boat]")).count(),
        2,
        "{prompts:?}"
    );
    assert_eq!(prompts.len(), 6, "{prompts:?}");
}

#[test]
fn earlier_versions_are_published_and_imported_like_sessions() {
    let env = machine("lark", "mira", "include = ['**']\ncontent = 'full'");
    read(&env, &turns(1..4));
    read(&env, &turns([1, 9]));
    let lake = env.path("lake").to_string_lossy().into_owned();
    env.run(&["push", &lake]).ok();
    let version = versions(&env).remove(0);

    let other = machine("wren", "ana", "include = []");
    other.run(&["pull", &lake]).ok();
    assert_eq!(versions(&other), std::slice::from_ref(&version));
    assert_eq!(found(&other), found(&env));
    // What is forgotten here goes there.
    env.run(&["forget", ID, "--yes"]).ok();
    env.run(&["push", &lake]).ok();
    other.run(&["pull", &lake]).ok();
    assert_eq!(found(&other).0, [""; 0]);
}

#[test]
fn a_store_that_is_merged_verified_and_damaged_keeps_earlier_versions() {
    let env = TestEnv::new();
    read(&env, &turns(1..4));
    read(&env, &turns([1, 9]));
    read(&env, &turns([1, 9, 10]));
    env.run(&["compact"]).ok();
    expect(&env, [1, 2, 3, 9, 10]);
    let logs = env.path("logs").to_string_lossy().into_owned();
    env.run(&["ingest", "--verify", &logs]).ok();
    expect(&env, [1, 2, 3, 9, 10]);
    assert_eq!(versions(&env).len(), 1);
}

/// Killed while it reads a log that was begun again, an ingest has lost and doubled nothing at its end.
#[test]
fn a_log_that_was_rewritten_survives_kills() {
    // Long enough that the rows are handed over in several parts.
    let long = "word ".repeat(900);
    let text = |numbers: std::ops::Range<usize>| -> String {
        numbers.map(|n| turn(n, &format!(" {long}"))).collect()
    };
    let env = TestEnv::new();
    read(&env, &text(0..700));
    let prompts = || {
        let counts = "SELECT count(*), count(DISTINCT text) FROM events \
            WHERE event_type = 'user' AND NOT is_replay";
        // A query that looks for new log data would be a second writer.
        let args = ["query", "--quiet", "--no-refresh", "--output", "csv", counts];
        let table = env.run(&args).ok();
        let numbers = table.lines().nth(1).expect("a row").split(',');
        numbers.map(|count| count.parse::<u64>().expect("a count")).collect::<Vec<_>>()
    };
    let logs = env.path("logs").to_string_lossy().into_owned();
    let mut random = Random(11);
    let mut most = 700;
    for numbers in [500..1200, 0..300, 0..700, 500..1200] {
        most = most.max(numbers.end as u64);
        fs::write(log(&env), text(numbers)).expect("writes");
        for _ in 0..3 {
            let mut command = env.command();
            let ingest = command.args(["ingest", "--quiet", &logs]).stdout(Stdio::null());
            let mut child = ingest.spawn().expect("spawns");
            std::thread::sleep(Duration::from_micros(random.below(1_500_000) as u64));
            let _ = child.kill();
            let _ = child.wait();
            let counted = prompts();
            let is_once = counted.first() == counted.last();
            assert!(is_once && (700..=most).contains(&counted[0]), "{counted:?}");
        }
        env.run(&["ingest", "--quiet", &logs]).ok();
        assert_eq!(prompts(), [most, most]);
    }
}
