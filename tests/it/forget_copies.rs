//! Copies of forgotten sessions: no way brings their words back, and what a session adds to a copy is
//! kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::{Random, TestEnv, copy_folder, files_below, samples};
use crate::forget::files_with;
use crate::lake::{machine, pull, push};

/// A word that only the forgotten session has.
const SECRET: &str = "zebrafinch";

/// Number of kills of a `forget`.
const KILLS: u32 = 6;

/// The id of a session.
fn session_id(number: u32) -> String {
    format!("{number:08x}-7777-4000-8000-000000000000")
}

/// A log of Claude Code with these prompts, each with a call, its result and an answer. `first` is the
/// number of the first record, and `hour` that of its time.
fn claude_log(session: &str, prompts: &[&str], first: u32, hour: u32) -> String {
    let mut lines = Vec::new();
    let mut number = first;
    let family = session.get(..8).unwrap_or(session);
    let mut add = |mut record: Value| {
        record["uuid"] = format!("{family}-7777-4000-8000-{number:012x}").into();
        record["timestamp"] = format!("2026-10-12T{hour:02}:00:{:02}.000Z", number % 60).into();
        record["sessionId"] = session.into();
        record["cwd"] = "/home/mira/code/harbor".into();
        record["version"] = "2.1.80".into();
        lines.push(record.to_string());
        number += 1;
    };
    for (turn, prompt) in prompts.iter().enumerate() {
        let response = |part: &str, content: Value| {
            let id = format!("msg_{family}{first}{turn}{part}");
            json!({"type": "assistant", "requestId": format!("req_{id}"), "message": {
                "id": id, "type": "message", "role": "assistant", "model": "claude-opus-4-6",
                "content": [content], "usage": {"input_tokens": 10, "output_tokens": 5}}})
        };
        let call = format!("toolu_{family}{first}{turn}");
        add(json!({"type": "user", "message": {"role": "user", "content": prompt}}));
        add(response(
            "call",
            json!({"type": "tool_use", "id": call, "name": "Bash",
                   "input": {"command": format!("make {prompt}")}}),
        ));
        add(json!({"type": "user", "message": {"role": "user", "content": [{
            "type": "tool_result", "tool_use_id": call, "is_error": true,
            "content": format!("error in {prompt}")}]}}));
        add(response("text", json!({"type": "text", "text": format!("{prompt} is done")})));
    }
    lines.join("\n") + "\n"
}

/// The log of the session that is forgotten.
fn secret_log() -> String {
    claude_log(&session_id(1), &["the zebrafinch plan", "continue", "zebrafinch again"], 1, 8)
}

/// A log of another session that begins with the records of the forgotten one, and adds two turns.
fn fork_log() -> String {
    let added = claude_log(&session_id(5), &["continue", "paint the pier"], 101, 10);
    secret_log().replace(&session_id(1), &session_id(5)) + &added
}

fn log_path(env: &TestEnv, number: u32) -> PathBuf {
    env.path(format!("logs/a/{}.jsonl", session_id(number)))
}

/// A store with the session to forget and another one.
fn store_with_secret() -> TestEnv {
    let env = TestEnv::new();
    env.write(log_path(&env, 1), secret_log());
    env.write(log_path(&env, 2), claude_log(&session_id(2), &["continue", "mend the net"], 1, 9));
    env.ingest("logs");
    env
}

fn forget(env: &TestEnv) -> Value {
    env.json(["forget", "--yes", &session_id(1)])
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).expect("reads").lines().map(|line| format!("{line}\n")).collect()
}

/// Fails if a file of the store has a word of the forgotten session, or if the other one has changed.
fn check_nothing_is_back(env: &TestEnv, way: &str) {
    assert_eq!(files_with(env, SECRET), [""; 0], "{way}");
    let other = "SELECT count(*) FROM events WHERE event_type = 'user' AND NOT is_replay AND text IN ('continue', 'mend the net') \
                 AND session_id LIKE '00000002-%'";
    assert_eq!(env.number(other), 2, "{way}");
}

type Change = fn(&TestEnv, &Path);

