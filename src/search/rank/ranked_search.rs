//! Ranks events that match a question, best first. It scores the most promising pages, and on them
//! the rows that can reach the page of results.

use std::cmp::Ordering;

use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::estimate::Estimator;
use super::score::{Scorer, TermWeights, scored_form, type_weight};
use super::terms::ranked_terms;
use super::weigh::weigh_terms;
use super::word_presence::{RowWords, WordPresence};
use crate::base::parallel::in_parallel;
use crate::search::error::SearchError;
use crate::search::matcher::Matcher;
use crate::search::query::Query;
use crate::search::query::multi::AnyNeedleFinder;
use crate::search::request::{SearchHit, SearchRequest, SearchWork};
use crate::search::row_filter::{CandidatePage, CandidateRow, RowFilter};
use crate::search::scan::{PAGES_PER_TASK, read_hits, read_page, rows_at};
use crate::store::{PageReader, Snapshot, StoreError};

/// Number of pages that are scored in the first wave.
const FIRST_WAVE_PAGES: usize = 16;

/// Maximum number of pages in a wave.
const MAX_WAVE_PAGES: usize = 64;

/// Maximum number of pages with passing rows that are scored, the most promising ones, unless
/// all matches must be counted. With this limit the work of a question does not grow with the
/// store. These pages contain 99 in 100 of the ten best answers to the questions of [`Estimator`].
const MAX_SCORED_PAGES: usize = 128;

/// Number of pages whose scores a core estimates at once.
const ESTIMATED_PAGES_AT_ONCE: usize = 1024;

/// Returns true for texts of users and agents, which score highest.
fn is_message(kind: EventType) -> bool {
    matches!(kind, EventType::User | EventType::Message)
}

/// The end of a ranked page of results. It carries the weights, so that every page of one search
/// ranks alike, whatever was ingested in between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedPosition {
    weights: TermWeights,
    /// The bits of the last score, because JSON would round the number.
    score: u64,
    /// The session and the event of the last match.
    session_id: String,
    event_index: u32,
}

/// A page of ranked matches.
pub struct RankedPage {
    pub hits: Vec<SearchHit>,
    /// For each hit, the position after it, from which a next page can start.
    pub ends: Vec<RankedPosition>,
    /// True if there are matches after this page.
    pub has_more: bool,
    /// Number of matches seen, without those of earlier pages.
    pub matched: usize,
    /// True if everything was searched, so that `matched` is exact.
    pub is_complete: bool,
    /// True if the deadline ended the search.
    pub is_timed_out: bool,
    /// The stems of the question's words that no selected row has, as far as the index shows.
    pub absent_stems: Vec<String>,
    pub work: SearchWork,
}

/// The conditions for a row to be scored and kept.
struct ScoreConditions {
    /// The score that a row must reach.
    threshold: f64,
    /// Essential words, one of which must occur in texts of users and agents; `None` means no such
    /// condition.
    message_words: Option<AnyNeedleFinder>,
    /// Essential words, one of which must occur in other texts; `None` means no such condition.
    output_words: Option<AnyNeedleFinder>,
}

/// A match and its score.
#[derive(Clone, Copy)]
struct ScoredRow {
    row: CandidateRow,
    score: f64,
    confidence: f64,
}

/// Returns true if a query has a word to rank by.
pub fn can_rank(query: &Query) -> bool {
    !ranked_terms(query).is_empty()
}

/// The state of a ranking in progress.
struct Ranking<'a> {
    filter: RowFilter<'a>,
    scorer: Scorer,
    presence: WordPresence,
    /// The terms that must or must not occur in addition to the ranked words.
    matcher: Matcher,
    /// True if a term must occur.
    has_required_term: bool,
    /// The end of the page before.
    after: Option<&'a RankedPosition>,
    /// The best matches until now, best first: at most one more than the limit of the request.
    best: Vec<ScoredRow>,
    matched: usize,
    is_timed_out: bool,
    work: SearchWork,
}

/// The matches on some pages.
#[derive(Default)]
struct ScoredPages {
    candidates: Vec<ScoredRow>,
    /// Number of pages with rows that pass the filters.
    with_rows: usize,
    /// True if the scoring was told to halt.
    is_halted: bool,
    work: SearchWork,
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

    let terms = ranked_terms(request.query);
    let mut presence = WordPresence::new(&filter, &terms)?;
    let mut work = filter.work;
    let weights = match after {
        Some(end) if end.weights.terms.len() == terms.len() => end.weights.clone(),
        _ => weigh_terms(&filter, &terms, &presence, &mut work)?,
    };
    let scorer = Scorer::new(terms, weights);
    presence.remove_weightless_words(&scorer);

