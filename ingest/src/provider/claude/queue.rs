//! Prompts typed while the agent works (`queue-operation`, docs/formats.md#claude-code).
//!
//! `enqueue` holds the text. Later, either a user record repeats the text (after `dequeue`), or
//! `remove` takes the prompt up in the middle of a turn. In the second case, versions before 2.1.90
//! record the text nowhere else. `popAll` moves the texts back to the input line.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::provider::shared::prompt;
use crate::stream::{RecordAt, Stream};
use crate::text::json::{Fields, Value};

/// Maximum number of waiting prompts that are remembered, and of prompts that were taken up.
const REMEMBERED: usize = 16;

/// Beginnings of queued texts that are not prompts: machines wrote them, or they run as commands.
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

/// The parts of the queue's state that later records need.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    waiting: VecDeque<Queued>,
    /// Texts that were turned into prompts by this decoder. Newer versions record them as
    /// attachments too.
    taken_up: VecDeque<String>,
    /// True if a prompt was dequeued and its user record has not come yet.
    #[serde(default)]
    dequeued: bool,
}

impl Queue {
    /// Applies a queue operation. A prompt that was taken up in the middle of a turn becomes a user
    /// event whose source is the record with its text.
    pub(super) fn operation(&mut self, object: Value<'_>, at: RecordAt, out: &mut Stream) {
        match object.text("operation") {
            Some("enqueue") => {
                if self.waiting.len() == REMEMBERED {
                    self.waiting.pop_front();
                }
                // The text is masked because it is stored with the decoder's state.
                let text = out.masked(object.text("content").unwrap_or("")).into_owned();
                let RecordAt { offset, length, line } = at;
                self.waiting.push_back(Queued { text, offset, length, line });
            }
            Some("popAll") => self.waiting.clear(),
            Some("dequeue") => self.dequeued = true,
            Some("remove") => {
                // The record does not name the removed text: the user's prompts go before a
                // machine's texts.
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

    /// Stops waiting for the prompt that a user record repeats. Returns true if the prompt already
    /// became an event: in that case the removed text was a machine's, and the user's prompt was
    /// dequeued.
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

    /// Handles an answer: a dequeued prompt comes before it, so none is expected any longer.
    pub(super) fn answered(&mut self) {
        self.dequeued = false;
    }

    /// Stops waiting for an attached prompt. Returns true if the prompt already became an event.
    pub(super) fn attached(&mut self, text: &str, out: &Stream) -> bool {
        let text = out.masked(text);
        if let Some(at) = self.waiting.iter().position(|queued| queued.text == text) {
            self.waiting.remove(at);
        }
        self.taken_up.iter().any(|taken| *taken == text)
    }
}
