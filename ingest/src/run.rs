//! Carries out a plan: parallel workers decode files, each into its own sink.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use schemas::problem::{Problem, ProblemKind};
use schemas::session::{EventRow, SessionRow, SourceRow, SourceStatus};
use schemas::table::PROBLEMS;

use crate::batch::events_schema;
use crate::columns::ColumnMasker;
use crate::masked_target::MaskedTarget;
use crate::plan::Plan;
use crate::redact::{Found, Redactor};
use crate::report::Report;
use crate::worker::Worker;

/// Receives rows. Each worker owns one sink.
pub trait Sink {
    type Error: std::error::Error + Send;

    /// Returns the number of the segment that the next rows go to.
    fn segment(&mut self) -> Result<i64, Self::Error>;

    /// Takes rows of one session, in order.
    fn events(&mut self, batch: &RecordBatch) -> Result<(), Self::Error>;

    /// Takes the session and its file as of the rows handed over so far, and the problems since the
    /// last checkpoint. The sink may commit here, and only here.
    fn checkpoint(
        &mut self,
        session: SessionRow,
        source: SourceRow,
        problems: Vec<Problem>,
    ) -> Result<(), Self::Error>;

    /// Commits the remaining rows.
    fn finish(self) -> Result<(), Self::Error>;
}

/// The store, as ingest uses it.
pub trait Target: Sync {
    type Error: std::error::Error + Send;
    type Sink: Sink<Error = Self::Error>;

    /// Returns a sink for one worker.
    fn sink(&self) -> Result<Self::Sink, Self::Error>;

    /// Returns the identities of the records of a session, in order, from its committed events.
    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, Self::Error>;

    /// Returns the decoder state saved for a file.
    fn state(&self, path: &str) -> Result<Option<String>, Self::Error>;

    /// Reads the committed events of a session whose indices are in the ranges `of`, which ascend.
    fn events(&self, session_id: &str, of: &[Range<i32>]) -> Result<Vec<EventRow>, Self::Error>;
}

/// Receives progress while a plan runs, and can cancel it.
pub trait Progress: Sync {
    /// Reports how many files and bytes will be read.
    fn planned(&self, _files: u64, _bytes: u64) {}
    /// Reports how many more bytes were read.
    fn advanced(&self, _bytes: u64) {}
    /// Returns whether to end the run at the next checkpoint. Asked between records.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {}

/// Carries out `plan`, masking secrets by the rules of `redactor`.
///
/// # Errors
/// Returns errors of the store only. Problems with logs are in the report.
pub fn run<T: Target>(
    plan: Plan,
    target: &T,
    redactor: Option<&Arc<Redactor>>,
    progress: &dyn Progress,
) -> Result<Report, T::Error> {
    let target = &MaskedTarget { target, redactor: redactor.map(Arc::as_ref) };
    let mut report =
        Report { files: plan.files, files_unchanged: plan.unchanged, ..Report::default() };
    // A log that continues under another name has not vanished.
    let moved = plan.units.iter().flatten().filter_map(|work| {
        work.source.as_ref().map(|row| &row.path).filter(|path| **path != work.file.key())
    });
    let moved: HashSet<&String> = moved.collect();
    for row in &plan.settled {
        match row.status {
            SourceStatus::Gone if moved.contains(&row.path) => {}
            SourceStatus::Gone => report.files_vanished += 1,
            SourceStatus::Empty => report.files_empty += 1,
            SourceStatus::Beside => report.files_beside += 1,
            SourceStatus::UnknownFormat => report.files_unknown += 1,
            SourceStatus::Failed => report.files_failed += 1,
            SourceStatus::Ok => {}
        }
    }
    for problem in &plan.problems {
        report.files_failed += u64::from(problem.kind == ProblemKind::Unreadable);
        report.problem(problem);
    }
    progress.planned(plan.units.iter().map(Vec::len).sum::<usize>() as u64, plan.bytes);
    settle(&plan, target)?;
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let error = Mutex::new(None);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    // One more worker for every 4 MiB: a small gain is not worth a second segment.
    let workers =
        workers.min(plan.units.len()).min(1 + usize::try_from(plan.bytes >> 22).unwrap_or(workers));
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    let mut worker = Worker {
                        target,
                        progress,
                        redactor: redactor.cloned(),
                        schema: events_schema(),
                        report: Report::default(),
                    };
                    let result = worker.work(&plan.units, &next, &failed);
                    if let Err(cause) = result {
                        failed.store(true, Ordering::Relaxed);
                        error
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner)
                            .get_or_insert(cause);
                    }
                    worker.report
                })
            })
            .collect();
        for handle in handles {
            match handle.join() {
                Ok(numbers) => report.add(numbers),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let mut masker = ColumnMasker::default();
    for problem in &mut report.problem_list {
        *problem = masker.row(target.redactor, &PROBLEMS, problem, &mut Found::new());
    }
    match error.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(report),
    }
}

/// Writes the rows that change without reading a file.
fn settle<T: Target>(plan: &Plan, target: &T) -> Result<(), T::Error> {
    if plan.settled.is_empty() && plan.sessions.is_empty() {
        return Ok(());
    }
    let mut sink = target.sink()?;
    let mut sessions = HashMap::new();
    for session in &plan.sessions {
        sessions.entry(session.session_id.as_str()).or_insert(session);
    }
    let mut problems: HashMap<&str, Vec<Problem>> = HashMap::new();
    for problem in &plan.problems {
        if matches!(problem.kind, ProblemKind::UnknownFormat | ProblemKind::OversizedDocument) {
            problems.entry(&problem.path).or_default().push(problem.clone());
        }
    }
    for row in &plan.settled {
        let session = row.session_id.as_deref().and_then(|id| sessions.get(id).copied());
        let problems = problems.remove(row.path.as_str()).unwrap_or_default();
        // The known rows come without the decoder state, which a log that comes back needs to
        // continue.
        let state = target.state(plan.moved.get(&row.path).unwrap_or(&row.path))?;
        let row = SourceRow { state, ..row.clone() };
        // A row without a session is stored under an empty session id.
        sink.checkpoint(session.cloned().unwrap_or_default(), row, problems)?;
    }
    sink.finish()
}
