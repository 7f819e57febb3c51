//! `sessions compact`: drops texts that the settings do not keep, and merges small segments.

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::user_settings::UserSettings;
use crate::update::archive::remove_archive;
use crate::update::retention::{compact_store, preview_compaction};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CompactFlags {
    /// Show what would be freed, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(in crate::cli) fn run(flags: &CompactFlags, context: &CommandContext<'_>) -> CommandResult {
    let settings = UserSettings::read()?.store;
    let rules = settings.keep_rules(context.call.now)?;
    let printer = context.printer;
    printer.print_warnings(&context.create_tools().store_warnings(&context.call)?)?;
    if rules.is_empty() && !printer.is_json {
        printer.print_note(
            "The settings keep the texts of all sessions. To keep less of old ones, set for example `keep = \"transcripts after 90d\"` under [store] in settings.toml.",
        )?;
    }
    let data = if flags.dry_run {
        preview_compaction(&context.store, &rules)?
    } else {
        compact_store(&context.store, &rules)?
    };
    if !flags.dry_run && settings.drops_logs() && remove_archive(&context.store)? {
        printer.print_note(
            "The archive of logs was removed, because store.keep_logs in settings.toml is \"no\".",
        )?;
    }
    printer.print_report(&data)?;
    Ok(CommandOutcome::Done)
}
