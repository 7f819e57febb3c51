//! `tests/sql_escapes.txt`: every way out of the sandbox is refused, every way to exhaust it is
//! capped, and the program goes on.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use schemas::tool::query::QueryArgs;
use schemas::{ErrorCode, Timestamp, ToolError};
use serde_json::json;
use sql::Sandbox;
use store::Store;
use tools::{Call, Tools};

use crate::env::TestEnv;
use crate::mcp::Client;

/// A program that answers in one process after the other.
fn tools(env: &TestEnv) -> Tools {
    Tools::new(Store::new(env.store())).with_program(PathBuf::from(env!("CARGO_BIN_EXE_sessions")))
}

fn ask(tools: &Tools, sql: &str, seconds: u64) -> Result<usize, ToolError> {
    let call = Call::new(Timestamp::now(), &|| false).with_query_time(Duration::from_secs(seconds));
    let args = QueryArgs { sql: sql.to_owned(), max_rows: None };
    tools.query_sql(&args, &call).map(|answer| answer.data.rows.len())
}

/// How an attempt must end, and its SQL.
fn attempts(env: &TestEnv) -> Vec<(String, String)> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql_escapes.txt");
    let list = std::fs::read_to_string(list).expect("the list");
    let store = Store::new(env.store()).take_snapshot().expect("snapshot");
    let with_events = store.segments().iter().find(|s| s.entry.file_entry("events").is_some());
    let segment = with_events.expect("a segment").table_path("events");
    let attempts = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    attempts
        .map(|line| {
            let (end, sql) = line.split_once('\t').expect("end and SQL");
            (end.to_owned(), sql.replace("SEGMENT", &segment.to_string_lossy()))
        })
        .collect()
}

fn check(tools: &Tools, (end, sql): &(String, String)) {
    let seconds = if end == "time" { 2 } else { 30 };
    let error = match ask(tools, sql, seconds) {
        Ok(rows) => panic!("{rows} rows: {sql}"),
        Err(error) => error,
    };
    let cap = error.details.get("cap").and_then(|cap| cap.as_str()).unwrap_or("");
    let (code, expected) = match end.as_str() {
        "not_allowed" => (ErrorCode::SqlNotAllowed, ""),
        "error" => (ErrorCode::SqlError, ""),
        cap => (ErrorCode::SqlError, cap),
    };
    assert_eq!((error.code, cap), (code, expected), "{sql}: {error}");
    if !cap.is_empty() {
        assert!(error.message.contains("WHERE"), "{sql}: {error} says nothing of what to do");
    }
}

#[test]
fn every_attempt_is_refused_or_capped() {
    let env = TestEnv::with_samples();
    let attempts = attempts(&env);
    assert!(attempts.len() >= 80, "{}", attempts.len());
    std::thread::scope(|scope| {
        for half in attempts.chunks(attempts.len().div_ceil(2)) {
            let tools = tools(&env);
            scope.spawn(move || {
                for attempt in half {
                    check(&tools, attempt);
                }
                assert_eq!(ask(&tools, "SELECT count(*) FROM events", 30), Ok(1));
            });
        }
    });
    for written in ["/tmp/escape.csv", "/tmp/escape.parquet", "/tmp/escape.db", "/tmp/escape"] {
        assert!(!Path::new(written).exists(), "{written}");
    }
}

#[test]
fn a_server_lives_through_it() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    for sql in [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT length(repeat('x', 1000000000))",
        "SELECT histogram(repeat('x', 100000) || x) FROM range(1000000) t(x)",
        "SELECT 1; SELECT 2",
    ] {
        client.fails("query_sql", json!({ "sql": sql }));
    }
    let counted = client.call("query_sql", json!({ "sql": "SELECT count(*) AS n FROM events" }));
    assert_eq!(counted["data"]["columns"], json!([{ "name": "n", "type": "BIGINT" }]));
    assert!(counted["data"]["rows"][0][0].as_u64() > Some(100));
    assert_eq!(client.end(), 0);
}

#[test]
fn nobody_waits_for_a_query_that_was_cancelled() {
    let env = TestEnv::with_samples();
    let tools = tools(&env);
    let call = Call::new(Timestamp::now(), &|| true);
    let endless = "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000000) c";
    let start = std::time::Instant::now();
    let error = tools.query_sql(&QueryArgs { sql: endless.to_owned(), max_rows: None }, &call);
    assert_eq!(error.expect_err("cancelled").code, ErrorCode::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(20), "it ran on");
}

#[test]
fn a_worker_whose_asker_was_killed_ends() {
    let request = json!({
        "sql": "SELECT count(*) FROM range(1000000000000) t(x) WHERE hash(x) = 1",
        "views": [], "files": [], "session_bytes": 0,
        "output": { "format": null, "max_rows": 1, "max_bytes": 1000 },
    });
    let mut worker = Command::new(env!("CARGO_BIN_EXE_sessions"))
        .arg(Sandbox::COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut input = worker.stdin.take().expect("its input");
    writeln!(input, "{request}").expect("written");
    std::thread::sleep(Duration::from_millis(500));
    assert!(worker.try_wait().expect("is asked").is_none(), "it works while somebody waits");
    drop(input);
    let end = Instant::now() + Duration::from_secs(10);
    while worker.try_wait().expect("is asked").is_none() {
        if Instant::now() > end {
            let _ = worker.kill();
            panic!("it works for nobody");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
