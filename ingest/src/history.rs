//! Which records of a log are copies of another log's.

use std::collections::HashSet;

/// Records of other streams that this one may repeat.
#[derive(Debug, Default)]
pub struct History {
    /// Where records have ids of their own, those: a copy is known wherever it stands.
    ids: Option<HashSet<u64>>,
    /// Records in their order, for those known by their content, which may repeat by chance: only a
    /// run that follows the order counts as copied.
    order: Vec<u64>,
    /// All of them are captures of the session that this one is a capture of.
    of_same_session: bool,
}

/// How far ahead the next copied record may stand in the parent's order; records that gave no
/// event are missing from it on either side.
const ORDER_WINDOW: usize = 64;

impl History {
    /// The records of several streams, each in its order; `with_ids` where they are known by ids,
    /// `of_same_session` where all are captures of the session that this one is a capture of.
    pub fn new(streams: Vec<Vec<u64>>, with_ids: bool, of_same_session: bool) -> Self {
        let ids = with_ids.then(|| streams.iter().flatten().copied().collect());
        // Of several captures of one session the one that holds most of it.
        let order = streams.into_iter().max_by_key(Vec::len).unwrap_or_default();
        Self { ids, order, of_same_session }
    }

    pub(crate) fn is_of_same_session(&self) -> bool {
        self.of_same_session && !self.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether `hash` is a copy; `at` is the place in the order reached so far.
    pub(crate) fn contains(&self, hash: u64, at: &mut usize) -> bool {
        match &self.ids {
            Some(ids) => ids.contains(&hash),
            None => self.goes_on_with(hash, at),
        }
    }

    /// Whether another stream has a record of this id.
    pub(crate) fn has_id(&self, id: u64) -> bool {
        self.ids.as_ref().is_some_and(|ids| ids.contains(&id))
    }

    /// Goes on to the record with this content, which may stand far ahead in the order.
    pub(crate) fn seek(&self, content: u64, at: &mut usize) {
        let ahead = self.order.get(*at..).unwrap_or_default();
        if let Some(found) = ahead.iter().position(|other| *other == content) {
            *at += found;
        }
    }

    /// Whether the record with this content comes next in the order, from the place reached so far.
    pub(crate) fn goes_on_with(&self, content: u64, at: &mut usize) -> bool {
        let from = (*at).min(self.order.len());
        let to = (from + ORDER_WINDOW).min(self.order.len());
        let found = self.order[from..to].iter().position(|other| *other == content);
        if let Some(found) = found {
            *at = from + found + 1;
        }
        found.is_some()
    }
}
