//! `sessions list`: lists sessions.

use schemas::limits;
use schemas::tool::list::ListArgs;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::paging::PageFlags;
use crate::cli::tool_flags::ToolFlags;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ListFlags {
    #[command(flatten)]
    args: ToolFlags<ListArgs>,
    /// Show everything about each session instead of one line
    #[arg(long = "long", short = 'l')]
    is_long: bool,
    #[command(flatten)]
    pages: PageFlags,
}

pub(in crate::cli) fn run(flags: ListFlags, context: &CommandContext<'_>) -> CommandResult {
    let tools = context.create_priced_tools()?;
    let ListFlags { args: ToolFlags(mut args), is_long, pages } = flags;
    if pages.has_all() {
        args.limit.get_or_insert(limits::LIST_LIMIT_MAX);
    }
    let answer = pages.read(|cursor| {
        context.read_page(|call| tools.list_sessions(&ListArgs { cursor, ..args.clone() }, call))
    })?;
    if is_long {
        context.print_long(&answer, pages.shown_page())?;
    } else {
        context.print_page(&answer, pages.shown_page())?;
    }
    Ok(CommandOutcome::from_found(!answer.data.sessions.is_empty()))
}
