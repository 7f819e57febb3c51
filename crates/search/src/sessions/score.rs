//! Scores sessions from the words in their events.

use std::ops::Range;

use schemas::EventType;

use super::postings::{SegmentHits, TermHit, text_length, words_of};
use super::saturation::{EVENT_LENGTH_WEIGHT, saturate};
use super::titles::TitleHit;
use super::totals::Averages;
use super::windows::{WINDOW_SIZES, score_best_window};
use crate::by_bound::ROUNDING_MARGIN;
use store::SessionSpan;

/// The factor of a title. It is above that of a prompt, because it names what a session is about.
const TITLE_FACTOR: f32 = 1.6;

/// How much a session with long talk loses (`b` of BM25).
const SESSION_LENGTH_WEIGHT: f32 = 0.9;

/// The best events of a session that are kept.
const KEPT_EVENTS: usize = 24;

/// An event that has words of the question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScoredEvent {
    /// The positions of [`Self::segment`] and [`Self::row`].
    place: (u32, u32),
    pub(crate) event_index: u32,
    pub(crate) event_type: EventType,
    pub(crate) score: f32,
    /// The words that the event has in full, a bit each.
    pub(crate) exact: u32,
}

impl ScoredEvent {
    /// Returns an event that has no word of the question.
    pub(crate) fn without_words(
        segment: usize,
        row: usize,
        event_index: u32,
        event_type: EventType,
    ) -> Self {
        Self { place: place_of(segment, row), event_index, event_type, score: 0.0, exact: 0 }
    }

    /// Returns the position in `Snapshot::segments`.
    pub(crate) fn segment(&self) -> usize {
        self.place.0 as usize
    }

    /// Returns the position in the segment.
    pub(crate) fn row(&self) -> usize {
        self.place.1 as usize
    }
}

/// Returns a position in `Snapshot::segments` and one in the segment in a small form: a question over a
/// long history has millions of events.
fn place_of(segment: usize, row: usize) -> (u32, u32) {
    // There are fewer segments, and a segment has fewer rows.
    let small = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
    (small(segment), small(row))
}

/// An event that has words of the question.
#[derive(Clone, Copy)]
pub(crate) struct MatchingEvent<'a> {
    /// Position in `Snapshot::segments`.
    pub(crate) segment: usize,
    /// Position in the segment.
    pub(crate) row: usize,
    pub(crate) event_index: u32,
    pub(crate) event_type: EventType,
    /// Approximate bytes of its text.
    pub(crate) length: f32,
    pub(crate) hits: &'a [TermHit],
}

/// Such an event and where it is in the talk of its session.
pub(crate) struct PlacedEvent<'a> {
    pub(crate) event: MatchingEvent<'a>,
    /// Its place among the talk events of the session; `None` if it is none.
    pub(crate) place: Option<usize>,
    /// Number of talk events of the session before it.
    pub(crate) talk_before: usize,
}

/// Returns the events of a session that have words of the question, and the lengths of its talk events, given
/// its parts in the order of events.
pub(crate) fn place_matches<'a>(parts: &[SessionPart<'a>]) -> (Vec<PlacedEvent<'a>>, Vec<f32>) {
    let mut talk_lengths: Vec<f32> = Vec::new();
    let mut matches = Vec::new();
    for part in parts {
        let span = part.span;
        let mut next_row = span.start;
        part.for_each_match(|event| {
            append_talk_lengths(part.found, next_row..event.row, &mut talk_lengths);
            next_row = event.row + 1;
            let talk_before = talk_lengths.len();
            let mut place = None;
            if event.event_type.is_talk() {
                place = Some(talk_before);
                talk_lengths.push(event.length);
            }
            matches.push(PlacedEvent { event, place, talk_before });
        });
        append_talk_lengths(part.found, next_row..span.start + span.count, &mut talk_lengths);
    }
    (matches, talk_lengths)
}

/// Appends the lengths of the talk events among some rows.
fn append_talk_lengths(found: &SegmentHits, rows: Range<usize>, talk_lengths: &mut Vec<f32>) {
    found.for_each_outline(rows, |outline| {
        if outline.event_type().is_talk() {
            talk_lengths.push(text_length(outline));
        }
    });
}

