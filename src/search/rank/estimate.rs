//! Score estimates for rows, computed from the skip index alone.

use super::score::{ONCE, Scorer, covering};
use super::weight_tables::Sums;

/// `MAYBE` is the share of a word's weight that counts if only the block is known to contain
/// the word. The share grows by one for every `SURE_LENGTH` bytes of text. With these values, the
/// best answer to each of 80 questions (words from prompts of real logs) is on the 32
/// best-estimated pages of a thousand.
const MAYBE: f64 = 0.5;
const SURE_LENGTH: f64 = 32.0 * 1024.0;

/// Estimates the score of prompts and messages at their newest, assuming that each word occurs
/// once and apart from the others.
pub(super) struct Estimator<'s> {
    weights: &'s Sums,
    all: f64,
    by_length: [ByLength; 32],
}

/// Factors for texts whose length has a given number of bits.
struct ByLength {
    /// The factor for a word that occurs once.
    once: f64,
    /// The share of a word's weight that counts when it may be in the text.
    maybe: f64,
}

/// Returns the approximate length in bytes of a text whose length has `bits` bits: three
/// quarters of 2^`bits`, the middle of that range.
pub(super) fn length(bits: u8) -> f64 {
    (1u64 << bits) as f64 * 0.75
}

impl<'s> Estimator<'s> {
    pub(super) fn new(scorer: &'s Scorer) -> Self {
        let by_length = |bits: usize| {
            let length = length(bits as u8);
            ByLength {
                once: ONCE + (1.0 - ONCE) / (1.0 + scorer.held_back(length)),
                maybe: f64::min(MAYBE + length / SURE_LENGTH, 1.0),
            }
        };
        let by_length = std::array::from_fn(by_length);
        Self { weights: &scorer.sums, all: scorer.all, by_length }
    }

    /// Estimates the score of a text from its possible words and those of them that are
    /// doubtful, one [`super::weight_tables::bit`] each.
    pub(super) fn score(&self, words: u64, doubtful: u64, bits_of_length: u8) -> f64 {
        let of = &self.by_length[usize::from(bits_of_length) % 32];
        let mut covered = self.weights.of(words & !doubtful);
        if doubtful != 0 {
            covered += self.weights.of(doubtful) * of.maybe;
        }
        covered * of.once * covering(covered, self.all)
    }
}
