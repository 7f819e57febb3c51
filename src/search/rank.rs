//! Ranks what matches a question, best first. Pages are taken by the most that a row of theirs can
//! score, until none that is left can reach the page of results.

use std::cmp::Ordering;
use std::time::Instant;

use aho_corasick::AhoCorasick;
use schemas::ToolError;
use serde::{Deserialize, Serialize};

use super::gate::{Gate, Row, Unit};
use super::matcher::Matcher;
use super::page::{Hit, Request, Work};
use super::query::Query;
use super::scan::{cancelled, hits, in_parallel, read};
use super::score::{Scorer, Term, form, rarity, terms};
use crate::store::{Block, Grams, Snapshot, StoreError, grams};

/// Pages looked at to estimate how rare the words are.
const SAMPLE_PAGES: usize = 48;

/// Pages taken at a time.
const FIRST_WAVE: usize = 16;
const LARGEST_WAVE: usize = 256;

/// Where a ranked page ended. It carries what scores are made of, so that every page of one
/// search ranks alike, whatever was ingested in between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    weights: Vec<u32>,
    average: u64,
    newest: i64,
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

/// A match and what it scored.
#[derive(Clone, Copy)]
struct Candidate {
    row: Row,
    score: f64,
    confidence: f64,
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
    let mut work = Work::default();
    let scorer = match after {
        Some(end) if end.weights.len() == terms.len() => {
            Scorer::new(terms, end.weights.clone(), end.average, end.newest)
        }
        _ => weigh(&gate, terms, &mut work)?,
    };
    let Some(scorer) = scorer else { return Ok(Err(cancelled())) };
    // What must and must not occur besides.
    let insisted = request.query.clauses.iter().filter(|clause| !clause.optional || clause.excluded);
    let insisted = Query { clauses: insisted.cloned().collect(), ..request.query.clone() };
    let matcher = Matcher::new(&insisted);
    let units = units(&gate, &scorer, &insisted, &mut work)?;
    let late = || request.deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let halt = || stop() || late();
    let mut best: Vec<Candidate> = Vec::new();
    let (mut matched, mut done, mut wave, mut timed_out) = (0, 0, FIRST_WAVE, false);
    while done < units.len() {
        let threshold = best.get(request.limit).map_or(0.0, |worst| worst.score);
        if threshold > 0.0 && units[done].bound <= threshold {
            break;
        }
        let Some(essential) = scorer.essential(threshold) else { break };
        let end = units.len().min(done + wave);
        let parts = in_parallel(&units[done..end], |units| {
            score_pages(&gate, &scorer, &matcher, &essential, units, after, &halt)
        })?;
        if stop() {
            return Ok(Err(cancelled()));
        }
        for (candidates, part, whole) in parts {
            timed_out |= !whole;
            work += part;
            matched += candidates.len();
            best.extend(candidates);
        }
        best.sort_by(|a, b| order(snapshot, a, b));
        best.truncate(request.limit + 1);
        if timed_out {
            break;
        }
        done = end;
        wave = LARGEST_WAVE.min(wave * 2);
    }
    let more = best.len() > request.limit;
    best.truncate(request.limit);
    let rows: Vec<Row> = best.iter().map(|candidate| candidate.row).collect();
    let mut hits = hits(snapshot, &rows, &mut |text| scorer.place(text))?;
    for (hit, candidate) in hits.iter_mut().zip(&best) {
        hit.confidence = Some((candidate.confidence * 100.0).round() / 100.0);
    }
    let ends = best.iter().map(|candidate| Ranked {
        weights: scorer.weights.clone(),
        average: scorer.average,
        newest: scorer.newest,
        score: candidate.score.to_bits(),
        session_id: snapshot.sessions()[candidate.row.session].session_id.clone(),
        event_index: candidate.row.event_index,
    });
    let ends = ends.collect();
    let complete = done == units.len() && !timed_out;
    Ok(Ok(RankedFound { hits, ends, more, matched, complete, timed_out, work }))
}

/// Best first, then the newest, then by id.
fn order(snapshot: &Snapshot, a: &Candidate, b: &Candidate) -> Ordering {
    let id = |c: &Candidate| &snapshot.sessions()[c.row.session].session_id;
    (b.score.total_cmp(&a.score))
        .then_with(|| id(a).cmp(id(b)))
        .then_with(|| b.row.event_index.cmp(&a.row.event_index))
}

