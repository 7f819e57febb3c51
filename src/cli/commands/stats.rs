//! `sessions stats`: counts and sums by tool, model, day or another key.

use schemas::tool::stats::{GroupKey, StatsSort};

use crate::cli::context::{CommandContext, leak_tools};
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::stats_filter::StatsFilter;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct StatsFlags {
    /// provider, project, model, tool, tool_kind, event_type, error, day, week, month, hour,
    /// session, branch or file; one, or two with a comma between them
    #[arg(long = "by", value_name = "KEY", required = true, value_delimiter = ',')]
    group_by: Vec<GroupKey>,
    #[command(flatten)]
    filter: StatsFilter,
    /// key, events, errors, error_rate, tokens, cost, duration or size
    #[arg(long)]
    sort: Option<StatsSort>,
    /// Most groups [default: 50, at most 500]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

pub(in crate::cli) fn run(
    flags: StatsFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let args = flags.filter.into_args(flags.group_by, flags.sort, flags.limit);
    let answer = leak_tools(context.create_query_tools()?).session_stats(&args, &context.call)?;
    let printer = context.printer;
    printer.print_answer(&answer)?;
    if !printer.is_json && answer.metadata.results_truncated {
        printer.print_note(answer.hint.as_deref().unwrap_or(""))?;
    }
    Ok(CommandOutcome::from_found(!answer.data.groups.is_empty()))
}
