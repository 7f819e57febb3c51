//! Finds the events to be ranked: those that pass the filters and have what the query requires.

use std::ops::Range;

use super::event_scorer::RankedEvent;
use crate::matcher::Matcher;
use crate::query::Query;
use crate::request::SearchWork;
use crate::row_filter::{CandidatePage, CandidateRow, RowFilter};
use crate::scan::{PAGES_PER_TASK, read_page, rows_at};
use crate::sessions::ScoredEvent;
use base::parallel::in_parallel;
use store::{PageReader, StoreError};

/// Most rows whose facts are read at once.
const MAX_ROWS_AT_ONCE: usize = 4096;

/// Number of pages that are read before it is decided whether more are needed.
const WAVE_PAGES: usize = 64;

/// Most pages with rows that pass the filters that are read for what the query requires, unless all
/// matches must be counted: those of the best events. So such a question costs the same in a store of
/// any size.
const MAX_READ_PAGES: usize = 128;

/// The events to be ranked.
#[derive(Default)]
pub(super) struct Candidates {
    /// The events, or those that may be on the page.
    pub(super) events: Vec<RankedEvent>,
    /// Number of all events.
    pub(super) matched: usize,
    /// True if there are no others.
    pub(super) is_complete: bool,
    /// True if the search was told to halt.
    pub(super) is_halted: bool,
    pub(super) work: SearchWork,
}

/// Returns the candidates among the events of `parts`, which have words of the question. `required`
/// are the clauses that a candidate must match; if one of them is a term, other events that have it are
/// candidates, too.
pub(super) fn find_candidates(
    filter: &RowFilter<'_>,
    required: &Query,
    parts: Vec<Vec<RankedEvent>>,
    halt: &(dyn Fn() -> bool + Sync),
) -> Result<Candidates, StoreError> {
    let mut events = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    for part in parts {
        let possible = |ranked: &RankedEvent| !filter.is_excluded(ranked.event.segment());
        events.extend(part.into_iter().filter(possible));
    }
    events.sort_unstable_by_key(place_of);
    if required.clauses.is_empty() {
        let events = select_passing(filter, &events)?;
        return Ok(Candidates { events, is_complete: true, ..Candidates::default() });
    }
    RequiredTerms {
        filter,
        matcher: Matcher::new(required),
        has_term: required.clauses.iter().any(|clause| !clause.is_excluded),
        events: &events,
    }
    .find_candidates(halt)
}

/// Returns the place of an event in the store.
fn place_of(ranked: &RankedEvent) -> (usize, usize) {
    (ranked.event.segment(), ranked.event.row())
}

/// Returns the events whose facts pass the filters. `events` are sorted by place.
fn select_passing(
    filter: &RowFilter<'_>,
    events: &[RankedEvent],
) -> Result<Vec<RankedEvent>, StoreError> {
    let mut passing = Vec::new();
    for of_segment in events.chunk_by(|a, b| a.event.segment() == b.event.segment()) {
        let segment = of_segment[0].event.segment();
        if !filter.must_check_facts(segment) {
            passing.extend_from_slice(of_segment);
            continue;
        }
        let index = filter.snapshot.segments()[segment].skip_index()?;
        let mut remaining = of_segment;
        while let [first, ..] = remaining {
            let start = first.event.row();
            let count =
                remaining.partition_point(|ranked| ranked.event.row() < start + MAX_ROWS_AT_ONCE);
            let (near, after) = remaining.split_at(count);
            let facts = index.read_facts(start..near[count - 1].event.row() + 1)?;
            for ranked in near {
                let facts = facts.get(ranked.event.row() - start);
                if facts.is_some_and(|facts| filter.facts_pass(segment, &facts)) {
                    passing.push(*ranked);
                }
            }
            remaining = after;
        }
    }
    Ok(passing)
}

/// Finds the events that match the clauses which a query requires, by reading their texts.
struct RequiredTerms<'a> {
    filter: &'a RowFilter<'a>,
    matcher: Matcher,
    /// True if a term must occur, so that an event is found even without a word of the question.
    has_term: bool,
    /// The events that have words of the question, sorted by place.
    events: &'a [RankedEvent],
}

