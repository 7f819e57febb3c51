//! Marks the first events of an imported session as copies, because another session counts them.

use ingest::stream::SessionRecount;
use schemas::session::{EventRow, SourceRow};

use crate::error::StoreError;
use crate::session_rewriter::{EventFlags, SessionRewriter};
use crate::snapshot::Snapshot;
use crate::writer::StoreWriter;

/// An imported session whose first events another session has as well.
pub struct CopiedEvents {
    /// Position of the session in the snapshot.
    pub session: usize,
    /// Number of these events.
    pub count: usize,
    /// The row of its source from now on.
    pub source: SourceRow,
}

impl StoreWriter {
    /// Marks the first events of sessions as copies, and counts the sessions again.
    ///
    /// # Errors
    /// Fails if rows of the snapshot cannot be read, or if the store cannot be written.
    pub fn mark_copied_events(
        &self,
        snapshot: &Snapshot,
        copied: Vec<CopiedEvents>,
    ) -> Result<(), StoreError> {
        let begin_segment = || self.begin_segment();
        let mut rewriter = SessionRewriter::new(snapshot, &begin_segment);
        for CopiedEvents { session, count, source } in copied {
            let mut recount = SessionRecount::new(snapshot.sessions()[session].row()?);
            let change = |event_index: i32, flags: EventFlags| {
                if usize::try_from(event_index).is_ok_and(|index| index < count) {
                    EventFlags { is_replay: true, is_counted_elsewhere: false }
                } else {
                    flags
                }
            };
            rewriter.write_events(session, &change, &mut |batch| {
                let rows: Vec<EventRow> =
                    serde_arrow::from_record_batch(batch).map_err(|error| error.to_string())?;
                for row in &rows {
                    recount.add_event(row);
                }
                Ok(())
            })?;
            rewriter.write_source(source);
            rewriter.write_row(recount.into_session())?;
        }
        self.commit(rewriter.finish()?, |_| ())?;
        // The events of earlier segments are superseded.
        self.retire_superseded_segments()?;
        self.count_responses_once()?;
        self.merge_small_segments()
    }
}
