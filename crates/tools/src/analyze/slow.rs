//! Reports slow calls and large results.

use std::collections::HashMap;

use schemas::ToolKind;
use schemas::envelope::Severity;
use schemas::limits::BYTES_PER_TOKEN;
use schemas::tool::analyze::{Check, Finding};

use super::action::Action;
use super::finding::finding_at;

/// Minimum duration in milliseconds of a call that is slow in any session.
const MIN_SLOW_MS: i64 = 60_000;

/// Minimum duration in milliseconds of a call to a subagent that is slow in any session: subagents
/// usually take long.
const MIN_SLOW_AGENT_MS: i64 = 600_000;

/// Minimum duration in milliseconds of a slow call that is a warning.
const MIN_COSTLY_MS: i64 = 300_000;

/// A call is unusual for its session if it takes at least this many times the median of its kind,
/// and at least [`MIN_UNUSUAL_MS`].
const MIN_MEDIAN_FACTOR: i64 = 10;

/// Minimum duration in milliseconds of an unusual call.
const MIN_UNUSUAL_MS: i64 = 10_000;

/// Minimum number of calls from which a median is used.
const MIN_MEDIAN_CALLS: usize = 10;

/// Minimum size of a large result in bytes.
const MIN_LARGE_BYTES: usize = 20_000;

/// Minimum size in bytes of a huge result, which is a warning.
const MIN_HUGE_BYTES: usize = 40_000;

/// Returns findings for calls that took long.
pub(super) fn find_slow_calls(actions: &[Action<'_>]) -> Vec<Finding> {
    let mut durations: HashMap<ToolKind, Vec<i64>> = HashMap::new();
    for action in actions {
        let duration = action.result.and_then(|result| result.duration_ms);
        durations.entry(action.kind).or_default().extend(duration);
    }
    for kind_durations in durations.values_mut() {
        kind_durations.sort_unstable();
    }
    actions.iter().filter_map(|action| slow_finding(action, durations.get(&action.kind)?)).collect()
}

/// Returns a finding if a call took long. `kind_durations` are the durations of the calls of its
/// kind in milliseconds, ascending.
fn slow_finding(action: &Action<'_>, kind_durations: &[i64]) -> Option<Finding> {
    let duration = action.result?.duration_ms?;
    let median = *kind_durations.get(kind_durations.len() / 2)?;
    let min_slow = if action.kind == ToolKind::Agent { MIN_SLOW_AGENT_MS } else { MIN_SLOW_MS };
    let is_unusual = kind_durations.len() >= MIN_MEDIAN_CALLS
        && duration >= MIN_UNUSUAL_MS
        && duration >= median.saturating_mul(MIN_MEDIAN_FACTOR);
    if duration < min_slow && !is_unusual {
        return None;
    }

    // Calls of these kinds take milliseconds by themselves.
    let has_waited = matches!(
        action.kind,
        ToolKind::Read | ToolKind::Edit | ToolKind::Write | ToolKind::Search | ToolKind::Plan
    );
    let explanation = if has_waited {
        "probably waited for a permission or an answer".to_owned()
    } else {
        let count = kind_durations.len();
        let kind = action.kind;
        format!("the median of {count} {kind} calls of this session is {}", format_seconds(median))
    };
    let is_costly = !has_waited && action.kind != ToolKind::Agent && duration >= MIN_COSTLY_MS;
    let severity = if is_costly { Severity::Warning } else { Severity::Info };
    let reason = format!("Took {}; {explanation}", format_seconds(duration));
    Some(Finding {
        call: action.describe_call(),
        duration_ms: Some(duration),
        ..finding_at(Check::Slow, severity, action.outcome_event(), reason)
    })
}

/// Formats milliseconds as seconds, to a tenth.
fn format_seconds(ms: i64) -> String {
    format!("{}.{} s", ms / 1000, ms.rem_euclid(1000) / 100)
}

/// Returns findings for large results.
pub(super) fn find_large_results(actions: &[Action<'_>]) -> Vec<Finding> {
    let total: usize = actions.iter().map(result_bytes).sum();
    let mut findings = Vec::new();
    for action in actions {
        let bytes = result_bytes(action);
        if bytes < MIN_LARGE_BYTES {
            continue;
        }
        let tokens = bytes / BYTES_PER_TOKEN;
        let share = 100 * bytes / total.max(1);
        let severity = if bytes >= MIN_HUGE_BYTES { Severity::Warning } else { Severity::Info };
        let reason = format!(
            "A result of {bytes} bytes, about {tokens} tokens: {share} % of all results of the session"
        );
        findings.push(Finding {
            call: action.describe_call(),
            bytes: Some(bytes),
            tokens: i64::try_from(tokens).ok(),
            ..finding_at(Check::Oversized, severity, action.outcome_event(), reason)
        });
    }
    findings
}

/// Returns the size of the result; 0 without a result.
fn result_bytes(action: &Action<'_>) -> usize {
    action.result.map_or(0, |result| result.text.len())
}

#[cfg(test)]
mod tests {
    use schemas::EventType;
    use schemas::session::EventRow;

    use super::super::action::pair_calls;
    use super::*;

    /// Results of `sleep` by their durations.
    fn rows(durations: &[i64]) -> Vec<EventRow> {
        let row = |(ms, number): (&i64, i32)| EventRow {
            session_id: "s".to_owned(),
            event_index: number,
            event_type: EventType::ToolResult,
            tool_name: Some("Bash".to_owned()),
            duration_ms: Some(*ms),
            text: "x".repeat(usize::try_from(*ms).unwrap_or(0)),
            ..EventRow::default()
        };
        durations.iter().zip(0..).map(row).collect()
    }

    #[test]
    fn slow_is_absolute_or_by_the_session_s_own_calls() {
        let mut durations = vec![100; 20];
        durations.extend([9_000, 11_000, 61_000, 300_000]);
        let rows = rows(&durations);
        let found = find_slow_calls(&pair_calls(&rows));
        let facts: Vec<_> = found.iter().map(|f| (f.event_index, f.severity)).collect();
        assert_eq!(facts, [(21, Severity::Info), (22, Severity::Info), (23, Severity::Warning)]);
        assert!(found.iter().all(|f| f.reason.contains("is 0.1 s")), "{found:?}");
        let few = [100, 11_000];
        assert!(find_slow_calls(&pair_calls(&self::rows(&few))).is_empty());
    }

    #[test]
    fn large_results_are_reported_with_their_share() {
        let rows = rows(&[10_000, 30_000, 60_000]);
        let found = find_large_results(&pair_calls(&rows));
        let facts: Vec<_> = found.iter().map(|f| (f.bytes, f.tokens, f.severity)).collect();
        assert_eq!(
            facts,
            [
                (Some(30_000), Some(7_500), Severity::Info),
                (Some(60_000), Some(15_000), Severity::Warning)
            ]
        );
        assert!(found.last().is_some_and(|f| f.reason.contains("60 %")));
    }
}
