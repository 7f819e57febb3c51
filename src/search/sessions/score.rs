//! Scores sessions from the words in their events.

use std::collections::HashMap;

use schemas::EventType;

use super::postings::{SegmentHits, TermHit, is_talk};
use super::question::SessionQuestion;
use super::saturation::{EVENT_LENGTH_WEIGHT, saturate};
use super::titles::TitleHit;
use super::windows::{OpenWindows, WINDOW_SIZES};
use crate::store::SessionSpan;

/// The factor of a title. It is above that of a prompt, because it names what a session is about.
const TITLE_FACTOR: f32 = 1.6;

/// How much a session with long talk loses (`b` of BM25).
const SESSION_LENGTH_WEIGHT: f32 = 0.9;

/// The best events of a session that are kept.
const KEPT_EVENTS: usize = 24;

/// What the events of a whole request have in common.
pub(super) struct Averages {
    /// The weight of each word of the question: its inverse document frequency. 0 if no event has it.
    pub(super) weights: Vec<f32>,
    /// The same by sessions: words that every session has say nothing about which one is meant.
    pub(super) session_weights: Vec<f32>,
    /// Average length of an event, of the talk of a session, and of a window of each size, in bytes.
    pub(super) event_length: f32,
    pub(super) session_length: f32,
    pub(super) window_lengths: [f32; WINDOW_SIZES.len()],
}

/// Counts over the events that are asked about, from which [`Averages`] follow.
#[derive(Clone)]
pub(super) struct Totals {
    rows: u64,
    bytes: f64,
    windows: u64,
    window_bytes: [f64; WINDOW_SIZES.len()],
    /// The words of each session that has any, a bit each.
    words: HashMap<usize, u32>,
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
            window_bytes: [0.0; WINDOW_SIZES.len()],
            words: HashMap::new(),
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
            self.windows += talk.len() as u64;
            for (bytes, size) in self.window_bytes.iter_mut().zip(WINDOW_SIZES) {
                for start in 0..talk.len() {
                    *bytes += f64::from(size.length(&talk, start));
                }
            }
            let words = found.hits_of(span).iter().fold(0, |words, hit| words | 1 << hit.term);
            *self.words.entry(span.session).or_default() |= words;
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
        for (bytes, more) in self.window_bytes.iter_mut().zip(other.window_bytes) {
            *bytes += more;
        }
        for (session, words) in &other.words {
            *self.words.entry(*session).or_default() |= words;
        }
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

    /// Returns the words of the question that no event and no title has, as they were written.
    pub(super) fn absent_words(&self, question: &SessionQuestion) -> Vec<String> {
        let counts = self.exact.iter().zip(&self.related);
        let words = counts.zip(&question.terms);
        let absent = words.filter(|((exact, related), _)| **exact + **related == 0);
        absent.map(|(_, term)| term.word.clone()).collect()
    }

    /// Returns the approximate bytes of the talk of a session.
    pub(super) fn talk_length(&self, session: usize) -> f32 {
        self.talk_bytes.get(&session).copied().unwrap_or(0.0)
    }

    /// Returns the weight of each word by the sessions that have it or related words.
    fn session_weights(&self, sessions: usize) -> Vec<f32> {
        let mut counts = vec![0; self.exact.len()];
        for words in self.words.values() {
            for (term, count) in counts.iter_mut().enumerate() {
                *count += u64::from(words >> term & 1);
            }
        }
        let weigh = |count| if count == 0 { 0.0 } else { rarity_weight(count, sessions as u64) };
        counts.into_iter().map(weigh).collect()
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
            session_weights: self.session_weights(sessions),
            event_length: average(self.bytes, self.rows),
            session_length: average(talk_bytes, sessions as u64),
            window_lengths: self.window_bytes.map(|bytes| average(bytes, self.windows)),
        }
    }
}

/// Returns the weight of a word that `count` of `all` events or sessions have.
fn rarity_weight(count: u64, all: u64) -> f32 {
    let (count, all) = (count as f64, all as f64);
    f64::ln(1.0 + (all - count + 0.5) / (count + 0.5)) as f32
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

/// A row that has words of the question.
pub(super) struct MatchingRow<'a> {
    /// Position in `Snapshot::segments`.
    pub(super) segment: usize,
    /// Position in the segment.
    pub(super) row: usize,
    pub(super) event_index: u32,
    pub(super) event_type: EventType,
    pub(super) length: f32,
    /// Its place among the talk events of the session; `None` if it is none.
    pub(super) place: Option<usize>,
    pub(super) hits: &'a [TermHit],
}

/// Appends the rows of a part that have words of the question, and the lengths of its talk events.
pub(super) fn append_matches<'a>(
    part: &SessionPart<'a>,
    talk_lengths: &mut Vec<f32>,
    matches: &mut Vec<MatchingRow<'a>>,
) {
    let SessionPart { found, span } = part;
    let mut chunks = found.hits_of(span).chunk_by(|a, b| a.row == b.row).peekable();
    for (row, event_type, length) in found.rows_of(span) {
        let mut place = None;
        if is_talk(event_type) {
            place = Some(talk_lengths.len());
            talk_lengths.push(length);
        }
        while chunks.next_if(|hits| hits[0].row < row).is_some() {}
        let Some(hits) = chunks.next_if(|hits| hits[0].row == row) else { continue };
        let offset = u32::try_from(row - span.start).unwrap_or(u32::MAX);
        matches.push(MatchingRow {
            segment: found.segment,
            row,
            event_index: span.first_index.saturating_add(offset),
            event_type,
            length,
            place,
            hits,
        });
    }
}

/// The rows of a session in one segment.
pub(super) struct SessionPart<'a> {
    pub(super) found: &'a SegmentHits,
    pub(super) span: &'a SessionSpan,
}

