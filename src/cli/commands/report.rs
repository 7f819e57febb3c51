//! `sessions report`: writes a report with charts as one HTML file.

use std::path::PathBuf;
use std::sync::Arc;

use schemas::Provider;

use crate::cli::context::Context;
use crate::cli::exit::{Failure, Outcome};
use crate::cli::output_path::is_stdout;
use crate::config::settings;
use crate::output::Written;
use crate::report::{self, Report};
use crate::tools::{Selection, Tools};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportFlags {
    /// File to write; - prints the page
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Only what happened since: '24h', '7d', a date or RFC 3339 time (UTC)
    #[arg(long)]
    since: Option<String>,
    /// Only sessions whose working directory contains this text
    #[arg(long)]
    project: Option<String>,
    /// Only this agent's sessions
    #[arg(long)]
    provider: Option<Provider>,
}

pub(in crate::cli) fn run(flags: ReportFlags, context: &Context<'_>) -> Result<Outcome, Failure> {
    let tools = Tools::new(Arc::clone(&context.store));
    let snapshot = tools.snapshot(&context.call)?;
    let selection = Selection {
        session_ids: Vec::new(),
        provider: flags.provider,
        project: flags.project,
        since: flags.since,
    };
    let report = Report::read(snapshot, &selection, &settings::prices()?, context.call.now)?;
    let html = report.html()?;
    if is_stdout(&flags.output) {
        context.printer.data(&html)?;
        return Ok(Outcome::Done);
    }
    let bytes = report::save(&html, &flags.output)?;
    let output = flags.output.display().to_string();
    let written = Written { output, sessions: report.sessions(), bytes };
    context.printer.value(&written)?;
    Ok(Outcome::Done)
}
