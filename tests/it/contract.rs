//! The contract over the rmcp client: every error code, the metadata, limits, labels.

use std::collections::BTreeSet;
use std::fs::{self, File};

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use schemas::tool::search::SearchArgs;
use schemas::{ErrorCode, Timestamp};
use serde_json::{Value, json};
use sessions::server::ServerOptions;
use store::{Store, Verify};
use tokio::runtime::Runtime;
use tools::{Call, Freshness, Refresh, Tools};

use crate::checks::{Checks, JsonChecks};
use crate::env::{TestEnv, samples};
use crate::freshness::until;
use crate::mcp::Client;
use crate::work::{append, prompt};

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

/// The client of the official library, called from plain code.
pub(crate) struct Rmcp {
    runtime: Runtime,
    client: RunningService<RoleClient, ()>,
}

impl Rmcp {
    /// Connects to a server that is started with these flags.
    pub(crate) fn start(env: &TestEnv, flags: &[&str]) -> Self {
        let mut command = env.command();
        command.arg("mcp").args(flags);
        Self::command(command)
    }

    pub(crate) fn command(command: std::process::Command) -> Self {
        let runtime = runtime();
        let client = runtime.block_on(async {
            let process = tokio::process::Command::from(command);
            ().serve(TokioChildProcess::new(process).expect("spawns")).await.expect("connects")
        });
        Self { runtime, client }
    }

    /// Connects to a server inside this process.
    pub(crate) fn inside(tools: Tools, options: ServerOptions) -> Self {
        let runtime = runtime();
        let client = runtime.block_on(async {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let (read, write) = tokio::io::split(theirs);
            tokio::spawn(sessions::server::serve_streams(
                crate::env::parts(tools, options),
                read,
                write,
            ));
            ().serve(ours).await.expect("connects")
        });
        Self { runtime, client }
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        let mut call = CallToolRequestParams::new(tool.to_owned());
        call.arguments = arguments.as_object().cloned();
        self.runtime.block_on(self.client.call_tool(call)).expect("answers")
    }

    /// The answer of a call that must succeed.
    pub(crate) fn ok(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone());
        assert_ne!(result.is_error, Some(true), "{tool} {arguments}: {result:?}");
        result.structured_content.expect("structured")
    }

    /// The error of a call that must fail.
    pub(crate) fn fails(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone());
        assert_eq!(result.is_error, Some(true), "{tool} {arguments}: {result:?}");
        let text = &result.content[0].as_text().expect("text").text;
        let failure: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(failure["status"], "error");
        failure["error"].clone()
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime")
}

/// Looks at logs by failing.
struct Broken;

impl Refresh for Broken {
    fn refresh(&self, _wait: std::time::Duration) {
        panic!("a bug");
    }

    fn current_freshness(&self) -> Freshness {
        Freshness::default()
    }
}

/// Errors are seen by the code, and whether a later call may succeed.
struct Seen(BTreeSet<String>);

impl Seen {
    fn check(&mut self, error: &Value, code: &str, says: &str) {
        assert_eq!(error["code"], code, "{error}");
        error["message"].shows(says);
        let passing = ["search_timeout", "cancelled", "rate_limit_exceeded", "store_busy"];
        let retryable = passing.contains(&code);
        assert_eq!(error["retryable"], retryable, "{error}");
        self.0.insert(code.to_owned());
    }
}

