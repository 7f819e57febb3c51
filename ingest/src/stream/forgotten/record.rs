//! The facts about a record by which it is recognised, the keyed hashes that are kept of them, and the
//! records of one reading of a log that are copies of forgotten ones.

use std::collections::HashSet;

use schemas::{EventType, Provider};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// What is known of a record that gave events, of a log or of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordFacts {
    /// Number of the record in its reading, from 1; 0 if the record is of the store.
    pub number: u64,
    /// Identity of the record; 0 if it has none.
    pub record_hash: u64,
    /// Identity of what the record says; 0 if it has none.
    pub copy_hash: u64,
    /// Hash of the type and the text of the first event; 0 if it was not needed so far.
    pub text_hash: u64,
    /// Type of the first event.
    pub event_type: EventType,
    /// Time of the first event, in microseconds since the epoch.
    pub time: Option<i64>,
    /// Length of the text of the first event in bytes.
    pub text_bytes: usize,
    /// Index of the first event.
    pub first_event: i32,
    /// Number of events.
    pub events: i32,
    /// Number of events of prompts, answers, reasoning, calls and results.
    pub spoken_events: i32,
    /// True if the record is a copy of another session's record.
    pub is_replay: bool,
}

/// Keyed hashes of a record. 0 means that the record has no such fact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordMarks {
    /// Hash of the identity, or of type and text.
    pub record: u64,
    /// Hash of the identity of what the record says.
    pub said: u64,
    /// Hash of the type and time of the first event.
    pub moment: u32,
    /// Hash of the type and text of the first event.
    pub text: u32,
}

/// The key of the hashes of one store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MarkKey(pub u64);

impl MarkKey {
    /// Returns the hashes of a record.
    pub fn mark_record(self, facts: &RecordFacts) -> RecordMarks {
        let identity = if facts.record_hash == 0 { facts.text_hash } else { facts.record_hash };
        let moment = facts.time.map_or(0, |time| {
            let kind = xxh3_64(facts.event_type.as_str().as_bytes());
            self.mark(b"moment", kind ^ time.cast_unsigned())
        });
        RecordMarks {
            record: self.mark(b"record", identity),
            said: self.mark(b"said", facts.copy_hash),
            moment: moment as u32,
            text: self.mark(b"text", facts.text_hash) as u32,
        }
    }

    /// Returns the hash of the id by which the log of an agent names its session.
    pub fn mark_id(self, provider: Provider, native_id: &str, agent_id: Option<&str>) -> u64 {
        let name = format!("{provider} {native_id} {}", agent_id.unwrap_or_default());
        self.mark(b"id", xxh3_64(name.as_bytes()))
    }

    /// Returns the hash of a title. A fork may have the title of its original with a number.
    pub fn mark_title(self, title: &str) -> u64 {
        let title = title.trim();
        let title = title.split_once(" (fork #").map_or(title, |(original, _)| original);
        self.mark(b"title", xxh3_64(title.as_bytes()))
    }

    /// Returns the keyed hash of a value; 0 for 0.
    fn mark(self, kind: &[u8], value: u64) -> u64 {
        if value == 0 {
            return 0;
        }
        let seed = xxh3_64_with_seed(kind, self.0);
        xxh3_64_with_seed(&value.to_le_bytes(), seed) | 1
    }
}

/// The records of one reading of a log that are copies of forgotten ones.
#[derive(Debug, Default)]
pub(crate) struct ForgottenInLog {
    /// Numbers of the records.
    pub(crate) records: HashSet<u64>,
    /// Keyed hashes of the titles of the forgotten sessions.
    pub(crate) titles: HashSet<u64>,
    pub(crate) key: MarkKey,
}

impl ForgottenInLog {
    /// Returns whether no record of the log is a copy of a forgotten one.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn has_record(&self, number: u64) -> bool {
        self.records.contains(&number)
    }

    pub(crate) fn has_title(&self, title: &str) -> bool {
        !self.titles.is_empty() && self.titles.contains(&self.key.mark_title(title))
    }
}

/// Collects the facts about the records of a reading.
#[derive(Debug, Default)]
pub(crate) struct RecordProbe {
    pub(crate) facts: Vec<RecordFacts>,
    /// True if the texts of records that have an identity are needed as well.
    pub(crate) needs_texts: bool,
}
