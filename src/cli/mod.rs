//! The command line: arguments in, exit code out. Only this module names clap.
//!
//! This file has the root of the parser and gives every command to its file in `commands/`.

mod args;
mod bash_line;
mod blank_values;
mod browser;
mod command_groups;
mod commands;
mod completion;
mod context;
mod exit;
mod first_run;
mod freshness;
mod heap;
mod no_command;
mod output_path;
mod paging;
mod reference;
mod screens;
mod selection_flags;
mod startup;
mod tool_flags;
mod typed_words;
mod wrong_usage;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{CommandFactory, FromArgMatches};
use schemas::envelope::MetadataLevel;
use schemas::error::shorten_message;
use schemas::{Timestamp, ToolError, Zone};

use self::args::{Args, Command, CommandNeeds, color_choice};
use self::command_groups::{HelpScope, arrange_help};
use self::commands::help::HelpFlags;
use self::commands::{
    analyze, blame, compact, completions, config, doctor, event, export, find, forget, hide, hook,
    ingest, init, label, lake, list, mcp, open, plugin, pull, push, query, report, restore, resume,
    search, secrets, setup, show, skill, sql_worker, stats, status, statusline, tail, tools,
    uninstall, upgrade, usage, web,
};
use self::context::{CommandContext, debug_metadata};
use self::exit::{CommandOutcome, CommandResult, report_result, report_unwritten};
use self::first_run::ingest_on_first_use;
use self::freshness::StoreRefresh;
use self::reference::words_before_dashes;
use self::screens::{can_pick_session, pick_session};
use self::startup::{mask_stored_text, refuse_engine, start_logging};
use self::typed_words::replace_synonym;
use self::wrong_usage::{describe_wrong_usage, unknown_flag_of_search};
use crate::app;
use crate::config::environment;
use crate::config::user_settings::UserSettings;
use crate::files::lake_cache::{CachedStoreUse, use_cached_store};
use crate::help::Help;
use crate::output::{ColorChoice, Printer, Terminal, UserPager, logging, paint_help};
use ::tools::{Call, Interface};
use store::is_store;

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
        let printer = text_printer(&arguments);
        return match printer.print_data(&reference::answer_ai_help(&Args::command(), &arguments)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report_unwritten(&printer, &error),
        };
    }
    let program = Args::command();
    let arguments = replace_synonym(&program, arguments);
    let arguments = blank_values::remove_blank_options(&program, arguments);
    let terminal = Terminal::detect(named_color(&arguments), &environment::read_variable);
    let program = arrange_help(program, terminal, HelpScope::EveryDay);
    let parsed = program.try_get_matches_from(&arguments).and_then(|matches| {
        let name = matches.subcommand_name().unwrap_or_default().to_owned();
        let args = Args::from_arg_matches(&matches)?.with_environment();
        match &args.command {
            Some(Command::Search(flags)) if !arguments.iter().any(|word| word == "--") => {
                match flags.unknown_flag() {
                    Some(flag) => Err(unknown_flag_of_search(flag)),
                    None => Ok((name, args)),
                }
            }
            Some(_) | None => Ok((name, args)),
        }
    });
    let (name, mut args) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // An agent shows the errors of hooks to its user, and may take any other exit code as a
            // refusal of what it is about to do. Who types a hook call at a terminal sees the error.
            let is_hook = hook::is_hook_call(&Args::command(), &arguments);
            if is_hook && error.use_stderr() && text_printer(&arguments).has_piped_input() {
                return ExitCode::SUCCESS;
            }
            let code = report_unparsed(&error, &arguments);
            return if is_hook { ExitCode::SUCCESS } else { code };
        }
    };
    let debug = match args.metadata {
        MetadataLevel::Core => None,
        MetadataLevel::Full => Some(debug_metadata(name, &arguments)),
    };
    let printer = Printer {
        is_json: args.json,
        is_quiet: args.quiet,
        debug,
        terminal: Terminal::detect(args.color, &environment::read_variable),
        pager: if args.no_pager { None } else { UserPager::find(&environment::read_variable) },
    };
    let Some(command) = args.command.take() else {
        let help = arrange_help(Args::command(), terminal, HelpScope::EveryDay).render_help();
        return no_command::run(args, &help.to_string(), &printer);
    };
    if let Command::Hook(flags) = &command
        && let Some((hook, client)) = flags.called_hook()
    {
        // A log that cannot be written must not stop the agent.
        let log_file = environment::read_variable(logging::LOG_VARIABLE);
        let _ = logging::start(args.verbose, log_file.as_deref());
        hook::answer_agent(hook, client, args.store, &printer, started);
        return ExitCode::SUCCESS;
    }
    report_result(run_parsed(command, args, &printer), &printer)
}

