//! Raw requests to the HTTP server, right and wrong, and what each must answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sessions::server::{HttpOptions, ServerOptions, serve_http};
use store::Store;
use tools::Tools;

use crate::env::{TestEnv, parts};
use crate::http::{Server, message};

/// A request that is put together by hand. It begins as one that is answered with 200.
#[derive(Clone)]
struct RawRequest {
    line: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
    has_length: bool,
}

fn good() -> RawRequest {
    let mut request = RawRequest {
        line: "POST /mcp HTTP/1.1".to_owned(),
        headers: Vec::new(),
        body: message("tools/list", json!({})).into_bytes(),
        has_length: true,
    };
    for (name, value) in [
        ("Host", "localhost"),
        ("Connection", "close"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ] {
        request = request.and(name, value);
    }
    request
}

impl RawRequest {
    fn line(mut self, line: &str) -> Self {
        line.clone_into(&mut self.line);
        self
    }

    /// Adds a header.
    fn and(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name, value.as_ref().to_vec()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    fn set(self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.without(name).and(name, value)
    }

    fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    /// Leaves the length out, as the headers say it otherwise.
    fn own_length(mut self) -> Self {
        self.has_length = false;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.line).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        if self.has_length {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", self.body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Sends bytes and reads all that comes back.
fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("sets");
    // A server that has refused already may have closed its end.
    let _ = stream.write_all(bytes);
    read_all(&mut stream)
}

fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    serde_json::from_str(body).unwrap_or_default()
}

/// Requests by what is odd about them, the status that each must get, and the code of the error in
/// the body where the refusal is ours.
#[expect(clippy::too_many_lines, reason = "a list of requests")]
fn probes() -> Vec<(&'static str, RawRequest, u16, Option<i64>)> {
    let mut probes = Vec::new();
    let mut add = |name, request, status, code| probes.push((name, request, status, code));

    add("nothing", good(), 200, None);
    add("host in capitals", good().set("Host", "LOCALHOST:80"), 200, None);
    add("host IPv4", good().set("Host", "127.0.0.1"), 200, None);
    add("host IPv6", good().set("Host", "[::1]:8765"), 200, None);
    add("origin of loopback", good().and("Origin", "http://localhost:5173"), 200, None);
    add("origin IPv6", good().and("Origin", "http://[::1]:3000"), 200, None);
    add("charset", good().set("Content-Type", "application/json; charset=utf-8"), 200, None);
    add("absolute target", good().line("POST http://localhost/mcp HTTP/1.1"), 200, None);
    add("query", good().line("POST /mcp?a=1 HTTP/1.1"), 200, None);

    let invalid = Some(-32600);
    add("no host", good().without("Host"), 400, invalid);
    add("no host, HTTP/1.0", good().without("Host").line("POST /mcp HTTP/1.0"), 400, invalid);
    add("host twice", good().and("Host", "localhost"), 400, invalid);
    add("another host after", good().and("Host", "evil.example"), 400, invalid);
    for host in [
        "",
        "localhost, localhost",
        "localhost:99999",
        "localhost:abc",
        "localhost:",
        "localhost:0",
        "localhost:-1",
        "user@localhost",
        "http://localhost",
        "localhost/evil",
        "localhost evil",
        "[::1].evil.example",
        "[::1",
        "::1",
    ] {
        add("host malformed", good().set("Host", host), 400, invalid);
    }
    add("host not ASCII", good().set("Host", b"localhost\xff"), 400, invalid);
    for host in [
        "evil.example",
        "localhost.evil.example",
        "localhost.",
        "127.0.0.2",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "127.1",
        "0x7f000001",
    ] {
        add("host of others", good().set("Host", host), 403, invalid);
    }
    add("target elsewhere", good().line("POST http://evil.example/mcp HTTP/1.1"), 403, invalid);

    for origin in [
        "",
        "null",
        "http://evil.example",
        "http://[::1].evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://localhost:abc",
        "http://localhost:99999",
        "http://localhost/",
        "http://evil.example http://localhost",
        "https://localhost",
        "file://",
        "localhost",
    ] {
        add("origin", good().and("Origin", origin), 403, invalid);
    }
    let twice = good().and("Origin", "http://localhost").and("Origin", "http://localhost");
    add("origin twice", twice, 403, invalid);

    let broken = Some(-32700);
    let surrogate = r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#;
    let nested = "[".repeat(100_000);
    for text in ["", "{", "nonsense", "{} {}", "{'a':1}", "NaN", surrogate, &nested] {
        add("not JSON", good().body(text), 400, broken);
    }
    add("not UTF-8", good().body(b"{\"jsonrpc\":\"\xff\"}"), 400, broken);
    let batch = format!("[{}]", message("tools/list", json!({})));
    for text in ["42", "null", "[]", "{}", &batch, r#"{"id":1,"method":"ping"}"#] {
        add("not a message", good().body(text), 400, invalid);
    }
    let old = r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#;
    add("JSON-RPC 1", good().body(old), 400, invalid);

    add("no type", good().without("Content-Type"), 415, invalid);
    for kind in ["text/plain", "application/json-seq", "multipart/form-data", ""] {
        add("type", good().set("Content-Type", kind), 415, invalid);
    }
    add("type twice", good().and("Content-Type", "application/json"), 415, invalid);
    add("accept", good().set("Accept", "text/html"), 406, invalid);
    add("no accept", good().without("Accept"), 406, invalid);

    for method in ["GET", "DELETE", "PUT", "OPTIONS", "PATCH", "BREW"] {
        add("method", good().line(&format!("{method} /mcp HTTP/1.1")), 405, invalid);
    }
    for path in ["/", "/mcp/", "/MCP", "/mcp%2f", "//mcp", "/../mcp", "/sse", "/mcp;x"] {
        add("path", good().line(&format!("POST {path} HTTP/1.1")), 404, invalid);
    }

    add("no HTTP", good().line("garbage"), 400, None);
    add("HTTP/3", good().line("POST /mcp HTTP/3.0"), 400, None);
    add("a space in a name", good().and("X bad", "1"), 400, None);
    add("a zero byte", good().and("X-Zero", b"a\0b"), 400, None);
    add("length no number", good().own_length().and("Content-Length", "abc"), 400, None);
    add("length negative", good().own_length().and("Content-Length", "-1"), 400, None);
    add("two lengths", good().and("Content-Length", "7"), 400, None);
    let encoded = |value| good().own_length().and("Transfer-Encoding", value);
    add("unknown encoding", encoded("gzip"), 400, None);
    add("chunks", encoded("chunked").body(chunked()), 200, None);
    add("chunk size no number", encoded("chunked").body("zz\r\nabc\r\n0\r\n\r\n"), 400, invalid);
    let long_target = format!("POST /{} HTTP/1.1", "a".repeat(70_000));
    add("long target", good().line(&long_target), 414, None);
    add("long header", good().and("X-Long", "a".repeat(1_000_000)), 431, None);
    let mut flood = good();
    for _ in 0..500 {
        flood = flood.and("X-Flood", "1");
    }
    add("many headers", flood, 431, None);
    add("long body", good().body(vec![b' '; (1 << 20) + 1]), 413, invalid);
    probes
}

fn chunked() -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in message("tools/list", json!({})).as_bytes().chunks(10) {
        bytes.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        bytes.extend_from_slice(part);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[test]
fn every_odd_request_gets_its_answer() {
    let env = TestEnv::with_samples();
    let server = Server::start(&env, &["--no-auth", "--rate-limit", "0"], &[]);
    let address = SocketAddr::from(([127, 0, 0, 1], server.0.port));
    let probes = probes();
    assert!(probes.len() >= 58, "{}", probes.len());
    let mut wrong = Vec::new();
    for (name, request, want, code) in &probes {
        let bytes = request.bytes();
        let answer = exchange(address, &bytes);
        let error = body(&answer)["error"].clone();
        let is_right = status(&answer) == *want
            && code.is_none_or(|code| error["code"] == code && error["message"].is_string());
        if !is_right {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
            wrong.push(format!("{name}: want {want} {code:?}\n{shown}\n-> {answer:.400}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(status(&exchange(address, &good().bytes())), 200, "it goes on after all that");
}

#[test]
fn requests_in_a_row_are_answered_in_order_and_a_refused_body_is_no_request() {
    let env = TestEnv::with_samples();
    let server = Server::start(&env, &["--no-auth"], &[]);
    let address = SocketAddr::from(([127, 0, 0, 1], server.0.port));
    let first = good().without("Connection").body("{").bytes();
    let both = [first, good().bytes()].concat();
    let answers = exchange(address, &both);
    let statuses: Vec<u16> =
        answers.split("HTTP/1.1 ").filter_map(|answer| answer.get(..3)?.parse().ok()).collect();
    assert_eq!(statuses, [400, 200], "{answers}");
    // What was refused unread must not be taken for the next request.
    for refused in [
        good().set("Host", "evil.example"),
        good().line("POST /elsewhere HTTP/1.1"),
        good().set("Content-Type", "text/plain"),
    ] {
        let bytes = refused.without("Connection").and("X", "y").body(good().bytes()).bytes();
        let mut stream = TcpStream::connect(address).expect("connects");
        stream.write_all(&bytes).expect("writes");
        stream.set_read_timeout(Some(Duration::from_millis(700))).expect("sets");
        let answers = read_all(&mut stream);
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
        assert_ne!(status(&answers), 200, "{answers}");
    }
}

/// A server in this process whose clients have little time to send a body.
fn hasty_server(env: &TestEnv) -> SocketAddr {
    let parts = parts(Tools::new(Store::new(env.store())), ServerOptions::default());
    let options = HttpOptions {
        readers: Vec::new(),
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        token: None,
        body_time: Duration::from_millis(300),
    };
    let (ready, address) = channel();
    std::thread::spawn(move || {
        serve_http(parts, options, move |address| ready.send(address).expect("waits"))
    });
    address.recv().expect("is ready")
}

#[test]
fn a_body_that_never_ends_is_cut_off() {
    let env = TestEnv::with_samples();
    let address = hasty_server(&env);
    assert_eq!(status(&exchange(address, &good().bytes())), 200);
    let whole = good().body(vec![b' '; 100_000]).bytes();
    let cases = [
        ("nothing of it", whole.len() - 100_000, ""),
        ("drop by drop", whole.len() - 99_000, " "),
        ("chunk by chunk", 0, "1\r\n \r\n"),
    ];
    for (name, sent, drip) in cases {
        let head = match sent {
            0 => good().own_length().and("Transfer-Encoding", "chunked").body("").bytes(),
            sent => whole[..sent].to_vec(),
        };
        let start = Instant::now();
        let mut stream = TcpStream::connect(address).expect("connects");
        stream.write_all(&head).expect("writes");
        let mut dripping = stream.try_clone().expect("clones");
        let drips = std::thread::spawn(move || {
            for _ in 0..200 {
                std::thread::sleep(Duration::from_millis(50));
                if dripping.write_all(drip.as_bytes()).is_err() {
                    return;
                }
            }
        });
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("sets");
        let mut answer = [0; 2000];
        let length = stream.read(&mut answer).expect("answers");
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert_eq!(status(&answer), 408, "{name}: {answer}");
        assert!(answer.to_lowercase().contains("connection: close"), "{name}: {answer}");
        assert!(start.elapsed() < Duration::from_secs(5), "{name}: {:?}", start.elapsed());
        drop(stream);
        drop(drips);
    }
    assert_eq!(status(&exchange(address, &good().bytes())), 200, "others are served meanwhile");
}

#[test]
fn a_token_that_is_given_twice_or_half_does_not_count() {
    let env = TestEnv::with_samples();
    let token = "a-token-of-my-own-making";
    let server = Server::start(&env, &[], &[("SESSIONS_HTTP_TOKEN", token)]);
    let address = SocketAddr::from(([127, 0, 0, 1], server.0.port));
    let right = format!("Bearer {token}");
    let ask = |request: RawRequest| status(&exchange(address, &request.bytes()));
    assert_eq!(ask(good().and("Authorization", &right)), 200);
    for request in [
        good(),
        good().and("Authorization", &right).and("Authorization", &right),
        good().and("Authorization", "Bearer x").and("Authorization", &right),
        good().and("Authorization", &right[..right.len() - 1]),
        good().and("Authorization", format!("{right}x")),
        good().and("Authorization", token),
        good().line(&format!("POST /mcp?token={token} HTTP/1.1")),
        good().and("Cookie", &right),
    ] {
        assert_eq!(ask(request), 401);
    }
}
