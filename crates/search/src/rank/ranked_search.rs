//! Ranks the events that have words of a question, best first.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::candidates::{Candidates, find_candidates};
use super::event_scorer::{EventScorer, RankedEvent, type_weight};
use super::seen_events::{RankedPosition, SeenEvents};
use super::terms::ranked_question;
use crate::by_bound::ByBound;
use crate::error::SearchError;
use crate::indexed_rows::find_text_rows;
use crate::matcher::Matcher;
use crate::query::Query;
use crate::request::{SearchHit, SearchRequest, SearchWork};
use crate::row_filter::{CandidateRow, RowFilter};
use crate::scan::read_hits;
use crate::sessions::{
    AskedRows, Averages, ScoredEvent, SegmentHits, SessionQuestion, TermPair, Totals, bound_pairs,
    collect_parts, find_best_place, find_hits, find_places, group_parts, read_texts, weigh_pairs,
};
use base::parallel::in_parallel;
use store::{Snapshot, StoreError};

/// Fewest of the best events whose texts are read for words that are near each other.
const MIN_READ_EVENTS: usize = 40;

/// What words that are near each other count, relative to the words themselves.
const PAIR_WEIGHT: f32 = 1.0;

/// The share of the score that fades with age. It decides between events that are as good otherwise.
const FADING_SHARE: f32 = 0.02;

/// The half-life of [`FADING_SHARE`] in microseconds: 30 days.
const HALF_LIFE_US: f32 = 30.0 * 86_400e6;

/// Number of sessions that a core scores at once.
const SESSIONS_AT_ONCE: usize = 64;

/// A page of ranked matches.
#[derive(Default)]
pub struct RankedPage {
    pub hits: Vec<SearchHit>,
    /// True if there are matches after this page.
    pub has_more: bool,
    /// Number of matches, without those of earlier pages.
    pub matched: usize,
    /// True if everything was searched, so that `matched` is exact.
    pub is_complete: bool,
    /// True if the deadline ended the search.
    pub is_timed_out: bool,
    /// The words of the question that no searched event has, as they were written.
    pub absent_words: Vec<String>,
    pub work: SearchWork,
    /// The events of earlier pages.
    seen: SeenEvents,
}

impl RankedPage {
    /// Returns about how many bytes the events of earlier pages take in a cursor.
    pub fn cursor_bytes(&self) -> usize {
        self.seen.cursor_bytes()
    }

    /// Returns the position after the first `count` hits, from which a next page can start.
    pub fn position_after(&self, count: usize, snapshot: &Snapshot) -> RankedPosition {
        let mut seen = self.seen.clone();
        for hit in &self.hits[..count] {
            seen.add(snapshot.sessions()[hit.session].id(), hit.event_index);
        }
        seen.position()
    }
}

