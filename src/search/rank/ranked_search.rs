//! Ranks events that match a question, best first. It scores the most promising pages, and on them
//! the rows that can reach the page of results.

use std::cmp::Ordering;
use std::time::Instant;

use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::estimate::Estimator;
use super::score::{Scorer, Weights, scored_form, terms, type_weight};
use super::weigh::weigh;
use super::word_presence::Presence;
use crate::base::parallel::in_parallel;
use crate::search::error::SearchError;
use crate::search::matcher::Matcher;
use crate::search::query::Query;
use crate::search::query::multi::Multi;
use crate::search::request::{Hit, Request, Work};
use crate::search::row_filter::{Row, RowFilter, Unit};
use crate::search::scan::{SHARE, among, hits, read};
use crate::store::{PageReader, Snapshot, StoreError};

/// Number of pages that are scored at once: the first and the largest wave.
const FIRST_WAVE: usize = 16;
const LARGEST_WAVE: usize = 64;

/// Maximum number of pages with passing rows that are scored, the most promising ones, unless
/// everything is to be counted. With this limit the work of a question does not grow with the
/// store. On this many pages are 99 in 100 of the ten best answers to the questions of
/// [`Estimator`].
const MOST_PAGES: usize = 128;

/// Number of pages whose scores a core estimates at once.
const ESTIMATED_AT_ONCE: usize = 1024;

/// Returns true for texts of users and agents, which score highest.
fn is_said(kind: EventType) -> bool {
    matches!(kind, EventType::User | EventType::Message)
}

/// The end of a ranked page of results. It carries the weights, so that every page of one search
/// ranks alike, whatever was ingested in between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    weights: Weights,
    /// The bits of the last score, because JSON would round the number.
    score: u64,
    session_id: String,
    event_index: u32,
}

/// A page of ranked matches.
pub struct RankedFound {
    pub hits: Vec<Hit>,
    /// For each hit, the position after it, from which a next page can start.
    pub ends: Vec<Ranked>,
    pub more: bool,
    pub matched: usize,
    pub complete: bool,
    pub timed_out: bool,
    pub work: Work,
}

/// The conditions for a row to be scored and kept.
struct Bar {
    threshold: f64,
    /// Essential words: one of `said` must occur in texts of users and agents, one of `printed` in
    /// others; `None` means no such condition.
    said: Option<Multi>,
    printed: Option<Multi>,
}

/// A match and its score.
#[derive(Clone, Copy)]
struct Candidate {
    row: Row,
    score: f64,
    confidence: f64,
}

/// Returns true if a query has a word to rank by.
pub fn can_rank(query: &Query) -> bool {
    !terms(query).is_empty()
}

/// The state of a ranking in progress.
struct Ranking<'a> {
    gate: RowFilter<'a>,
    scorer: Scorer,
    presence: Presence,
    /// The terms that must or must not occur in addition to the ranked words.
    matcher: Matcher,
    /// True if a term must occur.
    insists: bool,
    after: Option<&'a Ranked>,
    best: Vec<Candidate>,
    matched: usize,
    timed_out: bool,
    work: Work,
}

