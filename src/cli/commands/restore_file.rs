//! `sessions restore --file`: the content of a file as an agent last read or wrote it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use schemas::{ErrorCode, ToolError};

use super::blame::identify_file;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::files::outfile::{WriteOutcome, file_error, write_output};
use crate::output::describe_restored_file;
use tools::BlamedFile;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RestoreFileFlags {
    /// Print this file, which need not exist any more, as an agent last read or wrote it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["session_ids", "all", "lost", "to", "dry_run"])]
    pub(super) file: Option<PathBuf>,
    /// With --file: the content before this event, such as the edit 9ae82b3a:31
    #[arg(long, value_name = "EVENT", requires = "file")]
    at: Option<String>,
    /// With --file: write the content to OUT instead of stdout
    #[arg(long, short, value_name = "OUT", requires = "file")]
    output: Option<PathBuf>,
    /// With --file: replace OUT if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

pub(super) fn run(
    path: &Path,
    flags: &RestoreFileFlags,
    context: &CommandContext<'_>,
) -> CommandResult {
    let printer = context.printer;
    let file = name_file(path)?;
    let tools = context.create_tools();
    let restored = tools.restore_file(&file, flags.at.as_deref(), &context.call)?;
    let is_known = restored.content.is_some();
    if let (Some(output), Some(content)) = (&flags.output, &restored.content) {
        let outcome = write_output(
            output,
            || flags.force,
            "Add --force to replace it, or name another file with -o",
            |out| out.write_all(content.as_bytes()).map_err(|error| file_error(output, &error)),
        )?;
        let verb = match outcome {
            WriteOutcome::Written(_) => "written to",
            WriteOutcome::Unchanged => "already in",
        };
        printer.print_note(&format!("The content is {verb} {}.", output.display()))?;
    }
    if printer.is_json {
        printer.print_json(&restored)?;
    } else if flags.output.is_none()
        && let Some(content) = &restored.content
    {
        printer.print_data(content)?;
    }
    for line in describe_restored_file(&restored) {
        printer.print_note(&line)?;
    }
    Ok(CommandOutcome::from_found(is_known))
}

/// Returns what identifies a file, which need not exist.
fn name_file(path: &Path) -> Result<BlamedFile, ToolError> {
    let full = std::path::absolute(path).map_err(|error| {
        let message = format!("restore --file {}: {error}. Name a file", path.display());
        ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "file")
    })?;
    if full.file_name().is_none() || full.is_dir() {
        let message = format!(
            "restore --file {}: this is a folder. Name a file, such as `sessions restore --file src/main.rs`",
            path.display()
        );
        return Err(
            ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "file")
        );
    }
    Ok(identify_file(&full))
}
