//! What every reader of a store needs to know of every session.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use schemas::Provider;
use schemas::session::SessionRow;
use serde::{Deserialize, Serialize};

/// The part of a session's row that says which of its events are live, in which order it comes, and
/// whether it passes the filters of a request. The values are those of the columns of these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    pub session_id: String,
    pub provider: Provider,
    pub parent_session_id: Option<String>,
    pub agent_id: Option<String>,
    /// `None` if it is the id of the session; see [`Self::native_id`].
    native_id: Option<String>,
    pub source_path: String,
    pub title: Option<String>,
    /// The result of [`SessionRow::is_subagent`].
    pub is_subagent: bool,
    /// The result of [`SessionRow::is_earlier_version`].
    pub is_earlier_version: bool,
    /// The result of [`SessionRow::is_conversation`].
    pub is_conversation: bool,
    #[serde(skip, default = "unknown_origin")]
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

/// The summaries of a segment as they are encoded: each origin once.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SessionSummaries {
    origins: Vec<Arc<SessionOrigin>>,
    /// Each with the position of its origin.
    summaries: Vec<(usize, SessionSummary)>,
}

impl SessionSummaries {
    pub(super) fn from_rows<'r>(rows: impl Iterator<Item = &'r SessionRow>) -> Self {
        let mut all = Self::default();
        let mut positions = HashMap::new();
        for summary in rows.map(SessionSummary::from_row) {
            let at = *positions.entry(Arc::clone(&summary.origin)).or_insert(all.origins.len());
            if at == all.origins.len() {
                all.origins.push(Arc::clone(&summary.origin));
            }
            all.summaries.push((at, summary));
        }
        all
    }

    /// Returns the summaries. Sessions that have the same origin share it. `None` if an origin is missing.
    pub(super) fn into_summaries(self) -> Option<Vec<SessionSummary>> {
        let Self { origins, summaries } = self;
        let summaries = summaries.into_iter().map(|(at, summary)| {
            Some(SessionSummary { origin: Arc::clone(origins.get(at)?), ..summary })
        });
        summaries.collect()
    }
}

/// Stands in for the origin of a decoded summary until [`SessionSummaries::into_summaries`] sets it.
fn unknown_origin() -> Arc<SessionOrigin> {
    static UNKNOWN: LazyLock<Arc<SessionOrigin>> = LazyLock::new(Arc::default);
    Arc::clone(&UNKNOWN)
}

impl SessionSummary {
    /// Returns the id that the log names.
    pub fn native_id(&self) -> &str {
        self.native_id.as_deref().unwrap_or(&self.session_id)
    }

    /// Returns the summary of a session.
    pub(crate) fn from_row(row: &SessionRow) -> Self {
        Self {
            session_id: row.session_id.clone(),
            provider: row.provider,
            parent_session_id: row.parent_session_id.clone(),
            agent_id: row.agent_id.clone(),
            native_id: row.native_id.clone().filter(|id| *id != row.session_id),
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
