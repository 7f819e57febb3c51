//! Counts words over the events that are asked about, and weighs them by how rare they are.

use super::postings::{SegmentHits, length_power, typical_length, words_of};
use super::question::{QuestionTerm, SessionQuestion};
use super::titles::TitleHit;
use super::windows::{LONGEST_WINDOW, WINDOW_SIZES};
use store::SessionSpan;

/// What a word counts that is a part of an identifier, if some event has the identifier as a whole: its
/// parts are in the same events, and common ones such as `session` are in many others.
const IDENTIFIER_PART_SHARE: f32 = 0.25;

/// What the events of a whole request have in common.
pub(crate) struct Averages {
    /// The weight of each word of the question: its inverse document frequency among prompts and answers,
    /// or among all events if no prompt and no answer has it. 0 if no event has it.
    pub(crate) weights: Vec<f32>,
    /// The same by sessions: words that every session has say nothing about which one is meant.
    pub(crate) session_weights: Vec<f32>,
    /// The words that are identifiers of several words as a whole, a bit each.
    pub(crate) identifiers: u32,
    /// Average length of an event, of the talk of a session, and of a window of each size, in bytes.
    pub(crate) event_length: f32,
    pub(crate) session_length: f32,
    pub(crate) window_lengths: [f32; WINDOW_SIZES.len()],
}

/// Counts over the events of a session.
#[derive(Debug, Clone, Copy)]
struct SessionTotals {
    /// Position in `Snapshot::sessions`.
    session: usize,
    /// The words that any event has, a bit each.
    words: u32,
    /// Approximate bytes of the talk.
    talk_bytes: f32,
}

/// The lengths of the events of a span, in bytes.
struct SpanLengths {
    events: u64,
    bytes: f64,
    talk_events: usize,
    talk_bytes: f64,
    /// Those of the first talk events, as many as a window has.
    first_talk: [f64; LONGEST_WINDOW],
}

impl SpanLengths {
    /// A question over a long history measures millions of events, so this takes few steps for each.
    fn measure(found: &SegmentHits, span: &SessionSpan) -> Self {
        let (mut events, mut all, mut talk_events, mut talk) = (0, 0, 0, 0);
        let mut first_talk = [0.0; LONGEST_WINDOW];
        found.for_each_outline(span.start..span.start + span.count, |outline| {
            let length = length_power(outline);
            all += length;
            events += 1;
            if outline.event_type().is_talk() {
                if let Some(first) = first_talk.get_mut(talk_events) {
                    *first = typical_length(length);
                }
                talk += length;
                talk_events += 1;
            }
        });
        Self {
            events,
            bytes: typical_length(all),
            talk_events,
            talk_bytes: typical_length(talk),
            first_talk,
        }
    }

    fn first_talk(&self) -> &[f64] {
        &self.first_talk[..LONGEST_WINDOW.min(self.talk_events)]
    }
}

/// Counts over the events that are asked about, from which [`Averages`] follow.
#[derive(Clone)]
pub(crate) struct Totals {
    rows: u64,
    bytes: f64,
    /// The talk events, with each of which a window begins.
    talk_rows: u64,
    window_bytes: [f64; WINDOW_SIZES.len()],
    /// The sessions, each as often as it has rows in segments until [`Self::join_sessions`].
    sessions: Vec<SessionTotals>,
    /// For each word, the events that have it.
    pub(crate) exact: Vec<u64>,
    /// For each word, the events that have related words only.
    pub(crate) related: Vec<u64>,
    /// For each word, the talk events that have it.
    in_talk: Vec<u64>,
    /// The words that events may have whose text was not read, a bit each.
    pub(super) unread: u32,
}

impl Totals {
    pub(crate) fn new(terms: usize) -> Self {
        Self {
            rows: 0,
            bytes: 0.0,
            talk_rows: 0,
            window_bytes: [0.0; WINDOW_SIZES.len()],
            sessions: Vec::new(),
            exact: vec![0; terms],
            related: vec![0; terms],
            in_talk: vec![0; terms],
            unread: 0,
        }
    }

