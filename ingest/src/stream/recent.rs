//! Lists of the last things of a log, which a saved state holds: they have a bound.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Adds an element at the end. The first one makes room for it if there are already `max`.
pub(crate) fn push_bounded<T>(list: &mut VecDeque<T>, max: usize, element: T) {
    if list.len() >= max {
        list.pop_front();
    }
    list.push_back(element);
}

/// The last ids of one kind in a log, at most `MAX`, as hashes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RecentIds<const MAX: usize>(VecDeque<u64>);

impl<const MAX: usize> RecentIds<MAX> {
    /// Returns whether an id is among the last ones.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.0.contains(&xxh3_64(id.as_bytes()))
    }

    /// Remembers an id, if there is one.
    pub(crate) fn remember(&mut self, id: Option<&str>) {
        if let Some(id) = id {
            push_bounded(&mut self.0, MAX, xxh3_64(id.as_bytes()));
        }
    }

    /// Remembers an id, unless it is among the last ones. Returns whether it is new; a missing id
    /// always is.
    pub(crate) fn add_new(&mut self, id: Option<&str>) -> bool {
        let is_new = id.is_none_or(|id| !self.contains(id));
        if is_new {
            self.remember(id);
        }
        is_new
    }
}
