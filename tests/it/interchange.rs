//! Exports for other programs, and their way back: what a session says, does and costs stays the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::env::{TestEnv, copy_folder, real_logs, samples};

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";
const SUBAGENT: &str = "agent-ab20cdd8693cc94e2";
const HOSTILE: &str = "c8564f25-71e8-4af6-b5dc-c26a951636c4";
const TOKEN: &str = concat!("ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");

/// What a trajectory keeps of an event; the agent is that of the document.
const EVENT_COLUMNS: &str = "session_id, event_index, turn_index, step_index, event_type, subtype, timestamp, text, \
    tool_name, tool_kind, tool_call_id, files, command, spawned_agent_id, is_error, exit_code, duration_ms, model, \
    git_branch, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, \
    reasoning_tokens, request_id, web_search_requests, service_tier, speed, inference_geo, is_replay, is_sidechain";

/// What a trajectory keeps of a session.
const SESSION_COLUMNS: &str = "session_id, title, parent_session_id, relation, agent_id, cwd, repository, git_branch, \
    model, started_at, ended_at, events, replay_events, turns, user_messages, messages, tool_calls, tool_errors, \
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, abandoned, usage_confidence";

const COUNTED: &str = "SELECT sum(input_tokens)::BIGINT, sum(output_tokens)::BIGINT, sum(turns)::BIGINT, \
    sum(tool_calls)::BIGINT, sum(messages)::BIGINT FROM sessions";

/// Exports a store as trajectories, and reads these into a new one.
fn read_back(env: &TestEnv) -> TestEnv {
    env.run(["export", "atif", "-o", "atif"]).ok();
    let back = TestEnv::new();
    back.run(["ingest", "--quiet", &env.path("atif").to_string_lossy()]).ok();
    back
}

/// Compares the sessions that were read back with what they were exported from. Returns their number.
fn compare(env: &TestEnv, back: &TestEnv) -> usize {
    let mut compared = 0;
    for (table, columns, order) in [
        ("sessions", SESSION_COLUMNS, "session_id"),
        ("events", EVENT_COLUMNS, "session_id, event_index"),
    ] {
        let sql = format!("SELECT {columns} FROM {table} ORDER BY {order}");
        let mut by_session: BTreeMap<String, Vec<Vec<Value>>> = BTreeMap::new();
        for row in env.rows(&sql) {
            by_session.entry(row[0].to_string()).or_default().push(row);
        }
        let mut read: BTreeMap<String, Vec<Vec<Value>>> = BTreeMap::new();
        for row in back.rows(&sql) {
            read.entry(row[0].to_string()).or_default().push(row);
        }
        for (id, rows) in &read {
            let original = &by_session[id];
            assert_eq!(original.len(), rows.len(), "{table} of {id}");
            for (original, row) in original.iter().zip(rows) {
                for ((name, before), after) in columns.split(", ").zip(original).zip(row) {
                    assert_eq!(before, after, "{} of {table} of {id}: {original:?}", name.trim());
                }
            }
        }
        compared = read.len();
    }
    // Nothing that was written stays unread.
    let written = fs::read_dir(env.path("atif")).expect("lists").count();
    assert_eq!(compared, written);
    compared
}

#[test]
fn sessions_come_back_from_trajectories() {
    let env = TestEnv::with_samples();
    let back = read_back(&env);
    assert!(compare(&env, &back) > 70);
    let Some(logs) = real_logs() else { return };
    let env = TestEnv::new();
    env.run(["ingest", "--quiet", &logs.to_string_lossy()]).ok();
    assert!(compare(&env, &read_back(&env)) > 200);
}

#[test]
fn a_session_counts_once_whichever_form_comes_first() {
    let env = TestEnv::with_samples();
    let wanted = env.rows(COUNTED);
    env.run(["export", "atif", "-o", "atif"]).ok();
    // A trajectory of a trajectory has other bytes.
    fs::remove_file(env.path("atif").join("3c1f0a92-77de-4b0c-9a51-c2d48e6b7f10.json"))
        .expect("there");
    let (logs, atif) = (samples(), env.path("atif"));
    let (logs, atif) = (logs.to_string_lossy(), atif.to_string_lossy());
    for order in [
        vec![vec![&*logs], vec![&*atif]],
        vec![vec![&*atif], vec![&*logs]],
        vec![vec![&*atif, &*logs]],
    ] {
        let env = TestEnv::new();
        for paths in &order {
            env.run([&["ingest", "--quiet"], &paths[..]].concat()).ok();
        }
        assert_eq!(env.rows(COUNTED), wanted, "{order:?}");
        let copied = "SELECT count(*) FROM events e JOIN sessions s USING (session_id) \
            WHERE s.provider = 'atif' AND NOT e.is_replay AND s.session_id NOT LIKE '3c1f%'";
        assert_eq!(env.rows(copied)[0][0], 0, "{order:?}");
    }
}

