//! Runs each query in a separate process, and ends a query that takes too long or that nobody waits
//! for any more.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use schemas::limits;
use schemas::price::PriceTable;

use super::error::{Fault, SqlError};
use super::protocol::{Report, Request};
use super::query::{Query, Summary};
use super::views;
use crate::base::sanitize::clean;
use crate::store::Snapshot;

/// Interval at which `stop` and the time limit are checked.
const POLL: Duration = Duration::from_millis(20);

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
        query: &Query<'_>,
        out: &mut dyn Write,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Summary, SqlError> {
        if query.sql.len() > limits::SQL_BYTES {
            return Err(SqlError::TooLong);
        }
        let views = views::definitions(snapshot, prices);
        // DuckDB does not check the files that it reads against checksums.
        snapshot.verify_tables(&views::tables_named(query.sql, &views))?;
        let request = Request {
            sql: query.sql.to_owned(),
            views,
            files: views::files(snapshot),
            format: query.format,
            max_rows: query.max_rows,
            max_bytes: query.max_bytes,
        };
        let mut request = serde_json::to_vec(&request).unwrap_or_default();
        request.push(b'\n');
        let _turn = self.wait(query.time, stop)?;
        let mut child = self.start().map_err(SqlError::NotStarted)?;
        // `stdin` stays open to the end: a worker aborts when its input ends, because nobody waits
        // for it.
        let (mut stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (done, watched) = channel::<()>();
        std::thread::scope(|scope| {
            let watch = scope.spawn(move || watch(&mut child, &watched, query.time, stop));
            // A write error is ignored: a worker that ended early gives the reason in its report.
            let _ = stdin.as_mut().map(|stdin| stdin.write_all(&request));
            let copied = stdout.map_or(Ok(0), |mut stdout| io::copy(&mut stdout, out));
            let mut said = String::new();
            if copied.is_ok() {
                let _ = stderr.map(|mut stderr| stderr.read_to_string(&mut said));
            }
            drop(done);
            let end = watch.join().unwrap_or(End::Itself(None));
            copied.map_err(SqlError::Output)?;
            let report = said.lines().rev().find_map(|line| serde_json::from_str(line).ok());
            match (report, end) {
                (Some(Report::Done(summary)), _) => Ok(summary),
                (Some(Report::Failed(failed)), _) => Err(failed.into()),
                (None, End::Itself(status)) => Err(died(&said, status)),
                (None, End::TooLong) => Err(SqlError::OutOfTime(query.time)),
                (None, End::Stopped) => Err(SqlError::Cancelled),
            }
        })
    }

    /// Waits for earlier queries to end, at most as long as this query may take.
    fn wait(
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
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL),
            }
        }
    }

    fn start(&self) -> io::Result<Child> {
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
enum End {
    /// This process did not end the worker. The status is `None` if the system does not give it.
    Itself(Option<ExitStatus>),
    TooLong,
    Stopped,
}

/// Waits for the end of the answer, and ends the worker.
fn watch(
    child: &mut Child,
    done: &Receiver<()>,
    time: Duration,
    stop: &(dyn Fn() -> bool + Sync),
) -> End {
    let start = Instant::now();
    let end = loop {
        match done.recv_timeout(POLL) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break End::Itself(None),
            Err(RecvTimeoutError::Timeout) if stop() => break End::Stopped,
            Err(RecvTimeoutError::Timeout) if start.elapsed() > time => break End::TooLong,
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    // A worker that has answered ends by itself; one whose reader is gone can only be killed. A
    // process that is ending already keeps its exit status.
    let _ = child.kill();
    let status = child.wait().ok();
    match end {
        End::Itself(_) => End::Itself(status),
        End::TooLong | End::Stopped => end,
    }
}

/// Returns the error for a worker that ended without a report; `said` is what it wrote to stderr.
fn died(said: &str, status: Option<ExitStatus>) -> SqlError {
    // If memory is refused where the program cannot continue without it, Rust's message says so.
    if said.contains("alloc") {
        return Fault::OutOfMemory.into();
    }
    if let Some(signal) = status.and_then(outside_signal) {
        return SqlError::Killed(signal);
    }
    if let Some(line) = said.lines().next_back() {
        return SqlError::Ended(format!(": {}", clean(line)));
    }
    match status.and_then(|status| status.code()) {
        Some(code) => SqlError::Ended(format!(" with code {code} and no report")),
        // A crash without a message is typical of code that uses memory which the system refused.
        None => Fault::OutOfMemory.into(),
    }
}

/// Returns the signal that ended a process, if it is one that other processes send. Signals that
/// a process brings upon itself, as by a wrong address, are not among them.
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
