//! Parts of steps, and how they become events.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use schemas::{EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::shared::document::RecordSpan;
use crate::stream::{DecodedEvent, ModeWords, Stream, TitleFrom};

/// A response: the number of its trajectory in the document, and its number in it.
pub(super) type ResponseNumber = (usize, i64);

/// What becomes one event.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) kind: EventType,
    /// Where the step is; all of the document for a step of an embedded trajectory.
    pub(super) span: RecordSpan,
    /// The step of an embedded trajectory, or counts that are in no step: they identify the record in
    /// copies of the document.
    pub(super) content: Option<Rc<str>>,
    /// The index of the event that was exported as this part. `None` if another program wrote the
    /// document.
    pub(super) event_index: Option<i64>,
    /// The turn of that event.
    pub(super) turn_index: Option<i64>,
    /// True if the part is a prompt that begins a turn.
    pub(super) begins_turn: bool,
    /// `None` if the part belongs to no response.
    pub(super) response: Option<ResponseNumber>,
    pub(super) is_copied: bool,
    /// Set if a subagent wrote the part; with its id, if that is known.
    pub(super) sidechain: Option<Option<String>>,
    pub(super) text: String,
    pub(super) time: Option<i64>,
    pub(super) subtype: Option<String>,
    pub(super) model: Option<String>,
    pub(super) git_branch: Option<String>,
    pub(super) tool_name: Option<String>,
    pub(super) tool_call_id: Option<String>,
    pub(super) files: Vec<String>,
    pub(super) command: String,
    pub(super) spawned_agent_id: Option<String>,
    /// The embedded trajectories to which a result refers.
    pub(super) subagents: Vec<String>,
    pub(super) is_error: Option<bool>,
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: Option<i64>,
    pub(super) usage: Usage,
    pub(super) cost: Option<f64>,
    pub(super) request_id: Option<String>,
    pub(super) service_tier: Option<String>,
    pub(super) speed: Option<String>,
    pub(super) inference_geo: Option<String>,
}

impl Part {
    pub(super) fn new(kind: EventType, span: RecordSpan) -> Self {
        Self {
            kind,
            span,
            content: None,
            event_index: None,
            turn_index: None,
            begins_turn: false,
            response: None,
            is_copied: false,
            sidechain: None,
            text: String::new(),
            time: None,
            subtype: None,
            model: None,
            git_branch: None,
            tool_name: None,
            tool_call_id: None,
            files: Vec::new(),
            command: String::new(),
            spawned_agent_id: None,
            subagents: Vec::new(),
            is_error: None,
            exit_code: None,
            duration_ms: None,
            usage: Usage::default(),
            cost: None,
            request_id: None,
            service_tier: None,
            speed: None,
            inference_geo: None,
        }
    }

    pub(super) fn has_usage(&self) -> bool {
        !self.usage.is_unknown()
    }

    /// Returns whether the part is a result whose duration its log did not show.
    fn is_untimed_result(&self) -> bool {
        self.kind == EventType::ToolResult
            && self.event_index.is_some()
            && self.duration_ms.is_none()
    }

    fn decoded(&self) -> DecodedEvent<'_> {
        DecodedEvent {
            subtype: self.subtype.as_deref(),
            text: &self.text,
            tool_name: self.tool_name.as_deref(),
            tool_call_id: self.tool_call_id.as_deref(),
            files: &self.files,
            command: &self.command,
            spawned_agent_id: self.spawned_agent_id.as_deref(),
            is_error: self.is_error,
            exit_code: self.exit_code,
            duration_ms: self.duration_ms,
            usage: self.usage,
            cost: self.cost,
            mode: ModeWords {
                service_tier: self.service_tier.as_deref(),
                speed: self.speed.as_deref(),
                inference_geo: self.inference_geo.as_deref(),
            },
            request_id: self.request_id.as_deref(),
            timestamp: self.time,
        }
    }
}

/// The events of a subagent that is not a part of the session that embeds it.
pub(super) struct EmbeddedTrajectory {
    /// The id by which results refer to it.
    pub(super) id: String,
    pub(super) parts: Vec<Part>,
}

/// Puts the parts of a document that `sessions` wrote into the order of their events. The parts of
/// other documents stay as they are.
pub(super) fn sort_parts(parts: &mut [Part]) {
    if parts.iter().all(|part| part.event_index.is_some()) {
        parts.sort_by_key(|part| part.event_index);
    }
}

/// Puts what subagents did before the result that refers to each of them, and the others at the end.
pub(super) fn insert_subagents(parts: &mut Vec<Part>, separate: Vec<EmbeddedTrajectory>) {
    let mut waiting: VecDeque<_> = separate.into();
    if waiting.is_empty() {
        return;
    }
    let mut ordered = Vec::with_capacity(parts.len());
    for part in std::mem::take(parts) {
        for id in &part.subagents {
            if let Some(at) = waiting.iter().position(|own| own.id == *id) {
                ordered.extend(waiting.remove(at).map(|own| own.parts).unwrap_or_default());
            }
        }
        ordered.push(part);
    }
    ordered.extend(waiting.into_iter().flat_map(|own| own.parts));
    *parts = ordered;
}

