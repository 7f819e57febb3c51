//! Finds out whether a call that failed in a session failed in the same way again in others, later.

use schemas::table::EventColumn;
use schemas::{EventType, ToolError};

use super::action::{ActionOutcome, CALL_COLUMNS, pair_calls};
use super::error_summary::distinct_lines;
use super::known_fix::{LiveFailure, identify_failure, is_same_failure};
use super::past_rows::{HistoryScope, PastRow, find_past_rows, read_past_rows, words_of};
use super::stop::result_stop_reason;
use crate::error::store_error;
use crate::reply::convert::unsigned_index;
use crate::reply::rows::read_events;
use store::{RowFacts, Snapshot};

/// Events around an event among which its call or its result is looked for.
const CALL_REACH: u32 = 80;

/// Maximum number of later failures with the words of the error whose texts are read.
const MAX_READ_FAILURES: usize = 16;

/// Maximum number of lines of an output that are compared. The line that names the error is the same for many
/// failures of linters and tests, which print more.
const MAX_LINES: usize = 12;

/// Returns the last result in `scope` that shows the same failure as the call or the result at
/// `event_index`: the same program or tool printed the same. `None` if that call did not fail, if its output
/// does not name an error or is long, or if there is none after it.
pub(crate) fn find_later_failure(
    snapshot: &Snapshot,
    session: usize,
    event_index: u32,
    scope: &HistoryScope,
) -> Result<Option<PastRow>, ToolError> {
    let first = event_index.saturating_sub(CALL_REACH);
    let range = first..event_index.saturating_add(CALL_REACH);
    let events = snapshot.events_of(session, std::slice::from_ref(&range), CALL_COLUMNS);
    let rows = events.read_rows().map_err(store_error)?;
    let actions = pair_calls(&rows);
    let failed = actions.iter().find(|action| {
        let places = [action.call.event_index, action.outcome_event().event_index];
        places.map(unsigned_index).contains(&event_index)
    });
    let Some(failed) = failed.filter(|action| action.outcome == ActionOutcome::Failed) else {
        return Ok(None);
    };
    let index = unsigned_index(failed.outcome_event().event_index);
    let Some(failed_at) = failed.outcome_event().timestamp else { return Ok(None) };
    let Some(result) = read_events(snapshot, session, index, index + 1)?.pop() else {
        return Ok(None);
    };

    let failure = LiveFailure {
        tool: failed.tool_name(),
        command: failed.command(),
        folder: snapshot.sessions()[session].origin.cwd.as_deref(),
        output: &result.text,
        is_certain: true,
    };
    let Some(error) = identify_failure(&failure) else { return Ok(None) };
    let words = words_of(&error.line);
    let lines = distinct_lines(&result.text, MAX_LINES);
    if words.is_empty() || lines.is_none() || result_stop_reason(&result).is_some() {
        return Ok(None);
    }
    let is_later_failure = |fact: &RowFacts| {
        fact.event_type == EventType::ToolResult
            && fact.is_error == Some(true)
            && fact.time.is_some_and(|time| time > failed_at)
    };
    let places = find_past_rows(snapshot, scope, &words, &is_later_failure, MAX_READ_FAILURES);
    let places = places.map_err(store_error)?;
    let mut columns = CALL_COLUMNS.to_vec();
    columns.push(EventColumn::Text);
    let later = read_past_rows(snapshot, &places, &columns).map_err(store_error)?;
    let same = later.into_iter().find(|(_, row)| {
        is_same_failure(&failure, &error, row)
            && distinct_lines(&row.text, MAX_LINES) == lines
            && result_stop_reason(row).is_none()
    });
    Ok(same.map(|(place, _)| place))
}
