//! `sessions show`: shows one session.

use schemas::tool::details::{DetailArgs, DetailLevel};

use crate::cli::context::{CommandContext, leak_tools};
use crate::cli::exit::{CommandFailure, CommandOutcome};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ShowFlags {
    /// Session id; any unique prefix, 'current' or 'last'
    #[arg(value_name = "ID")]
    session_id: String,
    /// summary, turns, steps or full [default: summary]
    #[arg(long, value_name = "LEVEL")]
    detail_level: Option<DetailLevel>,
    /// Show the model's reasoning too; at steps and full
    #[arg(long)]
    include_reasoning: bool,
    /// Only these turns: '4', '3-5', '3-'
    #[arg(long)]
    turns: Option<String>,
    /// Only the last N steps; at turns, turns
    #[arg(long, value_name = "N")]
    last: Option<u32>,
    /// Cursor of the page before
    #[arg(long)]
    cursor: Option<String>,
    /// Most turns, steps or events on a page
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

impl From<ShowFlags> for DetailArgs {
    fn from(flags: ShowFlags) -> Self {
        Self {
            session_id: flags.session_id,
            detail_level: flags.detail_level,
            include_reasoning: flags.include_reasoning.then_some(true),
            turns: flags.turns,
            last: flags.last,
            cursor: flags.cursor,
            limit: flags.limit,
        }
    }
}

pub(in crate::cli) fn run(
    flags: ShowFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let answer = leak_tools(context.create_priced_tools()?)
        .get_session_details(&flags.into(), &context.call)?;
    context.printer.print_answer(&answer)?;
    Ok(CommandOutcome::Done)
}
