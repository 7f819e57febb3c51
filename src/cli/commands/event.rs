//! `sessions event`: shows whole events.

use std::io::Write as _;
use std::path::PathBuf;

use schemas::tool::event::EventArgs;
use schemas::{ErrorCode, ToolError};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::output_path::output_file;
use crate::cli::paging::OnePageFlags;
use crate::cli::tool_flags::ToolFlags;
use crate::files::outfile::{self, file_error};
use crate::output::ImageWritten;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct EventFlags {
    #[command(flatten)]
    args: ToolFlags<EventArgs>,
    #[command(flatten)]
    pages: OnePageFlags,
    /// Write an image of the event from its log: the first, or image NUMBER
    #[arg(
        long,
        value_name = "NUMBER",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        conflicts_with_all = ["fields", "max_chars", "page", "cursor"]
    )]
    image: Option<usize>,
    /// File of the image; - prints it
    #[arg(short = 'o', long = "output", value_name = "FILE", requires = "image")]
    output: Option<PathBuf>,
    /// Overwrite a file that has other content
    #[arg(long, requires = "image")]
    force: bool,
}

/// Writes an image of the event to a file, or to stdout.
fn write_image(flags: &EventFlags, number: usize, context: &CommandContext<'_>) -> CommandResult {
    let [event_id] = flags.args.0.event_ids.as_slice() else {
        let message = "--image takes one event ID";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message).into());
    };
    let Some(index) = number.checked_sub(1) else {
        return Err(ToolError::invalid_value("image", "0", &["a number from 1"]).into());
    };
    let printer = context.printer;
    let output = output_file(flags.output.clone());
    if output.is_none() && (printer.is_terminal() || printer.is_json) {
        let message = "An image cannot be printed here. Name a file with -o";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message).into());
    }
    let image = context.create_tools().read_image(event_id, index, &context.call)?;
    let Some(path) = output else {
        let mut out = printer.row_writer();
        out.write_all(&image.bytes)?;
        out.flush()?;
        return Ok(CommandOutcome::Done);
    };
    let advice = "Replace it with --force, or name another file with -o";
    outfile::write_output(
        &path,
        || flags.force,
        advice,
        |file| file.write_all(&image.bytes).map_err(|error| file_error(&path, &error)),
    )?;
    printer.print_report(&ImageWritten {
        output: path.display().to_string(),
        kind: image.kind,
        bytes: image.bytes.len() as u64,
    })?;
    Ok(CommandOutcome::Done)
}

pub(in crate::cli) fn run(flags: EventFlags, context: &CommandContext<'_>) -> CommandResult {
    if let Some(number) = flags.image {
        return write_image(&flags, number, context);
    }
    let tools = context.create_tools();
    let EventFlags { args: ToolFlags(args), pages, .. } = flags;
    let answer = pages.read(|cursor| {
        context
            .read_page(|call| tools.get_event_details(&EventArgs { cursor, ..args.clone() }, call))
    })?;
    context.print_page(&answer, pages.shown_page())?;
    Ok(CommandOutcome::from_found(answer.data.not_found.is_empty()))
}
