//! Finds out whether a command line that is about to run failed whenever it ran before.

use std::collections::BTreeSet;

use schemas::tool::analyze::FixMatch;
use schemas::{EventType, ToolError};

use super::action::{ActionOutcome, CALL_COLUMNS, pair_calls};
use super::known_fix::is_same_command;
use super::past_fix::{KnownFix, read_fix};
use super::past_rows::{HistoryScope, PastRow, find_past_rows, read_past_rows, words_of};
use crate::error::store_error;
use crate::reply::convert;
use store::{RowFacts, Snapshot};

/// Maximum number of earlier calls with the words of the command line that are examined.
const MAX_READ_CALLS: usize = 200;

/// Maximum number of earlier runs of the same command line whose outcome is read.
const MAX_READ_OUTCOMES: usize = 12;

/// Events after a call among which its result is looked for.
const RESULT_REACH: u32 = 60;

/// Returns what worked instead of a command line that failed every time it ran in the sessions of
/// `scope`; `None` if it ever worked, never ran, or if nothing else worked soon afterwards. `stop`
/// ends the lookup.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub fn find_failing_call(
    snapshot: &Snapshot,
    scope: &HistoryScope,
    command: &str,
    folder: Option<&str>,
    stop: &dyn Fn() -> bool,
) -> Result<Option<KnownFix>, ToolError> {
    let words = words_of(command);
    if words.is_empty() {
        return Ok(None);
    }
    let is_call = |fact: &RowFacts| fact.event_type == EventType::ToolCall;
    let places =
        find_past_rows(snapshot, scope, &words, &is_call, MAX_READ_CALLS).map_err(store_error)?;
    let mut runs = read_past_rows(snapshot, &places, CALL_COLUMNS).map_err(store_error)?;
    runs.retain(|(_, row)| is_same_command(command, folder, row.command.as_deref()));
    if runs.is_empty() || runs.len() > MAX_READ_OUTCOMES || places.len() == MAX_READ_CALLS {
        return Ok(None);
    }

    let mut failures: BTreeSet<PastRow> = BTreeSet::new();
    for (place, row) in &runs {
        if stop() {
            return Ok(None);
        }
        match read_outcome(snapshot, *place, row.event_index, scope.until)? {
            Some((ActionOutcome::Failed, result)) => {
                failures.insert(PastRow { event_index: result, ..*place });
            }
            Some((ActionOutcome::Worked, _)) => return Ok(None),
            Some((ActionOutcome::Open | ActionOutcome::Stopped(_), _)) | None => {}
        }
    }
    for failure in failures.into_iter().rev() {
        let fix = read_fix(snapshot, failure, scope.until)?;
        let is_other_command = |fix: &KnownFix| fix.matched == FixMatch::SimilarCommand;
        if let Some(fix) = fix.filter(KnownFix::is_useful).filter(is_other_command) {
            return Ok(Some(fix));
        }
    }
    Ok(None)
}

/// Returns the outcome of a call, and the index of the event that shows it.
fn read_outcome(
    snapshot: &Snapshot,
    place: PastRow,
    call_index: i32,
    until: i64,
) -> Result<Option<(ActionOutcome, u32)>, ToolError> {
    let range = place.event_index..place.event_index.saturating_add(RESULT_REACH);
    let events = snapshot.events_of(place.session, std::slice::from_ref(&range), CALL_COLUMNS);
    let mut rows = events.read_rows().map_err(store_error)?;
    rows.retain(|row| row.timestamp.is_none_or(|time| time < until));
    let actions = pair_calls(&rows);
    let action = actions.iter().find(|action| action.call.event_index == call_index);
    Ok(action.map(|action| {
        (action.outcome, convert::unsigned_index(action.outcome_event().event_index))
    }))
}
