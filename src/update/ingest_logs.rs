//! Ingests the new content of logs into a store.

use std::collections::HashSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ingest::discover::{Discovery, discover};
use ingest::plan::excluded::{LeftOut, leave_out};
use ingest::plan::{Known, Plan, plan, rules_version};
use ingest::redact::Redactor;
use ingest::run::Progress;
use ingest::run::report::{ExcludedLog, IngestReport};
use schemas::{ErrorCode, ToolError};

use super::archive::archive_rules;
use super::filtered_target::FilteredTarget;
use super::known_sessions::SessionFacts;
use super::log_rules::{ForgottenRules, LogRules};
use super::retention::{choose_keep_levels, keep_after_ingest};
use super::unchanged_logs::scan_logs;
use super::write_lock::take_write_lock_within;
use crate::config::environment::{absent_roots, known_roots};
use crate::config::user_settings::KeepRule;
use store::{ArchiveRules, MaskedAgain, RowsToMask, Store, StoreWriter, Verify};
use tools::error::{store_error, unusable_path};
use tools::reply::store_warnings::describe_lost_logs;
use tools::status::count_by_class;

/// The settings of an ingest.
pub struct IngestOptions {
    pub verify: Verify,
    /// The redactor that masks secrets; `None` keeps them.
    pub redactor: Option<Arc<Redactor>>,
    /// Maximum time to wait for another writer.
    pub lock_timeout: Duration,
    /// The rules of retention, which the run applies. `None` leaves the stored texts as they are.
    pub retention: Option<Vec<KeepRule>>,
    /// How the logs are archived.
    pub archive: ArchiveRules,
}

impl IngestOptions {
    /// Returns the settings of a run that nobody waits for.
    ///
    /// # Errors
    /// Fails if the settings of the archive are not valid.
    pub fn in_background(redactor: Option<Arc<Redactor>>) -> Result<Self, ToolError> {
        Ok(Self {
            verify: Verify::Some,
            archive: archive_rules(redactor.as_ref())?,
            redactor,
            lock_timeout: Duration::ZERO,
            retention: None,
        })
    }
}

/// Maximum number of changed files that are passed to an ingest by name. Each named file is
/// resolved and checked on its own. If more files changed, the ingest walks the whole folders and
/// finds them.
pub(super) const MAX_NAMED_FILES: usize = 200;

/// What a run has to do, under the write lock of the store.
struct PreparedIngest {
    writer: StoreWriter,
    plan: Plan,
    rules: LogRules,
    /// The ids of the sessions in the store.
    known_sessions: HashSet<String>,
    left_out: LeftOut,
    /// The number of sessions in the store that the rules exclude.
    unwanted_sessions: usize,
}

/// A store that is locked for an ingest, with the rules about its logs.
struct OpenedStore {
    writer: StoreWriter,
    rules: LogRules,
    facts: SessionFacts,
}

impl OpenedStore {
    /// Takes the write lock and reads the rules.
    fn lock(store: &Store, options: &IngestOptions) -> Result<Self, ToolError> {
        let writer = take_write_lock_within(store, options.verify, options.lock_timeout)?;
        let forgotten = writer.forgotten_logs().map_err(store_error)?;
        let records = forgotten.read_records(store.dir()).map_err(store_error)?;
        let rules = LogRules::read(ForgottenRules::new(&forgotten, records))?;
        let facts = SessionFacts::of_sessions(writer.snapshot_before().sessions(), &rules);
        Ok(Self { writer, rules, facts })
    }
}

