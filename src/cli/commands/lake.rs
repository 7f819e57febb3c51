//! `sessions lake compact`: merges the small objects of a lake.

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::lake::{LakePlace, compact_lake};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct LakeFlags {
    #[command(subcommand)]
    action: LakeAction,
}

#[derive(Debug, clap::Subcommand)]
enum LakeAction {
    /// Merge the small objects of past days into large ones, for engines that scan a lot
    Compact(LakeCompactFlags),
}

#[derive(Debug, clap::Args)]
struct LakeCompactFlags {
    /// The lake: a folder, s3://BUCKET/PATH, gs://BUCKET/PATH or az://CONTAINER/PATH
    #[arg(value_name = "DEST")]
    destination: String,
}

pub(in crate::cli) fn run(flags: &LakeFlags, context: &CommandContext<'_>) -> CommandResult {
    let LakeAction::Compact(flags) = &flags.action;
    let place = LakePlace::open(&flags.destination)?;
    let report = compact_lake(&place, schemas::Timestamp::now())?;
    context.printer.print_report(&report)?;
    let is_whole = report.problems.is_empty();
    Ok(if is_whole { CommandOutcome::Done } else { CommandOutcome::NothingFound })
}
