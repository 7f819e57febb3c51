//! Ranks what matches a question, best first. Pages are taken by the most that a row of theirs can
//! score, until none that is left can reach the page of results.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Instant;

use aho_corasick::AhoCorasick;
use fixedbitset::FixedBitSet;
use schemas::{EventType, ToolError};
use serde::{Deserialize, Serialize};

use super::gate::{Gate, Row, Unit};
use super::matcher::Matcher;
use super::multi::Multi;
use super::page::{Hit, Request, Work};
use super::query::Query;
use super::scan::{SHARE, cancelled, hits, read};
use super::score::{Scorer, Term, Weights, form, rarity, terms, type_weight};
use crate::cores::in_parallel;
use crate::store::{Block, Grams, Snapshot, StoreError, grams};

/// Pages looked at to estimate how rare the words are.
const SAMPLE_PAGES: usize = 16;

/// Pages taken at a time.
const FIRST_WAVE: usize = 16;
const LARGEST_WAVE: usize = 256;

/// Pages looked at first for what people and agents said: that sets what the rest has to beat.
const SCOUTED: usize = 128;

/// Whether a row is what people and agents said, which scores highest.
fn is_said(kind: EventType) -> bool {
    matches!(kind, EventType::User | EventType::Message)
}

/// Where a ranked page ended. It carries what scores are made of, so that every page of one
/// search ranks alike, whatever was ingested in between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    weights: Weights,
    /// The bits of the last score: JSON would round it.
    score: u64,
    session_id: String,
    event_index: u32,
}

/// A ranked page of matches.
pub struct RankedFound {
    pub hits: Vec<Hit>,
    /// Where to go on when there is more, after each of the hits.
    pub ends: Vec<Ranked>,
    pub more: bool,
    pub matched: usize,
    pub complete: bool,
    pub timed_out: bool,
    pub work: Work,
}

/// What a row must have to be scored and kept.
struct Bar {
    threshold: f64,
    said_only: bool,
    /// One of these words, if it was said, and if not; `None` is no such condition.
    said: Option<Multi>,
    printed: Option<Multi>,
}

/// A match and what it scored.
#[derive(Clone, Copy)]
struct Candidate {
    row: Row,
    score: f64,
    confidence: f64,
}

/// Whether a query has a word to rank by.
pub fn can_rank(query: &Query) -> bool {
    !terms(query).is_empty()
}

/// A ranking under way.
struct Ranking<'a> {
    gate: Gate<'a>,
    scorer: Scorer,
    /// What must and must not occur besides.
    matcher: Matcher,
    /// Whether something must occur.
    insists: bool,
    after: Option<&'a Ranked>,
    best: Vec<Candidate>,
    matched: usize,
    timed_out: bool,
    work: Work,
}

