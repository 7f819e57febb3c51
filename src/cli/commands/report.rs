//! `sessions report`: writes a report with charts as one HTML file.

use std::path::PathBuf;

use schemas::Provider;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::output_path::is_stdout;
use crate::config::settings;
use crate::output::ReportWritten;
use crate::report::SessionsReport;
use tools::SessionSelection;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportFlags {
    /// File to write; - prints the page
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Only what happened since: '24h', '7d', 'yesterday', 'last week', a date or time
    #[arg(long)]
    since: Option<String>,
    /// Only what happened before that time
    #[arg(long)]
    until: Option<String>,
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only this agent's sessions
    #[arg(long, visible_alias = "agent")]
    provider: Option<Provider>,
}

pub(in crate::cli) fn run(
    flags: ReportFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = context.create_priced_tools()?;
    context.printer.print_warnings(&tools.store_warnings(&context.call)?)?;
    let selection = SessionSelection {
        session_ids: Vec::new(),
        provider: flags.provider,
        project: flags.project,
        since: flags.since,
        until: flags.until,
    };
    let prices = settings::read_prices()?;
    let mut report = SessionsReport::read(&tools, &selection, &prices, &context.call)?;
    if is_stdout(&flags.output) {
        context.printer.print_data(&report.render_page()?)?;
        return Ok(CommandOutcome::Done);
    }
    let sizes = report.save(&flags.output)?;
    let written = ReportWritten {
        output: flags.output.display().to_string(),
        sessions: report.session_count(),
        files: sizes.len(),
        bytes: sizes.iter().sum(),
    };
    context.printer.print_report(&written)?;
    Ok(CommandOutcome::Done)
}
