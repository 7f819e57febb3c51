//! Aligns the records of a log with those of one forgotten session.
//!
//! Some records can only be copies: they have an id, or the same content and time, or are long
//! answers. Next to them, records that are equal but could also be so by chance, such as the prompt
//! "continue", count as copies if they follow the order of the session.

use std::collections::HashMap;

use schemas::EventType;

use super::record::{RecordFacts, RecordMarks};

/// Number of records of the session within which the next copied record must be.
const ORDER_WINDOW_RECORDS: u32 = 64;

/// Minimum length in bytes of an answer that is not equal to another one by chance.
const MIN_DISTINCTIVE_BYTES: usize = 120;

/// Number of records of equal texts at equal times that are not so by chance: sessions that a script
/// starts together begin with one prompt.
const MIN_EQUAL_TIMES: usize = 2;

/// Maximum number of records between two copied ones that were copied too, but changed.
const MAX_CHANGED_RECORDS: usize = 8;

/// Number of records of one type and time among which an equal one is searched.
const MAX_SAME_MOMENT: usize = 256;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Positions in the forgotten session by hash, ascending.
type Positions = HashMap<u64, Vec<u32>>;

/// Returns whether each record of a log, given by `facts` and `marks`, is a copy of a record of the
/// session with the records `forgotten`. `has_its_name` is true if the log names that session.
pub(super) fn align_records(
    forgotten: &[RecordMarks],
    facts: &[RecordFacts],
    marks: &[RecordMarks],
    has_unique_ids: bool,
    has_its_name: bool,
) -> Vec<bool> {
    let mut alignment = Alignment::new(forgotten, facts, marks);
    alignment.place_certain_copies(has_unique_ids);
    alignment.place_copies_with_times(has_its_name);
    if alignment.places.iter().all(Option::is_none) {
        alignment.place_whole_log();
    }
    alignment.extend_forwards();
    alignment.extend_backwards();
    alignment.into_copies()
}

pub(super) struct Alignment<'f> {
    forgotten: &'f [RecordMarks],
    facts: &'f [RecordFacts],
    marks: &'f [RecordMarks],
    by_record: Positions,
    by_said: Positions,
    by_moment: Positions,
    by_text: Positions,
    /// The position in the forgotten session of the record that each record of the log copies.
    places: Vec<Option<u32>>,
    /// True if copies have the times of their originals.
    keeps_times: bool,
}

impl<'f> Alignment<'f> {
    pub(super) fn new(
        forgotten: &'f [RecordMarks],
        facts: &'f [RecordFacts],
        marks: &'f [RecordMarks],
    ) -> Self {
        Self {
            forgotten,
            facts,
            marks,
            by_record: find_positions(forgotten, |marks| marks.record),
            by_said: find_positions(forgotten, |marks| marks.said),
            by_moment: find_positions(forgotten, |marks| u64::from(marks.moment)),
            by_text: find_positions(forgotten, |marks| u64::from(marks.text)),
            places: vec![None; facts.len()],
            keeps_times: false,
        }
    }

    /// Returns whether several records have the types and times of records of the session, but other
    /// identities.
    pub(super) fn has_equal_moments(&self) -> bool {
        let unknown = self.marks.iter().filter(|marks| {
            positions(&self.by_record, marks.record).is_empty()
                && !positions(&self.by_moment, marks.moment.into()).is_empty()
        });
        unknown.count() >= MIN_EQUAL_TIMES
    }

    /// Places the records that can only be copies.
    fn place_certain_copies(&mut self, has_unique_ids: bool) {
        for at in 0..self.facts.len() {
            let marks = self.marks[at];
            let record = &self.facts[at];
            let is_answer = matches!(record.event_type, EventType::Message | EventType::Reasoning);
            let has_id = has_unique_ids
                && record.record_hash != 0
                && record.time.is_some()
                && record.event_type != EventType::Notification;
            let same_record = positions(&self.by_record, marks.record);
            if has_id || is_answer && record.text_bytes >= MIN_DISTINCTIVE_BYTES {
                self.places[at] = same_record.first().copied();
            }
            let is_response = is_answer
                || matches!(record.event_type, EventType::ToolCall | EventType::TokenUsage);
            if self.places[at].is_none() && is_response {
                self.places[at] = positions(&self.by_said, marks.said).first().copied();
            }
            if let Some(place) = self.places[at] {
                self.keeps_times |= self.has_moment_of(at, place);
            }
        }
    }

    /// Places records that are equal to those of the session at the same times. Rows of a lake have no
    /// other identity.
    fn place_copies_with_times(&mut self, has_its_name: bool) {
        let mut timed = Vec::new();
        for at in 0..self.facts.len() {
            let marks = self.marks[at];
            let same_time = positions(&self.by_moment, marks.moment.into()).iter();
            let same_time = same_time.take(MAX_SAME_MOMENT);
            let place = same_time.copied().find(|place| {
                let other = &self.forgotten[*place as usize];
                other.record == marks.record && marks.record != 0
                    || other.text == marks.text && marks.text != 0
            });
            timed.extend(place.map(|place| (at, place)));
        }
        let is_answered = timed.iter().any(|(at, _)| self.facts[*at].event_type != EventType::User);
        let is_whole_log = timed.len() == self.facts.len();
        let is_placed = self.places.iter().any(Option::is_some);
        let is_one_certain = has_its_name || timed.iter().any(|(at, _)| self.is_timed_answer(*at));
        if is_placed
            || is_whole_log
            || is_one_certain
            || timed.len() >= MIN_EQUAL_TIMES && is_answered
        {
            self.keeps_times |= !timed.is_empty();
            for (at, place) in timed {
                self.places[at].get_or_insert(place);
            }
        }
    }