/// The rows of a session in one segment.
#[derive(Clone, Copy)]
pub(crate) struct SessionPart<'a> {
    pub(crate) found: &'a SegmentHits,
    pub(crate) span: &'a SessionSpan,
    /// The words of the question in these rows.
    hits: &'a [TermHit],
}

impl<'a> SessionPart<'a> {
    /// Returns the position of the session in `Snapshot::sessions`.
    pub(crate) fn session(&self) -> usize {
        self.span.session
    }

    /// Calls `take` with each event that has words of the question, in their order.
    pub(crate) fn for_each_match(&self, mut take: impl FnMut(MatchingEvent<'a>)) {
        for hits in self.hits.chunk_by(|a, b| a.row() == b.row()) {
            let row = hits[0].row();
            let Some(outline) = self.found.outline_of(row) else { break };
            let offset = u32::try_from(row - self.span.start).unwrap_or(u32::MAX);
            take(MatchingEvent {
                segment: self.found.segment,
                row,
                event_index: self.span.first_index.saturating_add(offset),
                event_type: outline.event_type(),
                length: text_length(outline),
                hits,
            });
        }
    }
}

/// Returns the parts of all sessions, by session and then in the order of events.
pub(crate) fn collect_parts(hits: &[SegmentHits]) -> Vec<SessionPart<'_>> {
    let mut parts = Vec::new();
    for found in hits {
        let spans = found.hits_by_span();
        parts.extend(spans.map(|(span, hits)| SessionPart { found, span, hits }));
    }
    parts.sort_unstable_by_key(|part| {
        (part.span.session, part.span.first_index, part.found.segment)
    });
    parts
}

/// Returns the parts of each session that has words of the question, given those of all sessions.
pub(crate) fn group_parts<'p, 'a>(parts: &'p [SessionPart<'a>]) -> Vec<&'p [SessionPart<'a>]> {
    let of_sessions = parts.chunk_by(|a, b| a.session() == b.session());
    of_sessions.filter(|parts| parts.iter().any(|part| !part.hits.is_empty())).collect()
}

/// What the events of a session add to its score, each by itself.
pub(crate) struct SessionScore {
    /// For each word of the question, the talk events that have it.
    pub(crate) talk_counts: Vec<f32>,
    /// Length of the shortest of these talk events in bytes.
    shortest_talk: f32,
    /// The words that any event has, a bit each.
    pub(crate) words: u32,
    /// Number of events that have words.
    pub(crate) matched: usize,
    /// Score of the best event.
    pub(crate) best_event: f32,
}

impl SessionScore {
    /// The score of a session that has none of `terms` words.
    pub(crate) fn empty(terms: usize) -> Self {
        Self {
            talk_counts: vec![0.0; terms],
            shortest_talk: f32::INFINITY,
            words: 0,
            matched: 0,
            best_event: 0.0,
        }
    }
}

