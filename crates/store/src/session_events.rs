//! The events of one session in order, from all segments that hold its rows. All code that reads
//! sessions uses this module.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::datatypes::Int64Type;
use schemas::session::EventRow;
use schemas::table::EventColumn;

use super::error::StoreError;
use super::segment::event_reader::{EventReader, RowSpan, number_column};
use super::segment::open_segment::{Segment, SessionSpan};
use super::snapshot::Snapshot;

/// Every event of a session, as ranges of `event_index`.
pub const ALL_EVENTS: &[Range<u32>] = std::slice::from_ref(&(0..u32::MAX));

/// Rows per batch.
const BATCH_ROWS: usize = 4096;

/// Columns that distinguish a record from the one before it.
const RECORD_COLUMNS: [EventColumn; 3] =
    [EventColumn::SourceOffset, EventColumn::RecordHash, EventColumn::CopyHash];

/// Returns one range for each event of `indexes`.
pub fn single_event_ranges(indexes: &BTreeSet<u32>) -> Vec<Range<u32>> {
    indexes.iter().map(|index| *index..index.saturating_add(1)).collect()
}

/// Reads events of a session, batch by batch.
pub struct SessionEvents<'s> {
    /// Segments that remain to be read, each with the rows to read.
    parts: std::vec::IntoIter<(&'s Segment, Vec<RowSpan>)>,
    columns: &'s [EventColumn],
    reading: Option<(&'s Segment, EventReader)>,
}

impl Snapshot {
    /// Returns a reader of the events of the session at this position whose index is in one of
    /// `ranges`, which ascend and do not overlap. No columns means all.
    pub fn events_of<'s>(
        &'s self,
        session: usize,
        ranges: &[Range<u32>],
        columns: &'s [EventColumn],
    ) -> SessionEvents<'s> {
        let mut parts = Vec::new();
        for (segment, span) in self.span_index().session_spans(session) {
            let rows: Vec<_> =
                ranges.iter().filter_map(|range| rows_in_range(span, range)).collect();
            if !rows.is_empty() {
                parts.push((&self.segments()[*segment], rows));
            }
        }
        SessionEvents { parts: parts.into_iter(), columns, reading: None }
    }

    /// Returns the rows of the events of the session at this position whose index is in `range`, each with the
    /// position of their segment.
    pub fn rows_of(
        &self,
        session: usize,
        range: Range<u32>,
    ) -> impl Iterator<Item = (usize, RowSpan)> {
        let spans = self.span_index().session_spans(session);
        spans.filter_map(move |(segment, span)| Some((*segment, rows_in_range(span, &range)?)))
    }

    /// Returns the hashes of the records of the session at this position, in order. Records
    /// without a hash are left out.
    pub(super) fn read_record_hashes(&self, session: usize) -> Result<Vec<u64>, StoreError> {
        let mut hashes: Vec<u64> = Vec::new();
        let mut events = self.events_of(session, ALL_EVENTS, &RECORD_COLUMNS);
        // The events of one record are contiguous; a line may hold several records.
        let mut last = None;
        while let Some(batch) = events.next_batch()? {
            let [offset_column, hash_column, copy_column] = RECORD_COLUMNS;
            let Some(offset_values) = number_column::<Int64Type>(&batch, offset_column) else {
                continue;
            };
            let Some(hash_values) = number_column::<Int64Type>(&batch, hash_column) else {
                continue;
            };
            let Some(copy_values) = number_column::<Int64Type>(&batch, copy_column) else {
                continue;
            };
            for row in 0..batch.num_rows() {
                let record_hashes = [hash_values.value(row), copy_values.value(row)];
                let record = Some((offset_values.value(row), record_hashes));
                if last != record {
                    let known = record_hashes.into_iter().filter(|hash| *hash != 0);
                    hashes.extend(known.map(i64::cast_unsigned));
                }
                last = record;
            }
        }
        Ok(hashes)
    }
}

/// Returns the rows of a span whose events are in `range`; `None` if there are none.
fn rows_in_range(span: &SessionSpan, range: &Range<u32>) -> Option<RowSpan> {
    let count = u32::try_from(span.count).unwrap_or(u32::MAX);
    let first_index = span.first_index.max(range.start);
    let end = span.first_index.saturating_add(count).min(range.end);
    if first_index >= end {
        return None;
    }
    let start = span.start + (first_index - span.first_index) as usize;
    Some(RowSpan { start, count: (end - first_index) as usize })
}

impl SessionEvents<'_> {
    /// Returns the next batch. Its columns are in the order of the table.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        loop {
            if let Some((_, reader)) = &mut self.reading
                && let Some(batch) = reader.next_batch()?
            {
                return Ok(Some(batch));
            }
            let Some((segment, rows)) = self.parts.next() else { return Ok(None) };
            let reader = EventReader::open(segment, &rows, self.columns, BATCH_ROWS)?;
            self.reading = Some((segment, reader));
        }
    }

    /// Returns the remaining rows as structs; columns that were not requested are empty.
    pub fn read_rows(self) -> Result<Vec<EventRow>, StoreError> {
        let mut events = Vec::new();
        for (segment, rows) in self.parts {
            events
                .extend(EventReader::open(segment, &rows, self.columns, BATCH_ROWS)?.read_rows()?);
        }
        Ok(events)
    }

    /// Returns the error for a batch with unexpected content.
    pub fn damaged_batch(&self, error: impl Display) -> StoreError {
        let path = self.reading.as_ref().map(|(segment, _)| segment.table_path("events"));
        StoreError::damaged(&path.unwrap_or_default(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_of_events_in_the_range_are_read() {
        let span = SessionSpan { session: 0, start: 100, count: 10, first_index: 5 };
        for (range, rows) in [
            (0..u32::MAX, Some((100, 10))),
            (0..5, None),
            (15..20, None),
            (0..6, Some((100, 1))),
            (14..99, Some((109, 1))),
            (7..9, Some((102, 2))),
            (7..7, None),
        ] {
            let found = rows_in_range(&span, &range).map(|rows| (rows.start, rows.count));
            assert_eq!(found, rows, "{range:?}");
        }
    }
}
