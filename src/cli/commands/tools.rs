//! `sessions tools`: describes the tools.

use schemas::tool::metadata::MetadataArgs;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};

pub(in crate::cli) fn run(args: &MetadataArgs, context: &CommandContext<'_>) -> CommandResult {
    let answer = context.create_tools().tool_metadata(args, &context.call)?;
    context.print_answer(&answer)?;
    Ok(CommandOutcome::Done)
}
