//! Tracks prompts typed while the agent works (`queue-operation`, docs/formats.md#claude-code).
//!
//! `enqueue` holds the text. Later, either a user record repeats the text (after `dequeue`), or
//! `remove` takes the prompt up in the middle of a turn. In the second case, versions before 2.1.90
//! record the text nowhere else. `popAll` moves the texts back to the input line.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::provider::shared::prompt;
use crate::stream::{RecordAt, Stream};
use crate::text::json::{JsonFields, Value};

/// Maximum number of waiting prompts that are remembered, and of prompts that were taken up.
const MAX_REMEMBERED_PROMPTS: usize = 16;

/// Beginnings of queued texts that are not prompts: machines wrote them, or they run as commands.
const NON_PROMPT_PREFIXES: &[&str] =
    &["/", "{\"task_id\"", "<task-notification", "<agent-notification"];

#[derive(Debug, Clone, Serialize, Deserialize)]
struct QueuedText {
    text: String,
    offset: u64,
    length: u64,
    line: u64,
}

impl QueuedText {
    fn is_prompt(&self) -> bool {
        let text = self.text.trim_start();
        !text.is_empty() && !NON_PROMPT_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
    }
}

/// The parts of the queue's state that later records need.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PromptQueue {
    waiting: VecDeque<QueuedText>,
    /// Texts that were turned into prompts by this decoder. Newer versions record them as
    /// attachments too.
    taken_up: VecDeque<String>,
    /// True if a prompt was dequeued and its user record has not come yet.
    #[serde(default)]
    dequeued: bool,
}

impl PromptQueue {
    /// Applies a queue operation. A prompt that was taken up in the middle of a turn becomes a user
    /// event whose source is the record with its text.
    pub(super) fn apply_operation(&mut self, object: Value<'_>, at: RecordAt, out: &mut Stream) {
        match object.text("operation") {
            Some("enqueue") => {
                if self.waiting.len() == MAX_REMEMBERED_PROMPTS {
                    self.waiting.pop_front();
                }
                // The text is masked because it is stored with the decoder's state.
                let text = out.clean_and_mask(object.text("content").unwrap_or("")).into_owned();
                let RecordAt { offset, length, line } = at;
                self.waiting.push_back(QueuedText { text, offset, length, line });
            }
            Some("popAll") => self.waiting.clear(),
            Some("dequeue") => self.dequeued = true,
            Some("remove") => self.take_up(out),
            _ => {}
        }
    }

    /// Turns a removed text into a prompt. The record does not name the text. The user's prompts
    /// are removed before the texts of machines.
    fn take_up(&mut self, out: &mut Stream) {
        let Some(at) = self.waiting.iter().position(QueuedText::is_prompt) else {
            self.waiting.pop_front();
            return;
        };
        let Some(queued) = self.waiting.remove(at) else { return };
        out.set_position(RecordAt {
            offset: queued.offset,
            length: queued.length,
            line: queued.line,
        });
        prompt::push_prompt(&queued.text, true, out);

        if self.taken_up.len() == MAX_REMEMBERED_PROMPTS {
            self.taken_up.pop_front();
        }
        self.taken_up.push_back(queued.text);
    }

    /// Stops waiting for the prompt that a user record repeats. Returns true if the prompt already
    /// became an event: in that case the removed text was a machine's, and the user's prompt was
    /// dequeued.
    pub(super) fn match_user_record(&mut self, object: Value<'_>, out: &Stream) -> bool {
        if self.waiting.is_empty() && !self.dequeued {
            return false;
        }
        let Some(message) = object.object("message") else { return false };
        let text = message
            .text("content")
            .or_else(|| message.items("content").iter().find_map(|block| block.text("text")));
        let Some(text) = text else { return false };

        let text = out.clean_and_mask(text);
        let was_dequeued = std::mem::take(&mut self.dequeued);
        if let Some(at) = self.waiting.iter().position(|queued| queued.text == text) {
            self.waiting.remove(at);
            return false;
        }
        if !was_dequeued {
            return false;
        }
        let Some(at) = self.taken_up.iter().position(|taken| *taken == text) else { return false };
        self.taken_up.remove(at);
        true
    }

    /// Handles an answer. A dequeued prompt comes before it, so none is expected any longer.
    pub(super) fn forget_dequeued(&mut self) {
        self.dequeued = false;
    }

    /// Stops waiting for an attached prompt. Returns true if the prompt already became an event.
    pub(super) fn match_attachment(&mut self, text: &str, out: &Stream) -> bool {
        let text = out.clean_and_mask(text);
        if let Some(at) = self.waiting.iter().position(|queued| queued.text == text) {
            self.waiting.remove(at);
        }
        self.taken_up.iter().any(|taken| *taken == text)
    }
}
