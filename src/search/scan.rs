//! Finds matches, newest first: scans the pages that pass the filters and the skip index, in waves
//! over the cores, until the page of results is full.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Instant;

use super::error::SearchError;
use super::matcher::Matcher;
use super::request::{Found, Hit, Position, Request, Work};
use super::row_filter::{Row, RowFilter, Unit};
use super::snippet;
use crate::base::parallel::in_parallel;
use crate::store::{PageReader, Snapshot, StoreError, TextValues};

/// Number of pages scanned at once: few at first, because a common word fills the page of results
/// from the newest ones.
const FIRST_WAVE: usize = 8;
const LARGEST_WAVE: usize = 512;
const COUNTING_WAVE: usize = 2048;

/// Number of pages after which a full page of results ends the scan, unless an exact total is
/// requested.
const COUNT_PAGES: usize = 32;

/// A match, in the order of results.
struct Candidate(Row);

impl Candidate {
    /// Returns the sort key. Positions of sessions have the order of their ids.
    fn key(&self) -> (Reverse<Option<i64>>, usize, Reverse<u32>) {
        (Reverse(self.0.facts.time), self.0.session, Reverse(self.0.event_index))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Candidate {}

/// Runs the query, newest first. `stop` is called between pages of text; true ends the search with
/// an error.
pub fn search(
    snapshot: &Snapshot,
    request: &Request<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Found, SearchError> {
    let matcher = Matcher::new(request.query);
    let gate = RowFilter::new(snapshot, request, request.query)?;
    let mut work = gate.work;
    let mut units = gate.units()?;
    units.sort_by_key(|unit| Reverse(unit.newest));
    let late = || request.deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let halt = || stop() || late();
    let mut best: BinaryHeap<Candidate> = BinaryHeap::new();
    // One more than the limit shows whether there are more.
    let keep = request.limit + 1;
    let (mut matched, mut done, mut wave) = (0, 0, FIRST_WAVE);
    let (mut is_full, mut timed_out) = (false, false);
    while done < units.len() {
        let shown = best.peek().filter(|_| best.len() == keep);
        if !is_full && shown.is_some_and(|worst| worst.0.facts.time > units[done].newest) {
            is_full = true;
            // The remaining pages only need to be counted, from the index if it can decide them.
            let rest = units.split_off(done);
            units.extend(rest.into_iter().filter(|unit| match gate.count(unit) {
                Some(count) => {
                    matched += count;
                    false
                }
                None => true,
            }));
            continue;
        }
        if is_full && done >= COUNT_PAGES && !request.query.exact_total {
            break;
        }
        let end = units.len().min(done + wave);
        let parts = in_parallel(&units[done..end], SHARE, |units| {
            scan(&gate, &matcher, units, keep, &halt)
        })?;
        if stop() {
            return Err(SearchError::Cancelled);
        }
        let whole: Option<Vec<_>> = parts.into_iter().collect();
        let Some(parts) = whole else {
            timed_out = true;
            break;
        };
        for (rows, count, part) in parts {
            work += part;
            matched += count;
            for candidate in rows {
                if best.len() < keep {
                    best.push(candidate);
                } else if let Some(mut worst) = best.peek_mut()
                    && candidate < *worst
                {
                    *worst = candidate;
                }
            }
        }
        done = end;
        wave = if request.query.exact_total {
            COUNTING_WAVE.min(wave * 4)
        } else {
            LARGEST_WAVE.min(wave * 2)
        };
    }
    let mut rows: Vec<Row> = best.into_sorted_vec().into_iter().map(|found| found.0).collect();
    let mut next = None;
    if timed_out {
        // An unread page may contain matches that come before anything older than its newest row.
        let frontier = units[done].newest;
        rows.retain(|row| row.facts.time > frontier);
        let reached = Position { time: frontier, session_id: String::new(), event_index: u32::MAX };
        // The cursor never moves back: the unread page may reach before results that were already
        // shown.
        next = request.after.clone().max(Some(reached));
    }
    if rows.len() > request.limit {
        rows.truncate(request.limit);
        next = rows.last().map(|row| gate.position(row));
    }
    let hits = hits(snapshot, &rows, &mut |text| matcher.first_match(text))?;
    Ok(Found { hits, next, matched, complete: done == units.len(), timed_out, work })
}

/// Returns the first `keep` matching rows of some pages, unordered, and the number of all; `None`
/// if it was told to halt.
fn scan(
    gate: &RowFilter<'_>,
    matcher: &Matcher,
    units: &[Unit],
    keep: usize,
    halt: &dyn Fn() -> bool,
) -> Result<Option<(Vec<Candidate>, usize, Work)>, StoreError> {
    let (mut found, mut work) = (Vec::new(), Work::default());
    let (mut reader, mut lower) = (PageReader::default(), Vec::new());
    for unit in units {
        if halt() {
            return Ok(None);
        }
        let first = unit.page.start;
        // Filters run before the text is read; without filters, only the facts of matching rows are
        // read.
        let mut rows = if gate.looks_at_rows(unit) { Some(gate.rows(unit, None)?) } else { None };
        if let Some(rows) = &mut rows {
            found.extend(rows.iter().filter(|row| row.is_certain));
            rows.retain(|row| !row.is_certain);
            if rows.is_empty() {
                continue;
            }
        }
        let page = read(gate.snapshot, unit, &mut reader, &mut work)?;
        let mut matching = Vec::new();
        let mut add = |row| matching.push(first + row);
        match &rows {
            Some(rows) => {
                let places = rows.iter().map(|row| row.row - first);
                matcher.rows(&page, places, &mut lower, &mut add);
            }
            None => matcher.rows(&page, 0..page.len(), &mut lower, &mut add),
        }
        if !matching.is_empty() {
            match rows {
                Some(rows) => found.extend(among(rows, &matching)),
                None => found.extend(gate.rows(unit, Some(&matching))?),
            }
        }
    }
    let count = found.len();
    let mut found: Vec<_> = found.into_iter().map(Candidate).collect();
    if count > keep {
        found.select_nth_unstable(keep);
        found.truncate(keep);
    }
    Ok(Some((found, count, work)))
}

/// Returns the rows whose positions are in `matching`; both are ascending.
pub(super) fn among(rows: Vec<Row>, matching: &[usize]) -> impl Iterator<Item = Row> {
    let mut matching = matching.iter().copied().peekable();
    rows.into_iter().filter(move |row| {
        while matching.next_if(|at| *at < row.row).is_some() {}
        matching.next_if_eq(&row.row).is_some()
    })
}

/// Reads a page and adds it to `work`.
pub(super) fn read<'r>(
    snapshot: &Snapshot,
    unit: &Unit,
    reader: &'r mut PageReader,
    work: &mut Work,
) -> Result<TextValues<'r>, StoreError> {
    let page = reader.read(&snapshot.segments()[unit.segment], &unit.page)?;
    work.pages += 1;
    work.bytes += page.bytes().len();
    Ok(page)
}

/// Number of pages that a core takes at once.
pub(super) const SHARE: usize = 8;

/// Reads the results for `rows`, in their order; `place` finds the match in a row's text.
pub(super) fn hits(
    snapshot: &Snapshot,
    rows: &[Row],
    place: &mut dyn FnMut(&str) -> Option<(usize, usize)>,
) -> Result<Vec<Hit>, StoreError> {
    let mut placed = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let pages = snapshot.segments()[row.segment].text_pages()?;
        placed.push((row.segment, pages.partition_point(|p| p.start + p.count <= row.row), at));
    }
    placed.sort_unstable();
    let mut hits: Vec<Option<Hit>> = rows.iter().map(|_| None).collect();
    let mut reader = PageReader::default();
    for of_page in placed.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (segment, number, _) = of_page[0];
        let segment = &snapshot.segments()[segment];
        let Some(page) = segment.text_pages()?.get(number) else { continue };
        let values = reader.read(segment, page)?;
        for (_, _, at) in of_page {
            let row = &rows[*at];
            let text = String::from_utf8_lossy(values.get(row.row - page.start));
            let (from, to) = place(&text).unwrap_or((0, 0));
            let labels = segment.index()?.labels()?.get(row.facts.labels as usize);
            hits[*at] = Some(Hit {
                session: row.session,
                event_index: row.event_index,
                facts: row.facts,
                labels: labels.cloned().unwrap_or_default(),
                snippet: snippet::around(&text, from, to),
                confidence: None,
            });
        }
    }
    Ok(hits.into_iter().flatten().collect())
}
