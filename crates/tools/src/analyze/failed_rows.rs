//! Finds and reads the rows of tools in the sessions with a failure.
//!
//! The skip index shows which rows belong to tools and which failed. Of each session with a
//! failure, only the rows of tools are read, without their texts; the text is read only for failed
//! rows.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemas::EventType;
use schemas::session::EventRow;
use schemas::table::EventColumn;
use schemas::tool::details::ToolCount;

use super::action::CALL_COLUMNS;
use crate::reply::event_predicates::has_failed;
use crate::reply::time_range::TimeRange;
use base::sanitize::clean_text;
use store::{EventReader, RowFacts, RowSpan, Snapshot, StoreError};

/// Number of rows from which a task of several sessions is complete.
const MIN_TASK_ROWS: usize = 8192;

/// Maximum number of tools listed.
const MAX_TOOLS: usize = 10;

/// Rows in one segment, of one session or of several whole sessions.
pub(super) struct SegmentRows {
    segment: usize,
    /// Ascending.
    rows: Vec<RowSpan>,
}

/// The rows to read, and the tools that failed.
pub(super) struct ReadPlan {
    /// The rows, in the tasks that one thread reads at a time. All rows of a session are in one
    /// task.
    pub tasks: Vec<Vec<SegmentRows>>,
    /// The tools with the most errors.
    pub tools: Vec<ToolCount>,
}

/// Plans to read the rows of tools in those of the wanted sessions that have a failure.
pub(super) fn plan_reads(
    snapshot: &Snapshot,
    wanted: &HashSet<usize>,
    range: TimeRange,
) -> Result<ReadPlan, StoreError> {
    let mut parts: BTreeMap<usize, Vec<SegmentRows>> = BTreeMap::new();
    let mut failing: HashSet<usize> = HashSet::new();
    let mut tools: HashMap<&str, (usize, usize)> = HashMap::new();
    for (number, segment) in snapshot.segments().iter().enumerate() {
        for span in &segment.spans {
            if !wanted.contains(&span.session) {
                continue;
            }
            let index = segment.skip_index()?;
            let facts = index.read_facts(span.start..span.start + span.count)?;
            for fact in facts.iter() {
                if !is_in_time(&fact, range) {
                    continue;
                }
                let is_failure = fact.is_error == Some(true);
                if is_failure {
                    failing.insert(span.session);
                }
                let labels = index.row_tags()?.get(fact.tags as usize);
                let Some(tool) = labels.and_then(|labels| labels.tool.as_deref()) else { continue };
                let (calls, errors) = tools.entry(tool).or_default();
                *calls += usize::from(fact.event_type == EventType::ToolCall);
                *errors += usize::from(fact.event_type == EventType::ToolResult && is_failure);
            }
            let rows_to_read =
                facts.iter().zip(span.start..).filter(|(fact, _)| must_be_read(fact));
            let rows = group_into_spans(rows_to_read.map(|(_, row)| row));
            if !rows.is_empty() {
                parts.entry(span.session).or_default().push(SegmentRows { segment: number, rows });
            }
        }
    }
    parts.retain(|session, _| failing.contains(session));
    Ok(ReadPlan { tasks: group_into_tasks(parts), tools: failing_tools(tools) })
}

/// Returns the tools with the most errors. `counts` are the calls and the errors by tool. Names that
/// differ only in case are one tool, under its most frequent name.
fn failing_tools(counts: HashMap<&str, (usize, usize)>) -> Vec<ToolCount> {
    let mut most_frequent_first: Vec<(&str, (usize, usize))> = counts.into_iter().collect();
    most_frequent_first.sort_by(|(a, x), (b, y)| (y.0, a).cmp(&(x.0, b)));
    let mut positions: HashMap<String, usize> = HashMap::new();
    let mut tools: Vec<ToolCount> = Vec::new();
    for (name, (calls, errors)) in most_frequent_first {
        let position = *positions.entry(name.to_lowercase()).or_insert(tools.len());
        match tools.get_mut(position) {
            Some(tool) => {
                tool.calls += calls;
                tool.errors += errors;
            }
            None => tools.push(ToolCount { tool_name: clean_text(name), calls, errors }),
        }
    }
    tools.retain(|tool| tool.errors > 0);
    tools.sort_by(|a, b| (b.errors, b.calls, &a.tool_name).cmp(&(a.errors, a.calls, &b.tool_name)));
    tools.truncate(MAX_TOOLS);
    tools
}

