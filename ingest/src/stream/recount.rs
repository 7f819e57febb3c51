//! Recounts events of the store: against the records that their log may repeat, or after it was
//! decided which session counts a response.
//!
//! A reader of a server sees some of the sessions only. What a session copied from one that the
//! reader does not see counts in the copy then ([`CopyRecount`]).

use std::collections::HashSet;

use schemas::event::TimeSource;
use schemas::session::{EventRow, SessionRow};
use schemas::{EventType, Usage};

use super::decoded_event::{DecodedEvent, RecordAt, mode_words};
use super::events::Stream;
use super::forgotten::is_forgotten_event;
use super::ledger::{LastRequests, Ledger};
use super::replay::CopiedHistory;
use super::session::{TitleFrom, prompt_title};
use crate::redact::SecretCounts;

impl Stream {
    /// Counts an event as the store has it. Returns whether it is a copy. A copy stays one, unless
    /// its record is among `lost`. Equal records without ids cannot be told apart, so their order
    /// alone decides if any are lost.
    pub(crate) fn recount_event(&mut self, event: &EventRow, lost: &HashSet<u64>) -> bool {
        self.begin_stored_record(event);
        let [hash, said] = record_ids(event);
        if said != 0 && self.is_in_history(said) {
            self.is_replay = true;
        }

        // A record without an id is treated like the one before it.
        let has_id = self.own.is_some() && hash != 0;
        let may_stay_copy =
            lost.is_empty() || has_id && !lost.contains(&hash) || is_forgotten_event(event);
        self.is_replay |= is_copied(event) && may_stay_copy;
        self.count_stored_event(event);
        self.is_replay
    }

    /// Begins the record of a stored event, unless the event before it is of the same record. Returns
    /// whether it began one.
    fn begin_stored_record(&mut self, event: &EventRow) -> bool {
        let [hash, _] = record_ids(event);
        let offset = event.source_offset.cast_unsigned();
        if self.state.next_index > 0 && (self.record.offset, self.record_hash) == (offset, hash) {
            return false;
        }
        let at = RecordAt { offset, ..RecordAt::default() };
        self.begin_record(at, Some(hash).filter(|hash| *hash != 0), None);
        true
    }

    /// Counts an event as the store has it, of which is known whether it is a copy.
    pub(crate) fn count_decided_event(&mut self, event: &EventRow, is_copy: bool) {
        self.is_replay = is_copy;
        self.count_stored_event(event);
    }

    /// Counts a stored event, as a copy or not as `is_replay` says.
    fn count_stored_event(&mut self, event: &EventRow) {
        while self.state.turn < event.turn_index {
            self.begin_turn();
        }
        while self.state.step < event.step_index {
            self.begin_step();
        }
        self.is_sidechain = event.is_sidechain;
        self.session.model.clone_from(&event.model);
        self.extend_time_range(event.timestamp);
        self.count_event(event.event_type, &counted_event(event));

        if let Some(own) = &mut self.own {
            own.extend(record_ids(event).into_iter().filter(|hash| *hash != 0));
        }
        self.state.replay = self.is_replay;
        self.state.next_index += 1;
    }
}

/// Counts a session again from its stored events, as if some of the sessions did not exist whose
/// records it may repeat. An event that only these have recorded before is then the session's own.
pub struct CopyRecount {
    stream: Stream,
    known: SessionRow,
    /// Records of the sessions that are left out.
    hidden: HashSet<u64>,
    /// True if another session, or this one before, has the present record.
    is_repeated: bool,
    /// Turns and steps that are not copied, by the stored flags.
    turns_before: i64,
    steps_before: i64,
    /// Whether each event is a copy now.
    copies: Vec<bool>,
    has_changed: bool,
    /// The times of the events that were copies and are not any more.
    new_times: Option<(i64, i64)>,
    titles_before: PromptTitles,
    titles_now: PromptTitles,
}

/// The titles that the prompts of a session give it.
#[derive(Default)]
struct PromptTitles {
    own: Option<String>,
    copied: Option<String>,
}

