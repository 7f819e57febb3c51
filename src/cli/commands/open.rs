//! `sessions open`: reads a session on the screen.

use crate::cli::context::CommandContext;
use crate::cli::exit::CommandResult;
use crate::cli::screens::{open_reader, pick_session};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct OpenFlags {
    /// Session id; any unique prefix, 'current' or 'last' [default: choose in the picker]
    #[arg(value_name = "ID")]
    session_id: Option<String>,
}

pub(in crate::cli) fn run(flags: &OpenFlags, context: &CommandContext<'_>) -> CommandResult {
    match &flags.session_id {
        Some(session_id) => open_reader(session_id, context),
        None => pick_session("open", None, context),
    }
}
