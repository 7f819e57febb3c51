//! Recounts events of the store: against the records that their log may repeat, or after it was
//! decided which session counts a response.

use std::collections::HashSet;

use schemas::session::{EventRow, SessionRow};
use schemas::{EventType, Usage};

use super::draft::{Draft, RecordAt, mode_words};
use super::events::Stream;
use super::ledger::{LastRequests, Ledger};
use crate::redact::SecretCounts;

impl Stream {
    /// Counts an event as the store has it. Returns whether it is a copy. A copy stays one, unless
    /// its record is among `lost`. Equal records without ids cannot be told apart, so their order
    /// alone decides if any are lost.
    pub(crate) fn recount_event(&mut self, event: &EventRow, lost: &HashSet<u64>) -> bool {
        let hash = event.record_hash.cast_unsigned();
        let offset = event.source_offset.cast_unsigned();
        if self.state.next_index == 0 || (self.record.offset, self.record_hash) != (offset, hash) {
            let at = RecordAt { offset, ..RecordAt::default() };
            self.begin_record(at, Some(hash).filter(|hash| *hash != 0), None);
        }

        let said = event.copy_hash.cast_unsigned();
        if said != 0 && self.is_in_history(said) {
            self.is_replay = true;
        }

        // A record without an id is treated like the one before it.
        let has_id = self.own.is_some() && hash != 0;
        let may_stay_copy = lost.is_empty() || has_id && !lost.contains(&hash);
        self.is_replay |= is_copied(event) && may_stay_copy;
        while self.state.turn < event.turn_index {
            self.begin_turn();
        }
        while self.state.step < event.step_index {
            self.begin_step();
        }
        self.is_sidechain = event.is_sidechain;
        self.session.model.clone_from(&event.model);
        self.extend_time_range(event.timestamp);
        self.count_event(event.event_type, &counted_draft(event));

        if let Some(own) = &mut self.own {
            own.extend([hash, said].into_iter().filter(|hash| *hash != 0));
        }
        self.state.replay = self.is_replay;
        self.state.next_index += 1;
        self.is_replay
    }
}

/// Counts the tokens of a session again from its stored events.
pub struct TokenRecount {
    session: SessionRow,
    ledger: Ledger,
    requests: LastRequests,
}

impl TokenRecount {
    /// Begins with a session without its counts of tokens and of copied events.
    pub fn new(session: &SessionRow) -> Self {
        let mut session = SessionRow { usage_by_model: None, replay_events: 0, ..session.clone() };
        session.set_usage(Usage::default());
        let ledger = Ledger::from_row(&session);
        Self { session, ledger, requests: LastRequests::new() }
    }

    /// Counts the next event.
    pub fn add_event(&mut self, event: &EventRow) {
        if event.is_replay {
            self.session.replay_events += 1;
        } else if event.event_type == EventType::TokenUsage {
            let draft = counted_draft(event);
            self.session.set_usage(self.session.usage().plus(draft.usage));
            self.ledger.add_usage(event.model.as_deref(), &draft, &mut self.requests);
        }
    }

    /// Returns the session with the new counts.
    pub fn into_session(self) -> SessionRow {
        let mut session = self.session;
        self.ledger.write_to_row(&mut session, SecretCounts::default());
        session
    }
}

/// Returns whether the store has an event as one that its log copied from another log. An event whose
/// response another session counts is not copied.
pub(super) fn is_copied(event: &EventRow) -> bool {
    event.is_replay && !event.is_counted_elsewhere
}

/// Returns what is counted of an event.
fn counted_draft(event: &EventRow) -> Draft<'_> {
    Draft {
        subtype: event.subtype.as_deref(),
        is_error: event.is_error,
        usage: event.usage(),
        mode: mode_words(event),
        request_id: event.request_id.as_deref(),
        ..Draft::default()
    }
}
