//! No answer is larger than 25,000 tokens, whatever is asked. It stands twice in a result, as text
//! and as structured content, of which clients show a model the one or the other: each is
//! measured, and `cargo test sizes -- --nocapture` tells the largest.

use std::collections::BTreeMap;

use schemas::limits::{BYTES_PER_TOKEN, PROTOCOL_ERROR_BYTES};
use schemas::tool::TOOLS;
use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::{TestEnv, real_logs};
use crate::mcp::Client;

const BYTES: usize = 25_000 * BYTES_PER_TOKEN;

/// Pages of one call that are looked at.
const PAGES: usize = 3;

/// A largest answer: its bytes, those of the whole message, and how it was asked for.
#[derive(Default)]
struct Largest {
    shown: usize,
    sent: usize,
    asked: String,
}

/// Asks for much, and keeps the largest answers.
struct Sweep {
    client: Client,
    largest: BTreeMap<String, Largest>,
    answers: usize,
}

impl Sweep {
    fn new(env: &TestEnv) -> Self {
        let client = Client::legacy_with(env, &["--allow-labels", "--rate-limit", "0"]);
        Self { client, largest: BTreeMap::new(), answers: 0 }
    }

    /// What a model is shown of the answer to a request.
    fn measure(&mut self, name: &str, method: &str, params: Value) -> Value {
        let mut asked = params.to_string();
        let message = self.client.request(method, params);
        asked.truncate(asked.floor_char_boundary(200));
        let result = &message["result"];
        let content = &result["content"][0]["text"];
        // Of a resource the text is shown; prompts are shown whole, and so is an error of the protocol.
        let (shown, answer) = match content.as_str() {
            Some(text) => (text.len(), serde_json::from_str(text).expect("JSON")),
            None if result.is_null() => {
                let error = message["error"].to_string().len();
                assert!(error < 3 * PROTOCOL_ERROR_BYTES, "{error} bytes of an error: {asked}");
                (error, Value::Null)
            }
            None => match result["contents"][0]["text"].as_str() {
                Some(text) => (text.len(), Value::Null),
                None => (result.to_string().len(), Value::Null),
            },
        };
        assert!(shown <= BYTES, "{name}: {shown} bytes: {asked}");
        if let Some(structured) = result.get("structuredContent") {
            assert_eq!(*structured, answer, "{name}: {asked}");
        }
        self.answers += 1;
        let largest = self.largest.entry(name.to_owned()).or_default();
        if shown > largest.shown {
            *largest = Largest { shown, sent: message.to_string().len(), asked };
        }
        answer
    }

    /// Calls a tool and follows its cursors.
    fn call(&mut self, tool: &str, mut arguments: Value) {
        for _ in 0..PAGES {
            let params = json!({ "name": tool, "arguments": arguments });
            let answer = self.measure(tool, "tools/call", params);
            match answer["pagination"].get("next_cursor") {
                Some(cursor) => arguments["cursor"] = cursor.clone(),
                None => return,
            }
        }
    }

    /// The first column of a query's rows.
    fn ids(&mut self, sql: &str) -> Vec<String> {
        let params = json!({ "name": "query_sql", "arguments": { "sql": sql, "max_rows": 1000 } });
        let answer = self.measure("query_sql", "tools/call", params);
        let rows = answer["data"]["rows"].as_array().unwrap_or_else(|| panic!("{sql}: {answer}"));
        rows.iter().map(|row| row[0].text().to_owned()).collect()
    }
}

/// The names that an argument takes.
fn names(tool: &str, place: &str) -> Vec<String> {
    let spec = TOOLS.iter().find(|spec| spec.name == tool).expect("a tool");
    let schema = (spec.input)();
    let names = schema.pointer(&format!("/properties/{place}/enum")).and_then(Value::as_array);
    let names = names.unwrap_or_else(|| panic!("{tool} {place}: {schema}"));
    names.iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
}

fn search(sweep: &mut Sweep) {
    let many: Vec<String> = (0..500).map(|number| format!("w{number}")).collect();
    let queries: [&str; 16] = [
        "e",
        "the",
        "a OR e",
        "\"\\\"\"",
        "/./",
        "/(?s).+/",
        "/[a-z]+ [a-z]+/",
        "is:error",
        "tool:Bash",
        "e is:replay",
        "e total:exact",
        "the error sort:relevance",
        "why did the test fail sort:relevance",
        &many.join(" "),
        &format!("e OR {}", many.join(" OR ")),
        &format!("e -{}", "z".repeat(4000)),
    ];
    for query in queries {
        sweep.call("search_events", json!({ "query": query, "limit": 50 }));
    }
    for kind in names("search_events", "event_type/items") {
        sweep.call("search_events", json!({ "query": "e", "event_type": kind, "limit": 50 }));
    }
}

