//! Scores the sessions of one segment from the words in their events.

use std::collections::{HashMap, VecDeque};

use schemas::EventType;

use super::postings::{SegmentHits, TermHit, is_talk};
use super::titles::TitleHit;
use crate::store::SessionSpan;

/// How soon further occurrences of a word count less (`k1` of BM25).
const SATURATION: f32 = 1.6;

/// The factor of a title. It is above that of a prompt, because it names what a session is about.
const TITLE_FACTOR: f32 = 1.6;

/// How much a long event loses (`b` of BM25).
const EVENT_LENGTH_WEIGHT: f32 = 0.6;

/// How much a session with long talk loses (`b` of BM25).
const SESSION_LENGTH_WEIGHT: f32 = 0.9;

/// Consecutive talk events that are scored as one text.
const WINDOW_EVENTS: usize = 3;

/// The best events of a session in a segment that are kept.
const KEPT_EVENTS: usize = 24;

/// What the events of a whole request have in common.
pub(super) struct Averages {
    /// The weight of each word of the question: its inverse document frequency. 0 if no event has it.
    pub(super) weights: Vec<f32>,
    /// Average length of an event, of the talk of a session, and of a window, in bytes.
    pub(super) event_length: f32,
    pub(super) session_length: f32,
    pub(super) window_length: f32,
}

/// Counts over the events that are asked about, from which [`Averages`] follow.
#[derive(Clone)]
pub(super) struct Totals {
    rows: u64,
    bytes: f64,
    windows: u64,
    window_bytes: f64,
    /// Approximate bytes of the talk of each session, which may be in several segments.
    talk_bytes: HashMap<usize, f32>,
    /// For each word, the events that have it.
    pub(super) exact: Vec<u64>,
    /// For each word, the events that have related words only.
    pub(super) related: Vec<u64>,
}

impl Totals {
    pub(super) fn new(terms: usize) -> Self {
        Self {
            rows: 0,
            bytes: 0.0,
            windows: 0,
            window_bytes: 0.0,
            talk_bytes: HashMap::new(),
            exact: vec![0; terms],
            related: vec![0; terms],
        }
    }

    /// Counts the events of a segment.
    pub(super) fn add_segment(&mut self, found: &SegmentHits) {
        for span in &found.spans {
            let mut talk: Vec<f32> = Vec::new();
            for (_, event_type, length) in found.rows_of(span) {
                self.rows += 1;
                self.bytes += f64::from(length);
                if is_talk(event_type) {
                    talk.push(length);
                }
            }
            for start in 0..talk.len() {
                self.windows += 1;
                self.window_bytes += f64::from(window_length(&talk, start));
            }
            *self.talk_bytes.entry(span.session).or_default() += talk.iter().sum::<f32>();
        }
        for hit in &found.hits {
            let counts = if hit.value >= 1.0 { &mut self.exact } else { &mut self.related };
            counts[hit.term] += 1;
        }
    }

    /// Counts titles, which may have words that no event has.
    pub(super) fn add_titles(&mut self, titles: &[TitleHit]) {
        let mut counts = vec![0; self.exact.len()];
        for (term, value) in titles.iter().flat_map(|title| &title.values) {
            counts[*term] += u64::from(*value >= 1.0);
        }
        for (events, titles) in self.exact.iter_mut().zip(counts) {
            *events = titles.max(*events);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.windows += other.windows;
        self.window_bytes += other.window_bytes;
        for (session, bytes) in &other.talk_bytes {
            *self.talk_bytes.entry(*session).or_default() += bytes;
        }
        for (count, more) in self.exact.iter_mut().zip(&other.exact) {
            *count += more;
        }
        for (count, more) in self.related.iter_mut().zip(&other.related) {
            *count += more;
        }
    }

    /// Returns the approximate bytes of the talk of a session.
    pub(super) fn talk_length(&self, session: usize) -> f32 {
        self.talk_bytes.get(&session).copied().unwrap_or(0.0)
    }

    /// Returns the averages over `sessions` sessions.
    pub(super) fn averages(&self, sessions: usize) -> Averages {
        let weights = self.exact.iter().zip(&self.related).map(|(exact, related)| {
            let events = if *exact > 0 { *exact } else { *related };
            if events == 0 { 0.0 } else { rarity_weight(events, self.rows) }
        });
        let talk_bytes = self.talk_bytes.values().copied().map(f64::from).sum();
        let average = |sum: f64, count: u64| (sum / count.max(1) as f64).max(1.0) as f32;
        Averages {
            weights: weights.collect(),
            event_length: average(self.bytes, self.rows),
            session_length: average(talk_bytes, sessions as u64),
            window_length: average(self.window_bytes, self.windows),
        }
    }
}

/// Returns the weight of a word that `events` of `all` events have.
fn rarity_weight(events: u64, all: u64) -> f32 {
    let (events, all) = (events as f64, all as f64);
    f64::ln(1.0 + (all - events + 0.5) / (events + 0.5)) as f32
}

/// An event that has words of the question.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoredEvent {
    /// Position in `Snapshot::segments`.
    pub(super) segment: usize,
    /// Position in the segment.
    pub(super) row: usize,
    pub(super) event_index: u32,
    pub(super) event_type: EventType,
    pub(super) score: f32,
    /// The words that the event has in full, a bit each.
    pub(super) exact: u32,
}

