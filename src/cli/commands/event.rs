//! `sessions event`: shows whole events.

use schemas::tool::event::{EventArgs, EventField};

use crate::cli::context::{CommandContext, leak_tools};
use crate::cli::exit::{CommandFailure, CommandOutcome};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct EventFlags {
    /// Event ids: <session_id>:<event_index>, any unique session prefix
    #[arg(required = true, value_name = "ID")]
    event_ids: Vec<String>,
    /// Fields to show besides the ids: text, tool, usage, context, source
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    fields: Vec<EventField>,
    /// Characters of text per page [default: 20000]
    #[arg(long, value_name = "N")]
    max_chars: Option<u32>,
    /// Cursor of the page before
    #[arg(long)]
    cursor: Option<String>,
}

impl From<EventFlags> for EventArgs {
    fn from(flags: EventFlags) -> Self {
        Self {
            event_ids: flags.event_ids,
            fields: (!flags.fields.is_empty()).then_some(flags.fields),
            max_chars: flags.max_chars,
            cursor: flags.cursor,
        }
    }
}

pub(in crate::cli) fn run(
    flags: EventFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let answer =
        leak_tools(context.create_tools()).get_event_details(&flags.into(), &context.call)?;
    context.print_answer(&answer)?;
    Ok(CommandOutcome::from_found(answer.data.not_found.is_empty()))
}
