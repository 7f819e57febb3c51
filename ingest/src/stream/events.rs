//! Assigns every event its coordinates, keeps the session's sums, and holds the state needed to
//! continue later at the same place.
//!
//! Decoders push decoded events. This module does not know the format of any provider.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use schemas::problem::{Problem, ProblemKind};
use schemas::session::SessionRow;
use schemas::{Confidence, EventType, Provider};

use super::batch::{EventBatch, EventCells};
use super::calls::{CallColumns, split_paths};
use super::decoded_event::{DecodedEvent, ModeWords, RecordAt};
use super::forgotten::{ForgottenInLog, RecordProbe};
use super::found_secrets::FoundSecret;
use super::ledger::{Ledger, UnknownItem};
use super::messages::{DocumentMessages, DroppedMessages};
use super::record_aliases::RecordAliases;
use super::replay::CopiedHistory;
use super::repository::Repositories;
use super::state::StreamState;
use super::tool_kind::tool_kind;
use crate::redact::{Redactor, SessionSecrets};
use crate::text::names::truncate_name;
use crate::text::sanitize::clean;

/// Maximum number of problems of one log listed in one run. The limit exists because a log of
/// garbage has a problem on every line.
const MAX_LISTED_PROBLEMS: usize = 1000;

/// One log file on its way to the store.
pub struct Stream {
    /// The session of the log, without the sums that [`Self::session_row`] adds.
    pub session: SessionRow,
    /// Problems since they were last taken.
    pub problems: Vec<Problem>,
    /// Number of problems listed. `unlisted` counts the others, by kind.
    pub(super) listed: usize,
    pub(crate) unlisted: BTreeMap<&'static str, u64>,
    pub(super) provider: Provider,
    pub(super) state: StreamState,
    /// Rows not taken yet. Those before `first_row` are of other streams.
    pub(super) batch: Box<EventBatch>,
    first_row: usize,
    /// Bytes of text in the rows before `first_row`.
    first_text_bytes: usize,
    /// True if a call came whose result was in rows taken before.
    pub(super) has_missed_result: bool,
    pub(super) history: CopiedHistory,
    /// Ids of the records of this stream, to find repeated records. `None` for formats whose
    /// records are known by content only.
    pub(super) own: Option<HashSet<u64>>,
    /// Identities of the records that gave events in this run, in order.
    pub(super) sequence: Vec<u64>,
    pub(super) record: RecordAt,
    /// Identity of the present record; 0 if it has none.
    pub(super) record_hash: u64,
    /// Identity of what the present record says; 0 if it has none.
    pub(super) copy_hash: u64,
    /// Time of the present record in microseconds since the epoch, if it has one.
    pub(super) record_time: Option<i64>,
    /// True if the present record is a copy.
    pub(super) is_replay: bool,
    /// True if `sessions` wrote the present record as a copy.
    pub(super) is_written_copy: bool,
    /// True if all records are copies of those of another log.
    pub(super) is_whole_copy: bool,
    /// True if this log has had the present record before.
    pub(super) is_repeated: bool,
    /// The records of this reading that are copies of forgotten ones.
    pub(super) forgotten: ForgottenInLog,
    /// Number of the present record in this reading, from 1.
    pub(super) record_number: u64,
    /// True if the present record is a copy of a forgotten one. It is a copy then as well.
    pub(super) is_forgotten: bool,
    /// Collects facts about the records instead of rows.
    pub(super) probe: Option<RecordProbe>,
    /// True if the present record is left out, because the log has too many unknown ones.
    pub(super) is_left_out: bool,
    /// True if a subagent writes inside this log.
    pub(super) is_sidechain: bool,
    /// The subagent that writes, if it has no log of its own.
    pub(super) agent: Option<String>,
    /// Number of events that the present record gave so far.
    pub(super) pushed: u32,
    pub(super) ledger: Ledger,
    pub(super) redactor: Option<Arc<Redactor>>,
    /// Finds the repository of the working directory. The streams of a worker share it.
    pub(crate) repositories: Arc<Repositories>,
    /// The secrets masked in this run.
    pub(super) secrets: SessionSecrets,
    /// Collects the secrets of events with their text, for the replacement of secrets in the log.
    pub(super) found_secrets: Option<Vec<FoundSecret>>,
    /// The earlier identities of records whose secrets were replaced in the log.
    pub(crate) aliases: Arc<RecordAliases>,
    /// Parent of the present record.
    pub(super) parent: Option<u64>,
    /// True if the working directory of the session is one that a folder of the log is named after.
    pub(super) is_cwd_settled: bool,
    /// The last working directory that is not in such a folder.
    pub(super) other_cwd: Option<String>,
    /// The messages of a document, if this log is one.
    pub(super) messages: DocumentMessages,
    pub(super) dropped: DroppedMessages,
    /// The items of the present record that its decoder did not know: its fields, or the record as a
    /// whole.
    pub(super) unknown_items: Vec<UnknownItem>,
    /// The masked form of names unknown to the decoder, because a log may repeat them in each record.
    pub(super) masked_names: HashMap<String, String>,
    /// Hashes of the field sets of objects without unknown fields (`provider/shared/drift.rs`). The streams
    /// of a worker hand them on.
    pub(crate) shapes: HashSet<u64>,
}

