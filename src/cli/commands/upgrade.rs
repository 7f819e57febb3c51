//! `sessions upgrade`: says how this copy was installed, and which command gets a newer one.

use ingest::discover::real_path;

use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::environment;
use crate::output::Printer;
use crate::setup::installation::describe_installation;

/// Prints the command. It runs nothing and asks no server.
pub(in crate::cli) fn run(printer: &Printer) -> CommandResult {
    let path = environment::program_path();
    let path = real_path(&path).unwrap_or(path);
    printer.print_report(&describe_installation(&path))?;
    Ok(CommandOutcome::Done)
}