/// Starts the log of the program and runs the command.
fn run_parsed(command: Command, args: Args, printer: &Printer) -> CommandResult {
    // The process of a query writes its report to stderr, and nothing else may be there.
    if !matches!(command, Command::SqlWorker) {
        start_logging(args.verbose)?;
        environment::name_moved_folders();
    }
    run_command(command, args, printer)
}

/// Returns a printer for the time before the arguments are parsed.
fn text_printer(arguments: &[OsString]) -> Printer {
    let read_variable = &environment::read_variable;
    let wants_pager = !arguments.iter().any(|argument| argument == "--no-pager");
    Printer {
        is_json: false,
        is_quiet: false,
        debug: None,
        terminal: Terminal::detect(named_color(arguments), read_variable),
        pager: UserPager::find(read_variable).filter(|_| wants_pager),
    }
}

/// Returns the value of `--color` before the arguments are parsed.
fn named_color(arguments: &[OsString]) -> ColorChoice {
    let mut words = words_before_dashes(arguments);
    while let Some(word) = words.next() {
        let Some(rest) = word.strip_prefix("--color") else { continue };
        let value = if rest.is_empty() { words.next() } else { rest.strip_prefix('=') };
        return value.map_or(ColorChoice::Auto, color_choice);
    }
    ColorChoice::Auto
}

