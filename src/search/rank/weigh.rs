//! Weighs the words of a ranked question by their rarity.

use super::score::{Term, Weights, rarity, scored_form};
use super::word_presence::{Occurs, Presence};
use crate::base::parallel::in_parallel;
use crate::search::query::multi::Every;
use crate::search::request::Work;
use crate::search::row_filter::{RowFilter, Unit};
use crate::search::scan::{SHARE, read};
use crate::store::{Block, PageReader, StoreError};

/// Number of pages sampled to estimate the rarity of words for which the index lists no row.
const SAMPLE_PAGES: usize = 16;

/// Computes the weights of the words from their rarity.
pub(super) fn weigh(
    gate: &RowFilter<'_>,
    terms: &[Term],
    presence: &Presence,
    work: &mut Work,
) -> Result<Weights, StoreError> {
    let sampled = sample(gate, terms, presence, work)?;
    let times = gate.open_segments().filter_map(|(_, segment)| segment.entry.times);
    let newest = times.map(|(_, newest)| newest).max().unwrap_or(0);
    let (mut weights, mut absent) = (Vec::new(), 0);
    for (occurs, sampled) in presence.terms.iter().zip(sampled) {
        let events = if occurs.rows > 0 { occurs.rows as f64 } else { sampled };
        let weight = rarity(events, presence.all as f64);
        let is_there = occurs.rows > 0 || occurs.blocks > 0;
        weights.push(if is_there { weight } else { 0 });
        absent += if is_there { 0 } else { weight };
    }
    Ok(Weights { terms: weights, average: presence.average(), newest, absent })
}

/// Estimates the number of rows with each word for which the index lists no row, from a sample of
/// pages over the whole store.
fn sample(
    gate: &RowFilter<'_>,
    terms: &[Term],
    presence: &Presence,
    work: &mut Work,
) -> Result<Vec<f64>, StoreError> {
    let is_asked = |occurs: &Occurs| occurs.rows == 0 && occurs.blocks > 0;
    let asked: Vec<usize> =
        (0..terms.len()).filter(|term| is_asked(&presence.terms[*term])).collect();
    let mut found = vec![0.0; terms.len()];
    if asked.is_empty() {
        return Ok(found);
    }
    let mut all: Vec<Unit> = Vec::new();
    for (number, segment) in gate.open_segments() {
        let blocks: Vec<&Block> = segment.index()?.blocks().iter().collect();
        gate.pages(number, segment, &blocks, &mut all)?;
    }
    let step = all.len().div_ceil(SAMPLE_PAGES).max(1);
    let sample: Vec<Unit> = all.into_iter().step_by(step).collect();
    let stems = Every::new(asked.iter().map(|term| (*term, terms[*term].stem.as_str())));
    let ascii = asked.iter().all(|term| terms[*term].stem.is_ascii());
    let parts = in_parallel(&sample, SHARE, |units| -> Result<_, StoreError> {
        let (mut counts, mut rows, mut work) = (vec![0usize; terms.len()], 0, Work::default());
        let (mut reader, mut lower) = (PageReader::default(), Vec::new());
        for unit in units {
            let page = read(gate.snapshot, unit, &mut reader, &mut work)?;
            for row in 0..page.len() {
                let text = scored_form(page.get(row), &mut lower, ascii);
                let mut seen = vec![false; terms.len()];
                stems.each(&text, &mut |term, _, _| seen[term] = true);
                rows += usize::from(!text.is_empty());
                counts.iter_mut().zip(seen).for_each(|(count, seen)| *count += usize::from(seen));
            }
        }
        Ok((counts, rows, work))
    })?;
    let (mut counts, mut rows) = (vec![0usize; terms.len()], 0);
    for (part, part_rows, part_work) in parts {
        counts.iter_mut().zip(part).for_each(|(count, more)| *count += more);
        rows += part_rows;
        *work += part_work;
    }
    let share = presence.all as f64 / rows.max(1) as f64;
    for term in asked {
        // A word that is not in the sample is assumed to be about as frequent as the blocks that
        // contain it.
        let blocks = presence.terms[term].blocks as f64;
        let count = counts[term] as f64;
        found[term] = if count == 0.0 { blocks.min(share) } else { count * share };
    }
    Ok(found)
}
