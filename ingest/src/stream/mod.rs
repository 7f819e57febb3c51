//! The stream: gives every event its coordinates, keeps the session's sums, and knows what must be
//! remembered to go on later at the same place.
//!
//! Decoders push drafts; nothing here knows a provider's format.

mod calls;
mod dropped;
mod record;
mod recount;
mod session;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use schemas::problem::{Problem, ProblemKind};
use schemas::session::SessionRow;
use schemas::{Confidence, EventType, Provider, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use self::calls::{OpenCall, OpenCalls, cleaned_files};
pub(crate) use self::dropped::{Dropped, Messages};
pub use self::session::TitleFrom;
pub(crate) use self::session::short;
use crate::arguments::tool_kind;
use crate::batch::{EventBatch, EventCells};
use crate::branches::Branches;
use crate::clean::clean;
use crate::history::History;
use crate::ledger::{LastRequests, Ledger};
use crate::redact::{Redactor, Secrets};
use crate::tree::Tree;

/// Problems of one log that are listed in one run: a log of garbage has one on every line.
const LISTED: usize = 1000;

/// What a decoder knows about an event; the stream adds the rest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Draft<'a> {
    pub subtype: Option<&'a str>,
    pub text: &'a str,
    pub tool_name: Option<&'a str>,
    pub tool_call_id: Option<&'a str>,
    /// Paths that the call's arguments name.
    pub files: &'a [String],
    /// The command line of a call that runs one; empty is none.
    pub command: &'a str,
    /// The subagent that the call started, on its result.
    pub spawned_agent_id: Option<&'a str>,
    pub is_error: Option<bool>,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<i64>,
    pub usage: Usage,
    pub request_id: Option<&'a str>,
    /// Overrides the record's time.
    pub timestamp: Option<i64>,
}

/// What must be remembered between two reads of a growing log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamState {
    next_index: i32,
    turn: i32,
    step: i32,
    /// Time of the last record that had one, in microseconds.
    last_time: Option<i64>,
    open_calls: OpenCalls,
    title_rank: u8,
    /// The event that came next when the title was taken.
    #[serde(default)]
    title_at: i32,
    /// Records of its own since the last copied one.
    own_run: u32,
    /// Place reached in the parent's sequence.
    history_at: usize,
    /// The last record was a copy.
    replay: bool,
    /// What hangs on what, for finding abandoned branches; records are known by hash.
    #[serde(default, skip_serializing_if = "Branches::is_empty")]
    branches: Branches,
    /// Where every entry says what it hangs on, all of them.
    #[serde(default, skip_serializing_if = "Tree::is_empty")]
    tree: Tree,
    /// The least trust that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    /// Counts are missing if the log ends here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    counts_open: bool,
    /// First and last time of copied history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copied: Option<(i64, i64)>,
    /// The session has no times of its own, but those of copied history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    borrowed: bool,
    #[serde(default, skip_serializing_if = "LastRequests::is_empty")]
    requests: LastRequests,
}

/// Where a record stands and who it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordAt {
    pub offset: u64,
    pub length: u64,
    /// 1-based line.
    pub line: u64,
}

/// One log file on its way to the store.
pub struct Stream {
    pub session: SessionRow,
    /// Those since they were taken last.
    pub problems: Vec<Problem>,
    /// How many were listed, and those that were only counted, by kind.
    listed: usize,
    pub(crate) unlisted: BTreeMap<&'static str, u64>,
    provider: Provider,
    state: StreamState,
    batch: EventBatch,
    history: History,
    /// Ids of the records of this stream, for finding repeated ones; unused where records are
    /// known by content only.
    own: Option<HashSet<u64>>,
    /// Identities of the records that gave events in this run, in order.
    sequence: Vec<u64>,
    record: RecordAt,
    record_hash: u64,
    record_time: Option<i64>,
    replay: bool,
    /// This log had the present record already.
    repeated: bool,
    sidechain: bool,
    /// The subagent that writes, where it has no log of its own.
    agent: Option<String>,
    pushed: u32,
    ledger: Ledger,
    redactor: Option<Arc<Redactor>>,
    /// What was masked in this run.
    secrets: Secrets,
    /// What the present record hangs on.
    parent: Option<u64>,
    /// Of a document, those of which it tells.
    messages: Messages,
    dropped: Dropped,
    /// Hashes of the fields of objects that have none that is unknown (`provider/drift.rs`).
    pub(crate) shapes: HashSet<u64>,
}

