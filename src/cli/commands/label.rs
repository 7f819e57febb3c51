//! `sessions label`: adds and removes labels on sessions, and sets a note.

use schemas::tool::label::{LabelArgs, LabelUpdate};

use crate::cli::context::Context;
use crate::cli::exit::{Failure, Outcome};

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
    /// Note in place of the present one; empty removes it
    #[arg(long)]
    note: Option<String>,
}

impl From<LabelFlags> for LabelArgs {
    fn from(flags: LabelFlags) -> Self {
        let some = |labels: &Vec<String>| (!labels.is_empty()).then(|| labels.clone());
        let update = |session_id| LabelUpdate {
            session_id,
            add: some(&flags.add),
            remove: some(&flags.remove),
            note: flags.note.clone(),
        };
        Self { updates: flags.session_ids.iter().cloned().map(update).collect() }
    }
}

pub(in crate::cli) fn run(flags: LabelFlags, context: &Context<'_>) -> Result<Outcome, Failure> {
    let answer = context.tools().label(&flags.into(), &context.call)?;
    context.printer.answer(&answer)?;
    let failed = &answer.data.failed;
    if failed.iter().any(|failed| failed.code.exit_code() == 2) {
        return Ok(Outcome::Wrong);
    }
    Ok(Outcome::from_found(failed.is_empty()))
}
