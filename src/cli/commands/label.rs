//! `sessions label`: adds and removes labels on sessions, and sets a note.

use schemas::tool::label::{LabelArgs, LabelUpdate};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct LabelFlags {
    /// Session ids; any unique prefixes, or 'current'
    #[arg(required = true, value_name = "ID")]
    session_ids: Vec<String>,
    /// Label to add (can be repeated)
    #[arg(long, value_name = "LABEL", required_unless_present_any = ["remove", "note"])]
    add: Vec<String>,
    /// Label to remove (can be repeated)
    #[arg(long, value_name = "LABEL")]
    remove: Vec<String>,
    /// Set the note; an empty one removes it
    #[arg(long)]
    note: Option<String>,
}

impl From<LabelFlags> for LabelArgs {
    fn from(flags: LabelFlags) -> Self {
        let add = if flags.add.is_empty() { None } else { Some(flags.add) };
        let remove = if flags.remove.is_empty() { None } else { Some(flags.remove) };
        let mut updates = Vec::new();
        for session_id in flags.session_ids {
            let update = LabelUpdate {
                session_id,
                add: add.clone(),
                remove: remove.clone(),
                note: flags.note.clone(),
            };
            updates.push(update);
        }
        Self { updates }
    }
}

pub(in crate::cli) fn run(flags: LabelFlags, context: &CommandContext<'_>) -> CommandResult {
    let answer = context.create_tools().update_session_labels(&flags.into(), &context.call)?;
    context.print_answer(&answer)?;
    let failed = &answer.data.failed;
    if failed.iter().any(|failed| failed.code.exit_code() == 2) {
        return Ok(CommandOutcome::Wrong);
    }
    Ok(CommandOutcome::from_found(failed.is_empty()))
}
