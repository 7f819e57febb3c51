//! Carries out a plan: parallel workers decode files, each into its own sink.

mod checkpoint;
mod copies;
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
use std::sync::{Arc, Mutex};

use schemas::problem::{Problem, ProblemKind};
use schemas::session::{SourceRow, SourceStatus};
use schemas::table::PROBLEMS;

use self::masked_target::MaskedTarget;
use self::report::Report;
pub use self::target::{Progress, Sink, Target};
use self::worker::Worker;
use crate::plan::Plan;
use crate::redact::columns::ColumnMasker;
use crate::redact::{Found, Redactor};
use crate::stream::batch::events_schema;

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
