//! Selects the sessions of a report or an export, which only commands create.

use std::collections::HashSet;

use schemas::envelope::Warning;
use schemas::{ErrorCode, Provider, ToolError};

use super::call::Call;
use super::caller::Caller;
use super::interface::Interface;
use super::retention_warning::dropped_texts_warning;
use super::scope::SessionFilters;
use super::time_range::TimeRange;
use crate::error::store_error;
use store::Snapshot;

/// The criteria that select sessions; no criteria select all sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionSelection {
    /// Session ids or their unique prefixes.
    pub session_ids: Vec<String>,
    pub provider: Option<Provider>,
    pub project: Option<String>,
    /// A time, or a span back from now, in the format that every tool takes.
    pub since: Option<String>,
    /// The end of the span, in the same format.
    pub until: Option<String>,
}

impl SessionSelection {
    /// Returns the span of time that `since` and `until` mean.
    pub fn parse_range(&self, call: &Call<'_>) -> Result<TimeRange, ToolError> {
        TimeRange::parse(self.since.as_deref(), self.until.as_deref(), &call.zone, call.now)
    }

    /// Returns the positions of the selected sessions in the snapshot. With `since`, only sessions
    /// that continued after it are selected; with `until`, only those that began before it. Fails
    /// with `session_not_found` if no session is selected, and also if `since` or `until` is not a
    /// time or if one of the ids does not name exactly one session.
    pub fn select_sessions(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
    ) -> Result<Vec<usize>, ToolError> {
        let range = self.parse_range(call)?;
        let filters = SessionFilters {
            project: self.project.as_deref(),
            provider: self.provider,
            since: range.since,
            until: range.until,
            ..SessionFilters::default()
        };
        let passes = filters.row_filter(snapshot);
        // Only `last` is known here: a report or an export is no agent's.
        let caller = Caller { interface: Interface::Commands, ..Caller::default() };
        let mut named = Vec::new();
        for id in &self.session_ids {
            named.push(caller.find_session(snapshot, id)?);
        }

        let mut found = Vec::new();
        for (at, row) in snapshot.sessions().iter().enumerate() {
            let is_named = named.is_empty() || named.contains(&at);
            if is_named && passes(row) {
                found.push(at);
            }
        }
        if found.is_empty() {
            if let Some(reason) = filters.explain_none(snapshot) {
                return Err(ToolError::new(ErrorCode::SessionNotFound, reason));
            }
            let message = format!(
                "None of {} sessions matches. Try without {}; {} shows the sessions",
                snapshot.sessions().len(),
                Interface::Commands.argument_names(&[
                    "session_id",
                    "provider",
                    "project",
                    "since",
                    "until"
                ]),
                Interface::Commands.tool_name("list_sessions")
            );
            return Err(ToolError::new(ErrorCode::SessionNotFound, message));
        }
        Ok(found)
    }

    /// Returns the warning about the selected sessions whose texts the retention dropped; `None` if
    /// they are all whole.
    pub fn find_dropped_texts(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
    ) -> Result<Option<Warning>, ToolError> {
        let selected = self.select_sessions(snapshot, call)?.into_iter();
        let rows = selected.filter_map(|at| snapshot.sessions().get(at));
        let ids: HashSet<&str> = rows.map(|row| row.id()).collect();
        dropped_texts_warning(snapshot, |row| ids.contains(row.id())).map_err(store_error)
    }
}