fn events(sweep: &mut Sweep, sessions: &[String]) {
    let longest = sweep.ids("SELECT event_id FROM events ORDER BY text_bytes DESC LIMIT 50");
    let calls = sweep.ids("SELECT event_id FROM tool_calls ORDER BY len(files) DESC NULLS LAST, len(command) DESC NULLS LAST LIMIT 50");
    let heads = sessions.iter().flat_map(|id| (0..5).map(move |index| format!("{id}:{index}")));
    let unknown =
        |text: &str| -> Vec<String> { (0..49).map(|number| format!("{text}{number}:1")).collect() };
    let with_longest = |text: &str| [unknown(text), longest[..1].to_vec()].concat();
    let mut first = with_longest(&"a".repeat(90));
    first.rotate_right(1);
    for ids in [
        longest.clone(),
        calls,
        heads.take(50).collect(),
        vec![longest[0].clone(); 50],
        unknown(&"x".repeat(10_000)),
        with_longest(&"x".repeat(10_000)),
        first,
    ] {
        for fields in [json!(["text"]), json!(["tool", "usage", "context", "source"])] {
            sweep.call("get_event_details", json!({ "event_ids": ids, "fields": fields }));
        }
        for most in [100, 20_000, 80_000] {
            sweep.call("get_event_details", json!({ "event_ids": ids, "max_chars": most }));
        }
    }
}

fn sessions(sweep: &mut Sweep, largest: &[String]) {
    let busiest = sweep.ids("SELECT session_id FROM sessions ORDER BY tool_calls DESC LIMIT 50");
    let labels: Vec<_> = (0..20).map(|number| format!("{number:02}{}", "é".repeat(38))).collect();
    let note = "\u{1f600}".repeat(1000);
    let update = |id: &String| json!({ "session_id": id, "add": labels, "note": note });
    let updates: Vec<_> = busiest.iter().map(update).collect();
    sweep.call("update_session_labels", json!({ "updates": updates }));
    let unknown: Vec<_> = (0..50).map(|number| format!("{number}{}", "y".repeat(9000))).collect();
    let wrong = |id: &String| json!({ "session_id": id, "add": [id], "note": id });
    let updates: Vec<_> = unknown.iter().map(wrong).collect();
    sweep.call("update_session_labels", json!({ "updates": updates }));
    let mixed = [&busiest[..1], &unknown[..49]].concat();
    for format in names("list_sessions", "format") {
        for sort in names("list_sessions", "sort") {
            let all = json!({ "format": format, "sort": sort, "limit": 100, "subagents": true });
            sweep.call("list_sessions", all);
        }
        for ids in [&busiest, &unknown, &mixed] {
            sweep.call("list_sessions", json!({ "format": format, "session_ids": ids }));
        }
    }
    for id in largest {
        for level in names("get_session_details", "detail_level") {
            for reasoning in [false, true] {
                for limit in [1, 500] {
                    sweep.call(
                        "get_session_details",
                        json!({ "session_id": id, "detail_level": level,
                        "include_reasoning": reasoning, "limit": limit, "turns": "0-" }),
                    );
                }
            }
        }
        sweep.call("analyze_session", json!({ "session_id": id, "limit": 100 }));
    }
    sweep.call("analyze_session", json!({ "limit": 100 }));
}

fn statistics(sweep: &mut Sweep) {
    let keys = names("session_stats", "group_by/items");
    for (at, one) in keys.iter().enumerate() {
        // The order of two keys changes no size.
        for other in &keys[at + 1..] {
            sweep.call("session_stats", json!({ "group_by": [one, other], "limit": 500 }));
        }
        sweep.call("session_stats", json!({ "group_by": one, "limit": 500 }));
    }
    for sort in names("session_stats", "sort") {
        sweep.call("session_stats", json!({ "group_by": "session", "sort": sort, "limit": 500 }));
    }
}

