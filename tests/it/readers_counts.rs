//! What a reader of a server counts depends on the sessions that it may see only: the rows are those
//! of a store that has read the logs of these alone, no matter who else has the same events.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{Random, TestEnv};
use crate::http::Server;
use crate::lake::{machine, push};
use crate::readers_http::hash;

const ANA: (&str, &str) = ("Authorization", "Bearer token-of-ana-0123");

/// The project that the reader may see, and another one.
const PROJECTS: [&str; 2] = ["harbor", "secret"];

/// A log of Claude Code.
#[derive(Clone)]
struct Log {
    number: usize,
    project: usize,
    lines: Vec<Value>,
}

impl Log {
    fn new(number: usize, project: usize) -> Self {
        Self { number, project, lines: Vec::new() }
    }

    fn id(&self) -> String {
        format!("{:08}-2b7d-4c0e-9a35-d1e84b7092fa", self.number)
    }

    fn name(&self) -> String {
        format!("{}.jsonl", self.id())
    }

    fn next_uuid(&self) -> String {
        let record = self.number * 10_000 + self.lines.len();
        format!("00000000-0000-4000-8000-{record:012}")
    }

    fn add_own(&mut self, mut record: Value) {
        record["uuid"] = self.next_uuid().into();
        let at = self.lines.len();
        record["timestamp"] = format!("2026-10-{:02}T10:{at:02}:00Z", self.number % 28 + 1).into();
        self.lines.push(record);
    }

    /// Adds a turn of its own: a prompt, a call with its result, and an answer.
    fn add_turn(&mut self, turn: usize) {
        let number = self.number * 100 + turn;
        let call = json!([{ "type": "tool_use", "id": format!("t{number}"), "name": "Bash", "input": { "command": "make" } }]);
        let result = json!([{ "type": "tool_result", "tool_use_id": format!("t{number}"), "content": "failed", "is_error": true }]);
        self.add_own(json!({ "type": "user", "message": { "role": "user", "content": format!("prompt {number}") } }));
        self.add_own(response(number, call, 10 + turn));
        self.add_own(json!({ "type": "user", "message": { "role": "user", "content": result } }));
        let text = json!([{ "type": "text", "text": format!("answer {number}") }]);
        self.add_own(response(number + 50, text, 20 + turn));
    }

    /// Adds a copy of the beginning of another log, in one of the ways in which logs are copied.
    fn copy_beginning(&mut self, of: &Self, lines: usize, way: usize) {
        for line in of.lines.iter().take(lines) {
            let mut line = line.clone();
            if way > 0 {
                // A fork of the Agent SDK names the originals, a resumed log does not.
                if way == 1 {
                    line["forkedFrom"] =
                        json!({ "sessionId": of.id(), "messageUuid": line["uuid"] });
                }
                line["uuid"] = self.next_uuid().into();
            }
            self.lines.push(line);
        }
    }

    /// Adds responses of another log at the end, as one that shares nothing else.
    fn copy_responses(&mut self, of: &Self) {
        for line in of.lines.iter().filter(|line| line["type"] == "assistant").take(2) {
            let mut line = line.clone();
            line.as_object_mut().expect("an object").remove("forkedFrom");
            self.add_own(line);
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let mut line = line.clone();
            line["sessionId"] = self.id().into();
            line["cwd"] = format!("/home/mira/code/{}", PROJECTS[self.project]).into();
            text += &format!("{line}\n");
        }
        text
    }
}

fn response(number: usize, content: Value, output: usize) -> Value {
    json!({ "type": "assistant", "requestId": format!("req_{number}"), "message": {
        "id": format!("msg_{number}"), "role": "assistant", "model": "claude-sonnet-4-5",
        "content": content, "usage": { "input_tokens": 100, "output_tokens": output } } })
}

/// A store with all logs and a reader of one project, and a store with the logs of that project.
struct Stores {
    env: TestEnv,
    alone: TestEnv,
    logs: PathBuf,
}

impl Stores {
    fn new() -> Self {
        let env = TestEnv::new();
        let logs = env.path("logs");
        for project in PROJECTS {
            fs::create_dir_all(logs.join(project)).expect("creates");
        }
        Self { env, alone: TestEnv::new(), logs }
    }

