//! Reports calls and requests that failed, with the error message and the call that fixed it.

use std::collections::HashMap;

use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Finding, Fix, FixMatch};
use schemas::{EventType, ToolKind};

use super::action::{Action, ActionOutcome};
use super::command::parse_programs;
use super::error_summary::{ErrorSummary, summarize_error};
use super::finding::{MAX_RELATED_EVENTS, finding_at};
use super::fix::{self, FixingCall};
use super::stop::{StopReason, notification_stop_reason};
use crate::reply::convert;
use crate::reply::convert::shorten;
use crate::reply::event_predicates::{has_failed, is_type};

/// Maximum size in bytes of a program or tool name in a signature.
const MAX_NAME_BYTES: usize = 60;

/// A failed call.
pub(super) struct FailedCall {
    /// The failed call's position among the actions.
    pub at: usize,
    pub error: ErrorSummary,
    /// True if the call itself was correct: it printed nothing, or a parallel call failed.
    pub is_trivial: bool,
    pub fixed_by: Option<FixingCall>,
}

/// Returns the failed calls in order. `folder` is the session's folder.
pub(super) fn find_failed_calls(actions: &[Action<'_>], folder: Option<&str>) -> Vec<FailedCall> {
    // Command lines are prepared for comparison only if a call failed.
    if !actions.iter().any(is_failed) {
        return Vec::new();
    }
    let lines = fix::parse_command_lines(actions, folder);
    let mut failures = Vec::new();
    for (at, action) in actions.iter().enumerate() {
        if !is_failed(action) {
            continue;
        }
        let error_summary = summarize_call_error(action);
        let is_trivial = error_summary.excerpt.is_empty() || is_cancelled(action);
        let fixing_call =
            if is_trivial { None } else { fix::find_fixing_call(actions, &lines, at) };
        failures.push(FailedCall { at, error: error_summary, is_trivial, fixed_by: fixing_call });
    }
    failures
}

fn is_failed(action: &Action<'_>) -> bool {
    action.outcome == ActionOutcome::Failed || is_cancelled(action)
}

/// Returns true if a call was cancelled because a parallel call failed.
fn is_cancelled(action: &Action<'_>) -> bool {
    action.outcome == ActionOutcome::Stopped(StopReason::ParallelFailure)
}

/// Returns the error that the result of a call reports.
pub(super) fn summarize_call_error(action: &Action<'_>) -> ErrorSummary {
    let who = program_or_tool(action.command(), action.tool_name());
    summarize_error(&action.outcome_event().text, &who, action.kind == ToolKind::Execute)
}

/// Returns the program that a call runs, or its tool.
pub(super) fn program_or_tool(command: Option<&str>, tool: Option<&str>) -> String {
    let program = command.and_then(|command| parse_programs(command).into_iter().next());
    shorten(program.as_deref().or(tool).unwrap_or_default(), MAX_NAME_BYTES)
}

/// Returns the error that a notification reports.
pub(super) fn summarize_notification(row: &EventRow) -> ErrorSummary {
    summarize_error(&row.text, row.subtype.as_deref().unwrap_or("error"), false)
}

/// Returns true if a row is a failure other than a call: a request, a hook or the like.
pub(super) fn is_failed_notification(row: &EventRow) -> bool {
    is_type(row, EventType::Notification)
        && has_failed(row)
        && !row.is_replay
        && notification_stop_reason(row).is_none()
}

/// Returns the findings. Failures with the same error that were fixed by the same call share one
/// finding, at the last of them. `folder` is the session's folder.
pub(super) fn find_failures(
    rows: &[EventRow],
    actions: &[Action<'_>],
    folder: Option<&str>,
) -> Vec<Finding> {
    let failures = find_failed_calls(actions, folder);
    let mut groups: Vec<Vec<&FailedCall>> = Vec::new();
    let mut known: HashMap<(&str, Option<usize>), usize> = HashMap::new();
    for failure in &failures {
        let same =
            (failure.error.signature.as_str(), failure.fixed_by.map(|fixing_call| fixing_call.at));
        let group = *known.entry(same).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(failure),
            None => groups.push(vec![failure]),
        }
    }
    let mut found: Vec<Finding> =
        groups.iter().filter_map(|group| call_finding(group, actions, folder)).collect();
    found.extend(notification_findings(rows));
    found
}

/// Returns the finding for a group of failed calls, at the last of them.
fn call_finding(
    group: &[&FailedCall],
    actions: &[Action<'_>],
    folder: Option<&str>,
) -> Option<Finding> {
    let (last, earlier) = group.split_last()?;
    let action = actions.get(last.at)?;
    let fix = last
        .fixed_by
        .and_then(|fixing_call| fix::describe_fix(actions, last.at, fixing_call, folder));
    let severity = rate_call(last, action.kind, fix.is_some());
    let reason = call_reason(last, action, group.len(), fix.as_ref());
    let earlier =
        earlier.iter().rev().filter_map(|failure| actions.get(failure.at)).take(MAX_RELATED_EVENTS);
    Some(Finding {
        call: action.describe_call(),
        message: non_empty(&last.error.excerpt),
        occurrences: (group.len() > 1).then_some(group.len()),
        related_event_ids: earlier
            .map(|action| convert::event_id(action.outcome_event()))
            .collect(),
        fix,
        ..finding_at(Check::Failures, severity, action.outcome_event(), reason)
    })
}

/// Rates a failed call. A failed search or read costs little.
fn rate_call(failure: &FailedCall, kind: ToolKind, is_fixed: bool) -> Severity {
    if failure.is_trivial {
        return Severity::Info;
    }
    let is_light = matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Web);
    match (is_light, is_fixed) {
        (true, true) => Severity::Info,
        (true, false) | (false, true) => Severity::Warning,
        (false, false) => Severity::Error,
    }
}

fn call_reason(
    failure: &FailedCall,
    action: &Action<'_>,
    occurrences: usize,
    fix: Option<&Fix>,
) -> String {
    let times = describe_times(occurrences);
    if action.outcome != ActionOutcome::Failed {
        return format!("Cancelled{times} because a parallel call failed");
    }
    let code = match action.outcome_event().exit_code {
        Some(code) if code != 0 => format!(" with exit code {code}"),
        _ => String::new(),
    };
    if failure.is_trivial {
        return format!("Failed{times}{code} and printed nothing");
    }
    format!("Failed{times}{code}. {}", describe_outcome(fix))
}

/// Describes in one sentence whether and when a failure was fixed.
pub(super) fn describe_outcome(fix: Option<&Fix>) -> String {
    let Some(fix) = fix else { return "Nothing similar succeeded afterwards.".to_owned() };
    let what = match fix.matched {
        FixMatch::SameCall => "The same command",
        FixMatch::SimilarCommand => "A similar command",
        FixMatch::SameFile => "A call on the same file",
        FixMatch::SameTool => "A call of the tool with the same target",
    };
    let edits = fix.edits.len() + fix.edits_omitted;
    let later = match (fix.calls_between, edits) {
        (0, _) => "right afterwards".to_owned(),
        (1, 1) => "after 1 edit".to_owned(),
        (1, _) => "after 1 other call".to_owned(),
        (calls, 0) => format!("after {calls} other calls"),
        (calls, 1) => format!("after {calls} other calls, including 1 edit"),
        (calls, edits) if edits == calls => format!("after {edits} edits"),
        (calls, edits) => format!("after {calls} other calls, including {edits} edits"),
    };
    format!("{what} succeeded {later}.")
}

/// Returns findings for failed requests and hooks. Failures with the same error share one finding,
/// at the last of them.
fn notification_findings(rows: &[EventRow]) -> Vec<Finding> {
    let mut groups: Vec<(ErrorSummary, Vec<&EventRow>)> = Vec::new();
    for row in rows.iter().filter(|row| is_failed_notification(row)) {
        let error = summarize_notification(row);
        match groups.iter_mut().find(|(known, _)| known.signature == error.signature) {
            Some((_, group)) => group.push(row),
            None => groups.push((error, vec![row])),
        }
    }

    let last_answer = rows.iter().rfind(|row| is_own_answer(row)).map(|row| row.event_index);
    let mut findings = Vec::new();
    for (error, group) in groups {
        let Some((last, earlier)) = group.split_last() else { continue };
        let (severity, after) = match last_answer {
            Some(index) if index > last.event_index => (Severity::Info, "continued"),
            _ => (Severity::Error, "did not continue"),
        };
        let times = describe_times(group.len());
        let reason = format!("An error outside of calls{times}. The agent {after} afterwards.");
        let earlier = earlier.iter().rev().take(MAX_RELATED_EVENTS);
        findings.push(Finding {
            message: non_empty(&error.excerpt),
            occurrences: (group.len() > 1).then_some(group.len()),
            related_event_ids: earlier.map(|row| convert::event_id(row)).collect(),
            ..finding_at(Check::Failures, severity, last, reason)
        });
    }
    findings
}

/// Returns true if a row is an answer or a call of the agent, and not copied history.
fn is_own_answer(row: &EventRow) -> bool {
    !row.is_replay && (is_type(row, EventType::Message) || is_type(row, EventType::ToolCall))
}

/// Returns ` N times` if there are several occurrences.
fn describe_times(occurrences: usize) -> String {
    if occurrences > 1 { format!(" {occurrences} times") } else { String::new() }
}

fn non_empty(text: &str) -> Option<String> {
    if text.is_empty() { None } else { Some(text.to_owned()) }
}