/// Runs the query, best first; `after` is where the page before ended.
pub fn ranked(
    snapshot: &Snapshot,
    request: &Request<'_>,
    after: Option<&Ranked>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Result<RankedFound, ToolError>, StoreError> {
    let gate = Gate::new(snapshot, request)?;
    let terms = terms(request.query);
    let held = held(&gate, &terms)?;
    let mut work = Work::default();
    let weights = match after {
        Some(end) if end.weights.terms.len() == terms.len() => Some(end.weights.clone()),
        _ => weigh(&gate, &terms, &held, &mut work)?,
    };
    let Some(scorer) = weights.and_then(|weights| Scorer::new(terms, weights)) else {
        return Ok(Err(cancelled()));
    };
    let insisted =
        request.query.clauses.iter().filter(|clause| !clause.optional || clause.excluded);
    let insisted = Query { clauses: insisted.cloned().collect(), ..request.query.clone() };
    let units = units(&gate, &scorer, &held, &insisted, &mut work)?;
    let matcher = Matcher::new(&insisted);
    let (best, matched, timed_out) = (Vec::new(), 0, false);
    let insists = insisted.clauses.iter().any(|clause| !clause.excluded);
    let mut ranking =
        Ranking { gate, scorer, matcher, insists, after, best, matched, timed_out, work };
    ranking.run(&units[..units.len().min(SCOUTED)], true, 0.0, stop)?;
    let floor = ranking.threshold();
    (ranking.best, ranking.matched) = (Vec::new(), 0);
    ranking.run(&units, false, floor, stop)?;
    if stop() {
        return Ok(Err(cancelled()));
    }
    // Below a threshold not everything was counted; where all is to be counted there is none.
    let counted = request.query.exact_total || ranking.best.len() <= request.limit;
    let complete = !ranking.timed_out && counted && floor == 0.0;
    ranking.found(snapshot, complete).map(Ok)
}

impl Ranking<'_> {
    /// The score that a row must reach to be among the best found so far.
    fn threshold(&self) -> f64 {
        let request = self.gate.request;
        let worst = self.best.get(request.limit).filter(|_| !request.query.exact_total);
        worst.map_or(0.0, |worst| worst.score)
    }

    /// Ranks rows of these pages that score `floor` at least: all, or only what was said.
    fn run(
        &mut self,
        units: &[Unit],
        said_only: bool,
        floor: f64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), StoreError> {
        let (limit, deadline) = (self.gate.request.limit, self.gate.request.deadline);
        let halt = || stop() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let (mut done, mut wave) = (0, FIRST_WAVE);
        while done < units.len() && !self.timed_out {
            let threshold = self.threshold().max(floor);
            // What scores alike is ordered by id: it may still come before.
            if units[done].bound < threshold {
                break;
            }
            // What is insisted on is enough to be found.
            let essential = |threshold: f64| {
                (!self.insists).then(|| self.scorer.essential(threshold)).flatten()
            };
            let bar = Bar {
                threshold,
                said_only,
                said: essential(threshold),
                printed: essential(threshold / type_weight(EventType::Reasoning)),
            };
            let end = units.len().min(done + wave);
            let parts =
                in_parallel(&units[done..end], SHARE, |units| self.score(units, &bar, &halt))?;
            for (candidates, work, whole) in parts {
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
        Ok(())
    }

    /// Scores the rows of some pages that have an essential word; false when it was told to halt.
    fn score(
        &self,
        units: &[Unit],
        bar: &Bar,
        halt: &dyn Fn() -> bool,
    ) -> Result<(Vec<Candidate>, Work, bool), StoreError> {
        let (mut found, mut work) = (Vec::new(), Work::default());
        let (mut lower, mut buffer) = (Vec::new(), Vec::new());
        for unit in units {
            if halt() {
                return Ok((found, work, false));
            }
            let mut rows = self.gate.rows(unit)?;
            rows.retain(|row| {
                let kind = row.facts.event_type;
                (is_said(kind) || !bar.said_only) && unit.bound * type_weight(kind) >= bar.threshold
            });
            if rows.is_empty() {
                continue;
            }
            let page = read(self.gate.snapshot, unit, &mut work)?;
            self.matcher.rows(&page, unit.page.start, &rows, &mut buffer, &mut |row| {
                let kind = row.facts.event_type;
                let text = page.get(row.row - unit.page.start);
                let text = scored_form(text, &mut lower, self.scorer.ascii);
                let essential = if is_said(kind) { &bar.said } else { &bar.printed };
                if essential.as_ref().is_some_and(|essential| !essential.is_match(&text)) {
                    return;
                }
                let score = self.scorer.score(&text, kind, row.facts.time);
                let (score, confidence) = (score.score, score.confidence);
                let candidate = Candidate { row: *row, score, confidence };
                let shown = self.after.is_some_and(|end| !comes_after(&self.gate, &candidate, end));
                if score >= bar.threshold && (score > 0.0 || self.insists) && !shown {
                    found.push(candidate);
                }
            });
        }
        Ok((found, work, true))
    }

    /// The page of results.
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

/// Best first, among equals by session, then the latest event first.
fn order(snapshot: &Snapshot, a: &Candidate, b: &Candidate) -> Ordering {
    let id = |c: &Candidate| &snapshot.sessions()[c.row.session].session_id;
    (b.score.total_cmp(&a.score))
        .then_with(|| id(a).cmp(id(b)))
        .then_with(|| b.row.event_index.cmp(&a.row.event_index))
}

/// The blocks that may hold each of the terms, of every open segment.
fn held(gate: &Gate<'_>, terms: &[Term]) -> Result<HashMap<usize, Vec<FixedBitSet>>, StoreError> {
    let stems: Vec<Grams> = terms.iter().map(|term| grams(&term.stem)).collect();
    let segments = gate.open_segments().map(|(number, segment)| {
        let index = segment.index()?;
        let held = stems.iter().map(|stem| index.holding(stem)).collect::<Result<_, _>>()?;
        Ok((number, held))
    });
    segments.collect()
}

/// How rare the words are, from a sample of pages over the whole store.
fn weigh(
    gate: &Gate<'_>,
    terms: &[Term],
    held: &HashMap<usize, Vec<FixedBitSet>>,
    work: &mut Work,
) -> Result<Option<Weights>, StoreError> {
    let mut all: Vec<Unit> = Vec::new();
    for (number, segment) in gate.open_segments() {
        let blocks: Vec<(&Block, f64)> =
            segment.index()?.blocks().iter().map(|b| (b, 0.0)).collect();
        gate.pages(number, segment, &blocks, &mut all)?;
    }
    let step = all.len().div_ceil(SAMPLE_PAGES).max(1);
    let sample: Vec<Unit> = all.iter().step_by(step).copied().collect();
    let Ok(automaton) = AhoCorasick::new(terms.iter().map(|term| &term.stem)) else {
        return Ok(None);
    };
    let ascii = terms.iter().all(|term| term.stem.is_ascii());
    let parts = in_parallel(&sample, SHARE, |units| -> Result<_, StoreError> {
        let (mut counts, mut work) = (vec![0usize; terms.len()], Work::default());
        let (mut rows, mut lower) = (0, Vec::new());
        for unit in units {
            let page = read(gate.snapshot, unit, &mut work)?;
            for row in 0..page.len() {
                let text = scored_form(page.get(row), &mut lower, ascii);
                let mut seen = vec![false; terms.len()];
                for found in automaton.find_overlapping_iter(&*text) {
                    seen[found.pattern().as_usize()] = true;
                }
                rows += usize::from(!text.is_empty());
                counts.iter_mut().zip(seen).for_each(|(count, seen)| *count += usize::from(seen));
            }
        }
        Ok((counts, rows, work))
    })?;
    let (mut counts, mut sampled) = (vec![0usize; terms.len()], 0);
    for (part, rows, part_work) in parts {
        counts.iter_mut().zip(part).for_each(|(count, more)| *count += more);
        sampled += rows;
        *work += part_work;
    }
    let times = gate.open_segments().filter_map(|(_, segment)| segment.entry.times);
    let newest = times.map(|(_, newest)| newest).max().unwrap_or(0);
    let rows: usize = all.iter().map(|unit| unit.page.count).sum();
    let share = rows as f64 / sampled.max(1) as f64;
    let (mut weights, mut absent) = (Vec::new(), 0);
    for (term, count) in counts.into_iter().enumerate() {
        // A word that the sample does not have is about as frequent as blocks hold it.
        let blocks: usize = held.values().map(|terms| terms[term].count_ones(..)).sum();
        let events = if count == 0 { (blocks as f64).min(share) } else { count as f64 * share };
        let weight = rarity(events, rows as f64);
        let occurs = blocks > 0;
        weights.push(if occurs { weight } else { 0 });
        absent += if occurs { 0 } else { weight };
    }
    let average = (work.bytes / sampled.max(1)) as u64;
    Ok(Some(Weights { terms: weights, average, newest, absent }))
}

/// The pages that may hold a match with the most they can score, best first.
fn units(
    gate: &Gate<'_>,
    scorer: &Scorer,
    held: &HashMap<usize, Vec<FixedBitSet>>,
    insisted: &Query,
    work: &mut Work,
) -> Result<Vec<Unit>, StoreError> {
    let needs = insisted.needs();
    let mut units = Vec::new();
    for (number, segment) in gate.open_segments() {
        let index = segment.index()?;
        let present = &held[&number];
        let blocks: Vec<(&Block, f64)> = gate
            .held(segment, &needs, work)?
            .into_iter()
            .map(|at| {
                let block = &index.blocks()[at];
                let newest = block.times.map(|(_, newest)| newest);
                (block, scorer.bound(|term| present[term].contains(at), newest))
            })
            .filter(|(_, bound)| *bound > 0.0 || !needs.is_empty())
            .collect();
        gate.pages(number, segment, &blocks, &mut units)?;
    }
    units.sort_by(|a, b| b.bound.total_cmp(&a.bound).then(b.newest.cmp(&a.newest)));
    Ok(units)
}

/// Whether a candidate stands behind the end of the page before, in the order of [`order`].
fn comes_after(gate: &Gate<'_>, candidate: &Candidate, end: &Ranked) -> bool {
    let id = &gate.snapshot.sessions()[candidate.row.session].session_id;
    let order = (f64::from_bits(end.score).total_cmp(&candidate.score))
        .then_with(|| id.cmp(&end.session_id))
        .then_with(|| end.event_index.cmp(&candidate.row.event_index));
    order.is_gt()
}

/// A text as it is scored; terms in `ascii` need no more than ASCII letters lowered. `lower` is a
/// buffer to use.
fn scored_form<'t>(text: &[u8], lower: &'t mut Vec<u8>, ascii: bool) -> Cow<'t, [u8]> {
    if !ascii
        && !text.is_ascii()
        && let Ok(text) = std::str::from_utf8(text)
    {
        return form(text).into_owned().into_bytes().into();
    }
    lower.clear();
    lower.extend_from_slice(text);
    lower.make_ascii_lowercase();
    lower.as_slice().into()
}
