//! Begins records and decides which of them are copies.

use schemas::event::TimeSource;
use schemas::session::SessionRow;
use xxhash_rust::xxh3::xxh3_64;

use super::decoded_event::RecordAt;
use super::events::Stream;
use super::replay::CopiedHistory;

/// Number of consecutive own records after which a fork no longer repeats history.
const OWN_RUN_THRESHOLD: u32 = 32;

impl Stream {
    /// Begins a record; the events that follow come from it. `identity` is the same for copies of
    /// the record and differs from that of other records. `None` is for records without an
    /// identity, which are treated like the last record that gave an event.
    pub fn begin_record(&mut self, at: RecordAt, identity: Option<u64>, time: Option<i64>) {
        let identity = identity.map(|hash| self.aliases.resolve(hash));
        let is_repeated = identity.is_some_and(|hash| self.has_read(hash));
        self.is_replay = match identity {
            Some(hash) => self.detect_copy(|history, at| history.contains(hash, at)) || is_repeated,
            None => self.state.replay,
        };
        self.set_record(at, identity.unwrap_or(0), time);
        self.is_repeated = is_repeated;
    }

    /// Begins a record without an id. A copy has the same bytes. Unless the record has a time, the
    /// copy must also follow the order of the parent's records.
    pub fn begin_record_by_content(&mut self, at: RecordAt, raw: &[u8], time: Option<i64>) {
        let content = self.aliases.resolve(xxh3_64(raw) | 1);
        self.is_replay = self.detect_copy(|history, at| match time {
            Some(_) => history.contains(content, at),
            None => history.advance_past(content, at),
        });
        self.set_record(at, content, time);
    }

    /// Begins a record without an id in a log whose records otherwise have ids. Another capture of
    /// the session has the same bytes. A fork may have changed them, so there the record is treated
    /// like the one before it.
    pub fn begin_record_lacking_id(&mut self, at: RecordAt, raw: &[u8], time: Option<i64>) {
        let content = self.aliases.resolve(xxh3_64(raw) | 1);
        self.is_replay = if self.history.is_of_same_session() {
            self.detect_copy(|history, at| history.contains(content, at))
        } else {
            self.state.replay
        };
        self.set_record(at, content, time);
    }

    /// Begins a record that is a copy of the record `original` of a session of another agent. It counts there,
    /// whether that session is known or not.
    pub fn begin_copied_record(&mut self, at: RecordAt, original: u64, time: Option<i64>) {
        self.is_replay = true;
        self.set_record(at, self.aliases.resolve(original), time);
        self.is_written_copy = true;
    }

    /// Asks the history whether a record is a copy, unless the log no longer repeats history.
    fn detect_copy(&mut self, is_known: impl FnOnce(&CopiedHistory, &mut usize) -> bool) -> bool {
        let may_repeat = self.state.own_run < OWN_RUN_THRESHOLD;
        let is_copy = may_repeat && is_known(&self.history, &mut self.state.history_at);
        self.state.own_run = if is_copy { 0 } else { self.state.own_run.saturating_add(1) };
        is_copy
    }

    /// Begins a record whose `replay` is already decided.
    fn set_record(&mut self, at: RecordAt, hash: u64, time: Option<i64>) {
        self.count_unknown_blocks();
        self.record = at;
        self.record_hash = hash;
        self.copy_hash = 0;
        self.unknown_items.clear();
        self.record_time = time;
        self.is_repeated = false;
        self.is_left_out = false;
        self.is_written_copy = false;
        self.is_sidechain = false;
        self.agent = None;
        self.pushed = 0;
        self.parent = None;
        self.record_number += 1;
        self.is_forgotten = self.forgotten.has_record(self.record_number);
        self.is_replay |= self.is_forgotten || self.is_whole_copy;
        if time.is_some() {
            self.state.last_time = time;
        }
        // No sequence holds a record without events, so it is never found to be a copy. It belongs
        // to the record before it, until it gives an event.
        if self.state.replay && !self.is_replay {
            self.note_copied_time(time);
        } else {
            self.extend_time_range(time);
        }
    }

    /// Extends the session's time range. Times of copied history count only while there are no
    /// others.
    pub fn extend_time_range(&mut self, time: Option<i64>) {
        let Some(time) = time else { return };
        if self.is_replay {
            return self.note_copied_time(Some(time));
        }

        self.state.borrowed = false;
        let row = &mut self.session;
        row.started_at = Some(row.started_at.map_or(time, |at| at.min(time)));
        row.ended_at = Some(row.ended_at.map_or(time, |at| at.max(time)));
    }

    /// Extends the time range of copied history.
    fn note_copied_time(&mut self, time: Option<i64>) {
        let Some(time) = time else { return };
        let (first, last) = self.state.copied.unwrap_or((time, time));
        self.state.copied = Some((first.min(time), last.max(time)));
        self.state.borrowed = self.session.started_at.is_none();
    }

    /// Sets the time of the session's file, for a log without times in its records.
    pub fn set_file_time(&mut self, time: Option<i64>) {
        self.session.started_at = time;
        self.session.ended_at = time;
        self.session.time_source = Some(TimeSource::File.to_string());
    }

    /// Forgets the time of the session's file, because a record has a time.
    pub fn clear_file_time(&mut self) {
        self.session.started_at = None;
        self.session.ended_at = None;
        self.session.time_source = None;
    }

    /// Returns where the times of a session come from.
    pub(super) fn time_source(row: &SessionRow) -> Option<TimeSource> {
        row.started_at?;
        let is_of_file = row.time_source.as_deref() == Some(TimeSource::File.as_str());
        Some(if is_of_file { TimeSource::File } else { TimeSource::Record })
    }

    /// Returns whether there are other logs that this one may repeat.
    pub fn has_history(&self) -> bool {
        !self.history.is_empty()
    }

    /// Returns whether a log that this one may repeat has a record of this identity.
    pub fn is_in_history(&self, identity: u64) -> bool {
        self.history.has_id(self.aliases.resolve(identity))
    }

    /// Continues copied history at the record with this content, if it occurs later in the other
    /// log.
    pub fn seek_history(&mut self, content: u64) {
        self.history.seek_content(self.aliases.resolve(content), &mut self.state.history_at);
    }

    /// Returns whether this log had a record of this identity. Always false for records without
    /// ids.
    pub fn has_read(&self, identity: u64) -> bool {
        let identity = self.aliases.resolve(identity);
        self.own.as_ref().is_some_and(|own| own.contains(&identity))
    }

    /// Returns whether the present record is a copy.
    pub fn is_record_copied(&self) -> bool {
        self.is_replay
    }

    /// Sets the identity of what the present record says, which copies with new ids keep.
    pub fn set_copy_hash(&mut self, hash: u64) {
        self.copy_hash = self.aliases.resolve(hash);
    }

    /// Overrides whether the present record is a copy, for decoders that know it from another
    /// source.
    pub fn set_copied(&mut self, is_copy: bool) {
        let is_copy = is_copy || self.is_whole_copy;
        self.is_replay = is_copy || self.is_forgotten;
        self.state.replay = is_copy && !self.is_forgotten;
    }

    /// Sets the position of the events that follow, whose text is in another record.
    pub fn set_position(&mut self, at: RecordAt) {
        self.record = at;
    }
}
