//! `sessions secrets`: lists the secrets in the logs of this machine.

use std::collections::BTreeSet;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::lake::find_published;
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
}

pub(in crate::cli) fn run(flags: &SecretFlags, context: &CommandContext<'_>) -> CommandResult {
    let tools = context.create_tools();
    let call = &context.call;
    let since = TimeRange::parse(flags.since.as_deref(), None, call)?.since;
    let filter =
        SecretFilter { project: flags.project.as_deref(), kind: flags.kind.as_deref(), since };
    let data = tools.read_store(call, &mut || {
        let published: BTreeSet<usize> = find_published(tools.store(), tools.snapshot(call)?)?;
        tools.list_secrets(filter, &|at| published.contains(&at), call)
    })?;
    context.printer.print_value(&data, &context.layout())?;
    // As from a check: secrets are a failure, and so is that they are not known.
    Ok(CommandOutcome::from_found(data.secrets.is_empty() && data.unmasked_logs == 0))
}