/// Prints the help or the error with which clap ended parsing, and returns the exit code.
fn report_unparsed(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let printer = text_printer(arguments);
    if error.use_stderr() {
        let text = describe_wrong_usage(&Args::command(), error, arguments);
        let text = text.unwrap_or_else(|| error.render().to_string());
        // If stderr does not work either, only the exit code shows the error.
        let _ = printer.print_wrong_usage(&shorten_message(text));
        return ExitCode::from(2);
    }
    match printer.print_painted(&paint_help(&error.render().to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_unwritten(&printer, &error),
    }
}

/// Returns the zone of days, dates and clocks. An invalid file of settings does not stop commands that print
/// few of them.
fn choose_zone(needs: CommandNeeds, timezone: Option<&str>) -> Result<Zone, ToolError> {
    let settings = UserSettings::read();
    if needs.dates { settings? } else { settings.unwrap_or_default() }.zone(timezone)
}

/// Runs the command.
fn run_command(command: Command, args: Args, printer: &Printer) -> CommandResult {
    let named_store = args.store.clone();
    let needs = command.needs();
    let zone = choose_zone(needs, args.timezone.as_deref())?;
    let address = if needs.lake { None } else { args.engine.as_deref() };
    let engine = app::create_engine(address, args.lake.as_deref())?;
    if engine.is_some() && !needs.engine {
        return Err(refuse_engine().into());
    }
    let dir = match (&engine, &args.lake) {
        (Some(_), Some(lake)) => environment::lake_store(lake),
        _ => args.store.unwrap_or_else(environment::default_store),
    };
    let cache_use = if engine.is_some() { mark_used(&dir) } else { None };
    let store = Arc::new(app::open_store(dir));
    if needs.sessions && !args.no_refresh && engine.is_none() {
        ingest_on_first_use(&store, printer)?;
    }
    if engine.is_none() {
        mask_stored_text(&store, needs.text, printer)?;
    }
    let may_refresh =
        needs.refresh && !args.no_refresh && engine.is_none() && is_store(store.dir());
    let refresh = may_refresh.then(|| StoreRefresh::start(&store, needs.all_logs));
    let context = CommandContext {
        store,
        // JSON output is the answer of the tool, word for word.
        interface: if printer.is_json { Interface::default() } else { Interface::Commands },
        call: Call::new(Timestamp::now(), &|| false).with_zone(zone),
        engine,
        printer,
    };
    let outcome = dispatch_command(
        command,
        args.metadata,
        named_store.as_deref(),
        args.timezone.as_deref(),
        &context,
    )?;
    if let Some(refresh) = &refresh {
        refresh.finish(printer)?;
    }
    drop(cache_use);
    Ok(outcome)
}

/// Keeps the store of a lake from being removed while the command runs. The command does not depend on
/// it.
fn mark_used(dir: &Path) -> Option<CachedStoreUse> {
    match use_cached_store(dir) {
        Ok(cache_use) => Some(cache_use),
        Err(error) => {
            tracing::warn!(%error, "the cache of lakes is not cleaned");
            None
        }
    }
}

/// Gives the command to its file.
fn dispatch_command(
    command: Command,
    metadata: MetadataLevel,
    named_store: Option<&Path>,
    timezone: Option<&str>,
    context: &CommandContext<'_>,
) -> CommandResult {
    let printer = context.printer;
    match command {
        Command::Ingest(flags) => ingest::run(&flags, context),
        Command::Search(flags) => search::run(flags, context),
        Command::Find(flags) => find::run(flags, context),
        Command::Event(flags) => event::run(flags, context),
        Command::List(flags) => list::run(flags, context),
        Command::Show(flags) => show::run(flags, context),
        Command::Label(flags) => label::run(flags, context),
        Command::Forget(flags) if flags.is_empty() && can_pick_session(context) => {
            pick_session("forget", None, context)
        }
        Command::Forget(flags) => forget::run(flags, context),
        Command::Hide(flags) => hide::run(&flags, context),
        Command::Compact(flags) => compact::run(&flags, context),
        Command::Open(flags) => open::run(&flags, context),
        Command::Tail(flags) => tail::run(&flags, context),
        Command::Analyze(flags) => analyze::run(flags, context),
        Command::Resume(flags) => match flags.session_id.clone() {
            Some(session_id) => resume::run(&session_id, &flags, context),
            None => pick_session("resume", Some(flags), context),
        },
        Command::Restore(flags) => restore::run(flags, context),
        Command::Blame(flags) => blame::run(&flags, context),
        Command::Query(flags) => query::run(flags, context),
        Command::Stats(flags) => stats::run(flags, context),
        Command::Usage(flags) => usage::run(flags, context),
        Command::Report(flags) => report::run(flags, context),
        Command::Export(flags) => export::run(flags, context),
        Command::Push(flags) => push::run(&flags, context),
        Command::Pull(flags) => pull::run(&flags, context),
        Command::Lake(flags) => lake::run(&flags, context),
        Command::Status => status::run(context),
        Command::Statusline => statusline::run(context),
        Command::Doctor(flags) => doctor::run(&flags, context),
        Command::Secrets(flags) => secrets::run(&flags, context),
        Command::Mcp(flags) => mcp::run(&flags, metadata, build_help(), context),
        Command::Web(flags) => web::run(&flags, metadata, build_help(), context),
        Command::Hook(flags) => hook::run(&flags, context),
        Command::Setup(flags) => setup::run(&flags, named_store, printer),
        Command::Plugin(flags) => plugin::run(flags, &build_help(), printer),
        Command::Skill(flags) => skill::run(flags, &build_help(), printer),
        Command::Tools(flags) => tools::run(&flags.0, context),
        Command::Config => config::run(named_store, timezone, context),
        Command::Upgrade => upgrade::run(printer),
        Command::SqlWorker => sql_worker::run(printer),
        Command::Uninstall(flags) => uninstall::run(&flags, context),
        Command::Help(flags) => print_help(&flags, printer),
        Command::Init(flags) => init::run(&flags, printer),
        Command::CompleteLine(flags) => {
            init::run_complete_line(flags, Args::command(), context.store.dir(), printer)
        }
        Command::Completions(flags) => completions::run(&flags, Args::command(), printer),
    }
}

fn print_help(flags: &HelpFlags, printer: &Printer) -> CommandResult {
    let scope = if flags.lists_all { HelpScope::All } else { HelpScope::EveryDay };
    let help = arrange_help(Args::command(), printer.terminal, scope).render_help();
    printer.print_painted(&paint_help(&help.to_string()))?;
    Ok(CommandOutcome::Done)
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
