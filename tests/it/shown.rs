//! What readers see in place of arguments and records: edits as diffs, notices in words, models under
//! one name, and lists in the order of what they show.

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

#[test]
fn an_edit_is_the_same_diff_everywhere() {
    let env = TestEnv::new();
    std::fs::create_dir(env.path("pier")).expect("creates");
    let file = env.path("pier/lamp.rs");
    let (old, new) = ("fn lamp() {\n    dim();\n}", "fn lamp() {\n    light();\n    shine();\n}");
    env.write(&file, format!("{new}\n"));
    let log = env.log("lamp").cwd(env.path("pier")).user("Light the lamp");
    log.edit(&file, old, new).ingest();

    let asked = env.json(["event", "lamp:1", "--fields", "shown"]);
    let event = &asked["data"]["events"][0];
    let diff = [" fn lamp() {", "-    dim();", "+    light();", "+    shine();", " }"].join("\n");
    assert_eq!(event["diff"], json!({ "added": 2, "removed": 1, "text": diff }));
    assert_eq!(event["line"], "lamp.rs");
    assert_eq!(env.json(["event", "lamp:1"])["data"]["events"][0]["diff"], Value::Null);

    let file = file.to_str().expect("UTF-8");
    let blamed = env.json(["blame", file, "--edits"]).to_string();
    blamed.shows([r#""added":2"#, r#""removed":1"#]);
    for args in [&["event", "lamp:1"][..], &["show", "lamp"], &["search", "file:lamp.rs tool:Edit"]]
    {
        let shown = env.run([args, &["--color", "always"]].concat()).ok();
        assert!(shown.contains("+    light();"), "{args:?} shows {shown}");
        assert!(!shown.contains("old_string"), "{args:?} shows {shown}");
    }
    env.run(["export", "md", "lamp", "-o", "-"]).shows("+2 -1").shows(&diff);
    // A query with words shows the text around them.
    let found = env.json(["search", "tool:Edit shine"]);
    assert_eq!(found["data"]["matches"][0]["is_diff"], Value::Null);
}

#[test]
fn notices_are_words_without_ids() {
    let env = TestEnv::with_samples();
    let rows = env.rows("SELECT event_id FROM events WHERE event_type = 'notification'");
    for ids in rows.chunks(50) {
        let ids: Vec<&str> = ids.iter().map(|row| row[0].text()).collect();
        let asked = env.json([&["event"], &ids[..], &["--fields", "shown"]].concat());
        for event in asked["data"]["events"].list() {
            let line = event["line"].text();
            let first = line.chars().next().expect("words");
            assert!(!first.is_lowercase() && !line.contains('\n'), "{line}");
            let words = line.split(':').next().expect("words");
            assert!(!line.contains("uuid") && !words.contains(['_', '-']), "{line}");
        }
    }
    env.run(["show", MAIN, "--color", "always"]).shows("Mode: ").lacks("permission-mode");
}

#[test]
fn a_model_that_is_written_in_two_ways_is_one() {
    let env = TestEnv::new();
    for (session, model) in [("a", "claude-opus-4-8"), ("b", "claude-opus-4.8")] {
        let usage = json!({ "input_tokens": 10, "output_tokens": 5 });
        let answer = json!({ "type": "message", "text": "Done.", "model": model, "usage": usage });
        let log = env.log(session).cwd("/home/mira/code/pier").header("model", model);
        log.user("Paint the lighthouse").event(answer).write();
    }
    env.ingest("logs");
    let stats = env.json(["stats", "--by", "model", "--all"]);
    let groups = stats["data"]["groups"].list();
    let names: Vec<&Value> = groups.iter().map(|group| &group["group"]["model"]).collect();
    assert_eq!(names, ["claude-opus-4-8"]);
    for query in ["model:opus-4.8", "model:opus-4-8"] {
        let found = env.json(["search", query]);
        let found = found["data"]["matches"].list().to_vec();
        let has = |session: &str| {
            let of = |found: &Value| {
                found["event_id"].as_str().is_some_and(|id| id.starts_with(session))
            };
            found.iter().any(of)
        };
        assert!(has("a:") && has("b:"), "{query}: {found:?}");
    }
}

#[test]
fn sessions_are_sorted_by_the_tokens_and_costs_that_are_shown() {
    let env = TestEnv::with_samples();
    for sort in ["tokens", "cost"] {
        let listed = env.json(["list", "--sort", sort, "--limit", "100"]);
        let sessions = listed["data"]["sessions"].list();
        let shown: Vec<f64> = sessions
            .iter()
            .map(|session| {
                let family = &session["with_subagents"]["tokens"];
                let tokens = if family.is_null() { &session["tokens"] } else { family };
                let counts = &tokens["counted_once"];
                let names =
                    ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"];
                let total = names.iter().filter_map(|name| counts[name].as_f64()).sum();
                if sort == "cost" { tokens["cost_usd"].as_f64().unwrap_or(-1.0) } else { total }
            })
            .collect();
        assert!(shown.is_sorted_by(|a, b| *a >= *b - 1e-6), "{sort}: {shown:?}");
    }
}
