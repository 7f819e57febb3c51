//! Recounts events of the store against the records that their log may repeat.

use std::collections::HashSet;

use schemas::session::EventRow;

use super::draft::{Draft, RecordAt};
use super::events::Stream;

impl Stream {
    /// Counts an event as the store has it. Returns whether it is a copy. A copy stays one, unless
    /// its record is among `lost`. Equal records without ids cannot be told apart, so their order
    /// alone decides if any are lost.
    pub(crate) fn recount(&mut self, event: &EventRow, lost: &HashSet<u64>) -> bool {
        let hash = event.record_hash.cast_unsigned();
        let offset = event.source_offset.cast_unsigned();
        if self.state.next_index == 0 || (self.record.offset, self.record_hash) != (offset, hash) {
            let at = RecordAt { offset, ..RecordAt::default() };
            self.begin_record(at, Some(hash).filter(|hash| *hash != 0), None);
        }
        // A record without an id is treated like the one before it.
        let is_known = self.own.is_some() && hash != 0;
        let stays = lost.is_empty() || is_known && !lost.contains(&hash);
        self.replay |= event.is_replay && stays;
        while self.state.turn < event.turn_index {
            self.begin_turn();
        }
        while self.state.step < event.step_index {
            self.begin_step();
        }
        self.sidechain = event.is_sidechain;
        self.session.model.clone_from(&event.model);
        self.widen(event.timestamp);
        let (request_id, subtype) = (event.request_id.as_deref(), event.subtype.as_deref());
        let (usage, is_error) = (event.usage(), event.is_error);
        let draft = Draft { request_id, subtype, usage, is_error, ..Draft::default() };
        self.count(event.event_type, &draft);
        if let Some(own) = &mut self.own {
            own.insert(hash);
        }
        self.state.replay = self.replay;
        self.state.next_index += 1;
        self.replay
    }
}
