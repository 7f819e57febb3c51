//! `sessions resume`: resumes a session with its own agent, or hands it over to another one.

use std::path::{Path, PathBuf};

use schemas::{Provider, ToolError};
use serde_json::json;

use super::resume_here::{Arrival, bring_session, resumed};
use super::resume_native;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::environment;
use crate::config::user_settings::UserSettings;
use crate::resume::{AgentCommand, program_not_found, session_folder};
use crate::travel::{FolderSearch, find_folder};
use store::Repository;
use tools::{Handover, Tools};

#[derive(Debug, Default, clap::Args)]
pub(in crate::cli) struct ResumeFlags {
    /// Session id; any unique prefix, 'current' or 'last' [default: choose in the picker]
    #[arg(value_name = "ID")]
    pub(in crate::cli) session_id: Option<String>,
    /// Start this agent instead, with a handover: goal, decisions, state, open ends, files
    #[arg(long, value_name = "AGENT")]
    with: Option<Provider>,
    /// With --with: convert the session to that agent's format and resume it there
    #[arg(long, requires = "with")]
    native: bool,
    /// Only print the command (with --with: the handover)
    #[arg(long)]
    print: bool,
    /// Run in this folder instead of the session's
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Restore a session of another machine into this folder, and run there
    #[arg(long = "in", value_name = "FOLDER", conflicts_with = "folder")]
    into: Option<PathBuf>,
}

impl ResumeFlags {
    /// Returns the folder that the user names.
    fn given_folder(&self) -> Option<&Path> {
        self.into.as_deref().or(self.folder.as_deref())
    }
}

/// Resumes this session, or hands it over.
pub(in crate::cli) fn run(
    session_id: &str,
    flags: &ResumeFlags,
    context: &CommandContext<'_>,
) -> CommandResult {
    let tools = context.create_tools();
    let handover = tools.write_handover(Some(session_id), None, &context.call)?;
    if let (Some(agent), true) = (flags.with, flags.native) {
        let folder = match known_folder(&handover, flags.given_folder(), &tools, context) {
            Ok(folder) => folder,
            Err(error) => match choose_folder(&error, context)? {
                FolderChoice::Folder(folder) => folder,
                FolderChoice::PrintOnly => return Err(with_advice(error).into()),
            },
        };
        return resume_native::run(agent, &tools, &handover, &folder, flags.print, context);
    }
    if let (Some(agent), true) = (flags.with, flags.print) {
        return print_handover(agent, &handover, context);
    }
    let brought = match flags.with {
        Some(_) => None,
        None => {
            let arrival = Arrival { folder: flags.given_folder(), is_print_only: flags.print };
            bring_session(&handover, arrival, &tools, context)?
        }
    };
    let given = if brought.is_some() { None } else { flags.given_folder() };
    let handover = brought.unwrap_or(handover);
    // What the agent cannot do at all is reported before a missing folder.
    let mut command = match flags.with {
        Some(agent) => AgentCommand::start(agent, &handover.text)?,
        None => AgentCommand::resume(resumed(&handover))?,
    };
    // An agent finds the log of its session by the folder.
    let folder = match flags.with {
        Some(_) => known_folder(&handover, given, &tools, context),
        None => session_folder(&handover.session_id, given, handover.folder.as_deref()),
    };
    match folder {
        Ok(folder) => command.folder = Some(folder),
        Err(error) if flags.print => context.printer.print_note(&with_advice(error).message)?,
        Err(error) => match choose_folder(&error, context)? {
            FolderChoice::Folder(folder) => command.folder = Some(folder),
            FolderChoice::PrintOnly => return print_command(&handover, &command, context),
        },
    }
    if flags.print {
        return print_command(&handover, &command, context);
    }
    let Some(path) = environment::find_program(command.program) else {
        return Err(program_not_found(command.program).into());
    };
    Ok(CommandOutcome::Ended(command.run(&path)?))
}

/// What the user wants if the folder of a session does not exist.
enum FolderChoice {
    Folder(PathBuf),
    PrintOnly,
}

/// Asks in which folder a session is resumed whose own does not exist, which `error` says.
///
/// # Errors
/// Fails with `error` if the user cannot be asked, and if the named folder does not exist.
fn choose_folder(
    error: &ToolError,
    context: &CommandContext<'_>,
) -> Result<FolderChoice, CommandFailure> {
    let printer = context.printer;
    let here = environment::current_dir().unwrap_or_default();
    if printer.is_json || !printer.is_interactive() {
        return Err(with_advice(error.clone()).into());
    }
    let options = [
        format!("resume here, in {}", here.display()),
        "resume in another folder".to_owned(),
        "only print the command".to_owned(),
    ];
    match printer.choose(&error.message, &options)? {
        Some(0) => Ok(FolderChoice::Folder(here)),
        Some(1) => {
            let folder = printer.ask("Folder:")?;
            if folder.is_empty() || folder.starts_with('\u{1b}') {
                return Err(CommandFailure::Cancelled);
            }
            Ok(FolderChoice::Folder(session_folder("", Some(Path::new(&folder)), None)?))
        }
        Some(_) => Ok(FolderChoice::PrintOnly),
        None => Err(CommandFailure::Cancelled),
    }
}

/// Adds to the error about a folder what names another one.
fn with_advice(error: ToolError) -> ToolError {
    ToolError { message: format!("{}. Use --folder DIR", error.message), ..error }
}

/// Returns the folder in which a session is continued: `given`, its own, that of the same repository here, or
/// the one that the settings name for it.
fn known_folder(
    handover: &Handover,
    given: Option<&Path>,
    tools: &Tools,
    context: &CommandContext<'_>,
) -> Result<PathBuf, ToolError> {
    let id = &handover.session_id;
    let own = session_folder(id, given, handover.folder.as_deref());
    let Err(error) = own else { return own };
    if given.is_some() {
        return Err(error);
    }
    let snapshot = tools.snapshot(&context.call)?;
    let session = snapshot.session(id);
    let remote = session.and_then(|session| session.origin.repository.clone());
    let repository = Repository { remote, ..Repository::default() };
    let here = environment::current_dir();
    let search = FolderSearch {
        snapshot,
        folder: handover.folder.as_deref(),
        repository: Some(&repository),
        here: here.as_deref(),
        projects: &UserSettings::read()?.projects,
    };
    find_folder(&search)?.ok_or(error)
}

fn print_command(
    handover: &Handover,
    command: &AgentCommand,
    context: &CommandContext<'_>,
) -> CommandResult {
    if context.printer.is_json {
        context.printer.print_json(&json!({
            "session_id": handover.session_id,
            "folder": command.folder,
            "program": command.program,
            "arguments": command.arguments,
        }))?;
    } else {
        context.printer.print_data(&format!("{}\n", command.to_shell_line()))?;
    }
    Ok(CommandOutcome::Done)
}

fn print_handover(
    agent: Provider,
    handover: &Handover,
    context: &CommandContext<'_>,
) -> CommandResult {
    if context.printer.is_json {
        context.printer.print_json(&json!({
            "session_id": handover.session_id,
            "agent": agent.as_str(),
            "folder": handover.folder,
            "handover": handover.text,
        }))?;
    } else {
        context.printer.print_data(&handover.text)?;
    }
    Ok(CommandOutcome::Done)
}
