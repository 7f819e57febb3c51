//! `sessions tail`: follows what an agent does now.

use std::sync::Arc;
use std::time::Duration;

use schemas::{ErrorCode, Timestamp, ToolError};

use crate::app;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::screens::can_show_screen;
use crate::output::LiveLines;
use tools::{Call, Tools, Transcript};

/// Interval between checks of the store. The logs are checked every two seconds.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct TailFlags {
    /// Session id; any unique prefix, 'current' or 'last' [default: current, else last]
    #[arg(value_name = "ID")]
    session_id: Option<String>,
    /// Print the last turn and exit
    #[arg(long)]
    once: bool,
}

/// Prints the last turn of a session and everything that follows, until stdout is closed or the process
/// is ended. If the user named no session, newer sessions of the folder are followed as they begin.
pub(in crate::cli) fn run(flags: &TailFlags, context: &CommandContext<'_>) -> CommandResult {
    let printer = context.printer;
    let named = flags.session_id.as_deref();
    let tools = app::create_screen_tools(Arc::clone(&context.store))?;
    tools.refresh_store();
    let mut whole = read_newest(&tools, named)?;
    let mut lines = LiveLines::new(context.layout());
    printer.print_note(&lines.heading(&whole))?;
    printer.print_lines(&lines.next_lines(&whole))?;
    if flags.once {
        printer.print_lines(&lines.state_lines(&whole))?;
        return Ok(CommandOutcome::Done);
    }

    // Only a terminal can replace lines.
    let has_state = can_show_screen(printer);
    let mut seen = None;
    loop {
        let current = generation(&tools)?;
        if seen != Some(current) {
            let rows = lines.state_rows();
            let newest = read_newest(&tools, named)?;
            if named.is_none() && began_later(&newest, &whole) {
                printer.replace_lines(rows, &lines.next_lines(&read_named(&tools, &whole)?))?;
                lines = LiveLines::new(context.layout());
                printer.print_note(&lines.heading(&newest))?;
                printer.print_lines(&lines.next_lines(&newest))?;
                whole = newest;
            } else {
                whole = read_named(&tools, &whole)?;
                printer.replace_lines(rows, &lines.next_lines(&whole))?;
            }
            if has_state {
                printer.print_lines(&lines.state_lines(&whole))?;
            }
            seen = Some(current);
        }
        std::thread::sleep(LOOK_INTERVAL);
        tools.refresh_store();
    }
}

/// Reads the named session. Without an id it is the one of the current folder, or else the newest one.
fn read_newest(tools: &Tools, session_id: Option<&str>) -> Result<Transcript, ToolError> {
    let call = Call::new(Timestamp::now(), &|| false);
    match tools.read_transcript(session_id.unwrap_or("current"), &call) {
        Err(error) if session_id.is_none() && error.code == ErrorCode::SessionNotFound => {
            tools.read_transcript("last", &call)
        }
        result => result,
    }
}

/// Reads a session again.
fn read_named(tools: &Tools, known: &Transcript) -> Result<Transcript, ToolError> {
    let call = Call::new(Timestamp::now(), &|| false);
    tools.read_transcript(&known.session.session_id, &call)
}

/// Returns true if a session began after another one.
fn began_later(session: &Transcript, other: &Transcript) -> bool {
    session.session.session_id != other.session.session_id
        && session.session.started_at > other.session.started_at
}

fn generation(tools: &Tools) -> Result<u64, ToolError> {
    let call = Call::new(Timestamp::now(), &|| false);
    Ok(tools.snapshot(&call)?.manifest().generation)
}