    /// Returns whether a record is of an agent, not of a user or a script, at a time that is finer than
    /// a second: no other record is equal to it at the same time.
    fn is_timed_answer(&self, at: usize) -> bool {
        let record = &self.facts[at];
        record.event_type != EventType::User
            && record.spoken_events > 0
            && record.time.is_some_and(|time| time % MICROS_PER_SECOND != 0)
    }

    /// Returns whether a record has the type and time of the record at a place of the session.
    fn has_moment_of(&self, at: usize, place: u32) -> bool {
        let moment = self.marks[at].moment;
        moment != 0 && self.forgotten[place as usize].moment == moment
    }

    /// Places the records of a log without times that has little else than records of the session, in
    /// their order.
    fn place_whole_log(&mut self) {
        if self.facts.iter().any(|record| record.time.is_some()) {
            return;
        }
        let mut places = Vec::with_capacity(self.facts.len());
        let mut from = 0;
        for marks in self.marks {
            let place = first_in(positions(&self.by_record, marks.record), from, u32::MAX)
                .or_else(|| first_in(positions(&self.by_text, marks.text.into()), from, u32::MAX));
            places.push(place);
            from = place.map_or(from, |place| place + 1);
        }
        let placed = places.iter().filter(|place| place.is_some()).count();
        let is_spoken = places
            .iter()
            .zip(self.facts)
            .any(|(place, record)| place.is_some() && record.spoken_events > 0);
        if is_spoken && placed * 4 >= places.len() * 3 {
            self.places = places;
        }
    }

    /// Places records that follow a copy and are equal to a record that follows its original.
    fn extend_forwards(&mut self) {
        for at in 1..self.places.len() {
            if let (None, Some(last)) = (self.places[at], self.places[at - 1]) {
                self.places[at] = self.find_equal(at, last + 1, last + ORDER_WINDOW_RECORDS);
            }
        }
    }

    /// Places records that precede a copy and are equal to a record that precedes its original.
    fn extend_backwards(&mut self) {
        for at in (1..self.places.len()).rev() {
            if let (None, Some(next)) = (self.places[at - 1], self.places[at])
                && let Some(last) = next.checked_sub(1)
            {
                let first = next.saturating_sub(ORDER_WINDOW_RECORDS);
                self.places[at - 1] = self.find_equal(at - 1, first, last);
            }
        }
    }

    /// Returns the place of a record that is equal to the one at `at`, within a range of places.
    fn find_equal(&self, at: usize, first: u32, last: u32) -> Option<u32> {
        let RecordMarks { record, said, moment, text } = self.marks[at];
        let in_range = |all: &Positions, mark| first_in(positions(all, mark), first, last);
        let same_moment = in_range(&self.by_moment, moment.into());
        if self.keeps_times && moment != 0 {
            return same_moment;
        }
        in_range(&self.by_record, record)
            .or_else(|| in_range(&self.by_said, said))
            .or_else(|| in_range(&self.by_text, text.into()))
    }

    /// Returns whether each record is a copy. Few records between two copies, and notifications before
    /// the first one, were copied too, but name their session, or the program that wrote them.
    fn into_copies(self) -> Vec<bool> {
        let mut is_copy: Vec<bool> = self.places.iter().map(Option::is_some).collect();
        let placed: Vec<usize> = (0..is_copy.len()).filter(|at| is_copy[*at]).collect();
        for pair in placed.windows(2) {
            let before = pair[0];
            let after = pair[1];
            let is_in_order = self.places[before] <= self.places[after];
            if is_in_order && after - before <= MAX_CHANGED_RECORDS + 1 {
                is_copy[before..after].fill(true);
            }
        }
        if let Some(first) = placed.first().copied()
            && first <= MAX_CHANGED_RECORDS
            && self.places[first].is_some_and(|place| place <= ORDER_WINDOW_RECORDS)
            && self.facts[..first].iter().all(|record| record.spoken_events == 0)
        {
            is_copy[..first].fill(true);
        }
        is_copy
    }
}

/// Returns the positions of each hash of `forgotten`.
fn find_positions(forgotten: &[RecordMarks], mark: impl Fn(&RecordMarks) -> u64) -> Positions {
    let mut found = Positions::new();
    for (place, marks) in (0..).zip(forgotten) {
        found.entry(mark(marks)).or_default().push(place);
    }
    found.remove(&0);
    found
}

fn positions(all: &Positions, mark: u64) -> &[u32] {
    all.get(&mark).map_or(&[], Vec::as_slice)
}

/// Returns the first of ascending positions that is in `first..=last`.
fn first_in(positions: &[u32], first: u32, last: u32) -> Option<u32> {
    let at = positions.partition_point(|place| *place < first);
    positions.get(at).copied().filter(|place| *place <= last)
}