    let has_required_term = has_required_term(&required);
    let units = estimate_pages(&filter, &scorer, &presence, has_required_term)?;
    let mut ranking = Ranking {
        filter,
        scorer,
        presence,
        matcher: Matcher::new(&required),
        has_required_term,
        after,
        best: Vec::new(),
        matched: 0,
        is_timed_out: false,
        work,
    };
    let has_ranked_all = ranking.rank_pages(&units, stop)?;
    if stop() {
        return Err(SearchError::Cancelled);
    }
    // Rows below the threshold are not counted. There is no threshold if all matches must be
    // counted.
    let has_counted_all = request.query.must_count_all || ranking.best.len() <= request.limit;
    let is_complete = !ranking.is_timed_out && has_counted_all && has_ranked_all;
    Ok(ranking.into_page(snapshot, is_complete)?)
}

impl Ranking<'_> {
    /// Returns the score that a row must reach to be among the best found until now.
    fn threshold(&self) -> f64 {
        let request = self.filter.request;
        if request.query.must_count_all {
            return 0.0;
        }
        self.best.get(request.limit).map_or(0.0, |worst| worst.score)
    }

    /// Returns the conditions for rows to be among the best found until now.
    fn score_conditions(&self) -> ScoreConditions {
        let threshold = self.threshold();
        if self.has_required_term {
            // A required term alone is enough for a row to be found.
            return ScoreConditions { threshold, message_words: None, output_words: None };
        }
        let output_threshold = threshold / type_weight(EventType::Reasoning);
        ScoreConditions {
            threshold,
            message_words: self.scorer.essential_words(threshold),
            output_words: self.scorer.essential_words(output_threshold),
        }
    }

    /// Ranks the rows of these pages, which are sorted most promising first. Returns false if it
    /// skipped the remaining pages.
    fn rank_pages(
        &mut self,
        units: &[CandidatePage],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, StoreError> {
        let request = self.filter.request;
        let max_pages = if request.query.must_count_all { usize::MAX } else { MAX_SCORED_PAGES };
        let mut ranked_pages = 0;
        let mut wave = FIRST_WAVE_PAGES;
        // The number of scored pages with rows that pass the filters.
        let mut pages_with_rows = 0;
        while ranked_pages < units.len() && !self.is_timed_out {
            if pages_with_rows >= max_pages {
                return Ok(false);
            }
            let conditions = self.score_conditions();
            let count = wave.min(FIRST_WAVE_PAGES.max(max_pages - pages_with_rows));
            let end = units.len().min(ranked_pages + count);
            let parts = in_parallel(&units[ranked_pages..end], PAGES_PER_TASK, |units| {
                self.score_pages(units, &conditions, &|| stop() || request.is_past_deadline())
            })?;
            for part in parts {
                pages_with_rows += part.with_rows;
                self.is_timed_out |= part.is_halted;
                self.work += part.work;
                self.matched += part.candidates.len();
                self.best.extend(part.candidates);
            }

            self.best.sort_by(|a, b| compare_scored_rows(self.filter.snapshot, a, b));
            self.best.truncate(request.limit + 1);
            ranked_pages = end;
            wave = MAX_WAVE_PAGES.min(wave * 2);
        }
        Ok(true)
    }

    /// Scores the rows of some pages, until `halt` returns true.
    fn score_pages(
        &self,
        units: &[CandidatePage],
        conditions: &ScoreConditions,
        halt: &dyn Fn() -> bool,
    ) -> Result<ScoredPages, StoreError> {
        let mut scored = ScoredPages::default();
        let mut reader = PageReader::default();
        let mut held = Vec::new();
        let mut buffer = Vec::new();
        let mut lower = Vec::new();
        for unit in units {
            if halt() {
                scored.is_halted = true;
                return Ok(scored);
            }
            let first = unit.page.start;
            let mut rows = self.filter.candidate_rows(unit, None)?;
            scored.with_rows += usize::from(!rows.is_empty());
            self.presence.fill_row_words(unit, &mut held);
            rows.retain(|row| self.may_reach(conditions.threshold, row, held.get(row.row - first)));
            if rows.is_empty() {
                continue;
            }

            let page = read_page(self.filter.snapshot, unit, &mut reader, &mut scored.work)?;
            let mut matching = Vec::new();
            let places = rows.iter().map(|row| row.row - first);
            self.matcher
                .find_rows(&page, places, &mut buffer, &mut |row| matching.push(first + row));
            for row in rows_at(rows, &matching) {
                let text = page.get(row.row - first);
                scored.candidates.extend(self.score_row(row, text, conditions, &mut lower));
            }
        }
        Ok(scored)
    }

    /// Returns true if the score of a row may reach `threshold`, judging by its possible words.
    fn may_reach(&self, threshold: f64, row: &CandidateRow, held: Option<&RowWords>) -> bool {
        let Some(held) = held else { return true };
        // Equal scores are ordered by id, so this row may still come first.
        held.max_score(&self.scorer, row.facts.event_type, row.facts.time) >= threshold
    }

    /// Scores a row. Returns `None` if it is not found, scores below the threshold of `conditions`, or is
    /// on an earlier page. `lower` is a scratch buffer.
    fn score_row(
        &self,
        row: CandidateRow,
        text: &[u8],
        conditions: &ScoreConditions,
        lower: &mut Vec<u8>,
    ) -> Option<ScoredRow> {
        let kind = row.facts.event_type;
        let text = scored_form(text, lower, self.scorer.is_ascii);
        let essential =
            if is_message(kind) { &conditions.message_words } else { &conditions.output_words };
        if essential.as_ref().is_some_and(|essential| !essential.is_match(&text)) {
            return None;
        }

        let score = self.scorer.score_text(&text, kind, row.facts.time);
        let candidate = ScoredRow { row, score: score.score, confidence: score.confidence };
        let is_found = candidate.score > 0.0 || self.has_required_term;
        let is_after = self.after.is_none_or(|end| comes_after(&self.filter, &candidate, end));
        (candidate.score >= conditions.threshold && is_found && is_after).then_some(candidate)
    }

    /// Reads the texts of the results and builds the page.
    fn into_page(
        mut self,
        snapshot: &Snapshot,
        is_complete: bool,
    ) -> Result<RankedPage, StoreError> {
        let limit = self.filter.request.limit;
        let more = self.best.len() > limit;
        self.best.truncate(limit);
        let rows: Vec<CandidateRow> = self.best.iter().map(|candidate| candidate.row).collect();
        let mut hits = read_hits(snapshot, &rows, &mut |text| self.scorer.find_best_place(text))?;
        for (hit, candidate) in hits.iter_mut().zip(&self.best) {
            hit.confidence = Some((candidate.confidence * 100.0).round() / 100.0);
        }
        let positions = self.best.iter().map(|candidate| RankedPosition {
            weights: self.scorer.weights.clone(),
            score: candidate.score.to_bits(),
            session_id: session_id(snapshot, candidate).to_owned(),
            event_index: candidate.row.event_index,
        });
        let terms = self.scorer.terms.iter().zip(&self.presence.terms);
        let absent = terms.filter(|(_, occurs)| occurs.is_absent());
        let absent_stems = absent.map(|(term, _)| term.stem.clone()).collect();
        Ok(RankedPage {
            hits,
            ends: positions.collect(),
            has_more: more,
            matched: self.matched,
            is_complete,
            is_timed_out: self.is_timed_out,
            absent_stems,
            work: self.work,
        })
    }
}

