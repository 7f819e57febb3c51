//! `sessions analyze`: explains what went wrong in a session, or what goes wrong again and again.

use schemas::Provider;
use schemas::tool::OneOrMany;
use schemas::tool::analyze::{AnalyzeArgs, Check};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::paging::PageFlags;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AnalyzeFlags {
    /// Session id; any unique prefix, 'current', 'last' or 'last_failed'; without it, errors that
    /// recur over sessions
    #[arg(value_name = "ID")]
    session_id: Option<String>,
    /// Error text as shown by a terminal; shows how that error was fixed before
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// Only errors of this tool or program
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// failures, loops, slow, oversized, context, interruptions, ends
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    checks: Vec<Check>,
    /// Only sessions whose working directory contains this text
    #[arg(long, short)]
    project: Option<String>,
    /// Only this agent's sessions
    #[arg(long, visible_alias = "agent")]
    provider: Option<Provider>,
    /// Only sessions active since: '24h', '7d', 'yesterday', 'last week', a date or time
    #[arg(long)]
    since: Option<String>,
    /// Only sessions that began before that time, and failures before it
    #[arg(long)]
    until: Option<String>,
    /// Findings per page [default: 20, at most 100]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u32>,
    #[command(flatten)]
    pages: PageFlags,
}

impl From<AnalyzeFlags> for AnalyzeArgs {
    fn from(flags: AnalyzeFlags) -> Self {
        Self {
            session_id: flags.session_id,
            query: flags.query,
            tool: flags.tool,
            checks: (!flags.checks.is_empty()).then_some(OneOrMany::Many(flags.checks)),
            project: flags.project,
            provider: flags.provider,
            since: flags.since,
            until: flags.until,
            limit: flags.limit,
            cursor: None,
        }
    }
}

pub(in crate::cli) fn run(
    flags: AnalyzeFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = context.create_priced_tools()?;
    let pages = flags.pages.clone();
    let args = AnalyzeArgs::from(flags);
    let answer = pages.read(|cursor| {
        tools.analyze_session(&AnalyzeArgs { cursor, ..args.clone() }, &context.call)
    })?;
    context.print_page(&answer, pages.shown_page())?;
    Ok(CommandOutcome::from_found(!answer.data.findings.is_empty()))
}
