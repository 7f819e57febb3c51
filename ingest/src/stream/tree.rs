//! A log that is a tree, in which the user may go back to any entry. The session is the path from
//! the root to the last entry; all other events were abandoned (docs/formats.md#pi).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::recent::push_bounded;

/// Maximum number of entries remembered.
const MAX_ENTRIES: usize = 8192;

/// Maximum number of runs of entries. Every time that the user goes to another branch, a run begins.
const MAX_RUNS: usize = 8192;

/// The parent of the first entry of a session.
pub(crate) const ROOT: u64 = 0;

/// Events `first..end`.
type EventRange = (i32, i32);

/// The entries of a log that is a tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// The last entries, in the order of the log.
    entries: VecDeque<TreeEntry>,
    /// Runs of entries that follow each other both in the log and in the tree.
    runs: Vec<TreeRun>,
    /// Index of the first event of the first entry.
    root: Option<i32>,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TreeEntry {
    id: u64,
    /// Index of the first event of the entry.
    begins: i32,
    /// Position of its run in [`Tree::runs`].
    run: usize,
}

/// Entries that follow each other both in the log and in the tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct TreeRun {
    /// Index of the first event of the run.
    begins: i32,
    /// The run that this one continues, and the index at which the events of its parent entry end.
    on: Option<(usize, i32)>,
}

impl Tree {
    /// Returns whether the tree has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry below `parent` whose events begin at `now`. If `parent` is not the entry
    /// before it, returns all ranges of events that are abandoned now.
    pub(crate) fn add_entry(&mut self, id: u64, parent: u64, now: i32) -> Option<Vec<EventRange>> {
        if self.runs.is_empty() {
            self.runs.push(TreeRun::default());
        }
        let root = *self.root.get_or_insert(now);
        let continues_last = self.entries.back().is_none_or(|last| last.id == parent);
        let on = if continues_last { None } else { self.branching_point(parent, root, now) };
        if on.is_some() {
            self.runs.push(TreeRun { begins: now, on });
        }

        push_bounded(
            &mut self.entries,
            MAX_ENTRIES,
            TreeEntry { id, begins: now, run: self.runs.len() - 1 },
        );
        on.is_some().then(|| self.abandoned_ranges())
    }

    /// Returns the run of an entry that is not the last, and where its events end. `None` if the
    /// entry is not known, or if there are [`MAX_RUNS`] runs already.
    fn branching_point(&self, parent: u64, root: i32, now: i32) -> Option<(usize, i32)> {
        if self.runs.len() == MAX_RUNS {
            return None;
        }
        if parent == ROOT {
            return Some((0, root));
        }
        let at = self.entries.iter().rposition(|entry| entry.id == parent)?;
        let end = self.entries.get(at + 1).map_or(now, |next| next.begins);
        Some((self.entries[at].run, end))
    }

    /// Returns the events that are not on the path from the root to the last run, ascending.
    fn abandoned_ranges(&self) -> Vec<EventRange> {
        let mut ranges = Vec::new();
        let mut run = self.runs.last();
        while let Some(&TreeRun { begins, on: Some((other, end)) }) = run {
            if end < begins {
                ranges.push((end, begins));
            }
            run = self.runs.get(other);
        }
        ranges.reverse();
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a tree whose every entry is asked whether it lies on the way to the last.
        #[test]
        fn what_is_left_is_all_that_is_not_on_the_way(
            entries in proptest::collection::vec((any::<proptest::sample::Index>(), 0i32..3), 1..60),
            cut in 0usize..60,
        ) {
            let mut tree = Tree::default();
            let mut parents: Vec<usize> = Vec::new();
            let mut events = Vec::new();
            let (mut now, mut left) = (1, Vec::new());
            for (at, (index, count)) in entries.into_iter().enumerate() {
                if at == cut {
                    let saved = serde_json::to_string(&tree).expect("saves");
                    tree = serde_json::from_str(&saved).expect("loads");
                }
                // Entry n has the id n + 1; most follow the one before.
                let drawn = index.index(at * 2 + 1);
                let parent = if drawn > at { at } else { drawn };
                parents.push(parent);
                let id = |entry: usize| u64::try_from(entry).expect("fits");
                if let Some(now_left) = tree.add_entry(id(at + 1), id(parent), now) {
                    left = now_left;
                }
                events.extend((0..count).map(|_| at + 1));
                now += count;
                let mut way = vec![at + 1];
                while way.last() != Some(&0) {
                    way.push(parents[way[way.len() - 1] - 1]);
                }
                for (event, entry) in events.iter().enumerate() {
                    let event = i32::try_from(event).expect("fits") + 1;
                    let is_left = left.iter().any(|(first, end)| (*first..*end).contains(&event));
                    prop_assert_eq!(is_left, !way.contains(entry), "event {} of {}", event, at);
                }
            }
        }
    }
}
