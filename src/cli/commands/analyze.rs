//! `sessions analyze`: explains what went wrong in a session, or what goes wrong again and again.

use schemas::tool::analyze::AnalyzeArgs;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::paging::PageFlags;
use crate::cli::tool_flags::ToolFlags;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AnalyzeFlags {
    #[command(flatten)]
    args: ToolFlags<AnalyzeArgs>,
    #[command(flatten)]
    pages: PageFlags,
}

pub(in crate::cli) fn run(flags: AnalyzeFlags, context: &CommandContext<'_>) -> CommandResult {
    let tools = context.create_priced_tools()?;
    let AnalyzeFlags { args: ToolFlags(args), pages } = flags;
    let answer = pages.read(|cursor| {
        tools.analyze_session(&AnalyzeArgs { cursor, ..args.clone() }, &context.call)
    })?;
    context.print_page(&answer, pages.shown_page())?;
    Ok(CommandOutcome::from_found(!answer.data.findings.is_empty()))
}
