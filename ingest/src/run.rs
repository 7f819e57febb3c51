//! Carries out a plan: workers decode files side by side, each into a sink of its own.

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

/// Where rows go. One worker owns one sink.
pub trait Sink {
    type Error: std::error::Error + Send;

    /// Number of the segment that the next rows go to.
    fn segment(&mut self) -> Result<i64, Self::Error>;

    /// Rows of one session, in order.
    fn events(&mut self, batch: &RecordBatch) -> Result<(), Self::Error>;

    /// The session and its file as of the rows handed over so far, and the problems since the
    /// last time. The sink may commit here, and only here.
    fn checkpoint(
        &mut self,
        session: SessionRow,
        source: SourceRow,
        problems: Vec<Problem>,
    ) -> Result<(), Self::Error>;

    /// Commits what is left.
    fn finish(self) -> Result<(), Self::Error>;
}

/// The store as ingest sees it.
pub trait Target: Sync {
    type Error: std::error::Error + Send;
    type Sink: Sink<Error = Self::Error>;

    /// A sink for one worker.
    fn sink(&self) -> Result<Self::Sink, Self::Error>;

    /// Identities of the records of a session, in order, from the events that are committed.
    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, Self::Error>;

    /// The decoder state saved for a file.
    fn state(&self, path: &str) -> Result<Option<String>, Self::Error>;

    /// Events of a session that are committed, by ranges of their indices, which ascend.
    fn events(&self, session_id: &str, of: &[Range<i32>]) -> Result<Vec<EventRow>, Self::Error>;
}

/// Who wants to know how far it is.
pub trait Progress: Sync {
    /// So many files and bytes will be read.
    fn planned(&self, _files: u64, _bytes: u64) {}
    /// So many bytes more were read.
    fn advanced(&self, _bytes: u64) {}
    /// Asked between records; true ends the run at the next checkpoint.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {}

/// Carries out `plan`, masking secrets by the rules of `redactor`. An error is the store's; trouble with logs is in the report.
pub fn run<T: Target>(
    plan: Plan,
    target: &T,
    redactor: Option<&Arc<Redactor>>,
    progress: &dyn Progress,
) -> Result<Report, T::Error> {
    let target = &MaskedTarget { target, redactor: redactor.map(Arc::as_ref) };
    let mut report =
        Report { files: plan.files, files_unchanged: plan.unchanged, ..Report::default() };
    // What goes on under another name has not vanished.
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
    // A small difference is not worth a second segment.
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

/// Writes what changes without reading.
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
        // What is known of the store comes without the state, by which a log goes on that comes back.
        let state = target.state(plan.moved.get(&row.path).unwrap_or(&row.path))?;
        let row = SourceRow { state, ..row.clone() };
        // A row without a session is kept under an empty id, which is no session.
        sink.checkpoint(session.cloned().unwrap_or_default(), row, problems)?;
    }
    sink.finish()
}
