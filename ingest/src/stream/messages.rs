//! Compares the messages of a document with those that it held when it was read before.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use schemas::session::EventRow;
use serde::{Deserialize, Serialize};

/// The messages of a document in their order; saved in `sources.state`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Messages {
    messages: Vec<Message>,
    /// Number of events in all messages.
    pub(super) events: i32,
    /// Number of messages read so far per id hash.
    #[serde(skip)]
    seen: HashMap<u64, usize>,
}

/// The hash of a message's id (0 without an id), the index of its first event, and the turn before
/// it.
pub(super) type Message = (u64, i32, i32);

/// The hash of a message's id, and the number of earlier messages with the same hash. Ids may be
/// equal after masking.
pub(super) type Key = (u64, usize);

/// A message that the document no longer holds.
#[derive(Debug, PartialEq)]
pub(crate) struct Gone {
    /// The last message before this one that still exists; `None` at the beginning.
    behind: Option<Key>,
    message: Message,
    /// The event indices of the message in the store.
    events: Range<i32>,
}

impl Messages {
    /// Parses the messages from a file's saved state. `None` if the state is not that of a
    /// document.
    pub(crate) fn of(state: Option<&str>) -> Option<Self> {
        serde_json::from_str(state?).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn push(&mut self, message: Message) {
        *self.seen.entry(message.0).or_default() += 1;
        self.messages.push(message);
    }

    pub(super) fn last(&self) -> Option<Key> {
        let (id, ..) = self.messages.last()?;
        Some((*id, self.seen.get(id)? - 1))
    }

    fn keys(&self) -> impl Iterator<Item = Key> {
        let mut seen = HashMap::new();
        self.messages.iter().map(move |(id, ..)| {
            let of_id = seen.entry(*id).or_insert(0);
            *of_id += 1;
            (*id, *of_id - 1)
        })
    }

    /// Returns the messages that are missing from `now`. A message without an id never counts as
    /// missing.
    pub(crate) fn gone(&self, now: &Self) -> Vec<Gone> {
        let present: HashSet<Key> = now.keys().collect();
        let ends = self.messages.iter().skip(1).map(|(_, first, _)| *first).chain([self.events]);
        let mut behind = None;
        let mut gone = Vec::new();
        for ((message, key), end) in self.messages.iter().zip(self.keys()).zip(ends) {
            if present.contains(&key) {
                behind = Some(key);
            } else if message.0 != 0 && message.1 < end {
                gone.push(Gone { behind, message: *message, events: message.1..end });
            }
        }
        gone
    }
}

/// Events of messages that are gone, by the message that they followed.
#[derive(Debug, Default)]
pub(crate) struct Dropped(pub(super) HashMap<Option<Key>, Vec<(Message, Vec<EventRow>)>>);

impl Dropped {
    /// Reads the events of the messages in `gone`. `read` returns the events with the given
    /// indices, ascending.
    pub(crate) fn read<E>(
        gone: Vec<Gone>,
        read: impl FnOnce(&[Range<i32>]) -> Result<Vec<EventRow>, E>,
    ) -> Result<Self, E> {
        let mut ranges: Vec<Range<i32>> = Vec::new();
        for Gone { events, .. } in &gone {
            match ranges.last_mut().filter(|last| last.end == events.start) {
                Some(last) => last.end = events.end,
                None => ranges.push(events.clone()),
            }
        }
        let mut rows = read(&ranges)?.into_iter().peekable();
        let mut dropped = Self::default();
        for Gone { behind, message, events } in gone {
            let mut of_message = Vec::new();
            while let Some(row) = rows.next_if(|row| row.event_index < events.end) {
                of_message.push(row);
            }
            dropped.0.entry(behind).or_default().push((message, of_message));
        }
        Ok(dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(list: &[(u64, i32)], events: i32) -> Messages {
        let messages = list.iter().map(|(id, first)| (*id, *first, 0)).collect();
        Messages { messages, events, ..Messages::default() }
    }

    #[test]
    fn what_is_gone_stood_behind_what_is_left() {
        let before = messages(&[(1, 0), (3, 2), (0, 5), (5, 6), (7, 6), (9, 7), (3, 9)], 10);
        let gone = before.gone(&messages(&[(3, 0), (0, 1), (11, 3)], 4));
        let gone: Vec<_> = gone.into_iter().map(|g| (g.behind, g.message.0, g.events)).collect();
        // One without events is none.
        let expected = [
            (None, 1, 0..2),
            (Some((0, 0)), 7, 6..7),
            (Some((0, 0)), 9, 7..9),
            (Some((0, 0)), 3, 9..10),
        ];
        assert_eq!(gone, expected);
        assert_eq!(before.gone(&before), []);
        let unnamed = before.gone(&messages(&[(3, 0)], 4));
        assert!(unnamed.iter().all(|gone| gone.message.0 != 0 && gone.behind != Some((0, 0))));
    }
}
