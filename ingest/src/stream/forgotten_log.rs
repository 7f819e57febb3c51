//! Pushes the events of a log in which records are copies of forgotten ones, and collects the facts
//! about records by which they are recognised.

use schemas::EventType;
use schemas::event::FORGOTTEN_TEXT;

use super::batch::EventCells;
use super::calls::CallColumns;
use super::decoded_event::DecodedEvent;
use super::events::Stream;
use super::forgotten::{ForgottenInLog, RecordFacts, RecordProbe, hash_event_text, is_spoken};
use crate::text::names::truncate_name;
use crate::text::sanitize::clean;

impl Stream {
    /// Lets the stream collect facts about records instead of rows. `needs_texts` is true if the texts
    /// of records that have an identity are needed as well.
    pub(crate) fn begin_probe(&mut self, needs_texts: bool) {
        self.probe = Some(RecordProbe { facts: Vec::new(), needs_texts });
    }

    /// Returns the facts about the records that gave events.
    pub(crate) fn take_probe(&mut self) -> Vec<RecordFacts> {
        self.probe.take().unwrap_or_default().facts
    }

    /// Sets which records of the log are copies of forgotten ones.
    pub(crate) fn set_forgotten(&mut self, forgotten: ForgottenInLog) {
        self.forgotten = forgotten;
    }

    /// Returns whether the log has copies of forgotten records.
    pub(crate) fn has_forgotten(&self) -> bool {
        !self.forgotten.is_empty()
    }

    /// Notes an event of the present record without making a row of it.
    pub(super) fn push_probed(&mut self, kind: EventType, step: i32, decoded: &DecodedEvent<'_>) {
        let answered_call = decoded.answered_call(kind);
        let time = decoded.timestamp.or(self.record_time).or(self.state.last_time);
        let mut text_hash = 0;
        let needs_texts = self.probe.as_ref().is_some_and(|probe| probe.needs_texts);
        if self.pushed == 0 && (self.record_hash == 0 || needs_texts) {
            let text = clean(decoded.text);
            let command = clean(decoded.command);
            let masked = self.mask_columns(&text, &command, decoded.files, answered_call);
            text_hash = hash_event_text(kind, &masked.text);
        }
        // What a command printed is masked in its result.
        let command = clean(decoded.command);
        let command = self.mask_columns("", &command, &[], None).command;
        self.pair_call(kind, step, decoded, &command);
        let spoken_events = i32::from(is_spoken(kind));
        let first_event = self.state.next_index;
        let number = self.record_number;
        let known = self.probe.as_mut().and_then(|probe| probe.facts.last_mut());
        if let Some(record) = known.filter(|record| record.number == number) {
            record.events += 1;
            record.spoken_events += spoken_events;
        } else {
            let facts = RecordFacts {
                number,
                record_hash: self.record_hash,
                copy_hash: self.copy_hash,
                text_hash,
                event_type: kind,
                time,
                text_bytes: decoded.text.len(),
                first_event,
                events: 1,
                spoken_events,
                is_replay: self.is_replay,
            };
            self.probe.get_or_insert_default().facts.push(facts);
        }
        self.finish_event();
    }

    /// Adds an event of a forgotten record: only its type, its time and its place.
    pub(super) fn push_forgotten(
        &mut self,
        kind: EventType,
        step: i32,
        decoded: &DecodedEvent<'_>,
    ) {
        let step = self.pair_call(kind, step, decoded, "");
        if self.pushed == 0 {
            self.extend_time_range(self.record_time);
        }
        self.extend_time_range(decoded.timestamp);
        self.count_event(kind, &DecodedEvent::default());
        self.batch.push(&EventCells {
            session_id: &self.session.session_id,
            event_index: self.state.next_index,
            turn_index: self.state.turn,
            step_index: step,
            event_type: kind,
            timestamp: decoded.timestamp.or(self.record_time).or(self.state.last_time),
            provider: self.provider,
            text: FORGOTTEN_TEXT,
            is_replay: true,
            is_sidechain: self.is_sidechain,
            source_offset: self.record.offset.cast_signed(),
            source_length: self.record.length.cast_signed(),
            ..EventCells::default()
        });
        self.finish_event();
    }

    /// Pairs a call and its result by their id alone. `command` is remembered for the result. Returns the
    /// step of the event.
    fn pair_call(
        &mut self,
        kind: EventType,
        step: i32,
        decoded: &DecodedEvent<'_>,
        command: &str,
    ) -> i32 {
        let mut columns = CallColumns {
            step,
            tool: None,
            files: Vec::new(),
            command: command.to_owned(),
            duration_ms: None,
        };
        let tool_call_id = decoded.tool_call_id.map(truncate_name);
        let id_only = DecodedEvent { tool_call_id, ..DecodedEvent::default() };
        match kind {
            EventType::ToolCall => self.open_call(&id_only, None, &columns),
            EventType::ToolResult => self.close_call(&id_only, None, &mut columns),
            EventType::User
            | EventType::Message
            | EventType::Reasoning
            | EventType::TokenUsage
            | EventType::Notification => {}
        }
        columns.step
    }
}