/// Ingests new content below `paths`, or below the known roots if `paths` is empty.
pub fn ingest_logs(
    store: &Store,
    paths: &[PathBuf],
    options: &IngestOptions,
    progress: &dyn Progress,
) -> Result<IngestReport, ToolError> {
    let start = Instant::now();
    let mut prepared = prepare_ingest(store, paths, options)?;
    let writer = &prepared.writer;
    let redactor = options.redactor.as_ref();

    let known_sessions = std::mem::take(&mut prepared.known_sessions);
    let target = FilteredTarget::new(writer, &prepared.rules, known_sessions, false);
    let run = ingest::run::run(prepared.plan, &target, redactor, progress);
    let mut report = run.map_err(store_error)?;
    report.continued.extend(target.into_continued());
    report.excluded_logs.clear();
    report.files_excluded += prepared.left_out.paths.len() as u64;
    report.notices.extend(unwanted_notice(prepared.unwanted_sessions));
    report.segments_set_aside = writer.segments_set_aside();
    report.notices.extend(writer.notice().map(str::to_owned));
    let mut masked_again = MaskedAgain::default();
    if let Some(redactor) = redactor {
        masked_again = writer.mask_again(redactor, RowsToMask::All).map_err(store_error)?;
        writer.mask_labels_again(redactor).map_err(store_error)?;
    }
    writer.settle_continued().map_err(store_error)?;
    let recounted = writer.count_responses_once().map_err(store_error)?;
    if report.files_rewritten > 0 || masked_again.logs > 0 || recounted > 0 {
        writer.retire_superseded_segments().map_err(store_error)?;
    }
    if let Some(rules) = &options.retention {
        report.notices.extend(keep_after_ingest(writer, rules)?);
    }
    writer.merge_small_segments().map_err(store_error)?;
    let lost = writer.settle_lost_logs(options.verify).map_err(store_error)?;
    report.notices.extend(describe_lost_logs(&lost));
    let archived = writer.archive_logs(&options.archive, options.verify);
    report.notices.extend(archived.map_err(store_error)?);

    report.sessions_by_class = writer.count_now(count_by_class).map_err(store_error)?;
    record_time(&mut report, start.elapsed());
    tracing::info!(
        files = report.files,
        events = report.events,
        bytes = report.bytes_read,
        ms = report.elapsed_ms,
        "ingested"
    );
    prepared.writer.unlock();
    Ok(report)
}

/// Returns the report that an ingest would have, and the logs that it would leave out. Reads the
/// logs like an ingest, and writes no row.
pub fn preview_ingest(
    store: &Store,
    paths: &[PathBuf],
    options: &IngestOptions,
    progress: &dyn Progress,
) -> Result<IngestReport, ToolError> {
    let start = Instant::now();
    // A dry run without a store plans with an empty one elsewhere, so that none is created.
    let scratch = tempfile::tempdir().map_err(|error| {
        let message = format!("No temporary folder can be created: {error}. Check TMPDIR");
        ToolError::new(ErrorCode::StoreUnavailable, message)
    })?;
    let empty = Store::new(scratch.path().join("store"));
    let prepared = prepare_ingest(if store.is_absent() { &empty } else { store }, paths, options)?;
    let notice = prepared.writer.notice().map(str::to_owned);
    let known_sessions = prepared.known_sessions;
    let target = FilteredTarget::new(&prepared.writer, &prepared.rules, known_sessions, true);
    let run = ingest::run::run(prepared.plan, &target, options.redactor.as_ref(), progress);
    let mut report = run.map_err(store_error)?;
    report.continued.extend(target.into_continued());

    report.files_excluded += prepared.left_out.paths.len() as u64;
    for path in prepared.left_out.paths {
        report.excluded_logs.push(ExcludedLog { path, project: None });
    }
    report.excluded_logs.sort();
    report.notices.extend(unwanted_notice(prepared.unwanted_sessions));
    report.notices.extend(notice);
    report.is_dry_run = true;
    record_time(&mut report, start.elapsed());
    Ok(report)
}