#[test]
fn every_error_code_is_met_and_says_how_to_go_on() {
    let env = TestEnv::with_samples();
    let mut seen = Seen(BTreeSet::new());
    let client = Rmcp::start(&env, &["--allow-labels"]);
    let details = "get_session_details";
    for (tool, arguments, code, says) in [
        ("search_events", json!({ "query": "x", "limit": 0 }), "invalid_argument", "1-50"),
        ("search_events", json!({ "query": "\"open" }), "invalid_query", "not closed"),
        ("search_events", json!({ "query": "x", "cursor": "z" }), "invalid_cursor", "next_cursor"),
        (details, json!({ "session_id": "9" }), "invalid_session_id", "3 characters"),
        ("get_event_details", json!({ "event_ids": ["x"] }), "invalid_event_id", "session_id"),
        (
            details,
            json!({ "session_id": MAIN, "detail_level": "turn" }),
            "invalid_detail_level",
            "Did you mean 'turns'?",
        ),
        (details, json!({ "session_id": "01a" }), "ambiguous_session_prefix", "more characters"),
        (details, json!({ "session_id": "9ae82b3b" }), "session_not_found", MAIN),
        (
            "get_event_details",
            json!({ "event_ids": ["9ae82b3a:9999"] }),
            "event_not_found",
            "The events of session 9ae82b3a",
        ),
        ("query_sql", json!({ "sql": "SELECT nonsense FROM events" }), "sql_error", "nonsense"),
        ("query_sql", json!({ "sql": "DROP VIEW events" }), "sql_not_allowed", "SELECT"),
    ] {
        seen.check(&client.fails(tool, arguments), code, says);
    }
    let lock = File::create(env.store().join("labels.lock")).expect("creates");
    lock.lock().expect("locks");
    let label = json!({ "updates": [{ "session_id": MAIN, "add": ["x"] }] });
    seen.check(&client.fails("update_session_labels", label), "store_busy", "try again");
    drop((lock, client));

    let hasty = Rmcp::start(&env, &["--time-limit", "0"]);
    let error = hasty.fails("search_events", json!({ "query": "budget sort:relevance" }));
    seen.check(&error, "search_timeout", "Narrow it");
    let stopped = hasty.fails(details, json!({ "session_id": MAIN }));
    seen.check(&stopped, "search_timeout", "took too long");
    let endless =
        "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range < b.range";
    let stopped = hasty.fails("query_sql", json!({ "sql": endless }));
    seen.check(&stopped, "sql_error", "was stopped");

    let limited = Rmcp::start(&env, &["--rate-limit", "2"]);
    let first = limited.call("list_sessions", json!({ "limit": 1 }));
    assert_eq!(meta(&first)["rate_limit_remaining"], 1);
    limited.ok("list_sessions", json!({ "limit": 2 }));
    let error = limited.fails("list_sessions", json!({ "limit": 3 }));
    seen.check(&error, "rate_limit_exceeded", "Wait");
    assert!(error["details"]["retry_after_ms"].as_u64().is_some_and(|ms| ms > 0), "{error}");

    let nothing = TestEnv::new();
    let empty = Rmcp::start(&nothing, &[]);
    seen.check(&empty.fails("list_sessions", json!({})), "index_empty", "sessions ingest");

    let tools = Tools::new(Store::new(env.store())).with_refresh(std::sync::Arc::new(Broken));
    let broken = Rmcp::inside(tools, ServerOptions::default());
    for _ in 0..2 {
        let error = broken.fails("list_sessions", json!({}));
        seen.check(&error, "internal_error", "Other calls are not affected");
    }

    // A client gets no answer to a call that it cancelled; programs that use the crate do.
    let tools = Tools::new(Store::new(env.store()));
    let words = SearchArgs { query: "budget".to_owned(), ..SearchArgs::default() };
    let stopped = tools.search_events(&words, &Call::new(Timestamp(0), &|| true));
    let stopped = serde_json::to_value(stopped.expect_err("cancelled")).expect("JSON");
    seen.check(&stopped, "cancelled", "cancelled");

    let segments = fs::read_dir(env.store().join("segments")).expect("segments");
    for path in segments.map(|entry| entry.expect("entry").path().join("events.parquet")) {
        env.write(&path, b"PAR1");
    }
    let damaged = Rmcp::start(&env, &[]);
    let error = damaged.fails("search_events", json!({ "query": "budget" }));
    seen.check(&error, "store_damaged", "sessions ingest");

    crate::env::replace_manifest(&env.store(), json!({ "schema_version": 9999 }));
    let newer = Rmcp::start(&env, &[]);
    let error = newer.fails("search_events", json!({ "query": "budget" }));
    seen.check(&error, "store_unavailable", "Update sessions");

    let all: BTreeSet<String> = ErrorCode::NAMES.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(seen.0, all);
}

