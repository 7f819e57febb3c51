//! Logs that are cut or begun again: what was ingested of them stays as an earlier version of the
//! session, counts once, and goes with the session.

use std::time::Duration;

use serde_json::{Value, json};

use crate::checks::JsonChecks;
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

/// The log.
fn log() -> String {
    format!("logs/{ID}.jsonl")
}

/// Writes the log and ingests it.
fn read(env: &TestEnv, text: &str) -> Value {
    env.write(log(), text);
    env.ingest("logs")
}

/// The prompts that SQL finds, and the output tokens that it counts.
fn found(env: &TestEnv) -> (Vec<String>, i64) {
    let prompts = env.texts("SELECT text FROM events WHERE event_type = 'user' AND NOT is_replay ORDER BY timestamp, text");
    let tokens = env.rows("SELECT CAST(sum(output_tokens) AS BIGINT) FROM sessions");
    (prompts, tokens[0][0].as_i64().unwrap_or(0))
}

fn prompts(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|n| format!("prompt {n}")).collect()
}

fn expect(env: &TestEnv, numbers: impl IntoIterator<Item = usize>) {
    let prompts = prompts(numbers);
    let tokens = prompts.len() as i64 * 5;
    assert_eq!(found(env), (prompts, tokens));
}

/// The ids of the earlier versions.
fn versions(env: &TestEnv) -> Vec<String> {
    env.texts("SELECT session_id FROM lineage WHERE relation = 'earlier_version_of' ORDER BY 1")
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
        assert_eq!(found(&env).0, prompts(expected.clone()), "{way}");
        env.ingest("logs");
        let answer = env.json(["search", "prompt", "--limit", "20"]);
        assert_eq!(answer["data"]["matches"].list().len(), expected.len(), "{way}");
        // Restored from a backup, it is as before.
        read(&env, &all);
        assert_eq!(found(&env).0, prompts(expected), "{way}, and restored");
    }
}

#[test]
fn the_report_and_the_list_name_the_earlier_version() {
    let env = TestEnv::new();
    read(&env, &turns(1..4));
    let report = read(&env, &turns([1, 9]));
    report.has(json!({"files_rewritten": 1, "earlier_versions": [{"session_id": ID}]}));
    let version = report["earlier_versions"][0]["kept_as"].text();
    assert_eq!(versions(&env), [version]);
    expect(&env, [1, 2, 3, 9]);

    let list = env.json(["list"]);
    let listed = |id: &str| {
        let sessions = list["data"]["sessions"].list();
        sessions.iter().find(|row| row["session_id"] == id).expect("listed")
    };
    listed(version).has(json!({
        "relation": "earlier_version_of", "parent_session_id": ID, "source_gone": true,
    }));
    listed(ID).has(json!({"source_gone": null}));
    env.run(["show", ID]).shows("earlier version");
    let resumed = env.run(["resume", version, "--print"]);
    resumed.fails(2).says(format!("Resume {ID}"));
    env.json(["show", "last"]).has(json!({"data": {"session": {"session_id": ID}}}));

    // A place that was cited before says where it is now.
    env.run(["event", &format!("{ID}:7")]).fails(1).says(format!("{version}:7"));

    // Once the content is back, the earlier version has nothing of its own.
    read(&env, &turns([1, 2, 3, 9]));
    expect(&env, [1, 2, 3, 9]);
    let list = env.json(["list"]);
    assert_eq!(list["data"]["sessions"].list().len(), 1);
    let status = env.json(["status"]);
    assert_eq!(status["sessions"].as_u64(), Some(2));
}

#[test]
fn labels_stay_with_the_session_of_the_log() {
    let env = TestEnv::new();
    read(&env, &turns(1..4));
    env.run(["label", ID, "--add", "kept"]).ok();
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
    let preview = env.json(["forget", ID]);
    let sessions = preview["sessions"].list().to_vec();
    assert_eq!(sessions.len(), 2);
    let of_version = sessions.iter().find(|entry| entry["session_id"] == version.as_str());
    assert_eq!(of_version.map(|entry| &entry["is_earlier_version"]), Some(&json!(true)));
    env.run(["forget", ID, "--yes"]).ok();
    assert_eq!(files_with(&env, "zebrafinch"), [""; 0]);
    env.ingest("logs");
    assert_eq!(found(&env).0, [""; 0]);
    env.run(["forget", "--undo", ID]).ok();
    env.ingest("logs");
    expect(&env, [1, 7]);

    // Alone: the session of the log stays, and the same content is not kept again.
    let env = TestEnv::new();
    read(&env, &secret());
    read(&env, &turns([1, 7]));
    let version = versions(&env).remove(0);
    env.run(["forget", &version, "--yes"]).ok();
    assert_eq!(files_with(&env, "zebrafinch"), [""; 0]);
    env.ingest("logs");
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
    env.write_rule("boat", "kittiwake");
    // The rules are new when the log is rewritten again.
    read(&env, &turns([1, 6]));
    env.run(["compact"]).ok();
    assert_eq!(files_with(&env, "kittiwake"), [""; 0]);
    let prompts = found(&env).0;
    let masked = prompts.iter().filter(|text| text.contains("[REDACTED:boat]"));
    assert_eq!(masked.count(), 2, "{prompts:?}");
    assert_eq!(prompts.len(), 6, "{prompts:?}");
}

#[test]
fn earlier_versions_are_published_and_imported_like_sessions() {
    let env = machine("lark", "mira", "include = ['**']\ncontent = 'full'");
    read(&env, &turns(1..4));
    read(&env, &turns([1, 9]));
    let lake = env.path("lake").to_string_lossy().into_owned();
    env.run(["push", &lake]).ok();
    let version = versions(&env).remove(0);

    let other = machine("wren", "ana", "include = []");
    other.run(["pull", &lake]).ok();
    assert_eq!(versions(&other), std::slice::from_ref(&version));
    assert_eq!(found(&other), found(&env));
    // What is forgotten here goes there.
    env.run(["forget", ID, "--yes"]).ok();
    env.run(["push", &lake]).ok();
    other.run(["pull", &lake]).ok();
    assert_eq!(found(&other).0, [""; 0]);
}

#[test]
fn a_store_that_is_merged_verified_and_damaged_keeps_earlier_versions() {
    let env = TestEnv::new();
    read(&env, &turns(1..4));
    read(&env, &turns([1, 9]));
    read(&env, &turns([1, 9, 10]));
    env.run(["compact"]).ok();
    expect(&env, [1, 2, 3, 9, 10]);
    let logs = env.path("logs").to_string_lossy().into_owned();
    env.run(["ingest", "--verify", &logs]).ok();
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
        let table = env.run(args).ok();
        let numbers = table.lines().nth(1).expect("a row").split(',');
        numbers.map(|count| count.parse::<u64>().expect("a count")).collect::<Vec<_>>()
    };
    let logs = env.path("logs").to_string_lossy().into_owned();
    let mut random = Random(11);
    let mut most = 700;
    for numbers in [500..1200, 0..300, 0..700, 500..1200] {
        most = most.max(numbers.end as u64);
        env.write(log(), text(numbers));
        for _ in 0..3 {
            let ingest = env.cli(["ingest", "--quiet", &logs]);
            ingest.kill_within(Duration::from_millis(1500), &mut random);
            let counted = prompts();
            let is_once = counted.first() == counted.last();
            assert!(is_once && (700..=most).contains(&counted[0]), "{counted:?}");
        }
        env.ingest(&logs);
        assert_eq!(prompts(), [most, most]);
    }
}
