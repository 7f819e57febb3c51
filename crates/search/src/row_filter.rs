//! Filters sessions, segments, blocks, pages and rows before any text is decompressed.
//!
//! Each step narrows what the next one examines. The manifest and the sessions rule out segments.
//! The skip index rules out blocks. Blocks and sessions select the pages of text, and the facts of
//! a row decide whether its text must be read. Segments are opened when a search gets to them.
//!
//! Invariant: a step excludes only rows that cannot match.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

use super::query::Query;
use super::request::{ResultPosition, SearchRequest, SearchWork, highest_key, index_key, time_key};
use super::segment_filter::{SegmentFilter, may_match_times};
use super::session_selection::matching_sessions;
use base::parallel::in_parallel;
use store::{Block, Grams, RowFacts, Segment, SessionSpan, Snapshot, StoreError, TextPage};

/// Number of open segments that a core filters at once. Each takes ten microseconds, and beginning
/// a thread takes fifty.
const OPEN_SEGMENTS_PER_TASK: usize = 8;

/// A page of text that may contain matches.
#[derive(Debug, Clone, Copy)]
pub(super) struct CandidatePage {
    /// Position in `Snapshot::segments`.
    pub(super) segment: usize,
    pub(super) page: TextPage,
    /// Highest [`time_key`] of the page's blocks.
    pub(super) time_key: Option<i64>,
    /// The score of the page's best row if results are ranked; otherwise 0.
    pub(super) estimate: f64,
}

/// A row that passes the filters.
#[derive(Debug, Clone, Copy)]
pub(super) struct CandidateRow {
    /// Position in `Snapshot::segments`.
    pub(super) segment: usize,
    /// Position in the segment.
    pub(super) row: usize,
    /// Position in `Snapshot::sessions`.
    pub(super) session: usize,
    pub(super) event_index: u32,
    pub(super) facts: RowFacts,
    /// True if the index alone proves that the row matches.
    pub(super) is_certain: bool,
}

/// The filters of a request, applied to a snapshot.
pub(super) struct RowFilter<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) request: &'a SearchRequest<'a>,
    /// Positions of the sessions that pass in `Snapshot::sessions`; `None` means all.
    pub(super) sessions: Option<HashSet<usize>>,
    /// The clauses that must hold.
    required: &'a Query,
    /// The runs of which a matching text must contain one alternative of every group.
    needs: Vec<Vec<Grams>>,
    /// One filter for each segment of the snapshot. A segment that is not open yet is excluded.
    segments: Vec<SegmentFilter>,
    /// Counts the open segments, their blocks, and the candidates among them.
    pub(super) work: SearchWork,
}