#[test]
fn validation_errors_name_the_field_its_value_and_what_is_valid() {
    let env = TestEnv::with_samples();
    let client = Rmcp::start(&env, &[]);
    let error =
        client.fails("search_events", json!({ "query": "x", "event_type": ["user", "tool_cal"] }));
    let details = &error["details"];
    details.has(json!({"field": "event_type", "value": "tool_cal"}));
    assert_eq!(details["valid"].list().len(), 7);
    assert_eq!(details["did_you_mean"], "tool_call");
    let error = client.fails("list_sessions", json!({ "labels": "x" }));
    assert_eq!(error["details"]["did_you_mean"], "label");
    let mut raw = Client::legacy(&env);
    let unknown = raw.request("tools/call", json!({ "name": "search_event", "arguments": {} }));
    unknown["error"]["message"].shows("Did you mean search_events?");
}

#[test]
fn arguments_of_a_search_narrow_together() {
    let env = TestEnv::with_samples();
    let client = Rmcp::start(&env, &[]);
    for (name, value, found) in [
        ("project", "/home/mira/code/harbor/", true),
        ("project", "nonsense", false),
        ("provider", "claude", true),
        ("provider", "codex", false),
    ] {
        let mut query = json!({ "query": "budget", "session_id": MAIN });
        query[name] = json!(value);
        let answer = client.ok("search_events", query);
        assert_eq!(answer["data"]["matches"] != json!([]), found, "{name} {value}: {answer}");
    }
}

/// The metadata that goes alongside a result.
fn meta(result: &CallToolResult) -> Value {
    serde_json::to_value(result).expect("serialises")["_meta"].clone()
}

const DEBUG: &[&str] = &[
    "request_id",
    "tool_version",
    "schema_version",
    "adapter",
    "tokens_input",
    "tokens_output",
    "api_calls_made",
    "rate_limit_remaining",
    "confidence",
    "threshold",
    "tool_context",
];

#[test]
fn debug_metadata_are_next_to_the_result_and_inside_on_request() {
    let env = TestEnv::with_samples();
    let core = Rmcp::start(&env, &[]);
    let full = Rmcp::start(&env, &["--metadata", "full"]);
    let query = json!({ "query": "retry budget sort:relevance" });
    for (client, inside) in [(&core, false), (&full, true)] {
        let result = client.call("search_events", query.clone());
        let meta = meta(&result);
        let answer = result.structured_content.expect("structured");
        for field in DEBUG {
            assert!(!meta[field].is_null(), "{field}: {meta}");
            // A ranked search always has them.
            let is_core = ["confidence", "threshold"].contains(field);
            assert_eq!(answer["metadata"].get(field).is_some(), inside || is_core, "{field}");
        }
        meta.has(json!({
            "adapter": "mcp_stdio", "tokens_output": answer["metadata"]["tokens"],
            "confidence": answer["data"]["matches"][0]["confidence"],
        }));
        for field in ["confidence", "threshold"] {
            assert_eq!(answer["metadata"][field], meta[field]);
        }
        assert!(answer["metadata"]["newest_event"].is_string());
    }
    for query in ["retry budget", "nosuchwordanywhere sort:relevance"] {
        let answer = core.ok("search_events", json!({ "query": query }));
        let is_ranked = query.contains("relevance");
        assert_eq!(answer["metadata"].get("threshold").is_some(), is_ranked, "{query}");
        let confidence = answer["metadata"].get("confidence");
        assert_eq!(confidence, is_ranked.then_some(&json!(0.0)), "{query}");
    }
    let failed = core.call("list_sessions", json!({ "limit": 0 }));
    let text = failed.content[0].as_text().expect("text").text.clone();
    assert_eq!(meta(&failed)["tokens_output"], json!(text.len().div_ceil(4)));
    assert!(meta(&failed)["request_id"].is_string());
    assert_eq!(env.json(["search", "budget", "--metadata", "full"])["metadata"]["adapter"], "cli");
    assert!(env.json(["search", "budget"])["metadata"].get("adapter").is_none());
}

