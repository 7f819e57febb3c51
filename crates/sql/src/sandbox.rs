//! Runs each query in a separate process, and ends a query that takes too long or that the caller
//! no longer waits for.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use schemas::limits;
use schemas::price::PriceTable;
use schemas::table::SESSIONS;

use super::error::{Fault, SqlError};
use super::protocol::{OutputRequest, WorkerReport, WorkerRequest};
use super::query::{SqlQuery, SqlSummary};
use super::views;
use base::sanitize::clean_text;
use store::Snapshot;

/// Interval at which `stop` and the time limit are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Starts the processes that run queries.
pub struct Sandbox {
    program: PathBuf,
    /// Held by the running query. Queries run one at a time, so that together they take no more
    /// memory than one.
    turn: Mutex<()>,
}

impl Sandbox {
    /// The hidden command that starts a worker process.
    pub const COMMAND: &'static str = "sql-worker";

    /// Creates a sandbox; `program` is the path of this program.
    pub fn new(program: PathBuf) -> Self {
        Self { program, turn: Mutex::new(()) }
    }

    /// Runs a query over `snapshot` and writes its rows to `out`. `stop` is called regularly; true
    /// ends the query.
    pub fn run(
        &self,
        snapshot: &Snapshot,
        prices: &PriceTable,
        query: &SqlQuery<'_>,
        out: &mut dyn Write,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SqlSummary, SqlError> {
        if query.sql.len() > limits::SQL_BYTES {
            return Err(SqlError::TooLong);
        }
        let views = views::define_views(snapshot, prices, query.sessions)?;
        // DuckDB does not check the files that it reads against checksums.
        let tables = views::find_named_tables(query.sql, &views);
        snapshot.verify_tables(&tables)?;
        let sessions = if tables.contains(&SESSIONS.name) {
            snapshot.encode_sessions(query.sessions)?
        } else {
            Vec::new()
        };
        let request = WorkerRequest {
            sql: query.sql.to_owned(),
            views,
            files: views::readable_files(snapshot),
            session_bytes: sessions.len(),
            output: OutputRequest::of_query(query),
        };
        let mut request_line = serde_json::to_vec(&request).unwrap_or_default();
        request_line.push(b'\n');
        request_line.extend(sessions);
        let _turn = self.wait_for_turn(query.max_time, stop)?;
        let child = self.start_worker().map_err(SqlError::NotStarted)?;
        run_worker(child, &request_line, query.max_time, out, stop)
    }

    /// Waits for earlier queries to end, at most as long as this query may take.
    fn wait_for_turn(
        &self,
        time: Duration,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<MutexGuard<'_, ()>, SqlError> {
        let start = Instant::now();
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
                Err(TryLockError::WouldBlock) if stop() => return Err(SqlError::Cancelled),
                Err(TryLockError::WouldBlock) if start.elapsed() > time => {
                    return Err(SqlError::Busy);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Starts a worker.
    fn start_worker(&self) -> io::Result<Child> {
        Command::new(&self.program)
            .arg(Self::COMMAND)
            // DuckDB uses UTC for times with zones.
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

/// How a worker ended.
#[derive(Debug, Clone, Copy)]
enum WorkerEnd {
    /// This process did not end the worker. The status is `None` if the system does not give it.
    Itself(Option<ExitStatus>),
    TooLong,
    Stopped,
}

/// Sends the request to a worker, writes its rows to `out` and returns its report.
fn run_worker(
    mut child: Child,
    request: &[u8],
    time: Duration,
    out: &mut dyn Write,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<SqlSummary, SqlError> {
    // `stdin` stays open to the end: a worker aborts when its input ends, because the caller no
    // longer waits for it.
    let mut stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let (done, watched) = channel::<()>();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || watch_worker(&mut child, &watched, time, stop));
        // Read while rows are read: a worker whose report fills the pipe would wait for ever.
        let messages = scope.spawn(move || read_messages(stderr));
        if let Some(stdin) = &mut stdin {
            // A write error is ignored: a worker that ended early gives the reason in its report.
            let _ = stdin.write_all(request);
        }
        let copied = match stdout {
            Some(mut stdout) => io::copy(&mut stdout, out),
            None => Ok(0),
        };
        // An error drops `done`, which ends the worker: it may be waiting to write more rows.
        copied.map_err(SqlError::Output)?;
        let messages = messages.join().unwrap_or_default();
        drop(done);
        let end = watch.join().unwrap_or(WorkerEnd::Itself(None));

        let report = messages.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        match (report, end) {
            (Some(WorkerReport::Done(summary)), _) => Ok(summary),
            (Some(WorkerReport::Failed(fault)), _) => Err(fault.into()),
            (None, WorkerEnd::Itself(status)) => Err(missing_report_error(&messages, status)),
            (None, WorkerEnd::TooLong) => Err(SqlError::OutOfTime(time)),
            (None, WorkerEnd::Stopped) => Err(SqlError::Cancelled),
        }
    })
}

/// Reads what a worker writes to stderr: its report, or why it ended without one.
fn read_messages(stderr: Option<ChildStderr>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut stderr) = stderr {
        // What was read before an error may still hold the report.
        let _ = stderr.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for the end of the answer, which `answer_end` receives, and ends the worker.
fn watch_worker(
    child: &mut Child,
    answer_end: &Receiver<()>,
    time: Duration,
    stop: &(dyn Fn() -> bool + Sync),
) -> WorkerEnd {
    let start = Instant::now();
    let end = loop {
        match answer_end.recv_timeout(POLL_INTERVAL) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break WorkerEnd::Itself(None),
            Err(RecvTimeoutError::Timeout) if stop() => break WorkerEnd::Stopped,
            Err(RecvTimeoutError::Timeout) if start.elapsed() > time => break WorkerEnd::TooLong,
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    // A worker that has answered ends by itself; one whose reader is gone can only be killed. A
    // process that is ending already keeps its exit status.
    let _ = child.kill();
    let status = child.wait().ok();
    match end {
        WorkerEnd::Itself(_) => WorkerEnd::Itself(status),
        WorkerEnd::TooLong | WorkerEnd::Stopped => end,
    }
}

/// Returns the error for a worker that ended without a report. `messages` is its output to stderr.
fn missing_report_error(messages: &str, status: Option<ExitStatus>) -> SqlError {
    // If memory is refused where the program cannot continue without it, Rust's message says so.
    if messages.contains("alloc") {
        return Fault::OutOfMemory.into();
    }
    if let Some(signal) = status.and_then(outside_signal) {
        return SqlError::Killed(signal);
    }
    if let Some(line) = messages.lines().next_back() {
        return SqlError::Ended(format!("The query process ended: {}", clean_text(line)));
    }
    match status.and_then(|status| status.code()) {
        Some(code) => {
            SqlError::Ended(format!("The query process ended with code {code} and no report"))
        }
        // A crash without a message is typical of code that uses memory which the system refused.
        None => Fault::OutOfMemory.into(),
    }
}

/// Returns the signal that ended a process, if it is one that other processes send. Signals that
/// a process causes itself, for example by a wrong address, are not among them.
#[cfg(unix)]
fn outside_signal(status: ExitStatus) -> Option<i32> {
    use rustix::process::Signal;
    use std::os::unix::process::ExitStatusExt as _;

    let signal = status.signal()?;
    let outside = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::KILL, Signal::TERM];
    outside.iter().any(|known| known.as_raw() == signal).then_some(signal)
}

#[cfg(not(unix))]
fn outside_signal(_status: ExitStatus) -> Option<i32> {
    None
}
