//! Keeps messages that a document held when it was read before and no longer holds, because its
//! agent rewrote it when the user went back. They stay in their old place as an abandoned branch,
//! so that the events before and after them keep their coordinates.

use std::collections::{HashMap, HashSet};

use schemas::session::{EventRow, SessionRow};
use schemas::{Confidence, EventType};
use xxhash_rust::xxh3::xxh3_64;

use super::decoded_event::{DecodedEvent, RecordAt, mode_words};
use super::events::Stream;
use super::forgotten::is_forgotten_event;
use super::messages::{DocumentMessage, DocumentMessages, DroppedMessages};
use super::recount::is_copied;
use super::session::TitleFrom;
use super::state::StreamState;

impl Stream {
    /// Begins a message of a document. `id` must stay the same when the document is rewritten.
    /// Missing messages that came before this one are put back first.
    pub fn begin_message(&mut self, id: Option<&str>) {
        self.restore_next_messages();
        let id_hash = id.map_or(0, |id| xxh3_64(id.as_bytes()) | 1);
        self.messages.push(DocumentMessage {
            id_hash,
            first_event: self.state.next_index,
            turn_before: self.state.turn,
        });
    }

    /// Ends the document. Missing messages that came at its end are put back last.
    pub(crate) fn end_document(&mut self) {
        self.restore_next_messages();

        // Messages that followed one which the decoder did not report this time.
        let mut rest: Vec<_> = std::mem::take(&mut self.dropped.0).into_values().collect();
        rest.sort_by_key(|messages| messages.first().map(|(message, _)| message.first_event));
        for messages in rest {
            self.restore_messages(messages);
        }
        self.messages.events = self.state.next_index;
    }

    /// The messages read so far.
    pub(crate) fn messages(&self) -> &DocumentMessages {
        &self.messages
    }

    /// Restarts the document of `session`, this time with the messages that it lost since the
    /// session was as in `before`. The rows of the first reading must have been taken.
    pub(crate) fn restart_document(
        &mut self,
        session: SessionRow,
        before: &SessionRow,
        dropped: DroppedMessages,
    ) {
        let own = self.own.take().map(|_| HashSet::new());
        let forgotten = std::mem::take(&mut self.forgotten);
        let history = std::mem::take(&mut self.history);
        let redactor = self.redactor.take();
        let state = StreamState::default();
        let batch = std::mem::take(&mut self.batch);
        *self = Self::new(self.provider, session, state, own, history, redactor, batch);
        self.dropped = dropped;
        self.forgotten = forgotten;

        // The events do not say how far the counts of a message can be trusted.
        let known = before.usage_confidence.as_ref();
        let confidence: Option<Confidence> = known.and_then(|known| known.parse().ok());
        if let Some(confidence) = confidence
            && confidence != Confidence::Unknown
        {
            self.set_confidence(confidence);
        }
    }

    /// Puts back the missing messages that followed the last message.
    fn restore_next_messages(&mut self) {
        if self.dropped.0.is_empty() {
            return;
        }
        let last = self.messages.last();
        let messages = self.dropped.0.remove(&last).unwrap_or_default();
        self.restore_messages(messages);
    }

    /// Puts back messages with their events, as an abandoned branch.
    fn restore_messages(&mut self, messages: Vec<(DocumentMessage, Vec<EventRow>)>) {
        let mut steps = HashMap::new();
        for (message, events) in messages {
            let first_event = self.state.next_index;
            let turn_before = self.state.turn;
            self.messages.push(DocumentMessage { first_event, turn_before, ..message });

            let mut turn = message.turn_before;
            let mut record_hash = None;
            for event in events {
                if record_hash != Some(event.record_hash) {
                    record_hash = Some(event.record_hash);
                    let hash = event.record_hash.cast_unsigned();
                    let identity = (hash != 0).then_some(hash);
                    let number = self.record_number;
                    self.begin_record(RecordAt::default(), identity, None);
                    // The record is not one of the document.
                    self.record_number = number;
                    self.is_forgotten = is_forgotten_event(&event);
                    self.set_copy_hash(event.copy_hash.cast_unsigned());
                }

                // A copied event stays a copy, and an own event may turn out to be one.
                self.is_replay |= is_copied(&event);
                if event.turn_index > turn {
                    turn = event.turn_index;
                    self.begin_turn();
                }
                let step = match event.step_index {
                    0 => 0,
                    step => *steps.entry(step).or_insert_with(|| self.begin_step()),
                };
                self.restore_event(event, step);
            }
            self.abandon_from(first_event);
        }
    }

    /// Puts back an event unchanged, except that its place in the document is no longer known.
    fn restore_event(&mut self, event: EventRow, step: i32) {
        let kind = event.event_type;
        self.is_sidechain = event.is_sidechain;
        if kind == EventType::User {
            self.offer_title(TitleFrom::Prompt, &event.text);
        }
        self.secrets.count_placeholders(&event.text);

        // The event keeps its own model and branch.
        let model = std::mem::replace(&mut self.session.model, event.model.clone());
        let branch = std::mem::replace(&mut self.session.git_branch, event.git_branch.clone());
        let decoded = DecodedEvent {
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
            // Events have no column for it.
            cost: None,
            mode: mode_words(&event),
            request_id: event.request_id.as_deref(),
            timestamp: event.timestamp,
        };
        self.push_in_step(kind, step, decoded);

        self.session.model = model.or(event.model);
        self.session.git_branch = branch.or(event.git_branch);
    }
}
