//! Assigns every event its coordinates, keeps the session's sums, and holds the state
//! needed to continue later at the same place.
//!
//! Decoders push drafts; this module knows no provider's format.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use schemas::problem::{Problem, ProblemKind};
use schemas::session::SessionRow;
use schemas::{Confidence, EventType, Provider};

use super::batch::{EventBatch, EventCells};
use super::calls::{OpenCall, cleaned_files};
use super::draft::{Draft, RecordAt};
use super::ledger::Ledger;
use super::messages::{Dropped, Messages};
use super::replay::History;
use super::state::StreamState;
use super::tool_kind::tool_kind;
use crate::redact::{Redactor, Secrets};
use crate::text::names::short;
use crate::text::sanitize::clean;

/// Problems of one log listed in one run. The limit exists because a log of garbage has a problem
/// on every line.
const LISTED: usize = 1000;

/// One log file on its way to the store.
pub struct Stream {
    pub session: SessionRow,
    /// Problems since they were last taken.
    pub problems: Vec<Problem>,
    /// Number of problems listed. `unlisted` counts the others, by kind.
    pub(super) listed: usize,
    pub(crate) unlisted: BTreeMap<&'static str, u64>,
    pub(super) provider: Provider,
    pub(super) state: StreamState,
    pub(super) batch: EventBatch,
    pub(super) history: History,
    /// Ids of the records of this stream, to find repeated records. `None` for formats whose
    /// records are known by content only.
    pub(super) own: Option<HashSet<u64>>,
    /// Identities of the records that gave events in this run, in order.
    pub(super) sequence: Vec<u64>,
    pub(super) record: RecordAt,
    pub(super) record_hash: u64,
    pub(super) record_time: Option<i64>,
    pub(super) replay: bool,
    /// True if this log has had the present record before.
    pub(super) repeated: bool,
    pub(super) sidechain: bool,
    /// The subagent that writes, if it has no log of its own.
    pub(super) agent: Option<String>,
    pub(super) pushed: u32,
    pub(super) ledger: Ledger,
    pub(super) redactor: Option<Arc<Redactor>>,
    /// The secrets masked in this run.
    pub(super) secrets: Secrets,
    /// Parent of the present record.
    pub(super) parent: Option<u64>,
    /// The messages of a document, if this log is one.
    pub(super) messages: Messages,
    pub(super) dropped: Dropped,
    /// Hashes of the field sets of objects without unknown fields (`provider/drift.rs`).
    pub(crate) shapes: HashSet<u64>,
}

impl Stream {
    /// Creates a stream. `session` and `state` are those of the last checkpoint, or new. `own`
    /// holds the ids of the records read before, for formats whose records have ids. `history`
    /// holds the records of the streams that this one may repeat. `redactor` masks secrets.
    pub fn new(
        provider: Provider,
        session: SessionRow,
        state: StreamState,
        own: Option<HashSet<u64>>,
        history: History,
        redactor: Option<Arc<Redactor>>,
    ) -> Self {
        // The session has the times of copied history only until it has its own.
        let mut session = session;
        if state.borrowed {
            (session.started_at, session.ended_at) = (None, None);
        }
        // A fork counts as repeating until its first record with an identity says otherwise.
        let replay = state.next_index == 0 && !history.is_empty() || state.replay;
        let ledger = Ledger::of(&session);
        Self {
            ledger,
            redactor,
            secrets: Secrets::default(),
            parent: None,
            messages: Messages::default(),
            dropped: Dropped::default(),
            shapes: HashSet::new(),
            session,
            problems: Vec::new(),
            listed: 0,
            unlisted: BTreeMap::new(),
            provider,
            state: StreamState { replay, ..state },
            batch: EventBatch::with_room(),
            history,
            own,
            sequence: Vec::new(),
            record: RecordAt::default(),
            record_hash: 0,
            record_time: None,
            replay,
            repeated: false,
            sidechain: false,
            agent: None,
            pushed: 0,
        }
    }

    /// The state to save at this point.
    pub fn state(&self) -> &StreamState {
        &self.state
    }

