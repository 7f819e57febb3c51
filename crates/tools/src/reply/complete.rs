//! Completes typed text: ids of sessions, names of projects.

use std::collections::HashSet;

use schemas::ToolError;

use crate::error::store_error;
use base::sanitize::clean_text;
use store::{SessionSummary, Store};

/// Returns the ids of sessions that begin with `typed`, the latest session first.
pub fn complete_session(store: &Store, typed: &str) -> Result<Vec<String>, ToolError> {
    let typed = typed.trim();
    latest_first(store, |row| row.session_id.starts_with(typed).then(|| row.session_id.clone()))
}

/// Returns the projects whose name contains `typed`, the most recently used first.
pub fn complete_project(store: &Store, typed: &str) -> Result<Vec<String>, ToolError> {
    let typed = typed.trim().to_lowercase();
    let projects = latest_first(store, |row| {
        row.origin
            .project
            .as_deref()
            .map(clean_text)
            .filter(|name| name.to_lowercase().contains(&typed))
    })?;
    let mut seen = HashSet::new();
    Ok(projects.into_iter().filter(|name| seen.insert(name.clone())).collect())
}

/// Returns the values that `value` gives for sessions with a conversation, the latest first. The
/// result is empty if there is no store.
fn latest_first(
    store: &Store,
    value: impl Fn(&SessionSummary) -> Option<String>,
) -> Result<Vec<String>, ToolError> {
    let snapshot = store.take_lazy_snapshot().map_err(store_error)?;
    let mut rows: Vec<_> = snapshot.sessions().iter().filter(|row| row.is_conversation).collect();
    rows.sort_by(|a, b| b.ended_at.cmp(&a.ended_at).then_with(|| a.session_id.cmp(&b.session_id)));
    Ok(rows.into_iter().filter_map(|row| value(row)).collect())
}
