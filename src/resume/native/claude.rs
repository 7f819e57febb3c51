//! Writes a conversation as a log of Claude Code (docs/formats.md#claude-code).

use serde_json::{Value, json};

use super::conversation::{CopiedContent, CopiedConversation};
use super::new_session::{NewSession, RecordIds, name_continued, time_text};

/// The version that the records name: the one that the copies were tested with.
const VERSION: &str = "2.1.197";

/// Returns the records of the log.
pub(super) fn write_records(conversation: &CopiedConversation, new: &NewSession<'_>) -> Vec<Value> {
    let mut log = ClaudeLog { conversation, new, ids: RecordIds::default(), records: Vec::new() };
    for part in &conversation.parts {
        let id = part.identity;
        match &part.content {
            CopiedContent::Notice(text) => {
                log.push(id, part.time, "user", json!({ "role": "user", "content": text }));
                // The model gets it, and no screen shows it.
                if let Some(record) = log.records.last_mut() {
                    record["isMeta"] = true.into();
                }
            }
            CopiedContent::Prompt(text) => {
                log.push(id, part.time, "user", json!({ "role": "user", "content": text }));
            }
            CopiedContent::Answer(text) => {
                let block = json!({ "type": "text", "text": text });
                log.push_response(id, part.time, block, "end_turn");
            }
            CopiedContent::Call(call) => {
                let block = json!({
                    "type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments,
                });
                log.push_response(id, part.time, block, "tool_use");
                let mut result = json!({
                    "type": "tool_result", "tool_use_id": call.id, "content": call.result,
                });
                if call.is_error {
                    result["is_error"] = true.into();
                }
                let message = json!({ "role": "user", "content": [result] });
                log.push(id, call.ended_at, "user", message);
            }
        }
    }
    let title = json!({
        "type": "custom-title", "customTitle": conversation.title, "sessionId": new.id,
    });
    log.records.push(title);
    log.records
}

struct ClaudeLog<'a> {
    conversation: &'a CopiedConversation,
    new: &'a NewSession<'a>,
    ids: RecordIds,
    records: Vec<Value>,
}

impl ClaudeLog<'_> {
    fn push_response(&mut self, identity: u64, time: i64, block: Value, stop_reason: &str) {
        let message = json!({
            "id": format!("msg_copied_{}", self.records.len()),
            "type": "message",
            "role": "assistant",
            "model": self.conversation.model.as_deref().unwrap_or("unknown"),
            "content": [block],
            "stop_reason": stop_reason,
            "stop_sequence": null,
            "usage": { "input_tokens": 0, "output_tokens": 0 },
        });
        self.push(identity, time, "assistant", message);
    }

    fn push(&mut self, identity: u64, time: i64, kind: &str, message: Value) {
        let parent = self.records.last().map_or(Value::Null, |record| record["uuid"].clone());
        let mut record = json!({
            "parentUuid": parent,
            "isSidechain": false,
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.new.folder,
            "sessionId": self.new.id,
            "version": VERSION,
            "type": kind,
            "message": message,
            "uuid": self.ids.next(identity),
            "timestamp": time_text(time),
        });
        if let Some(branch) = &self.conversation.branch {
            record["gitBranch"] = branch.as_str().into();
        }
        if self.records.is_empty() {
            name_continued(&mut record, &self.conversation.session_id);
        }
        self.records.push(record);
    }
}