impl<'a> RowFilter<'a> {
    /// Creates the filters for rows in which all clauses of `required` may hold, and opens every
    /// segment that may have some.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        request: &'a SearchRequest<'a>,
        required: &'a Query,
    ) -> Result<Self, StoreError> {
        let mut filter = Self::unopened(snapshot, request, required);
        let wanted: Vec<usize> = filter.promising_segments().map(|(number, _)| number).collect();
        // Without clauses, only the texts of the best events are read.
        filter.open_and_filter(&wanted, !required.clauses.is_empty())?;
        Ok(filter)
    }

    /// Creates the filters for rows in which all clauses of `required` may hold, without opening a
    /// segment.
    pub(super) fn unopened(
        snapshot: &'a Snapshot,
        request: &'a SearchRequest<'a>,
        required: &'a Query,
    ) -> Self {
        let mut segments = Vec::new();
        segments.resize_with(snapshot.segments().len(), SegmentFilter::excluded);
        Self {
            snapshot,
            request,
            sessions: matching_sessions(snapshot, request),
            required,
            needs: required.required_grams(),
            segments,
            work: SearchWork::default(),
        }
    }

    /// Returns the segments that may have requested rows by what is known without opening them,
    /// each with its position.
    pub(super) fn promising_segments(&self) -> impl Iterator<Item = (usize, &'a Segment)> {
        let segments = self.snapshot.segments().iter().enumerate();
        segments.filter(|(_, segment)| self.may_match_segment(segment))
    }

    /// Opens and filters the segments at the positions `wanted`, in parallel, to read their candidate
    /// pages.
    pub(super) fn open_segments(&mut self, wanted: &[usize]) -> Result<(), StoreError> {
        self.open_and_filter(wanted, true)
    }

    /// Opens and filters segments. `needs_pages` is false if no candidate page is read.
    fn open_and_filter(&mut self, wanted: &[usize], needs_pages: bool) -> Result<(), StoreError> {
        let segments = self.snapshot.segments();
        let is_open = wanted.iter().all(|number| segments[*number].has_open_index());
        let at_a_time = if is_open { OPEN_SEGMENTS_PER_TASK } else { 1 };
        let parts = in_parallel(wanted, at_a_time, |numbers| {
            let mut filters = Vec::new();
            for number in numbers {
                let index = segments[*number].skip_index()?;
                let filter = SegmentFilter::of_blocks(index, self.request, &self.needs)?;
                filters.push((*number, filter));
            }
            Ok::<_, StoreError>(filters)
        })?;

        let mut promising = Vec::new();
        for (number, filter) in parts.into_iter().flatten() {
            self.work.segments += 1;
            if !filter.is_excluded {
                self.work.blocks += segments[number].skip_index()?.blocks().len();
                self.work.candidate_blocks += filter.candidate_blocks.len();
            }
            if !filter.candidate_blocks.is_empty() {
                promising.push(number);
            }
            self.segments[number] = filter;
        }
        self.look_up_words(&promising, needs_pages)
    }

    /// Looks up the words of segments that have candidate blocks, and the places of their pages if
    /// `needs_pages`.
    fn look_up_words(&mut self, promising: &[usize], needs_pages: bool) -> Result<(), StoreError> {
        let segments = self.snapshot.segments();
        let parts = in_parallel(promising, 1, |numbers| {
            let mut found = Vec::new();
            for number in numbers {
                let segment = &segments[*number];
                found.push((*number, self.segments[*number].find_rows(segment, self.required)?));
                if needs_pages {
                    // Reading their places in parallel is faster.
                    segment.text_pages()?;
                }
            }
            Ok::<_, StoreError>(found)
        })?;
        for (number, rows) in parts.into_iter().flatten() {
            self.segments[number].indexed_rows = rows;
        }
        Ok(())
    }

    /// Returns true if a segment may have requested rows, judging by its manifest entry and
    /// sessions.
    fn may_match_segment(&self, segment: &Segment) -> bool {
        may_match_times(self.request, segment.entry.times, segment.entry.untimed)
            && segment.spans.iter().any(|span| self.includes_session(span.session))
    }

    fn includes_session(&self, session: usize) -> bool {
        self.sessions.as_ref().is_none_or(|wanted| wanted.contains(&session))
    }

    /// Returns the segments that may have matching rows, each with its position.
    pub(super) fn candidate_segments(&self) -> impl Iterator<Item = (usize, &'a Segment)> {
        let segments = self.snapshot.segments().iter().enumerate();
        segments.filter(|(number, _)| !self.segments[*number].is_excluded)
    }

    /// True if no row of the segment at position `number` can match.
    pub(super) fn is_excluded(&self, number: usize) -> bool {
        self.segments[number].is_excluded
    }

    /// True if the filters examine more of a row than its session, its type, and whether it is a
    /// copy.
    pub(super) fn must_check_facts(&self, number: usize) -> bool {
        let query = self.request.query;
        let segment = &self.segments[number];
        self.request.since.is_some()
            || query.until.is_some()
            || query.errors.is_some()
            || segment.tags.is_some()
            || segment.files.is_some()
    }

    /// True if the filters examine more than that of a row in any segment.
    pub(super) fn must_check_any_facts(&self) -> bool {
        self.candidate_segments().any(|(number, _)| self.must_check_facts(number))
    }

    /// Returns the pages of all open segments that pass the filters and the skip index.
    pub(super) fn candidate_pages(&self) -> Result<Vec<CandidatePage>, StoreError> {
        let mut pages = Vec::new();
        for (number, _) in self.candidate_segments() {
            self.append_candidate_pages(number, &mut pages)?;
        }
        Ok(pages)
    }

    /// Appends the pages of the open segment at position `number` that pass the filters and the
    /// skip index.
    pub(super) fn append_candidate_pages(
        &self,
        number: usize,
        pages: &mut Vec<CandidatePage>,
    ) -> Result<(), StoreError> {
        let filter = &self.segments[number];
        if filter.candidate_blocks.is_empty() {
            return Ok(());
        }
        let segment = &self.snapshot.segments()[number];
        let blocks = segment.skip_index()?.blocks();
        let candidates: Vec<&Block> =
            filter.candidate_blocks.iter().map(|at| &blocks[*at]).collect();
        self.append_pages(number, segment, &candidates, pages)
    }

    /// Appends the pages of `blocks` (ascending) on which a requested session has rows.
    pub(super) fn append_pages(
        &self,
        number: usize,
        segment: &Segment,
        blocks: &[&Block],
        units: &mut Vec<CandidatePage>,
    ) -> Result<(), StoreError> {
        if blocks.is_empty() {
            return Ok(());
        }
        let indexed = self.segments[number].indexed_rows.as_ref();
        for page in segment.text_pages()? {
            let end = page.start + page.count;
            let mut rows = page.start..end;
            if indexed.is_some_and(|indexed| !rows.any(|row| indexed.possible.contains(row))) {
                continue;
            }

            let first = blocks.partition_point(|block| block.start + block.count <= page.start);
            let on_page = blocks[first..].iter().take_while(|block| block.start < end);
            let sort = self.request.query.sort;
            let keys = on_page.map(|block| highest_key(sort, block.times));
            let Some(time_key) = keys.max() else { continue };

            let mut spans = overlapping_spans(&segment.spans, page);
            if spans.any(|span| self.includes_session(span.session)) {
                units.push(CandidatePage { segment: number, page: *page, time_key, estimate: 0.0 });
            }
        }
        Ok(())
    }

    /// Returns true if the filters or the word index may exclude rows of a page.
    pub(super) fn may_exclude_rows(&self, unit: &CandidatePage) -> bool {
        self.has_row_filters(unit)
            || self.sessions.is_some()
            || self.segments[unit.segment].indexed_rows.is_some()
    }

    /// Returns true if filters other than the session filter examine each row.
    fn has_row_filters(&self, unit: &CandidatePage) -> bool {
        self.must_check_facts(unit.segment) || !self.request.event_types.is_empty()
    }

    /// Counts the matching rows of a page if the index alone can decide it. It can if the page
    /// is after the cursor, no filter examines single rows, no session has copied events, and no
    /// text needs to be read.
    pub(super) fn count_indexed_matches(&self, unit: &CandidatePage) -> Option<usize> {
        let indexed = self.segments[unit.segment].indexed_rows.as_ref()?;
        let is_after_cursor =
            self.request.after.as_ref().is_none_or(|after| unit.time_key < after.time);
        if self.has_row_filters(unit) || !is_after_cursor {
            return None;
        }

        let mut count = 0;
        for (span, rows) in self.session_rows(unit) {
            let session = &self.snapshot.sessions()[span.session];
            let hides_copies = session.replay_events > 0 && !self.request.query.includes_replay;
            let matching = indexed.certain.count_ones(rows.clone());
            if hides_copies || indexed.possible.count_ones(rows) != matching {
                return None;
            }
            count += matching;
        }
        Some(count)
    }

    /// Returns the requested sessions that have rows on a page, each with its range of rows.
    fn session_rows(
        &self,
        unit: &CandidatePage,
    ) -> impl Iterator<Item = (&'a SessionSpan, Range<usize>)> {
        let start = unit.page.start;
        let end = start + unit.page.count;
        let segment = &self.snapshot.segments()[unit.segment];
        let spans = overlapping_spans(&segment.spans, &unit.page);
        let wanted = spans.filter(|span| self.includes_session(span.session));
        wanted.map(move |span| (span, span.start.max(start)..(span.start + span.count).min(end)))
    }

    /// Returns the live rows of a page that pass every filter, ascending. If `only` is given
    /// (ascending), other positions are skipped.
    pub(super) fn candidate_rows(
        &self,
        unit: &CandidatePage,
        only: Option<&[usize]>,
    ) -> Result<Vec<CandidateRow>, StoreError> {
        let segment = &self.snapshot.segments()[unit.segment];
        let start = unit.page.start;
        let facts = segment.skip_index()?.read_facts(start..start + unit.page.count)?;
        let mut rows = Vec::new();
        for (span, span_rows) in self.session_rows(unit) {
            let check =
                |row: usize| self.check_row(unit.segment, span, row, facts.get(row - start)?);
            match only {
                Some(only) => {
                    let first = only.partition_point(|row| *row < span_rows.start);
                    let wanted = only[first..].iter().copied();
                    rows.extend(wanted.take_while(|row| *row < span_rows.end).filter_map(check));
                }
                None => rows.extend(span_rows.filter_map(check)),
            }
        }
        Ok(rows)
    }

    /// Returns the row at a position of the segment if it passes every filter.
    fn check_row(
        &self,
        segment: usize,
        span: &SessionSpan,
        row: usize,
        facts: RowFacts,
    ) -> Option<CandidateRow> {
        let indexed = self.segments[segment].indexed_rows.as_ref();
        if indexed.is_some_and(|indexed| !indexed.possible.contains(row)) {
            return None;
        }
        let offset = u32::try_from(row - span.start).unwrap_or(u32::MAX);
        let candidate = CandidateRow {
            segment,
            row,
            session: span.session,
            event_index: span.first_index.saturating_add(offset),
            facts,
            is_certain: indexed.is_some_and(|indexed| indexed.certain.contains(row)),
        };
        self.row_passes(&candidate).then_some(candidate)
    }

    /// Returns true if the facts of a row pass, and the row is after the cursor.
    fn row_passes(&self, row: &CandidateRow) -> bool {
        let after = self.request.after.as_ref();
        self.facts_pass(row.segment, &row.facts)
            && after.is_none_or(|after| self.compare_position(row, after).is_gt())
    }

    /// Returns true if the facts of a row of the segment at position `segment` pass.
    pub(super) fn facts_pass(&self, segment: usize, facts: &RowFacts) -> bool {
        let request = self.request;
        let query = request.query;
        request.since.is_none_or(|since| facts.time.is_some_and(|time| time >= since))
            && query.until.is_none_or(|until| facts.time.is_some_and(|time| time < until))
            && (query.includes_replay || !facts.is_replay)
            && query.errors.is_none_or(|wanted| wanted == (facts.is_error == Some(true)))
            && (request.event_types.is_empty() || request.event_types.contains(&facts.event_type))
            && self.segments[segment].row_passes(facts)
    }

    /// Compares the position of a row with `other` in the order of results, without building it.
    fn compare_position(&self, row: &CandidateRow, other: &ResultPosition) -> Ordering {
        let session_id = self.snapshot.sessions()[row.session].id();
        let sort = self.request.query.sort;
        other
            .time
            .cmp(&time_key(sort, row.facts.time))
            .then_with(|| session_id.cmp(&other.session_id))
            .then_with(|| other.event_index.cmp(&index_key(sort, row.event_index)))
    }

    /// Returns the position of a row in the order of results.
    pub(super) fn position_of(&self, row: &CandidateRow) -> ResultPosition {
        let session_id = self.snapshot.sessions()[row.session].id();
        let sort = self.request.query.sort;
        ResultPosition::new(sort, row.facts.time, session_id, row.event_index)
    }
}

/// Returns the spans that have rows on a page. Spans are ascending and do not overlap.
fn overlapping_spans<'s>(
    spans: &'s [SessionSpan],
    page: &TextPage,
) -> impl Iterator<Item = &'s SessionSpan> {
    let end = page.start + page.count;
    let first = spans.partition_point(|span| span.start + span.count <= page.start);
    spans[first..].iter().take_while(move |span| span.start < end)
}
