//! The decoder that the three dialects share: its state, and what all of them do with it.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use schemas::{EventType, Usage};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::beside;
use crate::provider::format::Outcome;
use crate::provider::shared::agents::AgentLogs;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Parser, Value};
use crate::text::render;

/// Most prompts remembered until the record that repeats them.
const PROMPTS: usize = 16;

/// The decoder state that is kept between the records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// Model responses under way. The key is "" for the main agent. For a subagent inside the
    /// log it is the subagent's id or the call that started it.
    pub(super) steps: BTreeMap<String, i32>,
    /// Hashes of prompts whose message is still to come.
    pub(super) prompts: VecDeque<u64>,
    /// The last response of each agent: its id and its tokens.
    pub(super) ended: BTreeMap<String, (String, Usage)>,
    /// Count of prompts in effect. Undoing one makes the records that follow it a branch.
    pub(super) depth: u64,
}

/// The decoder shared by the three dialects.
#[derive(Default)]
pub(super) struct Decoder {
    pub(super) state: State,
    pub(super) text: String,
    /// Decodes JSON inside strings.
    pub(super) inner: Parser,
    /// True if the files next to the log were read.
    pub(super) looked: bool,
    pub(super) agents: AgentLogs,
}

impl Decoder {
    /// Passes the content of the files next to the log to the stream, once per reading.
    pub(super) fn look(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.looked, true) {
            beside::of(Path::new(&out.session.source_path)).tell(out);
        }
    }

    /// Returns the step of an agent's response; begins one if none is under way.
    pub(super) fn step(&mut self, agent: &str, out: &mut Stream) -> i32 {
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

    /// Appends a prompt that the user typed.
    pub(super) fn prompt(&mut self, text: &str, out: &mut Stream) {
        out.branch(self.state.depth);
        self.state.depth += 1;
        self.end_step("");
        let (context, typed) = git_context(text);
        if let Some(context) = context {
            told("git-context", context, out);
        }
        out.prompt(typed);
    }

    /// Remembers a prompt whose message is still to come.
    pub(super) fn expect(&mut self, text: &str) {
        if self.state.prompts.len() == PROMPTS {
            self.state.prompts.pop_front();
        }
        self.state.prompts.push_back(xxh3_64(text.as_bytes()));
    }

    /// True if a message repeats a remembered prompt, which is then forgotten.
    pub(super) fn expected(&mut self, text: &str) -> bool {
        let hash = xxh3_64(text.as_bytes());
        let found = self.state.prompts.iter().position(|known| *known == hash);
        found.and_then(|at| self.state.prompts.remove(at)).is_some()
    }

    /// Appends a record without a rule of its own as a notification with its fields as text.
    pub(super) fn notify(
        &mut self,
        subtype: &str,
        record: Value<'_>,
        skip: &[&str],
        out: &mut Stream,
    ) -> Outcome {
        self.text.clear();
        render::fields(record, skip, &mut self.text);
        let failed = record.non_empty("error").is_some() || record.object("error").is_some();
        let draft = Draft {
            subtype: Some(subtype),
            text: &self.text,
            is_error: failed.then_some(true),
            duration_ms: record.int("durationMs").or_else(|| record.int("duration_ms")),
            ..Draft::default()
        };
        out.push(EventType::Notification, draft);
        Outcome::Events
    }
}

/// Splits a text into the repository state at its beginning and the words of the parent agent.
fn git_context(text: &str) -> (Option<&str>, &str) {
    let inside = text.strip_prefix("<git-context>");
    match inside.and_then(|inside| inside.split_once("</git-context>")) {
        Some((context, typed)) => (Some(context.trim()), typed.trim_start()),
        None => (None, text),
    }
}

/// Appends a notification with a text.
pub(super) fn told(subtype: &str, text: &str, out: &mut Stream) -> Outcome {
    let draft = Draft { subtype: Some(subtype), text, ..Draft::default() };
    out.push(EventType::Notification, draft);
    Outcome::Events
}