/// Finds the logs below `paths`, or below the known roots if `paths` is empty, takes the write lock,
/// and plans what is read.
fn prepare_ingest(
    store: &Store,
    paths: &[PathBuf],
    options: &IngestOptions,
) -> Result<PreparedIngest, ToolError> {
    let roots = if paths.is_empty() { known_roots() } else { paths.to_vec() };
    // A store may know of logs elsewhere, and of logs that are gone.
    if roots.is_empty() && store.is_absent() {
        let message = "No agent has a folder with logs here (`sessions doctor` lists where they are looked for). Name a file or folder: `sessions ingest PATH`";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message));
    }
    for path in paths {
        std::fs::metadata(path).map_err(|error| unreadable_path_error(path, error))?;
    }

    // Finding files and opening the store take about the same time, so they run in parallel.
    let (scanned, opened) = std::thread::scope(|scope| {
        let scanned = scope.spawn(|| scan_logs(store, &roots));
        let opened = OpenedStore::lock(store, options);
        (scanned.join(), opened)
    });
    let (scan, mut found) = scanned.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    refuse_unreadable_paths(paths, &found)?;
    let OpenedStore { writer, rules, facts } = opened?;
    let scan = scan.with_sources_of(&writer, &found)?;
    let absent = if paths.is_empty() { absent_roots(&scan.agents()) } else { Vec::new() };
    found.roots.extend_from_slice(&absent);
    let lost = writer.find_lost_logs().map_err(store_error)?;
    let redactor = options.redactor.as_deref();
    if lost.is_empty()
        && let Some(unchanged) =
            scan.find_unchanged(&found, &writer, &facts, &rules, rules_version(redactor))
    {
        let files = found.files.len();
        let segments_with_rows = writer.snapshot_before().segments_with_rows();
        tracing::debug!(files, segments_with_rows, "no log changed");
        return Ok(PreparedIngest {
            writer,
            plan: Plan::of_unchanged(files as u64),
            rules,
            known_sessions: HashSet::new(),
            left_out: LeftOut::default(),
            unwanted_sessions: unchanged.unwanted_sessions,
        });
    }
    drop((scan, facts));
    let mut known = writer.collect_known_logs().map_err(store_error)?;
    if let Some(rules) = &options.retention {
        let levels = choose_keep_levels(writer.snapshot_before(), rules);
        writer.restore_texts(&mut known, &levels);
    }
    if !lost.is_empty() {
        // Damage is repaired at once, also for logs outside the given folders.
        found = discover(&[roots, lost].concat()).without_folder(store.dir());
        found.roots.extend(absent);
    }

    let files = found.files.len() as u64;
    let left_out = leave_out(&mut found, &mut known, &rules);
    let mut plan = plan_logs(&writer, found, &mut known, redactor)?;
    plan.files = files;
    plan.settled.extend(left_out.rows.iter().cloned());
    let sessions = writer.snapshot_before().sessions().iter();
    let unwanted = sessions.filter(|session| rules.is_unwanted_session(session));
    let unwanted_sessions = unwanted.count();
    let known_sessions = known.sessions.into_keys().collect();
    Ok(PreparedIngest { writer, plan, rules, known_sessions, left_out, unwanted_sessions })
}

/// Plans what is read. Logs that continue sessions of other machines take the place of these.
fn plan_logs(
    writer: &StoreWriter,
    found: Discovery,
    known: &mut Known,
    redactor: Option<&Redactor>,
) -> Result<Plan, ToolError> {
    if known.imported.is_empty() {
        return Ok(plan(found, known, redactor));
    }
    let first = plan(found.clone(), known, redactor);
    let continuing = writer.find_continuing(&first, known).map_err(store_error)?;
    if continuing.is_empty() {
        return Ok(first);
    }
    let plan = plan(found, known, redactor);
    writer.continue_sessions(&continuing, &plan).map_err(store_error)?;
    Ok(plan)
}

/// Returns the notice on sessions in the store that are excluded now; `None` if there are none.
fn unwanted_notice(sessions: usize) -> Option<String> {
    let sessions = match sessions {
        0 => return None,
        1 => "1 excluded session is".to_owned(),
        sessions => format!("{sessions} excluded sessions are"),
    };
    Some(format!(
        "{sessions} still in the store. `sessions forget --excluded` lists them, and removes them with --yes"
    ))
}

/// Records the duration of a run and its rate in the report.
fn record_time(report: &mut IngestReport, elapsed: Duration) {
    report.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = report.bytes_read as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9);
    report.mb_per_second = (rate * 10.0).round() / 10.0;
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
