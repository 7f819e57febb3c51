//! The request and the answer of a search.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::AddAssign;
use std::time::Instant;

use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::query::Query;
use super::snippet::Snippet;
use crate::store::{Labels, RowFacts};

/// A search request.
pub struct Request<'a> {
    pub query: &'a Query,
    /// Positions in `Snapshot::sessions`; `None` means all.
    pub sessions: Option<HashSet<usize>>,
    pub event_types: Vec<EventType>,
    /// Earliest time of a result, in microseconds.
    pub since: Option<i64>,
    pub limit: usize,
    /// Only results after this position are returned.
    pub after: Option<Position>,
    /// The search ends at this time with the results found until then.
    pub deadline: Option<Instant>,
}

/// A position in the order of results: newest first, then by session, then latest event first.
/// Events without a time come last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub time: Option<i64>,
    pub session_id: String,
    pub event_index: u32,
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .time
            .cmp(&self.time)
            .then_with(|| self.session_id.cmp(&other.session_id))
            .then_with(|| other.event_index.cmp(&self.event_index))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One match.
pub struct Hit {
    /// Position in `Snapshot::sessions`.
    pub session: usize,
    pub event_index: u32,
    pub facts: RowFacts,
    pub labels: Labels,
    pub snippet: Snippet,
    /// How well the event fits, 0 to 1; only if results are ranked.
    pub confidence: Option<f64>,
}

/// A page of matches.
pub struct Found {
    pub hits: Vec<Hit>,
    /// Where the next page starts if there is more: the last hit, or the point reached before
    /// the deadline.
    pub next: Option<Position>,
    /// Number of matches seen, without those of earlier pages.
    pub matched: usize,
    /// True if everything was searched, so that `matched` is exact.
    pub complete: bool,
    /// True if the deadline ended the search.
    pub timed_out: bool,
    pub work: Work,
}

/// The amount of data that a search examined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Blocks of the segments that pass the filters.
    pub blocks: usize,
    /// Candidate blocks that remain after the skip index.
    pub blocks_held: usize,
    /// Pages of text decompressed, and their bytes.
    pub pages: usize,
    pub bytes: usize,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.blocks_held += other.blocks_held;
        self.pages += other.pages;
        self.bytes += other.bytes;
    }
}