#[test]
fn a_forgotten_session_stays_away_as_a_trajectory() {
    let env = TestEnv::with_samples();
    env.run(["export", "atif", MAIN, "-o", "main.json"]).ok();
    env.run(["forget", MAIN, "--yes", "--quiet"]).ok();
    let all = "SELECT count(*) FROM sessions WHERE events > 0";
    let left = env.number(all);
    for _ in 0..2 {
        env.run(["ingest", "--quiet", "main.json"]).ok();
        assert_eq!(env.number(all), left);
    }
    env.run(["forget", "--undo", MAIN, "--quiet"]).ok();
    env.run(["ingest", "--quiet", "main.json"]).ok();
    assert_eq!(env.number(all), left + 1);
}

#[test]
fn subagents_are_referenced_in_a_folder_and_embedded_in_one_document() {
    let env = TestEnv::with_samples();
    env.run(["export", "atif", "-o", "atif"]).ok();
    let file = |id: &str| env.read_json(format!("atif/{id}.json"));
    let refs = |document: &Value| -> Vec<Value> {
        let steps = document["steps"].as_array().expect("steps").iter();
        let results =
            steps.flat_map(|step| step["observation"]["results"].as_array().into_iter().flatten());
        results.filter_map(|result| result["subagent_trajectory_ref"].get(0).cloned()).collect()
    };
    let path = format!("{SUBAGENT}.json");
    assert!(refs(&file(MAIN)).iter().any(|found| found["trajectory_path"] == path.as_str()));
    assert_eq!(file(SUBAGENT)["extra"]["parent_session_id"], MAIN);

    let printed: Value =
        serde_json::from_str(&env.run(["export", "atif", MAIN]).ok()).expect("JSON");
    assert_eq!(printed["subagent_trajectories"][0]["trajectory_id"], SUBAGENT);
    assert!(refs(&printed).iter().any(|found| found["trajectory_id"] == SUBAGENT));
    let sum = |document: &Value| {
        document["final_metrics"]["total_completion_tokens"].as_i64().expect("a sum")
    };
    assert_eq!(sum(&printed), sum(&file(MAIN)) + sum(&file(SUBAGENT)));

    env.run(["export", "atif", MAIN, "-o", "one.json"]).ok();
    let back = TestEnv::new();
    back.run(["ingest", "--quiet", &env.path("one.json").to_string_lossy()]).ok();
    let sidechain =
        "SELECT count(*) FROM events WHERE is_sidechain AND spawned_agent_id = 'ab20cdd8693cc94e2'";
    let own = format!("SELECT count(*) FROM events WHERE session_id = '{SUBAGENT}'");
    assert_eq!(back.rows(sidechain), env.rows(&own));
}

#[test]
fn a_trajectory_needs_events_and_files_are_kept() {
    let env = TestEnv::with_samples();
    let empty = env.rows("SELECT session_id FROM sessions WHERE events = 0");
    if let Some(row) = empty.first() {
        let id = row[0].as_str().expect("an id");
        assert!(env.run(["export", "atif", id]).fails(2).stderr.contains("has no events"));
    }
    assert!(env.run(["export", "atif"]).fails(2).stderr.contains("-o FOLDER"));
    assert!(
        env.run(["export", "atif", "--table", "usage", "-o", "x"])
            .fails(2)
            .stderr
            .contains("whole sessions")
    );
    env.run(["export", "atif", MAIN, "-o", "one.json"]).ok();
    assert_eq!(env.json(["export", "atif", MAIN, "-o", "one.json"])["files_unchanged"], 1);
    fs::write(env.path("one.json"), "mine").expect("writes");
    assert!(
        env.run(["export", "atif", MAIN, "-o", "one.json"]).fails(2).stderr.contains("--force")
    );
    assert_eq!(fs::read_to_string(env.path("one.json")).expect("reads"), "mine");
}

