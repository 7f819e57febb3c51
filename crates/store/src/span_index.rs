//! Finds the rows of a session in all segments.

use super::segment::open_segment::{Segment, SessionSpan};

/// All live spans, sorted by session and then by event, each with the position of its segment.
#[derive(Debug)]
pub(super) struct SpanIndex(Vec<(usize, SessionSpan)>);

impl SpanIndex {
    /// Sorts the live spans of `segments`.
    pub(super) fn new(segments: &[Segment]) -> Self {
        let segments = segments.iter().enumerate();
        let mut spans: Vec<(usize, SessionSpan)> = segments
            .flat_map(|(at, segment)| segment.spans.iter().map(move |span| (at, *span)))
            .collect();
        spans.sort_by_key(|(_, span)| (span.session, span.first_index));
        Self(spans)
    }

    /// Returns the spans of the session at this position, in the order of its events.
    pub(super) fn session_spans(
        &self,
        session: usize,
    ) -> impl Iterator<Item = &(usize, SessionSpan)> {
        let begin = self.0.partition_point(|(_, span)| span.session < session);
        self.0[begin..].iter().take_while(move |(_, span)| span.session == session)
    }
}
