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
    /// `None` if it is unknown whether the row is an error.
    pub is_error: Option<bool>,
    pub is_replay: bool,
    /// Position in the list of `SkipIndex::row_tags`.
    pub tags: u32,
    /// Position in the list of `SkipIndex::file_lists`.
    pub file_list: u32,
}

/// The facts that a ranked search has about every row before it reads any text.
///
/// It is one byte, because a question over a long history needs those of millions of rows: the type in
/// the lowest three bits, and the number of bits in the length of the row's text in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowOutline(pub(super) u8);

impl RowOutline {
    /// Returns the type of the event.
    pub fn event_type(self) -> EventType {
        decode_event_type(self.0 & 7)
    }

    /// Returns the number of bits in the length of the row's text in bytes.
    pub fn length_bits(self) -> u8 {
        self.0 >> 3
    }
}

/// Returns the event type of a number; a number that no type has is damage, which any type may show.
pub(super) fn decode_event_type(number: u8) -> EventType {
    EventType::ALL[usize::from(number) % EventType::ALL.len()]
}

/// Tool, subtype, model and branch of a row. Rows with the same four share one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowTags {
    pub tool: Option<Arc<str>>,
    pub subtype: Option<Arc<str>>,
    pub model: Option<Arc<str>>,
    pub branch: Option<Arc<str>>,
}

impl RowTags {
    /// Takes the tool, subtype, model and branch.
    pub(super) fn from_parts(parts: [Option<&str>; 4]) -> Self {
        let [tool, subtype, model, branch] = parts.map(|part| part.map(Arc::from));
        Self { tool, subtype, model, branch }
    }

    /// Returns the tool, subtype, model and branch.
    pub(super) fn parts(&self) -> [Option<&str>; 4] {
        [&self.tool, &self.subtype, &self.model, &self.branch].map(Option::as_deref)
    }
}

/// A run of rows with one filter, or with several if one row is longer than a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// First row, relative to the segment.
    pub start: usize,
    /// Number of rows.
    pub count: usize,
    /// Oldest and newest time of a row, in microseconds since the epoch; `None` if no row has one.
    pub times: Option<(i64, i64)>,
    /// True if the block has rows without a time.
    pub has_untimed_rows: bool,
    /// Positions of its filters.
    pub(super) columns: Range<usize>,
}
