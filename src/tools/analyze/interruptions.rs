//! Reports calls that were refused and work that was stopped.

use schemas::EventType;
use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Finding};

use super::action::{Action, Outcome};
use super::finding::{finding, short};
use super::stop::{Stop, stopped};
use crate::tools::reply::convert;
use crate::tools::reply::event_predicates::is;

/// Maximum size of a shown text in bytes.
const WORDS: usize = 300;

/// Maximum distance in events between two records of one interruption, and between an interruption
/// and the user's next message.
const BESIDE: i32 = 3;
const SOON: i32 = 8;

pub(super) fn findings(rows: &[EventRow], actions: &[Action<'_>]) -> Vec<Finding> {
    let mut found: Vec<Finding> = actions.iter().filter_map(of_action).collect();
    let mut near: Vec<i32> = actions
        .iter()
        .filter(|action| matches!(action.outcome, Outcome::Stopped(_)))
        .map(|action| action.shown().event_index)
        .collect();
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| !row.is_replay) {
        let Some(stop) = stopped(row) else { continue };
        // The agents record one interruption two or three times.
        if near.iter().any(|index| (index - row.event_index).abs() <= BESIDE) {
            near.push(row.event_index);
            continue;
        }
        near.push(row.event_index);
        let (severity, reason) = match stop {
            Stop::Denied => (Severity::Warning, "A permission was denied"),
            Stop::Interrupted | Stop::Beside => (Severity::Info, "The work was interrupted"),
        };
        let next = rows.iter().skip(at).find(|row| is(row, EventType::User));
        let next = next.filter(|next| next.event_index - row.event_index <= SOON);
        let reason = match next {
            Some(_) => format!("{reason}; the message is what the person said next"),
            None => reason.to_owned(),
        };
        found.push(Finding {
            message: Some(short(&next.unwrap_or(row).text, WORDS)).filter(|text| !text.is_empty()),
            related_event_ids: next.map(convert::event_id).into_iter().collect(),
            ..finding(Check::Interruptions, severity, row, reason)
        });
    }
    found
}

fn of_action(action: &Action<'_>) -> Option<Finding> {
    let (severity, reason) = match action.outcome {
        Outcome::Stopped(Stop::Denied) => (Severity::Warning, "The call was refused"),
        Outcome::Stopped(Stop::Interrupted) => (Severity::Info, "The call was interrupted"),
        Outcome::Stopped(Stop::Beside) | Outcome::Open | Outcome::Worked | Outcome::Failed => {
            return None;
        }
    };
    let text = &action.shown().text;
    // The user's message follows a sentence written by the agent.
    let said = text.split_once("user said:").map(|(_, said)| said.trim());
    let reason = match said {
        Some(_) => format!("{reason}; the message is what the person said"),
        None => reason.to_owned(),
    };
    Some(Finding {
        call: action.label(),
        message: Some(short(said.unwrap_or(text), WORDS)).filter(|text| !text.is_empty()),
        ..finding(Check::Interruptions, severity, action.shown(), reason)
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
        let found = findings(&rows, &[]);
        assert_eq!(found.len(), 1);
        let first = found.first().expect("one");
        assert_eq!(
            (first.event_id.as_str(), first.message.as_deref()),
            ("s:0", Some("not that way"))
        );
        assert_eq!(first.related_event_ids, ["s:2"]);
    }
}
