//! Determines from the skip indexes which words of a ranked question each row may contain, and the
//! score that this allows.

use std::collections::HashMap;

use fixedbitset::FixedBitSet;
use schemas::EventType;

use super::estimate::{Estimator, length};
use super::score::{Scorer, Term, type_weight};
use super::weight_tables::bit;
use crate::base::parallel::in_parallel;
use crate::search::indexed_rows::of_text;
use crate::search::row_filter::{RowFilter, Unit};
use crate::store::{Grams, KnownRows, Outline, Segment, StoreError, grams};

/// The rows of all segments that pass the filters, with their possible words.
pub(super) struct Presence {
    segments: HashMap<usize, OfSegment>,
    /// Occurrences of each word.
    pub(super) terms: Vec<Occurs>,
    /// Number of rows in the segments.
    pub(super) all: usize,
}

/// The number of rows and blocks in which a word occurs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Occurs {
    /// Rows known to contain the word.
    pub(super) rows: usize,
    /// Blocks that may contain the word, if the index does not decide every row.
    pub(super) blocks: usize,
}

struct OfSegment {
    outlines: Vec<Outline>,
    /// Number of rows by the bits of their text length.
    lengths: [u64; 32],
    /// The [`bit`] of each word and its rows; words from the 64th on share one entry.
    words: Vec<(u64, KnownRows)>,
    terms: Vec<Occurs>,
}

/// The possible words of a row, and its outline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// The words that the row may contain, a [`bit`] each.
    words: u64,
    /// The words among them that the row may also lack.
    doubtful: u64,
    outline: Outline,
}

impl Presence {
    /// Queries the skip indexes of all segments that pass the filters.
    pub(super) fn new(gate: &RowFilter<'_>, terms: &[Term]) -> Result<Self, StoreError> {
        let stems: Vec<Grams> = terms.iter().map(|term| grams(&term.stem)).collect();
        // The index lists texts as written; texts beyond ASCII are scored composed.
        let is_known = terms.iter().all(|term| term.stem.is_ascii());
        let segments: Vec<_> = gate.open_segments().collect();
        let parts = in_parallel(&segments, 1, |segments| {
            let of = |(number, segment): &(usize, &Segment)| {
                Ok((*number, OfSegment::new(segment, terms, &stems, is_known)?))
            };
            segments.iter().map(of).collect::<Result<Vec<_>, _>>()
        })?;
        let segments: HashMap<usize, OfSegment> = parts.into_iter().flatten().collect();
        let mut occurs = vec![Occurs::default(); terms.len()];
        for of in segments.values() {
            for (all, part) in occurs.iter_mut().zip(&of.terms) {
                all.rows += part.rows;
                all.blocks += part.blocks;
            }
        }
        let all = segments.values().map(|of| of.outlines.len()).sum();
        Ok(Self { segments, terms: occurs, all })
    }

    /// Returns the average length of the texts in bytes, without empty ones.
    pub(super) fn average(&self) -> u64 {
        let lengths = (1..32).map(|bits| {
            let rows: u64 = self.segments.values().map(|of| of.lengths[usize::from(bits)]).sum();
            (rows, rows as f64 * length(bits))
        });
        let (rows, sum) = lengths.fold((0, 0.0), |all, of| (all.0 + of.0, all.1 + of.1));
        (sum / rows.max(1) as f64) as u64
    }

    /// Removes the words that have no weight.
    pub(super) fn forget_weightless(&mut self, scorer: &Scorer) {
        for of in self.segments.values_mut() {
            of.words.retain(|(bit, _)| scorer.sums.of(*bit) > 0.0);
        }
    }

    /// Fills `held` with the rows of a page.
    pub(super) fn rows(&self, unit: &Unit, held: &mut Vec<Held>) {
        held.clear();
        let Some(of) = self.segments.get(&unit.segment) else { return };
        let end = (unit.page.start + unit.page.count).min(of.outlines.len());
        let rows = unit.page.start.min(end)..end;
        let outlines = of.outlines[rows.clone()].iter();
        held.extend(outlines.map(|outline| Held { words: 0, doubtful: 0, outline: *outline }));
        for (first, held) in rows.step_by(BITS).zip(held.chunks_mut(BITS)) {
            for (bit, known) in &of.words {
                let (may, certain) = (bits(&known.may, first), bits(&known.certain, first));
                let count = held.len();
                let within = |set| ones(set).take_while(move |at| *at < count);
                within(may).for_each(|at| held[at].words |= bit);
                within(may & !certain).for_each(|at| held[at].doubtful |= bit);
            }
        }
    }
}

/// Number of rows that are processed at once: the bits of one word of a bit set.
const BITS: usize = usize::BITS as usize;

/// Returns the bits of a set that start at position `from`.
fn bits(set: &FixedBitSet, from: usize) -> usize {
    let words = &set.as_slice()[from / BITS..];
    let next = words.get(1).and_then(|next| next.checked_shl((BITS - from % BITS) as u32));
    words[0] >> (from % BITS) | next.unwrap_or(0)
}

/// Returns the positions of the bits that are set.
fn ones(mut word: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let one = (word != 0).then_some(word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(one)
    })
}

impl OfSegment {
    fn new(
        segment: &Segment,
        terms: &[Term],
        stems: &[Grams],
        is_known: bool,
    ) -> Result<Self, StoreError> {
        let index = segment.index()?;
        let (mut words, mut occurs) = (Vec::<(u64, KnownRows)>::new(), Vec::new());
        let asked = index.words();
        for (term, grams) in terms.iter().zip(stems) {
            let known = if is_known { of_text(&asked, &term.stem)? } else { None };
            let mut known = known.unwrap_or_else(|| KnownRows::any(index.rows()));
            let mut blocks = 0;
            if known.may != known.certain {
                let mut held = known.certain.clone();
                for block in index.holding(grams)?.ones().map(|at| &index.blocks()[at]) {
                    held.insert_range(block.start..block.start + block.count);
                    blocks += 1;
                }
                known.may.intersect_with(&held);
            }
            occurs.push(Occurs { rows: known.certain.count_ones(..), blocks });
            match words.get_mut(63) {
                Some((_, last)) => {
                    last.may.union_with(&known.may);
                    last.certain.union_with(&known.certain);
                }
                None => words.push((bit(words.len()), known)),
            }
        }
        let (outlines, mut lengths) = (index.outlines()?, [0; 32]);
        outlines.iter().for_each(|outline| lengths[usize::from(outline.bits) % 32] += 1);
        Ok(Self { outlines, lengths, words, terms: occurs })
    }
}

impl Held {
    pub(super) fn kind(&self) -> EventType {
        self.outline.event_type
    }

    /// Returns the maximum score of such a row.
    pub(super) fn bound(self, scorer: &Scorer, kind: EventType, time: Option<i64>) -> f64 {
        scorer.bound(self.words, time) * type_weight(kind)
    }

    /// Returns the expected score of such a row at its newest.
    pub(super) fn estimate(self, estimator: &Estimator<'_>) -> f64 {
        let score = estimator.score(self.words, self.doubtful, self.outline.bits);
        score * type_weight(self.outline.event_type)
    }
}
