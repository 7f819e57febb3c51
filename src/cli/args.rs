//! The root of the parser: the flags that every command has, and the commands.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, Parser, Subcommand};
use schemas::envelope::MetadataLevel;
use schemas::tool::metadata::MetadataArgs;

use super::commands::{
    analyze, blame, compact, completions, doctor, event, export, find, forget, help, hide, hook,
    ingest, init, label, lake, list, mcp, open, plugin, pull, push, query, report, restore, resume,
    search, secrets, setup, show, skill, stats, tail, uninstall, usage, web,
};
use super::startup::TextUse;
use super::tool_flags::ToolFlags;
use crate::config::environment;
use crate::output::ColorChoice;

/// The most cells of a line of the help.
pub(super) const MAX_HELP_WIDTH: usize = 100;

/// The heading of the flags that every command has.
pub(super) const GLOBAL_FLAGS: &str = "Global flags";

/// Search, read and analyze the session logs of your coding agents
#[derive(Debug, Parser)]
#[command(
    name = "sessions",
    bin_name = "sessions",
    version,
    max_term_width = MAX_HELP_WIDTH,
    arg = ai_help_flag(),
    disable_help_subcommand = true,
    after_help = "AI agents: `sessions --ai-help` prints the whole manual, `sessions COMMAND --ai-help` that of a command."
)]
pub(super) struct Args {
    /// Directory of the store (or SESSIONS_STORE) [default: sessions in the XDG data home]
    #[arg(long, global = true, help_heading = GLOBAL_FLAGS, value_name = "DIR")]
    pub(super) store: Option<PathBuf>,
    /// Print the answer as JSON, exactly as the MCP tool returns it
    #[arg(long, global = true, help_heading = GLOBAL_FLAGS)]
    pub(super) json: bool,
    /// Print nothing but data and errors
    #[arg(long, short, global = true, help_heading = GLOBAL_FLAGS)]
    pub(super) quiet: bool,
    /// Log to stderr; -vv logs each call and file (or SESSIONS_LOG=debug[:FILE])
    #[arg(long, short, action = ArgAction::Count, global = true, help_heading = GLOBAL_FLAGS)]
    pub(super) verbose: u8,
    /// Time zone: an IANA name or 'utc' [default: the settings file, else TZ]
    #[arg(long, global = true, help_heading = GLOBAL_FLAGS, value_name = "NAME")]
    pub(super) timezone: Option<String>,
    /// Metadata detail: core or full
    #[arg(long, global = true, help_heading = GLOBAL_FLAGS, value_name = "LEVEL", default_value_t = MetadataLevel::Core)]
    pub(super) metadata: MetadataLevel,
    /// Colours: auto, always or never [default: auto, which respects NO_COLOR and CLICOLOR_FORCE]
    #[arg(
        long,
        global = true, help_heading = GLOBAL_FLAGS,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true, hide_possible_values = true,
        value_parser = parse_colors()
    )]
    pub(super) color: ColorChoice,
    /// Do not show long output in a pager (PAGER, else less)
    #[arg(long, global = true, help_heading = GLOBAL_FLAGS)]
    pub(super) no_pager: bool,
    /// Skip the check for new log data
    #[arg(long, global = true, help_heading = GLOBAL_FLAGS)]
    pub(super) no_refresh: bool,
    /// Answer from the lake of --lake through Spark Connect: spark://HOST:PORT (or
    /// SESSIONS_ENGINE)
    #[arg(long, global = true, help_heading = GLOBAL_FLAGS, value_name = "URL")]
    pub(super) engine: Option<String>,
    /// The lake of --engine: a folder to which machines push (or SESSIONS_LAKE)
    #[arg(long, global = true, help_heading = GLOBAL_FLAGS, value_name = "DIR")]
    pub(super) lake: Option<String>,
    /// Without a command, a terminal shows the picker.
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

impl Args {
    /// Takes the values of flags that were not given from the environment.
    pub(super) fn with_environment(self) -> Self {
        Self {
            store: self.store.or_else(|| environment::read_path_variable("SESSIONS_STORE")),
            engine: self.engine.or_else(|| environment::read_variable("SESSIONS_ENGINE")),
            lake: self.lake.or_else(|| environment::read_variable("SESSIONS_LAKE")),
            ..self
        }
    }
}

