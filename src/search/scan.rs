//! Runs a query over a snapshot: prunes by session, time and type, scans the rest, newest first.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::datatypes::TimestampMicrosecondType;
use schemas::session::EventRow;
use schemas::{ErrorCode, EventType, ToolError};

use super::matcher::Matcher;
use super::query::Query;
use super::snippet::{self, Snippet};
use crate::store::{EventReader, RowSpan, Segment, Snapshot, StoreError};

/// What to look for.
pub struct Request<'a> {
    pub query: &'a Query,
    /// Positions in [`Snapshot::sessions`]; `None` is all.
    pub sessions: Option<HashSet<usize>>,
    pub event_types: Vec<EventType>,
    /// Microseconds.
    pub since: Option<i64>,
    pub limit: usize,
    /// Only what comes after this position.
    pub after: Option<Position>,
}

/// A place in the order of results: newest first, then by session, then latest event first.
/// Events without a time come last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub time: Option<i64>,
    pub session_id: String,
    pub event_index: i32,
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .time
            .cmp(&self.time)
            .then_with(|| self.session_id.cmp(&other.session_id))
            .then_with(|| other.event_index.cmp(&self.event_index))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One match.
pub struct Hit {
    /// Position in [`Snapshot::sessions`].
    pub session: usize,
    pub row: EventRow,
    pub snippet: Snippet,
}

/// A page of matches.
pub struct Found {
    pub hits: Vec<Hit>,
    /// Position of the last hit when there are more.
    pub next: Option<Position>,
    /// Matches seen, those before this page left out.
    pub matched: usize,
    /// Whether everything was scanned, so that `matched` is exact.
    pub complete: bool,
}

/// A match before its row is read.
#[derive(PartialEq, Eq)]
struct Candidate {
    position: Position,
    segment: usize,
    session: usize,
    row: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.position.cmp(&other.position)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Rows read at a time.
const BATCH_ROWS: usize = 4096;

/// Runs the query; `stop` is asked between batches and ends it with `search_timeout`.
pub fn search(
    snapshot: &Snapshot,
    request: &Request<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Result<Found, ToolError>, StoreError> {
    let matcher = Matcher::new(request.query);
    let mut order: Vec<usize> = (0..snapshot.segments().len()).collect();
    // Newest segments first; those without times last.
    order.sort_by_key(|at| {
        std::cmp::Reverse(snapshot.segments()[*at].entry.times.map(|(_, max)| max))
    });
    let mut best: BinaryHeap<Candidate> = BinaryHeap::new();
    let mut matched = 0;
    let mut complete = true;
    for at in order {
        let segment = &snapshot.segments()[at];
        let newest = segment.entry.times.map(|(_, max)| max);
        if best.len() > request.limit
            && best.peek().is_some_and(|worst| worst.position.time > newest)
        {
            complete = false;
            break;
        }
        let mut scan = SegmentScan { snapshot, request, matcher: &matcher, segment, number: at };
        match scan.run(&mut best, stop)? {
            Some(count) => matched += count,
            None => {
                let message = "The search was stopped before it was done. Narrow it with since, session_id, project or a rarer word";
                return Ok(Err(ToolError::new(ErrorCode::SearchTimeout, message)));
            }
        }
    }
    let mut candidates = best.into_sorted_vec();
    let more = candidates.len() > request.limit;
    candidates.truncate(request.limit);
    let next = candidates.last().filter(|_| more).map(|last| last.position.clone());
    let hits = read_hits(snapshot, &matcher, candidates)?;
    Ok(Ok(Found { hits, next, matched, complete }))
}

struct SegmentScan<'a> {
    snapshot: &'a Snapshot,
    request: &'a Request<'a>,
    matcher: &'a Matcher,
    segment: &'a Segment,
    number: usize,
}

impl SegmentScan<'_> {
    /// Scans the rows that may match; `None` when it was stopped.
    fn run(
        &mut self,
        best: &mut BinaryHeap<Candidate>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, StoreError> {
        let request = self.request;
        let too_old = |newest: i64| request.since.is_some_and(|since| newest < since);
        if self.segment.entry.times.is_some_and(|(_, newest)| too_old(newest))
            && !self.segment.entry.untimed
        {
            return Ok(Some(0));
        }
        let wanted = |session: usize| {
            request.sessions.as_ref().is_none_or(|wanted| wanted.contains(&session))
        };
        let spans: Vec<_> =
            self.segment.spans.iter().filter(|span| wanted(span.session)).copied().collect();
        if spans.is_empty() {
            return Ok(Some(0));
        }
        let rows: Vec<_> =
            spans.iter().map(|span| RowSpan { start: span.start, count: span.count }).collect();
        // Which session and row the rows read belong to.
        let mut places = spans.iter().flat_map(|span| {
            (0..span.count)
                .map(move |at| (span.session, span.start + at, span.first_index as usize + at))
        });
        let query = request.query;
        let mut columns = vec!["event_type", "timestamp", "text", "is_replay"];
        columns.extend(query.tool.as_ref().map(|_| "tool_name"));
        columns.extend(query.errors_only.then_some("is_error"));
        columns.extend(query.model.as_ref().map(|_| "model"));
        columns.extend(query.branch.as_ref().map(|_| "git_branch"));
        let mut reader = EventReader::open(self.segment, &rows, &columns, BATCH_ROWS)?;
        let mut matched = 0;
        let mut matches = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            if stop() {
                return Ok(None);
            }
            let batch_places: Vec<_> = places.by_ref().take(batch.num_rows()).collect();
            matches.clear();
            self.matcher.rows(text(&batch, "text"), &mut matches);
            let filter = RowFilter::new(&batch, request);
            for row in matches.iter().copied().filter(|row| filter.passes(*row)) {
                let (session, place, event_index) = batch_places[row];
                let position = Position {
                    time: filter.time(row),
                    session_id: self.snapshot.sessions()[session].session_id.clone(),
                    event_index: i32::try_from(event_index).unwrap_or(i32::MAX),
                };
                if request.after.as_ref().is_some_and(|after| position <= *after) {
                    continue;
                }
                matched += 1;
                best.push(Candidate { position, segment: self.number, session, row: place });
                if best.len() > request.limit + 1 {
                    best.pop();
                }
            }
        }
        Ok(Some(matched))
    }
}