    /// Counts the events of a segment.
    pub(crate) fn add_segment(&mut self, found: &SegmentHits) {
        for (span, hits) in found.hits_by_span() {
            let lengths = SpanLengths::measure(found, span);
            self.rows += lengths.events;
            self.bytes += lengths.bytes;
            self.talk_rows += lengths.talk_events as u64;
            for (bytes, size) in self.window_bytes.iter_mut().zip(WINDOW_SIZES) {
                *bytes += size.total_length(lengths.talk_bytes, lengths.first_talk());
            }
            let words = words_of(hits);
            let talk_bytes = lengths.talk_bytes as f32;
            self.sessions.push(SessionTotals { session: span.session, words, talk_bytes });
        }
        for hit in &found.hits {
            if hit.value() < 1.0 {
                self.related[hit.term()] += 1;
                continue;
            }
            self.exact[hit.term()] += 1;
            let outline = found.outline_of(hit.row());
            if outline.is_some_and(|outline| outline.event_type().is_talk()) {
                self.in_talk[hit.term()] += 1;
            }
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

    pub(crate) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.talk_rows += other.talk_rows;
        for (bytes, more) in self.window_bytes.iter_mut().zip(other.window_bytes) {
            *bytes += more;
        }
        self.sessions.extend(&other.sessions);
        for (counts, more) in [
            (&mut self.exact, &other.exact),
            (&mut self.related, &other.related),
            (&mut self.in_talk, &other.in_talk),
        ] {
            for (count, more) in counts.iter_mut().zip(more) {
                *count += more;
            }
        }
    }

    /// Joins the counts of sessions that are in several segments. It is called once all are added.
    pub(crate) fn join_sessions(&mut self) {
        self.sessions.sort_by_key(|totals| totals.session);
        self.sessions.dedup_by(|other, first| {
            let is_same = other.session == first.session;
            if is_same {
                first.words |= other.words;
                first.talk_bytes += other.talk_bytes;
            }
            is_same
        });
    }

    /// Returns the positions of the words of the question that no event and no title has.
    pub(crate) fn absent_terms(&self) -> impl Iterator<Item = usize> {
        (0..self.exact.len()).filter(|term| {
            self.exact[*term] + self.related[*term] == 0 && self.unread >> term & 1 == 0
        })
    }

    /// Returns the words of the question that no event and no title has, as they were written.
    pub(crate) fn absent_words(&self, question: &SessionQuestion) -> Vec<String> {
        self.absent_terms().map(|term| question.terms[term].word.clone()).collect()
    }

    /// Returns the weight that the words of the question would have that no event has: they are
    /// still part of the question.
    pub(crate) fn absent_weight(&self) -> f32 {
        self.absent_weight_of(self.absent_terms().count() as u32)
    }

    /// Returns the weight of a number of these words.
    pub(super) fn absent_weight_of(&self, words: u32) -> f32 {
        words as f32 * rarity_weight(0, self.rows)
    }

    /// Returns the approximate bytes of the talk of a session.
    pub(crate) fn talk_length(&self, session: usize) -> f32 {
        let found = self.sessions.binary_search_by_key(&session, |totals| totals.session);
        found.map_or(0.0, |at| self.sessions[at].talk_bytes)
    }

    /// Returns the weight of each word by the sessions that have it or related words.
    fn session_weights(&self, sessions: usize) -> Vec<f32> {
        let mut counts = vec![0; self.exact.len()];
        for totals in &self.sessions {
            for (term, count) in counts.iter_mut().enumerate() {
                *count += u64::from(totals.words >> term & 1);
            }
        }
        let weigh = |count| if count == 0 { 0.0 } else { rarity_weight(count, sessions as u64) };
        counts.into_iter().map(weigh).collect()
    }

    /// Returns the averages over `sessions` sessions for the words of a question.
    pub(crate) fn averages(&self, terms: &[QuestionTerm], sessions: usize) -> Averages {
        let weights = (0..terms.len()).map(|term| match (self.in_talk[term], self.exact[term]) {
            (0, 0) if self.related[term] == 0 => 0.0,
            (0, 0) => rarity_weight(self.related[term], self.rows),
            (0, events) => rarity_weight(events, self.rows),
            // Output is most of a history, and rarely has the words with which people ask.
            (talk, _) => rarity_weight(talk, self.talk_rows),
        });
        let talk_bytes = self.sessions.iter().map(|totals| f64::from(totals.talk_bytes)).sum();
        let average = |sum: f64, count: u64| (sum / count.max(1) as f64).max(1.0) as f32;
        let mut weights: Vec<f32> = weights.collect();
        let mut session_weights = self.session_weights(sessions);
        for part in self.parts_of_found_identifiers(terms) {
            weights[part] *= IDENTIFIER_PART_SHARE;
            session_weights[part] *= IDENTIFIER_PART_SHARE;
        }
        let mut identifiers = 0;
        for (position, term) in terms.iter().enumerate() {
            identifiers |= u32::from(term.is_identifier()) << position;
        }
        Averages {
            weights,
            session_weights,
            identifiers,
            event_length: average(self.bytes, self.rows),
            session_length: average(talk_bytes, sessions as u64),
            window_lengths: self.window_bytes.map(|bytes| average(bytes, self.talk_rows)),
        }
    }

    /// Returns the positions of words that are parts of an identifier which some event has as a whole.
    fn parts_of_found_identifiers(&self, terms: &[QuestionTerm]) -> Vec<usize> {
        let is_found = |stem: &str| {
            let whole = terms.iter().position(|term| term.stem == stem);
            whole.is_some_and(|whole| self.exact[whole] > 0)
        };
        let is_part = |at: &usize| {
            let term = &terms[*at];
            !term.is_identifier() && term.identifier.as_deref().is_some_and(is_found)
        };
        (0..terms.len()).filter(is_part).collect()
    }
}

/// Returns the weight of a word that `count` of `all` events or sessions have.
fn rarity_weight(count: u64, all: u64) -> f32 {
    let count = count as f64;
    let all = all as f64;
    f64::ln(1.0 + (all - count + 0.5) / (count + 0.5)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_weigh_more() {
        assert!(rarity_weight(1, 1000) > 3.0 * rarity_weight(200, 1000));
    }

    #[test]
    fn parts_of_an_identifier_count_less_if_it_occurs_as_a_whole() {
        let question = SessionQuestion::parse("parseSessionId of the parser");
        let weigh = |whole: u64| {
            let mut totals = Totals::new(question.terms.len());
            totals.rows = 1000;
            totals.exact = vec![whole, 50, 50, 50];
            totals.averages(&question.terms, 10).weights
        };
        let (found, absent) = (weigh(2), weigh(0));
        assert!(found[0] > 4.0 * found[1] && found[1] == found[2], "{found:?}");
        assert!(absent[1] > 3.0 * found[1] && absent[3] == found[3], "{absent:?}");
    }

    #[test]
    fn a_word_is_absent_if_every_text_that_may_have_it_was_read() {
        let mut totals = Totals::new(4);
        totals.exact = vec![0, 1, 0, 0];
        totals.related = vec![0, 0, 1, 0];
        assert_eq!(totals.absent_terms().collect::<Vec<_>>(), [0, 3]);
        totals.unread = 0b1000;
        assert_eq!(totals.absent_terms().collect::<Vec<_>>(), [0]);
    }
}
