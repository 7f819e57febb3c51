//! `sessions search`: finds events by their text.

use std::slice;

use schemas::limits;
use schemas::tool::search::SearchArgs;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::paging::PageFlags;
use crate::cli::tool_flags::ToolFlags;
use crate::output::{MatchingSessions, Show as _};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SearchFlags {
    /// Words and "phrases" that must all occur in one event; -word excludes
    #[arg(allow_hyphen_values = true, value_name = "QUERY")]
    query: String,
    /// More words; quote the whole query if it has "phrases" or -words
    #[arg(value_name = "WORDS")]
    more: Vec<String>,
    #[command(flatten)]
    args: ToolFlags<SearchArgs>,
    /// Only sessions of machines whose name contains this text
    #[arg(long)]
    machine: Option<String>,
    /// Only sessions of users whose name contains this text
    #[arg(long)]
    user: Option<String>,
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

    /// Returns the arguments of the tool.
    fn to_args(&self) -> SearchArgs {
        SearchArgs {
            query: [slice::from_ref(&self.query), &self.more].concat().join(" "),
            machine: self.machine.clone(),
            user: self.user.clone(),
            ..self.args.0.clone()
        }
    }
}

pub(in crate::cli) fn run(flags: SearchFlags, context: &CommandContext<'_>) -> CommandResult {
    let tools = context.create_tools();
    let pages = &flags.pages;
    let mut args = flags.to_args();
    if pages.has_all() {
        args.limit.get_or_insert(limits::SEARCH_LIMIT_MAX);
    }
    let answer = pages.read(|cursor| {
        context.read_page(|call| tools.search_events(&SearchArgs { cursor, ..args.clone() }, call))
    })?;
    match flags.view() {
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
