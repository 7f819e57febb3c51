//! Compares the messages of a document with those that it held when it was read before.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use schemas::session::EventRow;
use serde::{Deserialize, Serialize};

/// The messages of a document in their order; saved in `sources.state`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentMessages {
    messages: Vec<DocumentMessage>,
    /// Number of events in all messages.
    pub(super) events: i32,
    /// Number of messages read so far per id hash.
    #[serde(skip)]
    seen: HashMap<u64, usize>,
}

/// A message of a document; saved as a list of its three fields.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u64, i32, i32)", into = "(u64, i32, i32)")]
pub(super) struct DocumentMessage {
    /// Hash of the message's id; 0 if it has none.
    pub(super) id_hash: u64,
    /// Index of the first event of the message.
    pub(super) first_event: i32,
    /// The turn before the message.
    pub(super) turn_before: i32,
}

impl From<(u64, i32, i32)> for DocumentMessage {
    fn from((id_hash, first_event, turn_before): (u64, i32, i32)) -> Self {
        Self { id_hash, first_event, turn_before }
    }
}

impl From<DocumentMessage> for (u64, i32, i32) {
    fn from(message: DocumentMessage) -> Self {
        (message.id_hash, message.first_event, message.turn_before)
    }
}

/// The hash of a message's id, and the number of earlier messages with the same hash. Ids may be
/// equal after masking.
pub(super) type MessageKey = (u64, usize);

/// A message that the document no longer holds.
#[derive(Debug, PartialEq)]
pub(crate) struct GoneMessage {
    /// The last message before this one that still exists; `None` at the beginning.
    previous: Option<MessageKey>,
    message: DocumentMessage,
    /// The event indices of the message in the store.
    events: Range<i32>,
}

impl DocumentMessages {
    /// Parses the messages from a file's saved state. `None` if the state is not that of a
    /// document.
    pub(crate) fn from_state(state: Option<&str>) -> Option<Self> {
        serde_json::from_str(state?).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds the next message of the document.
    pub(super) fn push(&mut self, message: DocumentMessage) {
        *self.seen.entry(message.id_hash).or_default() += 1;
        self.messages.push(message);
    }

    /// Returns the key of the last message. `None` if there is no message.
    pub(super) fn last(&self) -> Option<MessageKey> {
        let id_hash = self.messages.last()?.id_hash;
        Some((id_hash, self.seen.get(&id_hash)? - 1))
    }

    /// Returns the keys of all messages, in their order.
    fn keys(&self) -> impl Iterator<Item = MessageKey> {
        let mut seen = HashMap::new();
        self.messages.iter().map(move |message| {
            let count = seen.entry(message.id_hash).or_insert(0);
            *count += 1;
            (message.id_hash, *count - 1)
        })
    }

    /// Returns the messages that are missing from `now`, in their order. A message without an id or
    /// without events never counts as missing.
    pub(crate) fn find_gone(&self, now: &Self) -> Vec<GoneMessage> {
        let present: HashSet<MessageKey> = now.keys().collect();
        let next_firsts = self.messages.iter().skip(1).map(|next| next.first_event);
        let event_ends = next_firsts.chain([self.events]);

        let mut previous = None;
        let mut gone_messages = Vec::new();
        for ((message, key), end) in self.messages.iter().zip(self.keys()).zip(event_ends) {
            if present.contains(&key) {
                previous = Some(key);
            } else if message.id_hash != 0 && message.first_event < end {
                let events = message.first_event..end;
                gone_messages.push(GoneMessage { previous, message: *message, events });
            }
        }
        gone_messages
    }
}

/// Events of messages that are gone, by the message that they followed.
#[derive(Debug, Default)]
pub(crate) struct DroppedMessages(
    pub(super) HashMap<Option<MessageKey>, Vec<(DocumentMessage, Vec<EventRow>)>>,
);

impl DroppedMessages {
    /// Reads the events of the messages in `gone_messages`. `read` returns the events with the given
    /// indices, ascending.
    pub(crate) fn read_events<E>(
        gone_messages: Vec<GoneMessage>,
        read: impl FnOnce(&[Range<i32>]) -> Result<Vec<EventRow>, E>,
    ) -> Result<Self, E> {
        let mut ranges: Vec<Range<i32>> = Vec::new();
        for GoneMessage { events, .. } in &gone_messages {
            match ranges.last_mut() {
                Some(last) if last.end == events.start => last.end = events.end,
                Some(_) | None => ranges.push(events.clone()),
            }
        }

        let mut rows = read(&ranges)?.into_iter().peekable();
        let mut dropped = Self::default();
        for GoneMessage { previous, message, events } in gone_messages {
            let mut message_rows = Vec::new();
            while let Some(row) = rows.next_if(|row| row.event_index < events.end) {
                message_rows.push(row);
            }
            dropped.0.entry(previous).or_default().push((message, message_rows));
        }
        Ok(dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(list: &[(u64, i32)], events: i32) -> DocumentMessages {
        let messages = list
            .iter()
            .map(|(id, first)| DocumentMessage {
                id_hash: *id,
                first_event: *first,
                turn_before: 0,
            })
            .collect();
        DocumentMessages { messages, events, ..DocumentMessages::default() }
    }

    #[test]
    fn what_is_gone_stood_behind_what_is_left() {
        let before = messages(&[(1, 0), (3, 2), (0, 5), (5, 6), (7, 6), (9, 7), (3, 9)], 10);
        let gone = before.find_gone(&messages(&[(3, 0), (0, 1), (11, 3)], 4));
        let gone: Vec<_> =
            gone.into_iter().map(|g| (g.previous, g.message.id_hash, g.events)).collect();
        // One without events is none.
        let expected = [
            (None, 1, 0..2),
            (Some((0, 0)), 7, 6..7),
            (Some((0, 0)), 9, 7..9),
            (Some((0, 0)), 3, 9..10),
        ];
        assert_eq!(gone, expected);
        assert_eq!(before.find_gone(&before), []);
        let unnamed = before.find_gone(&messages(&[(3, 0)], 4));
        let is_named =
            |gone: &GoneMessage| gone.message.id_hash != 0 && gone.previous != Some((0, 0));
        assert!(unnamed.iter().all(is_named));
    }
}
