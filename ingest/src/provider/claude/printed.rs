//! Restores the output that a command printed before its result (`bash_progress`,
//! docs/formats.md#claude-code). The result leaves this output out if the command continues in the
//! background or printed too much.

use serde::{Deserialize, Serialize};

use super::user::append_result_text;
use crate::stream::{RecordAt, Stream};
use crate::text::json::{JsonFields, Value};

/// Maximum length in bytes of the end of an output that is kept. The limit is the same as for any
/// notification.
const MAX_TAIL_BYTES: usize = 16 << 10;

/// The output of the last command that reported its progress.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PrintedOutput(Option<CommandOutput>);

#[derive(Debug, Serialize, Deserialize)]
struct CommandOutput {
    /// Id of the call that ran the command.
    call: String,
    /// The output with secrets masked, because it is stored with the checkpoint.
    text: String,
    /// Offset, length and line of the record.
    at: (u64, u64, u64),
}

impl PrintedOutput {
    /// Returns whether no output is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Remembers the output in a `progress` record.
    pub(super) fn remember_output(&mut self, object: Value<'_>, at: RecordAt, out: &Stream) {
        let data = object.object("data");
        let text = data.and_then(|data| data.non_empty("fullOutput"));
        if let Some((call, text)) = object.non_empty("parentToolUseID").zip(text) {
            // Masks before cutting, because a secret is recognized by its beginning.
            let text = out.clean_and_mask(text);
            let tail_start = text.ceil_char_boundary(text.len().saturating_sub(MAX_TAIL_BYTES));
            self.0 = Some(CommandOutput {
                call: call.to_owned(),
                text: text[tail_start..].to_owned(),
                at: (at.offset, at.length, at.line),
            });
        }
    }

    /// Adds the printed output after the result of its command, if the result does not show it.
    pub(super) fn push_missing_output(
        &mut self,
        object: Value<'_>,
        text: &mut String,
        out: &mut Stream,
    ) {
        let Some(printed) = &self.0 else { return };
        let Some(message) = object.object("message") else { return };
        let call = Some(printed.call.as_str());
        let blocks = message.items("content");
        let Some(result) = blocks.iter().find(|block| block.text("tool_use_id") == call) else {
            return;
        };

        text.clear();
        append_result_text(object, *result, text);
        let last = printed.text.lines().rev().find(|line| !line.trim().is_empty());
        if last.is_some_and(|last| !out.clean_and_mask(text).contains(last.trim())) {
            let (offset, length, line) = printed.at;
            out.set_position(RecordAt { offset, length, line });
            out.push_notification("bash_output", &printed.text);
        }
        self.0 = None;
    }
}