/// Ways in which the text of a log can be read again after its session was forgotten.
const WAYS: &[(&str, Change)] = &[
    ("nothing", |_, _| {}),
    ("it grew", |env, log| {
        let added = claude_log(&session_id(1), &["zebrafinch more"], 50, 11);
        env.write(log, lines(log).concat() + &added);
    }),
    ("moved", |env, log| {
        env.write("logs/m/x.jsonl", lines(log).concat());
        env.remove(log);
    }),
    ("copied under the id of another session", |env, log| {
        env.write(log.with_file_name(format!("{}.jsonl", session_id(4))), lines(log).concat());
    }),
    ("copied as a backup", |env, log| {
        env.write(log.with_extension("jsonl.bak.jsonl"), lines(log).concat());
    }),
    ("its first record is gone", |env, log| {
        env.write(log, lines(log)[1..].concat());
    }),
    ("its first half is gone, and it moved", |env, log| {
        env.write("logs/m/half.jsonl", lines(log)[6..].concat());
        env.remove(log);
    }),
    ("its end is gone, and it moved", |env, log| {
        env.write("logs/m/end.jsonl", lines(log)[..5].concat());
    }),
    ("a summary is first", |env, log| {
        let summary = json!({"type": "summary", "summary": "of zebrafinch", "leafUuid": "x"});
        env.write(log, format!("{summary}\n") + &lines(log).concat());
    }),
    ("every record was rewritten, and it moved", |env, log| {
        let rewritten = lines(log).concat().replace("2.1.80", "2.1.81");
        env.write("logs/m/rewritten.jsonl", rewritten);
    }),
    ("forked", |env, log| {
        let forked = lines(log).concat().replace(&session_id(1), &session_id(5));
        env.write("logs/m/forked.jsonl", forked);
    }),
    ("forked with new ids of records", |env, log| {
        let forked = lines(log).concat().replace(&session_id(1), &session_id(5));
        let forked = forked.replace("\"uuid\":\"00000001-", "\"uuid\":\"00000009-");
        env.write("logs/m/renamed.jsonl", forked);
    }),
    ("forked with new ids and times, naming its original", |env, log| {
        let mut forked = String::new();
        for line in lines(log) {
            let mut record: Value = serde_json::from_str(&line).expect("JSON");
            record["forkedFrom"] =
                json!({"messageUuid": record["uuid"], "sessionId": session_id(1)});
            record["uuid"] =
                record["uuid"].as_str().expect("id").replace("00000001-", "00000008-").into();
            record["sessionId"] = session_id(8).into();
            record["timestamp"] = "2026-10-13T08:00:00.000Z".into();
            forked += &format!("{record}\n");
        }
        env.write("logs/m/sdk.jsonl", forked);
    }),
    ("forked with new ids and times", |env, log| {
        let mut forked = String::new();
        for (at, line) in lines(log).iter().enumerate() {
            let mut record: Value = serde_json::from_str(line).expect("JSON");
            record["uuid"] = format!("00000003-7777-4000-8000-{at:012x}").into();
            record["sessionId"] = session_id(3).into();
            record["timestamp"] = format!("2026-10-14T08:00:{at:02}.000Z").into();
            forked += &format!("{record}\n");
        }
        env.write("logs/m/new.jsonl", forked);
    }),
    ("its history follows another beginning", |env, log| {
        let begun = claude_log(&session_id(6), &["a new beginning"], 1, 12);
        env.write("logs/m/6.jsonl", begun + &lines(log).concat());
    }),
    ("appended to a log that the store has", |env, log| {
        let own = log_path(env, 2);
        env.write(&own, lines(&own).concat() + &lines(log).concat());
    }),
    ("verified", |env, _| {
        env.run(["ingest", "--quiet", "--verify", "logs"]).ok();
    }),
    ("compacted", |env, _| {
        env.run(["compact"]).ok();
    }),
    ("masked by other rules", |env, _| {
        env.write_rule("q", "nothinglike[0-9]+");
    }),
    ("a damaged segment", |env, log| {
        env.write("logs/m/copy.jsonl", lines(log).concat());
        let segments = fs::read_dir(env.path("store/segments")).expect("lists");
        let newest = segments.map(|entry| entry.expect("entry").path()).max().expect("a segment");
        fs::write(newest.join("events.parquet"), "damaged").expect("writes");
        env.run(["ingest", "--quiet", "--verify", "logs"]).ok();
    }),
];

