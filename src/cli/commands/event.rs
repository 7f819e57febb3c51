//! `sessions event`: shows whole events.

use schemas::tool::event::{EventArgs, EventField};

use crate::cli::context::{Context, leak_tools};
use crate::cli::exit::{Failure, Outcome};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct EventFlags {
    /// Event ids: <session_id>:<event_index>, any unique session prefix
    #[arg(required = true, value_name = "ID")]
    event_ids: Vec<String>,
    /// Fields to show beside the ids: text, tool, usage, context, source
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

pub(in crate::cli) fn run(flags: EventFlags, context: &Context<'_>) -> Result<Outcome, Failure> {
    let answer = leak_tools(context.tools()).event(&flags.into(), &context.call)?;
    context.printer.answer(&answer)?;
    Ok(Outcome::from_found(answer.data.not_found.is_empty()))
}
