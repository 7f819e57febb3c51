//! `sessions usage`: shows tokens and cost by day, week or month.

use clap::ValueEnum;
use schemas::limits;
use schemas::tool::stats::GroupKey;

use crate::cli::context::{Context, leak_tools};
use crate::cli::exit::{Failure, Outcome};
use crate::cli::stats_filter::StatsFilter;
use crate::output::usage_table;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UsageFlags {
    /// How long the periods are
    #[arg(value_enum, default_value_t = Period::Daily)]
    period: Period,
    #[command(flatten)]
    filter: StatsFilter,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Period {
    Daily,
    Weekly,
    Monthly,
}

pub(in crate::cli) fn run(flags: UsageFlags, context: &Context<'_>) -> Result<Outcome, Failure> {
    let tools = leak_tools(context.counting_tools()?);
    let (call, printer) = (&context.call, context.printer);
    let key = match flags.period {
        Period::Daily => GroupKey::Day,
        Period::Weekly => GroupKey::Week,
        Period::Monthly => GroupKey::Month,
    };
    if printer.json {
        let args = flags.filter.into_args(vec![key], None, Some(limits::STATS_LIMIT_MAX));
        let answer = tools.stats(&args, call)?;
        printer.json(&answer)?;
        return Ok(Outcome::from_found(!answer.data.groups.is_empty()));
    }
    let answer = tools.all_stats(&flags.filter.into_args(vec![key], None, None), call)?;
    let has_tokens = answer.data.groups.iter().any(|group| group.tokens.is_some());
    if has_tokens {
        printer.data(&usage_table(&answer.data))?;
    } else {
        printer.note(answer.hint.as_deref().unwrap_or("The logs name no tokens."))?;
    }
    Ok(Outcome::from_found(has_tokens))
}