#[test]
fn no_way_brings_a_forgotten_session_back() {
    for (way, change) in WAYS {
        let env = store_with_secret();
        assert!(!files_with(&env, SECRET).is_empty());
        forget(&env);
        change(&env, &log_path(&env, 1));
        // The second run reads what the first one left out, if it is not settled.
        for _ in 0..2 {
            env.ingest("logs").has(json!({"files_failed": 0}));
            check_nothing_is_back(&env, way);
        }
        env.run(["search", SECRET, "--json"]).fails(1);
    }
}

/// Logs of the samples, without those that share a folder with many others.
fn sample_logs() -> Vec<PathBuf> {
    let mut logs = files_below(&samples());
    logs.retain(|path| {
        let is_odd = path.iter().any(|part| part == "broken" || part == "hostile");
        !is_odd && path.extension().is_some_and(|end| end == "json" || end == "jsonl")
    });
    logs
}

/// The texts of prompts, answers, reasoning, calls and results, by session.
const TEXTS: &str = "SELECT DISTINCT session_id, text FROM events WHERE NOT is_replay AND \
                     length(text) >= 25 AND event_type NOT IN ('notification', 'token_usage')";

/// Returns the texts of the rows of a query with a session and a text.
fn texts(env: &TestEnv) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    env.rows(TEXTS).iter().map(|row| (text(&row[0]), text(&row[1]))).collect()
}

/// Agents whose records have neither ids nor times, or whose logs are those of another agent without
/// their head. Short texts alone do not tell a copy from a coincidence.
const WITHOUT_MARKS: [&str; 2] = ["hermes", "kiro"];

/// Copies of the logs of every agent stay out: whole ones, and those without their beginning or end.
#[test]
fn copies_of_the_logs_of_every_agent_stay_out() {
    let mut forgotten = 0;
    let mut all_back = Vec::new();
    for sample in sample_logs() {
        let env = TestEnv::new();
        let place = sample.strip_prefix(samples()).expect("a sample");
        let log = env.path("logs").join(place);
        let folder = log.parent().expect("a folder").to_owned();
        copy_folder(sample.parent().expect("a folder"), &folder);
        env.ingest("logs");
        let of_log = format!(
            "SELECT session_id FROM sessions WHERE source_path = '{}' AND events > 0",
            log.to_string_lossy()
        );
        let found = env.rows(&of_log);
        let Some(id) = found.first().and_then(|row| row[0].as_str()) else { continue };
        let (own, others): (Vec<_>, Vec<_>) = texts(&env).into_iter().partition(|row| row.0 == id);
        let is_of_others = |text: &String| others.iter().any(|(_, other)| other == text);
        let own: Vec<String> =
            own.into_iter().map(|(_, text)| text).filter(|text| !is_of_others(text)).collect();
        forgotten += 1;
        env.run(["forget", "--yes", id]).ok();

        let content = fs::read(&log).expect("reads");
        let name = log.file_name().expect("name").to_string_lossy().into_owned();
        env.write(folder.join(format!("copied-{name}")), &content);
        let mut copies = vec![("whole", content.clone())];
        if name.ends_with(".jsonl") {
            let rows: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
            if !WITHOUT_MARKS.iter().any(|agent| place.starts_with(agent)) {
                copies.push(("without the first record", rows[1..].concat()));
                copies.push(("without the first half", rows[rows.len() / 2..].concat()));
            }
            copies.push(("without the end", rows[..rows.len() - rows.len().min(2)].concat()));
        }
        for (way, copy) in copies {
            let folder = env.path(format!("logs/{way}")).join(place.parent().expect("a folder"));
            env.write(folder.join(&name), &copy);
            env.write(folder.join(format!("renamed-{name}")), &copy);
        }
        env.ingest("logs");
        let back: Vec<_> = texts(&env).into_iter().filter(|(_, text)| own.contains(text)).collect();
        if !back.is_empty() {
            all_back.push(format!("{}: {back:?}", place.display()));
        }
    }
    assert!(all_back.is_empty(), "{all_back:#?}");
    assert!(forgotten > 30, "{forgotten}");
}

