//! `sessions report`: writes a report with charts as one HTML file.

use std::path::PathBuf;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::output_path::is_stdout;
use crate::cli::selection_flags::SelectionFlags;
use crate::config::settings;
use crate::output::ReportWritten;
use crate::report::SessionsReport;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportFlags {
    /// File to write; - prints the page
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    #[command(flatten)]
    selection: SelectionFlags,
}

pub(in crate::cli) fn run(flags: ReportFlags, context: &CommandContext<'_>) -> CommandResult {
    let tools = context.create_priced_tools()?;
    context.printer.print_warnings(&tools.store_warnings(&context.call)?)?;
    let selection = flags.selection.select(Vec::new());
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
