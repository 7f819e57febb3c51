//! Reads the sessions of a report with their conversations, on all cores.

use std::collections::{BTreeMap, HashMap};

use schemas::session::EventRow;
use schemas::tool::event::Event;
use schemas::tool::list::Session;
use schemas::{EventId, EventType, Timestamp, ToolError, ToolKind};
use serde::Serialize;

use crate::page::{PackedTalk, ShownDetails};
use base::parallel::in_parallel;
use store::{Snapshot, StoreError, StoredSession};
use tools::error::store_error;
use tools::{Call, TimeRange, Tools, cut_diff, linked_event};

/// Maximum number of characters of a prompt or an answer.
const MAX_MESSAGE_CHARS: usize = 40_000;

/// Maximum number of characters of what the model thought, or of a call.
const MAX_CALL_CHARS: usize = 2_000;

/// Maximum number of characters of what a call returned. Most of a report is such text.
const MAX_RESULT_CHARS: usize = 1_000;

/// Maximum number of lines of a diff.
const MAX_DIFF_LINES: usize = 100;

/// Maximum number of characters of a notice, which has a line in words.
const MAX_NOTICE_CHARS: usize = 300;

/// Number of sessions that a core reads at a time.
const SESSIONS_AT_A_TIME: usize = 4;

const MICROS_PER_HOUR: i64 = 3_600_000_000;

/// A session as a report needs it.
pub(super) struct SessionTalk {
    pub(super) session: Session,
    pub(super) packed: PackedTalk,
    pub(super) hours: Vec<HourCount>,
    pub(super) edits: Vec<RecentEdit>,
    /// The results that name subagents, by the ids of their sessions.
    pub(super) spawned: Vec<(String, String)>,
}

/// A call that changed a file.
pub(super) struct RecentEdit {
    pub(super) timestamp: Option<String>,
    pub(super) event_id: String,
    pub(super) model: Option<String>,
}

/// The number of prompts, answers and calls in an hour.
pub(super) struct HourCount {
    /// Hours since 1970.
    pub(super) hour: i64,
    pub(super) events: u32,
}

/// A conversation as the page reads it.
#[derive(Serialize)]
struct Talk<'a> {
    events: &'a [Event],
    costs: &'a [(u32, f64)],
    details: ShownDetails<'a>,
}

/// Reads sessions.
pub(super) struct TalkReader<'a> {
    tools: &'a Tools,
    snapshot: &'a Snapshot,
    /// The span of time of the hours and the edits.
    range: TimeRange,
    call: &'a Call<'a>,
    /// The subagents, by the id of the parent.
    children: HashMap<&'a str, Vec<&'a StoredSession>>,
}

impl<'a> TalkReader<'a> {
    pub(super) fn new(
        tools: &'a Tools,
        snapshot: &'a Snapshot,
        range: TimeRange,
        call: &'a Call<'a>,
    ) -> Self {
        let mut children: HashMap<&str, Vec<&StoredSession>> = HashMap::new();
        for session in snapshot.sessions().iter().filter(|session| session.is_subagent) {
            if let Some(parent) = session.parent_session_id.as_deref() {
                children.entry(parent).or_default().push(session);
            }
        }
        Self { tools, snapshot, range, call, children }
    }

    /// Reads the sessions at these positions: those with a conversation, the latest first, and the
    /// rows of the others.
    pub(super) fn read_all(
        &self,
        positions: &[usize],
    ) -> Result<(Vec<SessionTalk>, Vec<Session>), ToolError> {
        let parts = in_parallel(positions, SESSIONS_AT_A_TIME, |part| {
            part.iter().map(|at| self.read_session(*at)).collect::<Result<Vec<_>, _>>()
        })?;
        let mut talks = Vec::new();
        let mut others = Vec::new();
        for (at, talk) in parts.into_iter().flatten() {
            if self.snapshot.sessions()[at].is_conversation {
                talks.push(talk);
            } else {
                others.push(talk.session);
            }
        }
        talks.sort_by(|a, b| {
            let key = |talk: &SessionTalk| talk.session.ended_at.clone();
            key(b).cmp(&key(a)).then_with(|| a.session.session_id.cmp(&b.session.session_id))
        });
        others.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        Ok((talks, others))
    }