/// A log of Claude Code whose call and result have a secret.
fn write_log_with_secret(env: &TestEnv) -> PathBuf {
    let records = [
        json!({ "type": "user", "sessionId": "s", "uuid": "0d4c1a2b-0000-4000-8000-00000000000a", "timestamp": "2026-10-01T10:00:00.000Z",
            "message": { "role": "user", "content": format!("my token is {TOKEN}") } }),
        json!({ "type": "assistant", "sessionId": "s", "uuid": "0d4c1a2b-0000-4000-8000-00000000000b", "timestamp": "2026-10-01T10:00:01.000Z",
            "message": { "role": "assistant", "id": "m1", "model": "claude-opus-4-6", "content": [
                { "type": "thinking", "thinking": "", "signature": TOKEN },
                { "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": format!("login {TOKEN}"), "timeout": 5 } }],
                "usage": { "input_tokens": 3, "output_tokens": 4 } } }),
        json!({ "type": "user", "sessionId": "s", "uuid": "0d4c1a2b-0000-4000-8000-00000000000c", "timestamp": "2026-10-01T10:00:02.000Z",
            "message": { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": format!("{{\"token\":\"{TOKEN}\"}}") }] } }),
    ];
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    let path = env.path("s.jsonl");
    fs::write(&path, lines).expect("writes");
    path
}

#[test]
fn arguments_are_those_of_the_log_without_its_secrets() {
    let env = TestEnv::new();
    let log = write_log_with_secret(&env);
    env.run(["ingest", "--quiet", "s.jsonl"]).ok();
    let call = |env: &TestEnv| {
        let text = env.run(["export", "atif", "s"]).ok();
        assert!(!text.contains(TOKEN), "{text}");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        document["steps"][1]["tool_calls"][0]["arguments"].clone()
    };
    let masked = "login [REDACTED:github_token]";
    assert_eq!(call(&env), json!({ "command": masked, "timeout": 5 }));
    // Without the log, the text of the call is what is known.
    fs::remove_file(log).expect("there");
    assert_eq!(call(&env), json!({ "input": format!("command: {masked}\ntimeout: 5") }));
    for format in ["sts", "otel"] {
        assert!(!env.run(["export", format, "s"]).ok().contains(TOKEN), "{format}");
    }
    assert!(!env.run(["export", "otel", "s", "--include-content"]).ok().contains(TOKEN));
}

#[test]
fn hostile_sessions_become_tame_files() {
    let env = TestEnv::with_samples();
    for format in ["atif", "sts"] {
        env.run(["export", format, "-o", format]).ok();
        let names: Vec<_> = fs::read_dir(env.path(format))
            .expect("lists")
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
        assert!(names.iter().all(|name| name.chars().all(is_safe)), "{names:?}");
    }
    let text = env.run(["export", "atif", HOSTILE]).ok();
    assert!(!text.contains('\u{1b}') && !text.contains("\\u001b"), "no terminal escapes");
    assert!(!text.contains('\u{202e}'), "nothing that changes the order of characters");
}

#[test]
fn spans_have_content_only_on_request() {
    let env = TestEnv::with_samples();
    let plain = env.run(["export", "otel"]).ok();
    let spans: Vec<Value> = plain
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .flat_map(|data| {
            data["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
        })
        .collect();
    let chats = spans
        .iter()
        .filter(|span| span["name"].as_str().is_some_and(|name| name.starts_with("chat")))
        .count();
    assert!(chats > 200, "{chats}");
    for span in &spans {
        let length = |key: &str| span[key].as_str().expect(key).len();
        assert_eq!((length("traceId"), length("spanId")), (32, 16));
    }
    let content = [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ];
    assert!(content.iter().all(|key| !plain.contains(key)), "no content");
    assert!(!plain.contains("budget.remaining"), "no content");
    let full = env.run(["export", "otel", "--include-content"]).ok();
    assert!(content.iter().all(|key| full.contains(key)) && full.contains("budget.remaining"));
    assert!(
        env.run(["export", "atif", MAIN, "--include-content"])
            .fails(2)
            .stderr
            .contains("otel only")
    );
}

#[test]
fn a_shared_trace_is_a_header_and_messages() {
    let env = TestEnv::with_samples();
    let text = env.run(["export", "sts", MAIN]).ok();
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        (&lines[0]["type"], &lines[0]["harness"], &lines[0]["id"]),
        (&json!("session"), &json!("claude"), &json!(MAIN))
    );
    let mut calls = Vec::new();
    for line in &lines[1..] {
        let message = &line["message"];
        assert!(message["content"].is_string(), "{line}");
        for call in message["toolCalls"].as_array().into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str().expect("text");
            assert!(serde_json::from_str::<Value>(arguments).expect("JSON").is_object());
            calls.push(call["id"].clone());
        }
        if message["role"] == "tool" && message["toolCallId"].is_string() {
            assert!(calls.contains(&message["toolCallId"]), "{line}");
        }
    }
    assert!(calls.len() > 5);
}