#[test]
fn the_same_call_is_answered_from_memory_until_something_changes() {
    let env = TestEnv::with_samples();
    let client = Rmcp::start(&env, &["--allow-labels"]);
    let ask = || client.ok("list_sessions", json!({ "label": "bug" }));
    let first = ask();
    assert_eq!(first["metadata"]["cached"], false);
    until(|| {
        let again = ask();
        assert_eq!(first["data"], again["data"]);
        again["metadata"]["cached"] == true
    });
    let label = json!({ "updates": [{ "session_id": MAIN, "add": ["bug"] }] });
    for _ in 0..2 {
        let done = client.ok("update_session_labels", label.clone());
        assert_eq!(done["metadata"]["cached"], false, "what writes is never kept");
    }
    let third = ask();
    assert_eq!(third["metadata"]["cached"], false);
    assert_eq!(third["data"]["sessions"][0]["session_id"], MAIN);
    let logs = env.path("logs");
    append(&logs, 1, &prompt(1, 1, "one more"));
    env.ingest(&logs);
    assert_eq!(ask()["metadata"]["cached"], false, "another generation");
}

#[test]
fn the_order_of_arguments_makes_no_other_call() {
    let env = TestEnv::with_samples();
    let client = Rmcp::start(&env, &[]);
    let orders = ["{\"project\":\"harbor\",\"limit\":2}", "{\"limit\":2,\"project\":\"harbor\"}"];
    let [one, other] = orders.map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
    until(|| client.ok("list_sessions", one.clone())["metadata"]["cached"] == true);
    assert_eq!(client.ok("list_sessions", other)["metadata"]["cached"], true);
}

#[test]
fn masked_secrets_are_said() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    append(&logs, 1, &prompt(1, 1, "the key [REDACTED:github_token] and [REDACTED:jwt]"));
    env.ingest(&logs);
    let answer = Rmcp::start(&env, &[]).ok("search_events", json!({ "query": "key" }));
    let warnings = answer["warnings"].list();
    let warning = warnings.iter().find(|warning| warning["code"] == "REDACTED").expect("a word");
    warning["message"].shows("github_token 1, jwt 1");
}

