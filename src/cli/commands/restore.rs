//! `sessions restore`: gives back the text of a file as agents last read or wrote it.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ingest::discover::real_path;

use super::blame::describe_place;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::output_path::output_file;
use crate::files::outfile::{self, file_error};
use crate::output::{FileRestored, describe_restored};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RestoreFlags {
    /// The file, which need not exist any more
    #[arg(long, value_name = "PATH")]
    file: PathBuf,
    /// As it was at this event: before a call was carried out, or after a result
    #[arg(long, value_name = "EVENT")]
    at: Option<String>,
    /// Write the text to this file; otherwise it is printed
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that holds something else
    #[arg(long, requires = "output")]
    force: bool,
}

pub(in crate::cli) fn run(
    flags: &RestoreFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let printer = context.printer;
    let full = full_path(&flags.file).map_err(|error| file_error(&flags.file, &error))?;
    let tools = context.create_tools();
    let restored =
        tools.restore_file(&describe_place(&full), flags.at.as_deref(), &context.call)?;
    let outcome = CommandOutcome::from_found(restored.text.is_some());
    let output = output_file(flags.output.clone());
    if printer.is_json && output.is_none() {
        printer.print_json(&restored)?;
        return Ok(outcome);
    }
    for line in describe_restored(&restored, &context.layout()).lines() {
        printer.print_note(line)?;
    }
    let Some(text) = &restored.text else { return Ok(outcome) };
    let Some(path) = output else {
        printer.print_data(text)?;
        return Ok(outcome);
    };
    outfile::write_output(
        &path,
        || flags.force,
        "Replace it with --force, or name another file with -o",
        |file| file.write_all(text.as_bytes()).map_err(|error| file_error(&path, &error)),
    )?;
    let written = FileRestored { output: path.display().to_string(), bytes: text.len() as u64 };
    printer.print_value(&written, &context.layout())?;
    Ok(outcome)
}

/// Returns the full path of a file that may be gone, with the links of its folders resolved.
fn full_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for folder in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (real_path(folder), path.strip_prefix(folder)) {
            return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
        }
    }
    Ok(path)
}
