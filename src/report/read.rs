//! Reads what a report needs of a session's events: numbers of all, texts of few.

use std::collections::{BTreeSet, HashMap};

use schemas::session::EventRow;
use schemas::table::EventColumn;

use crate::store::{EventReader, Place, RowSpan, StoreError};

/// The columns that are read of every event.
const NUMBERS: &[EventColumn] = &[
    EventColumn::EventIndex,
    EventColumn::TurnIndex,
    EventColumn::EventType,
    EventColumn::Subtype,
    EventColumn::Timestamp,
    EventColumn::ToolName,
    EventColumn::ToolKind,
    EventColumn::Command,
    EventColumn::IsError,
    EventColumn::DurationMs,
    EventColumn::Model,
    EventColumn::InputTokens,
    EventColumn::OutputTokens,
    EventColumn::CacheReadTokens,
    EventColumn::CacheWriteTokens,
    EventColumn::CacheWrite1hTokens,
    EventColumn::ReasoningTokens,
    EventColumn::RequestId,
    EventColumn::IsReplay,
    EventColumn::IsSidechain,
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
        let columns = &[EventColumn::EventIndex, EventColumn::Text];
        let read = EventReader::open(segment, &rows, columns, BATCH_ROWS)?.rows()?;
        texts.extend(read.into_iter().map(|row| (row.event_index, row.text)));
    }
    Ok(texts)
}