/// Returns the parts of every session that has words of the question, in the order of events.
pub(super) fn collect_parts(hits: &[SegmentHits]) -> Vec<(usize, Vec<SessionPart<'_>>)> {
    let mut by_session: HashMap<usize, Vec<SessionPart<'_>>> = HashMap::new();
    for found in hits {
        for span in &found.spans {
            by_session.entry(span.session).or_default().push(SessionPart { found, span });
        }
    }
    let mut sessions: Vec<(usize, Vec<SessionPart<'_>>)> = by_session.into_iter().collect();
    let has_hits = |part: &SessionPart<'_>| !part.found.hits_of(part.span).is_empty();
    sessions.retain(|(_, parts)| parts.iter().any(has_hits));
    for (_, parts) in &mut sessions {
        parts.sort_by_key(|part| part.span.first_index);
    }
    sessions
}

/// What the events of a session add to its score.
pub(super) struct SessionScore {
    pub(super) session: usize,
    /// For each word of the question, the talk events that have it.
    pub(super) talk_counts: Vec<f32>,
    /// Score of the best window of each size.
    pub(super) windows: [f32; WINDOW_SIZES.len()],
    /// The words that any event has, a bit each.
    pub(super) words: u32,
    /// Number of events that have words.
    pub(super) matched: usize,
    /// The best events, best first.
    pub(super) events: Vec<ScoredEvent>,
}

impl SessionScore {
    /// The score of a session that has none of `terms` words.
    pub(super) fn empty(session: usize, terms: usize) -> Self {
        Self {
            session,
            talk_counts: vec![0.0; terms],
            windows: [0.0; WINDOW_SIZES.len()],
            words: 0,
            matched: 0,
            events: Vec::new(),
        }
    }

    fn keep_best_events(&mut self) {
        let best_first = |a: &ScoredEvent, b: &ScoredEvent| {
            b.score.total_cmp(&a.score).then(a.event_index.cmp(&b.event_index))
        };
        if self.events.len() > KEPT_EVENTS {
            self.events.select_nth_unstable_by(KEPT_EVENTS, best_first);
            self.events.truncate(KEPT_EVENTS);
        }
        self.events.sort_by(best_first);
    }
}

impl Averages {
    /// Scores a session, given its parts in the order of events.
    pub(super) fn score_session(&self, session: usize, parts: &[SessionPart<'_>]) -> SessionScore {
        let mut talk_lengths: Vec<f32> = Vec::new();
        let mut matches: Vec<MatchingRow<'_>> = Vec::new();
        for part in parts {
            append_matches(part, &mut talk_lengths, &mut matches);
        }

        let mut score = SessionScore::empty(session, self.weights.len());
        let mut windows: [OpenWindows<'_>; WINDOW_SIZES.len()] = std::array::from_fn(|at| {
            OpenWindows::new(&self.weights, WINDOW_SIZES[at], self.window_lengths[at])
        });
        for found in matches {
            let event = self.score_event(&found);
            for hit in found.hits {
                score.words |= 1 << hit.term;
            }
            if let Some(place) = found.place {
                for hit in found.hits {
                    score.talk_counts[hit.term] += hit.value;
                }
                for (best, windows) in score.windows.iter_mut().zip(&mut windows) {
                    *best = best.max(windows.add(&talk_lengths, place, found.hits));
                }
            }
            score.matched += 1;
            score.events.push(event);
        }
        for (best, mut windows) in score.windows.iter_mut().zip(windows) {
            *best = best.max(windows.close_before(&talk_lengths, usize::MAX));
        }
        score.keep_best_events();
        score
    }

    fn score_event(&self, found: &MatchingRow<'_>) -> ScoredEvent {
        let relative_length = found.length / self.event_length;
        let mut sum = 0.0;
        let mut exact = 0;
        for hit in found.hits {
            let factor = saturate(hit.value, EVENT_LENGTH_WEIGHT, relative_length);
            sum += self.weights[hit.term] * factor;
            if hit.value >= 1.0 {
                exact |= 1 << hit.term;
            }
        }
        ScoredEvent {
            segment: found.segment,
            row: found.row,
            event_index: found.event_index,
            event_type: found.event_type,
            score: sum * type_factor(found.event_type),
            exact,
        }
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

    /// Returns the score of the talk of a session as one text, given the weights of the words.
    pub(super) fn score_talk(&self, weights: &[f32], counts: &[f32], length: f32) -> f32 {
        let relative_length = length / self.session_length;
        let terms = counts.iter().zip(weights);
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

    /// Returns the sum of all weights by sessions, which is not zero.
    pub(super) fn total_session_weight(&self) -> f32 {
        self.session_weights.iter().sum::<f32>().max(f32::MIN_POSITIVE)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn averages(weights: &[f32]) -> Averages {
        Averages {
            weights: weights.to_vec(),
            session_weights: weights.to_vec(),
            event_length: 10.0,
            session_length: 100.0,
            window_lengths: [20.0, 30.0, 50.0],
        }
    }

    #[test]
    fn rare_words_and_short_texts_count_more() {
        assert!(rarity_weight(1, 1000) > 3.0 * rarity_weight(200, 1000));
        let averages = averages(&[1.0]);
        assert!(
            averages.score_talk(&averages.weights, &[1.0], 50.0)
                > averages.score_talk(&averages.weights, &[1.0], 500.0)
        );
        assert!(
            averages.score_talk(&averages.weights, &[3.0], 100.0)
                < 3.0 * averages.score_talk(&averages.weights, &[1.0], 100.0)
        );
        assert_eq!(averages.score_talk(&averages.weights, &[0.0], 100.0), 0.0);
    }
}
