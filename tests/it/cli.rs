//! The command line on the sample sessions: answers, exit codes, messages.

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{TestEnv, samples};

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

#[test]
fn the_story_from_the_failure_to_its_fix() {
    let env = TestEnv::with_samples();
    env.run(["list", "--limit", "100"])
        .shows("Make clones of RetryBudget share one counter")
        .shows(MAIN);
    let found =
        env.json(["search", "\"budget.remaining() == 3\" is:error", "--provider", "claude"]);
    let matches = found["data"]["matches"].list();
    assert!(
        matches.iter().all(|m| m["is_error"] == true
            && m["snippet"].as_str().is_some_and(|s| s.contains("remaining")))
    );
    let is_of_main =
        |m: &&serde_json::Value| m["event_id"].as_str().is_some_and(|id| id.starts_with(MAIN));
    let first = matches.iter().find(is_of_main).expect("the failing result");
    assert_eq!((first["turn_index"].as_u64(), first["step_index"].as_u64()), (Some(1), Some(1)));
    let event = env.json(["event", &format!("{MAIN}:31")]);
    let edit = &event["data"]["events"][0];
    assert_eq!(
        (edit["tool_name"].as_str(), edit["event_type"].as_str()),
        (Some("Edit"), Some("tool_call"))
    );
    edit.has(json!({"linked_event_id": format!("{MAIN}:33"), "duration_ms": 119}));
    env.run(["show", "9ae82b3a", "--detail-level", "turns"]).shows("Share the counter.");
}

#[test]
fn calls_and_results_are_linked_in_any_company() {
    let env = TestEnv::with_samples();
    // The first event of the session in the request has no call, so it has no link either.
    let ids = [30, 31, 33].map(|index| format!("{MAIN}:{index}"));
    let found = env.json(["event", &ids[0], &ids[1], &ids[2]]);
    let events = found["data"]["events"].list();
    let linked: Vec<_> = events.iter().map(|event| event["linked_event_id"].as_str()).collect();
    assert_eq!(linked, [None, Some(&*ids[2]), Some(&*ids[1])]);
}

#[test]
fn exit_codes_and_messages_say_what_to_do() {
    let env = TestEnv::new();
    assert!(env.run(["search", "x"]).error(1).contains("sessions ingest"), "nothing ingested yet");
    assert!(env.run(["ingest"]).error(2).contains("PATH"), "no logs in this home");
    env.run(["ingest", "nowhere"]).fails(2).says("nowhere");
    env.ingest(samples());
    env.run(["search", "zzz-not-there"]).fails(1).says("Nothing matches");
    env.run(["search", "\"open"]).fails(2).says("not closed");
    env.run(["search", "x", "--event-type", "tool"]).fails(2).says("tool_call");
    env.run(["search", "x", "--limit", "51"]).fails(2).says("1-50");
    env.run(["search", "budget", "--cursor", "abc"]).fails(2).says("next_cursor");
    env.run(["show", "ffffffff"]).fails(1).says("sessions list");
    env.run(["show", "0"]).fails(2).says("too short");
    let of_event = env.run(["show", &format!("{MAIN}:31")]).ok();
    assert!(of_event.starts_with(MAIN));
    env.run(["show", "ffffffff:31"]).fails(1).says("sessions list");
    let few = env.json(["event", &format!("{MAIN}:31"), "--fields", "tool,usage"]);
    assert!(few["data"]["events"][0].get("text").is_none());
    env.run(["show", "01a"]).fails(2).says(["matches", "more characters"]);
    env.run(["event", "nonsense"]).fails(2).says("event id");
    env.run(["event", &format!("{MAIN}:9999")]).fails(1).says("No such event");
    env.run(["frobnicate"]).fails(2).says("frobnicate");
    env.run(["query", "DROP VIEW events"]).fails(2).says("SELECT");
    env.run(["query", "SELECT 1; SELECT 2"]).fails(2).says("one SELECT");
    env.run(["query", "SELECT * FROM read_text('/etc/hostname')"]).fails(2).says("error");
    env.run(["query", "SELECT nonsense FROM events"]).fails(2).says("nonsense");
}

