//! The server over stdio with clients that do not read, that leave, and whose queries are killed.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{Running, TestEnv};

const ENDLESS: &str =
    "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range < b.range";

/// Anything that takes longer hangs.
const HANGS: Duration = Duration::from_secs(60);

/// A server of which every end is in the hands of the test.
struct Raw(Running);

impl Raw {
    fn start(env: &TestEnv) -> Self {
        let mut command = env.command();
        command.args(["mcp", "--rate-limit", "0"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(Running(command.spawn().expect("spawns")))
    }

    /// The most memory that the server had so far.
    fn peak_megabytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.0.id())).expect("runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("known");
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes / 1000
    }

    /// Waits until the process has ended by itself; its exit code.
    fn wait(&mut self) -> i32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.0.try_wait().expect("waits") {
                return status.code().unwrap_or(-1);
            }
            assert!(start.elapsed() < HANGS, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn request(id: usize, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn hello() -> String {
    let info = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    request(0, "initialize", &info)
}

fn call(id: usize, tool: &str, arguments: &Value) -> String {
    request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

/// Requests of many kinds, with small and with large answers.
fn flood(count: usize) -> Vec<String> {
    let mut lines = vec![hello()];
    for id in 1..=count {
        lines.push(match id % 6 {
            0 => request(id, "tools/list", &json!({})),
            1 => request(id, "resources/read", &json!({ "uri": "sessions://ai-help" })),
            2 => call(id, "search_events", &json!({ "query": "the", "limit": 50 })),
            3 => call(id, "query_sql_misspelt", &json!({})),
            4 => call(id, "session_stats", &json!({ "group_by": "tool", "limit": id % 400 + 1 })),
            // No JSON, but a request that is answered.
            _ => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{"a":"\ud800"}}}}"#
            ),
        });
    }
    lines
}

