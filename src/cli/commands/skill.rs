//! `sessions skill`: prints a SKILL.md that teaches agents the tools, or writes it to a file.

use std::io::Write as _;
use std::path::PathBuf;

use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::output_path::output_file;
use crate::files::outfile::{self, file_error};
use crate::help::Help;
use crate::output::Printer;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SkillFlags {
    /// Write it to this file, or into this folder
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Overwrite a file that has other content
    #[arg(long, requires = "output")]
    force: bool,
}

pub(in crate::cli) fn run(flags: SkillFlags, help: &Help, printer: &Printer) -> CommandResult {
    let text = help.skill_text();
    let Some(path) = output_file(flags.output) else {
        printer.print_data(&text)?;
        return Ok(CommandOutcome::Done);
    };
    let path = if path.is_dir() { path.join("SKILL.md") } else { path };
    let advice = "It may be from an earlier version. Replace it with --force, or name another file \
    with --output";
    outfile::write_output(
        &path,
        || flags.force,
        advice,
        |file| file.write_all(text.as_bytes()).map_err(|error| file_error(&path, &error)),
    )?;
    printer.print_note(&format!("wrote {}", path.display()))?;
    Ok(CommandOutcome::Done)
}