#[test]
fn json_errors_are_the_envelope() {
    let env = TestEnv::with_samples();
    let error = env.json(["show", "01a"]);
    error.has(json!({"status": "error", "error": {"code": "ambiguous_session_prefix"}}));
    assert!(error["error"]["details"]["matches"].as_array().is_some_and(|m| m.len() > 1));
    assert_eq!(error["error"]["retryable"], false);
}

#[test]
fn every_page_says_the_same_total_and_how_many_follow() {
    let env = TestEnv::with_samples();
    let ids: Vec<String> = (0..40).map(|index| format!("9ae82b3a:{index}")).collect();
    let events: Vec<&str> =
        ["event", "--max-chars", "500"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    for args in [
        &["list", "--limit", "20"][..],
        &["search", "retry", "--limit", "50"],
        &["search", "retry test sort:relevance total:exact", "--limit", "50"],
        &["analyze", "--limit", "2"],
        &["analyze", "9ae82b3a", "--limit", "1"],
        events.as_slice(),
    ] {
        let pages = env.pages(args);
        let totals: Vec<u64> =
            pages.iter().filter_map(|page| page["metadata"]["results_total"].as_u64()).collect();
        let rest = |page: &Value| {
            let (rest, _) = page["hint"].as_str().unwrap_or_default().split_once(" more:")?;
            rest.parse().ok()
        };
        let rests: Vec<u64> = pages.iter().map(|page| rest(page).unwrap_or(0)).collect();
        assert_eq!(totals.len(), pages.len(), "every page has a total");
        assert!(totals.len() > 2, "{args:?}");
        assert!(totals.iter().all(|total| *total == totals[0]), "{args:?}: {totals:?}");
        assert!(
            rests.is_sorted_by(|a, b| a >= b) && rests.last() == Some(&0),
            "{args:?}: {rests:?}"
        );
        assert!(rests[0] > 0 && rests[0] < totals[0], "{args:?}: {rests:?}");
    }
}

#[test]
fn an_event_shows_the_fields_that_were_asked_for() {
    let env = TestEnv::with_samples();
    let shown = |field: &str, key: &str| {
        let answer = env.json(["event", "9ae82b3a:14", "--fields", field]);
        let event = &answer["data"]["events"][0];
        assert!(event["event_id"].is_string() && event["is_error"] == true, "{event}");
        event.get(key).is_some()
    };
    for (field, key) in [
        ("text", "text"),
        ("tool", "tool_name"),
        ("tool", "tool_kind"),
        ("tool", "command"),
        ("context", "model"),
        ("source", "source"),
    ] {
        assert!(shown(field, key), "{field}: {key}");
        assert!(!shown("usage", key), "{key}");
    }
}

#[test]
fn an_empty_list_names_what_was_asked_for() {
    let env = TestEnv::with_samples();
    let ran = env.run(["list", "--since", "2099-01-01", "--provider", "pi"]).error(1);
    ran.shows("No session was active since 2099-01-01T00:00:00.000Z.");
    env.run(["list", "--project", "no such"]).fails(1).says("No session has project 'no such'");
}

/// Ended before anything was said, and one with an answer of a model that nobody knows.
#[test]
fn a_list_leaves_out_bare_commands_and_says_what_is_not_priced() {
    let env = TestEnv::new();
    let user = |session: &str, text: &str| {
        format!(
            r#"{{"type":"user","uuid":"0000000{session}-0000-4000-8000-000000000001","sessionId":"{session}","timestamp":"2026-10-01T10:00:00.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        ) + "\n"
    };
    let answer = r#"{"type":"assistant","uuid":"00000002-0000-4000-8000-000000000002","sessionId":"2","requestId":"r","timestamp":"2026-10-01T10:00:01.000Z","message":{"id":"m","role":"assistant","model":"claude-nova-99","content":[{"type":"text","text":"done"}],"usage":{"input_tokens":3,"output_tokens":4}}}"#;
    let exit = "<command-name>/exit</command-name><command-args></command-args>";
    std::fs::create_dir_all(env.path("logs")).expect("creates");
    let write = |name: &str, log: String| env.write(name, log);
    write("logs/1.jsonl", user("1", exit));
    write("logs/2.jsonl", user("2", exit) + answer + "\n");
    env.ingest("logs");
    let list = env.run(["list"]).ok();
    list.shows("no price is known for claude-nova-99");
    assert_eq!(list.matches("Z  claude").count(), 1);
    assert!(env.run(["event", "1:0"]).ok().contains("/exit"), "it is kept all the same");
}

#[test]
fn pages_follow_each_other_without_gap_or_repeat() {
    let env = TestEnv::with_samples();
    let found = |limit: &str| {
        let pages = env.pages(&["search", "a", "--limit", limit]);
        let matches = pages.iter().flat_map(|page| page["data"]["matches"].each("event_id"));
        matches.map(str::to_owned).collect::<Vec<_>>()
    };
    let got = found("7");
    assert!(got.len() > 50, "{}", got.len());
    assert_eq!(got, found("50"));
}

#[test]
fn sql_reads_the_live_rows_only() {
    let env = TestEnv::with_samples();
    let listed = env.json(["status"]);
    let counted = env.rows("SELECT count(*) AS n FROM events");
    assert_eq!(counted[0][0], listed["events"]);
    let latest = env.rows("SELECT count(*), count(DISTINCT session_id) FROM sessions");
    assert_eq!(latest[0][0], latest[0][1]);
    let times = env.rows(&format!("SELECT timestamp FROM events WHERE event_id = '{MAIN}:5'"));
    // The event tool gives the same.
    let event = env.json(["event", &format!("{MAIN}:5")]);
    assert_eq!(times[0][0], event["data"]["events"][0]["timestamp"]);
}

#[test]
fn hostile_text_comes_out_clean() {
    let env = TestEnv::with_samples();
    for args in [
        &["show", "c8564f25", "--detail-level", "full"][..],
        &["list", "--format", "full", "--limit", "100"],
        &["search", "a", "--limit", "50"],
    ] {
        let text = env.run(args).ok();
        let json = env.json(args).to_string();
        for bad in ['\u{1b}', '\u{7}', '\u{202e}', '\u{200b}', '\u{feff}'] {
            assert!(!text.contains(bad), "{args:?} prints {bad:?}");
            assert!(
                !json.contains(bad) && !json.contains(&format!("\\u{:04x}", bad as u32)),
                "{args:?} answers {bad:?}"
            );
        }
    }
    let needle = env.json(["search", "THE-NEEDLE-IN-THE-LONG-LINE"]);
    needle["data"]["matches"][0]["snippet"].shows("THE-NEEDLE-IN-THE-LONG-LINE");
}

#[test]
fn a_broken_pipe_is_no_failure() {
    let env = TestEnv::with_samples();
    let mut command = env.command();
    command.args(["search", "a", "--limit", "50"]).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("spawns");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

#[test]
fn the_usual_places_are_found_and_grown_logs_are_pending() {
    let env = TestEnv::new();
    let record = |n: u32| {
        let message = json!({ "role": "user", "content": format!("prompt {n}") });
        json!({ "type": "user", "sessionId": "s", "message": message })
    };
    let folder = ".claude/projects/-home-mira";
    env.append_event(format!("{folder}/s.jsonl"), &record(1));
    env.json(["ingest"]).has(json!({"files_new": 1, "events": 1}));
    env.append_event(format!("{folder}/s.jsonl"), &record(2));
    env.append_event(format!("{folder}/t.jsonl"), &record(3));
    env.json(["status"]).has(json!({"pending": 2}));
    env.json(["ingest"]).has(json!({"files_new": 1, "files_grown": 1}));
    env.json(["status"]).has(json!({"pending": 0}));
    // Logs from elsewhere are looked at where they lie, those inside a database too.
    TestEnv::with_samples().json(["status"]).has(json!({"pending": 0}));
    let packed = zstd::encode_all(format!("{}\n", record(4)).as_bytes(), 1).expect("packs");
    env.write("packed.jsonl.zst", packed);
    env.ingest("packed.jsonl.zst");
    env.json(["status"]).has(json!({"pending": 0}));
}

#[test]
fn help_and_version_are_data_and_end_well() {
    let env = TestEnv::new();
    env.run(["--help"]).shows("ingest");
    env.run(["--version"]).shows(env!("CARGO_PKG_VERSION"));
    env.run(["completions", "bash"]).shows("_sessions");
    env.run([""; 0]).fails(2);
}

#[test]
fn the_newest_session_has_a_name() {
    let env = TestEnv::with_samples();
    let last = env.json(["show", "last"]);
    let listed = env.json(["list", "--limit", "1"]);
    assert_eq!(last["data"]["session"]["session_id"], listed["data"]["sessions"][0]["session_id"]);
    assert_eq!(last["warnings"][0]["code"], "CURRENT_SESSION");
    env.run(["show", "last"]).shows("turns");
    let empty = TestEnv::new();
    empty.write("s.jsonl", "{\"type\":\"user\",\"sessionId\":\"s\"}\n");
    empty.ingest("s.jsonl");
    empty.run(["show", "last"]).fails(1).says("'last'");
}

#[test]
fn one_ambiguous_id_does_not_spoil_the_others() {
    let env = TestEnv::with_samples();
    let events = env.json(["event", &format!("{MAIN}:0"), "01a:0"]);
    assert_eq!(events["data"]["events"].list().len(), 1);
    assert_eq!(events["data"]["not_found"], json!(["01a:0"]));
    assert_eq!(events["warnings"][0]["code"], "AMBIGUOUS_PREFIX");
    let listed = env.json(["list", "--session-id", MAIN, "--session-id", "01a"]);
    assert_eq!(listed["data"]["sessions"].list().len(), 1);
    listed["warnings"][0]["message"].shows("'01a' matches");
    assert_eq!(env.run(["event", "01a:0"]).code, 2, "alone it is an error");
}

#[test]
fn what_is_shown_of_a_call_says_how_it_went() {
    let env = TestEnv::with_samples();
    let sql = "SELECT event_id FROM events WHERE event_type = 'tool_result' AND exit_code > 0 AND duration_ms > 0 LIMIT 1";
    let result = env.rows(sql)[0][0].text().to_owned();
    let shown = env.run(["event", &result]).ok();
    let call = shown.split("call ").nth(1).and_then(|rest| rest.split_whitespace().next());
    shown.shows(["exit code ", "took "]);
    let shown = env.run(["event", call.expect("its call")]).ok();
    shown.shows(format!("result {result}"));
    // Seen from the parent.
    let parent = env.rows("SELECT parent_session_id FROM sessions WHERE relation = 'subagent_of' AND provider = 'claude'");
    env.run(["show", parent[0][0].text()]).shows("\n  subagent ").lacks("subagent of ");
}

#[test]
fn a_copy_says_what_it_is_a_copy_of() {
    let env = TestEnv::new();
    let record = json!({
        "type": "user", "uuid": "00000000-0000-4000-8000-000000000001", "sessionId": "s",
        "message": { "role": "user", "content": "hello" },
    });
    env.append_event("logs/a.jsonl", &record);
    env.append_event("logs/b.jsonl", &record);
    env.ingest("logs");
    let ids = env.texts("SELECT session_id, replay_events FROM sessions ORDER BY 2");
    let hint = |id: &str| env.json(["show", id])["hint"].clone();
    hint(&ids[1]).shows(format!("copy from session {}", ids[0]));
    hint(&ids[0]).lacks("copy");
}

#[test]
fn wrong_words_end_with_the_code_of_wrong_usage() {
    let env = TestEnv::with_samples();
    env.run(["label", MAIN]).fails(2).says("--add");
    env.run(["label", MAIN, "--add", ""]).fails(2);
    env.run(["label", "ffffffff", "--add", "x"]).fails(1);
    env.run(["search", "budget until:2026-01-01", "--since", "2026-02-01"]).fails(2).says("until");
    let span = ["--since", "2026-02-01", "--until", "2026-01-01"];
    for command in [
        &["find", "budget"][..],
        &["list"],
        &["stats"],
        &["analyze"],
        &["report"],
        &["export", "jsonl"],
    ] {
        env.run(command.iter().chain(&span)).fails(2).says("since: it is not before until");
    }
    let store = env.store().to_string_lossy().into_owned();
    env.json(["--store", &store, "--metadata", "full", "list", "--limit", "1"]).has(json!({
        "metadata": {"tool_context": {"tool": "list"}},
    }));
}
