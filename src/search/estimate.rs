//! What a row promises to score, by what the index knows of it.

use super::score::{ONCE, Scorer, covering};
use super::sums::Sums;

/// What a word counts that only the block is known to have, and the length of a text, in bytes, for
/// which it counts one more. With these the best answer to 29 of 30 questions over the real logs is
/// among the tenth of the pages that seems best.
const MAYBE: f64 = 0.5;
const SURE_LENGTH: f64 = 32.0 * 1024.0;

/// What prompts and messages may be expected to score, at their newest, that have words once and
/// apart from each other.
pub(super) struct Estimator<'s> {
    weights: &'s Sums,
    all: f64,
    by_length: [ByLength; 32],
}

/// By the bits of a text's length.
struct ByLength {
    /// What one occurrence is worth.
    once: f64,
    /// The share of a word's weight that counts when it may be in the text.
    maybe: f64,
}

impl<'s> Estimator<'s> {
    pub(super) fn new(scorer: &'s Scorer) -> Self {
        let by_length = |bits: usize| {
            // Three quarters of a power of two are the middle of the numbers with so many bits.
            let length = (1u64 << bits) as f64 * 0.75;
            ByLength {
                once: ONCE + (1.0 - ONCE) / (1.0 + scorer.held_back(length)),
                maybe: f64::min(MAYBE + length / SURE_LENGTH, 1.0),
            }
        };
        let by_length = std::array::from_fn(by_length);
        Self { weights: &scorer.sums, all: scorer.all, by_length }
    }

    /// Of the words that a text may have, and of those the ones it has, a [`super::sums::bit`] each.
    pub(super) fn score(&self, words: u64, certain: u64, bits_of_length: u8) -> f64 {
        let of = &self.by_length[usize::from(bits_of_length) % 32];
        let covered =
            self.weights.of(words & certain) + self.weights.of(words & !certain) * of.maybe;
        covered * of.once * covering(covered, self.all)
    }
}
