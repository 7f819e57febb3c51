//! Writes a conversation as a log of Pi (docs/formats.md#pi).

use serde_json::{Value, json};

use super::conversation::{CopiedContent, CopiedConversation};
use super::new_session::{NewSession, RecordIds, name_continued, time_text};

/// The version of the format.
const VERSION: u8 = 3;

/// Returns the entries of the log.
pub(super) fn write_records(conversation: &CopiedConversation, new: &NewSession<'_>) -> Vec<Value> {
    let mut header = json!({
        "type": "session",
        "version": VERSION,
        "id": new.id,
        "timestamp": time_text(new.now),
        "cwd": new.folder,
    });
    name_continued(&mut header, &conversation.session_id);
    let mut log = PiLog { conversation, ids: RecordIds::default(), entries: vec![header] };
    for part in &conversation.parts {
        let id = part.identity;
        let time = part.time;
        match &part.content {
            CopiedContent::Notice(text) => {
                let entry = json!({
                    "type": "custom_message",
                    "customType": "sessions",
                    "content": text,
                    "display": true,
                });
                log.push(id, time, entry);
            }
            CopiedContent::Prompt(text) => {
                let content = json!([{ "type": "text", "text": text }]);
                log.push_message(id, time, json!({ "role": "user", "content": content }));
            }
            CopiedContent::Answer(text) => {
                log.push_response(id, time, json!({ "type": "text", "text": text }), "stop");
            }
            CopiedContent::Call(call) => {
                let made = json!({
                    "type": "toolCall",
                    "id": call.id,
                    "name": call.tool,
                    "arguments": call.arguments,
                });
                log.push_response(id, time, made, "toolUse");
                let result = json!({
                    "role": "toolResult",
                    "toolCallId": call.id,
                    "toolName": call.tool,
                    "content": [{ "type": "text", "text": call.result }],
                    "isError": call.is_error,
                });
                log.push_message(id, call.ended_at, result);
            }
        }
    }
    let first = conversation.parts.first().map_or(0, |part| part.identity);
    log.push(first, new.now, json!({ "type": "session_info", "name": conversation.title }));
    log.entries
}

struct PiLog<'a> {
    conversation: &'a CopiedConversation,
    ids: RecordIds,
    entries: Vec<Value>,
}

impl PiLog<'_> {
    fn push_response(&mut self, identity: u64, time: i64, block: Value, stop_reason: &str) {
        let cost = json!({ "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 });
        let message = json!({
            "role": "assistant",
            "content": [block],
            "api": "copied",
            "provider": self.conversation.provider.as_str(),
            "model": self.conversation.model.as_deref().unwrap_or("unknown"),
            "usage": {
                "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": cost,
            },
            "stopReason": stop_reason,
        });
        self.push_message(identity, time, message);
    }

    fn push_message(&mut self, identity: u64, time: i64, message: Value) {
        let mut message = message;
        message["timestamp"] = (time / 1000).into();
        self.push(identity, time, json!({ "type": "message", "message": message }));
    }

    fn push(&mut self, identity: u64, time: i64, entry: Value) {
        let mut entry = entry;
        // The header is not an entry of the tree.
        let parent = self.entries.iter().skip(1).next_back();
        entry["parentId"] = parent.map_or(Value::Null, |parent| parent["id"].clone());
        entry["id"] = self.ids.next(identity).into();
        entry["timestamp"] = time_text(time).into();
        self.entries.push(entry);
    }
}
