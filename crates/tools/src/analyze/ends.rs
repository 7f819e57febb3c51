//! Reports what a session left open: a last prompt without an answer, calls without a result, or an
//! error at the end.

use schemas::EventType;
use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Finding};

use super::action::{Action, ActionOutcome};
use super::finding::{MAX_RELATED_EVENTS, finding_at};
use super::stop::{StopReason, notification_stop_reason, result_stop_reason};
use crate::reply::convert;
use crate::reply::convert::shorten;
use crate::reply::event_predicates::{
    has_failed, is_of_tools, is_slash_or_shell_command, is_type, own_rows,
};

/// Maximum size of a shown text in bytes.
const MAX_TEXT_BYTES: usize = 300;

/// Returns the findings about the end of a session. `is_running` means that the log was written to
/// a moment ago, so the session may not have ended yet.
pub(crate) fn find_open_ends(
    rows: &[EventRow],
    actions: &[Action<'_>],
    is_running: bool,
) -> Vec<Finding> {
    let own = own_rows(rows);
    let mut found = Vec::new();
    found.extend(unanswered_prompt_finding(&own));
    found.extend(rejected_plan_finding(actions));
    found.extend(open_calls_findings(&own, actions));
    found.extend(last_event_finding(&own));
    if is_running {
        for finding in &mut found {
            finding.severity = Severity::Info;
            finding.reason.push_str(" (the session may still be running)");
        }
    }
    found
}

/// Returns true if a session ended with a prompt that has no answer, a call without a result or an
/// interruption.
pub(crate) fn is_left_open(rows: &[EventRow], actions: &[Action<'_>]) -> bool {
    let own = own_rows(rows);
    find_unanswered_prompt(&own).is_some()
        || !calls_left_open(&own, actions).0.is_empty()
        || last_event_finding(&own).is_some()
}

/// The names of tools with which an agent proposes a plan, in lower case without separators.
const PLAN_TOOLS: &[&str] = &["exitplanmode", "createplan"];

/// Returns true if an agent proposes a plan with the call.
pub(crate) fn is_plan_call(row: &EventRow) -> bool {
    is_type(row, EventType::ToolCall) && is_of_tools(row, PLAN_TOOLS)
}

/// Returns the plan in the text of a plan call. Other arguments may precede it.
pub(crate) fn plan_text(call: &str) -> &str {
    call.split_once("plan: ").map_or(call, |(_, plan)| plan)
}

/// Returns the last plan if the user rejected it and nothing was edited since.
pub(crate) fn find_rejected_plan<'a, 'r>(actions: &'a [Action<'r>]) -> Option<&'a Action<'r>> {
    let is_own_plan = |action: &Action<'_>| !action.call.is_sidechain && is_plan_call(action.call);
    let at = actions.iter().rposition(is_own_plan)?;
    let has_edits = actions[at..].iter().any(|action| action.is_edit() && action.has_succeeded());
    let is_rejected = actions[at].outcome == ActionOutcome::Stopped(StopReason::Denied);
    (is_rejected && !has_edits).then_some(&actions[at])
}

fn rejected_plan_finding(actions: &[Action<'_>]) -> Option<Finding> {
    let plan = find_rejected_plan(actions)?;
    let reason = "The last plan was rejected, and nothing was edited since".to_owned();
    Some(Finding {
        call: plan.describe_call(),
        ..finding_at(Check::Ends, Severity::Info, plan.call, reason)
    })
}

/// Returns true if the row shows that the model said or did something.
fn is_of_model(row: &EventRow) -> bool {
    matches!(row.event_type, EventType::Message | EventType::Reasoning | EventType::ToolCall)
}

/// Returns the position of the last prompt if it has no answer. `own` are the session's own rows.
fn unanswered_position(own: &[&EventRow]) -> Option<usize> {
    let at = own.iter().rposition(|row| is_type(row, EventType::User))?;
    let is_answered = own[at + 1..].iter().any(|row| is_of_model(row));
    (!is_answered && !is_slash_or_shell_command(&own[at].text)).then_some(at)
}

/// Returns the last prompt if it has no answer. `own` are the session's own rows.
pub(crate) fn find_unanswered_prompt<'r>(own: &[&'r EventRow]) -> Option<&'r EventRow> {
    unanswered_position(own).map(|at| own[at])
}

/// Returns a finding if the last prompt has no answer.
fn unanswered_prompt_finding(own_rows: &[&EventRow]) -> Option<Finding> {
    let at = unanswered_position(own_rows)?;
    let prompt = own_rows[at];
    let rows_after = &own_rows[at + 1..];
    let (severity, why) = if rows_after.iter().any(|row| notification_stop_reason(row).is_some()) {
        (Severity::Info, ": it was interrupted")
    } else if rows_after.iter().any(|row| has_failed(row)) {
        (Severity::Error, ": an error came instead")
    } else {
        (Severity::Warning, "")
    };
    Some(Finding {
        message: Some(shorten(&prompt.text, MAX_TEXT_BYTES)),
        ..finding_at(Check::Ends, severity, prompt, format!("The last prompt has no answer{why}"))
    })
}

