//! The command line: arguments in, exit code out. Only this room names clap.
//!
//! This file has the root of the parser and gives every command to its file in `commands/`.

mod blank_values;
mod commands;
mod completion;
mod context;
mod exit;
mod first_run;
mod no_command;
mod output_path;
mod reference;
mod screens;
mod stats_filter;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{Arg, ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use schemas::envelope::MetadataLevel;
use schemas::{Timestamp, ToolError, Zone};

use self::commands::{
    analyze, blame, compact, completions, doctor, event, export, find, forget, hook, ingest, init,
    label, list, mcp, open, plugin, query, report, resume, search, setup, show, skill, sql_worker,
    stats, status, statusline, tail, tools, upgrade, usage, web,
};
use self::context::{CommandContext, debug_metadata};
use self::exit::{CommandFailure, CommandOutcome, report_result, report_unwritten};
use self::first_run::offer_and_ingest;
use crate::config::environment;
use crate::config::user_settings::UserSettings;
use crate::help::Help;
use crate::output::{Printer, logging};
use crate::store::Store;
use crate::tools::{Call, Interface};

/// Search, read and count the session logs of coding agents
#[derive(Debug, Parser)]
#[command(
    name = "sessions",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    arg = ai_help_flag(),
    before_help = "AI agents: `sessions --ai-help` prints the whole manual, `sessions COMMAND --ai-help` that of a command."
)]
struct Args {
    /// Directory of the store [default: the XDG data home + sessions]
    #[arg(long, global = true, env = "SESSIONS_STORE", value_name = "DIR")]
    store: Option<PathBuf>,
    /// Print the answer as JSON, exactly as the MCP tool returns it
    #[arg(long, global = true)]
    json: bool,
    /// Print nothing but data
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Log what is done to stderr; twice for each call and file (or SESSIONS_LOG=debug[:FILE])
    #[arg(long, short, action = ArgAction::Count, global = true)]
    verbose: u8,
    /// Zone of days and dates: an IANA name or 'utc' [default: the settings file, else TZ]
    #[arg(long, global = true, value_name = "NAME")]
    timezone: Option<String>,
    /// How much the metadata of answers say: core or full
    #[arg(long, global = true, value_name = "LEVEL", default_value_t = MetadataLevel::Core)]
    metadata: MetadataLevel,
    #[command(subcommand)]
    command: Command,
}

/// Returns the flag `--ai-help` for the help text. [`run`] looks for the flag itself before it
/// parses the arguments.
fn ai_help_flag() -> Arg {
    Arg::new("ai-help")
        .long("ai-help")
        .global(true)
        .action(ArgAction::SetTrue)
        .help("Print the manual for AI agents as markdown")
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read new and grown logs into the store
    Ingest(ingest::IngestFlags),
    /// Find events by their text
    Search(search::SearchFlags),
    /// Find sessions by what you remember of them
    Find(find::FindFlags),
    /// Show whole events
    Event(event::EventFlags),
    /// List sessions
    List(list::ListFlags),
    /// Read a session on the screen
    Open(open::OpenFlags),
    /// Follow what an agent does now
    Tail(tail::TailFlags),
    /// Show one session
    Show(show::ShowFlags),
    /// Add and remove labels on sessions, and set a note
    Label(label::LabelFlags),
    /// Remove sessions from the store for good, and keep their logs out
    Forget(forget::ForgetFlags),
    /// Drop texts that the settings do not keep, and merge small files of the store
    Compact(compact::CompactFlags),
    /// Explain what went wrong in a session, or what goes wrong again and again
    Analyze(analyze::AnalyzeFlags),
    /// Resume a session with its agent, or hand it over to another agent
    Resume(resume::ResumeFlags),
    /// Say which session wrote the lines of a file
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
    /// Say what the store holds and how fresh it is
    Status,
    /// Print one line for the status line of an agent: cost, context, quotas
    Statusline,
    /// Say where the agents keep their logs, what was found, and what was unknown in it
    Doctor,
    /// Serve the tools over MCP on stdin and stdout, or over HTTP
    Mcp(mcp::McpFlags),
    /// Serve a page for the browser: search, conversations, overview, live
    Web(web::WebFlags),
    /// Answer the hooks of agents, and show what was said
    Hook(hook::HookFlags),
    /// Register the server with a client: show what its configuration needs, or write it
    Setup(setup::SetupFlags),
    /// Write plugins for Claude Code, Codex, Gemini CLI and other clients
    Plugin(plugin::PluginFlags),
    /// Print a SKILL.md that teaches agents the tools
    Skill(skill::SkillFlags),
    /// Describe the tools: title, risk, category
    Tools(tools::ToolFlags),
    /// Run a query handed over by another process of this program
    #[command(hide = true)]
    SqlWorker,
    /// Say how this copy was installed, and which command gets a newer one
    Upgrade,
    /// Connect a shell: a key for the picker, and completion of ids, projects and flags
    Init(init::InitFlags),
    /// Print the words that complete a command line
    #[command(hide = true)]
    CompleteLine(init::CompleteLineFlags),
    /// Print a completion script for a shell
    Completions(completions::CompletionFlags),
}

