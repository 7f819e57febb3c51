//! Writes a conversation as a log of Gemini CLI (docs/formats.md#gemini-cli).

use ingest::relocate::hash_of_folder;
use serde_json::{Value, json};

use super::conversation::{CopiedContent, CopiedConversation};
use super::new_session::{NewSession, RecordIds, name_continued, time_text};

/// Returns the records of the log.
pub(super) fn write_records(conversation: &CopiedConversation, new: &NewSession<'_>) -> Vec<Value> {
    let now = time_text(new.now);
    let mut header = json!({
        "sessionId": new.id,
        "projectHash": hash_of_folder(new.folder),
        "startTime": now,
        "lastUpdated": now,
        "kind": "main",
    });
    name_continued(&mut header, &conversation.session_id);
    let mut records = vec![header];
    let mut ids = RecordIds::default();
    for part in &conversation.parts {
        let mut message = match &part.content {
            CopiedContent::Notice(text) | CopiedContent::Prompt(text) => {
                json!({ "type": "user", "content": [{ "text": text }] })
            }
            CopiedContent::Answer(text) => {
                json!({ "type": "gemini", "content": text, "thoughts": [] })
            }
            CopiedContent::Call(call) => {
                let key = if call.is_error { "error" } else { "output" };
                let response = json!({
                    "id": call.id, "name": call.tool, "response": { key: call.result },
                });
                let made = json!({
                    "id": call.id,
                    "name": call.tool,
                    "args": call.arguments,
                    "result": [{ "functionResponse": response }],
                    "status": if call.is_error { "error" } else { "success" },
                    "timestamp": time_text(call.ended_at),
                    "resultDisplay": "",
                    "description": "",
                    "displayName": call.tool,
                    "renderOutputAsMarkdown": false,
                });
                json!({ "type": "gemini", "content": "", "thoughts": [], "toolCalls": [made] })
            }
        };
        message["id"] = ids.next(part.identity).into();
        message["timestamp"] = time_text(part.time).into();
        records.push(message);
    }
    records.push(json!({ "$set": { "summary": conversation.title, "lastUpdated": now } }));
    records
}