fn sql(sweep: &mut Sweep) {
    for view in schemas::view::VIEWS {
        sweep.call(
            "query_sql",
            json!({ "sql": format!("SELECT * FROM {}", view.name), "max_rows": 1000 }),
        );
        sweep.call("query_sql", json!({ "sql": format!("DESCRIBE {}", view.name) }));
    }
    let columns = |column: &dyn Fn(usize) -> String| -> String {
        (0..200).map(column).collect::<Vec<_>>().join(", ")
    };
    let texts = [
        "SELECT repeat('x', 100000) FROM range(1000)".to_owned(),
        "SELECT repeat(chr(1), 100000), repeat('\"', 100000) FROM range(1000)".to_owned(),
        "SELECT text FROM events ORDER BY text_bytes DESC".to_owned(),
        "SELECT list(left(text, 1000)) FROM (SELECT text FROM events LIMIT 1000)".to_owned(),
        "SELECT {'a': repeat('x', 50000), 'b': repeat('é', 50000)} FROM range(1000)".to_owned(),
        "SELECT error(repeat('q', 90000))".to_owned(),
        "SELECT CAST(repeat('q', 90000) AS INTEGER)".to_owned(),
        format!("SELECT {}", columns(&|at| format!("repeat('é', 100000) AS c{at}"))),
        format!("SELECT {}", columns(&|at| format!("1 AS \"{}{at}\"", "n".repeat(80)))),
        format!("SELECT 1 AS \"{}\"", "w".repeat(19_000)),
        format!("SELECT 1 AS \"{}\"", "\u{7}".repeat(19_000)),
        format!("SELECT nonsense{}", "x".repeat(15_000)),
        format!("SELECT \"{}\" FROM events", "\u{1}".repeat(15_000)),
        format!("SELECT * FROM read_csv('{}')", "y".repeat(10_000)),
        format!("SELECT '{}'", "z".repeat(30_000)),
    ];
    for text in texts {
        sweep.call("query_sql", json!({ "sql": text, "max_rows": 1000 }));
    }
}

/// Every argument of every tool as something large that it is not.
fn nonsense(sweep: &mut Sweep) {
    let huge = "x".repeat(100_000);
    let list = vec!["\u{202e}\u{1}".repeat(2000); 50];
    for spec in TOOLS {
        let right: Value = serde_json::from_str(spec.examples[0].arguments).expect("JSON");
        let schema = (spec.input)();
        for name in schema["properties"].as_object().expect("object").keys() {
            for value in
                [json!(huge), json!(list), json!({ (huge.as_str()): 1 }), json!(-1), json!(null)]
            {
                let mut arguments = right.clone();
                arguments[name] = value;
                sweep.call(spec.name, arguments);
            }
        }
        let mut arguments = right;
        for number in 0..2000 {
            arguments[format!("{number}{}", "k".repeat(50))] = json!(1);
        }
        sweep.call(spec.name, arguments);
    }
    let twice = vec!["search_events"; 50];
    for tools in [json!(twice), json!(list)] {
        sweep.call("tool_metadata", json!({ "tools": tools }));
    }
    sweep.call(&huge, json!({}));
    for (method, params) in [
        ("resources/read", json!({ "uri": huge })),
        ("resources/read", json!({ "uri": format!("sessions://session/{huge}") })),
        ("resources/read", json!({ "uri": format!("sessions://event/{huge}:1") })),
        ("prompts/get", json!({ "name": huge })),
        ("prompts/get", json!({ "name": "weekly_summary", "arguments": { (huge.as_str()): "x" } })),
        ("prompts/get", json!({ "name": "what_did_i_do_about", "arguments": { "topic": huge } })),
        (
            "prompts/get",
            json!({ "name": "what_did_i_do_about", "arguments": { "topic": "\"".repeat(4000) } }),
        ),
        ("ai_help", json!({ "section": huge })),
        ("ai_help", json!({ "format": huge })),
        (&*huge, json!({})),
    ] {
        sweep.measure("errors of the protocol", method, params);
    }
}

fn resources(sweep: &mut Sweep, sessions: &[String]) {
    let session = |id: &String| format!("sessions://session/{id}");
    let own = ["status", "schema", "ai-help"].map(|name| format!("sessions://{name}"));
    let longest = sweep.ids("SELECT event_id FROM events ORDER BY text_bytes DESC LIMIT 1");
    let event = format!("sessions://event/{}", longest[0]);
    for uri in sessions.iter().map(session).chain(own).chain([event]) {
        sweep.measure("resources", "resources/read", json!({ "uri": uri }));
    }
}