impl Stream {
    /// `session` and `state` are those of the last checkpoint, or new ones; `own` holds the ids
    /// of the records read before, where records have ids; `history` the records of the streams
    /// this one may repeat; `redactor` masks secrets.
    pub fn new(
        provider: Provider,
        session: SessionRow,
        state: StreamState,
        own: Option<HashSet<u64>>,
        history: History,
        redactor: Option<Arc<Redactor>>,
    ) -> Self {
        // Times of copied history stand for the session's only until it has its own.
        let mut session = session;
        if state.borrowed {
            (session.started_at, session.ended_at) = (None, None);
        }
        // Until its first record with an identity says otherwise, a fork repeats.
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

    /// What to remember at this point.
    pub fn state(&self) -> &StreamState {
        &self.state
    }

    /// The rows not yet taken.
    pub fn batch(&mut self) -> &mut EventBatch {
        &mut self.batch
    }

    /// The session with all its sums.
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

    /// Identities of the records that gave events in this run, in order.
    pub fn take_sequence(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.sequence)
    }

    /// Index of the event that comes next.
    pub fn position(&self) -> i32 {
        self.state.next_index
    }

    /// Events that the present record gave so far.
    pub fn pushed(&self) -> u32 {
        self.pushed
    }

    /// The drafts that follow were written by a subagent inside this log, by this one if it is known.
    pub fn set_sidechain(&mut self, agent: Option<&str>) {
        self.sidechain = true;
        self.agent = agent.map(|id| short(id).to_owned());
    }

    /// Extends the session's time range; copied history does not, unless there is nothing else.
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

    /// A real prompt begins: the events that follow belong to a new turn.
    pub fn begin_turn(&mut self) {
        // Nobody goes back to where a record stands again.
        if let Some(parent) = self.parent.take().filter(|_| !self.repeated) {
            self.branch(parent);
        }
        self.state.turn += 1;
        if !self.replay {
            self.session.turns += 1;
        }
    }

    /// Adds a real prompt: it begins a turn and may name the session.
    pub fn prompt(&mut self, text: &str) {
        self.begin_turn();
        self.title(TitleFrom::Prompt, text);
        self.push(EventType::User, Draft { text, ..Draft::default() });
    }

    /// A model response begins.
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

    /// Whether a call of this id waits for its result.
    pub fn is_open(&self, call: &str) -> bool {
        self.state.open_calls.is_open(call)
    }

    /// Adds an event of the present step; prompts and notifications belong to no response.
    pub fn push(&mut self, kind: EventType, draft: Draft<'_>) {
        let outside = matches!(kind, EventType::User | EventType::Notification);
        self.push_in(kind, if outside { 0 } else { self.state.step }, draft);
    }

    /// Adds an event of a given step: lines of one response may stand apart in the log.
    pub fn push_in(&mut self, kind: EventType, step: i32, draft: Draft<'_>) {
        // An answer without words, as before a call, says nothing.
        if kind == EventType::Message && draft.subtype.is_none() && draft.text.trim().is_empty() {
            return;
        }
        // A secret may be split by what nobody sees, and matches must not end at a colour.
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
                    // A time taken over from another record says nothing of how long it took.
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
            // A record without events leaves no trace in the store, which a later run goes by.
            if let Some(own) = &mut self.own {
                own.insert(self.record_hash);
            }
        }
        // One without events says nothing of those behind it: no sequence holds it, so that it is
        // found in none.
        self.state.replay = self.replay;
        self.state.next_index += 1;
        self.pushed += 1;
    }

    fn count(&mut self, kind: EventType, draft: &Draft<'_>) {
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

/// Reads an RFC 3339 time of a log into microseconds.
pub fn micros(text: Option<&str>) -> Option<i64> {
    Timestamp::parse(text?).map(|time| time.0)
}
