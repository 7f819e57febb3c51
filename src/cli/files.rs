//! The commands that write files: `report` and `export`.

use std::path::{Path, PathBuf};

use schemas::{ExportFormat, Provider};

use super::{Failure, Outcome};
use crate::app::settings;
use crate::export::{self, ExportArgs};
use crate::output::{Printer, Show, Written};
use crate::report::{self, Report};
use crate::store::Store;
use crate::tools::selection::Selection;
use crate::tools::{Call, Tools};

#[derive(Debug, clap::Args)]
pub(super) struct ReportFlags {
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

#[derive(Debug, clap::Args)]
pub(super) struct ExportFlags {
    /// parquet, arrow, jsonl, markdown or html
    #[arg(long)]
    format: ExportFormat,
    /// Folder (parquet, transcripts) or file; jsonl and the transcript of one session are printed
    /// without it
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Only this session; any unique prefix (can be repeated)
    #[arg(long = "session-id", value_name = "ID")]
    session_ids: Vec<String>,
    /// Only this agent's sessions
    #[arg(long)]
    provider: Option<Provider>,
    /// Only sessions whose working directory contains this text
    #[arg(long)]
    project: Option<String>,
    /// Only sessions active since: '24h', '7d', a date or RFC 3339 time (UTC)
    #[arg(long)]
    since: Option<String>,
    /// Replace files that hold something else
    #[arg(long)]
    force: bool,
}

pub(super) fn report(
    store: Store,
    flags: ReportFlags,
    call: &Call<'_>,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let tools = Tools::new(store);
    let snapshot = tools.snapshot(call)?;
    let selection = Selection {
        session_ids: Vec::new(),
        provider: flags.provider,
        project: flags.project,
        since: flags.since,
    };
    let report = Report::read(snapshot, &selection, &settings::prices()?, call.now)?;
    let html = report.html()?;
    if flags.output == Path::new(STDOUT) {
        printer.data(&html)?;
        return Ok(Outcome::Done);
    }
    let bytes = report::save(&html, &flags.output)?;
    let output = flags.output.display().to_string();
    let written = Written { output, sessions: report.sessions(), bytes };
    if printer.json {
        printer.json(&written)?
    } else {
        printer.data(&written.show())?
    }
    Ok(Outcome::Done)
}

/// What names the standard output in place of a file.
const STDOUT: &str = "-";

/// The file that `-o` names, if it is not the standard output.
pub(super) fn file_named(output: Option<PathBuf>) -> Option<PathBuf> {
    output.filter(|path| path != Path::new(STDOUT))
}

pub(super) fn export(
    store: Store,
    flags: ExportFlags,
    call: &Call<'_>,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let tools = Tools::new(store);
    let snapshot = tools.snapshot(call)?;
    let args = ExportArgs {
        format: flags.format,
        selection: Selection {
            session_ids: flags.session_ids,
            provider: flags.provider,
            project: flags.project,
            since: flags.since,
        },
        output: file_named(flags.output),
        force: flags.force,
    };
    let mut closed = None;
    let mut print = |text: &str| {
        closed = printer.data(text).err();
        closed.is_none()
    };
    let done = export::export(snapshot, &args, &settings::prices()?, call.now, &mut print)?;
    if let Some(error) = closed {
        return Err(error.into());
    }
    match (&args.output, printer.json) {
        // The data itself was printed.
        (None, _) => {}
        (Some(_), true) => printer.json(&done)?,
        (Some(_), false) => printer.data(&done.show())?,
    }
    Ok(Outcome::Done)
}