impl Command {
    /// True for the commands that answer a question from the sessions in the store.
    fn looks_for_sessions(&self) -> bool {
        match self {
            Self::Search(_)
            | Self::Find(_)
            | Self::List(_)
            | Self::Analyze(_)
            | Self::Stats(_)
            | Self::Usage(_) => true,
            Self::Ingest(_)
            | Self::Event(_)
            | Self::Open(_)
            | Self::Tail(_)
            | Self::Show(_)
            | Self::Label(_)
            | Self::Forget(_)
            | Self::Compact(_)
            | Self::Query(_)
            | Self::Report(_)
            | Self::Export(_)
            | Self::Status
            | Self::Statusline
            | Self::Doctor
            | Self::Mcp(_)
            | Self::Web(_)
            | Self::Resume(_)
            | Self::Blame(_)
            | Self::Hook(_)
            | Self::Setup(_)
            | Self::Plugin(_)
            | Self::Skill(_)
            | Self::Tools(_)
            | Self::SqlWorker
            | Self::Upgrade
            | Self::Init(_)
            | Self::CompleteLine(_)
            | Self::Completions(_) => false,
        }
    }
}

/// Returns the help made from the commands that clap knows.
pub fn build_help() -> Help {
    reference::describe_commands(Args::command())
}

/// Runs the program. Exit codes: 0 done, 1 nothing found, 2 wrong usage, 3 data or store trouble.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let started = Instant::now();
    let arguments: Vec<OsString> = arguments.collect();
    // This comes before the arguments are parsed, because they may be wrong or incomplete.
    if reference::has_ai_help(&arguments) {
        let printer = text_printer();
        return match printer.print_data(&reference::answer_ai_help(&Args::command(), &arguments)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report_unwritten(&printer, &error),
        };
    }
    if arguments.len() < 2 {
        let printer = text_printer();
        if let Err(error) = start_logging(0) {
            return report_result(Err(error.into()), &printer);
        }
        return no_command::run(&Args::command().render_help().to_string(), &printer);
    }

    let arguments = blank_values::remove_blank_options(&Args::command(), arguments);
    let parsed = Args::command().try_get_matches_from(&arguments).and_then(|matches| {
        let name = matches.subcommand_name().unwrap_or_default().to_owned();
        Ok((name, Args::from_arg_matches(&matches)?))
    });
    let (command, args) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let code = report_unparsed(&error);
            // An agent may take any other exit code as a refusal of what it is about to do.
            return if hook::is_hook_call(&arguments) { ExitCode::SUCCESS } else { code };
        }
    };
    let debug = match args.metadata {
        MetadataLevel::Core => None,
        MetadataLevel::Full => Some(debug_metadata(command, &arguments)),
    };
    let printer = Printer { is_json: args.json, is_quiet: args.quiet, debug };
    if let Command::Hook(flags) = &args.command
        && let Some((hook, client)) = flags.called_hook()
    {
        // A log that cannot be written must not stop the agent.
        let log_file = environment::read_variable(logging::LOG_VARIABLE);
        let _ = logging::start(args.verbose, log_file.as_deref());
        hook::answer_agent(hook, client, args.store, &printer, started);
        return ExitCode::SUCCESS;
    }
    report_result(run_parsed(args, &printer), &printer)
}

/// Runs the command. If it reads a store that is not there, the first ingest is offered before.
fn run_parsed(args: Args, printer: &Printer) -> Result<CommandOutcome, CommandFailure> {
    // The process of a query writes its report to stderr, and nothing else may be there.
    if !matches!(args.command, Command::SqlWorker) {
        start_logging(args.verbose)?;
    }
    if args.command.looks_for_sessions() && !printer.is_json && !printer.is_quiet {
        offer_and_ingest(args.store.clone(), printer)?;
    }
    run_command(args, printer)
}

fn start_logging(verbose: u8) -> Result<(), ToolError> {
    logging::start(verbose, environment::read_variable(logging::LOG_VARIABLE).as_deref())
}

/// Returns a printer for the time before the arguments are parsed.
fn text_printer() -> Printer {
    Printer { is_json: false, is_quiet: false, debug: None }
}

/// Prints the help or the error with which clap ended parsing, and returns the exit code.
fn report_unparsed(error: &clap::Error) -> ExitCode {
    let printer = text_printer();
    if error.use_stderr() {
        // If stderr does not work either, only the exit code shows the error.
        let _ = printer.print_wrong_usage(&error.render().to_string());
        return ExitCode::from(2);
    }
    match error.print() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_unwritten(&printer, &error),
    }
}

