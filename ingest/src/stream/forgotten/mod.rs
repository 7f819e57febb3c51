//! Recognises records of forgotten sessions, wherever a copy of them is.
//!
//! Of each record of a forgotten session four keyed hashes are kept: of its identity, of what it
//! says, of its type and time, and of its type and text. The key differs from store to store, so that
//! one store cannot reveal what another one has forgotten.

mod alignment;
mod record;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::Regex;
use schemas::event::{FORGOTTEN_TEXT, Relation};
use schemas::session::EventRow;
use schemas::{EventType, Provider};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use self::alignment::{Alignment, align_records};
pub(crate) use self::record::{ForgottenInLog, RecordProbe};
pub use self::record::{MarkKey, RecordFacts, RecordMarks};

/// Number of low bits of an entry of the index that hold the position of a session. The other bits
/// are those of a hash. An equal entry is only a hint: the whole hashes are compared afterwards.
const SESSION_BITS: u32 = 20;

/// Number of bits by which hashes of 32 bits are shifted in the index, whose entries begin with a hash.
const SHORT_MARK_SHIFT: u32 = 32;

/// The homes of users in texts. A lake has `~` in their place.
const HOMES: &str = r#"(?:[A-Za-z]:\\{1,2}Users\\{1,2}|/(?:home|Users)/)[^/\\\s"'<>|:*?]+"#;

/// Number of records above which a session has only a sample of its hashes of contents and times
/// in the index. A log that repeats such a session repeats some record of the sample.
const SAMPLE_THRESHOLD: usize = 64;

/// One of this many records is in the sample.
const SAMPLE_RATE: u64 = 8;

/// A forgotten session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenSession {
    /// Its id in the store.
    pub session_id: String,
    /// The provider whose format its log has.
    pub provider: Provider,
    /// Keyed hash of the id that its log names; see [`MarkKey::mark_id`].
    pub own_id: u64,
    /// Keyed hash of its title; 0 if it had none.
    pub title: u64,
    /// Its records, in their order.
    pub records: Vec<RecordMarks>,
}

/// Returns the hash of the type and the text of an event. It does not depend on the homes in the text.
pub fn hash_event_text(event_type: EventType, text: &str) -> u64 {
    static FINDER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(HOMES).ok());
    let text = FINDER.as_ref().map_or(Cow::Borrowed(text), |homes| homes.replace_all(text, "~"));
    xxh3_64_with_seed(text.as_bytes(), xxh3_64(event_type.as_str().as_bytes())) | 1
}

/// Returns whether an event has this type because the user or the agent said or did something.
pub fn is_spoken(event_type: EventType) -> bool {
    match event_type {
        EventType::User
        | EventType::Message
        | EventType::Reasoning
        | EventType::ToolCall
        | EventType::ToolResult => true,
        EventType::TokenUsage | EventType::Notification => false,
    }
}

/// Returns whether a stored event takes the place of one that was forgotten.
pub fn is_forgotten_event(event: &EventRow) -> bool {
    event.is_replay && event.record_hash == 0 && event.text == FORGOTTEN_TEXT
}

/// The records of all forgotten sessions of a store.
#[derive(Debug, Default)]
pub struct ForgottenRecords {
    key: MarkKey,
    sessions: Vec<ForgottenSession>,
    /// Sorted hashes, each with the position of its session; see [`SESSION_BITS`]. Built when it is
    /// first needed.
    index: OnceLock<Vec<u64>>,
}

/// The records of a log that are copies of records of forgotten sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForgottenCopies {
    /// Whether each record is such a copy.
    pub is_copy: Vec<bool>,
    /// The ids of the forgotten sessions.
    pub session_ids: BTreeSet<String>,
    /// Keyed hashes of their titles.
    pub titles: HashSet<u64>,
    /// Number of events of these records.
    pub left_out: i64,
    /// Number of the other events, without those that are copies of other sessions.
    pub kept: i64,
    /// True if the log has no word besides copies, or is the log of a forgotten session.
    pub is_whole: bool,
}

impl ForgottenCopies {
    /// Returns the numbers of the records that are copies.
    pub fn record_numbers(&self, facts: &[RecordFacts]) -> HashSet<u64> {
        let copies = facts.iter().zip(&self.is_copy).filter(|(_, is_copy)| **is_copy);
        copies.map(|(record, _)| record.number).collect()
    }

    /// Returns the indexes of the events of these records, in order.
    pub fn event_ranges(&self, facts: &[RecordFacts]) -> Vec<Range<i32>> {
        let copies = facts.iter().zip(&self.is_copy).filter(|(_, is_copy)| **is_copy);
        copies.map(|(record, _)| record.first_event..record.first_event + record.events).collect()
    }
}

