//! Raw bytes on the server's stdin, drawn at random and the same in every run: whatever comes, it
//! lives, answers, says nothing but the protocol, and ends well when its client goes.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::{Random, TestEnv};

/// An answer that takes longer does not come.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A client that sends bytes.
struct Raw {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Lines of stdout, read while writing: a full pipe would stop both sides.
    said: Receiver<Vec<u8>>,
    /// Ids that were sent, as JSON.
    asked: HashSet<String>,
    /// Ids that were answered, in order.
    answered: Vec<Value>,
    pings: usize,
}

impl Raw {
    fn start(env: &TestEnv) -> Self {
        let mut command = env.command();
        command.args(["mcp", "--rate-limit", "0"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("spawns");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (tell, said) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                if tell.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, said, asked: HashSet::new(), answered: Vec::new(), pings: 0 }
    }

    /// Begins a session.
    fn greet(&mut self) {
        self.send(hello().to_string().as_bytes());
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    /// Sends bytes as they are; what in them is a message may be answered.
    fn write(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(message) = serde_json::from_slice::<Value>(line.trim_ascii()) {
                self.asked.insert(message["id"].to_string());
            }
        }
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).expect("the server reads");
    }

    fn send(&mut self, line: &[u8]) {
        self.write(&[line, b"\n"].concat());
    }

    /// The next message, if there is one; it must be one of the protocol.
    fn read(&mut self) -> Option<Value> {
        let line = match self.said.recv_timeout(TIMEOUT) {
            Ok(line) => line,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(error) => panic!("no answer: {error}"),
        };
        let shown = String::from_utf8_lossy(&line);
        let message: Value = serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("stdout is not the protocol: {error}: {shown}"));
        assert_eq!(message["jsonrpc"], "2.0", "{shown}");
        if message.get("method").is_some() {
            assert!(message.get("id").is_none(), "the server asks nothing: {shown}");
        } else {
            let (result, error) = (message.get("result"), message.get("error"));
            assert!(result.is_some() != error.is_some(), "{shown}");
            let id = &message["id"];
            // An error may be about something that has no id, or of which the id is damaged too.
            let unread = error.is_some_and(|error| id.is_null() || error["code"] == -32700);
            assert!(unread || self.asked.contains(&id.to_string()), "nobody asked: {shown}");
            self.answered.push(id.clone());
        }
        Some(message)
    }

    /// Reads until this request is answered.
    fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.read().expect("the server lives");
            if message["id"] == *id {
                return message;
            }
        }
    }

    /// The server answers still.
    fn is_alive(&mut self) {
        self.pings += 1;
        let id = json!(format!("ping {}", self.pings));
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string().as_bytes());
        let answer = self.answer(&id);
        assert!(answer["result"].is_object(), "{answer}");
    }

    /// Closes stdin, reads what is left, and waits; the exit code.
    fn end(&mut self) -> Option<i32> {
        drop(self.stdin.take());
        while self.read().is_some() {}
        self.child.wait().expect("ends").code()
    }
}

fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } })
}

