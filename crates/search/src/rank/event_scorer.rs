//! Scores events by their own words, the talk next to them, and their session.

use schemas::EventType;

use crate::by_bound::ROUNDING_MARGIN;
use crate::sessions::{Averages, ScoredEvent, SessionPart, SessionQuestion, Totals, place_matches};
use store::Snapshot;

/// What the words of the two talk events before an event count, the nearest first, relative to its own.
/// These weights and the two below were tuned on LoCoMo 26 and 30: recall@10 of the answering turns
/// is 80.1, with the mean of windows of three instead 76.3, without any of it 66.3.
const BEFORE_WEIGHTS: [f32; 2] = [0.5, 0.1];

/// The same for the two talk events after it.
const AFTER_WEIGHTS: [f32; 2] = [0.35, 0.1];

/// What the whole talk of its session counts.
const TALK_WEIGHT: f32 = 0.25;

/// What it counts that the session is near a date that the question names.
const DATE_WEIGHT: f32 = 1.5;

/// The confidence of an event that has the whole weight of the question, and the largest one.
const CONFIDENCE_PER_SHARE: f32 = 1.45;
const MAX_CONFIDENCE: f32 = 0.9;

/// An event with its place in the ranking.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankedEvent {
    /// The event and its score.
    pub(super) event: ScoredEvent,
    session: u32,
    /// How likely the event is of the right session if it comes first.
    pub(super) confidence: f32,
}

impl RankedEvent {
    pub(super) fn new(event: ScoredEvent, session: usize, confidence: f32) -> Self {
        // There are fewer sessions.
        Self { event, session: u32::try_from(session).unwrap_or(u32::MAX), confidence }
    }

    /// Returns the position in `Snapshot::sessions`.
    pub(super) fn session(&self) -> usize {
        self.session as usize
    }
}

/// Scores the events of sessions.
pub(super) struct EventScorer<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) question: &'a SessionQuestion,
    pub(super) averages: &'a Averages,
    pub(super) totals: &'a Totals,
    /// The types of events that are scored; empty means all.
    pub(super) event_types: &'a [EventType],
}

/// What is known of the events of a session before they are scored.
pub(super) struct EventBound {
    /// The highest score that any of them may have.
    pub(super) score: f32,
    /// Number of events that have words of the question and are asked about.
    pub(super) matched: usize,
}