    fn read_session(&self, at: usize) -> Result<(usize, SessionTalk), ToolError> {
        let (details, mut whole, rows) =
            self.tools.read_with_transcript(self.snapshot, at, self.call)?;
        let hours = self.count_hours(&whole.events);
        let edits = self.find_edits(&whole.events);
        let spawned = self.find_spawned(at, &rows).map_err(store_error)?;
        for event in &mut whole.events {
            let limit = match event.event_type {
                EventType::User | EventType::Message => MAX_MESSAGE_CHARS,
                EventType::Reasoning | EventType::ToolCall => MAX_CALL_CHARS,
                EventType::ToolResult => MAX_RESULT_CHARS,
                EventType::TokenUsage | EventType::Notification => MAX_NOTICE_CHARS,
            };
            cut_text(event, limit);
            if let Some(diff) = event.diff.as_mut().filter(|diff| !diff.text.is_empty()) {
                cut_diff(diff, MAX_DIFF_LINES);
                event.text = None;
            }
            event.source = None;
            event.git_branch = None;
            event.tool_call_id = None;
            // The page knows the session, and an id is the session with the index.
            event.event_id.clear();
            event.session_id.clear();
        }
        let talk = Talk {
            events: &whole.events,
            costs: &whole.costs,
            details: ShownDetails::new(details.summary.as_ref()),
        };
        let packed = PackedTalk::new(&whole.session.session_id, &talk)?;
        Ok((at, SessionTalk { session: details.session, packed, hours, edits, spawned }))
    }

    /// Returns true if an event is not copied history and in the span of time.
    fn is_counted(&self, event: &Event) -> bool {
        let time = event.timestamp.as_deref().and_then(Timestamp::parse).map(|time| time.0);
        !event.is_replay && self.range.includes(time)
    }

    /// Counts the prompts, answers and calls of each hour.
    fn count_hours(&self, events: &[Event]) -> Vec<HourCount> {
        let mut hours: BTreeMap<i64, u32> = BTreeMap::new();
        for event in events {
            let is_work = matches!(
                event.event_type,
                EventType::User | EventType::Message | EventType::ToolCall
            );
            let time = event.timestamp.as_deref().and_then(Timestamp::parse);
            if let Some(time) = time.filter(|_| is_work && self.is_counted(event)) {
                *hours.entry(time.0.div_euclid(MICROS_PER_HOUR)).or_default() += 1;
            }
        }
        hours.into_iter().map(|(hour, events)| HourCount { hour, events }).collect()
    }

    /// Returns the calls that changed a file.
    fn find_edits(&self, events: &[Event]) -> Vec<RecentEdit> {
        let mut edits = Vec::new();
        for event in events {
            let is_edit = event.event_type == EventType::ToolCall
                && matches!(event.tool_kind, Some(ToolKind::Edit | ToolKind::Write))
                && !event.files.is_empty();
            let has_failed =
                || linked_event(event, events).is_some_and(|result| result.is_error == Some(true));
            if is_edit && self.is_counted(event) && !has_failed() {
                edits.push(RecentEdit {
                    timestamp: event.timestamp.clone(),
                    event_id: event.event_id.clone(),
                    model: event.model.clone(),
                });
            }
        }
        edits
    }

    /// Returns the events that name subagents of the session at `at`, by the ids of these. The view
    /// `lineage` has the same rule: a result names whom its call started, and notices come later.
    fn find_spawned(
        &self,
        at: usize,
        rows: &[EventRow],
    ) -> Result<Vec<(String, String)>, StoreError> {
        let session_id = self.snapshot.sessions()[at].id();
        let Some(children) = self.children.get(session_id) else { return Ok(Vec::new()) };
        let mut naming: Vec<&EventRow> =
            rows.iter().filter(|event| event.spawned_agent_id.is_some()).collect();
        naming.sort_by_key(|event| {
            (event.is_sidechain, event.event_type == EventType::Notification, event.event_index)
        });

        let mut spawned = Vec::new();
        for child in children {
            let row = child.row()?;
            let names = [row.agent_id.as_deref(), row.native_id.as_deref()];
            let names_it = |event: &&&EventRow| names.contains(&event.spawned_agent_id.as_deref());
            if let Some(event) = naming.iter().find(names_it) {
                let index = u32::try_from(event.event_index).unwrap_or(0);
                spawned.push((row.session_id.clone(), EventId::format(session_id, index)));
            }
        }
        Ok(spawned)
    }
}

/// Keeps the beginning of the text of an event.
fn cut_text(event: &mut Event, chars: usize) {
    let Some(text) = &mut event.text else { return };
    if let Some((end, _)) = text.char_indices().nth(chars) {
        event.text_chars = Some(text.chars().count());
        text.truncate(end);
    }
}
