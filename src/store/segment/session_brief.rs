//! What every reader of a store needs to know of every session.

use schemas::session::SessionRow;
use schemas::{Provider, SCHEMA_VERSION};
use serde::{Deserialize, Serialize};

/// The part of a session's row that says which of its events are live, in which order it comes, and
/// whether it passes the filters of a request. The values are those of the columns of these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionBrief {
    pub session_id: String,
    pub provider: Provider,
    pub parent_session_id: Option<String>,
    /// The result of [`SessionRow::is_subagent`].
    pub is_subagent: bool,
    /// The result of [`SessionRow::is_conversation`].
    pub is_conversation: bool,
    pub project: Option<String>,
    pub cwd: Option<String>,
    pub repository: Option<String>,
    pub machine: Option<String>,
    pub user_name: Option<String>,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub events: i64,
    pub replay_events: i64,
    pub row_start: i64,
    pub row_count: i64,
    pub segment: i64,
    pub live_from: i64,
}

/// The layout of the file of briefs, next to the version of the schema. It changes with the fields, and
/// when a value follows from a row by another rule.
const LAYOUT: &str = "18 fields";

impl SessionBrief {
    /// Returns the layout of a file of briefs.
    pub(super) fn layout() -> String {
        format!("{SCHEMA_VERSION} {LAYOUT}")
    }

    /// Returns the brief of a session.
    pub(super) fn from_row(row: &SessionRow) -> Self {
        Self {
            session_id: row.session_id.clone(),
            provider: row.provider,
            parent_session_id: row.parent_session_id.clone(),
            is_subagent: row.is_subagent(),
            is_conversation: row.is_conversation(),
            project: row.project.clone(),
            cwd: row.cwd.clone(),
            repository: row.repository.clone(),
            machine: row.machine.clone(),
            user_name: row.user_name.clone(),
            started_at: row.started_at,
            ended_at: row.ended_at,
            events: row.events,
            replay_events: row.replay_events,
            row_start: row.row_start,
            row_count: row.row_count,
            segment: row.segment,
            live_from: row.live_from,
        }
    }

    /// Returns a row that has the values of the brief and no others.
    pub(super) fn to_bare_row(&self) -> SessionRow {
        SessionRow {
            session_id: self.session_id.clone(),
            provider: self.provider,
            parent_session_id: self.parent_session_id.clone(),
            project: self.project.clone(),
            cwd: self.cwd.clone(),
            repository: self.repository.clone(),
            machine: self.machine.clone(),
            user_name: self.user_name.clone(),
            started_at: self.started_at,
            ended_at: self.ended_at,
            events: self.events,
            replay_events: self.replay_events,
            row_start: self.row_start,
            row_count: self.row_count,
            segment: self.segment,
            live_from: self.live_from,
            ..SessionRow::default()
        }
    }
}