/// What the rows of one session in one segment add to its score.
pub(super) struct SpanScore {
    pub(super) session: usize,
    /// For each word of the question, the talk events that have it.
    pub(super) talk_counts: Vec<f32>,
    /// Score of the best window.
    pub(super) window: f32,
    /// The words that any event has, a bit each.
    pub(super) words: u32,
    /// Number of events that have words.
    pub(super) matched: usize,
    /// The best events, best first.
    pub(super) events: Vec<ScoredEvent>,
}

impl Averages {
    /// Scores every session of a segment that has words of the question.
    pub(super) fn score_segment(&self, found: &SegmentHits) -> Vec<SpanScore> {
        let mut scores = Vec::new();
        for span in &found.spans {
            let hits = found.hits_of(span);
            if !hits.is_empty() {
                scores.push(self.score_span(found, span, hits));
            }
        }
        scores
    }

    fn score_span(&self, found: &SegmentHits, span: &SessionSpan, hits: &[TermHit]) -> SpanScore {
        // The place of each talk event among the others, and the lengths of all of them.
        let mut talk_lengths: Vec<f32> = Vec::new();
        let mut places: HashMap<usize, (EventType, f32, Option<usize>)> = HashMap::new();
        let mut rest = hits;
        for (row, event_type, length) in found.rows_of(span) {
            let place = is_talk(event_type).then_some(talk_lengths.len());
            while rest.first().is_some_and(|hit| hit.row < row) {
                rest = &rest[1..];
            }
            if rest.first().is_some_and(|hit| hit.row == row) {
                places.insert(row, (event_type, length, place));
            }
            if place.is_some() {
                talk_lengths.push(length);
            }
        }

        let mut score = SpanScore {
            session: span.session,
            talk_counts: vec![0.0; self.weights.len()],
            window: 0.0,
            words: 0,
            matched: 0,
            events: Vec::new(),
        };
        let mut windows = OpenWindows::default();
        for event_hits in hits.chunk_by(|a, b| a.row == b.row) {
            let row = event_hits[0].row;
            let Some((event_type, length, place)) = places.get(&row).copied() else { continue };
            let mut sum = 0.0;
            let mut exact = 0;
            for hit in event_hits {
                let factor = saturate(hit.value, EVENT_LENGTH_WEIGHT, length / self.event_length);
                sum += self.weights[hit.term] * factor;
                score.words |= 1 << hit.term;
                if hit.value >= 1.0 {
                    exact |= 1 << hit.term;
                }
            }
            if let Some(place) = place {
                for hit in event_hits {
                    score.talk_counts[hit.term] += hit.value;
                }
                score.window =
                    score.window.max(windows.add(self, &talk_lengths, place, event_hits));
            }
            score.matched += 1;
            let event_index = span
                .first_index
                .saturating_add(u32::try_from(row - span.start).unwrap_or(u32::MAX));
            score.events.push(ScoredEvent {
                segment: found.segment,
                row,
                event_index,
                event_type,
                score: sum * type_factor(event_type),
                exact,
            });
        }
        score.window = score.window.max(windows.close_before(self, &talk_lengths, usize::MAX));
        score.events.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
        score.events.truncate(KEPT_EVENTS);
        score
    }

    /// Returns the score of a title, as of a short event.
    pub(super) fn score_title(&self, title: &TitleHit) -> f32 {
        let relative_length = title.length / self.event_length;
        let terms = title.values.iter();
        let sum: f32 = terms
            .map(|(term, value)| {
                self.weights[*term] * saturate(*value, EVENT_LENGTH_WEIGHT, relative_length)
            })
            .sum();
        sum * TITLE_FACTOR
    }

