//! The server over stdio: both protocol eras, the rmcp client, errors, purity of stdout.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;

/// A client that speaks plain JSON-RPC, line by line.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
    /// Sent with every request in the stateless era.
    meta: Option<Value>,
}

impl Client {
    /// Begins a session as clients of 2025-11-25 do.
    pub(crate) fn legacy(env: &TestEnv) -> Self {
        Self::legacy_with(env, &[])
    }

    /// The same with a server that is started with these flags.
    pub(crate) fn legacy_with(env: &TestEnv, flags: &[&str]) -> Self {
        let mut client = Self::spawn(env, flags);
        let info = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        assert_eq!(client.request("initialize", info)["result"]["protocolVersion"], "2025-11-25");
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        client
    }

    /// Speaks 2026-07-28: no handshake, every request says what it is.
    pub(crate) fn modern(env: &TestEnv) -> Self {
        Self::modern_with(env, &[])
    }

    /// The same with a server that is started with these flags.
    pub(crate) fn modern_with(env: &TestEnv, flags: &[&str]) -> Self {
        let mut client = Self::spawn(env, flags);
        client.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        }));
        client
    }

    /// Announces capabilities with every request from now on, in the era of 2026-07-28.
    pub(crate) fn announce(&mut self, capabilities: &Value) {
        let meta = self.meta.as_mut().expect("a client of 2026-07-28");
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    }

    pub(crate) fn spawn(env: &TestEnv, flags: &[&str]) -> Self {
        let mut child = env
            .command()
            .arg("mcp")
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("spawns");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        Self { child, stdin, stdout, next: 1, meta: None }
    }

    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("writes");
    }

    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("reads");
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("stdout is not the protocol: {error}: {line:?}"))
    }

    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> Value {
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let id = self.next;
        self.next += 1;
        crate::outcome::remember(format!("{method} {params}, without an answer"));
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        loop {
            let answer = self.read();
            if answer["id"] == id {
                crate::outcome::remember(format!("{method} {params}\n{answer:#}"));
                return answer;
            }
        }
    }

    /// Calls a tool; the structured answer, which must equal the text.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        assert_ne!(result["isError"], true);
        let text: Value = serde_json::from_str(result["content"][0]["text"].text()).expect("JSON");
        assert_eq!(text, result["structuredContent"]);
        text
    }

    /// All pages of an answer.
    pub(crate) fn pages(&mut self, tool: &str, mut arguments: Value) -> Vec<Value> {
        let mut pages = vec![self.call(tool, arguments.clone())];
        while let Some(cursor) = pages[pages.len() - 1]["pagination"]["next_cursor"].as_str() {
            arguments["cursor"] = json!(cursor);
            pages.push(self.call(tool, arguments.clone()));
        }
        pages
    }

    /// Calls a tool that must fail; the error.
    pub(crate) fn fails(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        assert_eq!(result["isError"], true);
        assert!(result.get("structuredContent").is_none());
        let text: Value = serde_json::from_str(result["content"][0]["text"].text()).expect("JSON");
        assert_eq!(text["status"], "error");
        text["error"].clone()
    }

    /// Closes stdin and waits.
    pub(crate) fn end(mut self) -> i32 {
        drop(self.stdin.take());
        self.child.wait().expect("ends").code().unwrap_or(-1)
    }
}

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

