//! Score estimates for rows, computed from the skip index alone.

use super::score::{ONCE_SHARE, Scorer, coverage_factor};
use super::weight_tables::WeightSums;
use crate::search::text_length::typical_length;

/// The share of a word's weight that counts if only the block is known to contain the word. With
/// this value and [`BYTES_PER_SHARE`], the best answer to each of 80 questions (words from prompts
/// of real logs) is on the 32 best-estimated pages of a thousand.
const DOUBTFUL_SHARE: f64 = 0.5;

/// [`DOUBTFUL_SHARE`] grows by one for every this many bytes of text.
const BYTES_PER_SHARE: f64 = 32.0 * 1024.0;

/// Estimates the score of prompts and messages at their newest, assuming that each word occurs
/// once and apart from the others.
pub(super) struct Estimator<'s> {
    weights: &'s WeightSums,
    total_weight: f64,
    by_length: [LengthFactors; 32],
}

/// Factors for texts whose length has a given number of bits.
struct LengthFactors {
    /// The factor for a word that occurs once.
    once: f64,
    /// The share of a word's weight that counts when it may be in the text.
    doubtful: f64,
}

impl LengthFactors {
    fn new(scorer: &Scorer, bits: u8) -> Self {
        let length = typical_length(bits);
        Self {
            once: ONCE_SHARE + (1.0 - ONCE_SHARE) / (1.0 + scorer.half_saturation(length)),
            doubtful: f64::min(DOUBTFUL_SHARE + length / BYTES_PER_SHARE, 1.0),
        }
    }
}

impl<'s> Estimator<'s> {
    pub(super) fn new(scorer: &'s Scorer) -> Self {
        let by_length = std::array::from_fn(|bits| LengthFactors::new(scorer, bits as u8));
        Self { weights: &scorer.term_sums, total_weight: scorer.total_weight, by_length }
    }

    /// Estimates the score of a text from its possible words and those of them that are
    /// doubtful, one bit each.
    pub(super) fn estimate_score(&self, words: u64, doubtful: u64, bits_of_length: u8) -> f64 {
        let factors = &self.by_length[usize::from(bits_of_length) % 32];
        let mut covered = self.weights.weight_of(words & !doubtful);
        if doubtful != 0 {
            covered += self.weights.weight_of(doubtful) * factors.doubtful;
        }
        covered * factors.once * coverage_factor(covered, self.total_weight)
    }
}
