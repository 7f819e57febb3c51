//! The result of `sessions compact`.

use std::collections::BTreeMap;

use serde::Serialize;

use store::DroppedTexts;

/// The numbers of `sessions compact`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompactData {
    /// True if nothing was changed.
    pub is_dry_run: bool,
    /// The rules of the settings file; empty if everything is kept.
    pub keep: Vec<String>,
    /// The number of sessions whose texts are dropped.
    pub sessions: usize,
    /// The dropped texts by event type, with their size before compression.
    pub dropped: BTreeMap<String, DroppedTexts>,
    /// The number of rows that are removed because their log was read again since.
    pub superseded_rows: u64,
    /// The number of segments before.
    pub segments: usize,
    /// The number of segments after; the same as before in a dry run.
    pub segments_after: usize,
    /// The size of the store before.
    pub store_bytes: u64,
    /// The bytes that are freed on disk. A dry run estimates them.
    pub freed_bytes: u64,
}