/// A trajectory is read whatever its file is called, and a damaged one up to its damage.
#[test]
fn trajectories_are_read_with_any_name_and_any_damage() {
    let env = TestEnv::new();
    let sample = samples()
        .join("atif/jobs/2026-10-20__08-30-00/retry-jitter__Qm4xT7b/agent/trajectory.json");
    let text = fs::read_to_string(&sample).expect("reads");
    let nameless = text
        .replace("  \"session_id\": \"3c1f0a92-77de-4b0c-9a51-c2d48e6b7f10\",\n", "")
        .replace("\"ATIF-v1.7\"", "\"1.7\"");
    copy_folder(&samples().join("atif"), &env.path("runs"));
    let run =
        env.path("runs/jobs/2026-10-20__08-30-00/retry-jitter__Qm4xT7b/agent/trajectory.json");
    fs::write(&run, &nameless).expect("writes");
    fs::write(env.path("cut.json"), &text[..text.len() * 2 / 3]).expect("writes");
    env.run(["ingest", "--quiet", "runs", "cut.json"]).ok();
    let ids = env.rows("SELECT session_id FROM sessions ORDER BY session_id");
    assert_eq!(
        ids,
        [["3c1f0a92-77de-4b0c-9a51-c2d48e6b7f10"], ["retry-jitter__Qm4xT7b"]]
            .map(|row| row.map(Value::from).to_vec())
    );
    let whole = env.rows("SELECT events FROM sessions ORDER BY events DESC")[0][0].as_i64();
    let cut = env.rows("SELECT events FROM sessions ORDER BY events")[0][0].as_i64();
    assert!(whole > cut && cut > Some(5), "{whole:?} {cut:?}");
}

/// A trajectory of this session with a prompt and an answer for each message, at this minute.
fn write_trajectory(env: &TestEnv, name: &str, session: &str, minute: u32, answers: &[&str]) {
    let mut steps = Vec::new();
    for (at, answer) in answers.iter().enumerate() {
        let time = |second: usize| format!("2026-10-01T10:{minute:02}:{second:02}Z");
        steps.push(json!({ "step_id": 2 * at + 1, "timestamp": time(2 * at), "source": "user",
            "message": format!("Please say {answer}") }));
        steps.push(json!({ "step_id": 2 * at + 2, "timestamp": time(2 * at + 1), "source": "agent", "message": answer,
            "metrics": { "prompt_tokens": 100, "completion_tokens": 10 } }));
    }
    let document = json!({ "schema_version": "ATIF-v1.7", "session_id": session,
        "agent": { "name": "terminus-2", "version": "2.0" }, "steps": steps });
    env.write(name, document.to_string());
}

fn output_tokens(env: &TestEnv) -> i64 {
    env.number("SELECT coalesce(sum(output_tokens), 0)::BIGINT FROM sessions")
}

#[test]
fn trajectories_of_sessions_with_replaced_ids_count_once() {
    let env = TestEnv::new();
    let usage = json!({ "input_tokens": 5, "output_tokens": 10 });
    let lines = [
        json!({ "format": "sessions", "version": 1, "session_id": "my chat: one" }),
        json!({ "type": "user", "timestamp": "2026-10-01T10:00:00Z", "text": "Hello" }),
        json!({ "type": "assistant", "timestamp": "2026-10-01T10:00:01Z", "text": "Hi", "usage": usage }),
    ];
    env.write("chat.jsonl", lines.map(|line| format!("{line}\n")).concat());
    env.run(["ingest", "--quiet", "chat.jsonl"]).ok();
    let counted = env.number("SELECT sum(events - replay_events)::BIGINT FROM sessions");
    assert!(counted > 1, "{counted}");
    let id = env.session_ids().remove(0);
    env.run(["export", "atif", &id, "-o", "chat.json"]).ok();
    for order in [&["chat.jsonl", "chat.json"][..], &["chat.json", "chat.jsonl"]] {
        let (apart, together) = (TestEnv::new(), TestEnv::new());
        let files = order.iter().map(|name| env.path(name));
        together.cli(["ingest", "--quiet"]).args(files.clone()).run().ok();
        for file in files {
            apart.cli(["ingest", "--quiet"]).args([file]).run().ok();
        }
        for env in [apart, together] {
            let both = env.number("SELECT sum(events - replay_events)::BIGINT FROM sessions");
            assert_eq!(both, counted, "{order:?}");
        }
    }
}