impl PromptTitles {
    fn add_prompt(&mut self, text: &str, is_copy: bool) {
        let title = if is_copy { &mut self.copied } else { &mut self.own };
        if title.is_none() {
            *title = prompt_title(text);
        }
    }

    /// A prompt of copied history names a session that has no other.
    fn first(&self) -> Option<&String> {
        self.own.as_ref().or(self.copied.as_ref())
    }
}

impl CopyRecount {
    /// Begins with a session. `has_ids` is true if records of its format are known by ids. `visible`
    /// has the records of each session that it may still repeat, in their order, and `hidden` those
    /// of the sessions that are left out.
    pub fn new(
        session: &SessionRow,
        has_ids: bool,
        visible: Vec<Vec<u64>>,
        hidden: HashSet<u64>,
    ) -> Self {
        let history = CopiedHistory::new(visible, has_ids, false);
        let own = has_ids.then(HashSet::new);
        Self {
            stream: Stream::for_count(without_counts(session.clone()), own, history),
            known: session.clone(),
            hidden,
            is_repeated: false,
            turns_before: 0,
            steps_before: 0,
            copies: Vec::new(),
            has_changed: false,
            new_times: None,
            titles_before: PromptTitles::default(),
            titles_now: PromptTitles::default(),
        }
    }

    /// Counts the next event, with all its columns.
    pub fn add_event(&mut self, event: &EventRow) {
        let was_copy = is_copied(event);
        let is_after_copy = self.stream.state.replay;
        if self.stream.begin_stored_record(event) {
            self.is_repeated = self.repeats_record(event, is_after_copy);
        }
        let turn = i64::from(self.stream.state.turn);
        let step = i64::from(self.stream.state.step);
        if !was_copy {
            self.turns_before += i64::from(event.turn_index).saturating_sub(turn).max(0);
            self.steps_before += i64::from(event.step_index).saturating_sub(step).max(0);
        }

        // Only a record that was a copy among all sessions can be one among some of them. Records
        // without ids are found by their order, which depends on the session that has it.
        let has_ids = self.stream.own.is_some();
        let is_copy = self.is_repeated && (was_copy || !has_ids);
        self.stream.count_decided_event(event, is_copy);
        self.copies.push(is_copy);
        self.has_changed |= is_copy != was_copy;
        if was_copy && !is_copy {
            self.add_new_time(event.timestamp);
        }
        if event.event_type == EventType::User {
            self.titles_before.add_prompt(&event.text, was_copy);
            self.titles_now.add_prompt(&event.text, is_copy);
        }
    }

    /// Returns whether the record of an event is in a visible session, or was in this one before.
    /// `is_after_copy` is true if the record before it is a copy.
    fn repeats_record(&self, event: &EventRow, is_after_copy: bool) -> bool {
        let Some(own) = &self.stream.own else { return self.stream.is_replay };
        let [hash, said] = record_ids(event);
        let is_known = self.stream.is_replay
            || said != 0 && (self.stream.is_in_history(said) || own.contains(&said));
        // What a copy has in addition, such as a record without an id, is where the copy is.
        let is_of_hidden = [hash, said].iter().any(|hash| self.hidden.contains(hash));
        is_known || is_after_copy && !is_of_hidden
    }

    fn add_new_time(&mut self, time: Option<i64>) {
        let Some(time) = time else { return };
        let (first, last) = self.new_times.unwrap_or((time, time));
        self.new_times = Some((first.min(time), last.max(time)));
    }