impl EventScorer<'_> {
    /// Bounds the scores of the events of a session for which `is_asked` returns true, given their segment
    /// and index: each as if the best talk events of the session were next to it.
    pub(super) fn bound_session(
        &self,
        parts: &[SessionPart<'_>],
        is_asked: &dyn Fn(usize, u32) -> bool,
    ) -> EventBound {
        let mut matched = 0;
        // The best score of the words of an event of each type.
        let mut best_of_types: [Option<f32>; EventType::ALL.len()] = Default::default();
        let mut best_talk: f32 = 0.0;
        let mut talk_counts = vec![0.0; self.question.terms.len()];
        for part in parts {
            part.for_each_match(|event| {
                let (score, _) = self.averages.score_hits(event.hits, event.length);
                if event.event_type.is_talk() {
                    best_talk = best_talk.max(score);
                    for hit in event.hits {
                        talk_counts[hit.term()] += hit.value();
                    }
                }
                if self.is_asked_type(event.event_type)
                    && is_asked(event.segment, event.event_index)
                {
                    matched += 1;
                    let best = &mut best_of_types[event.event_type as usize];
                    *best = Some(best.unwrap_or(0.0).max(score));
                }
            });
        }

        let session = parts.first().map_or(0, SessionPart::session);
        let neighbours = best_talk * BEFORE_WEIGHTS.iter().chain(&AFTER_WEIGHTS).sum::<f32>();
        let of_session = self.score_of_session(session, &talk_counts);
        let of_types = EventType::ALL.iter().zip(best_of_types).filter_map(|(event_type, best)| {
            let own = (best? + neighbours) / self.averages.total_weight();
            Some((own + of_session) * type_weight(*event_type))
        });
        let best = of_types.fold(0.0, f32::max) + DATE_WEIGHT * self.nearness_to_dates(session);
        EventBound { score: best * ROUNDING_MARGIN, matched }
    }

    fn is_asked_type(&self, event_type: EventType) -> bool {
        self.event_types.is_empty() || self.event_types.contains(&event_type)
    }

    /// Scores the events of a session that have words of the question, given its parts, of which there
    /// is at least one, in the order of events.
    pub(super) fn score_session(&self, parts: &[SessionPart<'_>]) -> Vec<RankedEvent> {
        let session = parts.first().map_or(0, SessionPart::session);
        let (matches, talk_lengths) = place_matches(parts);
        let mut events: Vec<ScoredEvent> = Vec::with_capacity(matches.len());
        // The score of each talk event by its own words.
        let mut talk_scores = vec![0.0; talk_lengths.len()];
        let mut talk_counts = vec![0.0; self.question.terms.len()];
        for found in &matches {
            let event = self.averages.score_words(&found.event);
            if let Some(place) = found.place {
                talk_scores[place] = event.score;
                for hit in found.event.hits {
                    talk_counts[hit.term()] += hit.value();
                }
            }
            events.push(event);
        }

        let of_session = self.score_of_session(session, &talk_counts);
        let near_date = DATE_WEIGHT * self.nearness_to_dates(session);
        let question_weight = self.averages.total_weight() + self.totals.absent_weight();
        let mut ranked = Vec::with_capacity(matches.len());
        for (found, mut event) in matches.iter().zip(events) {
            if !self.is_asked_type(event.event_type) {
                continue;
            }
            let own =
                event.score + score_of_neighbours(&talk_scores, found.talk_before, found.place);
            event.score = (own / self.averages.total_weight() + of_session)
                * type_weight(event.event_type)
                + near_date;
            let hits = found.event.hits.iter();
            let covered: f32 =
                hits.map(|hit| self.averages.weights[hit.term()] * hit.value()).sum();
            let share = covered / question_weight;
            let confidence = f32::min(share * CONFIDENCE_PER_SHARE, MAX_CONFIDENCE);
            ranked.push(RankedEvent::new(event, session, confidence));
        }
        ranked
    }

    /// Returns what the talk of a session adds to each of its events.
    fn score_of_session(&self, session: usize, talk_counts: &[f32]) -> f32 {
        let averages = self.averages;
        let length = self.totals.talk_length(session);
        let score = averages.score_talk(&averages.session_weights, talk_counts, length);
        TALK_WEIGHT * score / averages.total_session_weight()
    }

    fn nearness_to_dates(&self, session: usize) -> f32 {
        let started = self.snapshot.sessions()[session].started_at;
        let dates = self.question.dates.iter();
        let nearness = dates.map(|date| started.map_or(0.0, |started| date.nearness(started)));
        nearness.fold(0.0, f64::max) as f32
    }
}

/// Returns what the talk next to an event adds to its score. `talk_scores` are those of all talk events of
/// the session, `talk_before` is the number of them before the event, and `place` its own place
/// among them.
fn score_of_neighbours(talk_scores: &[f32], talk_before: usize, place: Option<usize>) -> f32 {
    let first_after = place.map_or(talk_before, |place| place + 1);
    let before = talk_scores[..talk_before].iter().rev().zip(BEFORE_WEIGHTS);
    let after = talk_scores[first_after..].iter().zip(AFTER_WEIGHTS);
    before.chain(after).map(|(score, weight)| score * weight).sum()
}

/// Returns the weight of an event type: texts of users and agents answer questions, tool output
/// only contains the words.
pub(super) const fn type_weight(kind: EventType) -> f32 {
    match kind {
        EventType::User | EventType::Message => 1.0,
        EventType::Reasoning => 0.7,
        EventType::ToolCall => 0.55,
        EventType::ToolResult => 0.5,
        EventType::Notification => 0.45,
        EventType::TokenUsage => 0.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_the_two_talk_events_on_both_sides() {
        let talk = [1.0, 10.0, 100.0, 1000.0, 10_000.0];
        let close = |a: f32, b: f32| (a - b).abs() < 0.01;
        assert!(close(score_of_neighbours(&talk, 2, Some(2)), 5.0 + 0.1 + 350.0 + 1000.0));
        // A call between the second and the third.
        assert!(close(score_of_neighbours(&talk, 2, None), 5.0 + 0.1 + 35.0 + 100.0));
        assert!(close(score_of_neighbours(&talk, 0, Some(0)), 3.5 + 10.0));
        assert!(close(score_of_neighbours(&talk, 5, None), 5000.0 + 100.0));
    }
}
