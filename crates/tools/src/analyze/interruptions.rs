//! Reports calls that were refused, and work that was interrupted.

use schemas::EventType;
use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Finding};

use super::action::{Action, ActionOutcome};
use super::finding::finding_at;
use super::stop::{StopReason, notification_stop_reason};
use crate::reply::convert;
use crate::reply::convert::shorten;
use crate::reply::event_predicates::is_type;

/// Maximum size of a shown text in bytes.
const MAX_TEXT_BYTES: usize = 300;

/// Maximum distance in events between two records of one interruption.
const MAX_RECORD_DISTANCE: i32 = 3;

/// Maximum distance in events between an interruption and the user's next message.
const MAX_REPLY_DISTANCE: i32 = 8;

pub(super) fn find_interruptions(rows: &[EventRow], actions: &[Action<'_>]) -> Vec<Finding> {
    let mut found: Vec<Finding> = actions.iter().filter_map(call_finding).collect();
    let mut near: Vec<i32> = actions
        .iter()
        .filter(|action| matches!(action.outcome, ActionOutcome::Stopped(_)))
        .map(|action| action.outcome_event().event_index)
        .collect();
    for (at, row) in rows.iter().enumerate() {
        if row.is_replay {
            continue;
        }
        let Some(stop_reason) = notification_stop_reason(row) else { continue };
        // The agents record one interruption two or three times.
        let is_repeated =
            near.iter().any(|index| (index - row.event_index).abs() <= MAX_RECORD_DISTANCE);
        near.push(row.event_index);
        if is_repeated {
            continue;
        }

        let (severity, reason) = match stop_reason {
            StopReason::Denied => (Severity::Warning, "A permission was denied"),
            StopReason::Interrupted | StopReason::ParallelFailure => {
                (Severity::Info, "The work was interrupted")
            }
        };
        let next = rows.iter().skip(at).find(|row| is_type(row, EventType::User));
        let next = next.filter(|next| next.event_index - row.event_index <= MAX_REPLY_DISTANCE);
        let reason = match next {
            Some(_) => format!("{reason}; the message is the user's next prompt"),
            None => reason.to_owned(),
        };
        let text = shorten(&next.unwrap_or(row).text, MAX_TEXT_BYTES);
        found.push(Finding {
            message: Some(text).filter(|text| !text.is_empty()),
            related_event_ids: next.map(convert::event_id).into_iter().collect(),
            ..finding_at(Check::Interruptions, severity, row, reason)
        });
    }
    found
}

/// Returns a finding if a call was refused or interrupted, other than by the failure of a parallel
/// call.
fn call_finding(action: &Action<'_>) -> Option<Finding> {
    let (severity, reason) = match action.outcome {
        ActionOutcome::Stopped(StopReason::Denied) => (Severity::Warning, "The call was refused"),
        ActionOutcome::Stopped(StopReason::Interrupted) => {
            (Severity::Info, "The call was interrupted")
        }
        ActionOutcome::Stopped(StopReason::ParallelFailure)
        | ActionOutcome::Open
        | ActionOutcome::Worked
        | ActionOutcome::Failed => {
            return None;
        }
    };
    let text = &action.outcome_event().text;
    // The user's message follows a sentence written by the agent.
    let said = text.split_once("user said:").map(|(_, said)| said.trim());
    let reason = match said {
        Some(_) => format!("{reason}; the message is the user's text"),
        None => reason.to_owned(),
    };
    Some(Finding {
        call: action.describe_call(),
        message: Some(shorten(said.unwrap_or(text), MAX_TEXT_BYTES))
            .filter(|text| !text.is_empty()),
        ..finding_at(Check::Interruptions, severity, action.outcome_event(), reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_interruption_is_one_finding_with_what_was_said_next() {
        let row = |index: i32, kind: EventType, subtype: Option<&str>, text: &str| EventRow {
            session_id: "s".to_owned(),
            event_index: index,
            event_type: kind,
            subtype: subtype.map(str::to_owned),
            text: text.to_owned(),
            ..EventRow::default()
        };
        let rows = [
            row(0, EventType::Notification, Some("turn_aborted"), "reason: interrupted"),
            row(1, EventType::Notification, Some("interrupted"), "<turn_aborted>"),
            row(2, EventType::User, None, "not that way"),
            row(3, EventType::Notification, Some("full_compaction.cancel"), ""),
        ];
        let found = find_interruptions(&rows, &[]);
        assert_eq!(found.len(), 1);
        let first = found.first().expect("one");
        assert_eq!(
            (first.event_id.as_str(), first.message.as_deref()),
            ("s:0", Some("not that way"))
        );
        assert_eq!(first.related_event_ids, ["s:2"]);
    }
}