/// All columns of the rows of a fork, and of its session.
fn fork_rows(env: &TestEnv) -> Vec<Vec<Value>> {
    let mut rows =
        env.rows("SELECT * FROM events WHERE session_id LIKE '00000005-%' ORDER BY event_index");
    let columns = "SELECT * EXCLUDE (source_path) FROM sessions WHERE session_id LIKE '00000005-%'";
    rows.extend(env.rows(columns));
    rows
}

#[test]
fn a_fork_keeps_what_it_adds_and_says_what_it_lost() {
    let env = store_with_secret();
    let fork = env.path("logs/fork.jsonl");
    forget(&env);
    env.write(&fork, fork_log());
    let continued = json!({"continued": [{
        "session_id": session_id(5), "forgotten_sessions": [session_id(1)],
        "events_left_out": 18, "events_kept": 12,
    }]});
    env.json(["ingest", "--dry-run", "logs"]).has(continued.clone());
    env.ingest("logs").has(continued);
    check_nothing_is_back(&env, "fork");
    let found = env.rows(
        "SELECT count(*) FILTER (text = '[forgotten]' AND is_replay AND command IS NULL AND tool_name IS NULL), \
         count(*) FILTER (NOT is_replay), count(*) FROM events WHERE session_id LIKE '00000005-%'",
    );
    assert_eq!(found, [[json!(18), json!(12), json!(30)]]);
    let session = env.rows(
        "SELECT title, user_messages, tool_calls, output_tokens FROM sessions WHERE session_id LIKE '00000005-%'",
    );
    assert_eq!(session, [[json!("continue"), json!(2), json!(2), json!(20)]]);
    assert_eq!(env.run(["search", "forgotten", "--json"]).code, 1, "the mark is not searched");
    env.run(["search", "paint the pier"]).ok();

    // It grows, is compacted, masked by other rules, and read again after damage.
    let before = fork_rows(&env);
    env.write(&fork, fork_log() + &claude_log(&session_id(5), &["varnish"], 201, 11));
    env.run(["ingest", "logs"]).shows("continues a forgotten one: 18 events left out, 18 kept");
    check_nothing_is_back(&env, "grown");
    assert_eq!(fork_rows(&env)[..29], before[..29], "coordinates stay");
    for (_, change) in &WAYS[WAYS.len() - 4..] {
        change(&env, &log_path(&env, 1));
        env.ingest("logs");
        check_nothing_is_back(&env, "changed");
    }
    let kept = "SELECT count(*) FROM events WHERE NOT is_replay AND session_id LIKE '00000005-%'";
    assert_eq!(env.rows(kept), [[json!(18)]]);
}

#[test]
fn forks_before_and_after_a_forget_have_equal_rows() {
    let after = store_with_secret();
    forget(&after);
    after.write("logs/fork.jsonl", fork_log());
    after.ingest("logs");

    let before = store_with_secret();
    before.write("logs/fork.jsonl", fork_log());
    // A copy without a word of its own.
    before.write("logs/copy.jsonl", secret_log().replace(&session_id(1), &session_id(7)));
    before.ingest("logs");
    let preview = before.json(["forget", &session_id(1)]);
    let data = forget(&before);
    assert_eq!(preview["copies"], data["copies"]);
    data.has(json!({"copies": [
        {"session_id": session_id(5), "events_left_out": 18, "is_removed": false},
        {"session_id": session_id(7), "events_left_out": 18, "is_removed": true},
    ]}));
    // The texts are gone before the next ingest, which gives the fork the rows of a new one.
    check_nothing_is_back(&before, "forgotten");
    let rows = fork_rows(&before);
    assert_eq!(rows[..30], fork_rows(&after)[..30]);
    before.ingest("logs");
    check_nothing_is_back(&before, "read again");
    assert_eq!(fork_rows(&before), fork_rows(&after));
    before.run(["show", &session_id(7)]).fails(1);

    // If its log is gone, what the fork adds stays.
    let gone = store_with_secret();
    gone.write("logs/fork.jsonl", fork_log());
    gone.ingest("logs");
    gone.remove("logs/fork.jsonl");
    gone.ingest("logs");
    forget(&gone);
    gone.ingest("logs");
    check_nothing_is_back(&gone, "gone");
    assert_eq!(fork_rows(&gone)[..30], fork_rows(&after)[..30]);
    let counts = "SELECT title, events, turns, steps, user_messages, tool_calls, output_tokens FROM sessions WHERE session_id LIKE '00000005-%'";
    assert_eq!(gone.rows(counts), after.rows(counts));
}

