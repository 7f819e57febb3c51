//! `sessions search`: finds events by their text.

use schemas::tool::OneOrMany;
use schemas::tool::search::{SearchArgs, SearchSort};
use schemas::{EventType, Provider};

use crate::cli::context::{CommandContext, leak_tools};
use crate::cli::exit::{CommandFailure, CommandOutcome};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SearchFlags {
    /// Words and "phrases" that must all occur in one event; -word excludes
    #[arg(allow_hyphen_values = true, value_name = "QUERY")]
    query: String,
    /// Only these event types
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    event_type: Vec<EventType>,
    /// Only this agent's logs
    #[arg(long)]
    provider: Option<Provider>,
    /// Only sessions whose working directory contains this text
    #[arg(long)]
    project: Option<String>,
    /// Only this session; any unique prefix, or 'current'
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Leave out the current session
    #[arg(long)]
    exclude_current: bool,
    /// Only events since: '24h', '7d', a date or RFC 3339 time
    #[arg(long)]
    since: Option<String>,
    /// Only events before that time
    #[arg(long)]
    until: Option<String>,
    /// newest, oldest or relevance [default: newest, or relevance if nothing matches exactly]
    #[arg(long)]
    sort: Option<SearchSort>,
    /// Show N events before and after each match [at most 5]
    #[arg(long, value_name = "N")]
    context: Option<u32>,
    /// Matches per page [default: 10, at most 50]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Cursor of the page before
    #[arg(long)]
    cursor: Option<String>,
}

impl From<SearchFlags> for SearchArgs {
    fn from(flags: SearchFlags) -> Self {
        Self {
            query: flags.query,
            event_type: (!flags.event_type.is_empty()).then_some(OneOrMany::Many(flags.event_type)),
            provider: flags.provider,
            project: flags.project,
            session_id: flags.session_id,
            exclude_current: flags.exclude_current.then_some(true),
            since: flags.since,
            until: flags.until,
            sort: flags.sort,
            context: flags.context,
            limit: flags.limit,
            cursor: flags.cursor,
        }
    }
}

pub(in crate::cli) fn run(
    flags: SearchFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let answer = leak_tools(context.create_tools()).search_events(&flags.into(), &context.call)?;
    context.printer.print_answer(&answer)?;
    Ok(CommandOutcome::from_found(!answer.data.matches.is_empty()))
}
