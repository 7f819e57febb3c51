//! The segments that a search has not opened yet, in the order of results.
//!
//! A page of results usually needs the first segments only. No row of a waiting segment comes before
//! the key of the first one, so a search stops when its page is full up to there.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::request::highest_key;
use super::row_filter::RowFilter;
use store::Segment;

/// Number of segments that are opened first. A common word fills the page of results from them.
const FIRST_BATCH: usize = 2;

/// Factor by which each batch grows.
const BATCH_GROWTH: usize = 4;

/// The segments that are not open yet, those with the first rows first.
pub(super) struct SegmentQueue {
    waiting: VecDeque<WaitingSegment>,
    /// The number of segments that are opened next if no page of text remains.
    batch: usize,
}

/// A segment that is not open yet.
struct WaitingSegment {
    /// Highest [`time_key`](super::request::time_key) that a row of it may have.
    key: Option<i64>,
    /// Position in `Snapshot::segments`.
    number: usize,
    /// Number of its rows.
    rows: u64,
}

impl SegmentQueue {
    /// Creates the queue of the segments that may have requested rows.
    pub(super) fn new(filter: &RowFilter<'_>) -> Self {
        let sort = filter.request.query.sort;
        let entry = |(number, segment): (usize, &Segment)| WaitingSegment {
            key: highest_key(sort, segment.entry.times),
            number,
            rows: segment.entry.events,
        };
        let mut waiting: Vec<WaitingSegment> = filter.promising_segments().map(entry).collect();
        waiting.sort_by_key(|segment| (Reverse(segment.key), segment.number));
        Self { waiting: waiting.into(), batch: FIRST_BATCH }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the highest key of a row in a waiting segment; `None` if no such row has a time.
    pub(super) fn next_key(&self) -> Option<i64> {
        self.waiting.front().and_then(|segment| segment.key)
    }

    /// Takes the segments that may have rows at `key` or before it.
    pub(super) fn take_up_to(&mut self, key: Option<i64>) -> Vec<usize> {
        let count = self.waiting.partition_point(|segment| segment.key >= key);
        self.take(count)
    }

    /// Takes the next segments, [`BATCH_GROWTH`] times as many with each call. A query with rare
    /// words opens many segments before it finds enough, and threads need work.
    pub(super) fn take_batch(&mut self) -> Vec<usize> {
        let count = self.batch.min(self.waiting.len());
        self.batch *= BATCH_GROWTH;
        self.take(count)
    }

    /// Takes the next segments that have at most `rows` rows together.
    pub(super) fn take_rows(&mut self, rows: u64) -> Vec<usize> {
        let mut total: u64 = 0;
        let mut count = 0;
        for segment in &self.waiting {
            total = total.saturating_add(segment.rows);
            if total > rows {
                break;
            }
            count += 1;
        }
        self.take(count)
    }

    fn take(&mut self, count: usize) -> Vec<usize> {
        self.waiting.drain(..count).map(|segment| segment.number).collect()
    }
}
