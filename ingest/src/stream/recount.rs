//! Recounts events of the store against the records that their log may repeat.

use std::collections::HashSet;

use schemas::session::EventRow;

use super::draft::{Draft, RecordAt, mode_words};
use super::events::Stream;

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
        self.is_replay |= event.is_replay && may_stay_copy;
        while self.state.turn < event.turn_index {
            self.begin_turn();
        }
        while self.state.step < event.step_index {
            self.begin_step();
        }
        self.is_sidechain = event.is_sidechain;
        self.session.model.clone_from(&event.model);
        self.extend_time_range(event.timestamp);
        let draft = Draft {
            subtype: event.subtype.as_deref(),
            is_error: event.is_error,
            usage: event.usage(),
            mode: mode_words(event),
            request_id: event.request_id.as_deref(),
            ..Draft::default()
        };
        self.count_event(event.event_type, &draft);

        if let Some(own) = &mut self.own {
            own.extend([hash, said].into_iter().filter(|hash| *hash != 0));
        }
        self.state.replay = self.is_replay;
        self.state.next_index += 1;
        self.is_replay
    }
}