/// Every tool with arguments that give something on the samples, and the same on the command line.
fn calls() -> Vec<(&'static str, Value, Vec<String>)> {
    let words = |text: &str| text.split('|').map(str::to_owned).collect();
    vec![
        (
            "search_events",
            json!({ "query": "budget", "event_type": ["user", "message"], "provider": "claude", "until": "2026-12-01", "sort": "oldest", "context": 1, "limit": 3 }),
            words(
                "search|budget|--event-type|user|--event-type|message|--provider|claude|--until|2026-12-01|--sort|oldest|--context|1|--limit|3",
            ),
        ),
        (
            "search_events",
            json!({ "query": "\"assertion failed\"", "since": "2026-10-01", "project": "harbor" }),
            words("search|\"assertion failed\"|--since|2026-10-01|--project|harbor"),
        ),
        (
            "search_events",
            json!({ "query": "budget", "session_id": "9ae82b3a" }),
            words("search|budget|--session-id|9ae82b3a"),
        ),
        (
            "search_sessions",
            json!({ "query": "retry budget of a clone", "project": "harbor", "until": "2026-12-01", "limit": 2 }),
            words("find|retry budget of a clone|--project|harbor|--until|2026-12-01|--limit|2"),
        ),
        (
            "get_event_details",
            json!({ "event_ids": [format!("{MAIN}:5"), format!("{MAIN}:14"), "9ae82b3a:999"] }),
            vec!["event".into(), format!("{MAIN}:5"), format!("{MAIN}:14"), "9ae82b3a:999".into()],
        ),
        (
            "get_event_details",
            json!({ "event_ids": ["9ae82b3a:14"], "fields": ["text", "tool"], "max_chars": 100 }),
            words("event|9ae82b3a:14|--fields|text|--fields|tool|--max-chars|100"),
        ),
        (
            "list_sessions",
            json!({ "format": "minimal", "sort": "oldest", "limit": 5, "machine": "pie", "user": "mir" }),
            words("list|--format|minimal|--sort|oldest|--limit|5|--machine|pie|--user|mir"),
        ),
        (
            "list_sessions",
            json!({ "session_ids": ["9ae82b3a", "nowhere"], "format": "full" }),
            words("list|--session-id|9ae82b3a|--session-id|nowhere|--format|full"),
        ),
        ("get_session_details", json!({ "session_id": "9ae82b3a" }), words("show|9ae82b3a")),
        (
            "get_session_details",
            json!({ "session_id": "9ae82b3a", "detail_level": "turns", "turns": "2-3" }),
            words("show|9ae82b3a|--detail-level|turns|--turns|2-3"),
        ),
        (
            "get_session_details",
            json!({ "session_id": "9ae82b3a", "detail_level": "steps", "include_reasoning": true }),
            words("show|9ae82b3a|--detail-level|steps|--include-reasoning"),
        ),
        (
            "get_session_details",
            json!({ "session_id": "9ae82b3a", "detail_level": "full", "limit": 5, "last": 3 }),
            words("show|9ae82b3a|--detail-level|full|--limit|5|--last|3"),
        ),
        (
            "analyze_session",
            json!({ "query": "assertion failed: budget.remaining() == 3", "tool": "cargo" }),
            words("analyze|--query|assertion failed: budget.remaining() == 3|--tool|cargo"),
        ),
        (
            "tool_metadata",
            json!({ "tools": ["search_events", "nonsense"] }),
            words("tools|search_events|nonsense"),
        ),
        (
            "analyze_session",
            json!({ "session_id": "9ae82b3a", "checks": ["failures", "context"], "limit": 1 }),
            words("analyze|9ae82b3a|--checks|failures|--checks|context|--limit|1"),
        ),
        ("analyze_session", json!({ "project": "harbor" }), words("analyze|--project|harbor")),
        (
            "query_sql",
            json!({ "sql": "SELECT tool_name, files FROM tool_calls ORDER BY event_id", "max_rows": 9 }),
            words("query|SELECT tool_name, files FROM tool_calls ORDER BY event_id|--max-rows|9"),
        ),
        (
            "session_stats",
            json!({ "group_by": ["day", "model"], "provider": "claude", "until": "2026-12-01" }),
            words("stats|--by|day,model|--provider|claude|--until|2026-12-01"),
        ),
        (
            "session_stats",
            json!({ "group_by": ["hour"], "timezone": "Asia/Tokyo" }),
            words("stats|--by|hour|--timezone|Asia/Tokyo"),
        ),
        (
            "session_stats",
            json!({ "group_by": ["file"], "project": "harbor", "sort": "errors", "limit": 3 }),
            words("stats|--by|file|--project|harbor|--sort|errors|--limit|3"),
        ),
    ]
}

#[test]
fn tools_answer_in_both_eras_as_their_schemas_and_the_command_line_say() {
    let env = TestEnv::with_samples();
    for mut client in [Client::legacy(&env), Client::modern(&env)] {
        let listed = client.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].list().to_vec();
        for (name, arguments, words) in calls() {
            let tool = tools.iter().find(|tool| tool["name"] == name).expect(name);
            assert!(jsonschema::is_valid(&tool["inputSchema"], &arguments), "{name} {arguments}");
            let answer = client.call(name, arguments.clone());
            assert!(jsonschema::is_valid(&tool["outputSchema"], &answer), "{name} {answer}");
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let printed = env.json(&words);
            for part in ["status", "data", "pagination", "hint", "warnings"] {
                assert_eq!(answer.get(part), printed.get(part), "{name} {arguments}: {part}");
            }
            for part in ["tokens", "results_total", "results_returned", "index_size"] {
                assert_eq!(
                    answer["metadata"].get(part),
                    printed["metadata"].get(part),
                    "{name} {arguments}: {part}"
                );
            }
            assert!(
                answer["metadata"]["results_returned"].as_u64() > Some(0),
                "{name} {arguments}"
            );
        }
        assert_eq!(client.end(), 0);
    }
}

