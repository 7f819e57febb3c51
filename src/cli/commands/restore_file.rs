//! `sessions restore --file`: the content of a file as an agent last read or wrote it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use schemas::{ErrorCode, ToolError};

use super::blame::identify_file;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::files::outfile::{WriteOutcome, file_error, keep_copy, write_output};
use crate::output::describe_restored_file;
use tools::{BlamedFile, RestoredFile};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RestoreFileFlags {
    /// Print this file as an agent last read or wrote it, even if it no longer exists
    #[arg(long, value_name = "PATH", conflicts_with_all = ["session_ids", "all", "lost", "to", "dry_run"])]
    pub(super) file: Option<PathBuf>,
    /// With --file: the content before this event, such as the edit 9ae82b3a:31
    #[arg(long, value_name = "EVENT", requires = "file")]
    at: Option<String>,
    /// With --file: write the content to OUT instead of stdout
    #[arg(long, short, value_name = "OUT", requires = "file")]
    output: Option<PathBuf>,
    /// With --file: replace OUT if it exists, and keep what it was as OUT.bak
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
        printer.print_note(&write_content(output, content, &restored, flags.force)?)?;
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

/// Writes the content of a file. If `is_forced`, it replaces another file, which is kept next to it. Returns what
/// was done.
fn write_content(
    output: &Path,
    content: &str,
    restored: &RestoredFile,
    is_forced: bool,
) -> Result<String, ToolError> {
    let advice = if !is_forced {
        "Add --force to replace it, or name another file with -o"
    } else if !restored.is_whole {
        "Only some lines of the file are known, and they do not replace a whole file. Name another file with -o"
    } else {
        "Secrets are masked in what is known of the file, so it replaces no other. Name another file with -o"
    };
    let may_replace = is_forced && restored.is_whole && restored.masked_secrets == 0;
    let permissions = fs::metadata(output).ok().map(|found| found.permissions());
    let mut kept = None;
    let outcome = write_output(
        output,
        || {
            kept = may_replace.then(|| keep_copy(output, ".bak"));
            matches!(kept, Some(Ok(_)))
        },
        advice,
        |out| {
            let written = out.write_all(content.as_bytes());
            let is_set = written.and_then(|()| match permissions {
                Some(permissions) => out.set_permissions(permissions),
                None => Ok(()),
            });
            is_set.map_err(|error| file_error(output, &error))
        },
    );
    let kept = kept.transpose().map_err(|error| file_error(output, &error))?;
    let output = output.display();
    Ok(match (outcome?, kept) {
        (WriteOutcome::Unchanged, _) => format!("The content is already in {output}."),
        (WriteOutcome::Written(_), None) => format!("The content is written to {output}."),
        (WriteOutcome::Written(_), Some(kept)) => {
            format!("The content is written to {output}; what it was is {}.", kept.display())
        }
    })
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