impl ForgottenRecords {
    /// Creates the list of the records of `sessions`, whose hashes have this key.
    pub fn new(key: MarkKey, sessions: Vec<ForgottenSession>) -> Self {
        Self { key, sessions, index: OnceLock::new() }
    }

    /// Returns the key of the hashes.
    pub fn key(&self) -> MarkKey {
        self.key
    }

    /// Returns the sessions by value.
    pub fn into_sessions(self) -> Vec<ForgottenSession> {
        self.sessions
    }

    /// Returns the sessions.
    pub fn sessions(&self) -> &[ForgottenSession] {
        &self.sessions
    }

    /// Returns whether a log of this provider may repeat a forgotten session.
    pub fn may_be_repeated_by(&self, provider: Provider) -> bool {
        self.sessions.iter().any(|one| may_repeat(provider, one) && !one.records.is_empty())
    }

    /// Finds the records of a log or a stored session that are copies of forgotten ones. `own_id` is
    /// the hash of the id that the log names. `has_unique_ids` is true if records of the provider
    /// have ids. Returns `None` if there are none.
    pub fn find_copies(
        &self,
        provider: Provider,
        has_unique_ids: bool,
        own_id: u64,
        facts: &[RecordFacts],
    ) -> Option<ForgottenCopies> {
        let marks: Vec<RecordMarks> =
            facts.iter().map(|record| self.key.mark_record(record)).collect();
        let mut copies = ForgottenCopies { is_copy: vec![false; facts.len()], ..<_>::default() };
        for at in self.find_candidates(&marks) {
            let session = &self.sessions[at];
            if !may_repeat(provider, session) {
                continue;
            }
            let has_its_name = session.own_id == own_id;
            let found =
                align_records(&session.records, facts, &marks, has_unique_ids, has_its_name);
            if !found.contains(&true) {
                continue;
            }
            for (is_copy, found) in copies.is_copy.iter_mut().zip(&found) {
                *is_copy |= found;
            }
            copies.session_ids.insert(session.session_id.clone());
            if session.title != 0 {
                copies.titles.insert(session.title);
            }
            // Logs of different sessions may have the same name, and share a few records by chance.
            let count = found_records(&found);
            let is_most = 2 * count >= facts.len() || 2 * count >= session.records.len();
            copies.is_whole |= has_its_name && is_most;
        }
        if copies.session_ids.is_empty() {
            return None;
        }

        let mut spoken = 0;
        for (record, is_copy) in facts.iter().zip(&copies.is_copy) {
            if *is_copy {
                copies.left_out += i64::from(record.events);
            } else if !record.is_replay {
                copies.kept += i64::from(record.events);
                spoken += record.spoken_events;
            }
        }
        copies.is_whole |= spoken == 0;
        Some(copies)
    }

    /// Returns whether the texts of records that have an identity must be known to find all copies among
    /// them: some have the types and times of forgotten ones, but other identities.
    pub fn needs_texts(&self, provider: Provider, facts: &[RecordFacts]) -> bool {
        let marks: Vec<RecordMarks> =
            facts.iter().map(|record| self.key.mark_record(record)).collect();
        let candidates = self.find_candidates(&marks);
        let mut candidates = candidates.iter().map(|at| &self.sessions[*at]);
        candidates.any(|session| {
            may_repeat(provider, session)
                && Alignment::new(&session.records, facts, &marks).has_equal_moments()
        })
    }

    /// Returns whether some record may be a copy of a forgotten one.
    pub fn may_have_copies(&self, facts: &[RecordFacts]) -> bool {
        let marks: Vec<RecordMarks> =
            facts.iter().map(|record| self.key.mark_record(record)).collect();
        !self.find_candidates(&marks).is_empty()
    }

    /// Returns the sessions without the records of `kept`, which stay in the store.
    pub fn without_records(self, kept: &[RecordFacts]) -> Self {
        let kept: HashSet<u64> =
            kept.iter().map(|record| self.key.mark_record(record).record).collect();
        let mut sessions = self.sessions;
        for session in &mut sessions {
            session.records.retain(|marks| !kept.contains(&marks.record));
        }
        Self::new(self.key, sessions)
    }

