//! Finds the events that have the words of a question, from the word lists of the skip indexes.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use fixedbitset::FixedBitSet;
use schemas::EventType;

use super::question::QuestionTerm;
use store::{
    RowFacts, RowOutline, Segment, SessionSpan, SessionSummary, Snapshot, StoreError, WordLookup,
};

/// What a word that only begins like one of the question counts, at most once in full.
const RELATED_VALUE: f32 = 0.25;

/// A word of the question in an event.
///
/// A question over a long history has millions of hits, so that each is kept small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TermHit {
    row: u32,
    term: u8,
    /// The value in units of [`RELATED_VALUE`].
    related_words: u8,
}

impl TermHit {
    /// Returns the hit of the word at a position of the question, in a row of a segment.
    pub(crate) fn new(row: usize, term: usize, value: f32) -> Self {
        Self {
            // A segment has fewer rows, and a question fewer words.
            row: u32::try_from(row).unwrap_or(u32::MAX),
            term: u8::try_from(term).unwrap_or(u8::MAX),
            related_words: (value / RELATED_VALUE).round() as u8,
        }
    }

    /// Returns the position of the row in its segment.
    pub(crate) fn row(&self) -> usize {
        self.row as usize
    }

    /// Returns the position of the word in the question.
    pub(crate) fn term(&self) -> usize {
        usize::from(self.term)
    }

    /// Returns 1 if the event has the word, less if it has related words only.
    pub(crate) fn value(&self) -> f32 {
        f32::from(self.related_words) * RELATED_VALUE
    }
}

/// The events that a question is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedRows<'a> {
    /// Positions in `Snapshot::sessions`; `None` means all.
    pub(crate) sessions: Option<&'a HashSet<usize>>,
    /// Only events before this time, in microseconds since the epoch; `None` means all.
    pub(crate) until: Option<i64>,
    /// True for events that repeat those of another session as well.
    pub(crate) includes_copies: bool,
}

impl AskedRows<'_> {
    /// True if the events of a session are among them.
    pub(crate) fn includes(&self, session: usize) -> bool {
        self.sessions.is_none_or(|wanted| wanted.contains(&session))
    }

    /// True if a session has events after the time to which the question is limited.
    pub(crate) fn may_exclude_by_time(&self, session: &SessionSummary) -> bool {
        let ended = session.ended_at;
        self.until.is_some_and(|until| ended.is_some_and(|ended| ended >= until))
    }

    /// True if an event is among them, given that its session is.
    fn includes_event(&self, facts: &RowFacts) -> bool {
        let is_early = self.until.is_none_or(|until| facts.time.is_none_or(|time| time < until));
        is_early && (self.includes_copies || !facts.is_replay)
    }
}

/// The events of one segment that are asked about, and those of them that have words of the question.
pub(crate) struct SegmentHits {
    /// Position in `Snapshot::segments`.
    pub(crate) segment: usize,
    /// The sessions that are asked about and have rows in the segment.
    pub(crate) spans: Vec<SessionSpan>,
    outlines: Vec<RowOutline>,
    /// Rows of these sessions that are not asked about, such as copies. It ends with the last of them,
    /// and is empty if there are none.
    left_out: FixedBitSet,
    /// By row, then by word.
    pub(crate) hits: Vec<TermHit>,
}

impl SegmentHits {
    /// Finds the words of `terms` in the rows of a segment. `text_hits` are the rows of words that the
    /// index does not list.
    pub(crate) fn find(
        snapshot: &Snapshot,
        number: usize,
        terms: &[QuestionTerm],
        text_hits: &HashMap<usize, Vec<TermHit>>,
        asked: AskedRows<'_>,
    ) -> Result<Self, StoreError> {
        let segment = &snapshot.segments()[number];
        let mut spans = segment.spans.clone();
        spans.retain(|span| asked.includes(span.session));
        let index = segment.skip_index()?;
        let left_out = find_left_out(snapshot, segment, &spans, asked)?;

        let words = index.word_lookup();
        let mut hits = text_hits.get(&number).cloned().unwrap_or_default();
        for (position, term) in terms.iter().enumerate() {
            if term.is_indexed {
                append_term_hits(&words, index.row_count(), position, term, &mut hits)?;
            }
        }
        // The rows of each word ascend already, which a stable sort makes use of.
        hits.sort_by_key(|hit| (hit.row, hit.term));
        let mut found =
            Self { segment: number, spans, outlines: index.read_outlines()?, left_out, hits };
        found.retain_live_rows();
        // The hits of all segments are kept until the end of the search.
        found.hits.shrink_to_fit();
        Ok(found)
    }

