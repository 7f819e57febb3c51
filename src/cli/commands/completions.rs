//! `sessions completions`: prints a completion script for a shell.

use clap::Command;
use clap_complete::{Shell, generate};

use super::init::{InteractiveShell, completion_code};
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::output::Printer;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CompletionFlags {
    /// Shell
    shell: Shell,
}

/// Prints the script that completes the command lines of `program`. Where `sessions init` knows the
/// shell, it is the same code without the key of the picker; otherwise it has commands and flags only.
pub(in crate::cli) fn run(
    flags: &CompletionFlags,
    mut program: Command,
    printer: &Printer,
) -> CommandResult {
    let shells = [
        (Shell::Bash, InteractiveShell::Bash),
        (Shell::Zsh, InteractiveShell::Zsh),
        (Shell::Fish, InteractiveShell::Fish),
    ];
    let interactive = shells.into_iter().find(|(shell, _)| *shell == flags.shell);
    let interactive = interactive.map(|(_, interactive)| interactive);
    let script = match interactive {
        // The first line is for the folders of functions in which zsh looks.
        Some(shell @ InteractiveShell::Zsh) => {
            format!("#compdef sessions\n{}", completion_code(shell))
        }
        Some(shell) => completion_code(shell).to_owned(),
        None => {
            let mut script = Vec::new();
            generate(flags.shell, &mut program, "sessions", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
    };
    printer.print_data(&script)?;
    Ok(CommandOutcome::Done)
}
