//! `push` and `pull` over S3, with requests that fail. Needs the feature `cloud`, and a server that
//! speaks S3 without TLS: `SESSIONS_S3_SERVER` names a program that is started as
//! `PROGRAM -H 127.0.0.1 -p PORT`, such as `moto_server` of `pip install moto[server]`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::env::{Ran, TestEnv, samples};

/// One of this many requests fails.
const REQUESTS_PER_FAILURE: u64 = 20;

/// An S3 server.
struct S3 {
    child: Child,
    port: u16,
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl S3 {
    #[expect(clippy::print_stderr, reason = "a skipped test must be noticed")]
    fn start() -> Option<Self> {
        let Some(program) = std::env::var_os("SESSIONS_S3_SERVER") else {
            eprintln!("SKIPPED: set SESSIONS_S3_SERVER to an S3 server to run this test");
            return None;
        };
        let free = TcpListener::bind("127.0.0.1:0").expect("binds");
        let port = free.local_addr().expect("address").port();
        drop(free);
        let child = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("spawns");
        let server = Self { child, port };
        for _ in 0..300 {
            if request(port, "PUT", "/lake") == 200 {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the S3 server does not answer");
    }
}

/// Sends a request without a body, and returns the status of the answer; 0 if there is none.
fn request(port: u16, method: &str, path: &str) -> u16 {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return 0 };
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all(text.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Counts of a proxy.
#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    failed: AtomicU64,
}

/// Starts a proxy that answers some requests with 503 or by closing the connection, half of these
/// after the server did what was asked. Returns its port and its counts.
fn start_proxy(upstream: u16) -> (u16, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = listener.local_addr().expect("address").port();
    let counts = Arc::new(Counts::default());
    let shared = Arc::clone(&counts);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let counts = Arc::clone(&shared);
            std::thread::spawn(move || {
                let _ = pass_on(client, upstream, &counts);
            });
        }
    });
    (port, counts)
}

/// Passes one request on, or fails it.
fn pass_on(mut client: TcpStream, upstream: u16, counts: &Counts) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        let is_end = line == "\r\n";
        if is_end {
            head.push_str("Connection: close\r\n");
        }
        if !lower.starts_with("connection:") {
            head.push_str(&line);
        }
        if is_end {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;

    let number = counts.requests.fetch_add(1, Ordering::Relaxed);
    let fails = number % REQUESTS_PER_FAILURE == 7;
    counts.failed.fetch_add(u64::from(fails), Ordering::Relaxed);
    let is_done_first = number / REQUESTS_PER_FAILURE % 2 == 1;
    if fails && !is_done_first {
        return client.write_all(
            b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
    let mut server = TcpStream::connect(("127.0.0.1", upstream))?;
    server.write_all(head.as_bytes())?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    if fails {
        // The answer is lost.
        return Ok(());
    }
    client.write_all(&answer)
}

/// Runs a command with a lake behind a port.
fn run(env: &TestEnv, port: u16, args: &[&str]) -> Ran {
    let mut command = env.command();
    command
        .args(["--json"])
        .args(args)
        .env("AWS_ENDPOINT", format!("http://127.0.0.1:{port}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test");
    Ran::from(command.output().expect("runs"))
}

fn settings(env: &TestEnv, text: &str) {
    let folder = env.path(".config/sessions");
    std::fs::create_dir_all(&folder).expect("creates");
    std::fs::write(folder.join("settings.toml"), text).expect("writes");
}

#[test]
fn a_lake_in_a_bucket_survives_failing_requests() {
    let Some(s3) = S3::start() else { return };
    let (proxy, counts) = start_proxy(s3.port);
    let laptop = TestEnv::new();
    settings(&laptop, "identity.machine = 'pier'\n[publish]\ninclude = ['**']\n");
    laptop.run(&["ingest", "--quiet", &samples().to_string_lossy()]).ok();
    let lake = "s3://lake/team/v";
    let pushed: serde_json::Value =
        serde_json::from_str(&run(&laptop, proxy, &["push", lake]).ok()).expect("JSON");
    assert!(pushed["objects"].as_u64() > Some(60), "{pushed}");
    let again: serde_json::Value =
        serde_json::from_str(&run(&laptop, s3.port, &["push", lake]).ok()).expect("JSON");
    assert_eq!((&again["objects"], &again["requests"]), (&json!(0), &json!(2)), "{again}");

    let server = TestEnv::new();
    let pulled: serde_json::Value =
        serde_json::from_str(&run(&server, proxy, &["pull", lake]).ok()).expect("JSON");
    assert_eq!(pulled["problems"], json!([]), "{pulled}");
    assert_eq!(pulled["imported"], json!(pushed["published"].as_array().map(Vec::len)));
    assert_eq!(server.rows("SELECT DISTINCT machine FROM sessions"), [[json!("pier")]]);
    let sums = "SELECT count(*), sum(text_bytes) FROM events JOIN sessions USING (session_id) WHERE cwd IS NOT NULL";
    assert_eq!(server.rows(sums)[0][0], laptop.rows(sums)[0][0]);
    let requests = counts.requests.load(Ordering::Relaxed);
    let failed = counts.failed.load(Ordering::Relaxed);
    assert!(failed >= 5 && failed * 25 > requests, "{failed} of {requests} failed");
}