/// Runs the query, best first; `after` is the end of the page before.
pub fn ranked(
    snapshot: &Snapshot,
    request: &Request<'_>,
    after: Option<&Ranked>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<RankedFound, SearchError> {
    let insisted =
        request.query.clauses.iter().filter(|clause| !clause.optional || clause.excluded);
    let insisted = Query { clauses: insisted.cloned().collect(), ..request.query.clone() };
    let gate = RowFilter::new(snapshot, request, &insisted)?;
    let terms = terms(request.query);
    let mut presence = Presence::new(&gate, &terms)?;
    let mut work = gate.work;
    let weights = match after {
        Some(end) if end.weights.terms.len() == terms.len() => end.weights.clone(),
        _ => weigh(&gate, &terms, &presence, &mut work)?,
    };
    let scorer = Scorer::new(terms, weights);
    presence.forget_weightless(&scorer);
    let units = units(&gate, &scorer, &presence, &insisted)?;
    let matcher = Matcher::new(&insisted);
    let (best, matched, timed_out) = (Vec::new(), 0, false);
    let insists = insists(&insisted);
    let mut ranking =
        Ranking { gate, scorer, presence, matcher, insists, after, best, matched, timed_out, work };
    let whole = ranking.run(&units, stop)?;
    if stop() {
        return Err(SearchError::Cancelled);
    }
    // Rows below the threshold are not counted; there is no threshold if everything is to be
    // counted.
    let counted = request.query.exact_total || ranking.best.len() <= request.limit;
    let complete = !ranking.timed_out && counted && whole;
    Ok(ranking.found(snapshot, complete)?)
}

impl Ranking<'_> {
    /// Returns the score that a row must reach to be among the best found until now.
    fn threshold(&self) -> f64 {
        let request = self.gate.request;
        let worst = self.best.get(request.limit).filter(|_| !request.query.exact_total);
        worst.map_or(0.0, |worst| worst.score)
    }

    /// Ranks the rows of these pages, which are sorted most promising first. Returns false if the
    /// rest was skipped.
    fn run(
        &mut self,
        units: &[Unit],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, StoreError> {
        let (limit, deadline) = (self.gate.request.limit, self.gate.request.deadline);
        let halt = || stop() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let (mut done, mut wave, mut open) = (0, FIRST_WAVE, 0);
        let most = if self.gate.request.query.exact_total { usize::MAX } else { MOST_PAGES };
        while done < units.len() && !self.timed_out {
            if open >= most {
                return Ok(false);
            }
            let threshold = self.threshold();
            // A required term alone is enough for a row to be found.
            let essential = |threshold: f64| {
                (!self.insists).then(|| self.scorer.essential(threshold)).flatten()
            };
            let bar = Bar {
                threshold,
                said: essential(threshold),
                printed: essential(threshold / type_weight(EventType::Reasoning)),
            };
            let end = units.len().min(done + wave.min(FIRST_WAVE.max(most - open)));
            let parts =
                in_parallel(&units[done..end], SHARE, |units| self.score(units, &bar, &halt))?;
            for (candidates, work, pages, whole) in parts {
                open += pages;
                self.timed_out |= !whole;
                self.work += work;
                self.matched += candidates.len();
                self.best.extend(candidates);
            }
            self.best.sort_by(|a, b| order(self.gate.snapshot, a, b));
            self.best.truncate(limit + 1);
            done = end;
            wave = LARGEST_WAVE.min(wave * 2);
        }
        Ok(true)
    }

    /// Scores the rows of some pages that have an essential word. The number is the count of pages
    /// with rows that pass the filters; the flag is false if the scan was told to halt.
    fn score(
        &self,
        units: &[Unit],
        bar: &Bar,
        halt: &dyn Fn() -> bool,
    ) -> Result<(Vec<Candidate>, Work, usize, bool), StoreError> {
        let (mut found, mut work, mut open) = (Vec::new(), Work::default(), 0);
        let (mut reader, mut lower, mut buffer) = (PageReader::default(), Vec::new(), Vec::new());
        let mut held = Vec::new();
        for unit in units {
            if halt() {
                return Ok((found, work, open, false));
            }
            let mut rows = self.gate.rows(unit, None)?;
            open += usize::from(!rows.is_empty());
            self.presence.rows(unit, &mut held);
            rows.retain(|row| {
                let (held, facts) = (held.get(row.row - unit.page.start), &row.facts);
                let bound = held.map(|held| held.bound(&self.scorer, facts.event_type, facts.time));
                // Equal scores are ordered by id, so this row may still come first.
                bound.is_none_or(|bound| bound >= bar.threshold)
            });
            if rows.is_empty() {
                continue;
            }
            let page = read(self.gate.snapshot, unit, &mut reader, &mut work)?;
            let (first, mut matching) = (unit.page.start, Vec::new());
            let places = rows.iter().map(|row| row.row - first);
            self.matcher.rows(&page, places, &mut buffer, &mut |row| matching.push(first + row));
            for row in among(rows, &matching) {
                let kind = row.facts.event_type;
                let text = page.get(row.row - first);
                let text = scored_form(text, &mut lower, self.scorer.ascii);
                let essential = if is_said(kind) { &bar.said } else { &bar.printed };
                if essential.as_ref().is_some_and(|essential| !essential.is_match(&text)) {
                    continue;
                }
                let score = self.scorer.score(&text, kind, row.facts.time);
                let (score, confidence) = (score.score, score.confidence);
                let candidate = Candidate { row, score, confidence };
                let shown = self.after.is_some_and(|end| !comes_after(&self.gate, &candidate, end));
                if score >= bar.threshold && (score > 0.0 || self.insists) && !shown {
                    found.push(candidate);
                }
            }
        }
        Ok((found, work, open, true))
    }

    /// Builds the page of results.
    fn found(mut self, snapshot: &Snapshot, complete: bool) -> Result<RankedFound, StoreError> {
        let limit = self.gate.request.limit;
        let more = self.best.len() > limit;
        self.best.truncate(limit);
        let rows: Vec<Row> = self.best.iter().map(|candidate| candidate.row).collect();
        let mut hits = hits(snapshot, &rows, &mut |text| self.scorer.place(text))?;
        for (hit, candidate) in hits.iter_mut().zip(&self.best) {
            hit.confidence = Some((candidate.confidence * 100.0).round() / 100.0);
        }
        let ends = self.best.iter().map(|candidate| Ranked {
            weights: self.scorer.weights.clone(),
            score: candidate.score.to_bits(),
            session_id: snapshot.sessions()[candidate.row.session].session_id.clone(),
            event_index: candidate.row.event_index,
        });
        Ok(RankedFound {
            hits,
            ends: ends.collect(),
            more,
            matched: self.matched,
            complete,
            timed_out: self.timed_out,
            work: self.work,
        })
    }
}

/// Orders candidates: best first, then by session, then latest event first.
fn order(snapshot: &Snapshot, a: &Candidate, b: &Candidate) -> Ordering {
    let id = |c: &Candidate| &snapshot.sessions()[c.row.session].session_id;
    (b.score.total_cmp(&a.score))
        .then_with(|| id(a).cmp(id(b)))
        .then_with(|| b.row.event_index.cmp(&a.row.event_index))
}

/// Returns the pages that may contain a match, most promising first.
fn units(
    gate: &RowFilter<'_>,
    scorer: &Scorer,
    presence: &Presence,
    insisted: &Query,
) -> Result<Vec<Unit>, StoreError> {
    let units = gate.units()?;
    let estimator = Estimator::new(scorer);
    let wanted = &gate.request.event_types;
    let parts = in_parallel(&units, ESTIMATED_AT_ONCE, |units| {
        let mut held = Vec::new();
        let estimated = |unit: &Unit| {
            let fading = scorer.fading(unit.newest);
            presence.rows(unit, &mut held);
            let rows = held.iter();
            let rows = rows.filter(|held| wanted.is_empty() || wanted.contains(&held.kind()));
            let best = rows.map(|held| held.estimate(&estimator)).fold(0.0, f64::max);
            Unit { estimate: best * fading, ..*unit }
        };
        Ok::<Vec<Unit>, StoreError>(units.iter().map(estimated).collect())
    })?;
    let mut units = parts.concat();
    units.retain(|unit| unit.estimate > 0.0 || insists(insisted));
    units.sort_by(|a, b| {
        (b.estimate.total_cmp(&a.estimate))
            .then(b.newest.cmp(&a.newest))
            .then_with(|| (a.segment, a.page.start).cmp(&(b.segment, b.page.start)))
    });
    Ok(units)
}

/// Returns true if a term must occur, so that an event is found even without a word of the
/// question.
fn insists(insisted: &Query) -> bool {
    insisted.clauses.iter().any(|clause| !clause.excluded)
}

/// Returns true if a candidate comes after the end of the page before, in the order of [`order`].
fn comes_after(gate: &RowFilter<'_>, candidate: &Candidate, end: &Ranked) -> bool {
    let id = &gate.snapshot.sessions()[candidate.row.session].session_id;
    let order = (f64::from_bits(end.score).total_cmp(&candidate.score))
        .then_with(|| id.cmp(&end.session_id))
        .then_with(|| end.event_index.cmp(&candidate.row.event_index));
    order.is_gt()
}
