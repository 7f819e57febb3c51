//! What a search is asked and what it answers.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::AddAssign;
use std::time::Instant;

use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::query::Query;
use super::snippet::Snippet;
use crate::store::{Labels, RowFacts};

/// What to look for.
pub struct Request<'a> {
    pub query: &'a Query,
    /// Positions in `Snapshot::sessions`; `None` is all.
    pub sessions: Option<HashSet<usize>>,
    pub event_types: Vec<EventType>,
    /// Microseconds.
    pub since: Option<i64>,
    pub limit: usize,
    /// Only what comes after this position.
    pub after: Option<Position>,
    /// When to end with what was found so far.
    pub deadline: Option<Instant>,
}

/// A place in the order of results: newest first, then by session, then latest event first.
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
    /// How well it fits, 0 to 1, where results are ranked.
    pub confidence: Option<f64>,
}

/// A page of matches.
pub struct Found {
    pub hits: Vec<Hit>,
    /// Where to go on when there is more: the last hit, or how far the time was enough for.
    pub next: Option<Position>,
    /// Matches seen, those before this page left out.
    pub matched: usize,
    /// Whether everything was looked at, so that `matched` is exact.
    pub complete: bool,
    /// The deadline came first.
    pub timed_out: bool,
    pub work: Work,
}

/// What a search looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Blocks of the segments that filters leave.
    pub blocks: usize,
    /// Blocks that the skip index leaves.
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
