//! Branches of a log: tracks parents of records, and the events that were abandoned when the user
//! went back. The cost of a branch does not depend on the number of earlier branches.

use std::collections::{HashSet, VecDeque};

use serde::{Deserialize, Serialize};

/// Maximum number of parents remembered. Only going back to one of them is noticed.
const MAX_PARENTS: usize = 8192;

/// Parents of the records on the current path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, i32)>", into = "Vec<(u64, i32)>")]
pub(crate) struct Branches {
    /// Each parent once, with the index of the first event of the record that follows it.
    path: VecDeque<(u64, i32)>,
    /// The parents in `path`.
    parents: HashSet<u64>,
}

impl Branches {
    pub(crate) fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// Links a record whose events begin at `now` to `parent`. If another record already had this
    /// parent, the user went back there: returns where the events of that record began.
    pub(crate) fn link_record(&mut self, parent: u64, now: i32) -> Option<i32> {
        let mut abandoned_from = None;
        if !self.parents.insert(parent) {
            while let Some((known, began)) = self.path.pop_back() {
                if known == parent {
                    abandoned_from = Some(began);
                    break;
                }
                self.parents.remove(&known);
            }
        }
        if self.path.len() == MAX_PARENTS
            && let Some((oldest, _)) = self.path.pop_front()
        {
            self.parents.remove(&oldest);
        }
        self.path.push_back((parent, now));
        abandoned_from
    }
}

impl From<Vec<(u64, i32)>> for Branches {
    fn from(path: Vec<(u64, i32)>) -> Self {
        Self { parents: path.iter().map(|(parent, _)| *parent).collect(), path: path.into() }
    }
}

impl From<Branches> for Vec<(u64, i32)> {
    fn from(branches: Branches) -> Self {
        branches.path.into()
    }
}

/// Ranges of abandoned events, ascending, in the form of the session's row: `3-20,30-31`.
#[derive(Default)]
pub(crate) struct AbandonedRanges {
    text: String,
    /// The first event of every range, and the length of the text before it.
    ranges: Vec<(i32, usize)>,
}

impl AbandonedRanges {
    /// Parses the ranges of a session's row.
    pub(crate) fn parse_ranges(text: &str) -> Self {
        let mut abandoned = Self::default();
        for range in text.split(',') {
            let Some((first, last)) = range.split_once('-') else { continue };
            if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
                abandoned.add_range(first, last);
            }
        }
        abandoned
    }

    /// Returns the column of the session's row; `None` if there is no range.
    pub(crate) fn to_column(&self) -> Option<String> {
        (!self.text.is_empty()).then(|| self.text.clone())
    }

    /// Adds a range. It replaces earlier ranges that begin at or after `first`.
    pub(crate) fn add_range(&mut self, first: i32, last: i32) {
        while let Some((_, at)) = self.ranges.pop_if(|(start, _)| *start >= first) {
            self.text.truncate(at);
        }
        self.ranges.push((first, self.text.len()));
        let comma = if self.text.is_empty() { "" } else { "," };
        self.text.push_str(&format!("{comma}{first}-{last}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same ranges, looked through from the first for every new one.
    fn add_plainly(ranges: &mut Vec<(i32, i32)>, first: i32, last: i32) {
        ranges.retain(|(start, _)| *start < first);
        ranges.push((first, last));
    }

    /// The same memory, looked through from the last record for every new one.
    fn hang_plainly(path: &mut Vec<(u64, i32)>, parent: u64, now: i32) -> Option<i32> {
        let at = path.iter().rposition(|(known, _)| *known == parent);
        let since = at.map(|at| {
            let since = path[at].1;
            path.truncate(at);
            since
        });
        path.push((parent, now));
        since
    }

    proptest! {
        #[test]
        fn branches_are_those_of_the_plain_way(
            parents in proptest::collection::vec((0u64..30, 0i32..4), 0..200),
            cut in 0usize..200,
        ) {
            let (mut branches, mut abandoned) = (Branches::default(), AbandonedRanges::default());
            let (mut path, mut ranges) = (Vec::new(), Vec::new());
            let mut now = 0;
            for (at, (parent, events)) in parents.into_iter().enumerate() {
                if at == cut {
                    // A log that grows is gone on with from what was saved.
                    let saved = serde_json::to_string(&branches).expect("saves");
                    branches = serde_json::from_str(&saved).expect("loads");
                    abandoned = AbandonedRanges::parse_ranges(abandoned.to_column().as_deref().unwrap_or(""));
                }
                let since = branches.link_record(parent, now);
                prop_assert_eq!(since, hang_plainly(&mut path, parent, now));
                if let Some(since) = since.filter(|since| *since < now) {
                    abandoned.add_range(since, now - 1);
                    add_plainly(&mut ranges, since, now - 1);
                }
                now += events;
            }
            let saved: Vec<(u64, i32)> = branches.into();
            prop_assert_eq!(saved, path);
            let text: Vec<_> =
                ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect();
            prop_assert_eq!(abandoned.to_column().unwrap_or_default(), text.join(","));
        }

        #[test]
        fn any_ranges_are_those_of_the_plain_way(
            all in proptest::collection::vec((0i32..40, 0i32..10), 0..40),
        ) {
            let (mut abandoned, mut ranges) = (AbandonedRanges::default(), Vec::new());
            for (first, more) in all {
                abandoned.add_range(first, first + more);
                add_plainly(&mut ranges, first, first + more);
            }
            let text: Vec<_> =
                ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect();
            prop_assert_eq!(abandoned.to_column().unwrap_or_default(), text.join(","));
        }
    }

    #[test]
    fn the_oldest_records_are_forgotten_one_by_one() {
        let mut branches = Branches::default();
        let records = i32::try_from(MAX_PARENTS).expect("fits") + 2;
        for now in 0..records {
            assert_eq!(branches.link_record(now.unsigned_abs().into(), now), None);
        }
        assert_eq!(branches.path.len(), MAX_PARENTS);
        assert_eq!(branches.parents.len(), MAX_PARENTS);
        assert_eq!(branches.link_record(2, records), Some(2));
        assert_eq!((branches.path.len(), branches.parents.len()), (1, 1));
        assert_eq!(branches.link_record(1, records), None, "it was forgotten");
    }
}
