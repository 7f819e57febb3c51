//! Runs queries in a process of their own and ends those that take too long or that nobody waits
//! for any more.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use schemas::limits;
use schemas::price::PriceTable;

use super::{Fault, Query, Report, Request, SqlError, Summary, views};
use crate::clean::clean;
use crate::store::Snapshot;

/// How often it is asked whether anybody still waits.
const POLL: Duration = Duration::from_millis(20);

/// Starts the processes that run queries.
pub struct Sandbox {
    program: PathBuf,
    /// Queries run one after the other, so that together they take no more memory than one.
    turn: Mutex<()>,
}

impl Sandbox {
    /// The hidden command that a process is started with.
    pub const COMMAND: &'static str = "sql-worker";

    /// `program` is this program.
    pub fn new(program: PathBuf) -> Self {
        Self { program, turn: Mutex::new(()) }
    }

    /// Runs a query over `snapshot` and writes its rows to `out`. `stop` is asked now and then;
    /// true ends the query.
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
        // DuckDB does not compare what it reads with any checksum.
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
        // Open to the end: a worker whose input ends has nobody to answer.
        let (mut stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (done, watched) = channel::<()>();
        std::thread::scope(|scope| {
            let watch = scope.spawn(move || watch(&mut child, &watched, query.time, stop));
            // A worker that ended early says why in its report.
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

    /// Waits for the queries before this one, no longer than it may take itself.
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
            // Times are UTC wherever DuckDB has zones.
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
    /// It was not ended by this process. The status is unknown if the system does not give it.
    Itself(Option<ExitStatus>),
    TooLong,
    Stopped,
}

/// Waits until the answer is there, and ends the worker if it must be.
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
    // One that has answered ends by itself; for one whose reader has gone nothing else is left.
    // A process that is ending already keeps the status it ends with.
    let _ = child.kill();
    let status = child.wait().ok();
    match end {
        End::Itself(_) => End::Itself(status),
        End::TooLong | End::Stopped => end,
    }
}

/// The error for a worker that ended without a report: `said` is what it wrote to stderr.
fn died(said: &str, status: Option<ExitStatus>) -> SqlError {
    // Where memory is refused at a place that cannot go on without, the language says so.
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
        // It crashed in silence, as code does that uses memory which the system refused.
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
