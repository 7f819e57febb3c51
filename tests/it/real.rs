//! Real logs: everything accounted for, nothing read twice, growth, size budgets.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::{Random, TestEnv, files_below, real_logs};
use crate::mcp::Client;

/// Log files of the three providers, by name.
fn files(logs: &Path) -> Vec<PathBuf> {
    let providers = ["claude", "codex", "gemini"].map(|name| logs.join(name));
    let files = providers.iter().flat_map(|folder| files_below(folder));
    files.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")).collect()
}

/// Counts JSON objects with another parser than the program's.
fn objects(path: &Path) -> u64 {
    let text = String::from_utf8_lossy(&fs::read(path).expect("reads")).into_owned();
    text.lines()
        .map(|line| {
            serde_json::Deserializer::from_str(line)
                .into_iter::<Value>()
                .filter(|v| matches!(v, Ok(Value::Object(_))))
                .count() as u64
        })
        .sum()
}

#[test]
fn every_object_is_an_event_or_counted_and_a_second_run_reads_nothing() {
    let Some(logs) = real_logs() else { return };
    let env = TestEnv::new();
    let paths = files(&logs);
    let args: Vec<String> = ["ingest".to_owned()]
        .into_iter()
        .chain(paths.iter().map(|p| p.to_string_lossy().into_owned()))
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let report = env.json(&args);
    let known = env.rows("SELECT source_path FROM sessions");
    let known: HashSet<&str> = known.iter().filter_map(|row| row[0].as_str()).collect();
    let mut decoded = 0;
    let mut unknown = Vec::new();
    for path in &paths {
        if known.contains(&*path.to_string_lossy()) {
            decoded += objects(path);
        } else {
            unknown.push(path);
        }
    }
    // What is not decoded is reported file by file, as empty, next to a log or of unknown format.
    let reported: u64 = ["files_unknown", "files_sidecar", "files_empty"]
        .iter()
        .filter_map(|kind| report[kind].as_u64())
        .sum();
    assert_eq!(reported, unknown.len() as u64, "{unknown:?}");
    assert_eq!(report["problems"].get("bad_json"), None, "{report}");
    assert_eq!(report["objects"].as_u64(), Some(decoded));
    // Objects that gave events: their places in the files are all different.
    let places =
        env.rows("SELECT count(*) FROM (SELECT DISTINCT session_id, source_offset FROM events)");
    let merged: u64 = report["objects_merged"]
        .as_object()
        .expect("merged")
        .values()
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(places[0][0].as_u64().expect("count") + merged, decoded);
    let again = env.json(&args);
    for field in
        ["files_opened", "bytes_read", "events", "files_new", "files_grown", "files_rewritten"]
    {
        assert_eq!(again[field], 0, "{field}");
    }
    assert_eq!(env.json(["status"])["generation"], env.json(["status"])["generation"]);
}

/// What the growth must not change.
fn content(env: &TestEnv) -> Value {
    let sql = "SELECT * FROM events ORDER BY session_id, event_index";
    let events = env.rows(sql);
    let sql = "SELECT * EXCLUDE (source_path) FROM sessions ORDER BY session_id";
    json!([events, env.rows(sql)])
}

#[test]
fn growth_state_by_state_equals_the_last_state_at_once() {
    let Some(logs) = real_logs() else { return };
    let mut series = 0;
    for provider in ["claude", "codex", "gemini"] {
        for repo in fs::read_dir(logs.join(provider)).expect("lists").flatten() {
            let Ok(grown) = fs::read_dir(repo.path().join("entire-growth")) else { continue };
            for session in grown.flatten() {
                let mut states: Vec<_> = fs::read_dir(session.path())
                    .expect("lists")
                    .map(|e| e.expect("entry").path())
                    .collect();
                states.retain(|path| {
                    path.extension().is_some_and(|ext| ext == "jsonl" || ext == "json")
                });
                // By size: the capture times in the names are not always in order.
                states.sort_by_key(|path| fs::metadata(path).expect("metadata").len());
                let extension = states[0].extension().expect("extension").to_owned();
                let name = format!(
                    "{}.{}",
                    session.file_name().to_string_lossy(),
                    extension.to_string_lossy()
                );
                states.push(repo.path().join("entire").join(&name));
                check_growth(&name, &states);
                series += 1;
            }
        }
    }
    assert!(series >= 6, "{series} series");
}

fn check_growth(name: &str, states: &[PathBuf]) {
    let stepwise = TestEnv::new();
    let folder = |env: &TestEnv| {
        fs::create_dir_all(env.path("logs")).expect("creates");
        env.path("logs").join(name)
    };
    let mut read = 0;
    for state in states {
        fs::write(folder(&stepwise), fs::read(state).expect("reads")).expect("writes");
        let report = stepwise.ingest("logs");
        read += report["bytes_read"].as_u64().expect("bytes");
    }
    let once = TestEnv::new();
    let last = fs::read(states.last().expect("a state")).expect("reads");
    fs::write(folder(&once), &last).expect("writes");
    once.ingest("logs");
    assert_eq!(content(&stepwise), content(&once), "{name}");
    if name.ends_with("jsonl") {
        assert_eq!(read, last.len() as u64, "{name}: every byte is read once");
    }
}

