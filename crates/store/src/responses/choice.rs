//! Chooses the session that counts a response.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Deref;

use ingest::provider::{base_of, response_key};
use schemas::session::EventRow;
use schemas::table::EventColumn;
use schemas::{EventType, Provider};

use crate::error::StoreError;
use crate::segment::session_summary::SessionSummary;
use crate::session_events::ALL_EVENTS;
use crate::snapshot::Snapshot;

/// The columns from which recordings are read.
const RECORDING_COLUMNS: [EventColumn; 7] = [
    EventColumn::EventIndex,
    EventColumn::EventType,
    EventColumn::Provider,
    EventColumn::RequestId,
    EventColumn::IsReplay,
    EventColumn::IsSidechain,
    EventColumn::IsCountedElsewhere,
];

/// The rows of each session, by its position, with whether another session counts them from now on.
pub(crate) type RowChanges = BTreeMap<usize, BTreeMap<i32, bool>>;

/// A response as one session has it.
#[derive(Debug, Clone, Default)]
pub(super) struct Recording {
    /// Position of the session.
    session: usize,
    provider: Provider,
    response: String,
    /// The API request, if the log names it.
    request: Option<String>,
    /// Sum of the tokens in `rows`.
    tokens: i64,
    is_sidechain: bool,
    /// True if the log copied the first rows of the response from its original, which counts them.
    /// The rows of this recording are what the log has in addition.
    continues_copy: bool,
    /// Indexes of the events that are not copied, with whether another session counts them now.
    rows: Vec<(i32, bool)>,
}

/// Reads what the session at a position has of `responses`, which are given by hash.
pub(super) fn read_recordings(
    snapshot: &Snapshot,
    session: usize,
    responses: &HashSet<u64>,
) -> Result<Vec<Recording>, StoreError> {
    let mut recordings: HashMap<String, Recording> = HashMap::new();
    let columns = [&RECORDING_COLUMNS[..], &EventColumn::TOKENS].concat();
    let mut events = snapshot.events_of(session, ALL_EVENTS, &columns);
    while let Some(batch) = events.next_batch()? {
        let rows: Vec<EventRow> =
            serde_arrow::from_record_batch(&batch).map_err(|error| events.damaged_batch(error))?;
        for row in rows.iter().filter(|row| row.event_type == EventType::TokenUsage) {
            let Some(request_id) = &row.request_id else { continue };
            let Some(key) = response_key(row.provider, request_id) else { continue };
            if !responses.contains(&key.response_hash(base_of(row.provider))) {
                continue;
            }
            let recording = recordings.entry(request_id.clone()).or_insert_with(|| Recording {
                session,
                provider: row.provider,
                response: key.response.into_owned(),
                request: key.request.map(str::to_owned),
                ..Recording::default()
            });
            recording.add_row(row);
        }
    }
    Ok(recordings.into_values().filter(|recording| !recording.rows.is_empty()).collect())
}

impl Recording {
    /// Adds the next row of the response.
    fn add_row(&mut self, row: &EventRow) {
        if row.is_replay && !row.is_counted_elsewhere {
            self.continues_copy |= self.rows.is_empty();
            return;
        }
        self.tokens = self.tokens.saturating_add(row.usage().total());
        self.is_sidechain |= row.is_sidechain;
        self.rows.push((row.event_index, row.is_counted_elsewhere));
    }
}

/// Chooses the recording that counts of each response: that with the most tokens. Of equal ones, the
/// log of a subagent comes before what its parent says of it, then the session that began first
/// counts. Returns the rows that change.
pub(super) fn choose_sessions(
    recordings: Vec<Recording>,
    sessions: &[impl Deref<Target = SessionSummary>],
) -> RowChanges {
    let mut by_response: BTreeMap<(&str, String), Vec<Recording>> = BTreeMap::new();
    for recording in recordings {
        let key = (base_of(recording.provider).as_str(), recording.response.clone());
        by_response.entry(key).or_default().push(recording);
    }

    let mut changes = RowChanges::new();
    for of_response in by_response.into_values() {
        for of_request in group_by_request(of_response) {
            let rivals = of_request.iter().filter(|recording| !recording.continues_copy);
            let counted = rivals.min_by_key(|recording| rank(recording, sessions));
            let counted = counted.map(|recording| (recording.session, &recording.request));
            for recording in &of_request {
                let is_counted = recording.continues_copy
                    || counted == Some((recording.session, &recording.request));
                for (event_index, is_counted_elsewhere) in &recording.rows {
                    if *is_counted_elsewhere == is_counted {
                        let rows = changes.entry(recording.session).or_default();
                        rows.insert(*event_index, !is_counted);
                    }
                }
            }
        }
    }
    changes
}

