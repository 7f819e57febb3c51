//! Reads the selected rows, segment by segment, in parallel on all cores.

use std::collections::HashMap;

use schemas::table::EventColumn;
use schemas::tool::stats::{Group, GroupKey};
use schemas::{ErrorCode, ToolError};

use super::group::Groups;
use super::plan::StatsPlan;
use super::sums::Sums;
use crate::base::parallel::in_parallel;
use crate::error::store_error;
use crate::store::{EventReader, RowSpan, Segment, StoreError};

/// Minimum number of rows that a core takes at a time; the rows of one span stay together.
const UNIT_ROWS: usize = 1 << 14;

/// Number of rows decoded at a time.
const BATCH_ROWS: usize = 1 << 13;

/// Some spans of a segment.
struct Unit<'a> {
    number: usize,
    segment: &'a Segment,
    /// The session and the rows of each span.
    spans: Vec<(usize, RowSpan)>,
}

/// Returns the groups, in no particular order.
pub(super) fn collect_groups(
    plan: &StatsPlan<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Group>, ToolError> {
    let units = units(plan);
    let read = |units: &[Unit<'_>]| -> Result<Vec<_>, StoreError> {
        let mut done = Vec::new();
        for unit in units {
            let Some(groups) = read_unit(plan, unit, stop)? else { break };
            done.push((unit.number, groups));
        }
        Ok(done)
    };
    let mut parts: Vec<_> =
        in_parallel(&units, 1, read).map_err(store_error)?.into_iter().flatten().collect();
    if plan.has_too_many() {
        return Err(plan.too_many());
    }
    if parts.len() < units.len() {
        return Err(ToolError::new(ErrorCode::Cancelled, "The call was cancelled"));
    }
    // The order is fixed, so that the same question gives the same cost to the last digit.
    parts.sort_by_key(|(number, _)| *number);
    let mut all: HashMap<String, Sums> = HashMap::new();
    for (key, sums) in parts.into_iter().flat_map(|(_, part)| part) {
        all.entry(key).or_default().merge(sums);
    }
    let groups = all.into_iter().filter(|(_, sums)| !sums.is_empty());
    Ok(groups.map(|(key, sums)| sums.group(plan, &key)).collect())
}

/// Returns the selected rows.
fn units<'a>(plan: &'a StatsPlan<'_>) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::new();
    for segment in plan.snapshot.segments().iter().filter(|segment| plan.may_have(segment)) {
        let mut rows = UNIT_ROWS;
        for span in segment.spans.iter().filter(|span| plan.is_chosen(span.session)) {
            if rows >= UNIT_ROWS {
                units.push(Unit { number: units.len(), segment, spans: Vec::new() });
                rows = 0;
            }
            rows += span.count;
            let row_span = RowSpan { start: span.start, count: span.count };
            if let Some(unit) = units.last_mut() {
                unit.spans.push((span.session, row_span));
            }
        }
    }
    units
}

/// Returns the groups of a unit; `None` if it was stopped or there are too many groups.
fn read_unit(
    plan: &StatsPlan<'_>,
    unit: &Unit<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<HashMap<String, Sums>>, StoreError> {
    let mut groups = Groups::new(plan);
    let mut spans = unit.spans.iter();
    let (mut session, mut left) = (0, 0);
    let rows = joined(unit.spans.iter().map(|(_, span)| *span));
    let mut reader = EventReader::open(unit.segment, &rows, &columns(plan), BATCH_ROWS)?;
    while let Some(batch) = reader.next_batch()? {
        if stop() || plan.has_too_many() {
            return Ok(None);
        }
        let mut done = 0;
        while done < batch.num_rows() {
            if left == 0 {
                let Some((next, span)) = spans.next() else { break };
                (session, left) = (*next, span.count);
                groups.begin();
            }
            let rows = left.min(batch.num_rows() - done);
            groups.add(session, &batch.slice(done, rows));
            left -= rows;
            done += rows;
        }
    }
    Ok(Some(groups.finish()))
}

/// Returns the columns to read: never the text, and tokens only if they can be told apart.
fn columns(plan: &StatsPlan<'_>) -> Vec<EventColumn> {
    let mut columns = vec![
        EventColumn::EventType,
        EventColumn::Timestamp,
        EventColumn::IsReplay,
        EventColumn::IsError,
        EventColumn::DurationMs,
        EventColumn::TextBytes,
    ];
    if !plan.keys.iter().any(|key| key.is_of_tools()) {
        columns.extend([EventColumn::Subtype, EventColumn::Model, EventColumn::RequestId]);
        columns.extend(EventColumn::TOKENS);
    }
    columns.extend(plan.keys.iter().filter_map(|key| match key {
        GroupKey::Model => Some(EventColumn::Model),
        GroupKey::Tool => Some(EventColumn::ToolName),
        GroupKey::ToolKind => Some(EventColumn::ToolKind),
        GroupKey::Branch => Some(EventColumn::GitBranch),
        GroupKey::File => Some(EventColumn::Files),
        // These values belong to the session, or are read for every key.
        GroupKey::Provider
        | GroupKey::Project
        | GroupKey::EventType
        | GroupKey::Error
        | GroupKey::Day
        | GroupKey::Week
        | GroupKey::Month
        | GroupKey::Hour
        | GroupKey::Session => None,
    }));
    columns
}

/// Merges adjacent spans.
fn joined(spans: impl Iterator<Item = RowSpan>) -> Vec<RowSpan> {
    let mut all: Vec<RowSpan> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if last.start + last.count == span.start => last.count += span.count,
            _ => all.push(span),
        }
    }
    all
}
