//! Finds the responses that are in several sessions and of which one may be new.

use std::collections::{BTreeSet, HashSet};

use crate::error::StoreError;
use crate::index::ResponseRow;
use crate::segment::open_segment::Segment;
use crate::snapshot::Snapshot;

/// Responses for which the session that counts them must be chosen.
pub(crate) struct Undecided {
    /// Hashes of the responses.
    pub(crate) responses: HashSet<u64>,
    /// Positions of the sessions that have rows of them.
    pub(crate) sessions: BTreeSet<usize>,
    /// Number of rows of responses in new segments.
    pub(crate) new_rows: usize,
}

/// A live row with tokens of a response.
struct Occurrence {
    response: u64,
    session: usize,
    /// True if the row is in a new segment.
    is_new: bool,
    is_counted_elsewhere: bool,
}

/// Finds the responses that segments with numbers above `compared_up_to` have in common with other
/// sessions, and those that no session counts any more.
pub(crate) fn find_undecided(
    snapshot: &Snapshot,
    compared_up_to: i64,
) -> Result<Undecided, StoreError> {
    let with_rows = || snapshot.segments().iter().filter(|segment| !segment.spans.is_empty());
    let mut occurrences = Vec::new();
    let mut new_rows = 0;
    for segment in with_rows() {
        let is_new = segment.entry.number > compared_up_to;
        if !is_new && !may_have_copies(snapshot, segment) {
            continue;
        }
        let index = segment.skip_index()?;
        append_occurrences(segment, is_new, true, index.read_responses(true)?, &mut occurrences);
        if is_new {
            let counted = index.read_responses(false)?;
            new_rows += counted.len();
            append_occurrences(segment, is_new, false, counted, &mut occurrences);
        }
    }

    if occurrences.is_empty() {
        return Ok(Undecided { responses: HashSet::new(), sessions: BTreeSet::new(), new_rows });
    }
    let mut wanted: Vec<u64> = occurrences.iter().map(|one| one.response).collect();
    wanted.sort_unstable();
    wanted.dedup();
    for segment in with_rows().filter(|segment| segment.entry.number <= compared_up_to) {
        let counted = segment.skip_index()?.find_counted_responses(&wanted)?;
        append_occurrences(segment, false, false, counted, &mut occurrences);
    }

    occurrences.sort_unstable_by_key(|one| one.response);
    let mut undecided =
        Undecided { responses: HashSet::new(), sessions: BTreeSet::new(), new_rows };
    for of_response in occurrences.chunk_by(|a, b| a.response == b.response) {
        if is_undecided(of_response) {
            undecided.responses.insert(of_response[0].response);
            undecided.sessions.extend(of_response.iter().map(|one| one.session));
        }
    }
    Ok(undecided)
}

/// Returns whether a segment may have live rows whose responses other sessions count: they are among
/// the copies of their session.
fn may_have_copies(snapshot: &Snapshot, segment: &Segment) -> bool {
    let sessions = snapshot.sessions();
    segment.spans.iter().any(|span| sessions[span.session].replay_events > 0)
}

/// Returns whether the session that counts a response must be chosen, given all live rows of it.
fn is_undecided(of_response: &[Occurrence]) -> bool {
    let is_shared = of_response.iter().any(|one| one.session != of_response[0].session);
    let has_new = of_response.iter().any(|one| one.is_new);
    let has_elsewhere = of_response.iter().any(|one| one.is_counted_elsewhere);
    let is_counted = of_response.iter().any(|one| !one.is_counted_elsewhere);
    (is_shared || has_elsewhere) && has_new || !is_counted
}

/// Appends the rows of a segment that are live.
fn append_occurrences(
    segment: &Segment,
    is_new: bool,
    is_counted_elsewhere: bool,
    rows: Vec<ResponseRow>,
    out: &mut Vec<Occurrence>,
) {
    for ResponseRow { response, row } in rows {
        let row = row as usize;
        let after = segment.spans.partition_point(|span| span.start <= row);
        let Some(span) = after.checked_sub(1).map(|at| segment.spans[at]) else { continue };
        if row < span.start + span.count {
            let session = span.session;
            out.push(Occurrence { response, session, is_new, is_counted_elsewhere });
        }
    }
}
