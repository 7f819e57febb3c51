//! `sessions find`: finds sessions by a half-remembered question.

use schemas::Provider;
use schemas::tool::find::FindArgs;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::paging::PageFlags;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct FindFlags {
    /// What you remember, in plain words
    #[arg(required = true, value_name = "WORDS")]
    query: Vec<String>,
    /// Only this agent's sessions
    #[arg(long, visible_alias = "agent")]
    provider: Option<Provider>,
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only sessions active since: '24h', '7d', 'yesterday', 'last week', a date or time
    #[arg(long)]
    since: Option<String>,
    /// Only sessions that began before that time
    #[arg(long)]
    until: Option<String>,
    /// Sessions per page [default: 10, at most 50]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u32>,
    #[command(flatten)]
    pages: PageFlags,
}

impl From<FindFlags> for FindArgs {
    fn from(flags: FindFlags) -> Self {
        Self {
            query: flags.query.join(" "),
            provider: flags.provider,
            project: flags.project,
            since: flags.since,
            until: flags.until,
            limit: flags.limit,
            cursor: None,
        }
    }
}

pub(in crate::cli) fn run(
    flags: FindFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = context.create_tools();
    let pages = flags.pages.clone();
    let args = FindArgs::from(flags);
    let answer = pages.read(|cursor| {
        tools.search_sessions(&FindArgs { cursor, ..args.clone() }, &context.call)
    })?;
    context.print_page(&answer, pages.shown_page())?;
    Ok(CommandOutcome::from_found(!answer.data.sessions.is_empty()))
}
