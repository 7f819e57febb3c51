//! `sessions report`: writes a report with charts as one HTML file.

use std::path::PathBuf;
use std::sync::Arc;

use schemas::Provider;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::output_path::is_stdout;
use crate::config::settings;
use crate::output::ReportWritten;
use crate::report::{self, SessionsReport};
use crate::tools::{SessionSelection, Tools};

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
    #[arg(long)]
    provider: Option<Provider>,
}

pub(in crate::cli) fn run(
    flags: ReportFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = Tools::new(Arc::clone(&context.store));
    let snapshot = tools.snapshot(&context.call)?;
    context.printer.print_warnings(&tools.store_warnings(&context.call)?)?;
    let selection = SessionSelection {
        session_ids: Vec::new(),
        provider: flags.provider,
        project: flags.project,
        since: flags.since,
        until: flags.until,
    };
    let report =
        SessionsReport::read(snapshot, &selection, &settings::read_prices()?, &context.call)?;
    let html = report.render_html()?;
    if is_stdout(&flags.output) {
        context.printer.print_data(&html)?;
        return Ok(CommandOutcome::Done);
    }
    let bytes = report::save_page(&html, &flags.output)?;
    let output = flags.output.display().to_string();
    let written = ReportWritten { output, sessions: report.session_count(), bytes };
    context.printer.print_value(&written)?;
    Ok(CommandOutcome::Done)
}
