//! Scores the best of many sessions in full, and of the others only what is quickly computed.

use base::parallel::in_parallel;
use store::StoreError;

/// Fewest items that are scored at a time, and how many of them a core takes at once.
const MIN_BATCH: usize = 64;
const AT_ONCE: usize = 8;

/// A bound is multiplied by this, because its sums are rounded otherwise than those of a score.
pub(crate) const ROUNDING_MARGIN: f32 = 1.0001;

/// Items that are not scored yet, each with the highest score that it may have.
pub(crate) struct ByBound<T> {
    /// By bound; the highest is last.
    rest: Vec<(f32, T)>,
    /// Number of items that were scored.
    scored: usize,
}

impl<T: Sync> ByBound<T> {
    pub(crate) fn new(mut items: Vec<(f32, T)>) -> Self {
        items.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        Self { rest: items, scored: 0 }
    }

    /// Returns the highest score that any item may have; `None` if all are scored.
    pub(crate) fn next_bound(&self) -> Option<f32> {
        self.rest.last().map(|(bound, _)| *bound)
    }

    /// Returns the number of items that are not scored.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Scores the items with the highest bounds: as many as were scored before, so that few rounds are
    /// needed however many it takes.
    pub(crate) fn score_next<S: Send>(
        &mut self,
        score: impl Fn(&T) -> S + Sync,
    ) -> Result<Vec<S>, StoreError> {
        let batch = self.scored.max(MIN_BATCH).min(self.rest.len());
        self.scored += batch;
        let next = self.rest.split_off(self.rest.len() - batch);
        let scored = in_parallel(&next, AT_ONCE, |items| {
            Ok::<_, StoreError>(items.iter().map(|(_, item)| score(item)).collect::<Vec<_>>())
        })?;
        Ok(scored.into_iter().flatten().collect())
    }
}