    /// Returns the positions of the sessions that may have one of these records.
    fn find_candidates(&self, marks: &[RecordMarks]) -> BTreeSet<usize> {
        let index = self.index.get_or_init(|| build_index(&self.sessions));
        let mut candidates = BTreeSet::new();
        for mark in marks.iter().flat_map(listed_marks) {
            let entry = index_entry(mark, 0);
            let start = index.partition_point(|other| *other < entry);
            let same = index[start..].iter().take_while(|other| index_entry(**other, 0) == entry);
            if mark != 0 {
                candidates.extend(same.map(|other| session_position(*other)));
            }
        }
        candidates
    }
}

/// Returns the agent whose sessions a log with this relation to its parent may repeat: its own or, if the log
/// continues a session as a copy, any agent, for which [`Provider::Generic`] stands.
pub fn repeated_agent(base: Provider, relation: Option<Relation>) -> Provider {
    if relation == Some(Relation::ContinuedFrom) { Provider::Generic } else { base }
}

/// Returns whether a log of a provider may repeat a forgotten session. Without its beginning, a log of
/// any agent may be read as chat messages of an unknown one.
fn may_repeat(provider: Provider, session: &ForgottenSession) -> bool {
    provider == session.provider || provider == Provider::Generic
}

fn found_records(found: &[bool]) -> usize {
    found.iter().filter(|is_copy| **is_copy).count()
}

/// Returns the entry of the index for a hash of the session at a position.
fn index_entry(mark: u64, session: usize) -> u64 {
    (mark >> SESSION_BITS << SESSION_BITS) | session as u64
}

/// Returns the position of the session of an entry of the index.
fn session_position(entry: u64) -> usize {
    (entry & ((1 << SESSION_BITS) - 1)) as usize
}

/// Returns the hashes of a record in the form in which the index has them.
fn listed_marks(marks: &RecordMarks) -> [u64; 4] {
    let shift = |mark: u32| u64::from(mark) << SHORT_MARK_SHIFT;
    [marks.record, marks.said, shift(marks.moment), shift(marks.text)]
}

