//! Scores sessions from the words in their events.

use std::collections::HashMap;

use schemas::EventType;

use super::postings::{SegmentHits, TermHit, is_talk};
use super::saturation::{EVENT_LENGTH_WEIGHT, saturate};
use super::titles::TitleHit;
use super::totals::Averages;
use super::windows::{OpenWindows, WINDOW_SIZES};
use crate::store::SessionSpan;

/// The factor of a title. It is above that of a prompt, because it names what a session is about.
const TITLE_FACTOR: f32 = 1.6;

/// How much a session with long talk loses (`b` of BM25).
const SESSION_LENGTH_WEIGHT: f32 = 0.9;

/// The best events of a session that are kept.
const KEPT_EVENTS: usize = 24;

/// An event that has words of the question.
#[derive(Debug, Clone, Copy)]
pub(in crate::search) struct ScoredEvent {
    /// Position in `Snapshot::segments`.
    pub(in crate::search) segment: usize,
    /// Position in the segment.
    pub(in crate::search) row: usize,
    pub(in crate::search) event_index: u32,
    pub(in crate::search) event_type: EventType,
    pub(in crate::search) score: f32,
    /// The words that the event has in full, a bit each.
    pub(in crate::search) exact: u32,
}

/// A row that has words of the question.
pub(in crate::search) struct MatchingRow<'a> {
    /// Position in `Snapshot::segments`.
    pub(in crate::search) segment: usize,
    /// Position in the segment.
    pub(in crate::search) row: usize,
    pub(in crate::search) event_index: u32,
    pub(in crate::search) event_type: EventType,
    pub(in crate::search) length: f32,
    /// Its place among the talk events of the session; `None` if it is none.
    pub(in crate::search) place: Option<usize>,
    /// Number of talk events of the session before it.
    pub(in crate::search) talk_before: usize,
    pub(in crate::search) hits: &'a [TermHit],
}

/// Appends the rows of a part that have words of the question, and the lengths of its talk events.
pub(in crate::search) fn append_matches<'a>(
    part: &SessionPart<'a>,
    talk_lengths: &mut Vec<f32>,
    matches: &mut Vec<MatchingRow<'a>>,
) {
    let SessionPart { found, span } = part;
    let hits = found.hits_of(span);
    // A row has at least one hit. Growing step by step would copy long lists several times.
    matches.reserve(hits.len().min(span.count));
    let mut chunks = hits.chunk_by(|a, b| a.row() == b.row()).peekable();
    for (row, event_type, length) in found.rows_of(span) {
        let talk_before = talk_lengths.len();
        let mut place = None;
        if is_talk(event_type) {
            place = Some(talk_before);
            talk_lengths.push(length);
        }
        while chunks.next_if(|hits| hits[0].row() < row).is_some() {}
        let Some(hits) = chunks.next_if(|hits| hits[0].row() == row) else { continue };
        let offset = u32::try_from(row - span.start).unwrap_or(u32::MAX);
        matches.push(MatchingRow {
            segment: found.segment,
            row,
            event_index: span.first_index.saturating_add(offset),
            event_type,
            length,
            place,
            talk_before,
            hits,
        });
    }
}

/// The rows of a session in one segment.
pub(in crate::search) struct SessionPart<'a> {
    pub(in crate::search) found: &'a SegmentHits,
    pub(in crate::search) span: &'a SessionSpan,
}

/// Returns the parts of every session that has words of the question, in the order of events.
pub(in crate::search) fn collect_parts(hits: &[SegmentHits]) -> Vec<(usize, Vec<SessionPart<'_>>)> {
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
pub(in crate::search) struct SessionScore {
    pub(in crate::search) session: usize,
    /// For each word of the question, the talk events that have it.
    pub(in crate::search) talk_counts: Vec<f32>,
    /// Score of the best window of each size.
    pub(in crate::search) windows: [f32; WINDOW_SIZES.len()],
    /// The words that any event has, a bit each.
    pub(in crate::search) words: u32,
    /// Number of events that have words.
    pub(in crate::search) matched: usize,
    /// The best events, best first.
    pub(in crate::search) events: Vec<ScoredEvent>,
}

impl SessionScore {
    /// The score of a session that has none of `terms` words.
    pub(in crate::search) fn empty(session: usize, terms: usize) -> Self {
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
    pub(in crate::search) fn score_session(
        &self,
        session: usize,
        parts: &[SessionPart<'_>],
    ) -> SessionScore {
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
            let mut event = self.score_words(&found);
            event.score *= type_factor(found.event_type);
            for hit in found.hits {
                score.words |= 1 << hit.term();
            }
            if let Some(place) = found.place {
                for hit in found.hits {
                    score.talk_counts[hit.term()] += hit.value;
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

    /// Scores the words of an event, whatever its type.
    pub(in crate::search) fn score_words(&self, found: &MatchingRow<'_>) -> ScoredEvent {
        let relative_length = found.length / self.event_length;
        let mut score = 0.0;
        let mut exact = 0;
        for hit in found.hits {
            let factor = saturate(hit.value, EVENT_LENGTH_WEIGHT, relative_length);
            score += self.weights[hit.term()] * factor;
            if hit.value >= 1.0 {
                exact |= 1 << hit.term();
            }
        }
        ScoredEvent {
            segment: found.segment,
            row: found.row,
            event_index: found.event_index,
            event_type: found.event_type,
            score,
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
    pub(in crate::search) fn score_talk(
        &self,
        weights: &[f32],
        counts: &[f32],
        length: f32,
    ) -> f32 {
        let relative_length = length / self.session_length;
        let terms = counts.iter().zip(weights);
        terms
            .map(|(count, weight)| {
                weight * saturate(*count, SESSION_LENGTH_WEIGHT, relative_length)
            })
            .sum()
    }

    /// Returns the weight of the identifiers of several words that are among some words, a bit each.
    pub(super) fn weigh_identifiers(&self, words: u32) -> f32 {
        let found = words & self.identifiers;
        let weights = self.weights.iter().enumerate();
        weights.filter(|(term, _)| found >> term & 1 != 0).map(|(_, weight)| weight).sum()
    }

    /// Returns the sum of all weights, which is not zero.
    pub(in crate::search) fn total_weight(&self) -> f32 {
        self.weights.iter().sum::<f32>().max(f32::MIN_POSITIVE)
    }

    /// Returns the sum of all weights by sessions, which is not zero.
    pub(in crate::search) fn total_session_weight(&self) -> f32 {
        self.session_weights.iter().sum::<f32>().max(f32::MIN_POSITIVE)
    }
}

/// Returns the factor for an event of a type.
pub(in crate::search) const fn type_factor(event_type: EventType) -> f32 {
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
            identifiers: 0,
            event_length: 10.0,
            session_length: 100.0,
            window_lengths: [20.0, 30.0, 50.0],
        }
    }

    #[test]
    fn short_texts_count_more() {
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
