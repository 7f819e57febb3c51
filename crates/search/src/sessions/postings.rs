//! Finds the events that have the words of a question, from the word lists of the skip indexes.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use fixedbitset::FixedBitSet;

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
    /// For each span, where its hits end.
    hit_ends: Vec<usize>,
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
        let mut listed = Vec::new();
        for (position, term) in terms.iter().enumerate() {
            if term.is_indexed {
                listed.push(TermRows::find(&words, index.row_count(), position, term)?);
            }
        }
        let mut hits = merge_rows(&listed);
        if let Some(more) = text_hits.get(&number) {
            hits.extend(more);
            hits.sort_by_key(|hit| (hit.row, hit.term));
        }
        let outlines = index.read_outlines()?;
        let hit_ends = Vec::with_capacity(spans.len());
        let mut found = Self { segment: number, spans, outlines, left_out, hits, hit_ends };
        found.retain_live_rows();
        // The hits of all segments are kept until the end of the search.
        found.hits.shrink_to_fit();
        Ok(found)
    }

    /// Removes hits in rows that are not asked about, and notes where those of each span end.
    fn retain_live_rows(&mut self) {
        let mut kept = 0;
        let mut next = 0;
        for span in &self.spans {
            while let Some(hit) = self.hits.get(next).copied() {
                let row = hit.row();
                if row >= span.start + span.count {
                    break;
                }
                next += 1;
                if row >= span.start && !self.left_out.contains(row) {
                    self.hits[kept] = hit;
                    kept += 1;
                }
            }
            self.hit_ends.push(kept);
        }
        self.hits.truncate(kept);
    }

    /// Returns the spans, each with the hits in its rows.
    pub(crate) fn hits_by_span(&self) -> impl Iterator<Item = (&SessionSpan, &[TermHit])> {
        let starts = [0].into_iter().chain(self.hit_ends.iter().copied());
        let ranges = starts.zip(&self.hit_ends);
        self.spans.iter().zip(ranges.map(|(start, end)| &self.hits[start..*end]))
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

/// Returns the smallest power of two above the length of an event's text in bytes.
pub(crate) fn length_power(outline: RowOutline) -> u64 {
    1 << outline.length_bits()
}

/// Returns the approximate length in bytes of texts, given the sum of their [`length_power`]s: three
/// quarters of it, the middle of the range.
pub(crate) fn typical_length(powers: u64) -> f64 {
    powers as f64 * 0.75
}

/// Returns the approximate length of an event's text in bytes.
pub(crate) fn text_length(outline: RowOutline) -> f32 {
    typical_length(length_power(outline)) as f32
}

/// Returns the words of the question among some hits, a bit each.
pub(crate) fn words_of(hits: &[TermHit]) -> u32 {
    hits.iter().fold(0, |words, hit| words | 1 << hit.term())
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

/// The rows of a segment that have a word of the question, or words that begin like it.
struct TermRows {
    /// Position of the word in the question.
    position: usize,
    exact: FixedBitSet,
    related: FixedBitSet,
    /// The value of related words in each row; empty if no row has any.
    values: Vec<f32>,
}

impl TermRows {
    fn find(
        words: &WordLookup<'_>,
        rows: usize,
        position: usize,
        term: &QuestionTerm,
    ) -> Result<Self, StoreError> {
        let mut exact = FixedBitSet::with_capacity(rows);
        let mut related = FixedBitSet::with_capacity(rows);
        let mut values: Vec<f32> = Vec::new();
        let is_wanted = |word: &str| term.is_related_to(word) || term.is_form_of(word);
        for prefix in &term.prefixes {
            words.for_each_word(prefix, &is_wanted, &mut |word, rows| {
                if term.is_form_of(word) {
                    exact.union_with(rows);
                } else {
                    values.resize(rows.len(), 0.0);
                    related.union_with(rows);
                    for row in rows.ones() {
                        values[row] += RELATED_VALUE;
                    }
                }
            })?;
        }
        Ok(Self { position, exact, related, values })
    }
}

/// Returns the hits in the rows of words, by row and then by word.
fn merge_rows(terms: &[TermRows]) -> Vec<TermHit> {
    let mut hits = Vec::new();
    let mut any = FixedBitSet::new();
    for term in terms {
        any.union_with(&term.exact);
        any.union_with(&term.related);
    }
    for row in any.ones() {
        for term in terms {
            if term.exact.contains(row) {
                hits.push(TermHit::new(row, term.position, 1.0));
            } else if term.related.contains(row) {
                hits.push(TermHit::new(row, term.position, term.values[row].min(1.0)));
            }
        }
    }
    hits
}
