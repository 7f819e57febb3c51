//! Reads the quotas that agents record with their token counts: how much of each window is used,
//! and when it begins again.
//!
//! Codex writes them next to its counts. A `token_usage` event has them as its text:
//!
//! ```text
//! 300m 20% 1782095529; 10080m 55.5% 1782337450
//! ```

use std::ops::Range;

use schemas::session::SessionRow;
use schemas::table::EventColumn;
use schemas::{EventType, Provider, Timestamp, ToolError};
use serde::Serialize;

use super::Tools;
use super::reply::call::Call;
use crate::error::store_error;
use store::Snapshot;

/// Version of the data, which changes when a field changes its meaning or goes.
pub const QUOTA_VERSION: u32 = 1;

/// Number of the latest sessions that are searched for a quota.
const MAX_SESSIONS: usize = 10;

/// Number of the last events of a session that are searched for a quota.
const MAX_EVENTS: u32 = 400;

/// The quotas of all agents that record them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuotaData {
    pub version: u32,
    pub windows: Vec<QuotaWindow>,
}

/// The quota of one window of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuotaWindow {
    pub provider: Provider,
    /// Length of the window in minutes.
    pub window_minutes: i64,
    /// The used part, as of `seen_at`. 0 if the window began again since.
    pub used_percent: f64,
    /// When the window begins again, as RFC 3339 in UTC. `None` if it is not known, or if it began
    /// again since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<String>,
    /// When the agent recorded it, as RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<String>,
}

/// Returns the latest quotas that the store has.
pub fn read_quotas(tools: &Tools, call: &Call<'_>) -> Result<QuotaData, ToolError> {
    let latest = tools
        .read_store(call, &mut || find_latest_quota(tools.snapshot(call)?, Provider::Codex))?;
    let mut windows = Vec::new();
    if let Some((time, text)) = latest {
        for (minutes, used_percent, resets_at) in parse_windows(&text) {
            let mut window =
                quota_window(Provider::Codex, minutes, used_percent, resets_at, call.now);
            window.seen_at = time.map(|time| Timestamp(time).to_string());
            windows.push(window);
        }
    }
    Ok(QuotaData { version: QUOTA_VERSION, windows })
}

/// Returns a window as of `now`. `resets_at` is in seconds since the epoch.
pub fn quota_window(
    provider: Provider,
    window_minutes: i64,
    used_percent: f64,
    resets_at: Option<i64>,
    now: Timestamp,
) -> QuotaWindow {
    let resets_at = resets_at.map(|seconds| Timestamp(seconds.saturating_mul(1_000_000)));
    let has_begun_again = resets_at.is_some_and(|time| time <= now);
    QuotaWindow {
        provider,
        window_minutes,
        used_percent: if has_begun_again { 0.0 } else { used_percent },
        resets_at: resets_at.filter(|_| !has_begun_again).map(|time| time.to_string()),
        seen_at: None,
    }
}

/// Returns the time and the text of the latest event of an agent that has a quota.
fn find_latest_quota(
    snapshot: &Snapshot,
    provider: Provider,
) -> Result<Option<(Option<i64>, String)>, ToolError> {
    let mut sessions: Vec<(usize, &SessionRow)> = Vec::new();
    for (at, row) in snapshot.sessions().iter().enumerate() {
        if row.provider == provider && row.ended_at.is_some() {
            sessions.push((at, row));
        }
    }
    sessions.sort_by_key(|(_, row)| std::cmp::Reverse(row.ended_at));

    let mut latest: Option<(Option<i64>, String)> = None;
    for (at, row) in sessions.into_iter().take(MAX_SESSIONS) {
        // No later session can have a later event.
        if latest.as_ref().is_some_and(|(time, _)| *time >= row.ended_at) {
            break;
        }
        let found = last_quota_of(snapshot, at, row).map_err(store_error)?;
        if let Some(found) = found
            && latest.as_ref().is_none_or(|latest| found.0 > latest.0)
        {
            latest = Some(found);
        }
    }
    Ok(latest)
}

/// Returns the time and the text of the last event of a session that has a quota.
fn last_quota_of(
    snapshot: &Snapshot,
    at: usize,
    row: &SessionRow,
) -> Result<Option<(Option<i64>, String)>, store::StoreError> {
    let end = u32::try_from(row.events).unwrap_or(u32::MAX);
    let last: Range<u32> = end.saturating_sub(MAX_EVENTS)..end;
    let columns = [
        EventColumn::EventIndex,
        EventColumn::EventType,
        EventColumn::Timestamp,
        EventColumn::Text,
    ];
    let events = snapshot.events_of(at, std::slice::from_ref(&last), &columns).read_rows()?;
    let mut with_quota = events
        .into_iter()
        .rev()
        .filter(|event| event.event_type == EventType::TokenUsage && !event.text.is_empty());
    Ok(with_quota.next().map(|event| (event.timestamp, event.text)))
}

/// Parses the text of an event: minutes, percent used, and the second at which the window begins
/// again. Windows in another form are left out.
fn parse_windows(text: &str) -> Vec<(i64, f64, Option<i64>)> {
    let mut windows = Vec::new();
    for window in text.split("; ") {
        let mut words = window.split(' ');
        let minutes = words.next().and_then(|word| word.strip_suffix('m')?.parse().ok());
        let used = words.next().and_then(|word| word.strip_suffix('%')?.parse().ok());
        let resets_at = words.next().and_then(|word| word.parse().ok());
        if let (Some(minutes), Some(used)) = (minutes, used) {
            windows.push((minutes, used, resets_at));
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_parsed_and_other_text_is_not() {
        assert_eq!(
            parse_windows("300m 20% 1782095529; 10080m 55.5%"),
            [(300, 20.0, Some(1_782_095_529)), (10_080, 55.5, None)]
        );
        assert_eq!(parse_windows("Fix the lights"), []);
        assert_eq!(parse_windows(""), []);
    }

    #[test]
    fn a_window_that_began_again_is_unused() {
        let before = quota_window(Provider::Codex, 300, 20.0, Some(100), Timestamp(99_000_000));
        assert_eq!(before.used_percent, 20.0);
        assert_eq!(before.resets_at.as_deref(), Some("1970-01-01T00:01:40.000Z"));
        let after = quota_window(Provider::Codex, 300, 20.0, Some(100), Timestamp(100_000_000));
        assert_eq!((after.used_percent, after.resets_at), (0.0, None));
    }
}
