//! Reports slow calls and large results.

use std::collections::HashMap;

use schemas::ToolKind;
use schemas::envelope::Severity;
use schemas::limits::BYTES_PER_TOKEN;
use schemas::tool::analyze::{Check, Finding};

use super::action::Action;
use super::finding::finding;

/// Minimum durations in milliseconds: of a slow call in any session, of a slow subagent call
/// (subagents usually take long), and of a slow call that is a warning.
const LONG_MS: i64 = 60_000;
const AGENT_MS: i64 = 600_000;
const COSTLY_MS: i64 = 300_000;

/// A call is slow for its session if it takes `TIMES` times the median of its kind and at least
/// `LEAST_MS`; the median needs at least `ENOUGH` calls.
const TIMES: i64 = 10;
const LEAST_MS: i64 = 10_000;
const ENOUGH: usize = 10;

/// Minimum sizes of large and huge results, in bytes.
const LARGE: usize = 20_000;
const HUGE: usize = 40_000;

pub(super) fn slow(actions: &[Action<'_>]) -> Vec<Finding> {
    let mut durations: HashMap<ToolKind, Vec<i64>> = HashMap::new();
    for action in actions {
        let duration = action.result.and_then(|result| result.duration_ms);
        durations.entry(action.kind).or_default().extend(duration);
    }
    durations.values_mut().for_each(|of_kind| of_kind.sort_unstable());
    let judge = |action: &Action<'_>| {
        let duration = action.result?.duration_ms?;
        let of_kind = durations.get(&action.kind)?;
        let median = *of_kind.get(of_kind.len() / 2)?;
        let long = if action.kind == ToolKind::Agent { AGENT_MS } else { LONG_MS };
        let is_odd = of_kind.len() >= ENOUGH
            && duration >= LEAST_MS
            && duration >= median.saturating_mul(TIMES);
        if duration < long && !is_odd {
            return None;
        }
        // Calls of these kinds take milliseconds by themselves.
        let waited = matches!(
            action.kind,
            ToolKind::Read | ToolKind::Edit | ToolKind::Write | ToolKind::Search | ToolKind::Plan
        );
        let reason = if waited {
            "probably waited for a permission or an answer".to_owned()
        } else {
            let (count, kind) = (of_kind.len(), action.kind);
            format!("the median of {count} {kind} calls of this session is {}", seconds(median))
        };
        let works = !waited && action.kind != ToolKind::Agent;
        let severity =
            if works && duration >= COSTLY_MS { Severity::Warning } else { Severity::Info };
        Some(Finding {
            call: action.label(),
            duration_ms: Some(duration),
            ..finding(
                Check::Slow,
                severity,
                action.shown(),
                format!("Took {}; {reason}", seconds(duration)),
            )
        })
    };
    actions.iter().filter_map(judge).collect()
}

/// Formats milliseconds as seconds, to a tenth.
fn seconds(ms: i64) -> String {
    format!("{}.{} s", ms / 1000, ms.rem_euclid(1000) / 100)
}

pub(super) fn oversized(actions: &[Action<'_>]) -> Vec<Finding> {
    let results = || actions.iter().filter(|action| action.result.is_some());
    let bytes = |action: &Action<'_>| action.result.map_or(0, |result| result.text.len());
    let total: usize = results().map(bytes).sum();
    let large = results().filter(|action| bytes(action) >= LARGE);
    let finding_of = |action: &Action<'_>| {
        let bytes = bytes(action);
        let tokens = bytes / BYTES_PER_TOKEN;
        let share = 100 * bytes / total.max(1);
        let severity = if bytes >= HUGE { Severity::Warning } else { Severity::Info };
        let reason = format!(
            "A result of {bytes} bytes, about {tokens} tokens: {share} % of all results of the session"
        );
        Finding {
            call: action.label(),
            bytes: Some(bytes),
            tokens: i64::try_from(tokens).ok(),
            ..finding(Check::Oversized, severity, action.shown(), reason)
        }
    };
    large.map(finding_of).collect()
}

#[cfg(test)]
mod tests {
    use schemas::EventType;
    use schemas::session::EventRow;

    use super::super::action::actions;
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
        let found = slow(&actions(&rows));
        let facts: Vec<_> = found.iter().map(|f| (f.event_index, f.severity)).collect();
        assert_eq!(facts, [(21, Severity::Info), (22, Severity::Info), (23, Severity::Warning)]);
        assert!(found.iter().all(|f| f.reason.contains("is 0.1 s")), "{found:?}");
        let few = [100, 11_000];
        assert!(slow(&actions(&self::rows(&few))).is_empty());
    }

    #[test]
    fn large_results_are_told_with_their_share() {
        let rows = rows(&[10_000, 30_000, 60_000]);
        let found = oversized(&actions(&rows));
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
