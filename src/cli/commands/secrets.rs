//! `sessions secrets`: lists the secrets in the logs of this machine, and replaces them there.

use std::collections::BTreeSet;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::lake::find_published;
use crate::output::IngestBar;
use crate::scrub::{find_backup, forget_backup, preview_scrub, restore_backup, scrub_logs};
use tools::reply::time_range::TimeRange;
use tools::secrets::SecretFilter;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SecretFlags {
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only secrets of this kind, such as github_token
    #[arg(long)]
    kind: Option<String>,
    /// Only secrets written since: '24h', '7d', 'yesterday', a date or time
    #[arg(long)]
    since: Option<String>,
    /// Replace the secrets in the agents' own logs and databases, keeping a backup
    #[arg(long, group = "change")]
    scrub: bool,
    /// Remove the backup of logs and databases that --scrub made
    #[arg(long, group = "change", conflicts_with_all = ["project", "kind", "since"])]
    forget_backup: bool,
    /// Restore logs and databases from the backup, secrets included
    #[arg(long, group = "change", conflicts_with_all = ["project", "kind", "since"])]
    restore_backup: bool,
    /// Apply the changes; without it, --scrub, --forget-backup and --restore-backup only show what they would do
    #[arg(long, requires = "change")]
    yes: bool,
}

pub(in crate::cli) fn run(flags: &SecretFlags, context: &CommandContext<'_>) -> CommandResult {
    if flags.forget_backup || flags.restore_backup {
        let change = if flags.forget_backup { forget_backup } else { restore_backup };
        let data = change(&context.store, flags.yes)?;
        context.printer.print_value(&data, &context.layout())?;
        return Ok(CommandOutcome::from_found(data.left_out.is_empty()));
    }

    let tools = context.create_tools();
    let call = &context.call;
    let since = TimeRange::parse(flags.since.as_deref(), None, &call.zone, call.now)?.since;
    let kind = flags.kind.as_deref();
    let filter = SecretFilter { project: flags.project.as_deref(), kind, since };
    let bar = IngestBar::new(context.printer.is_quiet || context.printer.is_json);
    let listed = tools.read_store(call, &mut || {
        let published: BTreeSet<usize> = find_published(tools.store(), tools.snapshot(call)?)?;
        tools.list_secrets(filter, &|at| published.contains(&at), &bar, call)
    });
    bar.finish();
    let mut data = listed?;
    if flags.scrub {
        let redactor = tools.create_redactor()?;
        let mut scrubbed = if flags.yes {
            scrub_logs(&context.store, &data.logs, kind, &redactor)?
        } else {
            preview_scrub(&data.logs, kind, &redactor)?
        };
        scrubbed.unsearched_files = data.unsearched_files;
        context.printer.print_value(&scrubbed, &context.layout())?;
        return Ok(CommandOutcome::from_found(scrubbed.is_clean()));
    }
    data.backup = find_backup(&context.store);
    context.printer.print_value(&data, &context.layout())?;
    // As from a check: secrets are a failure, and so is that they are not known.
    let is_known = data.unmasked_logs == 0 && data.unsearched_files.is_empty();
    Ok(CommandOutcome::from_found(data.secrets.is_empty() && is_known))
}
