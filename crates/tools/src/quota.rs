//! Reads the quotas that agents record with their token counts: how much of each window is used,
//! and when it begins again.
//!
//! Codex writes them next to its counts. A `token_usage` event has them as its text:
//!
//! ```text
//! 300m 20% 1782095529; 10080m 55.5% 1782337450
//! 300m 4% 1782095529; limit GPT-5.3-Codex-Spark
//! ```
//!
//! The second one is the quota of one model, which has its own limit.

use std::collections::BTreeMap;
use std::ops::Range;

use schemas::table::EventColumn;
use schemas::{EventType, Provider, Timestamp, ToolError};
use serde::Serialize;

use super::Tools;
use super::reply::call::Call;
use crate::error::store_error;
use store::{SessionSummary, Snapshot};

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
    /// The name of the limit if it is not that of the agent as a whole, such as that of one model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Length of the window in minutes.
    pub window_minutes: i64,
    /// The used part, as of `seen_at`. 0 if the window began again since.
    pub used_percent: f64,
    /// True if the window began again since, so that the used part is not known.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub has_begun_again: bool,
    /// When the window begins again, as RFC 3339 in UTC. `None` if it is not known, or if it began
    /// again since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<String>,
    /// When the agent recorded it, as RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<String>,
}

/// The latest event of each limit: its time and its windows. The limit of the agent as a whole has no
/// name and comes first.
type LatestQuotas = BTreeMap<Option<String>, (Option<i64>, Vec<RecordedWindow>)>;

/// Returns the latest quotas that the store has, first those of the agent as a whole.
pub fn read_quotas(tools: &Tools, call: &Call<'_>) -> Result<QuotaData, ToolError> {
    let latest = tools
        .read_store(call, &mut || find_latest_quotas(tools.snapshot(call)?, Provider::Codex))?;
    let mut windows = Vec::new();
    for (limit, (time, recorded)) in latest {
        for window in recorded {
            let mut window = quota_window(
                Provider::Codex,
                window.minutes,
                window.used_percent,
                window.resets_at,
                call.now,
            );
            window.limit.clone_from(&limit);
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
        limit: None,
        window_minutes,
        used_percent: if has_begun_again { 0.0 } else { used_percent },
        has_begun_again,
        resets_at: resets_at.filter(|_| !has_begun_again).map(|time| time.to_string()),
        seen_at: None,
    }
}

/// Returns the latest event of each limit of an agent.
fn find_latest_quotas(snapshot: &Snapshot, provider: Provider) -> Result<LatestQuotas, ToolError> {
    let mut sessions: Vec<(usize, &SessionSummary)> = Vec::new();
    for (at, row) in snapshot.sessions().iter().enumerate() {
        if row.provider == provider && row.ended_at.is_some() {
            sessions.push((at, row));
        }
    }
    sessions.sort_by_key(|(_, row)| std::cmp::Reverse(row.ended_at));

    let mut latest = LatestQuotas::new();
    for (at, row) in sessions.into_iter().take(MAX_SESSIONS) {
        // No later session can have a later event.
        if latest.get(&None).is_some_and(|(time, _)| *time >= row.ended_at) {
            break;
        }
        for (limit, found) in last_quotas_of(snapshot, at, row).map_err(store_error)? {
            if latest.get(&limit).is_none_or(|known| found.0 > known.0) {
                latest.insert(limit, found);
            }
        }
    }
    Ok(latest)
}

/// Returns the last event of each limit in a session.
fn last_quotas_of(
    snapshot: &Snapshot,
    at: usize,
    row: &SessionSummary,
) -> Result<LatestQuotas, store::StoreError> {
    let end = u32::try_from(row.events).unwrap_or(u32::MAX);
    let last: Range<u32> = end.saturating_sub(MAX_EVENTS)..end;
    let columns = [
        EventColumn::EventIndex,
        EventColumn::EventType,
        EventColumn::Timestamp,
        EventColumn::Text,
    ];
    let events = snapshot.events_of(at, std::slice::from_ref(&last), &columns).read_rows()?;
    let mut last = LatestQuotas::new();
    for event in events {
        if event.event_type == EventType::TokenUsage && !event.text.is_empty() {
            let (limit, windows) = parse_windows(&event.text);
            last.insert(limit, (event.timestamp, windows));
        }
    }
    Ok(last)
}

/// A window as an event records it.
#[derive(Debug, PartialEq)]
struct RecordedWindow {
    minutes: i64,
    used_percent: f64,
    /// The second since the epoch at which the window begins again.
    resets_at: Option<i64>,
}

/// Parses the text of an event: the name of its limit, if it is not that of the agent as a whole, and
/// its windows. Windows in another form are left out.
fn parse_windows(text: &str) -> (Option<String>, Vec<RecordedWindow>) {
    let mut limit = None;
    let mut windows = Vec::new();
    for window in text.split("; ") {
        if let Some(name) = window.strip_prefix("limit ") {
            limit = Some(name.to_owned());
        }
        let mut words = window.split(' ');
        let minutes = words.next().and_then(|word| word.strip_suffix('m')?.parse().ok());
        let used = words.next().and_then(|word| word.strip_suffix('%')?.parse().ok());
        let resets_at = words.next().and_then(|word| word.parse().ok());
        if let (Some(minutes), Some(used_percent)) = (minutes, used) {
            windows.push(RecordedWindow { minutes, used_percent, resets_at });
        }
    }
    (limit, windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_parsed_and_other_text_is_not() {
        let window =
            |minutes, used_percent, resets_at| RecordedWindow { minutes, used_percent, resets_at };
        assert_eq!(
            parse_windows("300m 20% 1782095529; 10080m 55.5%"),
            (None, vec![window(300, 20.0, Some(1_782_095_529)), window(10_080, 55.5, None)])
        );
        assert_eq!(
            parse_windows("300m 4%; limit GPT-5.3-Codex-Spark"),
            (Some("GPT-5.3-Codex-Spark".to_owned()), vec![window(300, 4.0, None)])
        );
        assert_eq!(parse_windows("Fix the lights"), (None, Vec::new()));
        assert_eq!(parse_windows(""), (None, Vec::new()));
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
