//! `sessions status`: reports what the store holds and how fresh it is.

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::environment;

pub(in crate::cli) fn run(context: &CommandContext<'_>) -> CommandResult {
    let status = context.create_tools().collect_status(&environment::known_roots())?;
    context.printer.print_value(&status, &context.layout())?;
    Ok(CommandOutcome::Done)
}
