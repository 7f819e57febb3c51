//! `sessions tools`: describes the tools.

use schemas::tool::OneOrMany;
use schemas::tool::metadata::MetadataArgs;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ToolFlags {
    /// Only these tools
    #[arg(value_name = "TOOL")]
    tools: Vec<String>,
}

impl From<ToolFlags> for MetadataArgs {
    fn from(flags: ToolFlags) -> Self {
        Self { tools: (!flags.tools.is_empty()).then_some(OneOrMany::Many(flags.tools)) }
    }
}

pub(in crate::cli) fn run(
    flags: ToolFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let answer = context.create_tools().tool_metadata(&flags.into(), &context.call)?;
    context.print_answer(&answer)?;
    Ok(CommandOutcome::Done)
}