impl Stream {
    /// Creates a stream. `session` and `state` are those of the last checkpoint, or new. `own`
    /// holds the ids of the records read before, for formats whose records have ids. `history`
    /// holds the records of the streams that this one may repeat. `redactor` masks secrets. The
    /// stream appends its rows to `batch`, which may have rows of other streams.
    pub fn new(
        provider: Provider,
        session: SessionRow,
        state: StreamState,
        own: Option<HashSet<u64>>,
        history: CopiedHistory,
        redactor: Option<Arc<Redactor>>,
        batch: Box<EventBatch>,
    ) -> Self {
        // The session has the times of copied history only until it has its own.
        let mut session = session;
        if state.borrowed {
            session.started_at = None;
            session.ended_at = None;
        }

        // A fork counts as repeating until its first record with an identity says otherwise.
        let replay = state.next_index == 0 && !history.is_empty() || state.replay;
        let ledger = Ledger::from_row(&session);
        Self {
            ledger,
            redactor,
            repositories: Arc::default(),
            secrets: SessionSecrets::default(),
            found_secrets: None,
            aliases: Arc::default(),
            parent: None,
            is_cwd_settled: false,
            other_cwd: None,
            messages: DocumentMessages::default(),
            dropped: DroppedMessages::default(),
            unknown_items: Vec::new(),
            masked_names: HashMap::new(),
            shapes: HashSet::new(),
            session,
            problems: Vec::new(),
            listed: 0,
            unlisted: BTreeMap::new(),
            provider,
            state: StreamState { replay, ..state },
            first_row: batch.len(),
            first_text_bytes: batch.text_bytes(),
            batch,
            has_missed_result: false,
            history,
            own,
            sequence: Vec::new(),
            record: RecordAt::default(),
            record_hash: 0,
            copy_hash: 0,
            record_time: None,
            is_replay: replay,
            is_written_copy: false,
            is_whole_copy: false,
            is_repeated: false,
            forgotten: ForgottenInLog::default(),
            record_number: 0,
            is_forgotten: false,
            probe: None,
            is_left_out: false,
            is_sidechain: false,
            agent: None,
            pushed: 0,
        }
    }

    /// Creates a stream that counts the stored events of a session again. Its row has no counts.
    pub(crate) fn for_count(
        session: SessionRow,
        own: Option<HashSet<u64>>,
        history: CopiedHistory,
    ) -> Self {
        let state = StreamState::default();
        Self::new(session.provider, session, state, own, history, None, Box::default())
    }

    /// Marks all records that follow as copies of those of another log.
    pub(crate) fn set_whole_copy(&mut self) {
        self.is_whole_copy = true;
    }

    /// The state to save at this point.
    pub fn state(&self) -> &StreamState {
        &self.state
    }

    /// Takes the rows of the batch as [`EventBatch::finish`] does.
    pub(crate) fn take_rows(&mut self, schema: &SchemaRef, segment: i64) -> RecordBatch {
        self.first_row = 0;
        self.first_text_bytes = 0;
        self.batch.finish(schema, segment)
    }

    /// Returns the batch with the rows not taken yet.
    pub(crate) fn into_batch(self) -> Box<EventBatch> {
        self.batch
    }

    /// Number of rows of other streams before those of this one that are not taken yet.
    pub(crate) fn first_row(&self) -> usize {
        self.first_row
    }

    /// Number of rows of this stream that are not taken yet.
    pub(crate) fn row_count(&self) -> usize {
        self.batch.len() - self.first_row
    }

    /// Bytes of text in the rows of this stream that are not taken yet.
    pub(crate) fn text_bytes(&self) -> usize {
        self.batch.text_bytes() - self.first_text_bytes
    }

    /// Returns the session with all its sums.
    pub fn session_row(&self) -> SessionRow {
        self.with_sums(self.session.clone())
    }

    /// Takes the session with all its sums, at the end of its log. Leaves its counts of events.
    pub(crate) fn take_session_row(&mut self) -> SessionRow {
        let SessionRow { events, replay_events, .. } = self.session;
        let counts = SessionRow { events, replay_events, ..SessionRow::default() };
        let row = std::mem::replace(&mut self.session, counts);
        self.with_sums(row)
    }

