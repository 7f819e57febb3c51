//! `sessions completions`: prints a completion script for a shell.

use clap::Command;
use clap_complete::{Shell, generate};

use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::output::Printer;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CompletionFlags {
    /// Shell
    shell: Shell,
}

/// Prints the script that completes the commands and flags of `program`.
pub(in crate::cli) fn run(
    flags: &CompletionFlags,
    mut program: Command,
    printer: &Printer,
) -> Result<CommandOutcome, CommandFailure> {
    let mut script = Vec::new();
    generate(flags.shell, &mut program, "sessions", &mut script);
    printer.print_data(&String::from_utf8_lossy(&script))?;
    Ok(CommandOutcome::Done)
}
