//! Writes sessions again in which other rows count than before.

use arrow::array::RecordBatch;
use ingest::stream::TokenRecount;
use schemas::session::EventRow;
use schemas::table::EventColumn;

use super::choice::RowChanges;
use crate::error::StoreError;
use crate::segment::segment_writer::{FinishedSegment, SegmentWriter};
use crate::session_rewriter::{ReplayFlags, SessionRewriter};
use crate::snapshot::Snapshot;

/// The columns from which the tokens of a session are counted.
const COUNTED_COLUMNS: [EventColumn; 6] = [
    EventColumn::EventType,
    EventColumn::Subtype,
    EventColumn::Timestamp,
    EventColumn::Model,
    EventColumn::RequestId,
    EventColumn::IsReplay,
];

/// Writes the sessions of `changes` into new segments, which supersede their former rows.
pub(crate) fn recount_sessions(
    snapshot: &Snapshot,
    changes: &RowChanges,
    begin_segment: &dyn Fn() -> SegmentWriter,
) -> Result<Vec<FinishedSegment>, StoreError> {
    let mut rewriter = SessionRewriter::new(snapshot, begin_segment);
    for (session, rows) in changes {
        let mut recount = TokenRecount::new(snapshot.sessions()[*session].row()?);
        let change = |event_index: i32, flags: ReplayFlags| match rows.get(&event_index) {
            Some(flag) => ReplayFlags { is_replay: *flag, is_counted_elsewhere: *flag },
            None => flags,
        };
        rewriter.write_events(*session, &change, &mut |batch| {
            for row in &counted_rows(batch)? {
                recount.add_event(row);
            }
            Ok(())
        })?;
        rewriter.write_row(recount.into_session())?;
    }
    rewriter.finish()
}

/// Returns the rows of a batch with the columns that are counted.
fn counted_rows(batch: &RecordBatch) -> Result<Vec<EventRow>, String> {
    let columns = COUNTED_COLUMNS.iter().chain(&EventColumn::TOKENS).chain(&EventColumn::MODE);
    let columns: Vec<usize> = columns.map(|column| *column as usize).collect();
    let counted = batch.project(&columns).map_err(|error| error.to_string())?;
    serde_arrow::from_record_batch(&counted).map_err(|error| error.to_string())
}
