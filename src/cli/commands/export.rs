//! `sessions export`: writes sessions to files: Parquet, Arrow, JSON lines, transcripts, trajectories
//! and spans.

use std::path::PathBuf;

use schemas::{ExportFormat, ExportTable, ToolError};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::output_path::output_file;
use crate::cli::selection_flags::SelectionFlags;
use crate::config::settings;
use crate::export::{self, ExportArgs};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ExportFlags {
    /// parquet, arrow, jsonl, markdown (md), html, atif, sts, otel or logs
    #[arg(value_name = "FORMAT", value_parser = parse_format, required_unless_present = "format")]
    form: Option<ExportFormat>,
    /// Only these sessions; any unique prefixes
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Same as FORMAT
    #[arg(long, value_parser = parse_format, value_name = "FORMAT", conflicts_with = "form")]
    format: Option<ExportFormat>,
    /// Rows to write: events, sessions, usage (requests with their cost) or tool_calls
    #[arg(long, value_name = "TABLE", default_value_t = ExportTable::Events)]
    table: ExportTable,
    /// Folder (parquet, formats with a file for each session) or file. Without it, jsonl, otel and a
    /// single session's text are printed
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Only this session; any unique prefix (can be repeated)
    #[arg(long = "session-id", value_name = "ID")]
    session_ids: Vec<String>,
    #[command(flatten)]
    selection: SelectionFlags,
    /// Put the images of the logs into HTML transcripts
    #[arg(long)]
    images: bool,
    /// Do not truncate long calls and results in Markdown transcripts
    #[arg(long)]
    whole: bool,
    /// Show the ids of events in Markdown transcripts
    #[arg(long = "ids")]
    has_ids: bool,
    /// Write texts, arguments and results to otel, which otherwise has names and counts only
    #[arg(long = "include-content")]
    has_content: bool,
    /// Overwrite files that have other content
    #[arg(long)]
    force: bool,
}

/// Parses a format; `md` is Markdown.
fn parse_format(name: &str) -> Result<ExportFormat, String> {
    if name == "md" {
        return Ok(ExportFormat::Markdown);
    }
    name.parse().map_err(|error: ToolError| error.message)
}

pub(in crate::cli) fn run(flags: ExportFlags, context: &CommandContext<'_>) -> CommandResult {
    // One of them is required.
    let format = flags.form.or(flags.format).unwrap_or(ExportFormat::Jsonl);
    let mut session_ids = flags.session_ids;
    session_ids.extend(flags.ids);
    let tools = context.create_query_tools()?;
    let snapshot = tools.snapshot(&context.call)?;
    context.printer.print_warnings(&tools.store_warnings(&context.call)?)?;
    let args = ExportArgs {
        format,
        table: flags.table,
        selection: flags.selection.select(session_ids),
        output: output_file(flags.output),
        force: flags.force,
        images: flags.images,
        whole: flags.whole,
        has_ids: flags.has_ids,
        has_content: flags.has_content,
    };

    let dropped = args.selection.find_dropped_texts(snapshot, &context.call)?;
    context.printer.print_warnings(dropped.as_slice())?;

    // The error of stdout that ended the export.
    let mut closed = None;
    let prices = settings::read_prices()?;
    let summary =
        export::export_sessions(&tools, &args, &prices, &context.call, &mut |text: &str| {
            closed = context.printer.print_data(text).err();
            closed.is_none()
        })?;
    if let Some(error) = closed {
        return Err(error.into());
    }
    // Without an output, the data itself was printed.
    if args.output.is_some() {
        context.printer.print_report(&summary)?;
    }
    Ok(CommandOutcome::Done)
}
