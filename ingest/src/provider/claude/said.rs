//! Recognizes records by what they say. A resumed log may repeat another one with new uuids, and a
//! log may repeat its own responses (docs/formats.md#claude-code). The id of a response stays.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::ClaudeDecoder;
use super::response::{ResponseLine, request_id};
use crate::stream::Stream;
use crate::text::json::{JsonFields, Value, string_value};

/// Fields of a content block that distinguish it from other blocks.
const BLOCK_FIELDS: [&str; 7] =
    ["type", "text", "thinking", "signature", "id", "tool_use_id", "data"];

impl ClaudeDecoder {
    /// Sets the identity of what a record says, and marks the record as copied if another log that
    /// this one may repeat says the same, or if this log has said it.
    pub(super) fn detect_said_copy(&mut self, object: Value<'_>, out: &mut Stream) {
        let Some(message) = object.object("message") else { return };
        let response = match object.text("type") {
            Some("assistant") => message.non_empty("id"),
            Some("user") => None,
            _ => return,
        };
        let is_response = response.is_some();
        let context = response.or(self.state.last_response.as_deref()).unwrap_or("");
        let said = hash_content(message, xxh3_64(context.as_bytes())) | 1;
        if let Some(id) = response
            && self.state.last_response.as_deref() != Some(id)
        {
            self.state.last_response = Some(id.to_owned());
        }
        out.set_copy_hash(said);

        // A log whose first record is a copy with a new uuid has new uuids throughout.
        let is_copied = out.is_record_copied();
        let is_in_history = out.is_in_history(said);
        let has_new_ids = *self.state.has_new_ids.get_or_insert(!is_copied && is_in_history);
        if is_copied {
            return;
        }
        let may_repeat_itself = is_response || self.state.repeats_itself;
        let is_repeat =
            may_repeat_itself && out.has_read(said) && !self.continues_response(object, message);
        if is_response {
            self.state.repeats_itself = is_repeat;
        }
        if is_repeat || is_in_history && (is_response || has_new_ids) {
            out.set_copied(true);
        }
    }

    /// Returns whether a line has larger counts than earlier lines of its response.
    fn continues_response(&self, object: Value<'_>, message: Value<'_>) -> bool {
        let id = request_id(object, message);
        let known = id.and_then(|id| self.find_response(&id));
        self.has_larger_counts(message, known)
    }

    /// Returns the index of a remembered response.
    fn find_response(&self, id: &str) -> Option<usize> {
        self.state.messages.iter().rposition(|message| message.id == id)
    }

    /// Returns the response that a line belongs to. If it is a new one, begins a step.
    pub(super) fn response_line(
        &self,
        object: Value<'_>,
        message: Value<'_>,
        out: &mut Stream,
    ) -> ResponseLine {
        let id = request_id(object, message);
        let known = id.as_ref().and_then(|id| self.find_response(id));
        let step = match known {
            Some(at) => self.state.messages[at].step,
            None => out.begin_step(),
        };
        ResponseLine { id, known, step }
    }
}

/// Returns a hash of the content of a message.
fn hash_content(message: Value<'_>, seed: u64) -> u64 {
    let Some(content) = message.field("content") else { return seed };
    if let Some(text) = string_value(content) {
        return xxh3_64_with_seed(text.as_bytes(), seed);
    }
    let mut hash = seed;
    for block in message.items("content") {
        for field in BLOCK_FIELDS {
            if let Some(value) = block.text(field) {
                hash = xxh3_64_with_seed(value.as_bytes(), hash ^ field.len() as u64);
            }
        }
    }
    hash
}