/// Writes lines until the server takes no more for two seconds or all are written; the number that
/// is written by then. The writer goes on by itself.
fn write_unread(server: &mut Raw, lines: Vec<String>) -> (usize, std::thread::JoinHandle<()>) {
    let mut stdin = server.0.0.stdin.take().expect("open");
    let written = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&written);
    let total = lines.len();
    let writer = std::thread::spawn(move || {
        for line in lines {
            if stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).is_err() {
                return;
            }
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let now = written.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        if now == total || since.elapsed() > Duration::from_secs(2) {
            return (now, writer);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_client_that_never_reads_does_not_grow_the_server_and_loses_nothing() {
    let env = TestEnv::with_samples();
    let mut server = Raw::start(&env);
    let count = 4_000;
    let (written, writer) = write_unread(&mut server, flood(count));
    assert!(written < count, "the server stops reading");
    let peak = report_peak(&server);
    assert!(peak < 100, "{peak} MB");
    // When it reads at last, every request is answered once.
    let stdout = BufReader::new(server.0.0.stdout.take().expect("open"));
    let mut ids = BTreeSet::new();
    for line in stdout.lines() {
        let answer: Value = serde_json::from_str(&line.expect("reads")).expect("JSON");
        let id = answer["id"].as_u64().expect("an id");
        assert!(ids.insert(id), "{id} is answered twice");
    }
    writer.join().expect("ends");
    assert_eq!(ids.len(), count + 1);
    assert_eq!(server.wait(), 0);
}

/// What a client sends without asking for an answer is not kept.
#[test]
fn messages_without_an_answer_do_not_grow_the_server() {
    let env = TestEnv::with_samples();
    let mut server = Raw::start(&env);
    let notification = |method: &str, params: &Value| {
        json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
    };
    let kinds = [
        notification("notifications/cancelled", &json!({ "requestId": 12_345_678 })),
        notification("notifications/progress", &json!({ "progressToken": 1, "progress": 1 })),
        notification("notifications/roots/list_changed", &json!({})),
        notification("notifications/unknown", &json!({ "a": "b" })),
        json!({ "jsonrpc": "2.0", "id": 99, "result": {} }).to_string(),
    ];
    let mut stdin = server.0.0.stdin.take().expect("open");
    let mut write = |line: &str| writeln!(stdin, "{line}").expect("is read");
    write(&hello());
    write(&notification("notifications/initialized", &json!({})));
    let mut stdout = BufReader::new(server.0.0.stdout.take().expect("open")).lines();
    let mut answer = || stdout.next().expect("an answer").expect("reads");
    answer();
    let before = report_peak(&server);
    for line in kinds.iter().cycle().take(250_000) {
        write(line);
    }
    write(&request(1, "ping", &json!({})));
    let pong = answer();
    assert!(pong.contains("\"id\":1"), "{pong}");
    let peak = report_peak(&server);
    assert!(peak < before + 20, "{before} MB, then {peak} MB");
    drop(stdin);
    assert_eq!(server.wait(), 0);
}

/// The most memory that the server had so far, also shown with `--nocapture`.
#[expect(clippy::print_stderr, reason = "a figure for the record")]
fn report_peak(server: &Raw) -> u64 {
    let peak = server.peak_megabytes();
    eprintln!("peak memory of the server: {peak} MB");
    peak
}

#[test]
fn large_requests_do_not_grow_the_server() {
    let env = TestEnv::with_samples();
    let mut server = Raw::start(&env);
    // A number in two bytes takes many times that when it is parsed.
    let zeros = |count: usize| json!({ "session_ids": vec![0; count] });
    let long = json!({ "query": "x".repeat(500_000) });
    let mut lines = vec![hello()];
    for id in 1..=300 {
        lines.push(match id % 3 {
            0 => call(id, "list_sessions", &zeros(300_000)),
            1 => call(id, "list_sessions", &zeros(1_900)),
            _ => call(id, "search_events", &long),
        });
    }
    let (_, writer) = write_unread(&mut server, lines);
    let peak = report_peak(&server);
    assert!(peak < 100, "{peak} MB");
    drop(server);
    writer.join().expect("ends");
}

#[test]
fn a_request_with_too_many_values_is_refused_by_its_id() {
    let env = TestEnv::with_samples();
    let mut server = Raw::start(&env);
    let mut stdin = server.0.0.stdin.take().expect("open");
    let ids = vec!["x"; 4_000];
    let lines = [
        hello(),
        call(7, "list_sessions", &json!({ "session_ids": ids })),
        call(8, "list_sessions", &json!({ "limit": 1 })),
    ];
    for line in lines {
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("writes");
    }
    drop(stdin);
    let stdout = BufReader::new(server.0.0.stdout.take().expect("open"));
    let parse = |line: std::io::Result<String>| -> Value {
        serde_json::from_str(&line.expect("reads")).expect("JSON")
    };
    let answers: Vec<Value> = stdout.lines().map(parse).collect();
    let refused = answers.iter().find(|answer| answer["id"] == 7).expect("answered");
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    refused["error"]["message"].shows("2,000 values");
    assert!(answers.iter().any(|answer| answer["id"] == 8 && answer["result"].is_object()));
    assert_eq!(answers.len(), 3);
}

#[test]
fn a_client_that_never_reads_and_leaves_is_noticed() {
    let env = TestEnv::with_samples();
    let mut server = Raw::start(&env);
    let mut stdin = server.0.0.stdin.take().expect("open");
    // More than the server takes at a time, less than fits into the pipe.
    for line in flood(300) {
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("writes");
    }
    std::thread::sleep(Duration::from_millis(500));
    drop(stdin);
    let start = Instant::now();
    // stdout stays open, and nobody reads it.
    assert_eq!(server.wait(), 0);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn answers_to_what_was_asked_before_the_input_ended_are_still_written() {
    let env = TestEnv::with_samples();
    let mut server = Raw::start(&env);
    let mut stdin = server.0.0.stdin.take().expect("open");
    for line in flood(20) {
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("writes");
    }
    drop(stdin);
    let stdout = BufReader::new(server.0.0.stdout.take().expect("open"));
    assert_eq!(stdout.lines().count(), 21);
    assert_eq!(server.wait(), 0);
}

/// The processes that `parent` started and that still run.
fn children(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("lists").flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything.
        let fields: Vec<&str> = text
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().collect())
            .unwrap_or_default();
        let is_child = fields.get(1).and_then(|id| id.parse().ok()) == Some(parent);
        if is_child && fields.first() != Some(&"Z") {
            found.push(id);
        }
    }
    found
}

/// Waits until the query of `parent` is under way in a process of its own.
fn worker_of(parent: u32) -> u32 {
    let start = Instant::now();
    loop {
        for id in children(parent) {
            let arguments = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
            if arguments.contains("sql-worker") {
                // It reads the query and begins.
                std::thread::sleep(Duration::from_millis(300));
                return id;
            }
        }
        assert!(start.elapsed() < HANGS, "no process for the query");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn closing_the_input_ends_a_running_query_and_the_server() {
    let env = TestEnv::with_samples();
    let mut server = Raw::start(&env);
    let mut stdin = server.0.0.stdin.take().expect("open");
    let query = call(1, "query_sql", &json!({ "sql": ENDLESS }));
    for line in [hello(), query] {
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("writes");
    }
    let worker = worker_of(server.0.0.id());
    drop(stdin);
    let start = Instant::now();
    assert_eq!(server.wait(), 0);
    let took = start.elapsed();
    report_time("the server ended after", took);
    // Within a second; a machine may be slow.
    assert!(took < Duration::from_secs(5), "{took:?}");
    while fs::metadata(format!("/proc/{worker}")).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(5), "the query still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[expect(clippy::print_stderr, reason = "a figure for the record")]
fn report_time(what: &str, took: Duration) {
    eprintln!("{what} {took:?}");
}

fn kill(process: u32, signal: &str) {
    let killed = Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(killed.expect("runs").success());
}

#[test]
fn a_query_that_is_killed_from_outside_is_not_said_to_need_memory() {
    let env = TestEnv::with_samples();
    for (signal, number) in [("-KILL", 9), ("-TERM", 15)] {
        let child = env
            .command()
            .args(["--json", "query", ENDLESS])
            .stdout(Stdio::piped())
            .spawn()
            .expect("spawns");
        kill(worker_of(child.id()), signal);
        let output = child.wait_with_output().expect("ends");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let error = &answer["error"];
        error["message"].shows(format!("killed by signal {number}")).lacks("512");
        error.has(json!({"code": "internal_error", "details": {"signal": number}}));
        assert_eq!(output.status.code(), Some(3));
    }
}

#[test]
fn the_server_answers_on_after_a_query_was_killed() {
    let env = TestEnv::with_samples();
    let mut server = Raw::start(&env);
    let mut stdin = server.0.0.stdin.take().expect("open");
    let mut stdout = BufReader::new(server.0.0.stdout.take().expect("open"));
    let mut read = || {
        let mut line = String::new();
        stdout.read_line(&mut line).expect("reads");
        serde_json::from_str::<Value>(&line).expect("JSON")
    };
    let mut send = |line: String| writeln!(stdin, "{line}").expect("writes");
    send(hello());
    read();
    send(call(1, "query_sql", &json!({ "sql": ENDLESS })));
    kill(worker_of(server.0.0.id()), "-KILL");
    let killed = read();
    assert_eq!(killed["result"]["isError"], true);
    killed["result"]["content"][0]["text"].shows("killed by signal");
    send(call(2, "query_sql", &json!({ "sql": "SELECT 1 AS a" })));
    read().has(json!({"result": {"structuredContent": {"data": {"rows": [[1]]}}}}));
}

/// Lines that are no session: the server answers most of them, and none begins one.
fn sessionless_lines() -> Vec<String> {
    let request = |method: &str| request(1, method, &json!({}));
    vec![
        "1".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        "garbage".to_owned(),
        "\"\u{1b}[31m\"".to_owned(),
        request("ping"),
        request("tools/list"),
        request("server/discover"),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\ud800"}}"#.to_owned(),
    ]
}

#[test]
fn a_client_that_begins_no_session_and_never_reads_is_noticed_when_it_leaves() {
    let env = TestEnv::with_samples();
    for line in sessionless_lines() {
        for is_endless in [false, true] {
            // The client is another process, so that its end of the pipe closes while the server
            // does not read.
            let program = if is_endless { "yes" } else { "echo" };
            let client = Command::new(program).arg(&line).stdout(Stdio::piped()).spawn();
            let mut client = Raw(Running(client.expect("spawns")));
            let input = client.0.0.stdout.take().expect("open");
            let mut command = env.command();
            let server = command.arg("mcp").stdin(input).stdout(Stdio::piped()).spawn();
            let mut server = Raw(Running(server.expect("spawns")));
            if is_endless {
                // More answers than fit into the pipe. Lines without an answer never end.
                wait_until_idle(server.0.0.id());
            }
            drop(client);

            let start = Instant::now();
            // stdout stays open, and nobody reads it.
            server.wait();
            let took = start.elapsed();
            report_time(&format!("after {program} {line:?} the server ended after"), took);
            // Within a second; a machine may be slow.
            assert!(took < Duration::from_secs(5), "{program} {line:?}: {took:?}");
        }
    }
}

/// Waits until a process uses no more processor time, because it reads no further, or for two
/// seconds.
fn wait_until_idle(process: u32) {
    let ticks = || {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).expect("runs");
        let (_, rest) = text.rsplit_once(')').expect("a name");
        let fields: Vec<&str> = rest.split_whitespace().collect();
        [fields[11].to_owned(), fields[12].to_owned()]
    };
    let start = Instant::now();
    let mut last = ticks();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = ticks();
        if now == last || start.elapsed() > Duration::from_secs(2) {
            return;
        }
        last = now;
    }
}