#[expect(clippy::print_stderr, reason = "figures are for those who ask for them")]
fn sweep(env: &TestEnv) {
    let mut sweep = Sweep::new(env);
    // The largest in each way that a session can be large.
    let by = ["events", "turns", "tool_calls", "tool_errors"].map(|column| {
        format!("(SELECT session_id FROM sessions ORDER BY {column} DESC NULLS LAST LIMIT 2)")
    });
    let text = "(SELECT session_id FROM events GROUP BY 1 ORDER BY sum(text_bytes) DESC LIMIT 2)";
    let largest = sweep.ids(&format!("{} UNION {text} ORDER BY 1", by.join(" UNION ")));
    search(&mut sweep);
    events(&mut sweep, &largest);
    sessions(&mut sweep, &largest);
    statistics(&mut sweep);
    sql(&mut sweep);
    nonsense(&mut sweep);
    resources(&mut sweep, &largest);
    for spec in TOOLS {
        assert!(sweep.largest.contains_key(spec.name), "{} was not called", spec.name);
    }
    eprintln!("{} answers; the largest, shown and sent:", sweep.answers);
    for (name, Largest { shown, sent, asked }) in &sweep.largest {
        let name: String = name.chars().take(30).collect();
        eprintln!(
            "{name}: {shown} bytes, {} tokens, {sent} bytes: {asked}",
            shown / BYTES_PER_TOKEN
        );
    }
}

#[test]
fn no_answer_on_the_samples_is_too_large() {
    sweep(&TestEnv::with_samples());
}

/// A log whose names, ids and lists of files have no end.
fn endless_names() -> String {
    let name = |what: &str| format!("{what}{}", "\\\u{7}\"n".repeat(5000));
    let mut lines = vec![json!({ "format": "sessions", "version": 1, "session_id": name("id"),
        "agent": name("agent"), "agent_version": name("version"), "cwd": name("/"), "title": name("title"),
        "repository": name("repository"), "git_branch": name("branch"), "model": name("model"),
        "parent_session_id": name("parent"), "agent_id": name("agent") })];
    lines.push(json!({ "type": "user", "timestamp": "2026-10-29T06:00:00Z", "text": "the first" }));
    for call in 0..8 {
        let id = name(&format!("call{call}"));
        let files: Vec<_> =
            (0..2000).map(|file| format!("/{call}/{file}/deep/folder.rs")).collect();
        let patch = files.iter().map(|file| format!("*** Update File: {file}\n"));
        let patch = format!("*** Begin Patch\n{}*** End Patch", patch.collect::<String>());
        lines.push(json!({ "type": "tool_call", "timestamp": "2026-10-29T06:00:01Z",
            "tool_name": name(&format!("tool{call}")), "tool_call_id": id, "subtype": name("kind"),
            "model": name(&format!("model{call}")), "git_branch": name(&format!("branch{call}")),
            "request_id": name("request"), "usage": { "input_tokens": 1, "output_tokens": 1 },
            "input": { "command": name("cat"), "file_path": name("/"), "patch": patch } }));
        lines.push(json!({ "type": "tool_result", "timestamp": "2026-10-29T06:00:02Z",
            "tool_call_id": id, "text": name("error: the end"), "is_error": true }));
    }
    lines.push(json!({ "type": name("unknown"), "text": name("text") }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn no_answer_on_names_without_end_is_too_large() {
    let env = TestEnv::new();
    env.write("names.jsonl", endless_names());
    env.ingest("names.jsonl");
    sweep(&env);
}

#[test]
fn no_answer_on_real_logs_is_too_large() {
    let Some(logs) = real_logs() else { return };
    sweep(&TestEnv::with_real_logs(&logs));
}

#[test]
fn twenty_sessions_in_the_minimal_format_take_a_thousand_tokens() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    for sort in names("list_sessions", "sort") {
        let listed = client.call("list_sessions", json!({ "format": "minimal", "sort": sort }));
        assert_eq!(listed["data"]["sessions"].list().len(), 20);
        let tokens = listed.to_string().len().div_ceil(BYTES_PER_TOKEN);
        assert!(tokens < 1000, "{sort}: {tokens}");
        assert!(listed["metadata"]["tokens"].as_u64() < Some(1000), "{}", listed["metadata"]);
    }
}
