//! The state that is kept between two reads of a growing log.

use std::collections::BTreeSet;

use schemas::Confidence;
use serde::{Deserialize, Serialize};

use super::branches::Branches;
use super::calls::{EarlyResults, OpenCalls};
use super::ledger::LastRequests;
use super::tree::Tree;

/// The state kept between two reads of a growing log.
///
/// Fields that have not left their defaults are not written: most of those of a small log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamState {
    /// Index of the next event.
    pub(super) next_index: i32,
    /// Present turn; 0 before the first prompt.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) turn: i32,
    /// Last model response, counted over the log; 0 before the first.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) step: i32,
    /// Time of the last record that had one, in microseconds.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) last_time: Option<i64>,
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) open_calls: OpenCalls,
    #[serde(skip_serializing_if = "EarlyResults::is_empty")]
    pub(super) early_results: EarlyResults,
    /// Rank of the title's source; 0 if any other title may replace it.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) title_rank: u8,
    /// Index of the next event when the title was taken.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) title_at: i32,
    /// Number of own records in a row since the last copied one.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) own_run: u32,
    /// Position reached in the parent's sequence.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) history_at: usize,
    /// True if the last record was a copy.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) replay: bool,
    /// Parents of records, to find abandoned branches. Records are identified by hash.
    #[serde(skip_serializing_if = "Branches::is_empty")]
    pub(super) branches: Branches,
    /// All entries, for logs in which every entry names its parent.
    #[serde(skip_serializing_if = "Tree::is_empty")]
    pub(super) tree: Tree,
    /// The last records with the same bytes.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub(super) equal_run: EqualRun,
    /// The lowest confidence that a decoder reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confidence: Option<Confidence>,
    /// True if counts are missing when the log ends here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) counts_open: bool,
    /// Responses whose tokens are not counted yet.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) uncounted_steps: BTreeSet<i32>,
    /// First and last time of copied history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copied: Option<(i64, i64)>,
    /// True if the session has only the times of copied history, and none of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) borrowed: bool,
    /// The last requests, to find the longest prompt of each.
    #[serde(skip_serializing_if = "LastRequests::is_empty")]
    pub(super) requests: LastRequests,
}

/// The last records, as long as they have the same bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EqualRun {
    /// Hash of the bytes of each record; 0 if the last record was too long to be compared.
    pub(super) hash: u64,
    /// Number of records.
    pub(super) records: u32,
}
