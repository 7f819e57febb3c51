//! What every reader of a store needs to know of every session.

use std::collections::HashSet;
use std::sync::Arc;

use schemas::Provider;
use schemas::session::SessionRow;
use serde::{Deserialize, Serialize};

/// The part of a session's row that says which of its events are live, in which order it comes, and
/// whether it passes the filters of a request. The values are those of the columns of these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionBrief {
    pub session_id: String,
    pub provider: Provider,
    pub parent_session_id: Option<String>,
    pub agent_id: Option<String>,
    pub source_path: String,
    pub title: Option<String>,
    /// The result of [`SessionRow::is_subagent`].
    pub is_subagent: bool,
    /// The result of [`SessionRow::is_earlier_version`].
    pub is_earlier_version: bool,
    /// The result of [`SessionRow::is_conversation`].
    pub is_conversation: bool,
    pub origin: Arc<SessionOrigin>,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub events: i64,
    pub replay_events: i64,
    pub row_start: i64,
    pub row_count: i64,
    pub segment: i64,
    pub live_from: i64,
}

/// Where a session took place. Sessions of a segment that have the same origin share it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionOrigin {
    pub project: Option<String>,
    pub cwd: Option<String>,
    pub repository: Option<String>,
    pub machine: Option<String>,
    pub user_name: Option<String>,
}

/// Makes sessions that have the same origin share it.
pub(super) fn share_origins(briefs: &mut [SessionBrief]) {
    let mut origins: HashSet<Arc<SessionOrigin>> = HashSet::new();
    for brief in briefs {
        match origins.get(&brief.origin) {
            Some(known) => brief.origin = Arc::clone(known),
            None => {
                origins.insert(Arc::clone(&brief.origin));
            }
        }
    }
}

impl SessionBrief {
    /// Returns the brief of a session.
    pub(crate) fn from_row(row: &SessionRow) -> Self {
        Self {
            session_id: row.session_id.clone(),
            provider: row.provider,
            parent_session_id: row.parent_session_id.clone(),
            agent_id: row.agent_id.clone(),
            source_path: row.source_path.clone(),
            title: row.title.clone(),
            is_subagent: row.is_subagent(),
            is_earlier_version: row.is_earlier_version(),
            is_conversation: row.is_conversation(),
            origin: Arc::new(SessionOrigin {
                project: row.project.clone(),
                cwd: row.cwd.clone(),
                repository: row.repository.clone(),
                machine: row.machine.clone(),
                user_name: row.user_name.clone(),
            }),
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
}