/// The values of `--color`.
const COLOR_CHOICES: &[(&str, ColorChoice)] =
    &[("auto", ColorChoice::Auto), ("always", ColorChoice::Always), ("never", ColorChoice::Never)];

/// Returns when output has colours, by a value of `--color`. Other values count as `auto`.
pub(super) fn color_choice(value: &str) -> ColorChoice {
    let known = COLOR_CHOICES.iter().find(|(name, _)| *name == value);
    known.map_or(ColorChoice::Auto, |(_, choice)| *choice)
}

fn parse_colors() -> impl TypedValueParser<Value = ColorChoice> {
    let names = COLOR_CHOICES.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(names).map(|value| color_choice(&value))
}

/// Returns the flag `--ai-help` for the help text. [`run`] looks for the flag itself before it
/// parses the arguments.
fn ai_help_flag() -> Arg {
    Arg::new("ai-help")
        .long("ai-help")
        .global(true)
        .help_heading(GLOBAL_FLAGS)
        .action(ArgAction::SetTrue)
        .help("Print the manual for AI agents as markdown")
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Read new log data into the store
    Ingest(ingest::IngestFlags),
    /// Find events by their text
    Search(search::SearchFlags),
    /// Find sessions by what you remember about them
    Find(find::FindFlags),
    /// Show whole events
    Event(event::EventFlags),
    /// List sessions
    List(list::ListFlags),
    /// Show one session
    Show(show::ShowFlags),
    /// Read a session in a full-screen view
    Open(open::OpenFlags),
    /// Follow what an agent is doing
    Tail(tail::TailFlags),
    /// Add or remove labels of sessions, or set a note
    Label(label::LabelFlags),
    /// Permanently remove sessions from the store, and do not read their logs again
    Forget(forget::ForgetFlags),
    /// Exclude projects from now on, and remove their sessions from the store
    Hide(hide::HideFlags),
    /// Drop texts past their retention, and merge small files of the store
    Compact(compact::CompactFlags),
    /// Explain what went wrong in a session, or which errors recur
    Analyze(analyze::AnalyzeFlags),
    /// Resume a session with its agent, or hand it over to another agent
    Resume(resume::ResumeFlags),
    /// Restore archived logs to where their agents expect them, or print a file as a session had it
    Restore(restore::RestoreFlags),
    /// Show which session wrote each line of a file
    Blame(blame::BlameFlags),
    /// Run one SQL SELECT over the store
    Query(query::QueryFlags),
    /// Count and sum by tool, model, day and other keys
    Stats(stats::StatsFlags),
    /// Show tokens and cost by day, week or month
    Usage(usage::UsageFlags),
    /// Write a report with charts as one HTML file
    Report(report::ReportFlags),
    /// Write sessions to files: Parquet, Arrow, JSON lines, transcripts
    Export(export::ExportFlags),
    /// Publish sessions to a lake: a folder or a bucket that machines share
    Push(push::PushFlags),
    /// Import sessions of other machines from a lake
    Pull(pull::PullFlags),
    /// Maintain a lake: merge its small objects
    Lake(lake::LakeFlags),
    /// Show what the store holds and how up to date it is
    Status,
    /// Print one line for the status line of an agent: cost, context, quotas
    Statusline,
    /// Show where agents keep their logs, what was found, and what was not understood
    Doctor(doctor::DoctorFlags),
    /// List the secrets in the logs on this machine: kind, place and time, never the secret
    Secrets(secrets::SecretFlags),
    /// Serve the tools over MCP on stdin and stdout, or over HTTP
    Mcp(mcp::McpFlags),
    /// Open a local page in the browser: search, conversations, overview, live
    Web(web::WebFlags),
    /// Answer the hooks of agents, and list past answers
    Hook(hook::HookFlags),
    /// Register the MCP server with a client: show the configuration, or write it
    Setup(setup::SetupFlags),
    /// Write plugins for Claude Code, Codex, Gemini CLI and other clients
    Plugin(plugin::PluginFlags),
    /// Print a SKILL.md that teaches agents the tools
    Skill(skill::SkillFlags),
    /// Describe the tools: title, risk, category
    Tools(ToolFlags<MetadataArgs>),
    /// Run a query handed over by another process of this program
    #[command(hide = true)]
    SqlWorker,
    /// Show every setting, its value and where it comes from
    Config,
    /// Show how this copy was installed, and the command that upgrades it
    Upgrade,
    /// Remove the program and what it set up for agents; the store only on request
    Uninstall(uninstall::UninstallFlags),
    /// List the commands
    Help(help::HelpFlags),
    /// Print the shell integration: a key for the picker, completion of ids and flags
    Init(init::InitFlags),
    /// Print the words that complete a command line
    #[command(hide = true)]
    CompleteLine(init::CompleteLineFlags),
    /// Print a completion script for a shell
    Completions(completions::CompletionFlags),
}

