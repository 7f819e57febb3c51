//! The facts that a skip index holds about rows and blocks.

use std::ops::Range;
use std::sync::Arc;

use schemas::EventType;

/// The facts about one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFacts {
    /// Microseconds since the epoch; `None` if the row has no time.
    pub time: Option<i64>,
    pub turn_index: u32,
    pub step_index: u32,
    pub event_type: EventType,
    pub is_error: Option<bool>,
    pub is_replay: bool,
    /// Position in [`SkipIndex::labels`](crate::store::SkipIndex::labels).
    pub labels: u32,
    /// Position in [`SkipIndex::files`](crate::store::SkipIndex::files).
    pub files: u32,
}

/// The facts that a ranked search has about every row before it reads any text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outline {
    pub event_type: EventType,
    /// Number of bits in the length of the row's text in bytes.
    pub bits: u8,
}

/// Tool, subtype, model and branch of a row. Rows with the same four share one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    pub tool: Option<Arc<str>>,
    pub subtype: Option<Arc<str>>,
    pub model: Option<Arc<str>>,
    pub branch: Option<Arc<str>>,
}

impl Labels {
    pub(super) fn of(parts: [Option<&str>; 4]) -> Self {
        let [tool, subtype, model, branch] = parts.map(|part| part.map(Arc::from));
        Self { tool, subtype, model, branch }
    }

    pub(super) fn parts(&self) -> [Option<&str>; 4] {
        [&self.tool, &self.subtype, &self.model, &self.branch].map(Option::as_deref)
    }
}

/// A run of rows with one filter, or several if one row is longer than a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub start: usize,
    pub count: usize,
    /// Oldest and newest time of a row; `None` if no row has one.
    pub times: Option<(i64, i64)>,
    /// True if the block has rows without a time.
    pub untimed: bool,
    /// Positions of its filters.
    pub(super) columns: Range<usize>,
}
