//! Determines from the skip indexes which words of a ranked question each row may contain, and the
//! highest score that the row can reach with them.

use std::collections::HashMap;

use fixedbitset::FixedBitSet;
use schemas::EventType;

use super::estimate::Estimator;
use super::score::{Scorer, type_weight};
use super::terms::QueryTerm;
use super::weight_tables::word_bit;
use crate::base::parallel::in_parallel;
use crate::search::indexed_rows::find_text_rows;
use crate::search::row_filter::{CandidatePage, RowFilter};
use crate::search::text_length::typical_length;
use crate::store::{Grams, KnownRows, RowOutline, Segment, StoreError, needle_grams};

/// The rows of all segments that pass the filters, with their possible words.
pub(super) struct WordPresence {
    segments: HashMap<usize, SegmentWords>,
    /// Occurrences of each word in the rows that the filters select.
    pub(super) terms: Vec<WordOccurrences>,
    /// Number of rows that the filters select.
    pub(super) row_count: usize,
}

/// The number of selected rows, and of blocks with such rows, in which a word occurs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WordOccurrences {
    /// Rows known to contain the word.
    pub(super) rows: usize,
    /// Blocks that may contain the word, if the index does not decide every row.
    pub(super) blocks: usize,
}

impl WordOccurrences {
    /// Returns true if no selected row has the word.
    pub(super) fn is_absent(&self) -> bool {
        self.rows == 0 && self.blocks == 0
    }

    /// Returns true if the word may occur, but the index lists no row with it.
    pub(super) fn is_unlisted(&self) -> bool {
        self.rows == 0 && self.blocks > 0
    }
}

/// The rows of one segment.
struct SegmentWords {
    outlines: Vec<RowOutline>,
    /// The rows that the filters select; `None` means all.
    selected: Option<FixedBitSet>,
    /// Number of selected rows by the bits of their text length.
    lengths: [u64; 32],
    /// The bit of each word and its rows; words from the 64th on share one entry.
    words: Vec<(u64, KnownRows)>,
    terms: Vec<WordOccurrences>,
}

/// The possible words of a row, and its outline.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowWords {
    /// The words that the row may contain, a bit each.
    words: u64,
    /// The words among them that the row may also lack.
    doubtful: u64,
    outline: RowOutline,
}

impl WordPresence {
    /// Queries the skip indexes of all segments that pass the filters.
    pub(super) fn new(filter: &RowFilter<'_>, terms: &[QueryTerm]) -> Result<Self, StoreError> {
        let stems: Vec<Grams> = terms.iter().map(|term| needle_grams(&term.stem)).collect();
        // The index lists texts as written; texts beyond ASCII are scored composed.
        let is_known = terms.iter().all(|term| term.stem.is_ascii());
        let candidates: Vec<_> = filter.candidate_segments().collect();
        let parts = in_parallel(&candidates, 1, |segments| {
            let mut part = Vec::new();
            for (number, segment) in segments {
                let outlines = segment.skip_index()?.read_outlines()?;
                let selected = filter.selected_rows(*number, segment, &outlines)?;
                let words =
                    SegmentWords::new(segment, terms, &stems, is_known, outlines, selected)?;
                part.push((*number, words));
            }
            Ok::<_, StoreError>(part)
        })?;
        let segments: HashMap<usize, SegmentWords> = parts.into_iter().flatten().collect();

        let mut occurs = vec![WordOccurrences::default(); terms.len()];
        let mut all = 0;
        for segment in segments.values() {
            for (total, part) in occurs.iter_mut().zip(&segment.terms) {
                total.rows += part.rows;
                total.blocks += part.blocks;
            }
            all += segment.selected_count();
        }
        Ok(Self { segments, terms: occurs, row_count: all })
    }

    /// Returns the average length of the texts in bytes, without empty ones.
    pub(super) fn average_length(&self) -> u64 {
        let mut rows = 0u64;
        let mut bytes = 0.0;
        for bits in 1..32u8 {
            let segments = self.segments.values();
            let count: u64 = segments.map(|segment| segment.lengths[usize::from(bits)]).sum();
            rows += count;
            bytes += count as f64 * typical_length(bits);
        }
        (bytes / rows.max(1) as f64) as u64
    }

    /// Returns true if the filters select the row at this position of a segment.
    pub(super) fn is_selected(&self, segment: usize, row: usize) -> bool {
        let selected = self.segments.get(&segment).and_then(|segment| segment.selected.as_ref());
        selected.is_none_or(|selected| selected.contains(row))
    }

    /// Returns true if the filters select a row of a page.
    pub(super) fn has_selected_row(&self, unit: &CandidatePage) -> bool {
        let selected = self.segments.get(&unit.segment).and_then(|found| found.selected.as_ref());
        let rows = unit.page.start..unit.page.start + unit.page.count;
        selected.is_none_or(|all| all.contains_any_in_range(rows.start..rows.end.min(all.len())))
    }

