//! `sessions skill`: prints a SKILL.md that teaches agents the tools, or writes it to a file.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use crate::cli::exit::{Failure, Outcome};
use crate::cli::output_path::file_named;
use crate::files::outfile::{self, file_error};
use crate::help::Help;
use crate::output::Printer;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SkillFlags {
    /// Write it to this file, or into this folder
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Replace a file that holds something else
    #[arg(long, requires = "output")]
    force: bool,
}

pub(in crate::cli) fn run(
    flags: SkillFlags,
    help: &Help,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let text = help.skill();
    let Some(path) = file_named(flags.output) else {
        printer.data(&text)?;
        return Ok(Outcome::Done);
    };
    let path = if path.is_dir() { path.join("SKILL.md") } else { path };
    let advice = "It holds something else, as that of an earlier version, so it stays. --force replaces it; or name another file with --output";
    let fill = |file: &mut File| {
        file.write_all(text.as_bytes()).map_err(|error| file_error(&path, &error))
    };
    outfile::put(&path, || flags.force, advice, fill)?;
    printer.note(&format!("wrote {}", path.display()))?;
    Ok(Outcome::Done)
}
