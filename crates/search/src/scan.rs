//! Finds matches in the order of time. Opens the segments and scans the pages that pass the filters
//! and the skip index, in waves over the cores, until the page of results is full.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use super::error::SearchError;
use super::matcher::Matcher;
use schemas::limits::SNIPPET_CHARS;
use schemas::tool::search::SearchSort;

use super::request::{
    ResultPosition, SearchHit, SearchPage, SearchRequest, SearchWork, index_key, time_key,
};
use super::row_filter::{CandidatePage, CandidateRow, RowFilter};
use super::segment_queue::SegmentQueue;
use super::snippet;
use base::parallel::in_parallel;
use store::{PageReader, Snapshot, StoreError, TextValues};

/// Number of pages in the first wave. It is small because a common word fills the page of results
/// from the newest pages.
const FIRST_WAVE_PAGES: usize = 8;

/// Maximum number of pages in a wave.
const MAX_WAVE_PAGES: usize = 512;

/// Maximum number of pages in a wave if an exact total is requested.
const MAX_COUNTING_WAVE_PAGES: usize = 2048;

/// Number of pages after which a full page of results ends the scan, unless an exact total is
/// requested.
const MIN_COUNTED_PAGES: usize = 32;

/// Number of pages that a core takes at once.
pub(super) const PAGES_PER_TASK: usize = 8;

/// A match, in the order of results.
struct OrderedRow {
    row: CandidateRow,
    sort: SearchSort,
}

impl OrderedRow {
    /// Returns the sort key. Positions of sessions have the order of their ids.
    fn sort_key(&self) -> (Reverse<Option<i64>>, usize, Reverse<u32>) {
        let time = time_key(self.sort, self.row.facts.time);
        (Reverse(time), self.row.session, Reverse(index_key(self.sort, self.row.event_index)))
    }
}

impl Ord for OrderedRow {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl PartialOrd for OrderedRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedRow {
    fn eq(&self, other: &Self) -> bool {
        self.sort_key() == other.sort_key()
    }
}

impl Eq for OrderedRow {}

/// Runs the query, newest or oldest first. `stop` is called between pages of text; true ends the search with
/// an error.
pub fn search(
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<SearchPage, SearchError> {
    let filter = RowFilter::unopened(snapshot, request, request.query);
    let mut scan = OrderedScan {
        matcher: Matcher::new(request.query),
        queue: SegmentQueue::new(&filter),
        opened_rows: 0,
        pages: Vec::new(),
        scanned: 0,
        first: BinaryHeap::new(),
        max_kept: request.limit + 1,
        matched: 0,
        is_timed_out: false,
        filter,
        work: SearchWork::default(),
    };
    scan.run(stop)?;
    Ok(scan.into_page()?)
}

/// A search in progress.
struct OrderedScan<'a> {
    filter: RowFilter<'a>,
    matcher: Matcher,
    /// The segments that are not open yet.
    queue: SegmentQueue,
    /// The number of rows of the open segments.
    opened_rows: u64,
    /// The candidate pages of the open segments, in the order of results.
    pages: Vec<CandidatePage>,
    /// The number of `pages` that were scanned.
    scanned: usize,
    /// The first matches until now, at most `max_kept`.
    first: BinaryHeap<OrderedRow>,
    /// One more than the limit of the request, which shows whether there are more results.
    max_kept: usize,
    /// The number of all matches until now.
    matched: usize,
    is_timed_out: bool,
    /// The pages that were scanned.
    work: SearchWork,
}

/// The matches on some pages.
struct ScannedPages {
    /// The first matches, unordered and not more than a search keeps.
    first: Vec<OrderedRow>,
    /// The number of all matches on these pages.
    matched: usize,
    work: SearchWork,
}

impl OrderedScan<'_> {
    /// Opens segments and scans their pages in waves until the page of results is full, the deadline
    /// has passed, or everything is scanned.
    fn run(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), SearchError> {
        let request = self.filter.request;
        let must_count_all = request.query.must_count_all;
        let mut wave = FIRST_WAVE_PAGES;
        let mut is_full = false;
        loop {
            if !is_full && self.is_full() {
                is_full = true;
                let rows = if must_count_all { u64::MAX } else { request.counted_rows };
                let counted = self.queue.take_rows(rows.saturating_sub(self.opened_rows));
                self.count_decided_pages();
                self.open_counted_segments(&counted)?;
            }
            let has_pages = self.scanned < self.pages.len();
            if is_full && (!has_pages || self.scanned >= MIN_COUNTED_PAGES && !must_count_all) {
                break;
            }
            if !is_full && self.open_next_segments()? {
                if stop() {
                    return Err(SearchError::Cancelled);
                }
                if request.is_past_deadline() && !self.is_complete() {
                    self.is_timed_out = true;
                    break;
                }
                continue;
            }
            if !has_pages {
                break;
            }

            let end = self.pages.len().min(self.scanned + wave);
            let parts = in_parallel(&self.pages[self.scanned..end], PAGES_PER_TASK, |pages| {
                self.scan_pages(pages, &|| stop() || request.is_past_deadline())
            })?;
            if stop() {
                return Err(SearchError::Cancelled);
            }
            let parts: Option<Vec<ScannedPages>> = parts.into_iter().collect();
            let Some(parts) = parts else {
                self.is_timed_out = true;
                break;
            };
            for part in parts {
                self.add_scanned(part);
            }
            self.scanned = end;
            wave = if must_count_all {
                MAX_COUNTING_WAVE_PAGES.min(wave * 4)
            } else {
                MAX_WAVE_PAGES.min(wave * 2)
            };
        }
        Ok(())
    }

