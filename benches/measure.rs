//! Measures times, commands, memory and the sizes of files.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use schemas::tool::search::SearchArgs;
use serde_json::{Value, json};

/// A workload is repeated for this long, but at least `LEAST` and at most `MOST` times.
const ENOUGH: Duration = Duration::from_secs(3);
const LEAST: usize = 7;
const MOST: usize = 500;

/// Statistics of measured times, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub p50: f64,
    pub p99: f64,
}

impl Times {
    /// Computes the statistics of measured seconds.
    pub(crate) fn of(seconds: impl Iterator<Item = f64>) -> Self {
        let mut ms: Vec<f64> = seconds.map(|seconds| seconds * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        let at = |share: f64| ms[((ms.len() - 1) as f64 * share).round() as usize];
        Self { p50: at(0.5), p99: at(0.99) }
    }
}

/// Returns the seconds that `f` takes.
pub(crate) fn seconds<T>(f: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    std::hint::black_box(f());
    start.elapsed().as_secs_f64()
}

/// Measures `f` repeatedly, after one call to warm up.
pub(crate) fn repeat(f: impl Fn()) -> Times {
    f();
    let start = Instant::now();
    let mut all = Vec::new();
    while all.len() < LEAST || all.len() < MOST && start.elapsed() < ENOUGH {
        all.push(seconds(&f));
    }
    Times::of(all.into_iter())
}

/// The exit code of a search without matches.
const NOTHING_FOUND: i32 = 1;

/// The result of a command of the program.
pub(crate) struct Ran {
    pub seconds: f64,
    pub peak_mb: u64,
    pub json: Value,
}

/// Returns the program with a store.
pub(crate) fn program(store: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sessions"));
    command.arg("--store").arg(store);
    command
}

/// Runs the program in a process of its own and parses its answer, which is JSON. Panics with the
/// answer if the command fails.
pub(crate) fn command(args: &[&str], store: &Path) -> Ran {
    let start = Instant::now();
    let mut child = program(store).args(args).stdout(Stdio::piped()).spawn().expect("starts");
    let peak = watch_peak(child.id());
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let json: Value = serde_json::from_reader(output).expect("JSON");
    let status = child.wait().expect("ends");
    let seconds = start.elapsed().as_secs_f64();
    assert!(matches!(status.code(), Some(0 | NOTHING_FOUND)), "{args:?}: {status}, {json}");
    Ran { seconds, peak_mb: peak.join().expect("ends"), json }
}

/// Watches the peak memory of a process until it ends.
fn watch_peak(pid: u32) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut peak = 0;
        while let Some(now) = peak_mb(pid) {
            peak = now;
            std::thread::sleep(Duration::from_millis(2));
        }
        peak
    })
}

/// Returns the peak resident memory in MB where the system provides it, or `None` if the process is
/// gone.
fn peak_mb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kb| kb / 1024)
}

/// Returns the milliseconds of `rg` over the logs, the best of three runs, or `None` if it is not
/// installed.
pub(crate) fn rg(pattern: &str, logs: &Path) -> Option<f64> {
    let once = || {
        let mut command = Command::new("rg");
        command.args(["--count", "--ignore-case", "--no-ignore", "--", pattern]).arg(logs);
        let start = Instant::now();
        command.stdout(Stdio::null()).status().ok()?;
        Some(start.elapsed().as_secs_f64() * 1e3)
    };
    let first = once()?;
    // A run that takes seconds is not repeated.
    let more = if first < 2000.0 { 2 } else { 0 };
    (0..more).filter_map(|_| once()).chain([first]).min_by(f64::total_cmp)
}

/// Returns the bytes of all files below a folder.
pub(crate) fn bytes_below(dir: &Path) -> u64 {
    sum(dir, &|_| true)
}

/// Returns the bytes of all files of one name below a folder.
pub(crate) fn bytes_of(dir: &Path, name: &str) -> u64 {
    sum(dir, &|path| path.file_name().is_some_and(|file| file == name))
}

fn sum(dir: &Path, wanted: &dyn Fn(&Path) -> bool) -> u64 {
    let entries = std::fs::read_dir(dir).expect("reads").flatten();
    let bytes = entries.map(|entry| match entry.metadata().expect("there") {
        data if data.is_dir() => sum(&entry.path(), wanted),
        data => {
            if wanted(&entry.path()) {
                data.len()
            } else {
                0
            }
        }
    });
    bytes.sum()
}

/// A running server, to measure what it takes.
pub(crate) struct Server {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(store: &Path) -> Self {
        let mut child = program(store)
            .args(["mcp", "--rate-limit", "0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut server = Self { child, requests, answers };
        server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}}}));
        server.answer();
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    pub(crate) fn search(&mut self, args: &SearchArgs) {
        self.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "search_events", "arguments": args}}));
        assert!(!self.answer().contains("\"isError\":true"));
    }

    pub(crate) fn peak_mb(&self) -> u64 {
        peak_mb(self.child.id()).unwrap_or(0)
    }

    fn send(&mut self, message: &Value) {
        let requests = self.requests.as_mut().expect("open");
        writeln!(requests, "{message}").expect("writes");
        requests.flush().expect("writes");
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("answers");
        line
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.requests.take());
        let _ = self.child.wait();
    }
}
