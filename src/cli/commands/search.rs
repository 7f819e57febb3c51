//! `sessions search`: finds events by their text.

use schemas::tool::OneOrMany;
use schemas::tool::search::{SearchArgs, SearchSort};
use schemas::{EventType, Provider, limits};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::paging::PageFlags;
use crate::output::{MatchingSessions, Show as _};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SearchFlags {
    /// Words and "phrases" that must all occur in one event; -word excludes
    #[arg(allow_hyphen_values = true, value_name = "QUERY")]
    query: String,
    /// More words; quotes around all are needed for "phrases" and -words
    #[arg(value_name = "WORDS")]
    more: Vec<String>,
    /// Only these event types
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    event_type: Vec<EventType>,
    /// Only this agent's logs
    #[arg(long, visible_alias = "agent")]
    provider: Option<Provider>,
    /// Only sessions of machines whose name contains this text
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Only sessions of users whose name contains this text
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only this session; any unique prefix, or 'current'
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Leave out the current session
    #[arg(long)]
    exclude_current: bool,
    /// Only events since: '24h', '7d', 'yesterday', 'last week', a date or time
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
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u32>,
    /// List the matches one by one instead of grouped by session
    #[arg(long)]
    events: bool,
    /// List only the sessions with matches
    #[arg(long, short = 'l', conflicts_with = "events")]
    list_sessions: bool,
    #[command(flatten)]
    pages: PageFlags,
}

/// How matches are shown.
#[derive(Debug, Clone, Copy)]
enum SearchView {
    /// Under their sessions.
    Grouped,
    /// One by one.
    Events,
    /// Only their sessions.
    Sessions,
}

impl SearchFlags {
    /// Returns the first word of the query if it looks like a flag and more words follow. `search` has
    /// no such flag, or clap would not have left it in the query.
    pub(in crate::cli) fn unknown_flag(&self) -> Option<&str> {
        let is_flag = self.query.starts_with("--") && !self.query.contains(char::is_whitespace);
        (is_flag && !self.more.is_empty()).then_some(&self.query)
    }

    fn view(&self) -> SearchView {
        if self.list_sessions {
            SearchView::Sessions
        } else if self.events {
            SearchView::Events
        } else {
            SearchView::Grouped
        }
    }
}

impl From<SearchFlags> for SearchArgs {
    fn from(flags: SearchFlags) -> Self {
        Self {
            query: [&[flags.query], flags.more.as_slice()].concat().join(" "),
            event_type: (!flags.event_type.is_empty()).then_some(OneOrMany::Many(flags.event_type)),
            provider: flags.provider,
            machine: flags.machine,
            user: flags.user,
            project: flags.project,
            session_id: flags.session_id,
            exclude_current: flags.exclude_current.then_some(true),
            since: flags.since,
            until: flags.until,
            sort: flags.sort,
            context: flags.context,
            limit: flags.limit,
            cursor: None,
        }
    }
}

pub(in crate::cli) fn run(
    flags: SearchFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = context.create_tools();
    let pages = flags.pages.clone();
    let view = flags.view();
    let mut args = SearchArgs::from(flags);
    if pages.has_all() {
        args.limit.get_or_insert(limits::SEARCH_LIMIT_MAX);
    }
    let answer = pages.read(|cursor| {
        context.read_page(|call| tools.search_events(&SearchArgs { cursor, ..args.clone() }, call))
    })?;
    match view {
        SearchView::Grouped => context.print_page(&answer, pages.shown_page())?,
        SearchView::Events => context.print_long(&answer, pages.shown_page())?,
        SearchView::Sessions if context.printer.is_json => context.print_page(&answer, None)?,
        SearchView::Sessions => {
            let sessions = MatchingSessions(&answer.data);
            context.printer.print_painted(&sessions.paint(&context.layout()))?;
        }
    }
    Ok(CommandOutcome::from_found(!answer.data.matches.is_empty()))
}
