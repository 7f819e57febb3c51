//! Restores the output that a command printed before its result (`bash_progress`,
//! docs/formats.md#claude-code). The result leaves this output out if the command continues in the
//! background or printed too much.

use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::user::told;
use crate::stream::{Draft, RecordAt, Stream};
use crate::text::json::{Fields, Value};

/// Maximum length in bytes of the end of an output that is kept: the same limit as for any
/// notification.
const TAIL: usize = 16 << 10;

/// The output of the last command that reported its progress.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Printed(Option<Output>);

#[derive(Debug, Serialize, Deserialize)]
struct Output {
    call: String,
    /// The output with secrets masked, because it is stored with the checkpoint.
    text: String,
    /// Offset, length and line of the record.
    at: (u64, u64, u64),
}

impl Printed {
    /// Remembers the output in a `progress` record.
    pub(super) fn progress(&mut self, object: Value<'_>, at: RecordAt, out: &Stream) {
        let data = object.object("data");
        let text = data.and_then(|data| data.non_empty("fullOutput"));
        if let Some((call, text)) = object.non_empty("parentToolUseID").zip(text) {
            // Masks before cutting, because a secret is recognized by its beginning.
            let text = out.masked(text);
            let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL));
            self.0 = Some(Output {
                call: call.to_owned(),
                text: text[from..].to_owned(),
                at: (at.offset, at.length, at.line),
            });
        }
    }

    /// Adds the printed output after the result of its command, if the result does not show it.
    pub(super) fn answered(&mut self, object: Value<'_>, text: &mut String, out: &mut Stream) {
        let Some(printed) = &self.0 else { return };
        let blocks = object.object("message").map(|message| message.items("content"));
        let is_answer = |block: &Value<'_>| block.text("tool_use_id") == Some(&printed.call);
        let Some(result) = blocks.iter().flatten().find(|block| is_answer(block)) else { return };
        text.clear();
        told(object, *result, text);
        let last = printed.text.lines().rev().find(|line| !line.trim().is_empty());
        if last.is_some_and(|last| !out.masked(text).contains(last.trim())) {
            let (offset, length, line) = printed.at;
            out.place_at(RecordAt { offset, length, line });
            let subtype = Some("bash_output");
            let draft = Draft { subtype, text: &printed.text, ..Draft::default() };
            out.push(EventType::Notification, draft);
        }
        self.0 = None;
    }
}
