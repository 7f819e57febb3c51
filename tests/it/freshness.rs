//! Refresh on call, the current session, and calls that take long: progress, cancellation, giant
//! requests.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sessions::server::ServerOptions;
use store::{Store, Verify};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tools::{Freshness, Refresh, Tools};

use crate::checks::{Checks, JsonChecks};
use crate::contract::Rmcp;
use crate::env::TestEnv;
use crate::mcp::Client;
use crate::work::{append, prompt};

/// Asks until it is so: logs are taken in behind the calls.
pub(crate) fn until(mut so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never came");
}

/// How many events an answer found; none when it is an error.
fn matches(client: &Rmcp, query: &str) -> usize {
    let result = client.call("search_events", json!({ "query": query }));
    let answer = result.structured_content.unwrap_or_default();
    answer["data"]["matches"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_call_finds_what_was_written_since() {
    let env = TestEnv::new();
    let logs = env.path(".claude/projects/p");
    append(&logs, 1, &prompt(1, 1, "first light"));
    let client = Rmcp::start(&env, &["--rate-limit", "0"]);
    // Nobody ever ran `sessions ingest`.
    until(|| matches(&client, "light") == 1);
    append(&logs, 1, &prompt(1, 2, "second light"));
    append(&logs, 2, &prompt(2, 3, "third light"));
    until(|| matches(&client, "light") == 3);
    let answer = client.ok("list_sessions", json!({}));
    assert_eq!(answer["metadata"]["newest_event"], "2026-05-01T00:00:03.000Z");
    assert!(answer.get("warnings").is_none());

    // While another process writes, it says what is missing.
    let store = Store::new(env.store());
    let writer = store.open_writer(Verify::Some).expect("lock");
    append(&logs, 1, &prompt(1, 4, "fourth light"));
    until(|| {
        let answer = client.ok("search_events", json!({ "query": "fourth" }));
        assert_eq!(answer["data"]["matches"], json!([]));
        let stale = answer["warnings"][0].clone();
        answer["hint"].shows("newest event is from 2026-05-01T00:00:03.000Z");
        stale["code"] == "INDEX_STALE"
            && stale["message"].as_str().is_some_and(|text| text.starts_with("1 log file has"))
    });
    drop(writer);
    until(|| matches(&client, "fourth") == 1);
}

/// The database itself is a root: its sessions are not files below it.
#[test]
fn sessions_of_a_database_are_found_behind_a_call() {
    let env = TestEnv::new();
    let data = env.path(".local/share/opencode");
    std::fs::create_dir_all(&data).expect("creates");
    let sample = crate::env::samples().join("opencode/opencode.db");
    std::fs::copy(sample, data.join("opencode.db")).expect("copies");
    let client = Rmcp::start(&env, &["--rate-limit", "0"]);
    until(|| {
        let listed = client.call("list_sessions", json!({})).structured_content;
        let listed = listed.unwrap_or_default();
        assert_ne!(listed["warnings"][0]["severity"], "error");
        listed["data"]["sessions"].as_array().is_some_and(|sessions| !sessions.is_empty())
    });
}

#[test]
fn a_resource_is_as_fresh_as_a_tool() {
    let env = TestEnv::new();
    let logs = env.path(".claude/projects/p");
    let mut client = Client::legacy(&env);
    for (index, words) in [(0, "first light"), (1, "second light")] {
        append(&logs, 1, &prompt(1, index + 1, words));
        let uri = format!("sessions://event/00000001-1111-4000-8000-000000000000:{index}");
        until(|| {
            let answer = client.request("resources/read", json!({ "uri": uri }));
            answer.to_string().contains(words)
        });
    }
}

#[test]
fn a_file_that_cannot_be_taken_in_is_said_and_not_tried_for_ever() {
    let env = TestEnv::new();
    let logs = env.path(".claude/projects/p");
    append(&logs, 1, &prompt(1, 1, "light"));
    let client = Rmcp::start(&env, &["--rate-limit", "0"]);
    until(|| matches(&client, "light") == 1);
    let generation =
        || Store::new(env.store()).take_snapshot().expect("snapshot").manifest().generation;
    std::fs::write(logs.join("other.jsonl"), "no log at all\n").expect("writes");
    let before = generation();
    until(|| {
        client.ok("list_sessions", json!({}));
        generation() > before
    });
    let settled = generation();
    std::thread::sleep(Duration::from_millis(2500));
    client.ok("list_sessions", json!({}));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(generation(), settled, "nothing changed, so nothing is written");
    let hint = client.ok("search_events", json!({ "query": "absent" }))["hint"].clone();
    assert!(hint.as_str().is_some_and(|hint| hint.contains("unknown format")));
}

#[test]
fn the_current_session_is_known_by_folder_or_by_name() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    let here = env.root.path().canonicalize().expect("there").to_string_lossy().into_owned();
    for session in [1, 2, 3] {
        let folder = if session == 3 { "/elsewhere" } else { here.as_str() };
        let line = prompt(session, session, "needle");
        append(&logs, session, &line.replace(&format!("/home/dev/p{session}"), folder));
    }
    env.ingest(&logs);
    let id = |session: usize| format!("{session:08x}-1111-4000-8000-000000000000");
    let ids = |answer: &Value| -> Vec<String> {
        let matches = answer["data"]["matches"].list();
        let ids = matches.iter().map(|m| m["event_id"].text());
        ids.map(|id| id.split(':').next().expect("a session").to_owned()).collect()
    };
    let client = Rmcp::start(&env, &[]);
    let only = client.ok("search_events", json!({ "query": "needle", "session_id": "current" }));
    assert_eq!(ids(&only), [id(2)], "the newest of this folder");
    assert_eq!(only["warnings"][0]["code"], "CURRENT_SESSION");
    let others = json!({ "query": "needle", "exclude_current": true });
    assert_eq!(ids(&client.ok("search_events", others)), [id(3), id(1)]);
    let event = client.ok("get_event_details", json!({ "event_ids": ["current:0"] }));
    assert_eq!(event["data"]["events"][0]["event_id"], format!("{}:0", id(2)));
    let listed = client.ok("list_sessions", json!({ "session_ids": ["current"] }));
    assert_eq!(listed["data"]["sessions"][0]["session_id"], id(2));
    assert_eq!(ids(&env.json(["search", "needle", "--session-id", "current"])), [id(2)]);

    let mut command = env.command();
    command.arg("mcp").env("CLAUDE_CODE_SESSION_ID", id(3));
    let named = Rmcp::command(command);
    named.ok("get_session_details", json!({ "session_id": "current" })).has(json!({
        "data": {"session": {"session_id": id(3)}},
    }));
    let by = json!({ "group_by": "session", "session_id": "current" });
    let counted = named.ok("session_stats", by);
    assert_eq!(counted["data"]["groups"][0]["group"]["session"], id(3));
    assert_eq!(counted["warnings"][0]["code"], "CURRENT_SESSION");

    let away = TestEnv::with_samples();
    let client = Rmcp::start(&away, &[]);
    client.fails("get_session_details", json!({ "session_id": "current" })).has(json!({
        "code": "session_not_found",
    }));
    let all = client.ok("search_events", json!({ "query": "budget", "exclude_current": true }));
    assert_eq!(all["warnings"][0]["code"], "PARAMETER_IGNORED");
}

/// Looks at logs for a fixed time.
struct Slow(Duration);

impl Refresh for Slow {
    fn refresh(&self, _wait: Duration) {
        std::thread::sleep(self.0);
    }

    fn current_freshness(&self) -> Freshness {
        Freshness::default()
    }
}

/// Sends lines to a server inside this process whose calls take `time`, until it has answered the
/// request `last`; everything that it said.
fn talk(env: &TestEnv, time: Duration, lines: &[Value], last: u64) -> Vec<Value> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let tools = Tools::new(Store::new(env.store())).with_refresh(Arc::new(Slow(time)));
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let options = ServerOptions { allow_labels: true, ..ServerOptions::default() };
        tokio::spawn(sessions::server::serve_streams(
            crate::env::parts(tools, options),
            read,
            write,
        ));
        let (read, mut write) = tokio::io::split(ours);
        let hello = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" } } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        ];
        for line in hello.iter().chain(lines) {
            write.write_all(format!("{line}\n").as_bytes()).await.expect("writes");
        }
        let mut said = Vec::new();
        let mut answers = BufReader::new(read).lines();
        while let Some(line) = answers.next_line().await.expect("reads") {
            let message: Value = serde_json::from_str(&line).expect("JSON");
            let done = message["id"] == last;
            said.push(message);
            if done {
                break;
            }
        }
        said
    })
}