/// Returns findings for the calls without a result, if the log contains results at all.
fn open_calls_findings(own: &[&EventRow], actions: &[Action<'_>]) -> Vec<Finding> {
    let (last, earlier) = calls_left_open(own, actions);
    let mut found = Vec::new();
    let reason = "The last call has no result: the log ends while it runs";
    found.extend(open_calls_finding(&last, Severity::Warning, reason));
    let reason = "A call has no result, but the session continued";
    found.extend(open_calls_finding(&earlier, Severity::Info, reason));
    found
}

/// Returns the calls without a result: those after the last prompt or message, and the earlier ones.
/// Both are empty if the log contains no results at all. `own` are the session's own rows.
pub(crate) fn calls_left_open<'a, 'r>(
    own: &[&EventRow],
    actions: &'a [Action<'r>],
) -> (Vec<&'a Action<'r>>, Vec<&'a Action<'r>>) {
    if actions.iter().all(|action| action.result.is_none()) {
        return (Vec::new(), Vec::new());
    }
    let last_message =
        own.iter().rfind(|row| is_type(row, EventType::Message) || is_type(row, EventType::User));
    let last_index = last_message.map_or(-1, |row| row.event_index);
    let open = actions.iter().filter(|action| action.outcome == ActionOutcome::Open);
    open.partition(|action| action.call.event_index > last_index)
}

/// Returns a finding at the last of these calls, if there are any.
fn open_calls_finding(calls: &[&Action<'_>], severity: Severity, reason: &str) -> Option<Finding> {
    let call = calls.last()?;
    let others = calls.iter().rev().skip(1).take(MAX_RELATED_EVENTS);
    Some(Finding {
        call: call.describe_call(),
        occurrences: (calls.len() > 1).then_some(calls.len()),
        related_event_ids: others.map(|action| convert::event_id(action.call)).collect(),
        ..finding_at(Check::Ends, severity, call.call, reason.to_owned())
    })
}

/// Returns true if a session may end with the row: token counts and ordinary notifications may
/// follow the end.
fn may_be_the_end(row: &EventRow) -> bool {
    match row.event_type {
        EventType::TokenUsage => false,
        EventType::Notification => notification_stop_reason(row).is_some() || has_failed(row),
        EventType::User
        | EventType::Message
        | EventType::Reasoning
        | EventType::ToolCall
        | EventType::ToolResult => true,
    }
}

/// Returns a finding for the last event if it is not an answer.
fn last_event_finding(own: &[&EventRow]) -> Option<Finding> {
    let last = own.iter().rfind(|row| may_be_the_end(row))?;
    let is_stopped_call =
        is_type(last, EventType::ToolResult) && result_stop_reason(last).is_some();
    let (severity, reason) = if is_stopped_call || notification_stop_reason(last).is_some() {
        (Severity::Info, "The session ends with an interruption")
    } else if is_type(last, EventType::Notification) {
        (Severity::Error, "The session ends with an error")
    } else if is_type(last, EventType::ToolResult) && has_failed(last) {
        (Severity::Warning, "The session ends with a failed call")
    } else if is_type(last, EventType::ToolResult) {
        (Severity::Info, "The session ends with a call's result, without an answer")
    } else {
        return None;
    };
    Some(Finding {
        message: Some(shorten(&last.text, MAX_TEXT_BYTES)).filter(|text| !text.is_empty()),
        ..finding_at(Check::Ends, severity, last, reason.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::action::pair_calls;
    use super::*;

    /// Rows by type, subtype and text; a result names the call of its text.
    fn reasons(events: &[(EventType, Option<&str>, &str)]) -> Vec<String> {
        let row = |((kind, subtype, text), number): (&(EventType, Option<&str>, &str), i32)| {
            let is_tool_event = matches!(kind, EventType::ToolCall | EventType::ToolResult);
            EventRow {
                session_id: "s".to_owned(),
                event_index: number,
                event_type: *kind,
                subtype: subtype.map(str::to_owned),
                text: (*text).to_owned(),
                tool_call_id: is_tool_event.then(|| (*text).to_owned()),
                is_error: (*subtype == Some("error")).then_some(true),
                ..EventRow::default()
            }
        };
        let rows: Vec<EventRow> = events.iter().zip(0..).map(row).collect();
        find_open_ends(&rows, &pair_calls(&rows), false)
            .into_iter()
            .map(|found| found.reason)
            .collect()
    }

    #[test]
    fn an_end_is_recognized_by_what_is_missing() {
        use EventType::{Message, Notification, TokenUsage, ToolCall, ToolResult, User};
        let prompt = (User, None, "do it");
        let done = (Message, None, "done");
        let usage = (TokenUsage, None, "");
        let (call, result) = ((ToolCall, None, "a"), (ToolResult, None, "a"));
        let none: Vec<String> = Vec::new();
        assert_eq!(reasons(&[prompt, call, result, done, usage]), none);
        assert_eq!(reasons(&[prompt, done, (User, None, "/exit")]), none);
        assert_eq!(reasons(&[prompt, done, prompt]), ["The last prompt has no answer"]);
        assert_eq!(
            reasons(&[prompt, (Notification, Some("error"), "overloaded")]),
            [
                "The last prompt has no answer: an error came instead",
                "The session ends with an error"
            ]
        );
        assert_eq!(
            reasons(&[prompt, call, result, (ToolCall, None, "b"), usage]),
            ["The last call has no result: the log ends while it runs"]
        );
        assert_eq!(
            reasons(&[prompt, (ToolCall, None, "b"), call, result, done]),
            ["A call has no result, but the session continued"]
        );
        assert_eq!(
            reasons(&[prompt, call, (ToolResult, Some("error"), "a")]),
            ["The session ends with a failed call"]
        );
        assert_eq!(
            reasons(&[prompt, done, (Notification, Some("interrupted"), "")]),
            ["The session ends with an interruption"]
        );
        // A log without any result does not show which calls are open.
        assert_eq!(reasons(&[prompt, call]), none);
    }
}
