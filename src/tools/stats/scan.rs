//! Reads the selected rows, segment by segment, in parallel on all cores.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::price::PriceTable;
use schemas::table::EventColumn;
use schemas::tool::stats::{Group, GroupKey};
use schemas::{ErrorCode, ToolError, limits};

use super::group::Groups;
use super::sums::Sums;
use crate::error::store_error;
use crate::parallel::in_parallel;
use crate::store::{EventReader, RowSpan, Segment, Snapshot, StoreError};

/// Minimum number of rows that a core takes at a time; the rows of one span stay together.
const UNIT_ROWS: usize = 1 << 14;

/// Number of rows decoded at a time.
const BATCH_ROWS: usize = 1 << 13;

/// The selection of rows, and how they are counted.
pub(super) struct Scan<'a> {
    pub snapshot: &'a Snapshot,
    pub keys: &'a [GroupKey],
    /// For every session, whether it is selected.
    pub chosen: &'a [bool],
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// The time range of trends; `None` without trends.
    pub range: Option<(i64, i64)>,
    pub prices: &'a PriceTable,
    /// The number of groups created so far by all cores, limited because each takes memory.
    pub made: AtomicUsize,
}

/// Some spans of a segment.
struct Unit<'a> {
    number: usize,
    segment: &'a Segment,
    /// The session and the rows of each span.
    spans: Vec<(usize, RowSpan)>,
}

impl Scan<'_> {
    /// Returns the groups, in no particular order.
    pub(super) fn groups(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<Group>, ToolError> {
        let units = self.units();
        let read = |units: &[Unit<'_>]| -> Result<Vec<_>, StoreError> {
            let mut done = Vec::new();
            for unit in units {
                let Some(groups) = self.read(unit, stop)? else { break };
                done.push((unit.number, groups));
            }
            Ok(done)
        };
        let mut parts: Vec<_> =
            in_parallel(&units, 1, read).map_err(store_error)?.into_iter().flatten().collect();
        if self.has_too_many() {
            return Err(self.too_many());
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
        Ok(groups.map(|(key, sums)| sums.group(self, &key)).collect())
    }

    /// Returns true if one more group may be created.
    pub(super) fn may_make(&self) -> bool {
        self.made.fetch_add(1, Ordering::Relaxed) < limits::STATS_GROUPS
    }

    fn has_too_many(&self) -> bool {
        self.made.load(Ordering::Relaxed) > limits::STATS_GROUPS
    }

    fn too_many(&self) -> ToolError {
        let names = self.keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(",");
        let message = format!(
            "group_by: '{names}' gives more than {} groups. Narrow with provider, project, session_id, since or until, or group by fewer keys",
            limits::STATS_GROUPS
        );
        ToolError::new(ErrorCode::InvalidArgument, message).with("field", "group_by")
    }

    /// Returns the selected rows.
    fn units(&self) -> Vec<Unit<'_>> {
        let mut units: Vec<Unit<'_>> = Vec::new();
        for segment in self.snapshot.segments().iter().filter(|segment| self.may_have(segment)) {
            let mut rows = UNIT_ROWS;
            for span in segment.spans.iter().filter(|span| self.is_chosen(span.session)) {
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

    fn is_chosen(&self, session: usize) -> bool {
        self.chosen.get(session).copied().unwrap_or(false)
    }

    /// Returns true if a segment may contain events of the requested times.
    fn may_have(&self, segment: &Segment) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        segment.entry.times.is_some_and(|(first, last)| {
            self.since.is_none_or(|since| last >= since)
                && self.until.is_none_or(|until| first < until)
        })
    }

    /// Returns the groups of a unit; `None` if it was stopped or there are too many groups.
    fn read(
        &self,
        unit: &Unit<'_>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<HashMap<String, Sums>>, StoreError> {
        let mut groups = Groups::new(self);
        let mut spans = unit.spans.iter();
        let (mut session, mut left) = (0, 0);
        let rows = joined(unit.spans.iter().map(|(_, span)| *span));
        let mut reader = EventReader::open(unit.segment, &rows, &self.columns(), BATCH_ROWS)?;
        while let Some(batch) = reader.next_batch()? {
            if stop() || self.has_too_many() {
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
    fn columns(&self) -> Vec<EventColumn> {
        let mut columns = vec![
            EventColumn::EventType,
            EventColumn::Timestamp,
            EventColumn::IsReplay,
            EventColumn::IsError,
            EventColumn::DurationMs,
            EventColumn::TextBytes,
        ];
        if !self.keys.iter().any(|key| key.is_of_tools()) {
            columns.extend([EventColumn::Subtype, EventColumn::Model, EventColumn::RequestId]);
            columns.extend(EventColumn::TOKENS);
        }
        columns.extend(self.keys.iter().filter_map(|key| match key {
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