    /// Returns the row of the session with all its sums.
    fn with_sums(&self, mut row: SessionRow) -> SessionRow {
        self.ledger.write_to_row(&mut row, self.secrets.counts());

        let counted = (!row.recorded_usage().is_unknown()).then_some(Confidence::Measured);
        let is_open =
            self.state.counts_open || counted.is_some() && !self.state.uncounted_steps.is_empty();
        let open = is_open.then_some(Confidence::Partial);
        let confidence = [counted, open, self.state.confidence].into_iter().flatten().max();
        row.usage_confidence = Some(confidence.unwrap_or(Confidence::Unknown).as_str().to_owned());

        if row.started_at.is_none()
            && let Some((first, last)) = self.state.copied
        {
            row.started_at = Some(first);
            row.ended_at = Some(last);
        }
        row.time_source = Self::time_source(&row).map(|source| source.as_str().to_owned());
        row
    }

    /// Takes the identities of the records that gave events in this run, in order.
    pub fn take_sequence(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.sequence)
    }

    /// Index of the next event.
    pub fn position(&self) -> i32 {
        self.state.next_index
    }

    /// Number of events that the present record gave so far.
    pub fn pushed_count(&self) -> u32 {
        self.pushed
    }

    /// Marks the events that follow as written by a subagent inside this log. `agent` is its id, if
    /// known.
    pub fn set_sidechain(&mut self, agent: Option<&str>) {
        self.is_sidechain = true;
        self.agent = agent.map(|id| truncate_name(id).to_owned());
    }

    /// Marks the events that follow as written by this agent inside the log, or by the main one.
    pub(crate) fn set_agent(&mut self, agent: Option<&str>) {
        match agent {
            Some(_) => self.set_sidechain(agent),
            None => {
                self.is_sidechain = false;
                self.agent = None;
            }
        }
    }

    /// Begins a turn with a real prompt: the events that follow belong to it.
    pub fn begin_turn(&mut self) {
        let parent = self.parent.take();
        // A repeated record does not mean that the user went back.
        if let Some(parent) = parent
            && !self.is_repeated
        {
            self.link_to_parent(parent);
        }

        self.state.turn += 1;
        if !self.is_replay {
            self.session.turns += 1;
        }
    }

    /// Begins a model response. Returns its step.
    pub fn begin_step(&mut self) -> i32 {
        self.state.step += 1;
        if !self.is_replay {
            self.session.steps += 1;
            self.note_uncounted_step();
        }
        self.state.step
    }

    /// Begins a model response unless one is under way, as `in_response` says. One is then.
    pub(crate) fn begin_response(&mut self, in_response: &mut bool) {
        if !std::mem::replace(in_response, true) {
            self.begin_step();
        }
    }

    /// Reports a problem with the bytes at `at`, unless the present record is forgotten: the message
    /// may quote it.
    pub fn push_problem(&mut self, at: RecordAt, kind: ProblemKind, message: impl Display) {
        if self.is_forgotten {
            return;
        }
        if self.listed == MAX_LISTED_PROBLEMS {
            *self.unlisted.entry(kind.as_str()).or_default() += 1;
            return;
        }
        self.listed += 1;
        let mut message = message.to_string();
        if self.listed == MAX_LISTED_PROBLEMS {
            message.push_str("; further problems of this log are counted but not listed");
        }
        let path = self.session.source_path.clone();
        self.problems.push(Problem { path, line: at.line, byte: at.offset, kind, message });
    }

    /// Adds an event to the present step. Prompts and notifications belong to no response, so their
    /// step is 0.
    pub fn push(&mut self, kind: EventType, decoded: DecodedEvent<'_>) {
        let is_outside = matches!(kind, EventType::User | EventType::Notification);
        let step = if is_outside { 0 } else { self.state.step };
        self.push_in_step(kind, step, decoded);
    }

    /// Adds an event to a given step. The lines of one response may be apart in the log.
    pub fn push_in_step(&mut self, kind: EventType, step: i32, decoded: DecodedEvent<'_>) {
        self.count_unknown_blocks();
        if self.is_left_out {
            return;
        }
        if kind == EventType::TokenUsage && self.is_written_copy {
            // The format demands counts, and the copy has none.
            return;
        }
        // An empty answer, as before a call, carries no information.
        if kind == EventType::Message && decoded.subtype.is_none() && decoded.text.trim().is_empty()
        {
            return;
        }

        if self.probe.is_some() {
            return self.push_probed(kind, step, &decoded);
        }
        if self.is_forgotten {
            return self.push_forgotten(kind, step, &decoded);
        }

        // Invisible characters may split a secret, and matches must not end at a color escape.
        let text = clean(decoded.text);
        let command = clean(decoded.command);
        let files = split_paths(decoded.files);
        let masked = self.mask_columns(&text, &command, &files, decoded.answered_call(kind));
        let mut call = CallColumns {
            step,
            tool: None,
            files: masked.files,
            command: masked.command.into_owned(),
            duration_ms: decoded.duration_ms,
        };
        let decoded = DecodedEvent {
            text: &masked.text,
            subtype: decoded.subtype.map(truncate_name),
            tool_name: decoded.tool_name.map(truncate_name),
            tool_call_id: decoded.tool_call_id.map(truncate_name),
            spawned_agent_id: decoded.spawned_agent_id.map(truncate_name),
            request_id: decoded.request_id.map(truncate_name),
            mode: ModeWords {
                service_tier: decoded.mode.service_tier.map(truncate_name),
                speed: decoded.mode.speed.map(truncate_name),
                inference_geo: decoded.mode.inference_geo.map(truncate_name),
            },
            ..decoded
        };

        if self.pushed == 0 {
            self.extend_time_range(self.record_time);
        }
        let known_time = decoded.timestamp.or(self.record_time);
        let time = known_time.or(self.state.last_time);
        if decoded.timestamp.is_some() {
            self.extend_time_range(decoded.timestamp);
        }
        if kind == EventType::ToolCall {
            self.open_call(&decoded, known_time, &call);
        } else if kind == EventType::ToolResult {
            self.close_call(&decoded, known_time, &mut call);
        }

        self.count_event(kind, &DecodedEvent { timestamp: time, ..decoded });
        if kind == EventType::TokenUsage && !decoded.usage.is_unknown() {
            self.note_counted_step(call.step, decoded.request_id);
        }
        let tool_name = decoded.tool_name.or(call.tool.as_deref());
        self.batch.push(&EventCells {
            session_id: &self.session.session_id,
            event_index: self.state.next_index,
            turn_index: self.state.turn,
            step_index: call.step,
            event_type: kind,
            subtype: decoded.subtype,
            timestamp: time,
            provider: self.provider,
            text: decoded.text,
            tool_name,
            tool_kind: tool_name.map(|name| tool_kind(name, &call.command).as_str()),
            tool_call_id: decoded.tool_call_id,
            files: &call.files,
            spawned_agent_id: decoded.spawned_agent_id.or(self.agent.as_deref()),
            command: (!call.command.is_empty()).then_some(call.command.as_str()),
            is_error: decoded.is_error,
            exit_code: decoded.exit_code,
            duration_ms: call.duration_ms,
            model: self.session.model.as_deref(),
            git_branch: self.session.git_branch.as_deref(),
            request_id: decoded.request_id,
            is_replay: self.is_replay,
            is_sidechain: self.is_sidechain,
            source_offset: self.record.offset.cast_signed(),
            source_length: self.record.length.cast_signed(),
            record_hash: self.record_hash.cast_signed(),
            copy_hash: self.copy_hash.cast_signed(),
            service_tier: decoded.mode.service_tier,
            speed: decoded.mode.speed,
            inference_geo: decoded.mode.inference_geo,
            ..EventCells::from_usage(decoded.usage)
        });
        self.finish_event();
    }

    /// Notes the record of the event that was pushed last, and moves to the next index.
    pub(super) fn finish_event(&mut self) {
        if self.pushed == 0 && !self.is_forgotten {
            // A record without events leaves no trace in the store, and a later run knows only the
            // store.
            for hash in [self.record_hash, self.copy_hash] {
                if hash == 0 {
                    continue;
                }
                self.sequence.push(hash);
                if let Some(own) = &mut self.own {
                    own.insert(hash);
                }
            }
        }
        // A record without events does not decide about the records after it: no sequence holds it,
        // so it is never found in one.
        // After a forgotten record, records without an identity are the log's own.
        self.state.replay = self.is_replay && !self.is_forgotten;
        self.state.next_index += 1;
        self.pushed += 1;
    }

    /// Adds an event to the session's sums. `decoded.timestamp` is the time of the event.
    pub(super) fn count_event(&mut self, kind: EventType, decoded: &DecodedEvent<'_>) {
        let row = &mut self.session;
        row.events += 1;
        if kind == EventType::TokenUsage {
            row.set_recorded_usage(row.recorded_usage().plus(decoded.usage));
        }
        if self.is_replay {
            row.replay_events += 1;
            return;
        }

        match kind {
            EventType::User => row.user_messages += i64::from(!self.is_sidechain),
            EventType::Message => row.messages += 1,
            EventType::ToolCall => row.tool_calls += 1,
            EventType::ToolResult => row.tool_errors += i64::from(decoded.is_error == Some(true)),
            EventType::TokenUsage => {
                row.set_usage(row.usage().plus(decoded.usage));
                self.ledger.add_usage(row.model.as_deref(), decoded, &mut self.state.requests);
            }
            EventType::Reasoning | EventType::Notification => {}
        }
    }
}
