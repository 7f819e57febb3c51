//! The command line: arguments in, exit code out. Only this module names clap.

mod args;
mod connect;
mod counts;
mod files;
mod reference;
mod serve;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches};
use ingest::provider::Places;
use ingest::report::Report;
use schemas::envelope::{DebugMetadata, MetadataLevel, ToolContext};
use schemas::limits::BYTES_PER_TOKEN;
use schemas::{Timestamp, ToolError};

use self::args::{Args, Command, IngestArgs};
pub use self::reference::help;
use crate::app;
use crate::app::ingest_logs::{IngestOptions, ingest_logs, watch_logs};
use crate::app::{environment, settings};
use crate::output::{Bar, Printer, Show, logging};
use crate::store::{Store, Verify};
use crate::tools::{Call, Interface, Tools};

/// How long an ingest waits for another one: servers take in what grew in moments.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a command came to.
enum Outcome {
    Done,
    NothingFound,
    /// What was asked for makes no sense; the answer says why.
    Wrong,
}

/// What ended a command.
enum Failure {
    Tool(ToolError),
    /// stdout or stderr is gone.
    Output(std::io::Error),
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

/// Runs the program. Exit codes: 0 done, 1 nothing found, 2 wrong usage, 3 data or store trouble.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    // Before the arguments are looked at any further: they may be wrong or incomplete.
    if let Some(text) = reference::asked(&arguments) {
        let printer = Printer { json: false, quiet: false, debug: None };
        return match printer.data(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => unwritten(&printer, &error),
        };
    }
    if arguments.len() < 2 {
        // The environment may name a store, which clap takes for an argument.
        let help = Args::command().render_help().to_string();
        let _ = Printer { json: false, quiet: false, debug: None }.note(&help);
        return ExitCode::from(2);
    }
    let parsed = Args::command().try_get_matches_from(&arguments).and_then(|matches| {
        let name = matches.subcommand_name().unwrap_or_default().to_owned();
        Ok((name, Args::from_arg_matches(&matches)?))
    });
    let (command, args) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let printer = Printer { json: false, quiet: false, debug: None };
            if error.use_stderr() {
                // Without a working stderr the code has to say it alone.
                let _ = printer.wrong_usage(&error.render().to_string());
                return ExitCode::from(2);
            }
            return match error.print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => unwritten(&printer, &error),
            };
        }
    };
    let debug = (args.metadata == MetadataLevel::Full).then(|| debug(command, &arguments));
    let printer = Printer { json: args.json, quiet: args.quiet, debug };
    match dispatch(args, &printer) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::NothingFound) => ExitCode::from(1),
        Ok(Outcome::Wrong) => ExitCode::from(2),
        Err(Failure::Output(error)) => unwritten(&printer, &error),
        Err(Failure::Tool(error)) => {
            let code = error.code.exit_code();
            match printer.error(error) {
                Err(error) if printer.json && error.kind() != ErrorKind::BrokenPipe => {
                    unwritten(&printer, &error)
                }
                _ => ExitCode::from(code),
            }
        }
    }
}

/// Reports that the answer could not be written, and returns the exit code. A reader that has seen
/// enough and closed its end, such as `head`, is not a failure.
fn unwritten(printer: &Printer, error: &std::io::Error) -> ExitCode {
    if error.kind() == ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    printer.unwritten(error);
    ExitCode::from(3)
}

/// What developers ask for, as far as a command knows it.
fn debug(command: String, arguments: &[OsString]) -> DebugMetadata {
    let bytes: usize = arguments.iter().skip(1).map(|argument| argument.len() + 1).sum();
    DebugMetadata {
        request_id: format!("cli-{}", std::process::id()),
        tool_version: env!("CARGO_PKG_VERSION"),
        schema_version: schemas::tool::CONTRACT_VERSION,
        adapter: "cli",
        tokens_input: bytes.div_ceil(BYTES_PER_TOKEN),
        tokens_output: 0,
        api_calls_made: 0,
        rate_limit_remaining: None,
        confidence: 1.0,
        threshold: 0.0,
        tool_context: ToolContext { tool: command, generation: None },
    }
}

