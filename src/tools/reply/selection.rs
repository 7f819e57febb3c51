//! Selects the sessions of a report or an export, which only commands create.

use std::sync::Arc;

use schemas::session::SessionRow;
use schemas::{ErrorCode, Provider, Timestamp, ToolError};

use super::interface::Interface;
use super::session_filter::session_filter;
use crate::store::Snapshot;

/// The criteria that select sessions; no criteria select all sessions.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Session ids or their unique prefixes.
    pub session_ids: Vec<String>,
    pub provider: Option<Provider>,
    pub project: Option<String>,
    /// A time, or a span back from now, in the format that every tool takes.
    pub since: Option<String>,
}

impl Selection {
    /// Returns the time that `since` means.
    pub fn since(&self, now: Timestamp) -> Result<Option<Timestamp>, ToolError> {
        self.since.as_deref().map(|since| Timestamp::parse_since("since", since, now)).transpose()
    }

    /// Returns the positions of the selected sessions in the snapshot, or the error
    /// `session_not_found` if there are none. With `since`, only sessions that continued after it
    /// are selected.
    pub fn sessions(&self, snapshot: &Snapshot, now: Timestamp) -> Result<Vec<usize>, ToolError> {
        let since = self.since(now)?.map(|since| since.0);
        let passes = session_filter(self.project.as_deref(), self.provider, since);
        let find = |id: &String| {
            let found = snapshot.find(id.trim());
            found.map_err(|error| Interface::Commands.lookup_error(id.trim(), error))
        };
        let named = self.session_ids.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let rows = snapshot.sessions().iter().enumerate();
        let chosen = |(at, row): &(usize, &Arc<SessionRow>)| {
            (named.is_empty() || named.contains(at)) && passes(row)
        };
        let found: Vec<_> = rows.filter(chosen).map(|(at, _)| at).collect();
        if found.is_empty() {
            let message = format!(
                "None of {} sessions passes. Try without session_id, provider, project or since; {} shows what there is",
                snapshot.sessions().len(),
                Interface::Commands.tool("list_sessions")
            );
            return Err(ToolError::new(ErrorCode::SessionNotFound, message));
        }
        Ok(found)
    }
}
