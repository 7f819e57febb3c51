//! What can be typed. Flags are the tools' argument names.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Parser, Subcommand};
use schemas::client::Client;
use schemas::envelope::MetadataLevel;
use schemas::tool::OneOrMany;
use schemas::tool::analyze::{AnalyzeArgs, Check};
use schemas::tool::details::{DetailArgs, DetailLevel};
use schemas::tool::event::{EventArgs, EventField};
use schemas::tool::list::{ListArgs, ListFormat, ListSort};
use schemas::tool::metadata::MetadataArgs;
use schemas::tool::search::SearchArgs;
use schemas::{EventType, Provider};

use super::counts::{QueryFlags, StatsFlags, UsageFlags};
use super::files::{ExportFlags, ReportFlags};
use super::serve::{LabelFlags, ServeFlags};

/// Search, read and count the session logs of coding agents
#[derive(Debug, Parser)]
#[command(
    name = "sessions",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    arg = ai_help(),
    before_help = "AI agents: `sessions --ai-help` prints the whole manual, `sessions COMMAND --ai-help` that of a command."
)]
pub(super) struct Args {
    /// Directory of the store [default: the XDG data home + sessions]
    #[arg(long, global = true, env = "SESSIONS_STORE", value_name = "DIR")]
    pub(super) store: Option<PathBuf>,
    /// Print the answer as JSON, exactly as the MCP tool returns it
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print nothing but data
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
    /// Tell on stderr what is done; twice for each call and file (or SESSIONS_LOG=debug[:FILE])
    #[arg(long, short, action = clap::ArgAction::Count, global = true)]
    pub(super) verbose: u8,
    /// How much the metadata of answers say: core or full
    #[arg(long, global = true, value_name = "LEVEL", default_value_t = MetadataLevel::Core)]
    pub(super) metadata: MetadataLevel,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The flag that is looked for before anything else is; here for the help only.
fn ai_help() -> Arg {
    Arg::new("ai-help")
        .long("ai-help")
        .global(true)
        .action(ArgAction::SetTrue)
        .help("Print the manual for AI agents as markdown")
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Read new and grown logs into the store
    Ingest(IngestArgs),
    /// Find events by their text
    Search(SearchFlags),
    /// Show whole events
    Event(EventFlags),
    /// List sessions
    List(ListFlags),
    /// Show one session
    Show(ShowFlags),
    /// Add and remove labels on sessions, and set a note
    Label(LabelFlags),
    /// Explain what went wrong in a session, or what goes wrong again and again
    Analyze(AnalyzeFlags),
    /// Run one SQL SELECT over the store
    Query(QueryFlags),
    /// Count and sum by tool, model, day or whatever else
    Stats(StatsFlags),
    /// Show tokens and cost by day, week or month
    Usage(UsageFlags),
    /// Write a report with charts as one HTML file
    Report(ReportFlags),
    /// Write sessions to files: Parquet, Arrow, JSON lines, transcripts
    Export(ExportFlags),
    /// Say what the store holds and how fresh it is
    Status,
    /// Say where the agents keep their logs, what was found, and what was unknown in it
    Doctor,
    /// Serve the tools over MCP on stdin and stdout, or over HTTP
    Mcp(McpFlags),
    /// Register the server with a client: show what its configuration needs, or write it
    Setup(SetupFlags),
    /// Print a SKILL.md that teaches agents the tools
    Skill(SkillFlags),
    /// Describe the tools: title, risk, category
    Tools(ToolFlags),
    /// Run a query handed over by another process of this program
    #[command(hide = true)]
    SqlWorker,
    /// Print a completion script for a shell
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct IngestArgs {
    /// Log files and folders [default: the usual places of every known agent]
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Compare the whole store with its checksums first; damaged parts are read again
    #[arg(long)]
    pub(super) verify: bool,
    /// Go on: read what changes within a second of its being written
    #[arg(long)]
    pub(super) watch: bool,
    /// Keep secrets as they stand in the logs; logs that were masked are read anew
    #[arg(long)]
    pub(super) no_redact: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct SearchFlags {
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
    /// Only events since: '24h', '7d', a date or RFC 3339 time (UTC)
    #[arg(long)]
    since: Option<String>,
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
            limit: flags.limit,
            cursor: flags.cursor,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct EventFlags {
    /// Event ids: <session_id>:<event_index>, any unique session prefix
    #[arg(required = true, value_name = "ID")]
    event_ids: Vec<String>,
    /// Fields to show beside the ids: text, tool, usage, context, source
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    fields: Vec<EventField>,
    /// Characters of text per page [default: 20000]
    #[arg(long, value_name = "N")]
    max_chars: Option<u32>,
    /// Cursor of the page before
    #[arg(long)]
    cursor: Option<String>,
}

impl From<EventFlags> for EventArgs {
    fn from(flags: EventFlags) -> Self {
        Self {
            event_ids: flags.event_ids,
            fields: (!flags.fields.is_empty()).then_some(flags.fields),
            max_chars: flags.max_chars,
            cursor: flags.cursor,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct ListFlags {
    /// Only sessions whose working directory contains this text
    #[arg(long)]
    project: Option<String>,
    /// Only this agent's sessions
    #[arg(long)]
    provider: Option<Provider>,
    /// Also list the sessions of subagents
    #[arg(long)]
    subagents: bool,
    /// Only sessions active since: '24h', '7d', a date or RFC 3339 time (UTC)
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

#[derive(Debug, clap::Args)]
pub(super) struct ShowFlags {
    /// Session id; any unique prefix, 'current' or 'last'
    #[arg(value_name = "ID")]
    session_id: String,
    /// summary, turns, steps or full [default: summary]
    #[arg(long, value_name = "LEVEL")]
    detail_level: Option<DetailLevel>,
    /// Show the model's reasoning too; at steps and full
    #[arg(long)]
    include_reasoning: bool,
    /// Only these turns: '4', '3-5', '3-'
    #[arg(long)]
    turns: Option<String>,
    /// Cursor of the page before
    #[arg(long)]
    cursor: Option<String>,
    /// Most turns, steps or events on a page
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

impl From<ShowFlags> for DetailArgs {
    fn from(flags: ShowFlags) -> Self {
        Self {
            session_id: flags.session_id,
            detail_level: flags.detail_level,
            include_reasoning: flags.include_reasoning.then_some(true),
            turns: flags.turns,
            cursor: flags.cursor,
            limit: flags.limit,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct AnalyzeFlags {
    /// Session id; any unique prefix, 'current', 'last' or 'last_failed'; without it, errors that
    /// recur over sessions
    #[arg(value_name = "ID")]
    session_id: Option<String>,
    /// failures, loops, slow, oversized, context, interruptions, ends
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    checks: Vec<Check>,
    /// Only sessions whose working directory contains this text
    #[arg(long)]
    project: Option<String>,
    /// Only this agent's sessions
    #[arg(long)]
    provider: Option<Provider>,
    /// Only sessions active since: '24h', '7d', a date or RFC 3339 time (UTC)
    #[arg(long)]
    since: Option<String>,
    /// Findings per page [default: 20, at most 100]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Cursor of the page before
    #[arg(long)]
    cursor: Option<String>,
}

impl From<AnalyzeFlags> for AnalyzeArgs {
    fn from(flags: AnalyzeFlags) -> Self {
        Self {
            session_id: flags.session_id,
            checks: (!flags.checks.is_empty()).then_some(OneOrMany::Many(flags.checks)),
            project: flags.project,
            provider: flags.provider,
            since: flags.since,
            limit: flags.limit,
            cursor: flags.cursor,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct McpFlags {
    #[command(flatten)]
    pub(super) serving: ServeFlags,
    /// Serve streamable HTTP here instead, as 127.0.0.1:8765; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) http: Option<SocketAddr>,
    /// File with the bearer token [default: SESSIONS_HTTP_TOKEN, else one is made in the store]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(super) token_file: Option<PathBuf>,
    /// Ask for no token; on loopback only
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(super) no_auth: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct SetupFlags {
    /// claude, codex, gemini, opencode, vscode or cursor
    pub(super) client: Client,
    /// Write it into the client's configuration; the file as it was is kept
    #[arg(long)]
    pub(super) write: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct SkillFlags {
    /// Write it to this file, or into this folder
    #[arg(long, short, value_name = "PATH")]
    pub(super) output: Option<PathBuf>,
    /// Replace a file that holds something else
    #[arg(long, requires = "output")]
    pub(super) force: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ToolFlags {
    /// Only these tools
    #[arg(value_name = "TOOL")]
    tools: Vec<String>,
}

impl From<ToolFlags> for MetadataArgs {
    fn from(flags: ToolFlags) -> Self {
        Self { tools: (!flags.tools.is_empty()).then_some(OneOrMany::Many(flags.tools)) }
    }
}
