//! The request and the answer of a search.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::AddAssign;
use std::time::Instant;

use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::query::Query;
use super::snippet::Snippet;
use crate::store::{RowFacts, RowTags};

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
    /// Only results after this position are returned.
    pub after: Option<ResultPosition>,
    /// The search ends at this time with the results found until then.
    pub deadline: Option<Instant>,
}

impl SearchRequest<'_> {
    pub(super) fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// A position in the order of results: newest first, then by session, then latest event first.
/// Events without a time come last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPosition {
    /// Microseconds since the epoch.
    pub time: Option<i64>,
    pub session_id: String,
    pub event_index: u32,
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
    /// True if the deadline ended the search.
    pub is_timed_out: bool,
    pub work: SearchWork,
}

/// The amount of data that a search examined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SearchWork {
    /// Blocks of the segments that pass the filters.
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
        self.blocks += other.blocks;
        self.candidate_blocks += other.candidate_blocks;
        self.pages += other.pages;
        self.bytes += other.bytes;
    }
}
