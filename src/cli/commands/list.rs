//! `sessions list`: lists sessions.

use schemas::tool::list::{ListArgs, ListFormat, ListSort};
use schemas::{Provider, ToolError, limits};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::paging::PageFlags;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ListFlags {
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only this agent's sessions
    #[arg(long, visible_alias = "agent")]
    provider: Option<Provider>,
    /// Only sessions of machines whose name contains this text
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Only sessions of users whose name contains this text
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Also list the sessions of subagents
    #[arg(long)]
    subagents: bool,
    /// Only sessions active since: '24h', '7d', 'yesterday', 'last week', a date or time
    #[arg(long)]
    since: Option<String>,
    /// Only this session; any unique prefix (can be repeated)
    #[arg(long = "session-id", value_name = "ID")]
    session_ids: Vec<String>,
    /// Only sessions that began before that time
    #[arg(long)]
    until: Option<String>,
    /// Only sessions with this label
    #[arg(long)]
    label: Option<String>,
    /// minimal, summary or full [default: summary]
    #[arg(long)]
    format: Option<ListFormat>,
    /// recent, oldest, tokens, cost, events, errors (or failures) or duration [default: recent]
    #[arg(long, value_parser = parse_sort)]
    sort: Option<ListSort>,
    /// Show everything about each session instead of one line
    #[arg(long = "long", short = 'l')]
    is_long: bool,
    /// Sessions per page [default: 20, at most 100]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u32>,
    #[command(flatten)]
    pages: PageFlags,
}

impl From<ListFlags> for ListArgs {
    fn from(flags: ListFlags) -> Self {
        Self {
            project: flags.project,
            provider: flags.provider,
            machine: flags.machine,
            user: flags.user,
            subagents: flags.subagents.then_some(true),
            since: flags.since,
            until: flags.until,
            session_ids: (!flags.session_ids.is_empty()).then_some(flags.session_ids),
            label: flags.label,
            format: flags.format,
            sort: flags.sort,
            limit: flags.limit,
            cursor: None,
        }
    }
}

/// Parses an order; failed calls are errors in the tools, and failures in tables.
fn parse_sort(name: &str) -> Result<ListSort, String> {
    if name == "failures" {
        return Ok(ListSort::Errors);
    }
    name.parse().map_err(|error: ToolError| error.message)
}

pub(in crate::cli) fn run(
    flags: ListFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = context.create_priced_tools()?;
    let pages = flags.pages.clone();
    let is_long = flags.is_long;
    let mut args = ListArgs::from(flags);
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