#[test]
fn long_calls_are_heard_of_by_those_who_asked() {
    let env = TestEnv::with_samples();
    let list = |id: u64, meta: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "list_sessions", "arguments": { "limit": id }, "_meta": meta } })
    };
    let time = Duration::from_millis(2500);
    let said = talk(&env, time, &[list(2, json!({ "progressToken": "t" }))], 2);
    let progress: Vec<f64> = said
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .inspect(|message| assert_eq!(message["params"]["progressToken"], "t"))
        .map(|message| message["params"]["progress"].as_f64().expect("a number"))
        .collect();
    assert!(progress.len() >= 2 && progress.is_sorted_by(|a, b| a < b), "{progress:?}");
    let said = talk(&env, Duration::from_millis(1500), &[list(2, json!({}))], 2);
    assert!(said.iter().all(|message| message["method"] != "notifications/progress"));
}

#[test]
fn a_cancelled_call_does_nothing_more_and_is_not_answered() {
    let env = TestEnv::with_samples();
    let call = |id: u64, tool: &str, arguments: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } })
    };
    let label = json!({ "updates": [{ "session_id": "9ae82b3a", "add": ["cancelled"] }] });
    let lines = [
        call(2, "update_session_labels", label),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } }),
        call(3, "list_sessions", json!({ "limit": 1 })),
    ];
    let said = talk(&env, Duration::from_millis(800), &lines, 3);
    assert!(said.iter().all(|message| message["id"] != 2), "{said:?}");
    let listed = env.json(["list", "--label", "cancelled"]);
    assert_eq!(listed["data"]["sessions"], json!([]), "it was written all the same");
}

#[test]
fn a_giant_request_is_answered_and_the_next_one_too() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    let filler = "x".repeat(17 << 20);
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"search_events","arguments":{{"query":"{filler}"}}}}}}"#
    ));
    let answer = client.read();
    assert_eq!(answer["id"], 77, "{answer}");
    answer["error"]["message"].shows("512 KB");
    let listed = client.call("list_sessions", json!({ "limit": 1 }));
    assert_eq!(listed["data"]["sessions"].list().len(), 1);
    assert_eq!(client.end(), 0);
}
