//! The request and the answer of a search.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::AddAssign;
use std::time::Instant;

use schemas::EventType;
use schemas::tool::search::SearchSort;
use serde::{Deserialize, Serialize};

use super::query::Query;
use super::snippet::Snippet;
use store::{RowFacts, RowTags};

/// Number of rows whose matches are counted for the total of a full page, unless the caller asks for
/// more or less. This is more than 1 GB of logs, so small stores have exact totals, and the time
/// does not grow with larger ones.
pub const COUNTED_ROWS: u64 = 1 << 19;

/// A search request.
pub struct SearchRequest<'a> {
    pub query: &'a Query,
    /// Positions in `Snapshot::sessions`; `None` means all.
    pub sessions: Option<HashSet<usize>>,
    /// The types of events to find; empty means all.
    pub event_types: Vec<EventType>,
    /// Earliest time of a result, in microseconds.
    pub since: Option<i64>,
    /// Maximum number of results.
    pub limit: usize,
    /// True for the best result of each session only, if results are ranked.
    pub one_per_session: bool,
    /// Only results after this position are returned.
    pub after: Option<ResultPosition>,
    /// Once the page is full, more segments are opened to count their matches while the open ones
    /// have at most this many rows together. A query for an exact total opens all.
    pub counted_rows: u64,
    /// The search ends at this time with the results found until then.
    pub deadline: Option<Instant>,
}

impl<'a> SearchRequest<'a> {
    /// Creates the request for any one event that `query` matches.
    pub fn any(query: &'a Query, deadline: Option<Instant>) -> Self {
        Self {
            query,
            sessions: None,
            event_types: Vec::new(),
            since: None,
            limit: 1,
            one_per_session: false,
            after: None,
            counted_rows: 0,
            deadline,
        }
    }

    pub(super) fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// A position in the order of results: by time, then by session, then by event. Events without a time
/// come last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPosition {
    /// Time in microseconds since the epoch, or its complement if the oldest come first.
    #[serde(rename = "t")]
    pub time: Option<i64>,
    #[serde(rename = "i")]
    pub session_id: String,
    /// Index of the event, or its complement if the oldest come first.
    #[serde(rename = "e")]
    pub event_index: u32,
}

impl ResultPosition {
    /// Returns the position of an event in results of this order.
    pub fn new(sort: SearchSort, time: Option<i64>, session_id: &str, event_index: u32) -> Self {
        Self {
            time: time_key(sort, time),
            session_id: session_id.to_owned(),
            event_index: index_key(sort, event_index),
        }
    }
}

/// Returns the number by which results are ordered, highest first: the time in microseconds since the
/// epoch, or its complement if the oldest come first.
pub(super) fn time_key(sort: SearchSort, time: Option<i64>) -> Option<i64> {
    time.map(|time| key_of(sort, time))
}

/// Returns the highest key of rows whose oldest and newest times are `times`.
pub(super) fn highest_key(sort: SearchSort, times: Option<(i64, i64)>) -> Option<i64> {
    times.map(|(oldest, newest)| key_of(sort, oldest).max(key_of(sort, newest)))
}

/// Returns the lowest key of rows between two times.
pub(super) fn lowest_key(sort: SearchSort, oldest: i64, newest: i64) -> i64 {
    key_of(sort, oldest).min(key_of(sort, newest))
}

fn key_of(sort: SearchSort, time: i64) -> i64 {
    match sort {
        SearchSort::Newest | SearchSort::Relevance => time,
        SearchSort::Oldest => !time,
    }
}

/// Returns the number by which events of one session and time are ordered, highest first.
pub(super) fn index_key(sort: SearchSort, event_index: u32) -> u32 {
    match sort {
        SearchSort::Newest | SearchSort::Relevance => event_index,
        SearchSort::Oldest => !event_index,
    }
}

impl Ord for ResultPosition {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .time
            .cmp(&self.time)
            .then_with(|| self.session_id.cmp(&other.session_id))
            .then_with(|| other.event_index.cmp(&self.event_index))
    }
}

impl PartialOrd for ResultPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One match.
pub struct SearchHit {
    /// Position in `Snapshot::sessions`.
    pub session: usize,
    pub event_index: u32,
    pub facts: RowFacts,
    pub tags: RowTags,
    pub snippet: Snippet,
    /// How well the event fits, 0 to 1; only if results are ranked.
    pub confidence: Option<f64>,
}

/// A page of matches.
pub struct SearchPage {
    pub hits: Vec<SearchHit>,
    /// Where the next page starts if there is more: the last hit, or the point reached before
    /// the deadline.
    pub next: Option<ResultPosition>,
    /// Number of matches seen, without those of earlier pages.
    pub matched: usize,
    /// True if everything was searched, so that `matched` is exact.
    pub is_complete: bool,
    /// True if the deadline ended the search before the page was full.
    pub is_timed_out: bool,
    pub work: SearchWork,
}

/// The amount of data that a search examined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SearchWork {
    /// Segments that were opened.
    pub segments: usize,
    /// Blocks of the open segments that pass the filters.
    pub blocks: usize,
    /// Candidate blocks that remain after the skip index.
    pub candidate_blocks: usize,
    /// Pages of text decompressed.
    pub pages: usize,
    /// Decompressed bytes of these pages.
    pub bytes: usize,
}

impl AddAssign for SearchWork {
    fn add_assign(&mut self, other: Self) {
        self.segments += other.segments;
        self.blocks += other.blocks;
        self.candidate_blocks += other.candidate_blocks;
        self.pages += other.pages;
        self.bytes += other.bytes;
    }
}