fn text<'b>(batch: &'b RecordBatch, name: &str) -> &'b StringArray {
    static EMPTY: std::sync::LazyLock<StringArray> =
        std::sync::LazyLock::new(|| StringArray::from(Vec::<&str>::new()));
    batch.column_by_name(name).map_or(&EMPTY, |column| column.as_string())
}

/// The filters on columns beside the text.
struct RowFilter<'b> {
    request: &'b Request<'b>,
    batch: &'b RecordBatch,
    types: &'b StringArray,
    replay: Option<&'b BooleanArray>,
}

impl<'b> RowFilter<'b> {
    fn new(batch: &'b RecordBatch, request: &'b Request<'b>) -> Self {
        let replay = batch.column_by_name("is_replay").map(|column| column.as_boolean());
        Self { request, batch, types: text(batch, "event_type"), replay }
    }

    fn time(&self, row: usize) -> Option<i64> {
        let times =
            self.batch.column_by_name("timestamp")?.as_primitive::<TimestampMicrosecondType>();
        times.is_valid(row).then(|| times.value(row))
    }

    fn passes(&self, row: usize) -> bool {
        let (request, query) = (self.request, self.request.query);
        if !query.with_replay && self.replay.is_some_and(|replay| replay.value(row)) {
            return false;
        }
        let kind = self.types.value(row);
        if !request.event_types.is_empty()
            && !request.event_types.iter().any(|wanted| wanted.as_str() == kind)
        {
            return false;
        }
        let time = self.time(row);
        if request.since.is_some_and(|since| time.is_none_or(|time| time < since))
            || query.until.is_some_and(|until| time.is_none_or(|time| time >= until))
        {
            return false;
        }
        if query.errors_only {
            let errors = self.batch.column_by_name("is_error").map(|column| column.as_boolean());
            if !errors.is_some_and(|errors| errors.is_valid(row) && errors.value(row)) {
                return false;
            }
        }
        let contains = |column: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| {
                let values = text(self.batch, column);
                values.is_valid(row) && values.value(row).to_lowercase().contains(wanted.as_str())
            })
        };
        contains("tool_name", &query.tool)
            && contains("model", &query.model)
            && contains("git_branch", &query.branch)
    }
}

/// Reads the rows of the page, in its order.
fn read_hits(
    snapshot: &Snapshot,
    matcher: &Matcher,
    candidates: Vec<Candidate>,
) -> Result<Vec<Hit>, StoreError> {
    let mut hits: Vec<Option<Hit>> = candidates.iter().map(|_| None).collect();
    let segments: HashSet<usize> = candidates.iter().map(|candidate| candidate.segment).collect();
    for number in segments {
        let mut of_segment: Vec<_> =
            candidates.iter().enumerate().filter(|(_, c)| c.segment == number).collect();
        of_segment.sort_by_key(|(_, candidate)| candidate.row);
        let rows: Vec<_> =
            of_segment.iter().map(|(_, c)| RowSpan { start: c.row, count: 1 }).collect();
        let read =
            EventReader::open(&snapshot.segments()[number], &rows, &[], rows.len())?.rows()?;
        for ((at, candidate), row) in of_segment.into_iter().zip(read) {
            let (from, to) = matcher.first_match(&row.text).unwrap_or((0, 0));
            let snippet = snippet::around(&row.text, from, to);
            hits[at] = Some(Hit { session: candidate.session, row, snippet });
        }
    }
    Ok(hits.into_iter().flatten().collect())
}
