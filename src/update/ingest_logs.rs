//! Ingests the new content of logs into a store.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ingest::discover::{Discovery, discover};
use ingest::plan::plan;
use ingest::redact::Redactor;
use ingest::run::Progress;
use ingest::run::report::IngestReport;
use schemas::{ErrorCode, ToolError};

use crate::config::environment::known_roots;
use crate::error::{store_error, unusable_path};
use crate::store::{Store, StoreError, StoreWriter, Verify};
use crate::tools::reply::store_warnings::describe_lost_logs;

/// The settings of an ingest.
pub struct IngestOptions {
    pub verify: Verify,
    /// The redactor that masks secrets; `None` keeps them.
    pub redactor: Option<Arc<Redactor>>,
    /// Maximum time to wait for another writer.
    pub patience: Duration,
}

/// Maximum number of changed files that are passed to an ingest by name. Each named file is
/// resolved and checked on its own. If more files changed, the ingest walks the whole folders and
/// finds them.
pub(super) const MAX_NAMED_FILES: usize = 200;

/// Interval between attempts to take the write lock while another writer holds it.
pub(super) const BUSY_RETRY: Duration = Duration::from_millis(200);

/// Ingests new content below `paths`, or below the known roots if `paths` is empty.
pub fn ingest_logs(
    store: &Store,
    paths: &[PathBuf],
    options: &IngestOptions,
    progress: &dyn Progress,
) -> Result<IngestReport, ToolError> {
    let start = Instant::now();
    let roots = if paths.is_empty() { known_roots() } else { paths.to_vec() };
    if roots.is_empty() {
        let message =
            "No logs were found in the usual places. Name a file or folder: `sessions ingest PATH`";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message));
    }
    for path in paths {
        std::fs::metadata(path).map_err(|error| unreadable_path_error(path, error))?;
    }

    // Finding files and reading the known sources take about the same time, so they run in
    // parallel.
    let (found, known) = std::thread::scope(|scope| {
        let found = scope.spawn(|| discover(&roots).without_folder(store.dir()));
        let known = take_write_lock(store, options).and_then(|writer| {
            let known = writer.collect_known_logs().map_err(store_error)?;
            Ok((writer, known))
        });
        (found.join(), known)
    });
    let mut found = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    refuse_unreadable_paths(paths, &found)?;
    let (writer, known) = known?;
    let lost = writer.find_lost_logs().map_err(store_error)?;
    if !lost.is_empty() {
        // Damage is repaired at once, also for logs outside the given folders.
        found = discover(&[roots, lost].concat()).without_folder(store.dir());
    }

    let redactor = options.redactor.as_ref();
    let mut plan = plan(found, &known, redactor.map(Arc::as_ref));
    let outdated = std::mem::take(&mut plan.outdated);
    let mut report = ingest::run::run(plan, &&writer, redactor, progress).map_err(store_error)?;
    report.segments_set_aside = writer.segments_set_aside();
    report.notices.extend(writer.notice().map(str::to_owned));
    if let Some(redactor) = redactor
        && !outdated.is_empty()
    {
        writer.redact_again(&outdated, redactor).map_err(store_error)?;
    }
    if report.files_rewritten > 0 || !outdated.is_empty() {
        writer.retire_superseded_segments().map_err(store_error)?;
    }
    writer.merge_small_segments().map_err(store_error)?;
    let lost = writer.settle_lost_logs(options.verify).map_err(store_error)?;
    report.notices.extend(describe_lost_logs(&lost));

    record_time(&mut report, start.elapsed());
    tracing::info!(
        files = report.files,
        events = report.events,
        bytes = report.bytes_read,
        ms = report.elapsed_ms,
        "ingested"
    );
    Ok(report)
}

/// Records the duration of a run and its rate in the report.
fn record_time(report: &mut IngestReport, elapsed: Duration) {
    report.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = report.bytes_read as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9);
    report.mb_per_second = (rate * 10.0).round() / 10.0;
}

/// Takes the write lock. If another writer holds it, the function waits for at most
/// `options.patience`.
fn take_write_lock(store: &Store, options: &IngestOptions) -> Result<StoreWriter, ToolError> {
    let until = Instant::now() + options.patience;
    loop {
        match store.open_writer(options.verify) {
            Err(StoreError::Busy { .. }) if Instant::now() < until => {
                std::thread::sleep(BUSY_RETRY);
            }
            result => return result.map_err(store_error),
        }
    }
}

/// Returns an error if a given path cannot be read at all: it is an invalid argument.
fn refuse_unreadable_paths(paths: &[PathBuf], found: &Discovery) -> Result<(), ToolError> {
    for path in paths {
        let path_problem = found.problems.iter().find(|problem| Path::new(&problem.path) == path);
        if let Some(problem) = path_problem {
            return Err(unreadable_path_error(path, &problem.message));
        }
    }
    Ok(())
}

/// Returns the error for a given path that cannot be read.
fn unreadable_path_error(path: &Path, reason: impl Display) -> ToolError {
    unusable_path(path, format_args!("{reason}. Check the path and its permissions"))
}
