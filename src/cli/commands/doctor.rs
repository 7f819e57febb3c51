//! `sessions doctor`: reports where the agents keep their logs, what was found there, and what was
//! unknown in it.

use std::sync::Arc;

use ingest::provider::format::AgentFolders;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::config::environment;
use tools::Tools;

pub(in crate::cli) fn run(context: &CommandContext<'_>) -> Result<CommandOutcome, CommandFailure> {
    let data = Tools::new(Arc::clone(&context.store))
        .run_doctor(&AgentFolders::new(&environment::home_dir(), &environment::read_variable))?;
    context.printer.print_value_on(&data, &context.layout())?;
    Ok(CommandOutcome::Done)
}
