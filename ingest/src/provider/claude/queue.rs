//! Prompts typed while the agent works (`queue-operation`, docs/formats.md#claude-code).
//!
//! `enqueue` holds the text. Then either a user record repeats the text (after `dequeue`), or
//! `remove` does: the prompt was taken up in the middle of a turn and, before version 2.1.90,
//! stands nowhere else. `popAll` gives the texts back to the input line.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::json::{Fields, Value};
use crate::provider::prompt;
use crate::stream::{RecordAt, Stream};

/// Prompts waiting, and taken up, that are remembered.
const REMEMBERED: usize = 16;

/// Beginnings of texts that are queued by machines, or run as commands.
const NO_PROMPTS: &[&str] = &["/", "{\"task_id\"", "<task-notification", "<agent-notification"];

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Queued {
    text: String,
    offset: u64,
    length: u64,
    line: u64,
}

impl Queued {
    fn is_prompt(&self) -> bool {
        let text = self.text.trim_start();
        !text.is_empty() && !NO_PROMPTS.iter().any(|start| text.starts_with(start))
    }
}

/// The queue as far as it matters later.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    waiting: VecDeque<Queued>,
    /// Texts that became prompts here; newer versions attach them as well.
    taken_up: VecDeque<String>,
    /// A prompt is on its way to a user record.
    #[serde(default)]
    dequeued: bool,
}

impl Queue {
    /// A queue-operation: a prompt that was taken up in mid-turn becomes a user event, with the
    /// record that holds its text as its source.
    pub(super) fn operation(&mut self, object: Value<'_>, at: RecordAt, out: &mut Stream) {
        match object.text("operation") {
            Some("enqueue") => {
                if self.waiting.len() == REMEMBERED {
                    self.waiting.pop_front();
                }
                // It is saved with the decoder's state, and that is kept.
                let text = out.masked(object.text("content").unwrap_or("")).into_owned();
                let RecordAt { offset, length, line } = at;
                self.waiting.push_back(Queued { text, offset, length, line });
            }
            Some("popAll") => self.waiting.clear(),
            Some("dequeue") => self.dequeued = true,
            Some("remove") => {
                // It does not say which: a person's words go before a machine's.
                let Some(at) = self.waiting.iter().position(Queued::is_prompt) else {
                    self.waiting.pop_front();
                    return;
                };
                let Some(queued) = self.waiting.remove(at) else { return };
                out.place_at(RecordAt {
                    offset: queued.offset,
                    length: queued.length,
                    line: queued.line,
                });
                prompt::typed(&queued.text, true, out);
                if self.taken_up.len() == REMEMBERED {
                    self.taken_up.pop_front();
                }
                self.taken_up.push_back(queued.text);
            }
            _ => {}
        }
    }

    /// A user record: what it repeats waits no longer. True when it was given as an event already:
    /// what was removed was a machine's, and the person's prompt was dequeued.
    pub(super) fn sent(&mut self, object: Value<'_>, out: &Stream) -> bool {
        if self.waiting.is_empty() && !self.dequeued {
            return false;
        }
        let Some(message) = object.object("message") else { return false };
        let first_text = || message.items("content").iter().find_map(|block| block.text("text"));
        let Some(text) = message.text("content").or_else(first_text) else { return false };
        let text = out.masked(text);
        let dequeued = std::mem::take(&mut self.dequeued);
        if let Some(at) = self.waiting.iter().position(|queued| queued.text == text) {
            self.waiting.remove(at);
            return false;
        }
        let known = self.taken_up.iter().position(|taken| *taken == text).filter(|_| dequeued);
        known.is_some_and(|at| self.taken_up.remove(at).is_some())
    }

    /// An answer: what was dequeued stands before it.
    pub(super) fn answered(&mut self) {
        self.dequeued = false;
    }

    /// An attached prompt: true when it was given as an event already.
    pub(super) fn attached(&mut self, text: &str, out: &Stream) -> bool {
        let text = out.masked(text);
        if let Some(at) = self.waiting.iter().position(|queued| queued.text == text) {
            self.waiting.remove(at);
        }
        self.taken_up.iter().any(|taken| *taken == text)
    }
}