impl Averages {
    /// Scores the events of a session, given its parts. This is done for every session that has words,
    /// [`Self::score_windows`] only for those that may be among the best.
    pub(crate) fn score_events(&self, parts: &[SessionPart<'_>]) -> SessionScore {
        let mut score = SessionScore::empty(self.weights.len());
        for part in parts {
            part.for_each_match(|event| {
                let (value, _) = self.score_hits(event.hits, event.length);
                score.best_event = score.best_event.max(value * type_factor(event.event_type));
                score.matched += 1;
                score.words |= words_of(event.hits);
                if event.event_type.is_talk() {
                    score.shortest_talk = score.shortest_talk.min(event.length);
                    for hit in event.hits {
                        score.talk_counts[hit.term()] += hit.value();
                    }
                }
            });
        }
        score
    }

    /// Returns the weighed scores of the best window of each size, given the parts of a session in the
    /// order of events.
    pub(crate) fn score_windows(&self, parts: &[SessionPart<'_>]) -> f32 {
        let (matches, talk_lengths) = place_matches(parts);
        let in_talk = matches.iter().filter_map(|found| Some((found.place?, found.event.hits)));
        let in_talk: Vec<(usize, &[TermHit])> = in_talk.collect();
        let sizes = WINDOW_SIZES.into_iter().zip(self.window_lengths);
        let best_of_sizes = sizes.map(|(size, average_length)| {
            size.weight
                * score_best_window(&self.weights, size, average_length, &talk_lengths, &in_talk)
        });
        best_of_sizes.sum()
    }

    /// Returns the most that [`Self::score_windows`] can return for a session: as if a window had all its
    /// words, each as often as it can, and were no longer than the shortest talk event with words.
    pub(super) fn bound_windows(&self, score: &SessionScore) -> f32 {
        let mut bound = 0.0;
        for (size, average_length) in WINDOW_SIZES.into_iter().zip(self.window_lengths) {
            let relative_length = score.shortest_talk / average_length;
            for (count, weight) in score.talk_counts.iter().zip(&self.weights) {
                let count = count.min(size.events as f32);
                bound +=
                    size.weight * weight * saturate(count, EVENT_LENGTH_WEIGHT, relative_length);
            }
        }
        bound * ROUNDING_MARGIN
    }

    /// Returns the best events of a session, best first, given its parts in the order of events. They
    /// are computed for few sessions, because those of all would take much memory.
    pub(crate) fn best_events(&self, parts: &[SessionPart<'_>]) -> Vec<ScoredEvent> {
        let mut events: Vec<ScoredEvent> = Vec::new();
        for part in parts {
            part.for_each_match(|found| {
                let mut event = self.score_words(&found);
                event.score *= type_factor(found.event_type);
                events.push(event);
            });
        }
        let best_first = |a: &ScoredEvent, b: &ScoredEvent| {
            b.score.total_cmp(&a.score).then(a.event_index.cmp(&b.event_index))
        };
        if events.len() > KEPT_EVENTS {
            events.select_nth_unstable_by(KEPT_EVENTS, best_first);
            events.truncate(KEPT_EVENTS);
        }
        events.sort_by(best_first);
        events
    }

    /// Scores the words of an event, whatever its type.
    pub(crate) fn score_words(&self, found: &MatchingEvent<'_>) -> ScoredEvent {
        let (score, exact) = self.score_hits(found.hits, found.length);
        ScoredEvent {
            place: place_of(found.segment, found.row),
            event_index: found.event_index,
            event_type: found.event_type,
            score,
            exact,
        }
    }

    /// Returns the score of the words of an event of a length, and those that it has in full, a bit each.
    pub(crate) fn score_hits(&self, hits: &[TermHit], length: f32) -> (f32, u32) {
        let relative_length = length / self.event_length;
        let full_factor = saturate(1.0, EVENT_LENGTH_WEIGHT, relative_length);
        let mut score = 0.0;
        let mut exact = 0;
        for hit in hits {
            let mut factor = full_factor;
            if hit.value() >= 1.0 {
                exact |= 1 << hit.term();
            } else {
                factor = saturate(hit.value(), EVENT_LENGTH_WEIGHT, relative_length);
            }
            score += self.weights[hit.term()] * factor;
        }
        (score, exact)
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
    pub(crate) fn score_talk(&self, weights: &[f32], counts: &[f32], length: f32) -> f32 {
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
        self.weigh(words & self.identifiers)
    }

    /// Returns the weight of some words, a bit each.
    pub(super) fn weigh(&self, words: u32) -> f32 {
        let weights = self.weights.iter().enumerate();
        weights.filter(|(term, _)| words >> term & 1 != 0).map(|(_, weight)| weight).sum()
    }

    /// Returns the sum of all weights, which is not zero.
    pub(crate) fn total_weight(&self) -> f32 {
        self.weights.iter().sum::<f32>().max(f32::MIN_POSITIVE)
    }

    /// Returns the sum of all weights by sessions, which is not zero.
    pub(crate) fn total_session_weight(&self) -> f32 {
        self.session_weights.iter().sum::<f32>().max(f32::MIN_POSITIVE)
    }
}

/// Returns the factor for an event of a type.
pub(crate) const fn type_factor(event_type: EventType) -> f32 {
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