/// What a command needs before it runs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CommandNeeds {
    /// True for the commands that read sessions. Without a store they ingest the logs first.
    pub(super) sessions: bool,
    /// True for the commands that read logs which grew first.
    pub(super) refresh: bool,
    /// True for those of them that wait until all of these logs are read.
    pub(super) all_logs: bool,
    /// True for the commands that can answer over a lake.
    pub(super) engine: bool,
    /// True for the commands that name a lake themselves. They run without the engine, which the
    /// environment may name for other commands.
    pub(super) lake: bool,
    /// True for the commands that take or show days, dates or times.
    pub(super) dates: bool,
    /// What the command does with the text of the store.
    pub(super) text: TextUse,
}

/// The needs of most commands: they read sessions and show their text.
const SHOWS_SESSIONS: CommandNeeds = CommandNeeds {
    sessions: true,
    refresh: true,
    all_logs: false,
    engine: false,
    lake: false,
    dates: true,
    text: TextUse::Shows,
};

impl Command {
    pub(super) fn needs(&self) -> CommandNeeds {
        let nothing = CommandNeeds::default();
        match self {
            Self::Search(_)
            | Self::List(_)
            | Self::Stats(_)
            | Self::Usage(_)
            | Self::Event(_)
            | Self::Show(_) => CommandNeeds { engine: true, ..SHOWS_SESSIONS },
            Self::Find(_) | Self::Analyze(_) | Self::Blame(_) => SHOWS_SESSIONS,
            // Its exit code says that there are no secrets.
            Self::Secrets(_) => CommandNeeds { all_logs: true, ..SHOWS_SESSIONS },
            Self::Restore(flags) if flags.is_of_file() => SHOWS_SESSIONS,
            Self::Restore(_) => CommandNeeds { text: TextUse::Shows, ..nothing },
            Self::Report(_) | Self::Export(_) | Self::Resume(_) => {
                CommandNeeds { text: TextUse::PassesOn, ..SHOWS_SESSIONS }
            }
            Self::Query(flags) if flags.is_schema() => nothing,
            Self::Query(_) => CommandNeeds { engine: true, dates: false, ..SHOWS_SESSIONS },
            // They read new log data themselves.
            Self::Open(_) => CommandNeeds { refresh: false, ..SHOWS_SESSIONS },
            Self::Tail(_) => CommandNeeds { refresh: false, ..SHOWS_SESSIONS },
            // Without a store there is nothing to publish.
            Self::Push(_) => {
                CommandNeeds { refresh: true, lake: true, text: TextUse::PassesOn, ..nothing }
            }
            Self::Pull(_) => CommandNeeds { dates: true, lake: true, ..nothing },
            Self::Lake(_) => CommandNeeds { lake: true, ..nothing },
            Self::Forget(_) | Self::Hide(_) => {
                CommandNeeds { dates: true, text: TextUse::Shows, ..nothing }
            }
            Self::Doctor(flags) if flags.why_masked.is_some() => {
                CommandNeeds { dates: false, ..SHOWS_SESSIONS }
            }
            Self::Label(_) | Self::Status | Self::Doctor(_) => {
                CommandNeeds { text: TextUse::Shows, ..nothing }
            }
            Self::Statusline => CommandNeeds { dates: true, ..nothing },
            Self::Mcp(_) => CommandNeeds { engine: true, ..nothing },
            Self::Ingest(_)
            | Self::Compact(_)
            | Self::Web(_)
            | Self::Hook(_)
            | Self::Setup(_)
            | Self::Plugin(_)
            | Self::Skill(_)
            | Self::Tools(_)
            | Self::SqlWorker
            | Self::Config
            | Self::Upgrade
            | Self::Uninstall(_)
            | Self::Help(_)
            | Self::Init(_)
            | Self::CompleteLine(_)
            | Self::Completions(_) => nothing,
        }
    }
}
