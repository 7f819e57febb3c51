//! `sessions open`: reads a session on the screen.

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::screens::open_reader;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct OpenFlags {
    /// Session id; any unique prefix, 'current' or 'last'
    #[arg(value_name = "ID")]
    session_id: String,
}

pub(in crate::cli) fn run(
    flags: &OpenFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    open_reader(&flags.session_id, context)
}