    /// Opens the waiting segments that may have rows before the next page, or the next ones if no
    /// page remains. Returns false if there are none.
    fn open_next_segments(&mut self) -> Result<bool, StoreError> {
        let wanted = match self.pages.get(self.scanned) {
            Some(page) => self.queue.take_up_to(page.time_key),
            None => self.queue.take_batch(),
        };
        self.open_segments(&wanted)?;
        Ok(!wanted.is_empty())
    }

    /// Opens segments and adds their pages to those that are not scanned yet.
    fn open_segments(&mut self, wanted: &[usize]) -> Result<(), StoreError> {
        self.filter.open_segments(wanted)?;
        let known_pages = self.pages.len();
        for number in wanted {
            self.opened_rows += self.filter.snapshot.segments()[*number].entry.events;
            self.filter.append_candidate_pages(*number, &mut self.pages)?;
        }
        if self.pages.len() > known_pages {
            self.sort_remaining_pages();
        }
        Ok(())
    }

    /// Opens segments whose matches are only counted. Pages that the index can decide are counted
    /// at once, because all pages of a large store take megabytes.
    fn open_counted_segments(&mut self, wanted: &[usize]) -> Result<(), StoreError> {
        self.filter.open_segments(wanted)?;
        let mut pages = Vec::new();
        for number in wanted {
            self.opened_rows += self.filter.snapshot.segments()[*number].entry.events;
            self.filter.append_candidate_pages(*number, &mut pages)?;
            for page in pages.drain(..) {
                self.count_or_keep(page);
            }
        }
        self.sort_remaining_pages();
        Ok(())
    }

    fn sort_remaining_pages(&mut self) {
        self.pages[self.scanned..].sort_by_key(|page| Reverse(page.time_key));
    }

    /// Returns the highest key of a row that is not scanned yet; `None` if no such row has a time.
    fn next_key(&self) -> Option<i64> {
        let next_page = self.pages.get(self.scanned).and_then(|page| page.time_key);
        next_page.max(self.queue.next_key())
    }

    /// Returns true if everything is scanned or counted.
    fn is_complete(&self) -> bool {
        self.scanned == self.pages.len() && self.queue.is_empty()
    }

    /// Returns true if no match that is not scanned yet belongs to the page of results.
    fn is_full(&self) -> bool {
        let Some(last) = self.first.peek() else { return false };
        let key = time_key(last.sort, last.row.facts.time);
        self.first.len() == self.max_kept && !self.is_complete() && key > self.next_key()
    }

