//! Recognizes calls and work that were stopped, by subtypes and by the words that agents put into
//! results.

use schemas::EventType;
use schemas::session::EventRow;

use crate::tools::reply::event_predicates::is;

/// The reason why a call was stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The user or a rule denied the call.
    Denied,
    Interrupted,
    /// A parallel call failed.
    Beside,
}

/// Beginnings of results that show a stopped call, in lower case.
const BEGINNINGS: &[(&str, Stop)] = &[
    ("the user doesn't want to", Stop::Denied),
    ("the user does not want to", Stop::Denied),
    ("permission for this tool use was denied", Stop::Denied),
    ("permission to use ", Stop::Denied),
    ("permission denied by ", Stop::Denied),
    ("claude requested permissions", Stop::Denied),
    ("this command requires approval", Stop::Denied),
    ("the user rejected", Stop::Denied),
    ("the user denied", Stop::Denied),
    ("user rejected", Stop::Denied),
    ("user denied", Stop::Denied),
    ("rejected by user", Stop::Denied),
    ("exec command rejected", Stop::Denied),
    ("patch rejected", Stop::Denied),
    ("the tool call is rejected", Stop::Denied),
    ("tool call rejected", Stop::Denied),
    ("i deny this tool request", Stop::Denied),
    ("[operation cancelled] reason: user d", Stop::Denied),
    ("[operation cancelled] reason: the user", Stop::Denied),
    ("[operation cancelled]", Stop::Interrupted),
    ("[request interrupted", Stop::Interrupted),
    ("the user interrupted", Stop::Interrupted),
    ("aborted by user", Stop::Interrupted),
    ("tool execution aborted", Stop::Interrupted),
    ("command aborted", Stop::Interrupted),
    ("operation aborted", Stop::Interrupted),
    ("sibling tool call errored", Stop::Beside),
    ("cancelled: parallel tool call", Stop::Beside),
];

/// Parts of subtypes that show a stopped call.
const SUBTYPES: &[(&str, Stop)] = &[
    ("denied", Stop::Denied),
    ("reject", Stop::Denied),
    ("declined", Stop::Denied),
    ("interrupt", Stop::Interrupted),
    ("abort", Stop::Interrupted),
    ("cancel", Stop::Interrupted),
];

/// Returns why the call of this result was stopped; `None` if it was not.
pub(super) fn stop(result: &EventRow) -> Option<Stop> {
    let by_subtype = result.subtype.as_deref().and_then(of_subtype);
    if result.is_error != Some(true) {
        return by_subtype;
    }
    let text = result.text.trim_start();
    let text = text.strip_prefix("<tool_use_error>").unwrap_or(text);
    let beginning = |(words, _): &&(&str, Stop)| {
        text.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words))
    };
    BEGINNINGS.iter().find(beginning).map(|(_, stop)| *stop).or(by_subtype)
}

fn of_subtype(subtype: &str) -> Option<Stop> {
    let subtype = subtype.to_ascii_lowercase();
    // The outcome of a compaction is not the outcome of the work.
    if subtype.contains("compact") {
        return None;
    }
    SUBTYPES.iter().find(|(part, _)| subtype.contains(part)).map(|(_, stop)| *stop)
}

/// Returns why work was stopped, according to a notification.
pub(super) fn stopped(row: &EventRow) -> Option<Stop> {
    let subtype = row.subtype.as_deref().filter(|_| is(row, EventType::Notification))?;
    let asked = subtype.contains("permission") && {
        let text = row.text.to_ascii_lowercase();
        text.contains("denied") || text.contains("reject")
    };
    if asked { Some(Stop::Denied) } else { of_subtype(subtype) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str, subtype: Option<&str>) -> Option<Stop> {
        stop(&EventRow {
            text: text.to_owned(),
            subtype: subtype.map(str::to_owned),
            is_error: Some(true),
            ..EventRow::default()
        })
    }

    #[test]
    fn refusals_and_interruptions_are_told_from_failures() {
        for (text, want) in [
            ("The user doesn't want to proceed with this tool use.", Some(Stop::Denied)),
            ("[Operation Cancelled] Reason: User denied execution.", Some(Stop::Denied)),
            ("[Operation Cancelled] Reason: User did not allow tool call", Some(Stop::Denied)),
            ("[Operation Cancelled] Reason: Operation cancelled", Some(Stop::Interrupted)),
            ("aborted by user after 29.7s", Some(Stop::Interrupted)),
            ("<tool_use_error>Sibling tool call errored</tool_use_error>", Some(Stop::Beside)),
            ("sed: can't read x: Permission denied", None),
            ("日本", None),
        ] {
            assert_eq!(result(text, None), want, "{text}");
        }
        assert_eq!(result("no", Some("rejected-by-user")), Some(Stop::Denied));
        assert_eq!(result("no", Some("cancelled")), Some(Stop::Interrupted));
    }
}