    /// Removes the words that have no weight.
    pub(super) fn remove_weightless_words(&mut self, scorer: &Scorer) {
        for segment in self.segments.values_mut() {
            segment.words.retain(|(bit, _)| scorer.term_sums.weight_of(*bit) > 0.0);
        }
    }

    /// Fills `held` with the rows of a page.
    pub(super) fn fill_row_words(&self, unit: &CandidatePage, held: &mut Vec<RowWords>) {
        held.clear();
        let Some(segment) = self.segments.get(&unit.segment) else { return };
        let end = (unit.page.start + unit.page.count).min(segment.outlines.len());
        let rows = unit.page.start.min(end)..end;
        let outlines = segment.outlines[rows.clone()].iter();
        held.extend(outlines.map(|outline| RowWords { words: 0, doubtful: 0, outline: *outline }));

        for (first, held) in rows.step_by(ROWS_AT_ONCE).zip(held.chunks_mut(ROWS_AT_ONCE)) {
            let count = held.len();
            for (bit, known) in &segment.words {
                let possible = bits_from(&known.possible, first);
                let certain = bits_from(&known.certain, first);
                for at in set_bits(possible).take_while(|at| *at < count) {
                    held[at].words |= bit;
                }
                for at in set_bits(possible & !certain).take_while(|at| *at < count) {
                    held[at].doubtful |= bit;
                }
            }
        }
    }
}

/// Number of rows that are processed at once: the bits of one word of a bit set.
const ROWS_AT_ONCE: usize = usize::BITS as usize;

/// Returns the bits of a set that start at position `first_row`.
fn bits_from(set: &FixedBitSet, first_row: usize) -> usize {
    let words = &set.as_slice()[first_row / ROWS_AT_ONCE..];
    let next = words
        .get(1)
        .and_then(|next| next.checked_shl((ROWS_AT_ONCE - first_row % ROWS_AT_ONCE) as u32));
    words[0] >> (first_row % ROWS_AT_ONCE) | next.unwrap_or(0)
}

/// Returns the positions of the bits that are set.
fn set_bits(mut word: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let one = word.trailing_zeros() as usize;
        word &= word - 1;
        Some(one)
    })
}

impl SegmentWords {
    fn new(
        segment: &Segment,
        terms: &[QueryTerm],
        stems: &[Grams],
        is_known: bool,
        outlines: Vec<RowOutline>,
        selected: Option<FixedBitSet>,
    ) -> Result<Self, StoreError> {
        let index = segment.skip_index()?;
        let indexed_words = index.word_lookup();
        let mut words: Vec<(u64, KnownRows)> = Vec::new();
        let mut occurs = Vec::new();
        for (term, grams) in terms.iter().zip(stems) {
            let known = if is_known { find_text_rows(&indexed_words, &term.stem)? } else { None };
            let mut known = known.unwrap_or_else(|| KnownRows::all_possible(index.row_count()));
            if let Some(selected) = &selected {
                known.possible.intersect_with(selected);
                known.certain.intersect_with(selected);
            }
            let mut blocks = 0;
            if known.possible != known.certain {
                let mut held = known.certain.clone();
                for at in index.find_candidate_blocks(grams)?.ones() {
                    let block = &index.blocks()[at];
                    let rows = block.start..block.start + block.count;
                    if selected.as_ref().is_some_and(|all| !all.contains_any_in_range(rows.clone()))
                    {
                        continue;
                    }
                    held.insert_range(rows);
                    blocks += 1;
                }
                known.possible.intersect_with(&held);
            }
            occurs.push(WordOccurrences { rows: known.certain.count_ones(..), blocks });

            match words.get_mut(63) {
                Some((_, last)) => {
                    last.possible.union_with(&known.possible);
                    last.certain.union_with(&known.certain);
                }
                None => words.push((word_bit(words.len()), known)),
            }
        }

        let mut lengths = [0; 32];
        for (row, outline) in outlines.iter().enumerate() {
            if selected.as_ref().is_none_or(|selected| selected.contains(row)) {
                lengths[usize::from(outline.length_bits) % 32] += 1;
            }
        }
        Ok(Self { outlines, selected, lengths, words, terms: occurs })
    }

    /// Returns the number of rows that the filters select.
    fn selected_count(&self) -> usize {
        self.selected.as_ref().map_or(self.outlines.len(), |selected| selected.count_ones(..))
    }
}

impl RowWords {
    /// Returns the type of the row's event.
    pub(super) fn event_type(&self) -> EventType {
        self.outline.event_type
    }

    /// Returns the maximum score of such a row.
    pub(super) fn max_score(self, scorer: &Scorer, kind: EventType, time: Option<i64>) -> f64 {
        scorer.max_score(self.words, time) * type_weight(kind)
    }

    /// Returns the expected score of such a row at its newest.
    pub(super) fn estimate_score(self, estimator: &Estimator<'_>) -> f64 {
        let score = estimator.estimate_score(self.words, self.doubtful, self.outline.length_bits);
        score * type_weight(self.outline.event_type)
    }
}
