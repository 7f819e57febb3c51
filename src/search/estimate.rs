//! What a row promises to score, by what the index knows of it.

use super::score::{ONCE, Scorer, covering};
use super::sums::Sums;

/// What a word counts that only the block is known to have, and the length of a text, in bytes, for
/// which it counts one more. With these the best answer to each of 80 questions, words of prompts of
/// the real logs, is on the 32 pages that seem best, of a thousand.
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

/// About the length of a text, in bytes, that has so many bits: three quarters of a power of two are
/// the middle of those.
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

    /// Of the words that a text may have, and of those the doubtful ones, a [`super::sums::bit`] each.
    pub(super) fn score(&self, words: u64, doubtful: u64, bits_of_length: u8) -> f64 {
        let of = &self.by_length[usize::from(bits_of_length) % 32];
        let mut covered = self.weights.of(words & !doubtful);
        if doubtful != 0 {
            covered += self.weights.of(doubtful) * of.maybe;
        }
        covered * of.once * covering(covered, self.all)
    }
}