    /// The rows not taken yet.
    pub fn batch(&mut self) -> &mut EventBatch {
        &mut self.batch
    }

    /// Returns the session with all its sums.
    pub fn session_row(&self) -> SessionRow {
        let mut row = self.session.clone();
        self.ledger.write(&mut row, self.secrets.counts());
        let counted = (!row.recorded().is_unknown()).then_some(Confidence::Measured);
        let open = self.state.counts_open.then_some(Confidence::Partial);
        let confidence = [counted, open, self.state.confidence].into_iter().flatten().max();
        row.usage_confidence = Some(confidence.unwrap_or(Confidence::Unknown).to_string());
        if let Some((first, last)) = self.state.copied.filter(|_| row.started_at.is_none()) {
            (row.started_at, row.ended_at) = (Some(first), Some(last));
        }
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
    pub fn pushed(&self) -> u32 {
        self.pushed
    }

    /// Marks the drafts that follow as written by a subagent inside this log. `agent` is its id, if
    /// known.
    pub fn set_sidechain(&mut self, agent: Option<&str>) {
        self.sidechain = true;
        self.agent = agent.map(|id| short(id).to_owned());
    }

    /// Extends the session's time range. Times of copied history count only while there are no
    /// others.
    pub fn widen(&mut self, time: Option<i64>) {
        let Some(time) = time else { return };
        if self.replay {
            let (first, last) = self.state.copied.unwrap_or((time, time));
            self.state.copied = Some((first.min(time), last.max(time)));
            self.state.borrowed = self.session.started_at.is_none();
            return;
        }
        self.state.borrowed = false;
        let row = &mut self.session;
        row.started_at = Some(row.started_at.map_or(time, |at| at.min(time)));
        row.ended_at = Some(row.ended_at.map_or(time, |at| at.max(time)));
    }

    /// Begins a turn with a real prompt: the events that follow belong to it.
    pub fn begin_turn(&mut self) {
        // A repeated record does not mean that the user went back.
        if let Some(parent) = self.parent.take().filter(|_| !self.repeated) {
            self.branch(parent);
        }
        self.state.turn += 1;
        if !self.replay {
            self.session.turns += 1;
        }
    }

    /// Begins a model response. Returns its step.
    pub fn begin_step(&mut self) -> i32 {
        self.state.step += 1;
        if !self.replay {
            self.session.steps += 1;
        }
        self.state.step
    }

    /// Reports a problem with the bytes at `at`.
    pub fn problem(&mut self, at: RecordAt, kind: ProblemKind, mut message: String) {
        if self.listed == LISTED {
            *self.unlisted.entry(kind.as_str()).or_default() += 1;
            return;
        }
        self.listed += 1;
        if self.listed == LISTED {
            message.push_str("; whatever else is wrong with this log is counted and not listed");
        }
        let path = self.session.source_path.clone();
        self.problems.push(Problem { path, line: at.line, byte: at.offset, kind, message });
    }

    /// Returns whether a call with this id waits for its result.
    pub fn is_open(&self, call: &str) -> bool {
        self.state.open_calls.is_open(call)
    }

    /// Adds an event to the present step. Prompts and notifications belong to no response, so their
    /// step is 0.
    pub fn push(&mut self, kind: EventType, draft: Draft<'_>) {
        let outside = matches!(kind, EventType::User | EventType::Notification);
        self.push_in(kind, if outside { 0 } else { self.state.step }, draft);
    }

    /// Adds an event to a given step. The lines of one response may be apart in the log.
    pub fn push_in(&mut self, kind: EventType, step: i32, draft: Draft<'_>) {
        // An empty answer, as before a call, carries no information.
        if kind == EventType::Message && draft.subtype.is_none() && draft.text.trim().is_empty() {
            return;
        }
        // Invisible characters may split a secret, and matches must not end at a color escape.
        let text = clean(draft.text);
        let command = clean(draft.command);
        let files = cleaned_files(draft.files);
        let said = self.mask(&text, &command, &files);
        let (mut command, mut files) = (said.command.into_owned(), said.files);
        let draft = Draft {
            text: &said.text,
            subtype: draft.subtype.map(short),
            tool_name: draft.tool_name.map(short),
            tool_call_id: draft.tool_call_id.map(short),
            spawned_agent_id: draft.spawned_agent_id.map(short),
            request_id: draft.request_id.map(short),
            ..draft
        };
        let known_time = draft.timestamp.or(self.record_time);
        let time = known_time.or(self.state.last_time);
        if draft.timestamp.is_some() {
            self.widen(draft.timestamp);
        }
        let mut step_index = step;
        let mut duration_ms = draft.duration_ms;
        let mut known_tool = None;
        match (kind, draft.tool_call_id) {
            (EventType::ToolCall, Some(id)) => self.state.open_calls.open(OpenCall {
                id: id.to_owned(),
                step,
                tool: draft.tool_name.map(str::to_owned),
                files: files.clone(),
                command: command.clone(),
                at: known_time,
            }),
            (EventType::ToolResult, Some(id)) => {
                if let Some(call) = self.state.open_calls.close(id) {
                    step_index = call.step;
                    known_tool = call.tool;
                    files = call.files;
                    command = call.command;
                    // A time taken over from another record says nothing about the duration.
                    let elapsed = known_time.zip(call.at);
                    let elapsed = elapsed.map(|(end, start)| end.saturating_sub(start) / 1000);
                    duration_ms = duration_ms.or(elapsed.filter(|ms| *ms >= 0));
                }
            }
            _ => {}
        }
        self.count(kind, &draft);
        let tool_name = draft.tool_name.or(known_tool.as_deref());
        self.batch.push(&EventCells {
            session_id: &self.session.session_id,
            event_index: self.state.next_index,
            turn_index: self.state.turn,
            step_index,
            event_type: kind,
            subtype: draft.subtype,
            timestamp: time,
            provider: self.provider,
            text: draft.text,
            tool_name,
            tool_kind: tool_name.map(|name| tool_kind(name, &command).as_str()),
            tool_call_id: draft.tool_call_id,
            files: &files,
            spawned_agent_id: draft.spawned_agent_id.or(self.agent.as_deref()),
            command: Some(command.as_str()).filter(|command| !command.is_empty()),
            is_error: draft.is_error,
            exit_code: draft.exit_code,
            duration_ms,
            model: self.session.model.as_deref(),
            git_branch: self.session.git_branch.as_deref(),
            request_id: draft.request_id,
            is_replay: self.replay,
            is_sidechain: self.sidechain,
            source_offset: self.record.offset.cast_signed(),
            source_length: self.record.length.cast_signed(),
            record_hash: self.record_hash.cast_signed(),
            ..EventCells::of_usage(draft.usage)
        });
        if self.pushed == 0 && self.record_hash != 0 {
            self.sequence.push(self.record_hash);
            // A record without events leaves no trace in the store, and a later run knows only the
            // store.
            if let Some(own) = &mut self.own {
                own.insert(self.record_hash);
            }
        }
        // A record without events does not decide about the records after it: no sequence holds it,
        // so it is never found in one.
        self.state.replay = self.replay;
        self.state.next_index += 1;
        self.pushed += 1;
    }

    pub(super) fn count(&mut self, kind: EventType, draft: &Draft<'_>) {
        let row = &mut self.session;
        row.events += 1;
        if kind == EventType::TokenUsage {
            row.set_recorded(row.recorded().plus(draft.usage));
        }
        if self.replay {
            row.replay_events += 1;
            return;
        }
        match kind {
            EventType::User => row.user_messages += i64::from(!self.sidechain),
            EventType::Message => row.messages += 1,
            EventType::ToolCall => row.tool_calls += 1,
            EventType::ToolResult => row.tool_errors += i64::from(draft.is_error == Some(true)),
            EventType::TokenUsage => {
                row.set_usage(row.usage().plus(draft.usage));
                self.ledger.usage(row.model.as_deref(), draft, &mut self.state.requests);
            }
            EventType::Reasoning | EventType::Notification => {}
        }
    }
}
