//! `sessions stats`: counts and sums by tool, model, day or another key.

use schemas::tool::OneOrMany;
use schemas::tool::stats::{GroupKey, StatsArgs};
use schemas::{ErrorCode, ToolError};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::tool_flags::ToolFlags;
use crate::output::{Show as _, StatsSummary};
use tools::Extent;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct StatsFlags {
    #[command(flatten)]
    args: ToolFlags<StatsArgs>,
    /// Count everything; by default a terminal shows the last 30 days
    #[arg(long)]
    all: bool,
}

/// The span that a screen shows if the user names none.
const USUAL_SPAN: &str = "30d";

/// The remark about the usual span.
const USUAL_SPAN_NOTE: &str = "the last 30 days; --all counts everything";

/// The keys of the summary, with the number of groups of each.
const SUMMARY: &[(GroupKey, u32)] =
    &[(GroupKey::Provider, 5), (GroupKey::Project, 5), (GroupKey::Model, 5), (GroupKey::Tool, 8)];

/// Limits the events to the latest ones, unless the arguments limit them. Returns true if it did.
pub(super) fn set_usual_span(args: &mut StatsArgs, span: &str) -> bool {
    let is_free = args.since.is_none() && args.until.is_none() && args.session_id.is_none();
    if is_free {
        args.since = Some(span.to_owned());
    }
    is_free
}

/// Prints the largest groups by agent, project, model and tool.
fn print_summary(args: &StatsArgs, context: &CommandContext<'_>) -> CommandResult {
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
        let args = StatsArgs {
            group_by: OneOrMany::One(*key),
            limit: args.limit.or(Some(*groups)),
            ..args.clone()
        };
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

pub(in crate::cli) fn run(flags: StatsFlags, context: &CommandContext<'_>) -> CommandResult {
    let StatsFlags { args: ToolFlags(mut args), all } = flags;
    let printer = context.printer;
    let is_screen = printer.terminal.is_screen && !printer.is_json;
    if is_screen && !all && set_usual_span(&mut args, USUAL_SPAN) {
        printer.print_note(USUAL_SPAN_NOTE)?;
    }
    if args.group_by.to_vec().is_empty() {
        return print_summary(&args, context);
    }
    let tools = context.create_query_tools()?;
    let extent = if printer.is_json { Extent::Lines } else { Extent::Table };
    let answer = tools.count_sessions(&args, extent, &context.call)?;
    context.print_answer(&answer)?;
    if !printer.is_json && answer.metadata.results_truncated {
        printer.print_note(answer.hint.as_deref().unwrap_or(""))?;
    }
    Ok(CommandOutcome::from_found(!answer.data.groups.is_empty()))
}
