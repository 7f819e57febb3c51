//! Tracks prompts typed while the agent works (`queue-operation`, docs/formats.md#claude-code).
//!
//! `enqueue` holds the text. Later, either `dequeue` takes the text out and a user record repeats
//! it, perhaps with other words such as those of a command, or `remove` takes the prompt up in the middle of a turn. In the second case, versions before 2.1.90
//! record the text nowhere else. `popAll` moves the texts back to the input line.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{machine, user};
use crate::provider::shared::machine_text::skip_machine_texts;
use crate::stream::{RecordAt, Stream, push_bounded};
use crate::text::json::{JsonFields, Value};

/// Maximum number of waiting prompts that are remembered, and of prompts that were taken up.
const MAX_REMEMBERED_PROMPTS: usize = 16;

/// Beginning of a queued notification in a form that only the queue has.
const QUEUED_TASK: &str = "{\"task_id\"";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct QueuedText {
    text: String,
    offset: u64,
    length: u64,
    line: u64,
}

impl QueuedText {
    /// Returns whether the user queued this. The text of a picture is empty.
    fn is_typed(&self) -> bool {
        let text = self.text.trim_start();
        text.is_empty()
            || !text.starts_with(QUEUED_TASK)
                && !skip_machine_texts(machine::TEXTS, text).is_empty()
    }

    /// Returns whether this is a prompt, not a command.
    fn is_prompt(&self) -> bool {
        let text = self.text.trim_start();
        self.is_typed() && !text.is_empty() && !text.starts_with('/')
    }
}

/// The parts of the queue's state that later records need.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PromptQueue {
    waiting: VecDeque<QueuedText>,
    /// Texts that were turned into prompts by this decoder. Newer versions record them as
    /// attachments too.
    taken_up: VecDeque<String>,
    /// Texts that were taken out, whose user records have not come yet.
    #[serde(default)]
    taken_out: VecDeque<QueuedText>,
}

impl PromptQueue {
    /// Returns whether nothing is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.taken_up.is_empty() && self.taken_out.is_empty()
    }

    /// Applies a queue operation. A prompt that was taken up in the middle of a turn becomes a user
    /// event whose source is the record with its text.
    pub(super) fn apply_operation(&mut self, object: Value<'_>, at: RecordAt, out: &mut Stream) {
        match object.text("operation") {
            Some("enqueue") => {
                // The text is masked because it is stored with the decoder's state.
                let text = out.clean_and_mask(object.text("content").unwrap_or("")).into_owned();
                let RecordAt { offset, length, line } = at;
                push_bounded(
                    &mut self.waiting,
                    MAX_REMEMBERED_PROMPTS,
                    QueuedText { text, offset, length, line },
                );
            }
            Some("popAll") => self.waiting.clear(),
            Some("dequeue") => self.take_out(),
            Some("remove") => self.take_up(out),
            _ => {}
        }
    }

    /// Takes out a text for the next turn. The record does not name the text. The user's texts come
    /// before those of machines.
    fn take_out(&mut self) {
        let first_typed = self.waiting.iter().position(QueuedText::is_typed);
        let Some(queued) = self.waiting.remove(first_typed.unwrap_or(0)) else { return };
        push_bounded(&mut self.taken_out, MAX_REMEMBERED_PROMPTS, queued);
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
        user::push_user_text(&queued.text, None, true, out);

        push_bounded(&mut self.taken_up, MAX_REMEMBERED_PROMPTS, queued.text);
    }

    /// Stops waiting for the prompt that a user record repeats. Returns true if the prompt already
    /// became an event: in that case the removed text was a machine's, and the user's prompt was
    /// dequeued.
    pub(super) fn match_user_record(&mut self, object: Value<'_>, out: &Stream) -> bool {
        if self.waiting.is_empty() && self.taken_out.is_empty() {
            return false;
        }
        let Some(message) = object.object("message") else { return false };
        let text = message
            .text("content")
            .or_else(|| message.items("content").iter().find_map(|block| block.text("text")));
        let Some(text) = text else { return false };

        let text = out.clean_and_mask(text);
        if let Some(at) = self.taken_out.iter().position(|queued| queued.text == text) {
            self.taken_out.remove(at);
            return false;
        }
        if let Some(at) = self.waiting.iter().position(|queued| queued.text == text) {
            self.waiting.remove(at);
            // This text was taken out, so the one that seemed to be still waits.
            if let Some(other) = self.taken_out.pop_front() {
                self.waiting.push_front(other);
            }
            return false;
        }
        // The record repeats the oldest text that was taken out, in other words.
        if self.taken_out.pop_front().is_none() {
            return false;
        }
        let Some(at) = self.taken_up.iter().position(|taken| *taken == text) else { return false };
        self.taken_up.remove(at);
        true
    }

    /// Handles an answer. A prompt that was taken out comes before it, so none is expected any
    /// longer.
    pub(super) fn forget_taken_out(&mut self) {
        self.taken_out.clear();
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
