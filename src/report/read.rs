//! Reads what a report needs of a session's events: numbers of all, texts of few.

use std::collections::{BTreeSet, HashMap};

use schemas::session::EventRow;

use crate::store::{Column, EventReader, Place, RowSpan, StoreError};

/// The columns that are read of every event.
const NUMBERS: &[Column] = &[
    "event_index",
    "turn_index",
    "event_type",
    "subtype",
    "timestamp",
    "tool_name",
    "tool_kind",
    "command",
    "is_error",
    "duration_ms",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_write_1h_tokens",
    "reasoning_tokens",
    "request_id",
    "is_replay",
    "is_sidechain",
];

/// Rows read at a time.
const BATCH_ROWS: usize = 4096;

/// Every event of a session, in order, without its text.
pub(super) fn events(places: &[Place<'_>]) -> Result<Vec<EventRow>, StoreError> {
    let mut rows = Vec::new();
    for (segment, span) in places {
        let wanted = [RowSpan { start: span.start, count: span.count }];
        rows.extend(EventReader::open(segment, &wanted, NUMBERS, BATCH_ROWS)?.rows()?);
    }
    Ok(rows)
}

/// The texts of events, by their index in the session.
pub(super) fn texts(
    places: &[Place<'_>],
    wanted: &BTreeSet<u32>,
) -> Result<HashMap<i32, String>, StoreError> {
    let mut texts = HashMap::new();
    for (segment, span) in places {
        let count = u32::try_from(span.count).unwrap_or(u32::MAX);
        let inside = wanted.range(span.first_index..span.first_index.saturating_add(count));
        let row = |index: &u32| RowSpan {
            start: span.start + (index - span.first_index) as usize,
            count: 1,
        };
        let rows: Vec<_> = inside.map(row).collect();
        if rows.is_empty() {
            continue;
        }
        let columns = &["event_index", "text"];
        let read = EventReader::open(segment, &rows, columns, BATCH_ROWS)?.rows()?;
        texts.extend(read.into_iter().map(|row| (row.event_index, row.text)));
    }
    Ok(texts)
}