    fn write(&self, project: usize, name: &str, text: &str) {
        let path = self.logs.join(PROJECTS[project]).join(name);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
        fs::write(path, text).expect("writes");
    }

    fn ingest(&self) {
        self.env.run(["ingest", "-q", &self.logs.to_string_lossy()]).ok();
        self.alone.run(["ingest", "-q", &self.logs.join(PROJECTS[0]).to_string_lossy()]).ok();
    }

    fn serve(&self) -> Server {
        serve(&self.env)
    }

    /// Compares everything that is counted.
    fn assert_equal(&self, server: &Server, what: &str) {
        assert_rows_equal(server, &self.alone, what);
        let named = rows(server, NAMED_PARENTS);
        for row in &named {
            assert!(row[2] == 1, "{what}: {row:?} names a session that the reader does not see");
        }
    }
}

fn serve(env: &TestEnv) -> Server {
    let readers = env.path("readers.toml");
    let text = format!(
        "[[reader]]\nname = 'ana'\ntoken_sha256 = '{}'\nprojects = ['harbor']\n",
        hash("token-of-ana-0123")
    );
    env.write(&readers, text);
    let readers = readers.to_string_lossy().into_owned();
    Server::start(env, &["--readers", &readers, "--rate-limit", "0"], &[])
}

fn call(server: &Server, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = server.post("tools/call", params, &[ANA]).json();
    assert_ne!(answer["result"]["isError"], true, "{tool}: {answer}");
    answer["result"]["structuredContent"].clone()
}

fn rows(server: &Server, sql: &str) -> Vec<Vec<Value>> {
    let answer = call(server, "query_sql", json!({ "sql": sql, "max_rows": 1000 }));
    assert!(answer["warnings"].as_array().is_none_or(Vec::is_empty), "{answer}");
    let rows = answer["data"]["rows"].list().iter();
    rows.map(|row| row.as_array().expect("cells").clone()).collect()
}

/// The parents of sessions, and whether the reader sees each.
const NAMED_PARENTS: &str = "SELECT s.session_id, s.parent_session_id, count(p.session_id) AS seen FROM sessions s LEFT JOIN sessions p ON p.session_id = s.parent_session_id WHERE s.parent_session_id IS NOT NULL GROUP BY ALL";

/// Everything that is counted.
const COUNTED: [&str; 3] = [
    "SELECT row(session_id, string_agg(concat_ws(' ', event_index, turn_index, step_index, event_type, is_replay), ',' ORDER BY event_index))::VARCHAR AS counted FROM events GROUP BY session_id ORDER BY session_id",
    "SELECT row(session_id, title, started_at, ended_at, events, replay_events, turns, steps, user_messages, messages, tool_calls, tool_errors, input_tokens, output_tokens, recorded_output_tokens, usage_by_model, usage_confidence, cost_usd)::VARCHAR AS counted FROM sessions ORDER BY session_id",
    "SELECT row(session_id, request_id, sum(output_tokens))::VARCHAR AS counted FROM usage GROUP BY session_id, request_id ORDER BY 1",
];

fn assert_rows_equal(server: &Server, alone: &TestEnv, what: &str) {
    for sql in COUNTED {
        let seen = rows(server, sql);
        let expected = alone.rows(sql);
        for (seen, expected) in seen.iter().zip(&expected) {
            assert_eq!(seen, expected, "{what}: {sql}");
        }
        assert_eq!(seen.len(), expected.len(), "{what}: {sql}");
    }
}

/// Draws logs of both projects that fork, resume and repeat each other.
fn draw_logs(random: &mut Random) -> Vec<Log> {
    let mut logs: Vec<Log> = Vec::new();
    for number in 1..=7 {
        let mut log = Log::new(number, random.below(2));
        let way = random.below(5);
        if !logs.is_empty() && way < 3 {
            let original = logs[random.below(logs.len())].clone();
            let lines = 4 * (1 + random.below(original.lines.len() / 4));
            log.copy_beginning(&original, lines, way);
        }
        for turn in 0..1 + random.below(3) {
            log.add_turn(turn);
        }
        if !logs.is_empty() && way == 3 {
            log.copy_responses(&logs[random.below(logs.len())]);
        }
        logs.push(log);
    }
    logs
}

