//! Runs a query over a snapshot: prunes by session, time and type, scans the rest, newest first.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};

use arrow::array::{Array, AsArray};
use schemas::session::EventRow;
use schemas::{ErrorCode, EventType, ToolError};

use super::matcher::Matcher;
use super::query::Query;
use super::snippet::{self, Snippet};
use crate::store::{
    Block, EventReader, PageReader, RowFacts, RowSpan, Segment, Snapshot, StoreError, TextPage,
    trigrams,
};

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

/// A page of text that may hold matches.
struct Unit {
    segment: usize,
    page: TextPage,
    /// Newest time of its rows.
    newest: Option<i64>,
}

/// Pages taken at a time: few at first, as a common word fills the answer from the newest ones.
const FIRST_WAVE: usize = 4;
const LARGEST_WAVE: usize = 256;

/// Runs the query; `stop` is asked between waves of pages and ends it with `search_timeout`.
pub fn search(
    snapshot: &Snapshot,
    request: &Request<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Result<Found, ToolError>, StoreError> {
    let matcher = Matcher::new(request.query);
    let units = units(snapshot, request)?;
    let mut best: BinaryHeap<Candidate> = BinaryHeap::new();
    let mut matched = 0;
    let mut done = 0;
    let mut wave = FIRST_WAVE;
    while done < units.len() {
        let full = best.len() > request.limit;
        if full && best.peek().is_some_and(|worst| worst.position.time > units[done].newest) {
            break;
        }
        if stop() {
            let message = "The search was stopped before it was done. Narrow it with since, session_id, project or a rarer word";
            return Ok(Err(ToolError::new(ErrorCode::SearchTimeout, message)));
        }
        let end = units.len().min(done + wave);
        for candidate in scan_wave(snapshot, request, &matcher, &units[done..end])? {
            matched += 1;
            best.push(candidate);
            if best.len() > request.limit + 1 {
                best.pop();
            }
        }
        done = end;
        wave = LARGEST_WAVE.min(wave * 2);
    }
    let mut candidates = best.into_sorted_vec();
    let more = candidates.len() > request.limit;
    candidates.truncate(request.limit);
    let next = candidates.last().filter(|_| more).map(|last| last.position.clone());
    let hits = read_hits(snapshot, &matcher, candidates)?;
    Ok(Ok(Found { hits, next, matched, complete: done == units.len() }))
}

/// The pages that the skip index, the sessions and the times do not rule out, newest first.
fn units(snapshot: &Snapshot, request: &Request<'_>) -> Result<Vec<Unit>, StoreError> {
    let required = request.query.terms.iter().filter(|term| !term.excluded);
    let mut trigrams: Vec<u32> = required.flat_map(|term| trigrams(&term.text)).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    let mut units = Vec::new();
    for (number, segment) in snapshot.segments().iter().enumerate() {
        let newest = segment.entry.times.map(|(_, newest)| newest);
        let too_old = request.since.is_some_and(|since| newest.is_none_or(|newest| newest < since));
        let wanted = |session: usize| {
            request.sessions.as_ref().is_none_or(|wanted| wanted.contains(&session))
        };
        let spans: Vec<_> = segment.spans.iter().filter(|span| wanted(span.session)).collect();
        if too_old || spans.is_empty() {
            continue;
        }
        let skip = segment.skip()?;
        let open = |block: &Block| {
            let late = request
                .since
                .is_none_or(|since| block.times.is_some_and(|(_, newest)| newest >= since));
            // What is newer than the cursor was on the pages before.
            let shown = |(oldest, _)| {
                request.after.as_ref().is_some_and(|a| a.time.is_some_and(|time| oldest > time))
            };
            let shown = !segment.entry.untimed && block.times.is_some_and(shown);
            late && !shown && skip.may_hold(block, &trigrams)
        };
        let blocks: Vec<&Block> = skip.blocks.iter().filter(|block| open(block)).collect();
        for page in segment.text_pages()? {
            let overlaps = |start: usize, count: usize| {
                start < page.start + page.count && page.start < start + count
            };
            let from = blocks.partition_point(|block| block.start + block.count <= page.start);
            let of_page =
                blocks[from..].iter().take_while(|block| overlaps(block.start, block.count));
            let (held, newest) = of_page.fold((false, None), |(_, newest), block| {
                (true, newest.max(block.times.map(|(_, newest)| newest)))
            });
            let from = spans.partition_point(|span| span.start + span.count <= page.start);
            if held && spans.get(from).is_some_and(|span| overlaps(span.start, span.count)) {
                units.push(Unit { segment: number, page: *page, newest });
            }
        }
    }
    units.sort_by_key(|unit| std::cmp::Reverse(unit.newest));
    Ok(units)
}

/// Scans pages side by side.
fn scan_wave(
    snapshot: &Snapshot,
    request: &Request<'_>,
    matcher: &Matcher,
    units: &[Unit],
) -> Result<Vec<Candidate>, StoreError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(units.len());
    let scan = |units: &[Unit]| -> Result<Vec<Candidate>, StoreError> {
        let mut found = Vec::new();
        let mut lower = Vec::new();
        for unit in units {
            scan_page(snapshot, request, matcher, unit, &mut lower, &mut found)?;
        }
        Ok(found)
    };
    if threads <= 1 {
        return scan(units);
    }
    std::thread::scope(|scope| {
        let shares = units.chunks(units.len().div_ceil(threads));
        let workers: Vec<_> = shares.map(|share| scope.spawn(|| scan(share))).collect();
        let mut found = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(result) => found.extend(result?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(found)
    })
}

fn scan_page(
    snapshot: &Snapshot,
    request: &Request<'_>,
    matcher: &Matcher,
    unit: &Unit,
    lower: &mut Vec<u8>,
    found: &mut Vec<Candidate>,
) -> Result<(), StoreError> {
    let segment = &snapshot.segments()[unit.segment];
    let skip = segment.skip()?;
    let bytes = PageReader::open(segment)?.read(&unit.page)?;
    let mut rows = Vec::new();
    matcher.rows(&bytes, lower, &mut |row| {
        let row = unit.page.start + row;
        if row < skip.rows() && passes(request, skip.row(row)) {
            rows.push(row);
        }
    });
    if request.query.needs_columns() {
        keep_qualified(request.query, segment, &mut rows)?;
    }
    for row in rows {
        let at = segment.spans.partition_point(|span| span.start + span.count <= row);
        let Some(span) = segment.spans.get(at).filter(|span| span.start <= row) else { continue };
        if request.sessions.as_ref().is_some_and(|wanted| !wanted.contains(&span.session)) {
            continue;
        }
        let index = span.first_index as usize + (row - span.start);
        let position = Position {
            time: skip.row(row).time,
            session_id: snapshot.sessions()[span.session].session_id.clone(),
            event_index: i32::try_from(index).unwrap_or(i32::MAX),
        };
        if request.after.as_ref().is_none_or(|after| position > *after) {
            found.push(Candidate { position, segment: unit.segment, session: span.session, row });
        }
    }
    Ok(())
}

/// The filters on what the skip index knows of a row.
fn passes(request: &Request<'_>, row: RowFacts) -> bool {
    let query = request.query;
    let in_time = request.since.is_none_or(|since| row.time.is_some_and(|time| time >= since))
        && query.until.is_none_or(|until| row.time.is_some_and(|time| time < until));
    in_time
        && (query.with_replay || !row.is_replay)
        && (!query.errors_only || row.is_error)
        && (request.event_types.is_empty() || request.event_types.contains(&row.event_type))
}

/// Keeps the rows whose tool, model and branch are those asked for.
fn keep_qualified(
    query: &Query,
    segment: &Segment,
    rows: &mut Vec<usize>,
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let asked =
        [("tool_name", &query.tool), ("model", &query.model), ("git_branch", &query.branch)];
    let asked: Vec<_> =
        asked.iter().filter_map(|(column, wanted)| Some((*column, wanted.as_ref()?))).collect();
    let columns: Vec<_> = asked.iter().map(|(column, _)| *column).collect();
    let spans: Vec<_> = rows.iter().map(|row| RowSpan { start: *row, count: 1 }).collect();
    let mut reader = EventReader::open(segment, &spans, &columns, rows.len())?;
    let mut kept = Vec::new();
    let mut rest = rows.iter();
    while let Some(batch) = reader.next_batch()? {
        for (at, row) in rest.by_ref().take(batch.num_rows()).enumerate() {
            let holds = |(column, wanted): &(&str, &String)| {
                batch.column_by_name(column).map(|values| values.as_string::<i32>()).is_some_and(
                    |values| {
                        values.is_valid(at)
                            && values.value(at).to_lowercase().contains(wanted.as_str())
                    },
                )
            };
            if asked.iter().all(holds) {
                kept.push(*row);
            }
        }
    }
    *rows = kept;
    Ok(())
}

/// What a preview shows.
const PREVIEW: &[&str] = &[
    "session_id",
    "event_index",
    "turn_index",
    "step_index",
    "event_type",
    "subtype",
    "timestamp",
    "provider",
    "text",
    "tool_name",
    "is_error",
    "is_replay",
];

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
            EventReader::open(&snapshot.segments()[number], &rows, PREVIEW, rows.len())?.rows()?;
        for ((at, candidate), row) in of_segment.into_iter().zip(read) {
            let (from, to) = matcher.first_match(&row.text).unwrap_or((0, 0));
            let snippet = snippet::around(&row.text, from, to);
            hits[at] = Some(Hit { session: candidate.session, row, snippet });
        }
    }
    Ok(hits.into_iter().flatten().collect())
}
