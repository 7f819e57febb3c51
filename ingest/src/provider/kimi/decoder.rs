//! Holds the state of a decoder and the operations that the three dialects share.

use std::collections::{BTreeMap, VecDeque};

use schemas::{EventType, Usage};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::sidecar::SessionFacts;
use crate::provider::format::RecordOutcome;
use crate::provider::shared::agents::AgentLogs;
use crate::stream::{DecodedEvent, Stream, push_bounded};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

/// Maximum number of prompts that are remembered until the record that repeats them.
const MAX_PROMPTS: usize = 16;

/// The decoder state that is kept between the records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct KimiState {
    /// Model responses under way. The key is "" for the main agent. For a subagent inside the
    /// log it is the subagent's id or the call that started it.
    pub(super) steps: BTreeMap<String, i32>,
    /// Hashes of prompts whose message is still to come.
    pub(super) prompts: VecDeque<u64>,
    /// The last response of each agent: its id and its tokens.
    pub(super) ended: BTreeMap<String, (String, Usage)>,
    /// Count of prompts in effect. Undoing one makes the records that follow it a branch.
    pub(super) depth: u64,
    /// True once a record was read.
    #[serde(default)]
    pub(super) has_begun: bool,
    /// Fingerprint of the facts next to the log when its first record was read. `None` if there
    /// were none.
    #[serde(default)]
    pub(super) facts: Option<u64>,
}

/// The decoder shared by the three dialects.
#[derive(Default)]
pub(super) struct KimiDecoder {
    pub(super) state: KimiState,
    /// Text of the current record.
    pub(super) text: String,
    /// Decodes JSON inside strings.
    pub(super) inner: Parser,
    /// The content of the files next to the log.
    pub(super) facts: SessionFacts,
    /// The subagents that have a log of their own.
    pub(super) agents: AgentLogs,
}

impl KimiDecoder {
    /// Passes the content of the files next to the log to the stream, once per log.
    pub(super) fn apply_facts_once(&mut self, out: &mut Stream) {
        if std::mem::replace(&mut self.state.has_begun, true) {
            return;
        }
        self.state.facts = self.facts.fingerprint();
        self.facts.apply_to(out);
    }

    /// Returns the step of an agent's response. Begins a step if no response is under way.
    pub(super) fn ensure_step(&mut self, agent: &str, out: &mut Stream) -> i32 {
        if let Some(step) = self.state.steps.get(agent) {
            return *step;
        }
        let step = out.begin_step();
        self.state.steps.insert(agent.to_owned(), step);
        step
    }

    /// Returns the step of an agent's last response, or 0 if there is none.
    pub(super) fn last_step(&self, agent: &str) -> i32 {
        self.state.steps.get(agent).copied().unwrap_or_default()
    }

    /// Ends an agent's response, so that its next output begins another.
    pub(super) fn end_step(&mut self, agent: &str) {
        self.state.steps.remove(agent);
    }

    /// Pushes a prompt that the user typed.
    pub(super) fn push_prompt(&mut self, text: &str, out: &mut Stream) {
        out.link_to_parent(self.state.depth);
        self.state.depth += 1;
        self.end_step("");

        let (context, typed) = split_git_context(text);
        if let Some(context) = context {
            push_notification("git-context", context, out);
        }
        out.push_prompt(typed);
    }

    /// Remembers a prompt whose message is still to come.
    pub(super) fn remember_prompt(&mut self, text: &str) {
        push_bounded(&mut self.state.prompts, MAX_PROMPTS, xxh3_64(text.as_bytes()));
    }

    /// Returns whether a message repeats a remembered prompt, and forgets that prompt.
    pub(super) fn take_expected_prompt(&mut self, text: &str) -> bool {
        let hash = xxh3_64(text.as_bytes());
        let Some(at) = self.state.prompts.iter().position(|known| *known == hash) else {
            return false;
        };
        self.state.prompts.remove(at);
        true
    }

    /// Pushes a notification with the fields of `record`, except those in `skip`, as its text.
    pub(super) fn push_record_fields(
        &mut self,
        subtype: &str,
        record: Value<'_>,
        skip: &[&str],
        out: &mut Stream,
    ) -> RecordOutcome {
        self.text.clear();
        render::append_notification(record, skip, &mut self.text);
        let has_error = record.non_empty("error").is_some() || record.object("error").is_some();
        let decoded = DecodedEvent {
            subtype: Some(subtype),
            text: &self.text,
            is_error: has_error.then_some(true),
            duration_ms: record.int("durationMs").or_else(|| record.int("duration_ms")),
            ..DecodedEvent::default()
        };
        out.push(EventType::Notification, decoded);
        RecordOutcome::Events
    }
}

/// Splits a text into the repository state at its beginning and the remaining text.
fn split_git_context(text: &str) -> (Option<&str>, &str) {
    let inside = text.strip_prefix("<git-context>");
    match inside.and_then(|inside| inside.split_once("</git-context>")) {
        Some((context, typed)) => (Some(context.trim()), typed.trim_start()),
        None => (None, text),
    }
}

/// Pushes a notification with a text.
pub(super) fn push_notification(subtype: &str, text: &str, out: &mut Stream) -> RecordOutcome {
    out.push_notification(subtype, text);
    RecordOutcome::Events
}