fn call(tool: &str, arguments: Value) -> (&'static str, Value) {
    let meta = json!({ "progressToken": "t" });
    ("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }))
}

fn message((method, params): (&str, Value)) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Requests and notifications that are right, and answers that nobody waits for.
fn messages() -> Vec<Value> {
    let requests = [
        call("search_events", json!({ "query": "budget", "event_type": ["user"], "limit": 2 })),
        call("get_event_details", json!({ "event_ids": ["9ae82b3a:14"] })),
        call("list_sessions", json!({ "limit": 2 })),
        call("get_session_details", json!({ "session_id": "9ae82b3a", "turns": "2-3" })),
        call("session_stats", json!({ "group_by": ["day", "tool"] })),
        call("analyze_session", json!({ "session_id": "9ae82b3a" })),
        call("tool_metadata", json!({})),
        call(
            "update_session_labels",
            json!({ "updates": [{ "session_id": "9ae", "add": ["x"] }] }),
        ),
        ("ping", json!({})),
        ("initialize", hello()["params"].clone()),
        ("server/discover", json!({})),
        ("tools/list", json!({ "cursor": "x" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "sessions://event/9ae82b3a:14" })),
        ("resources/subscribe", json!({ "uri": "sessions://status" })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "weekly_summary", "arguments": { "since": "7d" } })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "why_did_it_fail" }, "argument": { "name": "project", "value": "h" } }),
        ),
        ("logging/setLevel", json!({ "level": "debug" })),
        ("ai_help", json!({ "format": "json" })),
        ("no/such", json!({})),
    ];
    let notifications = [
        ("notifications/cancelled", json!({ "requestId": 7, "reason": "no" })),
        ("notifications/initialized", json!({})),
        ("notifications/progress", json!({ "progressToken": "t", "progress": 1 })),
        ("notifications/roots/list_changed", json!({})),
    ];
    let mut all: Vec<Value> = requests.into_iter().map(message).collect();
    for request in &mut all {
        request["id"] = json!(0);
    }
    all.extend(notifications.into_iter().map(message));
    all.push(json!({ "jsonrpc": "2.0", "id": 3, "result": {} }));
    all.push(json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": 1, "message": "no" } }));
    all
}

/// What JSON libraries do not write stands under these names until the last moment.
const WRITTEN: [&str; 4] = ["half a character", "deep", "long number", "not a number"];

/// A value where nobody expects it.
fn odd(random: &mut Random) -> Value {
    let values = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(1e308),
        json!(1.5),
        json!(""),
        json!("\u{0}\u{202e}"),
        json!("x".repeat(5000)),
        json!([]),
        json!({}),
        json!([[{ "a": [null] }]]),
    ];
    match random.below(values.len() + WRITTEN.len()) {
        at if at < values.len() => values[at].clone(),
        at => json!(WRITTEN[at - values.len()]),
    }
}

fn written(message: &Value) -> String {
    let mut text = message.to_string();
    let nested = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    for (name, json) in
        WRITTEN.iter().zip(["\"\\ud800\"", nested.as_str(), "1".repeat(5000).as_str(), "NaN"])
    {
        text = text.replace(&format!("\"{name}\""), json);
    }
    text
}

/// Pointers to everything inside a value.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), field)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    for (name, inner) in inside {
        let place = format!("{at}/{name}");
        places(inner, &place, all);
        all.push(place);
    }
}

/// Puts other values into a message, or takes some away.
fn twist(message: &mut Value, random: &mut Random) {
    for _ in 0..random.below(3) {
        let mut all = Vec::new();
        places(message, "", &mut all);
        let Some(place) = all.get(random.below(all.len())) else { return };
        let (parent, name) = place.rsplit_once('/').expect("a pointer");
        if random.below(4) == 0
            && let Some(Value::Object(fields)) = message.pointer_mut(parent)
        {
            fields.remove(name);
        } else {
            *message.pointer_mut(place).expect("a place") = odd(random);
        }
    }
}

/// Damages the bytes of a line.
fn damage(mut line: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let at = random.below(line.len());
    match random.below(12) {
        0 => line.truncate(at),
        1 => line[at] = u8::try_from(random.below(256)).expect("a byte"),
        2 => return [&b"["[..], line.as_slice(), b",", line.as_slice(), b"]"].concat(),
        3 => line.extend(line.clone()),
        4 => line.splice(0..0, *b"\xef\xbb\xbf").for_each(drop),
        5 => line.push(b'\r'),
        6 => {
            let pieces: [&[u8]; 7] = [b"\0", b"\xff\xfe", b"\xc3", b"\n", b"\\ud800", b"\"", b"}"];
            let piece = pieces[random.below(pieces.len())];
            line.splice(at..at, piece.iter().copied()).for_each(drop);
        }
        _ => {}
    }
    line
}

