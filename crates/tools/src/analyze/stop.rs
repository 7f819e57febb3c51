//! Recognizes calls and work that were stopped, by subtypes and by the words that agents put into
//! results.

use schemas::EventType;
use schemas::session::EventRow;

use crate::reply::event_predicates::is_type;

/// The reason why a call was stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The user or a rule denied the call.
    Denied,
    Interrupted,
    /// A parallel call failed.
    ParallelFailure,
}

/// Beginnings of results that show a stopped call, in lower case.
const BEGINNINGS: &[(&str, StopReason)] = &[
    ("the user doesn't want to", StopReason::Denied),
    ("the user does not want to", StopReason::Denied),
    ("permission for this tool use was denied", StopReason::Denied),
    ("permission to use ", StopReason::Denied),
    ("permission denied by ", StopReason::Denied),
    ("claude requested permissions", StopReason::Denied),
    ("this command requires approval", StopReason::Denied),
    ("the user rejected", StopReason::Denied),
    ("the user denied", StopReason::Denied),
    ("user rejected", StopReason::Denied),
    ("user denied", StopReason::Denied),
    ("rejected by user", StopReason::Denied),
    ("exec command rejected", StopReason::Denied),
    ("patch rejected", StopReason::Denied),
    ("the tool call is rejected", StopReason::Denied),
    ("tool call rejected", StopReason::Denied),
    ("i deny this tool request", StopReason::Denied),
    ("[operation cancelled] reason: user d", StopReason::Denied),
    ("[operation cancelled] reason: the user", StopReason::Denied),
    ("[operation cancelled]", StopReason::Interrupted),
    ("[request interrupted", StopReason::Interrupted),
    ("the user interrupted", StopReason::Interrupted),
    ("aborted by user", StopReason::Interrupted),
    ("tool execution aborted", StopReason::Interrupted),
    ("command aborted", StopReason::Interrupted),
    ("operation aborted", StopReason::Interrupted),
    ("sibling tool call errored", StopReason::ParallelFailure),
    ("cancelled: parallel tool call", StopReason::ParallelFailure),
];

/// Parts of subtypes that show a stopped call.
const SUBTYPES: &[(&str, StopReason)] = &[
    ("denied", StopReason::Denied),
    ("reject", StopReason::Denied),
    ("declined", StopReason::Denied),
    ("interrupt", StopReason::Interrupted),
    ("abort", StopReason::Interrupted),
    ("cancel", StopReason::Interrupted),
];

/// Returns why the call of this result was stopped; `None` if the result does not show that it was.
pub(super) fn result_stop_reason(result: &EventRow) -> Option<StopReason> {
    let by_subtype = result.subtype.as_deref().and_then(subtype_stop_reason);
    if result.is_error != Some(true) {
        return by_subtype;
    }
    let text = result.text.trim_start();
    let text = text.strip_prefix("<tool_use_error>").unwrap_or(text);
    for (beginning, stop) in BEGINNINGS {
        let start = text.get(..beginning.len());
        if start.is_some_and(|start| start.eq_ignore_ascii_case(beginning)) {
            return Some(*stop);
        }
    }
    by_subtype
}

/// Returns why something was stopped, according to its subtype.
pub(crate) fn subtype_stop_reason(subtype: &str) -> Option<StopReason> {
    let subtype = subtype.to_ascii_lowercase();
    // The outcome of a compaction is not the outcome of the work.
    if subtype.contains("compact") {
        return None;
    }
    SUBTYPES.iter().find(|(part, _)| subtype.contains(part)).map(|(_, stop)| *stop)
}

/// Returns why work was stopped, according to a notification.
pub(crate) fn notification_stop_reason(row: &EventRow) -> Option<StopReason> {
    if !is_type(row, EventType::Notification) {
        return None;
    }
    let subtype = row.subtype.as_deref()?;
    if subtype.contains("permission") {
        let text = row.text.to_ascii_lowercase();
        if text.contains("denied") || text.contains("reject") {
            return Some(StopReason::Denied);
        }
    }
    subtype_stop_reason(subtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str, subtype: Option<&str>) -> Option<StopReason> {
        result_stop_reason(&EventRow {
            text: text.to_owned(),
            subtype: subtype.map(str::to_owned),
            is_error: Some(true),
            ..EventRow::default()
        })
    }

    #[test]
    fn refusals_and_interruptions_are_not_failures() {
        for (text, want) in [
            ("The user doesn't want to proceed with this tool use.", Some(StopReason::Denied)),
            ("[Operation Cancelled] Reason: User denied execution.", Some(StopReason::Denied)),
            (
                "[Operation Cancelled] Reason: User did not allow tool call",
                Some(StopReason::Denied),
            ),
            ("[Operation Cancelled] Reason: Operation cancelled", Some(StopReason::Interrupted)),
            ("aborted by user after 29.7s", Some(StopReason::Interrupted)),
            (
                "<tool_use_error>Sibling tool call errored</tool_use_error>",
                Some(StopReason::ParallelFailure),
            ),
            ("sed: can't read x: Permission denied", None),
            ("日本", None),
        ] {
            assert_eq!(result(text, None), want, "{text}");
        }
        assert_eq!(result("no", Some("rejected-by-user")), Some(StopReason::Denied));
        assert_eq!(result("no", Some("cancelled")), Some(StopReason::Interrupted));
    }
}