#[test]
fn a_copied_run_that_was_continued_counts_once() {
    let env = TestEnv::new();
    write_trajectory(&env, "job/agent/trajectory.json", "run1", 0, &["one", "two"]);
    let name = "job/agent/trajectory.cont-1.json";
    write_trajectory(&env, name, "run1", 1, &["three", "four", "five"]);
    env.run(["ingest", "--quiet", "job"]).ok();
    assert_eq!(output_tokens(&env), 50);
    copy_folder(&env.path("job"), &env.path("copy"));
    env.run(["ingest", "--quiet", "copy"]).ok();
    assert_eq!(output_tokens(&env), 50);
    let together = TestEnv::new();
    let folders = [env.path("job"), env.path("copy")];
    together.cli(["ingest", "--quiet"]).args(folders).run().ok();
    assert_eq!(output_tokens(&together), 50);
}

#[test]
fn sums_of_trajectories_without_counts_of_steps_count() {
    let env = TestEnv::new();
    let step = |source: &str, copied: bool| {
        json!([{ "step_id": 1, "timestamp": "2026-10-01T10:00:00Z", "source": source, "message": "Hello",
            "is_copied_context": copied }])
    };
    let agent = json!({ "name": "terminus-2", "version": "2.0" });
    let child = json!({ "trajectory_id": "c", "agent": agent, "steps": step("agent", false),
        "final_metrics": { "total_prompt_tokens": 10, "total_completion_tokens": 3.0 } });
    let write = |name: &str, copied: bool, total: Value, children: Value| {
        let document = json!({ "schema_version": "ATIF-v1.7", "session_id": name, "agent": agent,
            "steps": step("agent", copied), "final_metrics": total, "subagent_trajectories": children });
        env.write(format!("runs/{name}.json"), document.to_string());
    };
    let total = json!({ "total_prompt_tokens": 1000.0, "total_completion_tokens": 50 });
    write("parent", false, total.clone(), json!([child]));
    write("child-only", false, json!({}), json!([child]));
    write("copied", true, total, json!([]));
    write("cost", false, json!({ "total_cost_usd": 0.5 }), json!([]));
    env.run(["ingest", "--quiet", "runs"]).ok();
    let rows = env.rows(
        "SELECT session_id, input_tokens, output_tokens, usage_confidence FROM sessions ORDER BY 1",
    );
    let row = |id: &str, input: Value, output: Value, confidence: &str| {
        vec![json!(id), input, output, json!(confidence)]
    };
    assert_eq!(
        rows,
        [
            row("child-only", json!(10), json!(3), "estimated"),
            row("copied", Value::Null, Value::Null, "unknown"),
            row("cost", Value::Null, Value::Null, "estimated"),
            row("parent", json!(1000), json!(50), "estimated"),
        ]
    );
}

#[test]
fn sessions_that_are_named_are_exported() {
    let env = TestEnv::new();
    write_trajectory(&env, "job/trajectory.json", "a", 0, &["one"]);
    write_trajectory(&env, "other/trajectory.json", "b", 1, &["two"]);
    copy_folder(&env.path("job"), &env.path("copies/job"));
    copy_folder(&env.path("other"), &env.path("copies/other"));
    env.run(["ingest", "--quiet", "job", "other", "copies"]).ok();
    let exported = env.json(["export", "atif", "a~2", "b~2", "-o", "named"]);
    assert_eq!((&exported["sessions"], &exported["files"]), (&json!(2), &json!(2)));
}

#[test]
fn spans_of_a_session_without_times_are_not_of_1970() {
    let env = TestEnv::new();
    let document = json!({ "schema_version": "ATIF-v1.7", "session_id": "s",
        "agent": { "name": "terminus-2", "version": "2.0" },
        "steps": [{ "step_id": 1, "source": "agent", "message": "Hello" }] });
    env.write("s.json", document.to_string());
    env.run(["ingest", "--quiet", "s.json"]).ok();
    let line: Value = serde_json::from_str(&env.run(["export", "otel", "s"]).ok()).expect("JSON");
    let spans = line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans");
    for span in spans {
        let start = &span["startTimeUnixNano"];
        assert!(start.is_null() || start.as_str().is_some_and(|start| start.len() == 19), "{span}");
    }
}