    /// Returns whether an event is a copy that was none, or the other way around.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Returns the session with its new counts, and whether each of its events is a copy.
    pub fn finish(self) -> (SessionRow, Vec<bool>) {
        let counted = self.stream.session_row();
        let has_own_before = self.known.events > self.known.replay_events;
        let (started_at, ended_at) = self.time_range(has_own_before, counted.replay_events);
        let mut row = SessionRow {
            started_at,
            ended_at,
            replay_events: counted.replay_events,
            turns: self.known.turns + counted.turns - self.turns_before,
            steps: self.known.steps + counted.steps - self.steps_before,
            user_messages: counted.user_messages,
            messages: counted.messages,
            tool_calls: counted.tool_calls,
            tool_errors: counted.tool_errors,
            usage_by_model: counted.usage_by_model.clone(),
            ..self.known
        };
        row.set_usage(counted.usage());
        // A title that is not that of a prompt was given.
        if let (Some(before), Some(now)) = (self.titles_before.first(), self.titles_now.first())
            && row.title.as_ref() == Some(before)
        {
            row.title = Some(now.clone());
        }
        (row, self.copies)
    }

    /// Returns the first and the last time of the session. Times of copied history count only if
    /// there are no others.
    fn time_range(&self, has_own_before: bool, copies: i64) -> (Option<i64>, Option<i64>) {
        let known = (self.known.started_at, self.known.ended_at);
        let is_of_file = self.known.time_source.as_deref() == Some(TimeSource::File.as_str());
        let Some((first, last)) = self.new_times else { return known };
        if is_of_file {
            return known;
        }
        if !has_own_before && copies > 0 {
            return (Some(first), Some(last));
        }
        (known.0.min(Some(first)).or(Some(first)), known.1.max(Some(last)))
    }
}

/// Returns the session with all counts of events reset.
pub(crate) fn without_counts(session: SessionRow) -> SessionRow {
    // The time of a file that is gone is known from the session only.
    let is_of_file = session.time_source.as_deref() == Some(TimeSource::File.as_str());
    let times = if is_of_file { (session.started_at, session.ended_at) } else { (None, None) };
    let mut session = SessionRow {
        started_at: times.0,
        ended_at: times.1,
        events: 0,
        replay_events: 0,
        turns: 0,
        steps: 0,
        user_messages: 0,
        messages: 0,
        tool_calls: 0,
        tool_errors: 0,
        usage_by_model: None,
        ..session
    };
    session.set_usage(Usage::default());
    session.set_recorded_usage(Usage::default());
    session
}

/// Returns the identities of the record of an event, and of what it says; 0 is none.
fn record_ids(event: &EventRow) -> [u64; 2] {
    [event.record_hash, event.copy_hash].map(i64::cast_unsigned)
}

/// Counts a session again from its stored events, of which other ones are copies than before.
pub struct SessionRecount {
    before: SessionRow,
    stream: Stream,
}

impl SessionRecount {
    /// Begins with the session as it was counted before.
    pub fn new(session: &SessionRow) -> Self {
        let counted = without_counts(session.clone());
        let stream = Stream::for_count(counted, None, CopiedHistory::default());
        Self { before: session.clone(), stream }
    }

    /// Counts the next event.
    pub fn add_event(&mut self, event: &EventRow) {
        self.stream.count_decided_event(event, event.is_replay);
    }

    /// Offers a prompt as the title of the session. It names a session without a title.
    pub(crate) fn offer_prompt(&mut self, text: &str) {
        self.stream.offer_title(TitleFrom::Prompt, text);
    }

    /// Returns the session with the new counts.
    pub fn into_session(self) -> SessionRow {
        let Self { before, stream } = self;
        SessionRow {
            model: before.model,
            usage_confidence: before.usage_confidence,
            ..stream.session_row()
        }
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
            let decoded = counted_event(event);
            self.session.set_usage(self.session.usage().plus(decoded.usage));
            self.ledger.add_usage(event.model.as_deref(), &decoded, &mut self.requests);
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
pub(crate) fn is_copied(event: &EventRow) -> bool {
    event.is_replay && !event.is_counted_elsewhere
}

/// Returns what is counted of an event.
fn counted_event(event: &EventRow) -> DecodedEvent<'_> {
    DecodedEvent {
        subtype: event.subtype.as_deref(),
        is_error: event.is_error,
        usage: event.usage(),
        mode: mode_words(event),
        request_id: event.request_id.as_deref(),
        timestamp: event.timestamp,
        ..DecodedEvent::default()
    }
}
