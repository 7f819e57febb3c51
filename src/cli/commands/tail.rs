//! `sessions tail`: follows what an agent does now.

use std::sync::Arc;
use std::time::Duration;

use schemas::{ErrorCode, Timestamp, ToolError};

use crate::app;
use crate::cli::context::{CommandContext, leak_tools};
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::output::LiveLines;
use tools::{Call, Tools, Transcript};

/// The time between two looks at the store. The logs are checked every two seconds.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct TailFlags {
    /// Session id; any unique prefix, 'current' or 'last' [default: current, else last]
    #[arg(value_name = "ID")]
    session_id: Option<String>,
    /// Print the last turn and end
    #[arg(long)]
    once: bool,
}

/// Prints the last turn of a session and everything that follows, until stdout is closed or the process
/// is ended.
pub(in crate::cli) fn run(
    flags: &TailFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = leak_tools(app::create_screen_tools(Arc::clone(&context.store))?);
    tools.refresh_store();
    let first = read_first(tools, flags.session_id.as_deref())?;
    let session_id = first.session.session_id.clone();
    let mut lines = LiveLines::new(context.printer.terminal);
    context.printer.print_note(&lines.heading(&first))?;
    context.printer.print_lines(&lines.next_lines(&first))?;
    if flags.once {
        return Ok(CommandOutcome::Done);
    }

    let mut seen = generation(tools)?;
    loop {
        std::thread::sleep(LOOK_INTERVAL);
        tools.refresh_store();
        let current = generation(tools)?;
        if current != seen {
            seen = current;
            let call = Call::new(Timestamp::now(), &|| false);
            let whole = tools.read_transcript(&session_id, &call)?;
            context.printer.print_lines(&lines.next_lines(&whole))?;
        }
    }
}

/// Reads the session that is followed. Without an id it is the one of the current folder, or else the
/// newest one.
fn read_first(tools: &Tools, session_id: Option<&str>) -> Result<Transcript, ToolError> {
    let call = Call::new(Timestamp::now(), &|| false);
    match tools.read_transcript(session_id.unwrap_or("current"), &call) {
        Err(error) if session_id.is_none() && error.code == ErrorCode::SessionNotFound => {
            tools.read_transcript("last", &call)
        }
        result => result,
    }
}

fn generation(tools: &Tools) -> Result<u64, ToolError> {
    let call = Call::new(Timestamp::now(), &|| false);
    Ok(tools.snapshot(&call)?.manifest().generation)
}
