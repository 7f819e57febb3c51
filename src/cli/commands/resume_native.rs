//! `sessions resume --with AGENT --native`: writes the session as one of another agent, and resumes it there.

use std::path::Path;

use ingest::provider::format::AgentFolders;
use schemas::Provider;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::config::environment;
use crate::resume::native::{NativeCopy, prepare_copy, read_conversation};
use crate::resume::program_not_found;
use tools::{Handover, Tools};

/// Continues a session in `folder`, or prints what would be done.
pub(super) fn run(
    agent: Provider,
    tools: &Tools,
    handover: &Handover,
    folder: &Path,
    is_print_only: bool,
    context: &CommandContext<'_>,
) -> CommandResult {
    let id = &handover.session_id;
    let conversation = read_conversation(tools, id, &context.call)?;
    let home = environment::home_dir();
    let folders = AgentFolders::new(&home, &environment::read_variable);
    let copy = prepare_copy(&conversation, agent, folder, &folders)?;
    if is_print_only {
        return print_copy(id, &copy, context);
    }
    let program = copy.command.program;
    let Some(path) = environment::find_program(program) else {
        return Err(program_not_found(program).into());
    };
    copy.write(&path)?;
    if let Some(file) = copy.file() {
        context.printer.print_note(&format!("Session {id} was copied to {}", file.display()))?;
    }
    Ok(CommandOutcome::Ended(copy.command.run(&path)?))
}

/// Prints what would be written and run. Nothing is written.
fn print_copy(session_id: &str, copy: &NativeCopy, context: &CommandContext<'_>) -> CommandResult {
    let command = &copy.command;
    if context.printer.is_json {
        context.printer.print_json(&json!({
            "session_id": session_id,
            "folder": command.folder,
            "program": command.program,
            "arguments": command.arguments,
            "file": copy.file(),
        }))?;
        return Ok(CommandOutcome::Done);
    }
    let place = match copy.file() {
        Some(file) => format!("would be written to {}", file.display()),
        None => format!("would be imported by `{} import`", command.program),
    };
    context.printer.print_note(&format!("Nothing was written. The session {place}"))?;
    context.printer.print_data(&format!("{}\n", command.to_shell_line()))?;
    Ok(CommandOutcome::Done)
}
