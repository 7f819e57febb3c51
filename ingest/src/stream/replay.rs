//! Decides which records of a log are copies of another log's records.

use std::collections::HashSet;

/// Records of other streams that this stream may repeat.
#[derive(Debug, Default, Clone)]
pub struct CopiedHistory {
    /// Ids of the records, for formats with record ids: a copy is recognised at any position.
    ids: Option<HashSet<u64>>,
    /// Records in order, for formats whose records are known by content only. Contents may repeat
    /// by chance, so only a run that follows the order counts as copied. The longest stream is first;
    /// a [`STREAM_END`] is between two streams.
    order: Vec<u64>,
    /// Where the other streams begin in the order.
    starts: Vec<usize>,
    /// True if all streams are captures of the session that this stream captures too.
    is_same_session: bool,
}

/// Number of records searched ahead in the parent's order for the next copied record. Records that
/// gave no event are missing from the order on either side.
const ORDER_WINDOW_RECORDS: usize = 64;

/// What ends a stream in the order of several. No record has this identity.
const STREAM_END: u64 = 0;

impl CopiedHistory {
    /// Creates the history from several streams, each in its order. `has_ids` is true if records
    /// are known by ids; `is_same_session` if all streams are captures of the session that this one
    /// captures too.
    pub fn new(streams: Vec<Vec<u64>>, has_ids: bool, is_same_session: bool) -> Self {
        let ids = has_ids.then(|| streams.iter().flatten().copied().collect());
        // The longest stream: of several captures of one session, it holds most of the session. Another
        // one may hold what this log repeats, as the two parts of a trajectory that was continued.
        let mut others = streams;
        others.sort_by_key(Vec::len);
        let mut order = others.pop().unwrap_or_default();
        let mut starts = Vec::new();
        others.dedup();
        if ids.is_none() && is_same_session {
            for stream in others.into_iter().rev() {
                if !stream.is_empty() && !order.starts_with(&stream) {
                    order.push(STREAM_END);
                    starts.push(order.len());
                    order.extend(stream);
                }
            }
        }
        Self { ids, order, starts, is_same_session }
    }

    /// Returns whether the history is that of other captures of this stream's session.
    pub(crate) fn is_of_same_session(&self) -> bool {
        self.is_same_session && !self.is_empty()
    }

    /// Returns whether there is no record that this stream may repeat.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns whether `hash` is a copy. `at` is the position in the order reached so far.
    pub(crate) fn contains(&self, hash: u64, at: &mut usize) -> bool {
        match &self.ids {
            Some(ids) => ids.contains(&hash),
            None => self.advance_past(hash, at),
        }
    }

    /// Returns whether another stream has a record with this id.
    pub(crate) fn has_id(&self, id: u64) -> bool {
        self.ids.as_ref().is_some_and(|ids| ids.contains(&id))
    }

    /// Moves to the record with this content, which may be far ahead in the order. Without such a
    /// record, the position stays.
    pub(crate) fn seek_content(&self, content: u64, at: &mut usize) {
        let ahead = self.order.get(*at..self.stream_end(*at)).unwrap_or_default();
        if let Some(found) = ahead.iter().position(|other| *other == content) {
            *at += found;
        }
    }

    /// Returns whether the record with this content comes next in the order, within
    /// [`ORDER_WINDOW_RECORDS`] records of the position reached so far. Moves past it if so. The first
    /// record that is found decides which stream is repeated.
    pub(crate) fn advance_past(&self, content: u64, at: &mut usize) -> bool {
        let mut found = self.find_ahead(content, *at);
        if found.is_none() && *at == 0 {
            found = self.starts.iter().find_map(|start| self.find_ahead(content, *start));
        }
        if let Some(found) = found {
            *at = found + 1;
        }
        found.is_some()
    }

    /// Returns where the record with this content is, within [`ORDER_WINDOW_RECORDS`] records of a
    /// position and in its stream.
    fn find_ahead(&self, content: u64, at: usize) -> Option<usize> {
        let start = at.min(self.order.len());
        let end = (start + ORDER_WINDOW_RECORDS).min(self.stream_end(start));
        let window = self.order.get(start..end)?;
        window.iter().position(|other| *other == content).map(|found| start + found)
    }

    /// Returns the end of the stream of a position.
    fn stream_end(&self, at: usize) -> usize {
        let next = self.starts.iter().find(|start| **start > at);
        next.map_or(self.order.len(), |start| start - 1)
    }
}
