//! Carries out a plan: parallel workers decode files, each into its own sink.

mod checkpoint;
mod copies;
mod earlier;
mod forgotten_copies;
mod handover;
mod line_reading;
mod log_secrets;
mod logs;
mod masked_target;
mod records;
mod recount;
pub mod remask;
pub mod report;
mod target;
mod worker;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use schemas::problem::{Problem, ProblemKind};
use schemas::session::{SourceRow, SourceStatus};
use schemas::table::PROBLEMS;

pub(crate) use self::log_secrets::{DecodedLog, LogSecrets};
use self::masked_target::MaskedTarget;
pub use self::recount::ForgottenRecount;
use self::report::IngestReport;
pub use self::target::{LogCheckpoint, Progress, Sink, Target};
use self::worker::Worker;
use crate::plan::Plan;
use crate::redact::columns::ColumnMasker;
use crate::redact::{MaskedSecrets, Redactor};
use crate::stream::batch::events_schema;

/// Maximum number of workers.
const MAX_WORKERS: usize = 8;

/// One extra worker is started per this many bytes. A small gain is not worth a second
/// segment.
const BYTES_PER_WORKER: u64 = 4 << 20;

/// Carries out `plan`, masking secrets by the rules of `redactor`.
///
/// # Errors
/// Returns errors of the store only. Problems with logs are in the report.
///
/// # Examples
/// Reads a log into a store that only counts events:
///
/// ```rust
/// use std::convert::Infallible;
/// use std::ops::Range;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use arrow::array::RecordBatch;
/// use ingest::discover::discover;
/// use ingest::plan::{Known, plan};
/// use ingest::run::{LogCheckpoint, Sink, Target, run};
/// use schemas::session::EventRow;
///
/// #[derive(Clone, Default)]
/// struct EventCounter(Arc<AtomicUsize>);
///
/// impl Target for EventCounter {
///     type Error = Infallible;
///     type Sink = Self;
///
///     fn sink(&self) -> Result<Self, Infallible> {
///         Ok(self.clone())
///     }
///
///     fn record_hashes(&self, _session_id: &str) -> Result<Vec<u64>, Infallible> {
///         Ok(Vec::new())
///     }
///
///     fn state(&self, _path: &str) -> Result<Option<String>, Infallible> {
///         Ok(None)
///     }
///
///     fn events(
///         &self,
///         _session_id: &str,
///         _ranges: &[Range<i32>],
///     ) -> Result<Vec<EventRow>, Infallible> {
///         Ok(Vec::new())
///     }
/// }
///
/// impl Sink for EventCounter {
///     type Error = Infallible;
///
///     fn segment(&mut self) -> Result<i64, Infallible> {
///         Ok(1)
///     }
///
///     fn events(&mut self, batch: &RecordBatch) -> Result<(), Infallible> {
///         self.0.fetch_add(batch.num_rows(), Ordering::Relaxed);
///         Ok(())
///     }
///
///     fn checkpoint(&mut self, _logs: Vec<LogCheckpoint>) -> Result<(), Infallible> {
///         Ok(())
///     }
///
///     fn finish(self) -> Result<(), Infallible> {
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dir = tempfile::tempdir()?;
/// let record = r#"{"type":"user","sessionId":"s1","message":{"role":"user","content":"Hi"}}"#;
/// std::fs::write(dir.path().join("s1.jsonl"), format!("{record}\n"))?;
///
/// let plan = plan(discover(&[dir.path().to_owned()]), &Known::default(), None);
/// let counter = EventCounter::default();
/// let report = run(plan, &counter, None, &())?;
///
/// assert_eq!(report.files_new, 1);
/// assert_eq!(report.events, 1);
/// assert_eq!(counter.0.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
pub fn run<T: Target>(
    plan: Plan,
    target: &T,
    redactor: Option<&Arc<Redactor>>,
    progress: &dyn Progress,
) -> Result<IngestReport, T::Error> {
    let masked_target = &MaskedTarget { target, redactor: redactor.map(Arc::as_ref) };
    let mut report = IngestReport {
        files: plan.files,
        files_unchanged: plan.unchanged,
        ..IngestReport::default()
    };
    count_settled(&plan, &mut report);
    for problem in &plan.problems {
        report.files_failed += u64::from(problem.kind == ProblemKind::Unreadable);
        report.add_problem(problem);
    }
    progress.set_total(plan.units.iter().flatten().count() as u64, plan.bytes);
    write_settled_rows(&plan, masked_target)?;

    let workers = worker_count(&plan);
    let next_unit = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let error = Mutex::new(None);
    thread::scope(|scope| {
        let run_worker = || {
            let mut worker = Worker {
                target: masked_target,
                progress,
                redactor: redactor.cloned(),
                masker: ColumnMasker::default(),
                repositories: Arc::default(),
                schema: events_schema(),
                report: IngestReport::default(),
                batch: None,
                read_logs: Vec::new(),
                has_written_rows: false,
                harmless_state: String::new(),
                parser: None,
                shapes: HashSet::new(),
            };
            if let Err(cause) = worker.run_units(&plan.units, &next_unit, &failed) {
                failed.store(true, Ordering::Relaxed);
                error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
            }
            worker.report
        };
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(run_worker)).collect();
        for handle in handles {
            match handle.join() {
                Ok(numbers) => report.add_worker_report(numbers),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });

    // What was read of logs that are left out has no provider of its own.
    report.by_provider.retain(|_, numbers| numbers.files > 0);
    let mut masker = ColumnMasker::default();
    for problem in &mut report.problem_list {
        let redactor = masked_target.redactor;
        masker.mask_row(redactor, &PROBLEMS, problem, &mut MaskedSecrets::new());
    }
    match error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(report),
    }
}