/// Runs the query, best first; `after` is the end of the page before.
pub fn search_ranked(
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
    after: Option<&RankedPosition>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<RankedPage, SearchError> {
    let mut required = request.query.clone();
    required.clauses.retain(|clause| !clause.is_optional || clause.is_excluded);
    let filter = RowFilter::new(snapshot, request, &required)?;
    let halt = || stop() || request.is_past_deadline();

    let Some(question) = WeighedQuestion::weigh(&filter, &halt)? else {
        if stop() {
            return Err(SearchError::Cancelled);
        }
        return Ok(RankedPage { is_timed_out: true, ..RankedPage::default() });
    };
    let seen = SeenEvents::until(after);
    let candidates = if required.clauses.is_empty() && !filter.must_check_any_facts() {
        question.find_best_candidates(&filter, &seen)?
    } else {
        let events = question.score_events(&filter)?;
        let mut candidates = find_candidates(&filter, &required, events, &halt)?;
        candidates
            .events
            .retain(|ranked| !seen.contains(snapshot, ranked.session(), ranked.event.event_index));
        candidates.matched = candidates.events.len();
        candidates
    };
    if stop() {
        return Err(SearchError::Cancelled);
    }

    let Candidates { events, matched, is_complete, is_halted, work } = candidates;
    let best = question.rank_best(&filter, events)?;
    let has_more = matched > best.len() && !seen.is_full();
    let mut page = RankedPage {
        has_more,
        matched,
        is_complete,
        is_timed_out: is_halted,
        absent_words: question.totals.absent_words(&question.question),
        work: filter.work,
        seen,
        hits: question.read_hits(snapshot, &required, &best)?,
    };
    page.work += work;
    Ok(page)
}

/// A question, where its words occur, and how much each of them counts.
struct WeighedQuestion {
    question: SessionQuestion,
    hits: Vec<SegmentHits>,
    totals: Totals,
    averages: Averages,
}

/// An event of the page.
#[derive(Clone, Copy)]
struct BestEvent {
    row: CandidateRow,
    score: f32,
    confidence: f32,
}

impl WeighedQuestion {
    /// Finds the words of a query. Returns `None` if `halt` returned true.
    fn weigh(
        filter: &RowFilter<'_>,
        halt: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Self>, StoreError> {
        let snapshot = filter.snapshot;
        let asked = AskedRows {
            sessions: filter.sessions.as_ref(),
            until: None,
            includes_copies: filter.request.query.includes_replay,
        };
        let mut question = ranked_question(filter.request.query);
        let found = find_hits(snapshot, &question.terms, asked, halt)?;
        let Some((mut hits, mut totals)) = found else { return Ok(None) };

        let mut parts_of_words = Vec::new();
        for position in totals.absent_terms() {
            let term = &question.terms[position];
            if term.is_indexed && is_part_of_word(filter, &term.word.to_ascii_lowercase())? {
                parts_of_words.push(position);
            }
        }
        if !parts_of_words.is_empty() {
            question.search_parts(&parts_of_words);
            let found = find_hits(snapshot, &question.terms, asked, halt)?;
            let Some((found_hits, found_totals)) = found else { return Ok(None) };
            hits = found_hits;
            totals = found_totals;
        }
        let searched = asked.sessions.map_or(snapshot.sessions().len(), |wanted| wanted.len());
        let averages = totals.averages(&question.terms, searched);
        Ok(Some(Self { question, hits, totals, averages }))
    }

    fn scorer<'a>(&'a self, filter: &'a RowFilter<'_>) -> EventScorer<'a> {
        EventScorer {
            snapshot: filter.snapshot,
            question: &self.question,
            averages: &self.averages,
            totals: &self.totals,
            event_types: &filter.request.event_types,
        }
    }

    /// Scores all events that have words of the question.
    fn score_events(&self, filter: &RowFilter<'_>) -> Result<Vec<Vec<RankedEvent>>, StoreError> {
        let scorer = self.scorer(filter);
        let parts = collect_parts(&self.hits);
        in_parallel(&group_parts(&parts), SESSIONS_AT_ONCE, |sessions| {
            Ok(sessions.iter().flat_map(|parts| scorer.score_session(parts)).collect())
        })
    }

    /// Counts the events that have words of the question, and scores those of the sessions that may be on
    /// the page. Their facts need not be checked.
    fn find_best_candidates(
        &self,
        filter: &RowFilter<'_>,
        seen: &SeenEvents,
    ) -> Result<Candidates, StoreError> {
        let scorer = self.scorer(filter);
        let parts = collect_parts(&self.hits);
        let bounds = in_parallel(&group_parts(&parts), SESSIONS_AT_ONCE, |sessions| {
            let mut bounds = Vec::with_capacity(sessions.len());
            for parts in sessions {
                let session = parts[0].session();
                let bound = scorer.bound_session(parts, &|segment, event_index| {
                    !filter.is_excluded(segment)
                        && !seen.contains(filter.snapshot, session, event_index)
                });
                bounds.push((bound, *parts));
            }
            Ok::<_, StoreError>(bounds)
        })?;

        let mut best = Candidates { is_complete: true, ..Candidates::default() };
        let mut sessions = Vec::new();
        for (bound, parts) in bounds.into_iter().flatten() {
            best.matched += bound.matched;
            if bound.matched > 0 {
                sessions.push((bound.score, parts));
            }
        }
        let mut others = ByBound::new(sessions);
        while let Some(bound) = others.next_bound() {
            let certain = best.events.iter().filter(|ranked| ranked.event.score > bound);
            if certain.take(read_events(filter)).count() == read_events(filter) {
                break;
            }
            for mut events in others.score_next(|parts| scorer.score_session(parts))? {
                events.retain(|ranked| {
                    let event = &ranked.event;
                    !filter.is_excluded(event.segment())
                        && !seen.contains(filter.snapshot, ranked.session(), event.event_index)
                });
                best.events.extend(events);
            }
            keep_best(filter, &mut best.events);
        }
        Ok(best)
    }

    /// Returns the best events, best first: as many as the request asks for.
    fn rank_best(
        &self,
        filter: &RowFilter<'_>,
        mut events: Vec<RankedEvent>,
    ) -> Result<Vec<BestEvent>, StoreError> {
        let snapshot = filter.snapshot;
        keep_best(filter, &mut events);
        events.sort_by(|a, b| compare_events(snapshot, a, b));
        self.add_pairs(snapshot, &mut events)?;

        let segments = filter.candidate_segments();
        let newest = segments.filter_map(|(_, segment)| segment.entry.times).map(|(_, end)| end);
        let newest = newest.max().unwrap_or(0);
        let mut best = Vec::new();
        for ranked in &events {
            let Some(row) = read_row(snapshot, ranked)? else { continue };
            let score = ranked.event.score * age_factor(newest, row.facts.time);
            best.push(BestEvent { row, score, confidence: ranked.confidence });
        }
        // Events that score alike keep their order.
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
        best.truncate(filter.request.limit);
        Ok(best)
    }

    /// Adds to events in which words are near each other that follow each other in the question.
    fn add_pairs(&self, snapshot: &Snapshot, events: &mut [RankedEvent]) -> Result<(), StoreError> {
        let weights = &self.averages.weights;
        let pairs = TermPair::collect_pairs(&self.totals.exact);
        let mut promising: Vec<ScoredEvent> = Vec::new();
        let mut positions = Vec::new();
        for (position, ranked) in events.iter().enumerate() {
            if bound_pairs(ranked.event.exact, &pairs, weights) > 0.0 {
                promising.push(ranked.event);
                positions.push(position);
            }
        }
        let values = read_texts(snapshot, &promising, |event, text| {
            let places = find_places(&self.question, text);
            weigh_pairs(&places, &pairs, weights) * type_weight(event.event_type)
        })?;
        for (position, value) in values {
            let event = &mut events[positions[position]].event;
            event.score += PAIR_WEIGHT * value / self.averages.total_weight();
        }
        Ok(())
    }

    /// Reads the texts of the best events.
    fn read_hits(
        &self,
        snapshot: &Snapshot,
        required: &Query,
        best: &[BestEvent],
    ) -> Result<Vec<SearchHit>, StoreError> {
        let rows: Vec<CandidateRow> = best.iter().map(|event| event.row).collect();
        let matcher = Matcher::new(required);
        let mut hits = read_hits(snapshot, &rows, |text| {
            find_best_place(&self.question, &self.averages.weights, text)
                .or_else(|| matcher.find_best_place(text))
        })?;
        for (hit, event) in hits.iter_mut().zip(best) {
            hit.confidence = Some((f64::from(event.confidence) * 100.0).round() / 100.0);
        }
        Ok(hits)
    }
}