    /// Removes hits in rows that are not asked about.
    fn retain_live_rows(&mut self) {
        let mut spans = self.spans.iter().peekable();
        let left_out = &self.left_out;
        self.hits.retain(|hit| {
            while spans.next_if(|span| span.start + span.count <= hit.row()).is_some() {}
            let row = hit.row();
            spans.peek().is_some_and(|span| span.start <= row) && !left_out.contains(row)
        });
    }

    /// Returns the hits in the rows of a span.
    pub(crate) fn hits_of(&self, span: &SessionSpan) -> &[TermHit] {
        let begin = self.hits.partition_point(|hit| hit.row() < span.start);
        let end = self.hits.partition_point(|hit| hit.row() < span.start + span.count);
        &self.hits[begin..end]
    }

    /// Calls `take` with the outlines of those of some rows that count, in their order.
    pub(crate) fn for_each_outline(&self, rows: Range<usize>, mut take: impl FnMut(RowOutline)) {
        let end = rows.end.min(self.outlines.len());
        let start = rows.start.min(end);
        let outlines = &self.outlines[start..end];
        if self.left_out.is_empty() {
            for outline in outlines {
                take(*outline);
            }
            return;
        }
        for (outline, row) in outlines.iter().zip(start..) {
            if !self.left_out.contains(row) {
                take(*outline);
            }
        }
    }

    /// Returns the outline of a row.
    pub(crate) fn outline_of(&self, row: usize) -> Option<RowOutline> {
        self.outlines.get(row).copied()
    }
}

/// Returns the approximate length in bytes of a text whose length has `bits` bits: three
/// quarters of 2^`bits`, the middle of that range.
pub(crate) fn typical_length(bits: u8) -> f64 {
    (1u64 << bits) as f64 * 0.75
}

/// Returns the approximate length of an event's text in bytes.
pub(crate) fn text_length(outline: RowOutline) -> f32 {
    typical_length(outline.length_bits()) as f32
}

/// True for the events that make up the talk of a session: prompts and answers.
pub(crate) fn is_talk(event_type: EventType) -> bool {
    matches!(event_type, EventType::User | EventType::Message)
}

/// Returns the rows of `spans` that are not asked about: copies, and events after the time.
fn find_left_out(
    snapshot: &Snapshot,
    segment: &Segment,
    spans: &[SessionSpan],
    asked: AskedRows<'_>,
) -> Result<FixedBitSet, StoreError> {
    let index = segment.skip_index()?;
    let mut left_out = FixedBitSet::new();
    for span in spans {
        let session = &snapshot.sessions()[span.session];
        let has_copies = session.replay_events > 0 && !asked.includes_copies;
        if !has_copies && !asked.may_exclude_by_time(session) {
            continue;
        }
        let facts = index.read_facts(span.start..span.start + span.count)?;
        for (offset, facts) in facts.iter().enumerate() {
            if !asked.includes_event(&facts) {
                left_out.grow_and_insert(span.start + offset);
            }
        }
    }
    Ok(left_out)
}

/// Appends the rows that have a word of the question or words that begin like it.
fn append_term_hits(
    words: &WordLookup<'_>,
    rows: usize,
    position: usize,
    term: &QuestionTerm,
    hits: &mut Vec<TermHit>,
) -> Result<(), StoreError> {
    let mut exact = FixedBitSet::with_capacity(rows);
    // The value of related words in each row, and the rows that have any.
    let mut related: Vec<f32> = Vec::new();
    let mut related_rows = FixedBitSet::with_capacity(rows);
    let is_wanted = |word: &str| term.is_related_to(word) || term.is_form_of(word);
    for prefix in &term.prefixes {
        words.for_each_word(prefix, &is_wanted, &mut |word, rows| {
            if term.is_form_of(word) {
                exact.union_with(rows);
            } else {
                related.resize(rows.len(), 0.0);
                related_rows.union_with(rows);
                for row in rows.ones() {
                    related[row] += RELATED_VALUE;
                }
            }
        })?;
    }

    hits.reserve(exact.count_ones(..));
    hits.extend(exact.ones().map(|row| TermHit::new(row, position, 1.0)));
    for row in related_rows.difference(&exact) {
        hits.push(TermHit::new(row, position, related[row].min(1.0)));
    }
    Ok(())
}