/// Orders the recordings of a response; the first one counts.
fn rank<'s>(
    recording: &Recording,
    sessions: &'s [impl Deref<Target = SessionSummary>],
) -> (Reverse<i64>, bool, i64, &'s str, bool) {
    let session = &sessions[recording.session];
    (
        Reverse(recording.tokens),
        recording.is_sidechain,
        session.started_at.unwrap_or(i64::MAX),
        &session.session_id,
        // One session may have the response with and without the id of its request.
        recording.request.is_none(),
    )
}

/// Separates responses of one id that belong to different API requests. A recording that names no
/// request is added to the first one.
fn group_by_request(recordings: Vec<Recording>) -> Vec<Vec<Recording>> {
    let requests: BTreeSet<String> =
        recordings.iter().filter_map(|recording| recording.request.clone()).collect();
    let first = requests.into_iter().next();
    let mut groups: BTreeMap<Option<String>, Vec<Recording>> = BTreeMap::new();
    for recording in recordings {
        let request = recording.request.clone().or_else(|| first.clone());
        groups.entry(request).or_default().push(recording);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schemas::session::SessionRow;

    use super::*;

    fn recording(session: usize, request: &str, tokens: i64, is_elsewhere: bool) -> Recording {
        Recording {
            session,
            response: "msg_1".to_owned(),
            request: (!request.is_empty()).then(|| request.to_owned()),
            tokens,
            rows: vec![(7, is_elsewhere)],
            ..Recording::default()
        }
    }

    /// Four sessions; later ones began earlier.
    fn sessions() -> Vec<Arc<SessionSummary>> {
        let session = |n: i64| SessionRow {
            session_id: format!("s{n}"),
            started_at: Some(100 - n),
            ..SessionRow::default()
        };
        (0..4).map(|n| Arc::new(SessionSummary::from_row(&session(n)))).collect()
    }

    /// Returns the changes as (session, whether another one counts it now).
    fn choose(recordings: &[Recording]) -> Vec<(usize, bool)> {
        let changes = choose_sessions(recordings.to_vec(), &sessions());
        let reversed: Vec<_> = recordings.iter().rev().cloned().collect();
        assert_eq!(choose_sessions(reversed, &sessions()), changes, "in any order");
        changes.into_iter().map(|(session, rows)| (session, rows[&7])).collect()
    }

    #[test]
    fn the_largest_counts_once() {
        let found =
            [recording(0, "r", 5, false), recording(1, "r", 9, false), recording(2, "", 3, false)];
        assert_eq!(choose(&found), [(0, true), (2, true)]);
        // As it was decided before.
        let found = [recording(0, "r", 5, true), recording(1, "r", 9, false)];
        assert_eq!(choose(&found), []);
        // A larger one came later.
        let found = [recording(0, "r", 5, false), recording(1, "r", 9, true)];
        assert_eq!(choose(&found), [(0, true), (1, false)]);
        // The one that counted is gone.
        assert_eq!(choose(&[recording(2, "r", 5, true)]), [(2, false)]);
    }

    #[test]
    fn of_equal_ones_the_subagents_own_log_counts_then_the_earlier_session() {
        let found = [recording(0, "r", 5, false), recording(3, "", 5, false)];
        assert_eq!(choose(&found), [(0, true)]);
        let sidechain = Recording { is_sidechain: true, ..recording(3, "", 5, false) };
        assert_eq!(choose(&[recording(0, "r", 5, false), sidechain]), [(3, true)]);
    }

    #[test]
    fn other_requests_are_other_responses() {
        let found =
            [recording(0, "r", 5, false), recording(1, "s", 9, false), recording(2, "", 3, false)];
        assert_eq!(choose(&found), [(2, true)]);
    }

    #[test]
    fn what_a_fork_adds_to_a_copied_response_counts() {
        let added = Recording { continues_copy: true, ..recording(1, "r", 2, false) };
        assert_eq!(choose(&[recording(0, "r", 5, false), added]), []);
    }
}
