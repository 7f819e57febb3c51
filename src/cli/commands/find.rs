//! `sessions find`: finds sessions by a half-remembered question.

use schemas::tool::find::FindArgs;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::paging::PageFlags;
use crate::cli::tool_flags::ToolFlags;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct FindFlags {
    #[command(flatten)]
    args: ToolFlags<FindArgs>,
    #[command(flatten)]
    pages: PageFlags,
}

pub(in crate::cli) fn run(flags: FindFlags, context: &CommandContext<'_>) -> CommandResult {
    let tools = context.create_tools();
    let FindFlags { args: ToolFlags(args), pages } = flags;
    let answer = pages.read(|cursor| {
        tools.search_sessions(&FindArgs { cursor, ..args.clone() }, &context.call)
    })?;
    context.print_page(&answer, pages.shown_page())?;
    Ok(CommandOutcome::from_found(!answer.data.sessions.is_empty()))
}