/// Returns true if a row counts: it is not a replay, and it is in the span of time.
fn is_in_time(fact: &RowFacts, range: TimeRange) -> bool {
    !fact.is_replay && range.includes(fact.time)
}

/// Returns true if a row has to be read.
fn must_be_read(fact: &RowFacts) -> bool {
    matches!(fact.event_type, EventType::ToolCall | EventType::ToolResult)
        || fact.is_error == Some(true)
}

/// Groups ascending row numbers into runs.
fn group_into_spans(rows: impl Iterator<Item = usize>) -> Vec<RowSpan> {
    let mut spans: Vec<RowSpan> = Vec::new();
    for row in rows {
        match spans.last_mut() {
            Some(last) if last.start + last.count == row => last.count += 1,
            _ => spans.push(RowSpan { start: row, count: 1 }),
        }
    }
    spans
}

/// Groups the rows of sessions into tasks. A task is either one session, because a call may be
/// fixed in a later segment, or several sessions that are stored in one segment.
fn group_into_tasks(parts: BTreeMap<usize, Vec<SegmentRows>>) -> Vec<Vec<SegmentRows>> {
    let mut tasks = Vec::new();
    let mut whole: BTreeMap<usize, Vec<Vec<RowSpan>>> = BTreeMap::new();
    for parts in parts.into_values() {
        match <[SegmentRows; 1]>::try_from(parts) {
            Ok([part]) => whole.entry(part.segment).or_default().push(part.rows),
            Err(parts) => tasks.push(parts),
        }
    }
    for (segment, mut sessions) in whole {
        sessions.sort_by_key(|rows| rows.first().map(|span| span.start));
        let mut rows: Vec<RowSpan> = Vec::new();
        for of_session in sessions {
            rows.extend(of_session);
            if rows.iter().map(|span| span.count).sum::<usize>() >= MIN_TASK_ROWS {
                tasks.push(vec![SegmentRows { segment, rows: std::mem::take(&mut rows) }]);
            }
        }
        if !rows.is_empty() {
            tasks.push(vec![SegmentRows { segment, rows }]);
        }
    }
    tasks
}

/// Reads the rows of a task like [`read_rows`], and sorts them by session and event.
pub(super) fn read_task(
    snapshot: &Snapshot,
    task: &[SegmentRows],
) -> Result<Vec<EventRow>, StoreError> {
    let mut rows = Vec::new();
    for part in task {
        // Most tasks have one part, which is not copied.
        let before = std::mem::replace(&mut rows, read_rows(snapshot, part)?);
        rows.extend(before);
    }
    // No two rows have the same coordinates, and a stable sort takes half their memory again.
    rows.sort_unstable_by(|a, b| {
        (&a.session_id, a.event_index).cmp(&(&b.session_id, b.event_index))
    });
    Ok(rows)
}

/// Reads rows of a segment without their texts, and the texts of those that failed.
fn read_rows(snapshot: &Snapshot, part: &SegmentRows) -> Result<Vec<EventRow>, StoreError> {
    let Some(segment) = snapshot.segments().get(part.segment) else { return Ok(Vec::new()) };

    let mut rows = EventReader::open(segment, &part.rows, CALL_COLUMNS, 4096)?.read_rows()?;
    let numbers = part.rows.iter().flat_map(|span| span.start..span.start + span.count);
    let failing = rows.iter().zip(numbers).filter(|(row, _)| has_failed(row));
    let failing_spans = group_into_spans(failing.map(|(_, number)| number));
    if failing_spans.is_empty() {
        return Ok(rows);
    }
    let texts =
        EventReader::open(segment, &failing_spans, &[EventColumn::Text], 256)?.read_rows()?;
    for (row, text) in rows.iter_mut().filter(|row| has_failed(row)).zip(texts) {
        row.text = text.text;
    }
    Ok(rows)
}
