//! What a command had printed before its result: the result of one that goes on in the background,
//! or that printed too much, leaves it out (`bash_progress`, docs/formats.md#claude-code).

use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::user::told;
use crate::json::{Fields, Value};
use crate::stream::{Draft, RecordAt, Stream};

/// How much of the end of an output is kept, in bytes: as much as of any notification.
const TAIL: usize = 16 << 10;

/// The output of the last command that told of its progress.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Printed(Option<Output>);

#[derive(Debug, Serialize, Deserialize)]
struct Output {
    call: String,
    /// Without secrets, as it is kept beside the checkpoint.
    text: String,
    /// Offset, length and line of the record.
    at: (u64, u64, u64),
}

impl Printed {
    /// Notes what a `progress` record tells.
    pub(super) fn progress(&mut self, object: Value<'_>, at: RecordAt, out: &Stream) {
        let data = object.object("data");
        let text = data.and_then(|data| data.non_empty("fullOutput"));
        if let Some((call, text)) = object.non_empty("parentToolUseID").zip(text) {
            // A key is known by its beginning.
            let text = out.masked(text);
            let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL));
            self.0 = Some(Output {
                call: call.to_owned(),
                text: text[from..].to_owned(),
                at: (at.offset, at.length, at.line),
            });
        }
    }

    /// Adds what was printed behind the result of the command, where that does not show it.
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