#[test]
fn discovery_and_annotations() {
    let env = TestEnv::with_samples();
    let mut client = Client::modern(&env);
    let found = client.request("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].list();
    for version in ["2025-11-25", "2026-07-28"] {
        assert!(versions.iter().any(|v| v == version), "{found}");
    }
    assert!(found["result"]["instructions"].as_str().is_some_and(|text| text.len() < 2048));
    let listed = client.request("tools/list", json!({}));
    assert!(listed["result"]["ttlMs"].as_u64() > Some(0));
    let tools = &listed["result"]["tools"];
    assert!(listed["result"].to_string().len() <= 16_000, "4,000 tokens for the whole answer");
    let mut with_labels = Client::legacy_with(&env, &["--allow-labels"]);
    let all = with_labels.request("tools/list", json!({}));
    assert!(all["result"]["tools"].as_array().map(Vec::len) > tools.as_array().map(Vec::len));
    assert!(all["result"].to_string().len() <= 16_000, "{}", all["result"].to_string().len());
    assert!(!all.to_string().contains("never instructions"), "the instructions say it once");
    for tool in tools.as_array().expect("tools") {
        let hints = &tool["annotations"];
        let writes = tool["name"] == "update_session_labels";
        assert_eq!(hints["readOnlyHint"], !writes, "{tool}");
        for hint in ["destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(hints[hint].is_boolean(), "{tool}");
        }
        assert!(
            tool["title"].is_string()
                && tool["description"].as_str().is_some_and(|d| d.len() < 2048)
        );
    }
}

#[test]
fn errors_are_results_that_say_how_to_go_on() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    let cases = [
        ("search_events", json!({}), "invalid_argument", "query"),
        ("search_events", json!({ "query": "x", "colour": 1 }), "invalid_argument", "colour"),
        (
            "search_events",
            json!({ "query": "x", "event_type": "tool" }),
            "invalid_argument",
            "tool_call",
        ),
        ("search_events", json!({ "query": "x", "limit": 0 }), "invalid_argument", "1-50"),
        ("search_events", json!({ "query": "x", "since": "someday" }), "invalid_argument", "7d"),
        ("search_events", json!({ "query": "" }), "invalid_query", "nothing to search for"),
        (
            "search_events",
            json!({ "query": "x", "cursor": "zzz" }),
            "invalid_cursor",
            "next_cursor",
        ),
        (
            "search_events",
            json!({ "query": "x", "session_id": "ffffffff" }),
            "session_not_found",
            "list_sessions",
        ),
        ("get_event_details", json!({ "event_ids": [] }), "invalid_argument", "1-50"),
        ("get_event_details", json!({ "event_ids": ["x"] }), "invalid_event_id", "session_id"),
        (
            "get_event_details",
            json!({ "event_ids": ["9ae82b3a:9999"] }),
            "event_not_found",
            "search_events",
        ),
        (
            "get_session_details",
            json!({ "session_id": "01a" }),
            "ambiguous_session_prefix",
            "more characters",
        ),
        ("get_session_details", json!({ "session_id": "9" }), "invalid_session_id", "3 characters"),
        (
            "get_session_details",
            json!({ "session_id": "9ae82b3a", "detail_level": "all" }),
            "invalid_detail_level",
            "summary",
        ),
        (
            "get_session_details",
            json!({ "session_id": "9ae82b3a", "turns": "x" }),
            "invalid_argument",
            "3-5",
        ),
        ("list_sessions", json!({ "sort": "size" }), "invalid_argument", "recent"),
        ("analyze_session", json!({ "checks": "all" }), "invalid_argument", "oversized"),
        (
            "analyze_session",
            json!({ "session_id": "ffffffff" }),
            "session_not_found",
            "list_sessions",
        ),
    ];
    for (tool, arguments, code, word) in cases {
        let error = client.fails(tool, arguments.clone());
        assert_eq!(error["code"], code, "{tool} {arguments}: {error}");
        error["message"].shows(word);
    }
    let unknown = client.request("tools/call", json!({ "name": "search", "arguments": {} }));
    unknown["error"]["message"].shows("search_events");
    let ignored = client.call(
        "get_session_details",
        json!({ "session_id": "9ae82b3a", "include_reasoning": true }),
    );
    assert_eq!(ignored["warnings"][0]["code"], "PARAMETER_IGNORED");
    let empty = TestEnv::new();
    assert_eq!(Client::legacy(&empty).fails("list_sessions", json!({}))["code"], "index_empty");
}

#[test]
fn garbage_does_not_end_the_server_or_reach_stdout() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    for line in [
        "",
        "not json",
        "{",
        "[]",
        "42",
        "null",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"no/such\"}",
    ] {
        client.send(line);
    }
    client.send(&format!("{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\",\"params\":{{\"name\":\"search_events\",\"arguments\":{{\"query\":\"{}\"}}}}}}", "x".repeat(1 << 20)));
    // Every line read on the way is parsed as the protocol.
    let answer = client.call("list_sessions", json!({ "limit": 1 }));
    assert_eq!(answer["data"]["sessions"].list().len(), 1);
    assert_eq!(client.end(), 0);
}

#[test]
fn the_rmcp_client_gets_the_same() {
    use rmcp::ServiceExt as _;
    use rmcp::model::CallToolRequestParams;
    use rmcp::transport::TokioChildProcess;
    let env = TestEnv::with_samples();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(async {
        let mut command = tokio::process::Command::from(env.command());
        command.arg("mcp");
        let client =
            ().serve(TokioChildProcess::new(command).expect("spawns")).await.expect("connects");
        let tools = client.list_all_tools().await.expect("lists");
        // The tool that changes labels is listed only with its flag.
        assert_eq!(tools.len(), schemas::tool::TOOLS.len() - 1);
        let mut call = CallToolRequestParams::new("search_events");
        call.arguments = json!({ "query": "budget", "limit": 2 }).as_object().cloned();
        let result = client.call_tool(call).await.expect("answers");
        let data = result.structured_content.expect("structured");
        assert_eq!(data["data"]["matches"].list().len(), 2);
        client.cancel().await.expect("ends");
    });
}
