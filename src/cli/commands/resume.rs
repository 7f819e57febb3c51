//! `sessions resume`: resumes a session with its own agent, or hands it over to another one.

use std::path::PathBuf;

use schemas::Provider;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::config::environment;
use crate::resume::{AgentCommand, ResumedSession, program_not_found, session_folder};
use tools::Handover;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ResumeFlags {
    /// Session id; any unique prefix, 'current' or 'last'
    #[arg(value_name = "ID")]
    session_id: String,
    /// Start this agent instead, with a handover: goal, decisions, state, open ends, files
    #[arg(long, value_name = "AGENT")]
    with: Option<Provider>,
    /// Only print the command, or with --with the handover
    #[arg(long)]
    print: bool,
    /// Run in this folder instead of the session's
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Resumes a session with its own agent.
pub(in crate::cli) fn resume_session(
    session_id: String,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    run(&ResumeFlags { session_id, with: None, print: false, folder: None }, context)
}

pub(in crate::cli) fn run(
    flags: &ResumeFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = context.create_tools();
    let handover = tools.write_handover(Some(&flags.session_id), None, &context.call)?;
    if let (Some(agent), true) = (flags.with, flags.print) {
        return print_handover(agent, &handover, context);
    }
    let folder =
        session_folder(&handover.session_id, flags.folder.as_deref(), handover.folder.as_deref());
    let command = match flags.with {
        Some(agent) => AgentCommand::start(agent, &handover.text, folder?)?,
        None => {
            let session = ResumedSession {
                session_id: &handover.session_id,
                provider: handover.provider,
                native_id: handover.native_id.as_deref(),
                parent_of_subagent: handover.parent_of_subagent.as_deref(),
                later_version: handover.later_version.as_deref(),
                is_log_gone: handover.is_log_gone,
            };
            // What the agent cannot do at all is reported before a missing folder.
            let command = AgentCommand::resume(session, PathBuf::new())?;
            AgentCommand { folder: folder?, ..command }
        }
    };
    if flags.print {
        return print_command(&handover, &command, context);
    }
    let Some(path) = environment::find_program(command.program) else {
        return Err(program_not_found(command.program).into());
    };
    Ok(CommandOutcome::Ended(command.run(&path)?))
}

fn print_command(
    handover: &Handover,
    command: &AgentCommand,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
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
) -> Result<CommandOutcome, CommandFailure> {
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