    /// Returns the score of the talk of a session as one text.
    pub(super) fn score_talk(&self, counts: &[f32], length: f32) -> f32 {
        let relative_length = length / self.session_length;
        let terms = counts.iter().zip(&self.weights);
        terms
            .map(|(count, weight)| {
                weight * saturate(*count, SESSION_LENGTH_WEIGHT, relative_length)
            })
            .sum()
    }

    /// Returns the sum of all weights, which is not zero.
    pub(super) fn total_weight(&self) -> f32 {
        self.weights.iter().sum::<f32>().max(f32::MIN_POSITIVE)
    }
}

/// Returns what `count` occurrences count in a text of this length, relative to the average.
fn saturate(count: f32, length_weight: f32, relative_length: f32) -> f32 {
    if count == 0.0 {
        return 0.0;
    }
    let norm = 1.0 - length_weight + length_weight * relative_length;
    count * (SATURATION + 1.0) / (count + SATURATION * norm)
}

/// Returns the factor for an event of a type.
pub(super) const fn type_factor(event_type: EventType) -> f32 {
    match event_type {
        EventType::User => 1.2,
        EventType::Message => 1.0,
        EventType::Reasoning => 0.6,
        EventType::ToolCall => 0.4,
        EventType::ToolResult => 0.3,
        EventType::Notification | EventType::TokenUsage => 0.1,
    }
}

/// Returns the length of the window that begins with the talk event at `start`.
fn window_length(talk: &[f32], start: usize) -> f32 {
    talk[start..].iter().take(WINDOW_EVENTS).sum()
}

/// The windows that the next talk event may belong to.
#[derive(Default)]
struct OpenWindows(VecDeque<OpenWindow>);

struct OpenWindow {
    /// Place of its first talk event.
    start: usize,
    counts: Vec<f32>,
}

impl OpenWindows {
    /// Adds the talk event at `place`, and returns the best score of the windows that it closes.
    fn add(&mut self, averages: &Averages, talk: &[f32], place: usize, hits: &[TermHit]) -> f32 {
        let first = (place + 1).saturating_sub(WINDOW_EVENTS);
        let best = self.close_before(averages, talk, first);
        for start in first..=place {
            if self.0.back().is_none_or(|last| last.start < start) {
                self.0.push_back(OpenWindow { start, counts: vec![0.0; averages.weights.len()] });
            }
        }
        for window in &mut self.0 {
            for hit in hits {
                window.counts[hit.term] += hit.value;
            }
        }
        best
    }

    /// Removes the windows that begin before `start`, and returns the best of their scores.
    fn close_before(&mut self, averages: &Averages, talk: &[f32], start: usize) -> f32 {
        let mut best = 0.0;
        while let Some(window) = self.0.pop_front_if(|window| window.start < start) {
            let relative_length = window_length(talk, window.start) / averages.window_length;
            let terms = window.counts.iter().zip(&averages.weights);
            let score: f32 = terms
                .map(|(count, weight)| {
                    weight * saturate(*count, EVENT_LENGTH_WEIGHT, relative_length)
                })
                .sum();
            best = f32::max(best, score);
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn averages(weights: &[f32]) -> Averages {
        Averages {
            weights: weights.to_vec(),
            event_length: 10.0,
            session_length: 100.0,
            window_length: 30.0,
        }
    }

    #[test]
    fn words_in_neighbouring_events_meet_in_a_window() {
        let averages = averages(&[1.0, 1.0]);
        let talk = [10.0; 9];
        let hit = |term| [TermHit { row: 0, term, value: 1.0 }];
        let best_of = |places: [usize; 2]| {
            let mut windows = OpenWindows::default();
            let mut best: f32 = 0.0;
            for (term, place) in places.into_iter().enumerate() {
                best = best.max(windows.add(&averages, &talk, place, &hit(term)));
            }
            best.max(windows.close_before(&averages, &talk, usize::MAX))
        };
        let (near, far) = (best_of([2, 4]), best_of([2, 5]));
        assert!(near > far * 1.9, "{near} {far}");
        assert_eq!(best_of([0, 1]), near);
        // The last windows are shorter, so what they have counts more.
        assert!(best_of([7, 8]) > near);
    }

    #[test]
    fn rare_words_and_short_texts_count_more() {
        assert!(rarity_weight(1, 1000) > 3.0 * rarity_weight(200, 1000));
        let averages = averages(&[1.0]);
        assert!(averages.score_talk(&[1.0], 50.0) > averages.score_talk(&[1.0], 500.0));
        assert!(averages.score_talk(&[3.0], 100.0) < 3.0 * averages.score_talk(&[1.0], 100.0));
        assert_eq!(averages.score_talk(&[0.0], 100.0), 0.0);
    }
}
