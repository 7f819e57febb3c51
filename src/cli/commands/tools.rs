//! `sessions tools`: describes the tools.

use schemas::tool::OneOrMany;
use schemas::tool::metadata::MetadataArgs;

use crate::cli::context::Context;
use crate::cli::exit::{Failure, Outcome};

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

pub(in crate::cli) fn run(flags: ToolFlags, context: &Context<'_>) -> Result<Outcome, Failure> {
    let answer = context.tools().metadata(&flags.into(), &context.call)?;
    context.printer.answer(&answer)?;
    Ok(Outcome::Done)
}