#[test]
fn whatever_comes_the_server_lives_and_stdout_is_the_protocol() {
    let env = TestEnv::with_samples();
    let mut raw = Raw::start(&env);
    raw.greet();
    let (messages, mut random) = (messages(), Random(20_261_122));
    for group in 0..70 {
        for number in 0..=random.below(6) {
            let mut message = messages[random.below(messages.len())].clone();
            // Ids of its own, used twice, and of another type.
            let ids = [json!(group * 10 + number), json!(group * 10), json!("same"), json!(5)];
            if message["method"] == "notifications/cancelled" {
                message["params"]["requestId"] = ids[random.below(ids.len())].clone();
            } else if message["id"] == 0 {
                message["id"] = ids[random.below(ids.len())].clone();
            }
            twist(&mut message, &mut random);
            raw.asked.insert(message["id"].to_string());
            let line = damage(written(&message).into_bytes(), &mut random);
            raw.send(&line);
        }
        raw.is_alive();
    }
    let filler = "x".repeat(20 << 20);
    raw.send(format!(r#"{{"jsonrpc":"2.0","id":"giant","method":"{filler}"}}"#).as_bytes());
    assert!(raw.answer(&json!("giant"))["error"]["message"].is_string());
    raw.is_alive();
    raw.send(br#"{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"\ud800"}}"#);
    assert_eq!(raw.answer(&json!("half"))["error"]["code"], -32700);
    assert_eq!(raw.end(), Some(0));
}

/// A query that nobody can wait for.
fn endless(id: u64) -> String {
    let sql =
        "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range % 7 = b.range % 5";
    let (method, params) = call("query_sql", json!({ "sql": sql }));
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[test]
fn calls_are_cancelled_in_any_order() {
    let env = TestEnv::with_samples();
    let mut raw = Raw::start(&env);
    raw.greet();
    let cancel = |id: Value| {
        let params = json!({ "requestId": id, "reason": "test" });
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
            .to_string()
    };
    // What is not there yet, what runs, what is over, and what is no id.
    raw.send(cancel(json!(7)).as_bytes());
    raw.send(endless(7).as_bytes());
    raw.is_alive();
    raw.send(cancel(json!(7)).as_bytes());
    for id in [json!(7), json!("hello"), json!(null), json!({}), json!(1.5), json!([7])] {
        raw.send(cancel(id).as_bytes());
        raw.is_alive();
    }
    assert_eq!(raw.end(), Some(0));
    assert!(!raw.answered.contains(&json!(7)), "{:?}", raw.answered);
}

#[test]
fn what_comes_before_a_session_does_not_end_it() {
    let env = TestEnv::with_samples();
    let discover =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} } } })
        .to_string();
    let late = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let cases: [&[&str]; 9] = [
        &["not json", "", "[]", "{}", "\u{0}"],
        &[late],
        &[r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, late],
        &[r#"{"jsonrpc":"2.0","id":1,"result":{}}"#],
        &[r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#],
        &[r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, late],
        &[r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, late],
        &[r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, late],
        &[discover.as_str(), late],
    ];
    for early in cases {
        let mut raw = Raw::start(&env);
        for line in early {
            raw.send(line.as_bytes());
        }
        raw.greet();
        raw.answer(&json!("hello")).has(json!({"result": {"protocolVersion": "2025-11-25"}}));
        raw.is_alive();
        assert_eq!(raw.end(), Some(0), "{early:?}");
    }
}

#[test]
fn a_client_that_goes_leaves_no_failure() {
    let env = TestEnv::with_samples();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for last in ["", "{", &list[..20], list, "\u{feff}", format!("{}\n", endless(1)).as_str()] {
        let mut silent = Raw::start(&env);
        silent.write(last.as_bytes());
        assert_eq!(silent.end(), Some(0), "before a session: {last}");
        let mut raw = Raw::start(&env);
        raw.greet();
        raw.write(last.as_bytes());
        assert_eq!(raw.end(), Some(0), "in a session: {last}");
    }
}
