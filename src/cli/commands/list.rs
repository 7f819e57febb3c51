//! `sessions list`: lists sessions.

use schemas::Provider;
use schemas::tool::list::{ListArgs, ListFormat, ListSort};

use crate::cli::context::{CommandContext, leak_tools};
use crate::cli::exit::{CommandFailure, CommandOutcome};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ListFlags {
    /// Only sessions whose working directory contains this text
    #[arg(long)]
    project: Option<String>,
    /// Only this agent's sessions
    #[arg(long)]
    provider: Option<Provider>,
    /// Also list the sessions of subagents
    #[arg(long)]
    subagents: bool,
    /// Only sessions active since: '24h', '7d', a date or RFC 3339 time
    #[arg(long)]
    since: Option<String>,
    /// Only this session; any unique prefix (can be repeated)
    #[arg(long = "session-id", value_name = "ID")]
    session_ids: Vec<String>,
    /// Only sessions with this label
    #[arg(long)]
    label: Option<String>,
    /// minimal, summary or full [default: summary]
    #[arg(long)]
    format: Option<ListFormat>,
    /// recent, oldest, tokens, events, errors or duration [default: recent]
    #[arg(long)]
    sort: Option<ListSort>,
    /// Sessions per page [default: 20, at most 100]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Cursor of the page before
    #[arg(long)]
    cursor: Option<String>,
}

impl From<ListFlags> for ListArgs {
    fn from(flags: ListFlags) -> Self {
        Self {
            project: flags.project,
            provider: flags.provider,
            subagents: flags.subagents.then_some(true),
            since: flags.since,
            session_ids: (!flags.session_ids.is_empty()).then_some(flags.session_ids),
            label: flags.label,
            format: flags.format,
            sort: flags.sort,
            limit: flags.limit,
            cursor: flags.cursor,
        }
    }
}

pub(in crate::cli) fn run(
    flags: ListFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let answer =
        leak_tools(context.create_priced_tools()?).list_sessions(&flags.into(), &context.call)?;
    context.printer.print_answer(&answer)?;
    Ok(CommandOutcome::from_found(!answer.data.sessions.is_empty()))
}
