//! A log that is a tree, in which a person goes back to any entry: what lies between the root and
//! the last entry is the session, the rest was left behind (docs/formats.md#pi).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Entries, and times that a person went elsewhere, that are remembered.
const REMEMBERED: usize = 8192;

/// What an entry hangs on that is the first of its session.
pub(crate) const ROOT: u64 = 0;

/// Events `first..end`.
type Range = (i32, i32);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// The last entries as they stand in the log.
    entries: VecDeque<Entry>,
    /// Entries that follow each other in the log and in the tree.
    runs: Vec<Run>,
    /// Where the events of the first entry begin that hangs on the root.
    root: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    id: u64,
    begins: i32,
    run: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Run {
    begins: i32,
    /// The run that it hangs on, and where the events end of the entry there.
    on: Option<(usize, i32)>,
}

impl Tree {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// An entry whose events begin at `now` hangs on `parent`. When that is not the entry before it,
    /// gives back all that is left behind now.
    pub(crate) fn add(&mut self, id: u64, parent: u64, now: i32) -> Option<Vec<Range>> {
        if self.runs.is_empty() {
            self.runs.push(Run::default());
        }
        let begun = *self.root.get_or_insert(now);
        let goes_on = self.entries.back().is_none_or(|last| last.id == parent);
        let on = if goes_on { None } else { self.place(parent, begun, now) };
        if on.is_some() {
            self.runs.push(Run { begins: now, on });
        }
        if self.entries.len() == REMEMBERED {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { id, begins: now, run: self.runs.len() - 1 });
        on.map(|_| self.left())
    }

    /// The run of an entry that is not the last, and where its events end; `None` when it is not known.
    fn place(&self, parent: u64, begun: i32, now: i32) -> Option<(usize, i32)> {
        if self.runs.len() == REMEMBERED {
            return None;
        }
        if parent == ROOT {
            return Some((0, begun));
        }
        let at = self.entries.iter().rposition(|entry| entry.id == parent)?;
        let end = self.entries.get(at + 1).map_or(now, |next| next.begins);
        Some((self.entries[at].run, end))
    }

    /// The events that do not lie between the root and the last run, ascending.
    fn left(&self) -> Vec<Range> {
        let mut left = Vec::new();
        let mut run = self.runs.last();
        while let Some(&Run { begins, on: Some((other, end)) }) = run {
            if end < begins {
                left.push((end, begins));
            }
            run = self.runs.get(other);
        }
        left.reverse();
        left
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
                // Entry n has the id n + 1; most hang on the one before.
                let drawn = index.index(at * 2 + 1);
                let parent = if drawn > at { at } else { drawn };
                parents.push(parent);
                let id = |entry: usize| u64::try_from(entry).expect("fits");
                if let Some(now_left) = tree.add(id(at + 1), id(parent), now) {
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