/// Returns true if a word of a searched event contains `letters`, which are lowercase ASCII.
fn is_part_of_word(filter: &RowFilter<'_>, letters: &str) -> Result<bool, StoreError> {
    for (_, segment) in filter.candidate_segments() {
        let lookup = segment.skip_index()?.word_lookup();
        if find_text_rows(&lookup, letters)?.is_some_and(|rows| !rows.certain.is_clear()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the number of best events whose texts are read for a page.
fn read_events(filter: &RowFilter<'_>) -> usize {
    MIN_READ_EVENTS.max(2 * filter.request.limit)
}

/// Keeps the best events, as many as are read for a page, in no particular order.
fn keep_best(filter: &RowFilter<'_>, events: &mut Vec<RankedEvent>) {
    let best_first = |a: &RankedEvent, b: &RankedEvent| compare_events(filter.snapshot, a, b);
    if filter.request.one_per_session {
        keep_best_of_sessions(events, best_first);
    }
    let read = read_events(filter);
    if events.len() > read {
        events.select_nth_unstable_by(read, best_first);
        events.truncate(read);
    }
}

/// Keeps the best event of each session.
fn keep_best_of_sessions(
    events: &mut Vec<RankedEvent>,
    best_first: impl Fn(&RankedEvent, &RankedEvent) -> Ordering,
) {
    let mut best: HashMap<usize, RankedEvent> = HashMap::new();
    for event in events.drain(..) {
        let kept = best.entry(event.session()).or_insert(event);
        if best_first(&event, kept).is_lt() {
            *kept = event;
        }
    }
    events.extend(best.into_values());
}

/// Orders events: best first, then by session, then latest event first.
fn compare_events(snapshot: &Snapshot, a: &RankedEvent, b: &RankedEvent) -> Ordering {
    let id = |ranked: &RankedEvent| snapshot.sessions()[ranked.session()].id();
    (b.event.score.total_cmp(&a.event.score))
        .then_with(|| id(a).cmp(id(b)))
        .then_with(|| b.event.event_index.cmp(&a.event.event_index))
}

/// Returns the row of an event with its facts.
fn read_row(snapshot: &Snapshot, ranked: &RankedEvent) -> Result<Option<CandidateRow>, StoreError> {
    let event = &ranked.event;
    let index = snapshot.segments()[event.segment()].skip_index()?;
    let facts = index.read_facts(event.row()..event.row() + 1)?.get(0);
    Ok(facts.map(|facts| CandidateRow {
        segment: event.segment(),
        row: event.row(),
        session: ranked.session(),
        event_index: event.event_index,
        facts,
        is_certain: false,
    }))
}

/// Returns the factor that lowers the score of older events, between 1 minus [`FADING_SHARE`] and 1.
fn age_factor(newest: i64, time: Option<i64>) -> f32 {
    let age = match time {
        Some(time) => newest.saturating_sub(time).max(0) as f32,
        None => f32::INFINITY,
    };
    1.0 - FADING_SHARE + FADING_SHARE * (-age / HALF_LIFE_US).exp2()
}