/// Counts the files that the plan settled.
fn count_settled(plan: &Plan, report: &mut IngestReport) {
    // A log that continues under another name has not vanished.
    let mut moved = HashSet::new();
    for log in plan.units.iter().flatten() {
        if let Some(row) = &log.source
            && row.path != log.file.key()
        {
            moved.insert(&row.path);
        }
    }

    for row in &plan.settled {
        match row.status {
            SourceStatus::Gone if moved.contains(&row.path) => {}
            SourceStatus::Gone => report.files_vanished += 1,
            SourceStatus::Empty => report.files_empty += 1,
            SourceStatus::Sidecar => report.files_sidecar += 1,
            SourceStatus::UnknownFormat => report.files_unknown += 1,
            SourceStatus::Failed => report.files_failed += 1,
            // The caller counts logs that are left out before they are read.
            SourceStatus::Ok | SourceStatus::Excluded => {}
        }
    }
}

/// Returns the number of workers that a plan needs; 0 if there is nothing to read.
fn worker_count(plan: &Plan) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
    let by_bytes = usize::try_from(plan.bytes / BYTES_PER_WORKER).unwrap_or(cores);
    cores.min(plan.units.len()).min(1 + by_bytes)
}

/// Writes the rows of `plan.settled` with their sessions and problems: files whose row changes
/// without being read.
fn write_settled_rows<T: Target>(plan: &Plan, target: &T) -> Result<(), T::Error> {
    if plan.settled.is_empty() {
        return Ok(());
    }

    let mut sessions_by_id = HashMap::new();
    for session in &plan.sessions {
        sessions_by_id.entry(session.session_id.as_str()).or_insert(session);
    }
    let mut problems_by_path: HashMap<&str, Vec<Problem>> = HashMap::new();
    for problem in &plan.problems {
        if matches!(problem.kind, ProblemKind::UnknownFormat | ProblemKind::OversizedDocument) {
            problems_by_path.entry(&problem.path).or_default().push(problem.clone());
        }
    }

    let mut sink = target.sink()?;
    for row in &plan.settled {
        let session = row.session_id.as_deref().and_then(|id| sessions_by_id.get(id).copied());
        let problems = problems_by_path.remove(row.path.as_str()).unwrap_or_default();
        // The known rows come without the decoder state, without which a log that reappears would
        // be read again from its start.
        let state = target.state(plan.moved.get(&row.path).unwrap_or(&row.path))?;
        let row = SourceRow { state, ..row.clone() };
        // A row without a session is stored under an empty session id.
        let session = Box::new(session.cloned().unwrap_or_default());
        sink.checkpoint(vec![LogCheckpoint { session, source: Box::new(row), problems }])?;
    }
    sink.finish()
}
