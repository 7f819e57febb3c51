//! A session in the list of the picker.

use schemas::Timestamp;
use schemas::tool::list::Session;

use crate::output::all_tokens;
use base::sanitize::{clean_text, one_line};

/// A session in the list, with what was found in it.
#[derive(Debug, Clone)]
pub(super) struct PickerRow {
    pub(super) id: String,
    /// The title in one line; empty if there is none.
    pub(super) title: String,
    pub(super) project: String,
    pub(super) ended: Option<Timestamp>,
    /// The event of the best match.
    pub(super) event_index: Option<u32>,
    pub(super) session: Session,
}

impl PickerRow {
    pub(super) fn new(session: Session) -> Self {
        Self {
            id: session.session_id.clone(),
            title: clean_line(session.title.as_deref()),
            project: clean_line(session.project.as_deref()),
            ended: session.ended_at.as_deref().and_then(Timestamp::parse),
            event_index: None,
            session,
        }
    }

    /// Returns the cost of the session and its subagents.
    pub(super) fn cost(&self) -> Option<f64> {
        all_tokens(&self.session).and_then(|tokens| tokens.cost_usd)
    }
}

/// Returns a text from a log as one line that is safe for a terminal.
fn clean_line(text: Option<&str>) -> String {
    one_line(&clean_text(text.unwrap_or_default())).split_whitespace().collect::<Vec<_>>().join(" ")
}