/// Pushes parts to a stream.
pub(super) struct PartWriter<'b> {
    bytes: &'b [u8],
    /// The steps of the stream by response.
    steps: HashMap<ResponseNumber, i32>,
    /// The turn of the last exported event.
    turn_index: i64,
    /// The ranges of events on abandoned branches, by their last event.
    abandoned: HashMap<i64, i64>,
    /// The time of the last record that had one.
    last_time: Option<i64>,
    /// The numbers of records so far by the hash of their step. Each record of a step has an identity
    /// of its own.
    records: HashMap<u64, usize>,
}

/// Maximum number of turns or responses without events before one with events.
const MAX_GAP: i64 = 100;

impl<'b> PartWriter<'b> {
    /// Creates the writer for a document. `abandoned` are the ranges of events on abandoned branches,
    /// as `3-9,20-31`.
    pub(super) fn new(bytes: &'b [u8], abandoned: &str) -> Self {
        let mut by_end = HashMap::new();
        for range in abandoned.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
                by_end.insert(last, first);
            }
        }
        Self {
            bytes,
            steps: HashMap::new(),
            turn_index: 0,
            abandoned: by_end,
            last_time: None,
            records: HashMap::new(),
        }
    }

    pub(super) fn push_all(&mut self, parts: &[Part], out: &mut Stream) {
        let mut last: Option<&Part> = None;
        for part in parts {
            let is_same_record = last.is_some_and(|last| {
                last.span.offset == part.span.offset
                    && last.content == part.content
                    && last.time == part.time
                    && last.is_copied == part.is_copied
                    && last.sidechain == part.sidechain
            });
            // The time of a result without a duration was that of the record before.
            let has_time = !part.is_untimed_result() || part.time != self.last_time;
            if !is_same_record || !has_time {
                self.begin_record(part, has_time, out);
                // The next part has its own time.
                last = Some(part).filter(|_| has_time);
            }
            self.push_part(part, has_time, out);
        }
    }

    fn begin_record(&mut self, part: &Part, has_time: bool, out: &mut Stream) {
        let raw = match &part.content {
            Some(content) => content.as_bytes(),
            None => part.span.record_bytes(self.bytes),
        };
        // Times of copied history count only while there are no others.
        let time = part.time.filter(|_| has_time && !part.is_copied);
        let step = xxh3_64(raw);
        let records = self.records.entry(step).or_default();
        *records += 1;
        let later = [step.to_le_bytes(), (*records as u64).to_le_bytes()].concat();
        let identity = if *records == 1 { raw } else { &later };
        out.begin_record_by_content(part.span.position(), identity, time);
        if part.is_copied {
            out.set_copied(true);
        }
        if let Some(agent_id) = &part.sidechain {
            out.set_sidechain(agent_id.as_deref());
        }
        self.last_time = time.or(self.last_time);
    }

    fn push_part(&mut self, part: &Part, has_time: bool, out: &mut Stream) {
        out.set_model(part.model.as_deref());
        out.set_branch(part.git_branch.as_deref());
        self.begin_turns(part, out);
        if part.begins_turn {
            out.begin_turn();
            out.offer_title(TitleFrom::Prompt, &part.text);
        }
        let step = part.response.map_or(0, |response| self.step_of(response, part, out));
        let timestamp = part.time.filter(|_| has_time);
        out.push_in_step(part.kind, step, DecodedEvent { timestamp, ..part.decoded() });
        if let Some(index) = part.event_index
            && let Some(first) = self.abandoned.get(&index)
            && let Ok(first) = i32::try_from(*first)
        {
            out.abandon_from(first);
        }
    }

    /// Begins the turns up to that of an exported event.
    fn begin_turns(&mut self, part: &Part, out: &mut Stream) {
        let Some(turn) = part.turn_index else { return };
        let missing = (turn - self.turn_index).clamp(0, MAX_GAP);
        for _ in 0..missing {
            out.begin_turn();
        }
        self.turn_index = turn.max(self.turn_index);
    }

    /// Returns the step of a response, which begins with its first part. The responses of an export
    /// keep their numbers, also if some before had no events.
    fn step_of(&mut self, response: ResponseNumber, part: &Part, out: &mut Stream) -> i32 {
        if let Some(step) = self.steps.get(&response) {
            return *step;
        }
        let (trajectory, number) = response;
        let mut step = out.begin_step();
        let missing = (number - i64::from(step)).clamp(0, MAX_GAP);
        if trajectory == 0 && part.event_index.is_some() {
            for _ in 0..missing {
                step = out.begin_step();
            }
        }
        self.steps.insert(response, step);
        step
    }
}
