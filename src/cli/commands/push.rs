//! `sessions push`: publishes sessions to a lake.

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::environment::home_dir;
use crate::config::settings::create_redactor;
use crate::config::user_settings::UserSettings;
use crate::lake::{LakePlace, PushOptions, push_sessions};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PushFlags {
    /// The lake: a folder, s3://BUCKET/PATH, gs://BUCKET/PATH or az://CONTAINER/PATH
    #[arg(value_name = "DEST")]
    destination: String,
    /// Show what would be published, with sizes and what was masked, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Also publish sessions whose secrets were not masked; needs `unredacted = true` under [publish]
    #[arg(long)]
    unredacted: bool,
}

pub(in crate::cli) fn run(flags: &PushFlags, context: &CommandContext<'_>) -> CommandResult {
    let options = PushOptions {
        settings: UserSettings::read()?.publish,
        home: home_dir(),
        allows_unredacted: flags.unredacted,
        is_dry_run: flags.dry_run,
    };
    let printer = context.printer;
    if options.settings.include.is_empty() && !printer.is_json {
        printer.print_note(
            "The settings publish no project. Name some, for example `include = [\"~/code/**\"]` under [publish] in settings.toml.",
        )?;
    }
    let place = LakePlace::open(&flags.destination)?;
    let report = push_sessions(&context.store, &place, &options, &*create_redactor()?)?;
    if !printer.is_json {
        for warning in &report.warnings {
            printer.print_note(warning)?;
        }
    }
    if report.unredacted > 0 && !printer.is_json {
        printer.print_failure(&format!(
            "{} sessions were ingested with --no-redact and are not published. Ingest them again \
            without it, or publish them as they are: this needs both `unredacted = true` under \
            [publish] and --unredacted.",
            report.unredacted
        ))?;
    }
    printer.print_report(&report)?;
    Ok(if report.unredacted > 0 { CommandOutcome::NothingFound } else { CommandOutcome::Done })
}