#[test]
fn the_largest_session_stays_within_the_size_of_every_level() {
    let Some(logs) = real_logs() else { return };
    let env = TestEnv::with_real_logs(&logs);
    let ids = env.rows("SELECT session_id FROM sessions ORDER BY events DESC LIMIT 3");
    let mut client = Client::legacy(&env);
    for row in ids {
        let id = row[0].text();
        for (level, most) in
            [("summary", 10_500), ("turns", 31_000), ("steps", 100_000), ("full", 100_000)]
        {
            let (mut cursor, mut pages, mut seen) = (None, 0, Vec::new());
            while pages < 40 {
                let mut arguments = json!({ "session_id": id, "detail_level": level });
                if level == "full" {
                    arguments["include_reasoning"] = true.into();
                }
                if let Some(cursor) = &cursor {
                    arguments["cursor"] = Value::clone(cursor);
                }
                let answer = client.call("get_session_details", arguments);
                let bytes = answer.to_string().len();
                assert!(bytes <= most, "{id} {level} page {pages}: {bytes} bytes");
                assert!(answer["metadata"]["tokens"].as_u64() <= Some(25_000));
                pages += 1;
                seen.extend(
                    answer["data"]["events"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .map(|e| e["event_index"].as_u64().expect("index")),
                );
                cursor = answer["pagination"].get("next_cursor").cloned();
                if cursor.is_none() {
                    break;
                }
            }
            seen.dedup();
            assert!(
                seen.iter().enumerate().all(|(at, index)| at as u64 == *index),
                "{id}: pages leave a gap"
            );
        }
    }
    let listed = client.call("list_sessions", json!({ "format": "minimal" }));
    assert_eq!(listed["data"]["sessions"].list().len(), 20);
    assert!(listed["metadata"]["tokens"].as_u64() <= Some(1000), "{}", listed["metadata"]);
}

#[test]
fn a_huge_event_is_read_in_pages() {
    let Some(logs) = real_logs() else { return };
    let env = TestEnv::with_real_logs(&logs);
    let longest = env.rows("SELECT event_id FROM events ORDER BY text_bytes DESC LIMIT 1");
    let id = longest[0][0].text();
    let mut client = Client::legacy(&env);
    let mut text = String::new();
    let mut cursor: Option<Value> = None;
    for _ in 0..200 {
        let mut arguments = json!({ "event_ids": [id], "max_chars": 80000 });
        if let Some(cursor) = cursor.take() {
            arguments["cursor"] = cursor;
        }
        let answer = client.call("get_event_details", arguments);
        assert!(answer["metadata"]["tokens"].as_u64() <= Some(25_000));
        let event = &answer["data"]["events"][0];
        assert_eq!(event["text_offset"].as_u64().unwrap_or(0), text.chars().count() as u64);
        text.push_str(event["text"].text());
        match answer["pagination"].get("next_cursor") {
            Some(next) => cursor = Some(next.clone()),
            None => {
                assert_eq!(event["text_chars"].as_u64(), Some(text.chars().count() as u64));
                return;
            }
        }
    }
    panic!("the pages do not end");
}

#[test]
fn random_events_lead_back_to_their_records() {
    let Some(logs) = real_logs() else { return };
    let env = TestEnv::with_real_logs(&logs);
    let all = env.rows("SELECT session_id, event_index FROM events ORDER BY 1, 2");
    let mut random = Random(2026);
    let mut client = Client::legacy(&env);
    for _ in 0..200 {
        let row = &all[random.below(all.len())];
        let id = format!("{}:{}", row[0].text(), row[1]);
        let answer =
            client.call("get_event_details", json!({ "event_ids": [id], "max_chars": 80000 }));
        let event = &answer["data"]["events"][0];
        assert_eq!(event["event_id"], id);
        let source = &event["source"];
        let bytes = fs::read(source["path"].text()).expect("reads");
        let offset = source["byte_offset"].as_u64().expect("offset") as usize;
        let length = source["byte_length"].as_u64().expect("length") as usize;
        let record: Value = serde_json::from_slice(&bytes[offset..offset + length])
            .unwrap_or_else(|error| panic!("{id}: {error}"));
        let mut strings = Vec::new();
        collect(&record, &mut strings);
        if let Some(call) = event["tool_call_id"].as_str() {
            assert!(strings.iter().any(|text| text == call), "{id}: {call} is not in its record");
        }
        // The words a person reads stand in the record, whatever the shape around them.
        let text = event["text"].as_str().unwrap_or("");
        let longest =
            text.split(|c: char| !c.is_alphanumeric()).max_by_key(|word| word.len()).unwrap_or("");
        let known = strings.iter().any(|string| string.contains(longest)) || longest.len() < 12;
        assert!(
            known || event["event_type"] == "notification",
            "{id}: '{longest}' is not in its record"
        );
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn collect(value: &Value, strings: &mut Vec<String>) {
    match value {
        Value::String(text) => strings.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, strings)),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| {
            strings.push(key.clone());
            collect(field, strings);
        }),
        _ => {}
    }
}
