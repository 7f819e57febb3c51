//! `sessions usage`: shows tokens and cost by day, week or month.

use clap::ValueEnum;
use schemas::limits;
use schemas::tool::stats::GroupKey;

use crate::cli::context::{CommandContext, leak_tools};
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::stats_filter::StatsFilter;
use crate::output::usage_table;
use crate::tools::quota::read_quotas;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UsageFlags {
    /// How long the periods are
    #[arg(value_enum, default_value_t = Period::Daily)]
    period: Period,
    /// Show the quotas that agents record: used part and reset time of each window
    #[arg(long)]
    limits: bool,
    #[command(flatten)]
    filter: StatsFilter,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Period {
    Daily,
    Weekly,
    Monthly,
}

pub(in crate::cli) fn run(
    flags: UsageFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = leak_tools(context.create_query_tools()?);
    let call = &context.call;
    let printer = context.printer;
    if flags.limits {
        let quotas = read_quotas(tools, call)?;
        if quotas.windows.is_empty() && !printer.is_json {
            printer.print_note("No log in the store records a quota. Codex records them.")?;
        }
        printer.print_value(&quotas)?;
        return Ok(CommandOutcome::from_found(!quotas.windows.is_empty()));
    }
    let key = match flags.period {
        Period::Daily => GroupKey::Day,
        Period::Weekly => GroupKey::Week,
        Period::Monthly => GroupKey::Month,
    };

    if printer.is_json {
        let args = flags.filter.into_args(vec![key], None, Some(limits::STATS_LIMIT_MAX));
        let answer = tools.session_stats(&args, call)?;
        printer.print_json(&answer)?;
        return Ok(CommandOutcome::from_found(!answer.data.groups.is_empty()));
    }

    let answer = tools.all_session_stats(&flags.filter.into_args(vec![key], None, None), call)?;
    printer.print_warnings(&answer.warnings)?;
    let has_tokens = answer.data.groups.iter().any(|group| group.tokens.is_some());
    if has_tokens {
        printer.print_data(&usage_table(&answer.data))?;
    } else {
        printer.print_note(answer.hint.as_deref().unwrap_or("The logs do not record tokens."))?;
    }
    Ok(CommandOutcome::from_found(has_tokens))
}