#[test]
fn a_reader_counts_what_a_store_with_its_logs_alone_counts() {
    let families = std::env::var("SESSIONS_READER_FAMILIES").ok();
    let families = families.and_then(|count| count.parse().ok()).unwrap_or(4);
    for seed in 1..=families {
        let mut random = Random(seed * 0x9e37_79b9);
        let stores = Stores::new();
        let logs = draw_logs(&mut random);
        for log in logs.iter().filter(|_| seed % 2 == 0 || random.below(4) > 0) {
            stores.write(log.project, &log.name(), &log.text());
        }
        stores.ingest();
        let server = stores.serve();
        stores.assert_equal(&server, &format!("seed {seed}"));
        // The rest of the logs come while the server runs, and one of the hidden ones is forgotten.
        for log in &logs {
            stores.write(log.project, &log.name(), &log.text());
        }
        stores.ingest();
        stores.assert_equal(&server, &format!("seed {seed}, all logs"));
        if let Some(hidden) = logs.iter().find(|log| log.project == 1) {
            stores.env.run(["forget", &hidden.id(), "--yes"]).ok();
            stores.assert_equal(&server, &format!("seed {seed}, one forgotten"));
        }
        stores.env.run(["compact"]).ok();
        stores.assert_equal(&server, &format!("seed {seed}, compacted"));
    }
}

/// A session that the reader may see, and an older one of another project that counts all of it.
fn copied_session() -> (Stores, Log, Log) {
    let stores = Stores::new();
    let mut original = Log::new(1, 1);
    original.add_turn(0);
    let mut copy = Log::new(2, 0);
    // It names the originals, so that it is not taken for the older state of the other log.
    copy.copy_beginning(&original, original.lines.len(), 1);
    original.add_turn(1);
    for log in [&original, &copy] {
        stores.write(log.project, &log.name(), &log.text());
        stores.ingest();
    }
    (stores, original, copy)
}

