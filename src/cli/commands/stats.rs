//! `sessions stats`: counts and sums by tool, model, day or another key.

use schemas::tool::stats::{GroupKey, StatsSort};
use schemas::{ErrorCode, ToolError};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::stats_filter::StatsFilter;
use crate::output::{Printer, Show as _, StatsSummary};
use tools::Extent;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct StatsFlags {
    /// agent, project, model, tool, tool_kind, event_type, error, day, week, month, hour,
    /// session, branch, file, machine or user; one, or two with a comma between them [default: a summary]
    #[arg(long = "by", value_name = "KEY", value_delimiter = ',', value_parser = parse_key)]
    group_by: Vec<GroupKey>,
    #[command(flatten)]
    filter: StatsFilter,
    /// key, events, errors, error_rate, tokens, cost, duration or size
    #[arg(long)]
    sort: Option<StatsSort>,
    /// Maximum number of groups [default: 50, at most 500]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u32>,
    /// Count everything; by default a terminal shows the last 30 days
    #[arg(long)]
    all: bool,
}

/// Parses a key; a provider is an agent in tables.
fn parse_key(name: &str) -> Result<GroupKey, String> {
    if name == "agent" {
        return Ok(GroupKey::Provider);
    }
    name.parse().map_err(|error: ToolError| error.message)
}

/// The span that a screen shows if the user names none.
const USUAL_SPAN: &str = "30d";

/// The remark about the usual span.
const USUAL_SPAN_NOTE: &str = "the last 30 days; --all counts everything";

/// The keys of the summary, with the number of groups of each.
const SUMMARY: &[(GroupKey, u32)] =
    &[(GroupKey::Provider, 5), (GroupKey::Project, 5), (GroupKey::Model, 5), (GroupKey::Tool, 8)];

/// Limits the events that a screen shows to the usual span, unless the flags limit them, and says so.
fn set_usual_span(flags: &mut StatsFlags, printer: &Printer) -> std::io::Result<()> {
    let is_screen = printer.terminal.is_screen && !printer.is_json;
    if is_screen && !flags.all && flags.filter.set_usual_span(USUAL_SPAN) {
        printer.print_note(USUAL_SPAN_NOTE)?;
    }
    Ok(())
}

/// Prints the largest groups by agent, project, model and tool.
fn print_summary(
    flags: &StatsFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let printer = context.printer;
    if printer.is_json {
        let message = "stats: --json needs --by KEY, for example --by tool";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message).into());
    }
    let tools = context.create_query_tools()?;
    let mut tables = Vec::new();
    let mut warnings = Vec::new();
    let mut newest_event = None;
    for (key, groups) in SUMMARY {
        let limit = flags.limit.or(Some(*groups));
        let args = flags.filter.clone().into_args(vec![*key], flags.sort, limit);
        let answer = tools.count_sessions(&args, Extent::Table, &context.call)?;
        newest_event = answer.metadata.newest_event;
        warnings = answer.warnings;
        tables.push(answer.data.into_value());
    }
    let is_found = tables.iter().any(|table| !table.groups.is_empty());
    let layout = context.layout();
    printer.print_painted(&StatsSummary(tables).paint(&layout))?;
    printer.print_warnings(&warnings)?;
    let note = match newest_event {
        _ if is_found => "the largest of each; `sessions stats --by KEY` shows more".to_owned(),
        Some(newest) => {
            format!("no event matches; the newest is from {}", layout.time(Some(&newest)))
        }
        None => "no event matches".to_owned(),
    };
    printer.print_note(&note)?;
    Ok(CommandOutcome::from_found(is_found))
}

pub(in crate::cli) fn run(
    mut flags: StatsFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    set_usual_span(&mut flags, context.printer)?;
    if flags.group_by.is_empty() {
        return print_summary(&flags, context);
    }
    let args = flags.filter.into_args(flags.group_by, flags.sort, flags.limit);
    let tools = context.create_query_tools()?;
    let printer = context.printer;
    let extent = if printer.is_json { Extent::Lines } else { Extent::Table };
    let answer = tools.count_sessions(&args, extent, &context.call)?;
    context.print_answer(&answer)?;
    if !printer.is_json && answer.metadata.results_truncated {
        printer.print_note(answer.hint.as_deref().unwrap_or(""))?;
    }
    Ok(CommandOutcome::from_found(!answer.data.groups.is_empty()))
}
