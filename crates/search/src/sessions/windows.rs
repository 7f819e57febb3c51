//! Scores consecutive talk events as one text.

use std::collections::VecDeque;
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

/// The windows that the next talk event may belong to.
pub(super) struct OpenWindows<'a> {
    /// The weight of each word of the question.
    weights: &'a [f32],
    size: WindowSize,
    /// Average length of a window, in bytes.
    average_length: f32,
    open: VecDeque<OpenWindow>,
    /// Buffers of closed windows.
    spare: Vec<Vec<f32>>,
}

struct OpenWindow {
    /// Place of its first talk event.
    start: usize,
    counts: Vec<f32>,
}

impl<'a> OpenWindows<'a> {
    pub(super) fn new(weights: &'a [f32], size: WindowSize, average_length: f32) -> Self {
        Self { weights, size, average_length, open: VecDeque::new(), spare: Vec::new() }
    }

    /// Adds the talk event at `place`, and returns the best score of the windows that it closes.
    pub(super) fn add(&mut self, talk: &[f32], place: usize, hits: &[TermHit]) -> f32 {
        let starts = self.size.starts_with(place);
        let best = self.close_before(talk, *starts.start());
        for start in starts {
            if self.open.back().is_none_or(|last| last.start < start) {
                let mut counts = self.spare.pop().unwrap_or_default();
                counts.clear();
                counts.resize(self.weights.len(), 0.0);
                self.open.push_back(OpenWindow { start, counts });
            }
        }
        for window in &mut self.open {
            for hit in hits {
                window.counts[hit.term()] += hit.value();
            }
        }
        best
    }

    /// Removes the windows that begin before `start`, and returns the best of their scores.
    pub(super) fn close_before(&mut self, talk: &[f32], start: usize) -> f32 {
        let mut best = 0.0;
        while let Some(window) = self.open.pop_front_if(|window| window.start < start) {
            let relative_length = self.size.length(talk, window.start) / self.average_length;
            let terms = window.counts.iter().zip(self.weights);
            let score: f32 = terms
                .map(|(count, weight)| {
                    weight * saturate(*count, EVENT_LENGTH_WEIGHT, relative_length)
                })
                .sum();
            best = f32::max(best, score);
            self.spare.push(window.counts);
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_neighbouring_events_meet_in_a_window() {
        let talk = [10.0; 9];
        let hit = |term| [TermHit::new(0, term, 1.0)];
        let best_of = |places: [usize; 2]| {
            let mut windows = OpenWindows::new(&[1.0, 1.0], WINDOW_SIZES[1], 30.0);
            let mut best: f32 = 0.0;
            for (term, place) in places.into_iter().enumerate() {
                best = best.max(windows.add(&talk, place, &hit(term)));
            }
            best.max(windows.close_before(&talk, usize::MAX))
        };
        let (near, far) = (best_of([2, 4]), best_of([2, 5]));
        assert!(near > far * 1.9, "{near} {far}");
        assert_eq!(best_of([0, 1]), near);
        // The last windows are shorter, so what they have counts more.
        assert!(best_of([7, 8]) > near);
    }
}
