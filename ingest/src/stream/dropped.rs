//! Messages that a document held when it was read before and holds no longer, as its agent rewrote
//! it when a person went back. They stay, as a branch that was abandoned, in the place where they
//! stood: so the events before and behind them keep their coordinates.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use schemas::EventType;
use schemas::session::{EventRow, SessionRow};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{Draft, RecordAt, Stream, StreamState};

/// The messages of a document in their order; saved in `sources.state`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Messages {
    /// The hash of each one's id and the index of its first event; 0 is one without an id.
    messages: Vec<(u64, i32)>,
    /// Events of all.
    events: i32,
}

/// Messages that are gone.
#[derive(Debug, PartialEq)]
pub(crate) struct Gone {
    /// The message that they stood behind and that is still there; none at the beginning.
    behind: Option<u64>,
    message: u64,
    /// Where its events lie in the store.
    pub(crate) events: Range<i32>,
}

impl Messages {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Those that are not among `now`.
    pub(crate) fn gone(&self, now: &Self) -> Vec<Gone> {
        let present: HashSet<u64> = now.messages.iter().map(|(id, _)| *id).collect();
        let ends = self.messages.iter().skip(1).map(|(_, first)| *first).chain([self.events]);
        let mut behind = None;
        let mut gone = Vec::new();
        for ((message, first), end) in self.messages.iter().copied().zip(ends) {
            if message == 0 || present.contains(&message) {
                behind = Some(message);
            } else if first < end {
                gone.push(Gone { behind, message, events: first..end });
            }
        }
        gone
    }
}

/// Events of messages that are gone, by the message that they stood behind.
#[derive(Debug, Default)]
pub(crate) struct Dropped(HashMap<Option<u64>, Vec<(u64, Vec<EventRow>)>>);

impl Dropped {
    /// Adds the events of a message, behind those added before.
    pub(crate) fn add(&mut self, gone: &Gone, events: Vec<EventRow>) {
        self.0.entry(gone.behind).or_default().push((gone.message, events));
    }
}

impl Stream {
    /// A message of a document begins, whose id stays when the document is written anew; what stood
    /// before it and is gone comes first.
    pub fn begin_message(&mut self, id: Option<&str>) {
        self.put_back();
        let id = id.map_or(0, |id| xxh3_64(id.as_bytes()) | 1);
        self.messages.messages.push((id, self.state.next_index));
    }

    /// The document ends: what stood at its end and is gone comes last.
    pub(crate) fn end_document(&mut self) {
        self.put_back();
        self.messages.events = self.state.next_index;
    }

    /// The messages so far.
    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Begins the document anew, this time with what is gone from it.
    pub(crate) fn start_over(&mut self, session: SessionRow, dropped: Dropped) {
        let own = self.own.take().map(|_| HashSet::new());
        let (history, redactor) = (std::mem::take(&mut self.history), self.redactor.take());
        let state = StreamState::default();
        *self = Self::new(self.provider, session, state, own, history, redactor);
        self.dropped = dropped;
    }

    /// Adds the messages that stood behind the last one and are gone.
    fn put_back(&mut self) {
        if self.dropped.0.is_empty() {
            return;
        }
        let last = self.messages.messages.last().map(|(id, _)| *id);
        for (message, events) in self.dropped.0.remove(&last).unwrap_or_default() {
            let first = self.state.next_index;
            self.messages.messages.push((message, first));
            let mut record = None;
            for event in events {
                if record.replace(event.record_hash) != Some(event.record_hash) {
                    self.begin_record(RecordAt::default(), None, None);
                    self.record_hash = event.record_hash.cast_unsigned();
                }
                self.put_back_event(event);
            }
            self.abandon(first);
        }
    }

    /// Adds an event as it was; only its place in the document is no longer known.
    fn put_back_event(&mut self, event: EventRow) {
        let Ok(kind) = event.event_type.parse::<EventType>() else { return };
        self.replay = event.is_replay;
        self.sidechain = event.is_sidechain;
        // What stands before it is what stood there: these are the numbers that it had.
        if event.turn_index > self.state.turn {
            self.begin_turn();
        }
        if event.step_index > self.state.step {
            self.begin_step();
        }
        let files = event.files.as_ref().map(|files| files.join("\n")).unwrap_or_default();
        let model = std::mem::replace(&mut self.session.model, event.model.clone());
        let branch = std::mem::replace(&mut self.session.git_branch, event.git_branch.clone());
        let draft = Draft {
            subtype: event.subtype.as_deref(),
            text: &event.text,
            tool_name: event.tool_name.as_deref(),
            tool_call_id: event.tool_call_id.as_deref(),
            files: &files,
            command: event.command.as_deref().unwrap_or_default(),
            spawned_agent_id: event.spawned_agent_id.as_deref(),
            is_error: event.is_error,
            exit_code: event.exit_code,
            duration_ms: event.duration_ms,
            usage: event.usage(),
            request_id: event.request_id.as_deref(),
            timestamp: event.timestamp,
        };
        self.push_in(kind, event.step_index, draft);
        (self.session.model, self.session.git_branch) = (model, branch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(list: &[(u64, i32)], events: i32) -> Messages {
        Messages { messages: list.to_vec(), events }
    }

    #[test]
    fn what_is_gone_stood_behind_what_is_left() {
        let before = messages(&[(1, 0), (3, 2), (0, 5), (5, 6), (7, 6), (9, 7)], 9);
        let gone = before.gone(&messages(&[(3, 0), (11, 3)], 4));
        let gone: Vec<_> = gone.into_iter().map(|g| (g.behind, g.message, g.events)).collect();
        // One without an id cannot be missed, and one without events is none.
        assert_eq!(gone, [(None, 1, 0..2), (Some(0), 7, 6..7), (Some(0), 9, 7..9)]);
        assert_eq!(before.gone(&before), []);
    }
}