#[test]
fn undo_gives_forks_and_copies_their_texts_back() {
    let whole = store_with_secret();
    whole.write("logs/fork.jsonl", fork_log());
    whole.ingest("logs");

    let env = store_with_secret();
    forget(&env);
    env.write("logs/fork.jsonl", fork_log());
    env.write("logs/copy.jsonl", secret_log().replace(&session_id(1), &session_id(7)));
    assert_eq!(env.ingest("logs")["files_excluded"], 2);
    assert_eq!(env.ingest("logs")["files_excluded"], 2);
    env.remove("logs/copy.jsonl");
    env.run(["forget", "--undo"]).ok();
    env.ingest("logs");
    let columns = "SELECT * FROM events ORDER BY session_id, event_index";
    assert_eq!(env.rows(columns), whole.rows(columns));
    assert_eq!(fork_rows(&env), fork_rows(&whole));
    let mut entries = fs::read_dir(env.store()).expect("lists").flatten();
    assert!(!entries.any(|entry| entry.file_name().to_string_lossy().ends_with(".bin")));
}

/// Prompts that two sessions share by chance do not make one a copy of the other.
#[test]
fn unrelated_sessions_with_equal_prompts_stay_whole() {
    let codex = |id: &str, hour: u32, answers: [&str; 2]| {
        let mut lines = Vec::new();
        let mut add = |kind: &str, payload: Value| {
            let time = format!("2026-10-14T{hour:02}:00:{:02}.000Z", lines.len());
            lines.push(json!({"timestamp": time, "type": kind, "payload": payload}).to_string());
        };
        add(
            "session_meta",
            json!({"id": id, "cwd": "/home/mira/code/harbor", "timestamp": "2026-10-14T09:00:00Z", "originator": "codex_cli_rs", "cli_version": "0.98.0"}),
        );
        let message = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
        for answer in answers {
            add("response_item", message("user", "input_text", "continue"));
            add("response_item", message("assistant", "output_text", answer));
        }
        lines.join("\n") + "\n"
    };
    let id = |number: u32| format!("01a13941-6cb9-7f1e-a741-{number:012x}");
    let env = TestEnv::new();
    let log =
        |number: u32| env.path(format!("logs/rollout-2026-10-14T09-00-00-{}.jsonl", id(number)));
    env.write(log(1), codex(&id(1), 9, ["Moored.", "Painted."]));
    env.write(log(2), codex(&id(2), 10, ["Moored.", "Varnished."]));
    env.ingest("logs");
    let others = "SELECT * FROM events WHERE session_id LIKE '%0002' ORDER BY event_index";
    let before = env.rows(others);
    assert!(before.len() > 4);
    env.json(["forget", "--yes", &id(1)]).has(json!({"copies": []}));
    env.write(log(3), codex(&id(3), 11, ["Moored.", "Sold."]));
    env.ingest("logs");
    assert_eq!(env.rows(others), before);
    let prompts =
        "SELECT session_id, count(*) FROM events WHERE event_type = 'user' GROUP BY 1 ORDER BY 1";
    assert_eq!(env.rows(prompts), [[json!(id(2)), json!(2)], [json!(id(3)), json!(2)]]);
}

