//! Makes every response of a model count once in the whole store, however many logs have it.
//!
//! Logs of one family are compared record by record when they are read (`ingest`). A response can
//! also be in logs that share nothing else: a line that was copied to the end of another log, or a
//! resumed session with new ids. Such a response is known by its id, in all sessions of the store.
//!
//! Invariant: after [`StoreWriter::count_responses_once`], the session with the most tokens of a
//! response counts it. The rows of the others have `is_replay` and `is_counted_elsewhere`. This
//! depends only on what the logs say, not on the order in which they were read.

mod choice;
mod recount;
mod undecided;

use super::error::StoreError;
use super::segment::segment_writer::FinishedSegment;
use super::snapshot::Snapshot;
use super::writer::StoreWriter;
use choice::{RowChanges, choose_sessions, read_recordings};
pub(super) use recount::recount_sessions;
pub(super) use undecided::{Undecided, find_undecided};

/// Number of rows of responses from which it is recorded that they were compared. Noting it costs a
/// commit, and comparing fewer rows again costs less.
const MIN_NOTED_ROWS: usize = 4096;

impl StoreWriter {
    /// Compares the responses of new segments with those of all sessions, and writes the sessions
    /// again that count a response from now on, or do not count it any more. Returns the number of
    /// these sessions.
    ///
    /// A damaged segment cannot be compared. It is set aside by a later run, which compares again.
    pub fn count_responses_once(&self) -> Result<usize, StoreError> {
        let manifest = self.current_manifest();
        let compared_up_to = manifest.compared_up_to;
        let has_new = manifest.segments.iter().any(|segment| segment.number > compared_up_to);
        if !has_new && self.segments_set_aside() == 0 {
            return Ok(0);
        }

        // Few sessions have responses of others, and only their rows are read.
        let snapshot = self.take_snapshot()?;
        let compared = find_undecided(&snapshot, compared_up_to)
            .and_then(|undecided| Ok((undecided.new_rows, choose_rows(&snapshot, &undecided)?)));
        let (new_rows, changes) = match compared {
            Ok(compared) => compared,
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(%error, "responses are not compared");
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        if changes.is_empty() && new_rows < MIN_NOTED_ROWS {
            return Ok(0);
        }
        let rewritten = recount_sessions(&snapshot, &changes, &|| self.begin_segment())?;
        self.commit(rewritten, |next| next.compared_up_to = next.next_segment - 1)?;
        if !changes.is_empty() {
            tracing::info!(sessions = changes.len(), "responses of several logs counted once");
        }
        Ok(changes.len())
    }

    /// Writes the sessions again that count other responses in this snapshot than before; see
    /// [`Self::count_responses_once`]. Returns the segments, which are not committed.
    pub(super) fn recount_responses(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Vec<FinishedSegment>, StoreError> {
        let undecided = find_undecided(snapshot, snapshot.manifest().compared_up_to)?;
        let changes = choose_rows(snapshot, &undecided)?;
        recount_sessions(snapshot, &changes, &|| self.begin_segment())
    }
}

/// Chooses the sessions that count the undecided responses of a snapshot. Returns the rows that change.
pub(super) fn choose_rows(
    snapshot: &Snapshot,
    undecided: &Undecided,
) -> Result<RowChanges, StoreError> {
    let mut recordings = Vec::new();
    for session in &undecided.sessions {
        recordings.extend(read_recordings(snapshot, *session, &undecided.responses)?);
    }
    let mut changes = choose_sessions(recordings, snapshot.sessions());
    if changes.is_empty() {
        return Ok(changes);
    }
    for session in snapshot.incomplete_sessions() {
        // The rows of a session in one segment must have no gap. The session is read again.
        if let Some(position) = snapshot.session_position(&session.session_id) {
            changes.remove(&position);
        }
    }
    Ok(changes)
}