/// Requests to every tool that concern a session, each with whether the answer has something of it.
fn requests_about(id: &str) -> [(&'static str, Value, bool); 16] {
    let event = format!("{id}:0");
    let full = "full";
    let sql = |view: &str| json!({ "sql": format!("SELECT * FROM {view}") });
    [
        ("search_events", json!({ "query": "prompt" }), true),
        ("search_sessions", json!({ "query": "which session has the answer 100" }), true),
        ("list_sessions", json!({ "format": full }), true),
        ("get_session_details", json!({ "session_id": id }), true),
        ("get_session_details", json!({ "session_id": id, "detail_level": full }), true),
        ("get_event_details", json!({ "event_ids": [event] }), true),
        ("analyze_session", json!({}), false),
        ("analyze_session", json!({ "session_id": id }), true),
        ("session_stats", json!({ "group_by": "session" }), true),
        ("session_stats", json!({ "group_by": ["project", "model"] }), false),
        ("query_sql", sql("sessions"), true),
        ("query_sql", sql("events"), true),
        ("query_sql", sql("usage"), true),
        ("query_sql", sql("turns"), true),
        ("query_sql", sql("tool_calls"), true),
        ("query_sql", sql("lineage"), false),
    ]
}

#[test]
fn every_tool_and_resource_has_a_session_that_another_project_counts() {
    let (stores, original, copy) = copied_session();
    let whole = stores.env.rows("SELECT sum(output_tokens) FROM sessions WHERE project = 'harbor'");
    assert_eq!(whole, [[Value::Null]], "the original counts all of it");
    let server = stores.serve();
    stores.assert_equal(&server, "one copy");
    let tokens = rows(&server, "SELECT sum(output_tokens) FROM sessions");
    assert_eq!(tokens, [[json!(30)]]);

    let mut answers = Vec::new();
    for (tool, arguments, has_session) in requests_about(&copy.id()) {
        let asked = format!("{tool} {arguments}");
        let answer = call(&server, tool, arguments).to_string();
        assert!(!has_session || answer.contains(&copy.id()), "{asked}: {answer}");
        answers.push((asked, answer));
    }
    for uri in [
        format!("sessions://session/{}", copy.id()),
        format!("sessions://event/{}:0", copy.id()),
        "sessions://status".to_owned(),
    ] {
        let answer = server.post("resources/read", json!({ "uri": uri }), &[ANA]).json();
        assert!(answer["error"].is_null(), "{uri}: {answer}");
        answers.push((uri, answer.to_string()));
    }
    for (asked, answer) in answers {
        assert!(!answer.contains(&original.id()), "{asked}: {answer}");
        answer.lacks("secret");
    }
    // A reader of both projects has the copy as before.
    assert_eq!(stores.env.rows("SELECT count(*) FROM sessions WHERE replay_events > 0"), [[1]]);
}

/// The folders of the segments that readers see besides those of the store.
fn overlay_folders(env: &TestEnv) -> usize {
    let folders = fs::read_dir(env.store().join("readers"));
    folders.map_or(0, |folders| folders.flatten().count())
}

#[test]
fn nothing_is_written_for_a_reader_whose_sessions_share_nothing() {
    let stores = Stores::new();
    for number in 1..=4 {
        let mut log = Log::new(number, number % 2);
        log.add_turn(0);
        // A fork within the project counts as it does for everybody.
        let mut fork = Log::new(10 + number, number % 2);
        fork.copy_beginning(&log, 4, 0);
        fork.add_turn(1);
        for log in [&log, &fork] {
            stores.write(log.project, &log.name(), &log.text());
        }
    }
    stores.ingest();
    let server = stores.serve();
    stores.assert_equal(&server, "forks of their own");
    assert_eq!(overlay_folders(&stores.env), 0);
}

#[test]
fn what_is_written_for_a_reader_goes_with_the_server_and_with_a_forgotten_session() {
    let (stores, _, copy) = copied_session();
    let server = stores.serve();
    stores.assert_equal(&server, "one copy");
    assert_eq!(overlay_folders(&stores.env), 1);
    let mut later = Log::new(3, 0);
    later.copy_beginning(&copy, 4, 0);
    later.add_turn(5);
    stores.write(0, &later.name(), &later.text());
    stores.ingest();
    stores.assert_equal(&server, "a fork of the copy");

    stores.env.run(["forget", &copy.id(), "--yes"]).ok();
    assert_eq!(overlay_folders(&stores.env), 0, "no file of the store has the session");
    let listed = rows(&server, "SELECT session_id FROM sessions");
    assert_eq!(listed, [[json!(later.id())]]);
    assert_eq!(overlay_folders(&stores.env), 1);

    // The server is killed, and the next writer cleans up.
    drop(server);
    assert_eq!(overlay_folders(&stores.env), 1);
    let mut last = Log::new(4, 1);
    last.add_turn(0);
    stores.write(1, &last.name(), &last.text());
    stores.env.run(["ingest", "-q", &stores.logs.to_string_lossy()]).ok();
    assert_eq!(overlay_folders(&stores.env), 0);
}

/// A rollout of Codex: a head, and turns with what the model used so far.
fn codex_log(
    id: &str,
    project: usize,
    head: Value,
    at: usize,
    turns: std::ops::Range<usize>,
) -> String {
    let mut lines = Vec::new();
    let mut add = |second: usize, kind: &str, payload: Value| {
        let time = format!("2026-10-01T10:{:02}:{:02}.000Z", second / 60 % 60, second % 60);
        lines.push(json!({ "timestamp": time, "type": kind, "payload": payload }).to_string());
    };
    let mut meta = json!({ "id": id, "cwd": format!("/home/mira/code/{}", PROJECTS[project]) });
    if let Value::Object(more) = head {
        for (name, value) in more {
            meta[name] = value;
        }
    }
    add(at, "session_meta", meta);
    for turn in turns {
        let content = json!([{ "type": "input_text", "text": format!("ask {turn}") }]);
        add(at, "response_item", json!({ "type": "message", "role": "user", "content": content }));
        add(at, "event_msg", json!({ "type": "agent_message", "message": format!("say {turn}") }));
        let counts = |n: usize| json!({ "input_tokens": n * 1000, "cached_input_tokens": 0, "output_tokens": n * 100, "reasoning_output_tokens": 0, "total_tokens": n * 1100 });
        let info = json!({ "total_token_usage": counts(turn), "last_token_usage": counts(1), "model_context_window": 1000 });
        add(at, "event_msg", json!({ "type": "token_count", "info": info }));
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_fork_of_codex_and_a_subagent_count_as_if_their_parents_were_missing() {
    let stores = Stores::new();
    let parent = "a1f0e51c-2b7d-4c0e-9a35-d1e84b7092fa";
    let fork = "b2f0e51c-2b7d-4c0e-9a35-d1e84b7092fb";
    let name = |id: &str| format!("rollout-2026-10-01T10-00-00-{id}.jsonl");
    stores.write(1, &name(parent), &codex_log(parent, 1, json!({}), 0, 1..4));
    let copied = codex_log(parent, 1, json!({}), 600, 1..4);
    let own = codex_log(fork, 0, json!({ "forked_from_id": parent }), 660, 4..6);
    let head = codex_log(fork, 0, json!({ "forked_from_id": parent }), 600, 0..0);
    let own: String = own.lines().skip(1).map(|line| format!("{line}\n")).collect();
    stores.write(0, &name(fork), &(head + &copied + &own));

    let mut main = Log::new(1, 1);
    main.add_turn(0);
    stores.write(1, &main.name(), &main.text());
    let mut agent = Log::new(1, 0);
    agent.add_turn(3);
    let lines = agent
        .text()
        .replace("\"type\":\"user\"", "\"type\":\"user\",\"isSidechain\":true,\"agentId\":\"x1\"");
    stores.write(0, &format!("{}/subagents/agent-x1.jsonl", main.id()), &lines);
    stores.ingest();

    // The head of the copied history is a notification, which is found as a copy only if the original
    // is missing.
    let server = stores.serve();
    for sql in [
        "SELECT row(session_id, event_index, turn_index, step_index, is_replay)::VARCHAR AS counted FROM events WHERE event_type <> 'notification' ORDER BY session_id, event_index",
        "SELECT row(session_id, title, events, turns, steps, user_messages, messages, input_tokens, output_tokens, recorded_output_tokens, usage_by_model, usage_confidence)::VARCHAR AS counted FROM sessions ORDER BY session_id",
    ] {
        assert_eq!(rows(&server, sql), stores.alone.rows(sql), "{sql}");
    }
    let relations =
        rows(&server, "SELECT parent_session_id FROM sessions WHERE parent_session_id IS NOT NULL");
    assert!(relations.is_empty(), "{relations:?}");
}

#[test]
fn responses_of_pulled_sessions_count_for_a_reader_that_sees_one_of_them() {
    let lake = TestEnv::new();
    let place = lake.path("lake");
    let mut original = Log::new(1, 1);
    original.add_turn(0);
    let mut other = Log::new(2, 0);
    other.add_turn(0);
    other.copy_responses(&original);
    for (name, log) in [("pier", &original), ("quay", &other)] {
        let laptop = machine(name, "mira", "include = ['**']\ncontent = 'full'");
        let path = laptop.path(log.name());
        laptop.write(&path, log.text());
        laptop.run(["ingest", "-q", &path.to_string_lossy()]).ok();
        push(&laptop, &place);
    }
    let pull = |env: &TestEnv, more: &[&str]| {
        let place = place.to_string_lossy().into_owned();
        let args = [&["pull", place.as_str()], more].concat();
        env.run(&args).ok();
    };
    let (env, alone) = (TestEnv::new(), TestEnv::new());
    pull(&env, &[]);
    pull(&alone, &["--project", "harbor"]);
    let counted =
        env.rows("SELECT count(*) FROM sessions WHERE project = 'harbor' AND replay_events > 0");
    assert_eq!(counted, [[1]], "the other laptop's session counts the responses");
    let server = serve(&env);
    assert_rows_equal(&server, &alone, "pulled");
}
