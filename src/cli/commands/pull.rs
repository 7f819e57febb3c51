//! `sessions pull`: imports sessions of other machines from a lake.

use std::time::Duration;

use schemas::ToolError;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::settings::create_redactor;
use crate::config::user_settings::UserSettings;
use crate::lake::{LakePlace, PullContent, PullFilter, PullReport, pull_sessions};
use crate::update::write_lock::{LONG_LOCK_TIMEOUT, take_write_lock_within};
use store::Verify;
use tools::TimeRange;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PullFlags {
    /// The lake: a folder, s3://BUCKET/PATH, gs://BUCKET/PATH or az://CONTAINER/PATH
    #[arg(value_name = "SOURCE")]
    source: String,
    /// Only sessions of users whose name contains this text
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only sessions active since: '24h', '7d', 'yesterday', 'last week', a date or time
    #[arg(long)]
    since: Option<String>,
    /// Only sessions that ended before that time
    #[arg(long)]
    until: Option<String>,
    /// Keep running, and look for new sessions repeatedly
    #[arg(long)]
    watch: bool,
    /// Seconds between checks of --watch
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "watch")]
    every: u64,
}

pub(in crate::cli) fn run(flags: &PullFlags, context: &CommandContext<'_>) -> CommandResult {
    let printer = context.printer;
    if !flags.watch {
        let report = pull_once(flags, context)?;
        printer.print_report(&report)?;
        let is_whole = report.problems.is_empty();
        return Ok(if is_whole { CommandOutcome::Done } else { CommandOutcome::NothingFound });
    }
    loop {
        // A lake that cannot be reached for a while must not end a server.
        match pull_once(flags, context) {
            Ok(report) if report.has_changes() || !report.problems.is_empty() => {
                printer.print_report(&report)?;
            }
            Ok(_) => {}
            Err(error) => printer.print_failure(&format!("{}; trying again", error.message))?,
        }
        std::thread::sleep(Duration::from_secs(flags.every.max(1)));
    }
}

/// Imports what is new.
fn pull_once(flags: &PullFlags, context: &CommandContext<'_>) -> Result<PullReport, ToolError> {
    let call = &context.call;
    let now = schemas::Timestamp::now();
    let TimeRange { since, until } =
        TimeRange::parse(flags.since.as_deref(), flags.until.as_deref(), &call.zone, now)?;
    let filter = PullFilter {
        user: flags.user.clone(),
        project: flags.project.clone(),
        since,
        until,
        skips_excluded: true,
        takes_logs: !UserSettings::read()?.store.drops_logs(),
    };
    let place = LakePlace::open(&flags.source)?;
    let redactor = create_redactor()?;
    pull_sessions(&context.store, &place, &filter, PullContent::Whole, &redactor, &|| {
        take_write_lock_within(&context.store, Verify::Some, LONG_LOCK_TIMEOUT)
    })
}