/// How rare the words are, from a sample of pages over the whole store.
fn weigh(
    gate: &Gate<'_>,
    terms: Vec<Term>,
    work: &mut Work,
) -> Result<Option<Scorer>, StoreError> {
    let mut all: Vec<Unit> = Vec::new();
    for (number, segment) in gate.open_segments() {
        let blocks: Vec<(&Block, f64)> = segment.index()?.blocks().iter().map(|b| (b, 0.0)).collect();
        gate.pages(number, segment, &blocks, &mut all)?;
    }
    let step = all.len().div_ceil(SAMPLE_PAGES).max(1);
    let sample: Vec<Unit> = all.iter().step_by(step).copied().collect();
    let Ok(automaton) = AhoCorasick::new(terms.iter().map(|term| &term.stem)) else {
        return Ok(None);
    };
    let parts = in_parallel(&sample, |units| {
        let (mut counts, mut rows, mut work) = (vec![0usize; terms.len()], 0, Work::default());
        for unit in units {
            let page = read(gate.snapshot, unit, &mut work)?;
            for row in 0..page.len() {
                let text = form_of(page.get(row));
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
    let weights = counts.iter().map(|count| {
        // A word that the sample does not have is rarer than one event of it stands for.
        let events = if *count == 0 { share / 4.0 } else { *count as f64 * share };
        rarity(events, rows as f64)
    });
    let average = (work.bytes / sampled.max(1)) as u64;
    let weights = weights.collect();
    Ok(Scorer::new(terms, weights, average, newest))
}

/// The pages that may hold a match with the most they can score, best first.
fn units(
    gate: &Gate<'_>,
    scorer: &Scorer,
    insisted: &Query,
    work: &mut Work,
) -> Result<Vec<Unit>, StoreError> {
    let required = insisted.clauses.iter().filter(|clause| !clause.excluded);
    let needs: Vec<Vec<Grams>> =
        required.flat_map(|clause| super::pattern::needs(&clause.any)).collect();
    let stems: Vec<Grams> = scorer.terms.iter().map(|term| grams(&term.stem)).collect();
    let mut units = Vec::new();
    for (number, segment) in gate.open_segments() {
        let held = gate.held(segment, &needs, work)?;
        let index = segment.index()?;
        let present = stems.iter().map(|grams| index.holding(grams)).collect::<Result<Vec<_>, _>>()?;
        let blocks: Vec<(&Block, f64)> = held
            .into_iter()
            .map(|at| {
                let block = &index.blocks()[at];
                let newest = block.times.map(|(_, newest)| newest);
                (block, scorer.bound(|term| present[term].contains(at), newest))
            })
            .filter(|(_, bound)| *bound > 0.0)
            .collect();
        gate.pages(number, segment, &blocks, &mut units)?;
    }
    units.sort_by(|a, b| b.bound.total_cmp(&a.bound).then(b.newest.cmp(&a.newest)));
    Ok(units)
}

/// Scores the rows of some pages that have an essential word; false when it was told to halt.
fn score_pages(
    gate: &Gate<'_>,
    scorer: &Scorer,
    matcher: &Matcher,
    essential: &AhoCorasick,
    units: &[Unit],
    after: Option<&Ranked>,
    halt: &dyn Fn() -> bool,
) -> Result<(Vec<Candidate>, Work, bool), StoreError> {
    let (mut found, mut work, mut lower) = (Vec::new(), Work::default(), Vec::new());
    for unit in units {
        if halt() {
            return Ok((found, work, false));
        }
        let rows = gate.rows(unit)?;
        if rows.is_empty() {
            continue;
        }
        let page = read(gate.snapshot, unit, &mut work)?;
        matcher.rows(&page, unit.page.start, &rows, &mut lower, &mut |row| {
            let text = form_of(page.get(row.row - unit.page.start));
            if !essential.is_match(&*text) {
                return;
            }
            let score = scorer.score(&text, row.facts.event_type, row.facts.time);
            let candidate = Candidate { row: *row, score: score.score, confidence: score.confidence };
            if score.score > 0.0 && after.is_none_or(|end| comes_after(gate, &candidate, end)) {
                found.push(candidate);
            }
        });
    }
    Ok((found, work, true))
}

fn comes_after(gate: &Gate<'_>, candidate: &Candidate, end: &Ranked) -> bool {
    let id = &gate.snapshot.sessions()[candidate.row.session].session_id;
    let order = (f64::from_bits(end.score).total_cmp(&candidate.score))
        .then_with(|| id.cmp(&end.session_id))
        .then_with(|| end.event_index.cmp(&candidate.row.event_index));
    order.is_gt()
}

fn form_of(text: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    match std::str::from_utf8(text) {
        Ok(text) => match form(text) {
            std::borrow::Cow::Borrowed(text) => text.as_bytes().into(),
            std::borrow::Cow::Owned(text) => text.into_bytes().into(),
        },
        Err(_) => text.into(),
    }
}
