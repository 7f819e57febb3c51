//! Writes a conversation as a log of Codex (docs/formats.md#codex).

use serde_json::{Value, json};

use super::conversation::{CopiedContent, CopiedConversation};
use super::new_session::{NewSession, RecordIds, name_continued, time_text};

/// The version that the log names: the one that the copies were tested with.
const VERSION: &str = "0.171.0";

/// Returns the records of the log.
pub(super) fn write_records(conversation: &CopiedConversation, new: &NewSession<'_>) -> Vec<Value> {
    let mut meta = json!({
        "id": new.id,
        "timestamp": time_text(new.now),
        "cwd": new.folder,
        "originator": "codex_cli_rs",
        "cli_version": VERSION,
        "source": "cli",
    });
    if let Some(branch) = &conversation.branch {
        meta["git"] = json!({ "branch": branch });
    }
    name_continued(&mut meta, &conversation.session_id);
    let mut log = CodexLog { ids: RecordIds::default(), records: Vec::new() };
    log.push(new.now, "session_meta", meta);

    for part in &conversation.parts {
        let mut item = |prefix: &str, time: i64, item: Value| {
            log.push_copy(part.identity, prefix, time, "response_item", item);
        };
        match &part.content {
            CopiedContent::Notice(text) => {
                let content = json!([{ "type": "input_text", "text": text }]);
                let message = json!({ "type": "message", "role": "developer", "content": content });
                item("msg_", part.time, message);
            }
            CopiedContent::Prompt(text) => {
                let content = json!([{ "type": "input_text", "text": text }]);
                let message = json!({ "type": "message", "role": "user", "content": content });
                item("msg_", part.time, message);
                // The list of sessions shows the first one.
                let event = json!({ "type": "user_message", "message": text, "images": [] });
                log.push_copy(part.identity, "", part.time, "event_msg", event);
            }
            CopiedContent::Answer(text) => {
                let content = json!([{ "type": "output_text", "text": text }]);
                let message = json!({ "type": "message", "role": "assistant", "content": content });
                item("msg_", part.time, message);
                let event = json!({ "type": "agent_message", "message": text });
                log.push_copy(part.identity, "", part.time, "event_msg", event);
            }
            CopiedContent::Call(call) => {
                let made = json!({
                    "type": "function_call",
                    "name": call.tool,
                    "arguments": call.arguments.to_string(),
                    "call_id": call.id,
                });
                item("fc_", part.time, made);
                let answered = json!({
                    "type": "function_call_output", "call_id": call.id, "output": call.result,
                });
                item("fco_", call.ended_at, answered);
            }
        }
    }
    let name = json!({
        "type": "thread_name_updated", "thread_id": new.id, "thread_name": conversation.title,
    });
    let first = conversation.parts.first().map_or(0, |part| part.identity);
    log.push_copy(first, "", new.now, "event_msg", name);
    log.records
}

struct CodexLog {
    ids: RecordIds,
    records: Vec<Value>,
}

impl CodexLog {
    fn push_copy(&mut self, identity: u64, prefix: &str, time: i64, kind: &str, payload: Value) {
        let mut payload = payload;
        payload["id"] = format!("{prefix}{}", self.ids.next(identity)).into();
        self.push(time, kind, payload);
    }

    fn push(&mut self, time: i64, kind: &str, payload: Value) {
        let timestamp = time_text(time);
        self.records.push(json!({ "timestamp": timestamp, "type": kind, "payload": payload }));
    }
}