#[test]
fn a_killed_forget_is_completed_by_the_same_command() {
    let env = store_with_secret();
    env.write("logs/fork.jsonl", fork_log());
    env.ingest("logs");
    let mut random = Random(9);
    for round in 0..KILLS {
        let forget = env.cli(["forget", "--yes", &session_id(1)]);
        forget.kill_within(Duration::from_millis(60), &mut random);
        // Whatever was done, nothing that was forgotten is read again.
        env.ingest("logs");
        let shown = env.run(["show", &session_id(1)]).code;
        assert!(shown == 0 || files_with(&env, SECRET).is_empty(), "{round}");
    }
    if env.run(["show", &session_id(1)]).code == 0 {
        forget(&env);
    }
    env.ingest("logs");
    check_nothing_is_back(&env, "killed");
    assert_eq!(fork_rows(&env).len(), 31);
}

#[test]
fn a_damaged_list_of_records_stops_the_ingest() {
    let env = store_with_secret();
    forget(&env);
    let mut entries = fs::read_dir(env.store()).expect("lists").flatten().map(|entry| entry.path());
    let list = entries.find(|path| path.extension().is_some_and(|end| end == "bin"));
    let list = list.expect("a list of records");
    let content = fs::read(&list).expect("reads");
    env.write("logs/copy.jsonl", secret_log().replace(&session_id(1), &session_id(7)));
    let mut changed = content.clone();
    changed[3] ^= 4;
    env.write(&list, changed);
    env.run(["ingest", "logs"]).fails(3).says("checksum");
    env.remove(&list);
    env.run(["ingest", "logs"]).fails(3);
    env.write(&list, content);
    env.ingest("logs");
    check_nothing_is_back(&env, "restored");
}

/// What a lake has of a forgotten session is not imported: neither under its id, nor as a part of
/// another session.
#[test]
fn a_lake_brings_no_forgotten_session_back() {
    let mira = laptop_without_logs("pier", "mira");
    let lake = mira.path("lake");
    mira.write(log_path(&mira, 1), secret_log());
    mira.write(log_path(&mira, 2), claude_log(&session_id(2), &["continue", "mend the net"], 1, 9));
    mira.ingest("logs");
    push(&mira, &lake);
    let server = laptop_without_logs("quay", "ann");
    pull(&server, &lake);
    assert!(!files_with(&server, SECRET).is_empty());
    forget(&server);
    let check = |way: &str| {
        pull(&server, &lake);
        assert_eq!(files_with(&server, SECRET), Vec::<String>::new(), "{way}");
        let kept = server.rows("SELECT count(*) FROM sessions WHERE session_id LIKE '00000002-%'");
        assert_eq!(kept, [[json!(1)]], "{way}");
    };
    check("as it was");
    let log = log_path(&mira, 1);
    mira.write(&log, secret_log() + &claude_log(&session_id(1), &["zebrafinch more"], 50, 11));
    mira.ingest("logs");
    push(&mira, &lake);
    check("grown");
    mira.write(&log, lines(&log)[1..].concat());
    mira.ingest("logs");
    push(&mira, &lake);
    check("without its first record");
    let tom = laptop_without_logs("dock", "tom");
    tom.write("logs/fork.jsonl", fork_log());
    tom.ingest("logs");
    push(&tom, &lake);
    pull(&server, &lake).has(json!({"forgotten_events": 18}));
    check("as a part of a fork");
    let fork = server.rows(
        "SELECT title, events, replay_events, user_messages FROM sessions WHERE session_id LIKE '00000005-%'",
    );
    assert_eq!(fork, [[json!("continue"), json!(30), json!(18), json!(2)]]);

    // A machine that forgot its own session does not take it back from a fork of another machine.
    forget(&mira);
    pull(&mira, &lake);
    assert_eq!(files_with(&mira, SECRET), Vec::<String>::new());

    // Undone, the next pull brings all of it.
    server.run(["forget", "--undo"]).ok();
    pull(&server, &lake);
    let whole = server.rows("SELECT count(*) FROM events WHERE text LIKE '%zebrafinch%' AND session_id LIKE '00000005-%'");
    assert_ne!(whole, [[json!(0)]]);
}

/// A machine that publishes all projects.
fn laptop_without_logs(name: &str, user: &str) -> TestEnv {
    machine(name, user, "include = ['**']")
}