    fn add_scanned(&mut self, part: ScannedPages) {
        self.work += part.work;
        self.matched += part.matched;
        for candidate in part.first {
            self.keep_first(candidate);
        }
    }

    /// Counts the matches of the remaining pages that the index can decide, and removes these
    /// pages. The others must be scanned.
    fn count_decided_pages(&mut self) {
        for page in self.pages.split_off(self.scanned) {
            self.count_or_keep(page);
        }
    }

    /// Counts the matches of a page if the index can decide. Otherwise it must be scanned.
    fn count_or_keep(&mut self, page: CandidatePage) {
        match self.filter.count_indexed_matches(&page) {
            Some(count) => self.matched += count,
            None => self.pages.push(page),
        }
    }

    fn keep_first(&mut self, candidate: OrderedRow) {
        if self.first.len() < self.max_kept {
            self.first.push(candidate);
        } else if let Some(mut last) = self.first.peek_mut()
            && candidate < *last
        {
            *last = candidate;
        }
    }

    /// Finds the matches on some pages. Returns `None` if `halt` returned true.
    fn scan_pages(
        &self,
        pages: &[CandidatePage],
        halt: &dyn Fn() -> bool,
    ) -> Result<Option<ScannedPages>, StoreError> {
        let mut found: Vec<CandidateRow> = Vec::new();
        let mut work = SearchWork::default();
        let mut reader = PageReader::default();
        let mut lower = Vec::new();
        for page in pages {
            if halt() {
                return Ok(None);
            }
            let first = page.page.start;
            let mut matching = Vec::new();
            if !self.filter.may_exclude_rows(page) {
                // Without filters, only the facts of matching rows are read.
                let texts = read_page(self.filter.snapshot, page, &mut reader, &mut work)?;
                self.matcher.find_rows(&texts, 0..texts.len(), &mut lower, &mut |row| {
                    matching.push(first + row);
                });
                if !matching.is_empty() {
                    found.extend(self.filter.candidate_rows(page, Some(&matching))?);
                }
                continue;
            }

            // Filters run before the text is read.
            let mut rows = self.filter.candidate_rows(page, None)?;
            found.extend(rows.iter().filter(|row| row.is_certain));
            rows.retain(|row| !row.is_certain);
            if rows.is_empty() {
                continue;
            }
            let texts = read_page(self.filter.snapshot, page, &mut reader, &mut work)?;
            let positions = rows.iter().map(|row| row.row - first);
            self.matcher.find_rows(&texts, positions, &mut lower, &mut |row| {
                matching.push(first + row);
            });
            found.extend(rows_at(rows, &matching));
        }

        let matched = found.len();
        let sort = self.filter.request.query.sort;
        let mut first: Vec<OrderedRow> =
            found.into_iter().map(|row| OrderedRow { row, sort }).collect();
        if matched > self.max_kept {
            first.select_nth_unstable(self.max_kept);
            first.truncate(self.max_kept);
        }
        Ok(Some(ScannedPages { first, matched, work }))
    }

    /// Reads the texts of the results, and determines where the next page of results starts.
    fn into_page(self) -> Result<SearchPage, StoreError> {
        let request = self.filter.request;
        let is_complete = self.is_complete();
        let frontier = self.next_key();
        let mut work = self.work;
        work += self.filter.work;
        let sorted = self.first.into_sorted_vec();
        let mut rows: Vec<CandidateRow> =
            sorted.into_iter().map(|candidate| candidate.row).collect();
        let mut next = None;
        if self.is_timed_out {
            // An unread page may contain matches that come before anything after its first row.
            rows.retain(|row| time_key(request.query.sort, row.facts.time) > frontier);
            let reached =
                ResultPosition { time: frontier, session_id: String::new(), event_index: u32::MAX };
            // The cursor never moves back: the unread page may reach before results that were
            // already shown.
            next = request.after.clone().max(Some(reached));
        }
        let is_full = rows.len() > request.limit;
        if is_full {
            rows.truncate(request.limit);
            next = rows.last().map(|row| self.filter.position_of(row));
        }

        let hits =
            read_hits(self.filter.snapshot, &rows, |text| self.matcher.find_best_place(text))?;
        Ok(SearchPage {
            hits,
            next,
            matched: self.matched,
            is_complete,
            is_timed_out: self.is_timed_out && !is_full,
            work,
        })
    }
}

