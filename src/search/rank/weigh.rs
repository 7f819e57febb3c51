//! Weighs the words of a ranked question by their rarity.

use super::score::{TermWeights, rarity_weight, scored_form};
use super::terms::QueryTerm;
use super::word_presence::WordPresence;
use crate::base::parallel::in_parallel;
use crate::search::query::multi::EveryNeedleFinder;
use crate::search::request::SearchWork;
use crate::search::row_filter::{CandidatePage, RowFilter};
use crate::search::scan::{PAGES_PER_TASK, read_page};
use crate::store::{Block, PageReader, StoreError};

/// Number of pages sampled to estimate the rarity of words for which the index lists no row.
const SAMPLE_PAGES: usize = 16;

/// Computes the weights of the words from their rarity.
pub(super) fn weigh_terms(
    filter: &RowFilter<'_>,
    terms: &[QueryTerm],
    presence: &WordPresence,
    work: &mut SearchWork,
) -> Result<TermWeights, StoreError> {
    let sampled = estimate_unlisted_rows(filter, terms, presence, work)?;
    let times = filter.candidate_segments().filter_map(|(_, segment)| segment.entry.times);
    let newest = times.map(|(_, newest)| newest).max().unwrap_or(0);

    let mut weights = Vec::new();
    let mut absent = 0;
    for (occurs, sampled) in presence.terms.iter().zip(sampled) {
        let events = if occurs.rows > 0 { occurs.rows as f64 } else { sampled };
        let weight = rarity_weight(events, presence.row_count as f64);
        if occurs.is_absent() {
            weights.push(0);
            absent += weight;
        } else {
            weights.push(weight);
        }
    }
    Ok(TermWeights { terms: weights, average: presence.average_length(), newest, absent })
}

/// Estimates the number of selected rows with each word for which the index lists no row, from a
/// sample of pages over everything that the filters select.
fn estimate_unlisted_rows(
    filter: &RowFilter<'_>,
    terms: &[QueryTerm],
    presence: &WordPresence,
    work: &mut SearchWork,
) -> Result<Vec<f64>, StoreError> {
    let mut unlisted: Vec<usize> = (0..terms.len()).collect();
    unlisted.retain(|term| presence.terms[*term].is_unlisted());
    let mut found = vec![0.0; terms.len()];
    if unlisted.is_empty() {
        return Ok(found);
    }

    let mut all: Vec<CandidatePage> = Vec::new();
    for (number, segment) in filter.candidate_segments() {
        let blocks: Vec<&Block> = segment.skip_index()?.blocks().iter().collect();
        filter.append_pages(number, segment, &blocks, &mut all)?;
    }
    all.retain(|page| presence.has_selected_row(page));
    let step = all.len().div_ceil(SAMPLE_PAGES).max(1);
    let sample: Vec<CandidatePage> = all.into_iter().step_by(step).collect();
    let stems =
        EveryNeedleFinder::new(unlisted.iter().map(|term| (*term, terms[*term].stem.as_str())));
    let is_ascii = unlisted.iter().all(|term| terms[*term].stem.is_ascii());
    let parts = in_parallel(&sample, PAGES_PER_TASK, |pages| {
        let mut counts = SampleCounts::new(terms.len());
        counts.add_pages(filter, presence, pages, &stems, is_ascii)?;
        Ok::<_, StoreError>(counts)
    })?;
    let mut counts = SampleCounts::new(terms.len());
    for part in parts {
        counts.add(&part);
    }
    *work += counts.work;

    // The number of rows that a row of the sample represents.
    let share = presence.row_count as f64 / counts.rows.max(1) as f64;
    for term in unlisted {
        // A word that is not in the sample is assumed to be about as frequent as the blocks that
        // contain it.
        let block_count = presence.terms[term].blocks as f64;
        let count = counts.terms[term] as f64;
        found[term] = if count == 0.0 { block_count.min(share) } else { count * share };
    }
    Ok(found)
}

/// The numbers of rows on sampled pages.
struct SampleCounts {
    /// For each term, the number of rows that contain it.
    terms: Vec<usize>,
    /// Number of rows that have a text.
    rows: usize,
    work: SearchWork,
}

impl SampleCounts {
    fn new(terms: usize) -> Self {
        Self { terms: vec![0; terms], rows: 0, work: SearchWork::default() }
    }

    fn add(&mut self, other: &Self) {
        for (count, more) in self.terms.iter_mut().zip(&other.terms) {
            *count += more;
        }
        self.rows += other.rows;
        self.work += other.work;
    }

    /// Adds the selected rows of some pages. `stems` finds the terms; `is_ascii` is true if these are ASCII.
    fn add_pages(
        &mut self,
        filter: &RowFilter<'_>,
        presence: &WordPresence,
        pages: &[CandidatePage],
        stems: &EveryNeedleFinder,
        is_ascii: bool,
    ) -> Result<(), StoreError> {
        let mut reader = PageReader::default();
        let mut lower = Vec::new();
        for page in pages {
            let texts = read_page(filter.snapshot, page, &mut reader, &mut self.work)?;
            for row in 0..texts.len() {
                if !presence.is_selected(page.segment, page.page.start + row) {
                    continue;
                }
                let text = scored_form(texts.get(row), &mut lower, is_ascii);
                let mut seen = vec![false; self.terms.len()];
                stems.for_each_hit(&text, &mut |term, _, _| seen[term] = true);
                self.rows += usize::from(!text.is_empty());
                for (count, is_seen) in self.terms.iter_mut().zip(seen) {
                    *count += usize::from(is_seen);
                }
            }
        }
        Ok(())
    }
}