fn dispatch(args: Args, printer: &Printer) -> Result<Outcome, Failure> {
    // A query's process tells on stderr how it went, and nothing else.
    if !matches!(args.command, Command::SqlWorker) {
        logging::start(args.verbose, environment::variable(logging::VARIABLE).as_deref())?;
    }
    let named_store = args.store.clone();
    let store = Store::new(args.store.unwrap_or_else(environment::default_store));
    let call = Call::new(Timestamp::now(), &|| false);
    // What is printed as JSON is the answer of the tool, word for word.
    let interface = if printer.json { Interface::Tools } else { Interface::Commands };
    let found = |any: bool| if any { Outcome::Done } else { Outcome::NothingFound };
    match args.command {
        Command::Ingest(ingest) => run_ingest(&store, &ingest, printer),
        Command::Search(search) => {
            let answer = lasting(app::tools(store, interface)).search(&search.into(), &call)?;
            printer.answer(&answer)?;
            Ok(found(!answer.data.matches.is_empty()))
        }
        Command::Event(event) => {
            let answer = lasting(app::tools(store, interface)).event(&event.into(), &call)?;
            printer.answer(&answer)?;
            Ok(found(answer.data.not_found.is_empty()))
        }
        Command::List(list) => {
            let tools = lasting(app::tools(store, interface).with_prices(settings::prices()?));
            let answer = tools.list(&list.into(), &call)?;
            printer.answer(&answer)?;
            Ok(found(!answer.data.sessions.is_empty()))
        }
        Command::Show(show) => {
            let tools = lasting(app::tools(store, interface).with_prices(settings::prices()?));
            printer.answer(&tools.details(&show.into(), &call)?)?;
            Ok(Outcome::Done)
        }
        Command::Analyze(analyze) => {
            let tools = lasting(app::tools(store, interface).with_prices(settings::prices()?));
            let answer = tools.analyze(&analyze.into(), &call)?;
            printer.answer(&answer)?;
            Ok(found(!answer.data.findings.is_empty()))
        }
        Command::Label(label) => {
            let answer = app::tools(store, interface).label(&label.into(), &call)?;
            printer.answer(&answer)?;
            let wrong = answer.data.failed.iter().any(|failed| failed.code.exit_code() == 2);
            Ok(if wrong { Outcome::Wrong } else { found(answer.data.failed.is_empty()) })
        }
        Command::Report(report) => files::report(store, report, &call, printer),
        Command::Export(export) => files::export(store, export, &call, printer),
        Command::Query(flags) => counts::query(counting(store, interface)?, flags, &call, printer),
        Command::Stats(flags) => counts::stats(counting(store, interface)?, flags, &call, printer),
        Command::Usage(flags) => counts::usage(counting(store, interface)?, flags, &call, printer),
        Command::SqlWorker => {
            let input = std::io::BufReader::new(std::io::stdin());
            crate::sql::serve(input, printer.rows(), &mut printer.report())?;
            Ok(Outcome::Done)
        }
        Command::Status => {
            let status = app::tools(store, interface).status(&environment::known_roots())?;
            if printer.json {
                printer.json(&status)?
            } else {
                printer.data(&status.show())?
            }
            Ok(Outcome::Done)
        }
        Command::Doctor => {
            let data = Tools::new(store)
                .doctor(&Places::new(&environment::home(), &environment::variable))?;
            if printer.json {
                printer.json(&data)?;
            } else {
                printer.data(&data.show())?;
            }
            Ok(Outcome::Done)
        }
        Command::Mcp(flags) => connect::serve(store, &flags, args.metadata, printer),
        Command::Setup(flags) => connect::register(named_store.as_deref(), &flags, printer),
        Command::Skill(flags) => connect::skill(flags, printer),
        Command::Tools(tools) => {
            printer.answer(&app::tools(store, interface).metadata(&tools.into(), &call)?)?;
            Ok(Outcome::Done)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "sessions", &mut script);
            printer.data(&String::from_utf8_lossy(&script))?;
            Ok(Outcome::Done)
        }
    }
}

fn run_ingest(store: &Store, args: &IngestArgs, printer: &Printer) -> Result<Outcome, Failure> {
    let options = IngestOptions {
        verify: if args.verify { Verify::All } else { Verify::Some },
        redactor: if args.no_redact { None } else { Some(settings::redactor()?) },
        patience: PATIENCE,
    };
    if args.watch {
        return run_watch(store, args, &options, printer);
    }
    let bar = Bar::new(printer.quiet || printer.json);
    let report = ingest_logs(store, &args.paths, &options, &bar);
    bar.finish();
    print_report(&report?, printer)?;
    Ok(Outcome::Done)
}

/// Ingests until stdout is closed or the process is ended; only runs that found something are shown.
fn run_watch(
    store: &Store,
    args: &IngestArgs,
    options: &IngestOptions,
    printer: &Printer,
) -> Result<Outcome, Failure> {
    let mut closed = None;
    watch_logs(store, &args.paths, options, |report| {
        if report.sessions > 0 || report.files_failed > 0 {
            closed = print_report(&report, printer).err();
        }
        closed.is_none()
    })?;
    closed.map_or(Ok(Outcome::Done), |error| Err(error.into()))
}

fn print_report(report: &Report, printer: &Printer) -> std::io::Result<()> {
    if printer.json {
        printer.json(report)
    } else if printer.quiet {
        Ok(())
    } else {
        printer.data(&report.show())
    }
}

/// The tools with prices and queries.
fn counting(store: Store, interface: Interface) -> Result<&'static Tools, Failure> {
    Ok(lasting(
        app::tools(store, interface)
            .with_prices(settings::prices()?)
            .with_program(environment::running()),
    ))
}

/// The tools for the rest of the process, which ends with the answer: to take apart what was read
/// of a large store takes a millisecond.
fn lasting(tools: Tools) -> &'static Tools {
    Box::leak(Box::new(tools))
}

#[cfg(test)]
mod tests {
    use schemas::tool::TOOLS;
    use serde_json::Value;

    use super::*;

    /// Commands that answers name are such as clap knows.
    #[test]
    fn what_answers_name_can_be_typed() {
        let program = Args::command();
        for tool in TOOLS {
            let command = program.find_subcommand(tool.command).expect(tool.name);
            let takes = |flag: &str| {
                command.get_arguments().any(|argument| argument.get_long() == Some(flag))
            };
            let has_places = command.get_positionals().next().is_some();
            let schema: Value = (tool.input)();
            let arguments = schema["properties"].as_object().expect(tool.name);
            // What `label` does to sessions is given by several flags.
            for argument in arguments.keys().filter(|name| *name != "updates") {
                let line = Interface::Commands.call(tool.name, &[(argument, "x")]);
                let words: Vec<_> = line.split(' ').skip(2).collect();
                match words.as_slice() {
                    [flag, "x"] => assert!(takes(flag.trim_start_matches("--")), "{line}"),
                    ["x"] => assert!(has_places, "{line}"),
                    _ => panic!("{line}"),
                }
            }
        }
    }
}
