//! `sessions ingest`: reads new and grown logs into the store, once or continuously.

use std::path::PathBuf;
use std::time::Duration;

use ingest::run::report::IngestReport;
use schemas::{Timestamp, ToolError};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::settings;
use crate::config::user_settings::UserSettings;
use crate::output::{IngestBar, Printer, describe_ingest_failures, watch_line};
use crate::update::archive::archive_rules;
use crate::update::ingest_logs::{IngestOptions, ingest_logs, preview_ingest};
use crate::update::watch::watch_logs;
use store::Verify;

/// Maximum time that an ingest waits for another one. A server ingests grown logs within moments.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Default, clap::Args)]
pub(in crate::cli) struct IngestFlags {
    /// Log files and folders [default: the usual places of every known agent]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Verify all checksums of the store first, and re-read damaged parts
    #[arg(long)]
    verify: bool,
    /// Show what would be read and left out, and write nothing
    #[arg(long, conflicts_with_all = ["watch", "verify"])]
    dry_run: bool,
    /// Keep running, and read changes within a second
    #[arg(long)]
    watch: bool,
    /// Do not mask secrets; re-read logs that were masked
    #[arg(long)]
    no_redact: bool,
}

pub(in crate::cli) fn run(flags: &IngestFlags, context: &CommandContext<'_>) -> CommandResult {
    let printer = context.printer;
    if flags.watch {
        return run_watch(flags, context);
    }
    let report = ingest_once(flags, context)?;
    print_report(&report, printer)?;
    Ok(CommandOutcome::Done)
}

/// Ingests the logs of this machine for another command, and returns the report instead of printing
/// it.
pub(in crate::cli) fn ingest_default_logs(
    context: &CommandContext<'_>,
) -> Result<IngestReport, ToolError> {
    ingest_once(&IngestFlags::default(), context)
}

/// Ingests these logs for another command.
pub(super) fn ingest_paths(
    paths: &[PathBuf],
    context: &CommandContext<'_>,
) -> Result<IngestReport, ToolError> {
    let options = create_options(&IngestFlags::default())?;
    ingest_logs(&context.store, paths, &options, &())
}

/// Runs one ingest with a progress bar.
fn ingest_once(
    flags: &IngestFlags,
    context: &CommandContext<'_>,
) -> Result<IngestReport, ToolError> {
    let options = create_options(flags)?;
    let bar = IngestBar::new(context.printer.is_quiet || context.printer.is_json);
    let run = if flags.dry_run { preview_ingest } else { ingest_logs };
    let report = run(&context.store, &flags.paths, &options, &bar);
    bar.finish();
    if let Ok(report) = &report
        && !report.objects_merged.is_empty()
    {
        tracing::info!(records = ?report.objects_merged, "parts of other events");
    }
    report
}

fn create_options(flags: &IngestFlags) -> Result<IngestOptions, ToolError> {
    let redactor = if flags.no_redact { None } else { Some(settings::create_redactor()?) };
    Ok(IngestOptions {
        archive: archive_rules(redactor.as_ref())?,
        verify: if flags.verify { Verify::All } else { Verify::Some },
        redactor,
        lock_timeout: LOCK_TIMEOUT,
        // A watch outlives the time at which its command began.
        retention: Some(UserSettings::read()?.store.keep_rules(Timestamp::now())?),
    })
}

/// Ingests until stdout is closed or the process is ended. Shows only the runs that found
/// something: the first one as a report, each later one in a line.
fn run_watch(flags: &IngestFlags, context: &CommandContext<'_>) -> CommandResult {
    let printer = context.printer;
    // The error of stdout that ended the watch.
    let mut closed = None;
    let mut is_first = true;
    let create_options = || create_options(flags);
    watch_logs(&context.store, &flags.paths, &create_options, |report| {
        if report.sessions > 0 || report.files_failed > 0 {
            closed = if is_first || printer.is_json || printer.is_quiet {
                print_report(&report, printer).err()
            } else {
                printer.print_data(&watch_line(&report)).err()
            };
        }
        is_first = false;
        closed.is_none()
    })?;
    match closed {
        None => Ok(CommandOutcome::Done),
        Some(error) => Err(error.into()),
    }
}

/// Prints the report of a run; only what failed if the user asked for quiet output.
fn print_report(report: &IngestReport, printer: &Printer) -> std::io::Result<()> {
    if printer.is_json || !printer.is_quiet {
        return printer.print_report(report);
    }
    print_failures(report, printer)
}

/// Prints what failed in a run.
pub(in crate::cli) fn print_failures(
    report: &IngestReport,
    printer: &Printer,
) -> std::io::Result<()> {
    for failure in describe_ingest_failures(report) {
        printer.print_failure(&failure)?;
    }
    Ok(())
}
