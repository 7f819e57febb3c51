//! Scores consecutive talk events as one text.

use std::ops::RangeInclusive;

use super::postings::TermHit;
use super::saturation::{EVENT_LENGTH_WEIGHT, saturate};

/// A number of consecutive talk events that are scored as one text.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowSize {
    pub(super) events: usize,
    /// What the best window of this size counts, relative to the best event.
    pub(super) weight: f32,
}

/// The sizes of windows: a prompt and its answer, and the talk around them.
pub(super) const WINDOW_SIZES: [WindowSize; 3] = [
    WindowSize { events: 2, weight: 0.5 },
    WindowSize { events: 3, weight: 1.0 },
    WindowSize { events: 5, weight: 1.0 },
];

/// Events of the longest of them.
pub(super) const LONGEST_WINDOW: usize = 5;

impl WindowSize {
    /// Returns the length of the window that begins with the talk event at `start`.
    pub(super) fn length(self, talk: &[f32], start: usize) -> f32 {
        talk[start..].iter().take(self.events).sum()
    }

    /// Returns the sum of the lengths of all windows over the talk events of a session, given the sum of
    /// their lengths and those of the first ones.
    pub(super) fn total_length(self, talk: f64, first: &[f64]) -> f64 {
        // An event is in as many windows as begin with it or before it, up to the size.
        let missing = first
            .iter()
            .zip(1..self.events)
            .map(|(length, begun)| *length * (self.events - begun) as f64);
        talk * self.events as f64 - missing.sum::<f64>()
    }

    /// Returns where the windows begin that the talk event at `place` belongs to.
    pub(super) fn starts_with(self, place: usize) -> RangeInclusive<usize> {
        (place + 1).saturating_sub(self.events)..=place
    }
}

/// Returns the best score of the windows of a size, given the weight of each word of the question, the average
/// length of such a window, the lengths of all talk events of a session, and those of them that have words:
/// the place of each among all, and its hits.
pub(super) fn score_best_window(
    weights: &[f32],
    size: WindowSize,
    average_length: f32,
    talk: &[f32],
    matches: &[(usize, &[TermHit])],
) -> f32 {
    let mut best: f32 = 0.0;
    let mut counts = vec![0.0; weights.len()];
    let mut next_start = 0;
    for (at, (place, _)) in matches.iter().enumerate() {
        // Of the windows whose first event with words is this one, later ones have more events at their end.
        counts.fill(0.0);
        let mut entering = matches[at..].iter().peekable();
        for start in next_start.max(*size.starts_with(*place).start())..=*place {
            let end = start + size.events;
            while let Some((_, hits)) = entering.next_if(|(place, _)| *place < end) {
                for hit in *hits {
                    counts[hit.term()] += hit.value();
                }
            }
            let relative_length = size.length(talk, start) / average_length;
            best = best.max(score_counts(weights, &counts, relative_length));
        }
        next_start = place + 1;
    }
    best
}

/// Returns the score of a window with some counts of the words of the question.
fn score_counts(weights: &[f32], counts: &[f32], relative_length: f32) -> f32 {
    let once = saturate(1.0, EVENT_LENGTH_WEIGHT, relative_length);
    let terms = counts.iter().zip(weights).filter(|(count, _)| **count > 0.0);
    let scores = terms.map(|(count, weight)| {
        // Most words occur once.
        let is_once = *count == 1.0;
        weight * if is_once { once } else { saturate(*count, EVENT_LENGTH_WEIGHT, relative_length) }
    });
    scores.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_neighbouring_events_meet_in_a_window() {
        let talk = [10.0; 9];
        let hit = |term| [TermHit::new(0, term, 1.0)];
        let (first, second) = (hit(0), hit(1));
        let best_of = |places: [usize; 2]| {
            let matches = [(places[0], first.as_slice()), (places[1], second.as_slice())];
            score_best_window(&[1.0, 1.0], WINDOW_SIZES[1], 30.0, &talk, &matches)
        };
        let (near, far) = (best_of([2, 4]), best_of([2, 5]));
        assert!(near > far * 1.9, "{near} {far}");
        assert_eq!(best_of([0, 1]), near);
        // The last windows are shorter, so what they have counts more.
        assert!(best_of([7, 8]) > near);
    }
}
