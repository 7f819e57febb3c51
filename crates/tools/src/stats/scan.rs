//! Reads the selected rows, segment by segment, in parallel on all cores.

use std::collections::HashMap;

use schemas::table::EventColumn;
use schemas::tool::stats::{Group, GroupKey};
use schemas::{ErrorCode, ToolError};

use super::group::StatsGroups;
use super::plan::StatsPlan;
use super::sums::GroupSums;
use crate::error::store_error;
use base::parallel::in_parallel;
use store::{EventReader, RowSpan, Segment, StoreError};

/// Minimum number of rows that a core takes at a time; the rows of one span stay together.
const MIN_UNIT_ROWS: usize = 1 << 14;

/// Number of rows decoded at a time.
const BATCH_ROWS: usize = 1 << 13;

/// Some spans of a segment.
struct StatsUnit<'a> {
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
    let units = plan_units(plan);
    let parts = in_parallel(&units, 1, |units| read_units(plan, units, stop));
    let mut parts: Vec<_> = parts.map_err(store_error)?.into_iter().flatten().collect();
    if plan.has_too_many_groups() {
        return Err(plan.too_many_groups_error());
    }
    if parts.len() < units.len() {
        return Err(ToolError::new(ErrorCode::Cancelled, "The call was cancelled"));
    }

    // The order is fixed, so that the same call gives the same cost to the last digit.
    parts.sort_by_key(|part| part.number);
    let mut all: HashMap<String, GroupSums> = HashMap::new();
    for (key, sums) in parts.into_iter().flat_map(|part| part.groups) {
        all.entry(key).or_default().merge(sums);
    }
    let groups = all.into_iter().filter(|(_, sums)| !sums.is_empty());
    Ok(groups.map(|(key, sums)| sums.into_group(plan, &key)).collect())
}

/// Divides the selected rows into units.
fn plan_units<'a>(plan: &'a StatsPlan<'_>) -> Vec<StatsUnit<'a>> {
    let mut units: Vec<StatsUnit<'a>> = Vec::new();
    for segment in plan.snapshot.segments().iter().filter(|segment| plan.may_have_events(segment)) {
        let mut rows = MIN_UNIT_ROWS;
        for span in segment.spans.iter().filter(|span| plan.is_selected(span.session)) {
            if rows >= MIN_UNIT_ROWS {
                units.push(StatsUnit { number: units.len(), segment, spans: Vec::new() });
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

/// The groups of one unit.
struct UnitGroups {
    /// The position of the unit among all units.
    number: usize,
    groups: HashMap<String, GroupSums>,
}

/// Returns the groups of each unit. Units after a stopped one are missing.
fn read_units(
    plan: &StatsPlan<'_>,
    units: &[StatsUnit<'_>],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<UnitGroups>, StoreError> {
    let mut parts = Vec::new();
    for unit in units {
        let Some(groups) = read_unit(plan, unit, stop)? else { break };
        parts.push(UnitGroups { number: unit.number, groups });
    }
    Ok(parts)
}

/// Returns the groups of a unit; `None` if it was stopped or there are too many groups.
fn read_unit(
    plan: &StatsPlan<'_>,
    unit: &StatsUnit<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<HashMap<String, GroupSums>>, StoreError> {
    let mut groups = StatsGroups::new(plan);
    let rows = merge_adjacent_spans(unit.spans.iter().map(|(_, span)| *span));
    let mut reader = EventReader::open(unit.segment, &rows, &columns_to_read(plan), BATCH_ROWS)?;

    let mut spans = unit.spans.iter();
    // The session of the current span, and the number of its rows that were not added yet.
    let mut session = 0;
    let mut span_rows_left = 0;
    while let Some(batch) = reader.next_batch()? {
        if stop() || plan.has_too_many_groups() {
            return Ok(None);
        }
        let mut batch_rows_done = 0;
        while batch_rows_done < batch.num_rows() {
            if span_rows_left == 0 {
                let Some((next, span)) = spans.next() else { break };
                session = *next;
                span_rows_left = span.count;
                groups.begin_session();
            }
            let row_count = span_rows_left.min(batch.num_rows() - batch_rows_done);
            groups.add_rows(session, &batch.slice(batch_rows_done, row_count));
            span_rows_left -= row_count;
            batch_rows_done += row_count;
        }
    }
    Ok(Some(groups.finish()))
}

/// Returns the columns to read: never the text, and no tokens if only calls and results have a key.
pub(super) fn columns_to_read(plan: &StatsPlan<'_>) -> Vec<EventColumn> {
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
        columns.extend(EventColumn::MODE);
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
        | GroupKey::Session
        | GroupKey::Machine
        | GroupKey::User => None,
    }));
    columns
}

/// Merges adjacent spans.
fn merge_adjacent_spans(spans: impl Iterator<Item = RowSpan>) -> Vec<RowSpan> {
    let mut all: Vec<RowSpan> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if last.start + last.count == span.start => last.count += span.count,
            _ => all.push(span),
        }
    }
    all
}