impl RequiredTerms<'_> {
    fn find_candidates(&self, halt: &(dyn Fn() -> bool + Sync)) -> Result<Candidates, StoreError> {
        let pages = self.promising_pages()?;
        let must_count_all = self.filter.request.query.must_count_all;
        let max_pages = if must_count_all { usize::MAX } else { MAX_READ_PAGES };
        let mut found = Candidates { is_complete: true, ..Candidates::default() };
        let mut pages_with_rows = 0;
        for wave in pages.chunks(WAVE_PAGES) {
            if pages_with_rows >= max_pages {
                found.is_complete = false;
                break;
            }
            let parts =
                in_parallel(wave, PAGES_PER_TASK, |pages| self.read_candidates(pages, halt))?;
            for (part, with_rows) in parts {
                pages_with_rows += with_rows;
                found.events.extend(part.events);
                found.is_halted |= part.is_halted;
                found.work += part.work;
            }
            if found.is_halted {
                found.is_complete = false;
                break;
            }
        }
        Ok(found)
    }

    /// Returns the pages that may have candidates, those with the best events first, then the newest
    /// ones.
    fn promising_pages(&self) -> Result<Vec<CandidatePage>, StoreError> {
        let mut pages = self.filter.candidate_pages()?;
        for page in &mut pages {
            let events = self.events_on(page).iter();
            page.estimate = events.map(|ranked| f64::from(ranked.event.score)).fold(0.0, f64::max);
        }
        pages.retain(|page| self.has_term || page.estimate > 0.0);
        pages.sort_by(|a, b| {
            (b.estimate.total_cmp(&a.estimate))
                .then(b.time_key.cmp(&a.time_key))
                .then_with(|| (a.segment, a.page.start).cmp(&(b.segment, b.page.start)))
        });
        Ok(pages)
    }

    /// Returns the events on a page that have words of the question.
    fn events_on(&self, page: &CandidatePage) -> &[RankedEvent] {
        let Range { start, end } = page.page.start..page.page.start + page.page.count;
        let first = self.events.partition_point(|ranked| place_of(ranked) < (page.segment, start));
        let count =
            self.events[first..].partition_point(|ranked| place_of(ranked) < (page.segment, end));
        &self.events[first..first + count]
    }

    /// Reads some pages. Returns their candidates and the number of pages with rows that pass the
    /// filters.
    fn read_candidates(
        &self,
        pages: &[CandidatePage],
        halt: &dyn Fn() -> bool,
    ) -> Result<(Candidates, usize), StoreError> {
        let mut found = Candidates::default();
        let mut with_rows = 0;
        let mut reader = PageReader::default();
        let mut buffer = Vec::new();
        for unit in pages {
            if halt() {
                found.is_halted = true;
                break;
            }
            let events = self.events_on(unit);
            let scored: Vec<usize> = events.iter().map(|ranked| ranked.event.row()).collect();
            let only = if self.has_term { None } else { Some(scored.as_slice()) };
            let rows = self.filter.candidate_rows(unit, only)?;
            if rows.is_empty() {
                continue;
            }
            with_rows += 1;

            let first = unit.page.start;
            let page = read_page(self.filter.snapshot, unit, &mut reader, &mut found.work)?;
            let mut matching = Vec::new();
            let places = rows.iter().map(|row| row.row - first);
            self.matcher
                .find_rows(&page, places, &mut buffer, &mut |row| matching.push(first + row));
            for row in rows_at(rows, &matching) {
                let scored = events.binary_search_by_key(&row.row, |ranked| ranked.event.row());
                found.events.push(match scored {
                    Ok(position) => events[position],
                    Err(_) => unscored_event(&row),
                });
            }
        }
        Ok((found, with_rows))
    }
}

/// Returns an event that has no word of the question.
fn unscored_event(row: &CandidateRow) -> RankedEvent {
    let event =
        ScoredEvent::without_words(row.segment, row.row, row.event_index, row.facts.event_type);
    RankedEvent::new(event, row.session, 0.0)
}