/// Ids of the sessions in an answer, each once.
fn sessions_of(answer: &Value, list: &str) -> BTreeSet<String> {
    let items = answer["data"][list].list();
    let ids = items.iter().map(|item| item["session_id"].as_str().or(item["event_id"].as_str()));
    ids.map(|id| id.expect("id").split(':').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn labels_are_set_one_by_one_found_and_kept() {
    let env = TestEnv::with_samples();
    let updates = json!({ "updates": [
        { "session_id": "9ae82b3a", "add": ["Bug", "retry"], "note": format!("the fix ghp_{}", "a8Kd93mXq0Zt7LwPbR2vNcY5sEuH1jGf4oT6") },
        { "session_id": "01a", "add": ["x"] },
        { "session_id": "nowhere", "add": ["x"] },
        { "session_id": "14612321", "add": ["a,b"] },
        { "session_id": "14612321" },
        { "session_id": "14612321", "add": ["bug"], "remove": ["none"] },
    ] });
    Rmcp::start(&env, &[]).fails("update_session_labels", updates.clone()).has(json!({
        "details": {"needs": "--allow-labels"},
    }));

    let client = Rmcp::start(&env, &["--allow-labels"]);
    let answer = client.ok("update_session_labels", updates);
    assert_eq!(
        answer["data"]["succeeded"][0],
        json!({ "session_id": MAIN, "labels": ["Bug", "retry"] })
    );
    assert_eq!(answer["data"]["succeeded"].list().len(), 2);
    let codes =
        ["ambiguous_session_prefix", "session_not_found", "invalid_argument", "invalid_argument"];
    assert_eq!(answer["data"]["failed"].each("code"), codes);
    let both = sessions_of(&answer, "succeeded");

    let found = client.ok("search_events", json!({ "query": "label:BUG", "limit": 50 }));
    assert!(!sessions_of(&found, "matches").is_empty());
    assert!(sessions_of(&found, "matches").is_subset(&both));
    let part = client.ok("search_events", json!({ "query": "label:bu" }));
    assert_eq!(part["data"]["matches"], json!([]), "a part of a label is none");
    let others = client.ok("search_events", json!({ "query": "budget -label:bug", "limit": 50 }));
    assert!(sessions_of(&others, "matches").is_disjoint(&both));
    let either = client.ok("search_events", json!({ "query": "label:none,retry budget" }));
    assert_eq!(sessions_of(&either, "matches"), BTreeSet::from([MAIN.to_owned()]));

    let listed = client.ok("list_sessions", json!({ "label": "bug" }));
    assert_eq!(sessions_of(&listed, "sessions"), both);
    client.ok("get_session_details", json!({ "session_id": MAIN })).has(json!({
        "data": {"session": {"labels": ["Bug", "retry"], "note": "the fix [REDACTED:github_token]"}},
    }));
}

#[test]
fn labels_outlive_ingests_merges_and_damage_and_wait_for_none() {
    let env = TestEnv::with_samples();
    env.run(["label", "9ae82b3a", "14612321", "--add", "bug", "--note", "why", "--quiet"]).ok();
    let store = Store::new(env.store());
    let writer = store.open_writer(Verify::Some).expect("lock");
    env.run(["label", "14612321", "--add", "later"]).ok();
    drop(writer);
    let logs = env.path("logs");
    for round in 0..9 {
        append(&logs, 1, &prompt(1, round, "more"));
        env.ingest(&logs);
    }
    fs::remove_dir_all(env.store().join("segments")).expect("damages");
    env.ingest(samples());
    let listed = env.json(["list", "--label", "bug", "--format", "full"]);
    let sessions = listed["data"]["sessions"].list();
    assert_eq!(sessions.len(), 2);
    assert!(sessions.iter().all(|session| session["note"] == "why"), "{sessions:?}");
    assert_eq!(
        env.json(["list", "--label", "later"])["data"]["sessions"][0]["labels"],
        json!(["bug", "later"])
    );
    env.run(["list", "--label", "bug"]).shows("labels: bug");
    let snapshot = Store::new(env.store()).take_snapshot().expect("snapshot");
    let rows: Vec<_> = snapshot.labels().rows().filter_map(|row| row.label).collect();
    assert_eq!(rows, ["bug", "later", "bug"]);
    env.run(["label", "9ae82b3a", "--remove", "BUG", "--note", ""]).ok();
    // Every log was read again.
    env.run(["label", "nowhere", "--add", "x", "--quiet"]).fails(1).lacks("was damaged");
    assert_eq!(env.json(["list", "--label", "bug"])["data"]["sessions"].list().len(), 1);
}

#[test]
fn labels_that_cannot_be_read_are_said_and_left_alone() {
    let env = TestEnv::with_samples();
    env.write("store/labels.json", "{");
    let answer = env.json(["list", "--limit", "1"]);
    assert_eq!(answer["warnings"][0]["code"], "LABELS_UNREADABLE");
    env.run(["label", MAIN, "--add", "x"]).fails(3).says("labels.json");
    assert_eq!(env.read("store/labels.json"), "{");
}
