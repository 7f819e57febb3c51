//! Where records begin, and which of them are copies.

use xxhash_rust::xxh3::xxh3_64;

use super::{RecordAt, Stream};
use crate::history::History;

/// After this many records of its own in a row a fork is done with copied history.
const OWN_RUN: u32 = 32;

impl Stream {
    /// Begins a record: the drafts that follow come from it. `identity` tells copies of the
    /// record from other records; `None` for records that have none, which share the fate of the
    /// last record that gave an event.
    pub fn begin_record(&mut self, at: RecordAt, identity: Option<u64>, time: Option<i64>) {
        let repeated = identity.is_some_and(|hash| self.has_read(hash));
        self.replay = match identity {
            Some(hash) => self.is_copy(|history, at| history.contains(hash, at)) || repeated,
            None => self.state.replay,
        };
        self.begin(at, identity.unwrap_or(0), time);
        self.repeated = repeated;
    }

    /// Begins a record without an id: a copy has the same bytes, and stands in the same order
    /// unless a time in it tells it from others.
    pub fn begin_unnamed(&mut self, at: RecordAt, raw: &[u8], time: Option<i64>) {
        let content = xxh3_64(raw) | 1;
        self.replay = self.is_copy(|history, at| match time {
            Some(_) => history.contains(content, at),
            None => history.goes_on_with(content, at),
        });
        self.begin(at, content, time);
    }

    /// Begins a record without an id in a log whose records have some. Another capture of the session
    /// has the same bytes; a fork may have changed them, and there it shares the fate of the record
    /// before.
    pub fn begin_between(&mut self, at: RecordAt, raw: &[u8], time: Option<i64>) {
        let content = xxh3_64(raw) | 1;
        self.replay = match self.history.is_of_same_session() {
            true => self.is_copy(|history, at| history.contains(content, at)),
            false => self.state.replay,
        };
        self.begin(at, content, time);
    }

    /// Asks the history about a record, unless the log is done with copies.
    fn is_copy(&mut self, is_known: impl FnOnce(&History, &mut usize) -> bool) -> bool {
        let watched = self.state.own_run < OWN_RUN;
        let copied = watched && is_known(&self.history, &mut self.state.history_at);
        self.state.own_run = if copied { 0 } else { self.state.own_run.saturating_add(1) };
        copied
    }

    fn begin(&mut self, at: RecordAt, hash: u64, time: Option<i64>) {
        self.record = at;
        self.record_hash = hash;
        self.record_time = time;
        self.repeated = false;
        self.sidechain = false;
        self.agent = None;
        self.pushed = 0;
        self.parent = None;
        if time.is_some() {
            self.state.last_time = time;
            self.widen(time);
        }
    }

    /// Whether there are other logs that this one may repeat.
    pub fn has_history(&self) -> bool {
        !self.history.is_empty()
    }

    /// Whether another log that this one may repeat has a record of this identity.
    pub fn repeats(&self, identity: u64) -> bool {
        self.history.has_id(identity)
    }

    /// Copied history goes on with the record of this content, if the other log has it further on.
    pub fn seek(&mut self, content: u64) {
        self.history.seek(content, &mut self.state.history_at);
    }

    /// Whether this log had a record of this identity, where records have ids.
    pub fn has_read(&self, identity: u64) -> bool {
        self.own.as_ref().is_some_and(|own| own.contains(&identity))
    }

    /// Whether the present record is a copy.
    pub fn is_copying(&self) -> bool {
        self.replay
    }

    /// Overrides whether the present record is a copy, for decoders that know it otherwise.
    pub fn set_copied(&mut self, copied: bool) {
        self.replay = copied;
        self.state.replay = copied;
    }

    /// The drafts that follow have their text in another record.
    pub fn place_at(&mut self, at: RecordAt) {
        self.record = at;
    }
}