fn build_index(sessions: &[ForgottenSession]) -> Vec<u64> {
    let mut index = Vec::new();
    for (at, session) in sessions.iter().enumerate().take(1 << SESSION_BITS) {
        let is_sampled = session.records.len() > SAMPLE_THRESHOLD;
        for marks in &session.records {
            let listed = listed_marks(marks);
            // The last bit of every hash is set, so it does not choose.
            let is_in_sample = |mark: u64| {
                !is_sampled || (mark >> (SHORT_MARK_SHIFT + 1)).is_multiple_of(SAMPLE_RATE)
            };
            for mark in listed {
                if mark != 0 && (mark == marks.record || is_in_sample(mark)) {
                    index.push(index_entry(mark, at));
                }
            }
        }
    }
    index.sort_unstable();
    index.dedup();
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of a log whose records have ids.
    fn record(id: u64, time: i64) -> RecordFacts {
        RecordFacts {
            number: id,
            record_hash: id,
            copy_hash: 0,
            text_hash: 0,
            event_type: EventType::User,
            time: Some(time),
            text_bytes: 300,
            first_event: 0,
            events: 1,
            spoken_events: 1,
            is_replay: false,
        }
    }

    /// A record that is known by its content only and has no time.
    fn untimed(content: u64, event_type: EventType) -> RecordFacts {
        RecordFacts { time: None, event_type, ..record(content, 0) }
    }

    fn forget(records: &[RecordFacts], provider: Provider) -> ForgottenRecords {
        let key = MarkKey(7);
        let records = records.iter().map(|facts| key.mark_record(facts)).collect();
        let session_id = "f".to_owned();
        let (own_id, title) = (key.mark_id(provider, "f", None), 0);
        ForgottenRecords::new(
            key,
            vec![ForgottenSession { session_id, provider, own_id, title, records }],
        )
    }

    fn copies(forgotten: &ForgottenRecords, log: &[RecordFacts]) -> Option<(Vec<bool>, bool)> {
        let session = &forgotten.sessions()[0];
        let has_ids = session.provider == Provider::Claude;
        let found = forgotten.find_copies(session.provider, has_ids, 0, log)?;
        Some((found.is_copy, found.is_whole))
    }

    #[test]
    fn records_with_ids_are_found_at_any_place() {
        let all: Vec<_> = (1..200).map(|id| record(id, i64::try_from(id).unwrap_or(0))).collect();
        let forgotten = forget(&all, Provider::Claude);
        for cut in [0, 1, 100, 198] {
            let found = copies(&forgotten, &all[cut..]).expect("copies");
            assert_eq!(found, (vec![true; 199 - cut], true), "{cut}");
        }
        let mixed = [record(900, 5000), all[7], all[8], record(901, 5001)];
        assert_eq!(copies(&forgotten, &mixed), Some((vec![false, true, true, false], false)));
        assert_eq!(copies(&forgotten, &[record(900, 5000)]), None);
    }

    #[test]
    fn equal_prompts_of_unrelated_logs_are_no_copies() {
        use EventType::{Message, User};
        let prompt = |content| untimed(content, User);
        let answer = |content| untimed(content, Message);
        let forgotten =
            forget(&[prompt(1), answer(50), prompt(2), answer(51), prompt(3)], Provider::Codex);
        let unrelated = [prompt(1), answer(90), prompt(2), answer(91), prompt(3), answer(92)];
        assert_eq!(copies(&forgotten, &unrelated), None);
        // The answers show that it is a copy. It continues with the same prompt as before.
        let copy = [answer(50), prompt(2), answer(51), prompt(3), answer(93), prompt(1)];
        let expected = vec![true, true, true, true, false, false];
        assert_eq!(copies(&forgotten, &copy), Some((expected, false)));
        // A log of prompts only, all in the same order.
        assert_eq!(copies(&forgotten, &[prompt(2), prompt(3)]), Some((vec![true; 2], true)));
    }

    #[test]
    fn records_with_new_ids_are_known_by_their_times_and_texts() {
        let text = |id: u64| RecordFacts {
            text_hash: id,
            event_type: if id.is_multiple_of(2) { EventType::Message } else { EventType::User },
            text_bytes: 20,
            ..record(id, 1000 * i64::try_from(id).unwrap_or(0))
        };
        let all: Vec<_> = (1..100).map(text).collect();
        let forgotten = forget(&all, Provider::Claude);
        let rename =
            |facts: &RecordFacts| RecordFacts { record_hash: facts.record_hash + 500, ..*facts };
        let renamed: Vec<_> = all.iter().map(rename).collect();
        assert_eq!(copies(&forgotten, &renamed[20..]), Some((vec![true; 79], true)));
        let without_texts: Vec<_> =
            renamed.iter().map(|facts| RecordFacts { text_hash: 0, ..*facts }).collect();
        assert_eq!(copies(&forgotten, &without_texts), None);
        assert!(forgotten.needs_texts(Provider::Claude, &without_texts));
        assert!(!forgotten.needs_texts(Provider::Codex, &without_texts));

        // Sessions that began at the same time with the same prompt.
        let other = RecordFacts { text_hash: 800, ..renamed[1] };
        assert_eq!(copies(&forgotten, &[renamed[0], other]), None);
    }

    #[test]
    fn one_record_without_identity_is_known_by_its_text_and_time() {
        let row = |text: u64, event_type, time| RecordFacts {
            record_hash: 0,
            text_hash: text,
            event_type,
            text_bytes: 1,
            ..record(0, time)
        };
        let answer = row(5, EventType::Message, 2_000_000);
        let forgotten = forget(&[row(4, EventType::User, 1_000_000), answer], Provider::Claude);
        let log = [answer, row(6, EventType::User, 3_000_000), row(7, EventType::User, 4_000_000)];
        // Another session may say the same within the same second, but not one of this name.
        assert_eq!(copies(&forgotten, &log), None);
        let own_id = forgotten.sessions()[0].own_id;
        let found = forgotten.find_copies(Provider::Claude, true, own_id, &log).expect("a copy");
        assert_eq!(found.is_copy, [true, false, false]);

        let answer = row(5, EventType::Message, 2_000_001);
        let forgotten = forget(&[row(4, EventType::User, 1_000_000), answer], Provider::Claude);
        let expected = (vec![true, false, false], false);
        assert_eq!(copies(&forgotten, &[answer, log[1], log[2]]), Some(expected));
    }

    #[test]
    fn a_text_is_known_with_other_homes() {
        let hash = |text| hash_event_text(EventType::User, text);
        assert_eq!(hash("cd /home/mira/code && ls"), hash("cd ~/code && ls"));
        assert_eq!(hash(r"C:\Users\mira\code"), hash(r"~\code"));
        assert_ne!(hash("cd /srv"), hash("cd ~"));
        assert_ne!(hash("a"), hash_event_text(EventType::Message, "a"));
    }

    #[test]
    fn a_title_is_known_with_the_number_of_a_fork() {
        let key = MarkKey(3);
        assert_eq!(key.mark_title("Fix the door"), key.mark_title("Fix the door (fork #2)"));
        assert_ne!(key.mark_title("Fix the door"), MarkKey(4).mark_title("Fix the door"));
    }
}
