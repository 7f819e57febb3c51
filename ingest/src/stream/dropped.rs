//! Keeps messages that a document held when it was read before and no longer holds, because its
//! agent rewrote it when the user went back. They stay in their old place as an abandoned branch,
//! so that the events before and after them keep their coordinates.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use schemas::session::{EventRow, SessionRow};
use schemas::{Confidence, EventType};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{Draft, RecordAt, Stream, StreamState, TitleFrom};

/// The messages of a document in their order; saved in `sources.state`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Messages {
    messages: Vec<Message>,
    /// Number of events in all messages.
    events: i32,
    /// Number of messages read so far per id hash.
    #[serde(skip)]
    seen: HashMap<u64, usize>,
}

/// The hash of a message's id (0 without an id), the index of its first event, and the turn before
/// it.
type Message = (u64, i32, i32);

/// The hash of a message's id, and the number of earlier messages with the same hash. Ids may be
/// equal after masking.
type Key = (u64, usize);

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

    fn push(&mut self, message: Message) {
        *self.seen.entry(message.0).or_default() += 1;
        self.messages.push(message);
    }

    fn last(&self) -> Option<Key> {
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
pub(crate) struct Dropped(HashMap<Option<Key>, Vec<(Message, Vec<EventRow>)>>);

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

impl Stream {
    /// Begins a message of a document. `id` must stay the same when the document is rewritten.
    /// Missing messages that came before this one are put back first.
    pub fn begin_message(&mut self, id: Option<&str>) {
        self.put_back_next();
        let id = id.map_or(0, |id| xxh3_64(id.as_bytes()) | 1);
        self.messages.push((id, self.state.next_index, self.state.turn));
    }

    /// Ends the document. Missing messages that came at its end are put back last.
    pub(crate) fn end_document(&mut self) {
        self.put_back_next();
        // Messages that followed one which the decoder did not report this time.
        let mut rest: Vec<_> = std::mem::take(&mut self.dropped.0).into_iter().collect();
        rest.sort_by_key(|(_, messages)| messages.first().map(|((_, first, _), _)| *first));
        rest.into_iter().for_each(|(_, messages)| self.put_back(messages));
        self.messages.events = self.state.next_index;
    }

    /// The messages read so far.
    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Restarts the document of `session`, this time with the messages that it lost since the
    /// session was as in `before`.
    pub(crate) fn start_over(
        &mut self,
        session: SessionRow,
        before: &SessionRow,
        dropped: Dropped,
    ) {
        let own = self.own.take().map(|_| HashSet::new());
        let (history, redactor) = (std::mem::take(&mut self.history), self.redactor.take());
        let state = StreamState::default();
        *self = Self::new(self.provider, session, state, own, history, redactor);
        self.dropped = dropped;
        // The events do not say how far the counts of a message can be trusted.
        let known = before.usage_confidence.as_ref().and_then(|known| known.parse().ok());
        if let Some(known) = known.filter(|known| *known != Confidence::Unknown) {
            self.set_confidence(known);
        }
    }

    /// Puts back the missing messages that followed the last message.
    fn put_back_next(&mut self) {
        if self.dropped.0.is_empty() {
            return;
        }
        let last = self.messages.last();
        let messages = self.dropped.0.remove(&last).unwrap_or_default();
        self.put_back(messages);
    }

    fn put_back(&mut self, messages: Vec<(Message, Vec<EventRow>)>) {
        let mut steps = HashMap::new();
        for ((id, _, turn), events) in messages {
            let first = self.state.next_index;
            self.messages.push((id, first, self.state.turn));
            let (mut turn, mut record) = (turn, None);
            for event in events {
                if record.replace(event.record_hash) != Some(event.record_hash) {
                    let identity = Some(event.record_hash.cast_unsigned());
                    self.begin_record(
                        RecordAt::default(),
                        identity.filter(|hash| *hash != 0),
                        None,
                    );
                }
                // A copied event stays a copy, and an own event may turn out to be one.
                self.replay |= event.is_replay;
                if event.turn_index > turn {
                    turn = event.turn_index;
                    self.begin_turn();
                }
                let step = match event.step_index {
                    0 => 0,
                    step => *steps.entry(step).or_insert_with(|| self.begin_step()),
                };
                self.put_back_event(event, step);
            }
            self.abandon(first);
        }
    }

    /// Puts back an event unchanged, except that its place in the document is no longer known.
    fn put_back_event(&mut self, event: EventRow, step: i32) {
        let kind = event.event_type;
        self.sidechain = event.is_sidechain;
        if kind == EventType::User {
            self.title(TitleFrom::Prompt, &event.text);
        }
        self.secrets.masked_before(&event.text);
        let model = std::mem::replace(&mut self.session.model, event.model.clone());
        let branch = std::mem::replace(&mut self.session.git_branch, event.git_branch.clone());
        let draft = Draft {
            subtype: event.subtype.as_deref(),
            text: &event.text,
            tool_name: event.tool_name.as_deref(),
            tool_call_id: event.tool_call_id.as_deref(),
            files: event.files.as_deref().unwrap_or_default(),
            command: event.command.as_deref().unwrap_or_default(),
            spawned_agent_id: event.spawned_agent_id.as_deref(),
            is_error: event.is_error,
            exit_code: event.exit_code,
            duration_ms: event.duration_ms,
            usage: event.usage(),
            request_id: event.request_id.as_deref(),
            timestamp: event.timestamp,
        };
        self.push_in(kind, step, draft);
        self.session.model = model.or(event.model);
        self.session.git_branch = branch.or(event.git_branch);
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
