//! `sessions restore --file`: the content of a file as an agent last read or wrote it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use schemas::{ErrorCode, ToolError};

use super::blame::identify_file;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::files::outfile::{WriteOutcome, file_error, open_regular, write_output};
use crate::output::describe_restored_file;
use tools::BlamedFile;
use tools::error::unusable_path;

/// What to do if a file is where the content would be written.
const MAY_REPLACE: &str = "Add --force to replace it, or name another file with -o";

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
        let fill = |out: &mut File| {
            out.write_all(content.as_bytes()).map_err(|error| file_error(output, &error))
        };
        let note = match write_output(output, || false, MAY_REPLACE, fill) {
            Ok(WriteOutcome::Written(_)) => {
                format!("The content is written to {}.", output.display())
            }
            Ok(WriteOutcome::Unchanged) => {
                format!("The content is already in {}.", output.display())
            }
            Err(error) if !flags.force || !output.is_file() => return Err(error.into()),
            Err(_) if !restored.is_whole => return Err(refuse_part(output).into()),
            Err(_) => {
                let kept = replace_file(output, fill)?;
                format!(
                    "The content is written to {}; what it was is {}.",
                    output.display(),
                    kept.display()
                )
            }
        };
        printer.print_note(&note)?;
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

/// Replaces a file, which keeps its permissions. Returns the path at which its content before is kept.
fn replace_file(
    output: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), ToolError>,
) -> Result<PathBuf, ToolError> {
    let failed = |error: io::Error| file_error(output, &error);
    let permissions = fs::metadata(output).map_err(failed)?.permissions();
    let kept = keep_copy(output).map_err(failed)?;
    write_output(
        output,
        || true,
        MAY_REPLACE,
        |out| {
            fill(out)?;
            out.set_permissions(permissions).map_err(failed)
        },
    )?;
    Ok(kept)
}

/// Copies a file to `FILE.bak`, or to the next number that is free. Returns the path of the copy.
fn keep_copy(path: &Path) -> io::Result<PathBuf> {
    let mut content = open_regular(path)?;
    let mut number = String::new();
    loop {
        let kept = PathBuf::from(format!("{}.bak{number}", path.display()));
        match File::create_new(&kept) {
            Ok(mut copy) => {
                io::copy(&mut content, &mut copy)?;
                copy.set_permissions(content.metadata()?.permissions())?;
                copy.sync_all()?;
                return Ok(kept);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                number = number.parse().map_or(2, |known: u32| known + 1).to_string();
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the error for a file that would be replaced by a part of it.
fn refuse_part(output: &Path) -> ToolError {
    let what = format_args!(
        "only some lines of the file are known, and they do not replace a whole file. Name another file with -o"
    );
    unusable_path(output, what)
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
