//! Finds errors that users pasted into prompts, and what the agent did about them.

use std::collections::HashSet;

use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::table::EventColumn;
use schemas::tool::analyze::{Check, Finding};
use schemas::{EventType, ToolError};

use super::action::{CALL_COLUMNS, pair_calls};
use super::finding::{MAX_RELATED_EVENTS, finding_at};
use super::past_rows::{HistoryScope, PastRow, find_past_rows, read_past_rows, words_of};
use super::signature::normalize_line;
use crate::error::store_error;
use crate::reply::convert::shorten;
use crate::reply::event_predicates::is_type;
use crate::reply::time_range::TimeRange;
use crate::reply::{convert, rows};
use store::{RowFacts, Snapshot};

/// Maximum number of prompts with the words of an error whose texts are read.
const MAX_PROMPTS: usize = 24;

/// Maximum number of findings.
const MAX_FINDINGS: usize = 3;

/// Maximum number of lines of a prompt that are compared with an error.
const MAX_LINES: usize = 2000;

/// Events after a prompt among which its answer is looked for.
const ANSWER_REACH: u32 = 400;

/// Maximum size of the shown answer in bytes.
const MAX_ANSWER_BYTES: usize = 600;

/// Finds the newest prompts with one of these errors in the sessions at the positions `wanted`, in
/// a span of time.
pub(super) fn find_pasted_errors(
    snapshot: &Snapshot,
    wanted: &HashSet<usize>,
    range: TimeRange,
    signatures: &[String],
) -> Result<Vec<Finding>, ToolError> {
    let scope = HistoryScope { sessions: wanted.clone(), until: i64::MAX };
    let is_prompt =
        |fact: &RowFacts| fact.event_type == EventType::User && range.includes(fact.time);
    let mut columns = CALL_COLUMNS.to_vec();
    columns.push(EventColumn::Text);
    let mut findings: Vec<Finding> = Vec::new();
    for signature in signatures {
        let words = words_of(signature);
        if words.is_empty() {
            continue;
        }
        let places = find_past_rows(snapshot, &scope, &words, &is_prompt, MAX_PROMPTS)
            .map_err(store_error)?;
        for (place, row) in read_past_rows(snapshot, &places, &columns).map_err(store_error)? {
            let is_new = findings.iter().all(|known| known.event_id != convert::event_id(&row));
            if findings.len() < MAX_FINDINGS && is_new && has_line(&row.text, signature) {
                findings.extend(describe_answer(snapshot, place, signature)?);
            }
        }
    }
    Ok(findings)
}

/// Returns true if a line of a text ends with an error, after what a terminal writes before it.
fn has_line(text: &str, signature: &str) -> bool {
    let signature = signature.to_lowercase();
    let lines = text.lines().take(MAX_LINES);
    lines.map(|line| normalize_line(line.trim()).to_lowercase()).any(|line| {
        line.strip_suffix(&signature)
            .is_some_and(|before| !before.ends_with(|last: char| last.is_alphanumeric()))
    })
}

/// Describes what the agent did after a prompt with an error.
fn describe_answer(
    snapshot: &Snapshot,
    place: PastRow,
    signature: &str,
) -> Result<Option<Finding>, ToolError> {
    let first = place.event_index;
    let mut turn =
        rows::read_events(snapshot, place.session, first, first.saturating_add(ANSWER_REACH))?;
    let next_prompt = turn.iter().skip(1).position(|row| is_type(row, EventType::User));
    turn.truncate(next_prompt.map_or(turn.len(), |position| position + 1));
    let Some(prompt) = turn.first() else { return Ok(None) };

    let actions = pair_calls(&turn);
    let edits: Vec<&EventRow> =
        actions.iter().filter(|action| action.is_edit()).map(|action| action.call).collect();
    let answer = turn.iter().rfind(|row| is_type(row, EventType::Message));
    let reason = format!(
        "No failed call has this error, but a prompt does. The agent answered with {} calls, {} of them edits",
        actions.len(),
        edits.len()
    );
    let related = answer.into_iter().chain(edits.into_iter().rev());
    let related_event_ids = related.take(MAX_RELATED_EVENTS).map(convert::event_id).collect();
    Ok(Some(Finding {
        message: answer.map(|answer| shorten(&answer.text, MAX_ANSWER_BYTES)),
        signature: Some(signature.to_owned()),
        related_event_ids,
        ..finding_at(Check::Failures, Severity::Info, prompt, reason)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_line_may_begin_with_what_a_tool_writes() {
        let signature = normalize_line("ImportError: libEGL.so.1: cannot open shared object file");
        assert!(has_line(
            "CI fails:\nE   ImportError: libEGL.so.1: cannot open shared object file\n",
            &signature
        ));
        assert!(!has_line(
            "MyImportError: libEGL.so.1: cannot open shared object file",
            &signature
        ));
        assert!(!has_line("ImportError: libGL.so", &signature));
    }
}
