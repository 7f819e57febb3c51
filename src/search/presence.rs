//! What the skip indexes say of a ranked question: which words each row may hold, and what that
//! lets it score.

use std::collections::HashMap;

use schemas::EventType;

use super::estimate::Estimator;
use super::gate::{Gate, Unit};
use super::known::of_text;
use super::score::{Scorer, Term, type_weight};
use super::sums::bit;
use crate::cores::in_parallel;
use crate::store::{Grams, Outline, Segment, StoreError, grams};

/// All rows of the segments that the filters leave.
pub(super) struct Presence(HashMap<usize, OfSegment>);

struct OfSegment {
    rows: Vec<Held>,
    /// Blocks that may hold each word.
    blocks: Vec<usize>,
}

/// What is known of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// The words that it may hold, a [`bit`] each.
    words: u64,
    /// Those of them that it holds.
    certain: u64,
    outline: Outline,
}

impl Presence {
    /// Asks the indexes.
    pub(super) fn new(gate: &Gate<'_>, terms: &[Term]) -> Result<Self, StoreError> {
        let stems: Vec<Grams> = terms.iter().map(|term| grams(&term.stem)).collect();
        // Rows are known by their texts as they are written; beyond ASCII they are scored composed.
        let is_known = terms.iter().all(|term| term.stem.is_ascii());
        let segments: Vec<_> = gate.open_segments().collect();
        let parts = in_parallel(&segments, 1, |segments| {
            let of = |(number, segment): &(usize, &Segment)| {
                Ok((*number, OfSegment::new(segment, terms, &stems, is_known)?))
            };
            segments.iter().map(of).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(Self(parts.into_iter().flatten().collect()))
    }

    /// How many blocks may hold a word.
    pub(super) fn blocks(&self, term: usize) -> usize {
        self.0.values().map(|of| of.blocks[term]).sum()
    }

    /// The rows of a page.
    pub(super) fn rows(&self, unit: &Unit) -> &[Held] {
        let rows = unit.page.start..unit.page.start + unit.page.count;
        self.0.get(&unit.segment).and_then(|of| of.rows.get(rows)).unwrap_or_default()
    }
}

impl OfSegment {
    fn new(
        segment: &Segment,
        terms: &[Term],
        stems: &[Grams],
        is_known: bool,
    ) -> Result<Self, StoreError> {
        let index = segment.index()?;
        let held = |outline| Held { words: 0, certain: 0, outline };
        let mut rows: Vec<Held> = index.outlines()?.into_iter().map(held).collect();
        let mut blocks = Vec::new();
        for (number, (term, grams)) in terms.iter().zip(stems).enumerate() {
            let bit = bit(number);
            let holding = index.holding(grams)?;
            blocks.push(holding.count_ones(..));
            let known = if is_known { of_text(index, &term.stem)? } else { None };
            for block in holding.ones().map(|at| &index.blocks()[at]) {
                let rows = rows[block.start..block.start + block.count].iter_mut();
                for (held, row) in rows.zip(block.start..) {
                    if known.as_ref().is_none_or(|known| known.may.contains(row)) {
                        held.words |= bit;
                    }
                }
            }
            if let Some(known) = known {
                known.certain.ones().for_each(|row| rows[row].certain |= bit);
            }
        }
        Ok(Self { rows, blocks })
    }
}

impl Held {
    pub(super) fn kind(&self) -> EventType {
        self.outline.event_type
    }

    /// The most that such a row can score.
    pub(super) fn bound(self, scorer: &Scorer, kind: EventType, time: Option<i64>) -> f64 {
        scorer.bound(self.words, time) * type_weight(kind)
    }

    /// What such a row may be expected to score, at its newest.
    pub(super) fn estimate(self, estimator: &Estimator<'_>) -> f64 {
        let score = estimator.score(self.words, self.certain, self.outline.bits);
        score * type_weight(self.outline.event_type)
    }
}