/// Orders candidates: best first, then by session, then latest event first.
fn compare_scored_rows(snapshot: &Snapshot, a: &ScoredRow, b: &ScoredRow) -> Ordering {
    (b.score.total_cmp(&a.score))
        .then_with(|| session_id(snapshot, a).cmp(session_id(snapshot, b)))
        .then_with(|| b.row.event_index.cmp(&a.row.event_index))
}

fn session_id<'s>(snapshot: &'s Snapshot, candidate: &ScoredRow) -> &'s str {
    &snapshot.sessions()[candidate.row.session].session_id
}

/// Returns the pages that may contain a match, most promising first.
fn estimate_pages(
    filter: &RowFilter<'_>,
    scorer: &Scorer,
    presence: &WordPresence,
    has_required_term: bool,
) -> Result<Vec<CandidatePage>, StoreError> {
    let units = filter.candidate_pages()?;
    let estimator = Estimator::new(scorer);
    let wanted = &filter.request.event_types;
    let parts = in_parallel(&units, ESTIMATED_PAGES_AT_ONCE, |units| {
        let mut held = Vec::new();
        let mut estimated = units.to_vec();
        for unit in &mut estimated {
            presence.fill_row_words(unit, &mut held);
            let mut best = 0.0;
            for row in &held {
                if wanted.is_empty() || wanted.contains(&row.event_type()) {
                    best = f64::max(best, row.estimate_score(&estimator));
                }
            }
            unit.estimate = best * scorer.age_factor(unit.time_key);
        }
        Ok::<Vec<CandidatePage>, StoreError>(estimated)
    })?;

    let mut estimated_units = parts.concat();
    estimated_units.retain(|unit| unit.estimate > 0.0 || has_required_term);
    estimated_units.sort_by(|a, b| {
        (b.estimate.total_cmp(&a.estimate))
            .then(b.time_key.cmp(&a.time_key))
            .then_with(|| (a.segment, a.page.start).cmp(&(b.segment, b.page.start)))
    });
    Ok(estimated_units)
}

/// Returns true if a term must occur, so that an event is found even without a word of the
/// question.
fn has_required_term(required: &Query) -> bool {
    required.clauses.iter().any(|clause| !clause.is_excluded)
}

/// Returns true if a candidate comes after the end of the page before, in the order of results.
fn comes_after(filter: &RowFilter<'_>, candidate: &ScoredRow, end: &RankedPosition) -> bool {
    let order = (f64::from_bits(end.score).total_cmp(&candidate.score))
        .then_with(|| session_id(filter.snapshot, candidate).cmp(&end.session_id))
        .then_with(|| end.event_index.cmp(&candidate.row.event_index));
    order.is_gt()
}