/// Returns the rows whose positions are in `matching`; both are ascending.
pub(super) fn rows_at(
    rows: Vec<CandidateRow>,
    matching: &[usize],
) -> impl Iterator<Item = CandidateRow> {
    let mut matching = matching.iter().copied().peekable();
    rows.into_iter().filter(move |row| {
        while matching.next_if(|at| *at < row.row).is_some() {}
        matching.next_if_eq(&row.row).is_some()
    })
}

/// Reads a page and adds it to `work`.
pub(super) fn read_page<'r>(
    snapshot: &Snapshot,
    unit: &CandidatePage,
    reader: &'r mut PageReader,
    work: &mut SearchWork,
) -> Result<TextValues<'r>, StoreError> {
    let page = reader.read_page(&snapshot.segments()[unit.segment], &unit.page)?;
    work.pages += 1;
    work.bytes += page.bytes().len();
    Ok(page)
}

/// Number of pages of results that a core takes at once.
const RESULT_PAGES_PER_TASK: usize = 4;

/// Reads the texts of rows, which are given by their segment and their position in it. Returns for each
/// its position in `rows` and what `read` makes of its text, in no particular order. Pages are read in
/// parallel, each one once.
///
/// # Errors
/// Returns an error if the store cannot be read, and those of `read`.
pub fn read_row_texts<T: Send>(
    snapshot: &Snapshot,
    rows: &[(usize, usize)],
    read: impl Fn(usize, &str) -> Result<T, StoreError> + Sync,
) -> Result<Vec<(usize, T)>, StoreError> {
    let mut by_page: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for (position, (segment, row)) in rows.iter().enumerate() {
        let pages = snapshot.segments()[*segment].text_pages()?;
        let page = pages.partition_point(|page| page.start + page.count <= *row);
        by_page.entry((*segment, page)).or_default().push(position);
    }
    let pages: Vec<((usize, usize), Vec<usize>)> = by_page.into_iter().collect();

    let parts = in_parallel(&pages, RESULT_PAGES_PER_TASK, |pages| {
        let mut reader = PageReader::default();
        let mut seen = Vec::new();
        for ((segment, page), positions) in pages {
            let segment = &snapshot.segments()[*segment];
            let Some(page) = segment.text_pages()?.get(*page) else { continue };
            let texts = reader.read_page(segment, page)?;
            for position in positions {
                let (_, row) = rows[*position];
                let text = String::from_utf8_lossy(texts.get(row - page.start));
                seen.push((*position, read(*position, &text)?));
            }
        }
        Ok::<_, StoreError>(seen)
    })?;
    Ok(parts.into_iter().flatten().collect())
}

/// Reads the results for `rows`, in their order. `find_match` returns the start and end of the
/// match in a row's text.
pub(super) fn read_hits(
    snapshot: &Snapshot,
    rows: &[CandidateRow],
    find_match: impl Fn(&str) -> Option<(usize, usize)> + Sync,
) -> Result<Vec<SearchHit>, StoreError> {
    let places: Vec<(usize, usize)> = rows.iter().map(|row| (row.segment, row.row)).collect();
    let mut hits = read_row_texts(snapshot, &places, |at, text| {
        let row = &rows[at];
        let (match_start, match_end) = find_match(text).unwrap_or((0, 0));
        let tags = snapshot.segments()[row.segment].skip_index()?.row_tags()?;
        Ok(SearchHit {
            session: row.session,
            event_index: row.event_index,
            facts: row.facts,
            tags: tags.get(row.facts.tags as usize).cloned().unwrap_or_default(),
            snippet: snippet::cut_snippet(text, match_start, match_end, SNIPPET_CHARS),
            confidence: None,
        })
    })?;
    hits.sort_unstable_by_key(|(at, _)| *at);
    Ok(hits.into_iter().map(|(_, hit)| hit).collect())
}