/// Returns the zone of days and dates. Commands that have neither do not read the settings, so that
/// an invalid file does not stop them.
fn choose_zone(args: &Args) -> Result<Zone, ToolError> {
    let has_dates = match args.command {
        Command::Search(_)
        | Command::Find(_)
        | Command::List(_)
        | Command::Analyze(_)
        | Command::Stats(_)
        | Command::Usage(_)
        | Command::Report(_)
        | Command::Export(_)
        | Command::Forget(_)
        | Command::Open(_)
        | Command::Statusline => true,
        Command::Ingest(_)
        | Command::Event(_)
        | Command::Show(_)
        | Command::Label(_)
        | Command::Compact(_)
        | Command::Resume(_)
        | Command::Tail(_)
        | Command::Blame(_)
        | Command::Query(_)
        | Command::Status
        | Command::Doctor
        | Command::Mcp(_)
        | Command::Web(_)
        | Command::Hook(_)
        | Command::Setup(_)
        | Command::Plugin(_)
        | Command::Skill(_)
        | Command::Tools(_)
        | Command::Upgrade
        | Command::SqlWorker
        | Command::Init(_)
        | Command::CompleteLine(_)
        | Command::Completions(_) => false,
    };
    let settings = if has_dates { UserSettings::read()? } else { UserSettings::default() };
    if has_dates || args.timezone.is_some() {
        settings.zone(args.timezone.as_deref())
    } else {
        Ok(Zone::UTC)
    }
}

/// Runs the command.
fn run_command(args: Args, printer: &Printer) -> Result<CommandOutcome, CommandFailure> {
    let named_store = args.store.clone();
    let zone = choose_zone(&args)?;
    let context = CommandContext {
        store: Arc::new(Store::new(args.store.unwrap_or_else(environment::default_store))),
        // JSON output is the answer of the tool, word for word.
        interface: if printer.is_json { Interface::Tools } else { Interface::Commands },
        call: Call::new(Timestamp::now(), &|| false).with_zone(zone),
        printer,
    };
    match args.command {
        Command::Ingest(flags) => ingest::run(&flags, &context),
        Command::Search(flags) => search::run(flags, &context),
        Command::Find(flags) => find::run(flags, &context),
        Command::Event(flags) => event::run(flags, &context),
        Command::List(flags) => list::run(flags, &context),
        Command::Open(flags) => open::run(&flags, &context),
        Command::Tail(flags) => tail::run(&flags, &context),
        Command::Show(flags) => show::run(flags, &context),
        Command::Label(flags) => label::run(flags, &context),
        Command::Forget(flags) => forget::run(flags, &context),
        Command::Compact(flags) => compact::run(&flags, &context),
        Command::Analyze(flags) => analyze::run(flags, &context),
        Command::Resume(flags) => resume::run(&flags, &context),
        Command::Blame(flags) => blame::run(&flags, &context),
        Command::Query(flags) => query::run(flags, &context),
        Command::Stats(flags) => stats::run(flags, &context),
        Command::Usage(flags) => usage::run(flags, &context),
        Command::Report(flags) => report::run(flags, &context),
        Command::Export(flags) => export::run(flags, &context),
        Command::Status => status::run(&context),
        Command::Statusline => statusline::run(&context),
        Command::Doctor => doctor::run(&context),
        Command::Mcp(flags) => mcp::run(&flags, args.metadata, build_help(), &context),
        Command::Web(flags) => web::run(&flags, args.metadata, build_help(), &context),
        Command::Hook(flags) => hook::run(&flags, &context),
        Command::Setup(flags) => setup::run(&flags, named_store.as_deref(), printer),
        Command::Plugin(flags) => plugin::run(flags, &build_help(), printer),
        Command::Skill(flags) => skill::run(flags, &build_help(), printer),
        Command::Tools(flags) => tools::run(flags, &context),
        Command::Upgrade => upgrade::run(printer),
        Command::SqlWorker => sql_worker::run(printer),
        Command::Init(flags) => init::run(&flags, printer),
        Command::CompleteLine(flags) => {
            init::run_complete_line(flags, Args::command(), context.store.dir(), printer)
        }
        Command::Completions(flags) => completions::run(&flags, Args::command(), printer),
    }
}

#[cfg(test)]
mod tests {
    use schemas::tool::TOOLS;
    use serde_json::Value;

    use super::*;

    fn has_flag(command: &clap::Command, flag: &str) -> bool {
        command.get_arguments().any(|argument| argument.get_long() == Some(flag))
    }

    /// Answers name only commands that clap knows.
    #[test]
    fn what_answers_name_can_be_typed() {
        let program = Args::command();
        for tool in TOOLS {
            let command = program.find_subcommand(tool.command).expect(tool.name);
            let has_places = command.get_positionals().next().is_some();
            let schema: Value = (tool.input)();
            let arguments = schema["properties"].as_object().expect(tool.name);
            // What `label` does to sessions is given by several flags.
            for argument in arguments.keys().filter(|name| *name != "updates") {
                let line = Interface::Commands.format_call(tool.name, &[(argument, "x")]);
                let words: Vec<_> = line.split(' ').skip(2).collect();
                match words.as_slice() {
                    [flag, "x"] => {
                        let flag = flag.trim_start_matches("--");
                        let is_known = has_flag(command, flag) || has_flag(&program, flag);
                        assert!(is_known, "{line}");
                    }
                    ["x"] => assert!(has_places, "{line}"),
                    _ => panic!("{line}"),
                }
            }
        }
    }
}
