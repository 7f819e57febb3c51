//! Reports what a session left open: a last prompt without an answer, calls without a result, or an
//! end in an error.

use schemas::EventType;
use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Finding};

use super::action::{Action, Outcome};
use super::finding::{RELATED, finding, short};
use super::stop::{stop, stopped};
use crate::tools::reply::convert;
use crate::tools::reply::event_predicates::{failed, is, is_slash_or_shell_command};

/// Maximum size of a shown text in bytes.
const WORDS: usize = 300;

/// Returns the findings about the end of a session. `running` means that the log was written to a
/// moment ago, so the session has not ended yet.
pub(super) fn findings(rows: &[EventRow], actions: &[Action<'_>], running: bool) -> Vec<Finding> {
    let own: Vec<&EventRow> =
        rows.iter().filter(|row| !row.is_replay && !row.is_sidechain).collect();
    let mut found = Vec::new();
    found.extend(unanswered(&own));
    found.extend(open_calls(&own, actions));
    found.extend(last_event(&own));
    if running {
        for finding in &mut found {
            finding.severity = Severity::Info;
            finding.reason.push_str(" (the session may still be running)");
        }
    }
    found
}

/// Returns true if the row shows that the model said or did something.
fn is_answer(row: &EventRow) -> bool {
    [EventType::Message, EventType::Reasoning, EventType::ToolCall]
        .iter()
        .any(|kind| is(row, *kind))
}

fn unanswered(own: &[&EventRow]) -> Option<Finding> {
    let prompt = own.iter().rev().find(|row| is(row, EventType::User))?;
    let after = || own.iter().rev().take_while(|row| row.event_index > prompt.event_index);
    if is_slash_or_shell_command(&prompt.text) || after().any(|row| is_answer(row)) {
        return None;
    }
    let (severity, why) = if after().any(|row| stopped(row).is_some()) {
        (Severity::Info, ": it was interrupted")
    } else if after().any(|row| failed(row)) {
        (Severity::Error, ": an error came instead")
    } else {
        (Severity::Warning, "")
    };
    Some(Finding {
        message: Some(short(&prompt.text, WORDS)),
        ..finding(Check::Ends, severity, prompt, format!("The last prompt has no answer{why}"))
    })
}

/// Returns the calls without a result, if the log contains results at all.
fn open_calls(own: &[&EventRow], actions: &[Action<'_>]) -> Vec<Finding> {
    if actions.iter().all(|action| action.result.is_none()) {
        return Vec::new();
    }
    let said = |row: &&&EventRow| is(row, EventType::Message) || is(row, EventType::User);
    let last_word = own.iter().rev().find(said).map_or(-1, |row| row.event_index);
    let open = actions.iter().filter(|action| action.outcome == Outcome::Open);
    let (last, earlier): (Vec<&Action<'_>>, Vec<_>) =
        open.partition(|action| action.call.event_index > last_word);
    let finding_of = |calls: &[&Action<'_>], severity: Severity, reason: &str| {
        let call = calls.last()?;
        let others = calls.iter().rev().skip(1).take(RELATED);
        Some(Finding {
            call: call.label(),
            occurrences: (calls.len() > 1).then_some(calls.len()),
            related_event_ids: others.map(|action| convert::event_id(action.call)).collect(),
            ..finding(Check::Ends, severity, call.call, reason.to_owned())
        })
    };
    let at_the_end = "A call at the end has no result: the log stops while it runs";
    let before = "A call has no result, and the session went on";
    let found = [
        finding_of(&last, Severity::Warning, at_the_end),
        finding_of(&earlier, Severity::Info, before),
    ];
    found.into_iter().flatten().collect()
}

/// Returns a finding for the last event if it is not an answer.
fn last_event(own: &[&EventRow]) -> Option<Finding> {
    let happened = |row: &&&EventRow| {
        let tells = stopped(row).is_some() || failed(row);
        match row.event_type {
            EventType::TokenUsage => false,
            EventType::Notification => tells,
            EventType::User
            | EventType::Message
            | EventType::Reasoning
            | EventType::ToolCall
            | EventType::ToolResult => true,
        }
    };
    let last = own.iter().rev().find(happened)?;
    let refused = is(last, EventType::ToolResult) && stop(last).is_some();
    let (severity, reason) = if refused || stopped(last).is_some() {
        (Severity::Info, "The session ends with an interruption")
    } else if is(last, EventType::Notification) {
        (Severity::Error, "The session ends with an error")
    } else if is(last, EventType::ToolResult) && failed(last) {
        (Severity::Warning, "The session ends with a failed call")
    } else if is(last, EventType::ToolResult) {
        (Severity::Info, "The session ends with the result of a call, without a word on it")
    } else {
        return None;
    };
    Some(Finding {
        message: Some(short(&last.text, WORDS)).filter(|text| !text.is_empty()),
        ..finding(Check::Ends, severity, last, reason.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::action::actions;
    use super::*;

    /// Rows by type, subtype and text; a result names the call of its text.
    fn reasons(events: &[(EventType, Option<&str>, &str)]) -> Vec<String> {
        let row = |((kind, subtype, text), number): (&(EventType, Option<&str>, &str), i32)| {
            let of_tools = matches!(kind, EventType::ToolCall | EventType::ToolResult);
            EventRow {
                session_id: "s".to_owned(),
                event_index: number,
                event_type: *kind,
                subtype: subtype.map(str::to_owned),
                text: (*text).to_owned(),
                tool_call_id: of_tools.then(|| (*text).to_owned()),
                is_error: (*subtype == Some("error")).then_some(true),
                ..EventRow::default()
            }
        };
        let rows: Vec<EventRow> = events.iter().zip(0..).map(row).collect();
        findings(&rows, &actions(&rows), false).into_iter().map(|found| found.reason).collect()
    }

    #[test]
    fn an_end_is_told_by_what_is_missing() {
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
            ["A call at the end has no result: the log stops while it runs"]
        );
        assert_eq!(
            reasons(&[prompt, (ToolCall, None, "b"), call, result, done]),
            ["A call has no result, and the session went on"]
        );
        assert_eq!(
            reasons(&[prompt, call, (ToolResult, Some("error"), "a")]),
            ["The session ends with a failed call"]
        );
        assert_eq!(
            reasons(&[prompt, done, (Notification, Some("interrupted"), "")]),
            ["The session ends with an interruption"]
        );
        // A log without any result says nothing about them.
        assert_eq!(reasons(&[prompt, call]), none);
    }
}
