//! Writes a conversation as the document that `opencode import` reads (docs/formats.md#opencode).

use ingest::provider::copied::CONTINUES_SLUG;
use serde_json::{Value, json};

use super::conversation::{CopiedContent, CopiedConversation};
use super::new_session::{NewSession, RecordIds};

/// The version that the document names: the one that the copies were tested with.
const VERSION: &str = "1.18.33";

/// Returns the document.
pub(super) fn write_document(conversation: &CopiedConversation, new: &NewSession<'_>) -> Value {
    let mut document = Document {
        conversation,
        new,
        ids: RecordIds::default(),
        messages: Vec::new(),
        prompt: Value::Null,
    };
    for part in &conversation.parts {
        match &part.content {
            CopiedContent::Notice(text) => {
                let text = json!({ "type": "text", "text": text, "synthetic": true });
                document.push(part.identity, part.time, "user", text);
            }
            CopiedContent::Prompt(text) => {
                document.push(
                    part.identity,
                    part.time,
                    "user",
                    json!({ "type": "text", "text": text }),
                );
            }
            CopiedContent::Answer(text) => {
                let text = json!({
                    "type": "text",
                    "text": text,
                    "time": { "start": part.time / 1000, "end": part.time / 1000 },
                });
                document.push(part.identity, part.time, "assistant", text);
            }
            CopiedContent::Call(call) => {
                let time = json!({ "start": part.time / 1000, "end": call.ended_at / 1000 });
                let state = if call.is_error {
                    json!({ "status": "error", "input": call.arguments, "error": call.result, "time": time })
                } else {
                    json!({
                        "status": "completed",
                        "input": call.arguments,
                        "output": call.result,
                        "title": call.tool,
                        "metadata": {},
                        "time": time,
                    })
                };
                let made =
                    json!({ "type": "tool", "tool": call.tool, "callID": call.id, "state": state });
                document.push(part.identity, part.time, "assistant", made);
            }
        }
    }
    let now = new.now / 1000;
    json!({
        "info": {
            "id": new.id,
            "slug": format!("{CONTINUES_SLUG}{}", conversation.session_id),
            "projectID": "global",
            "directory": new.folder,
            "title": conversation.title,
            "version": VERSION,
            "time": { "created": now, "updated": now },
        },
        "messages": document.messages,
    })
}

struct Document<'a> {
    conversation: &'a CopiedConversation,
    new: &'a NewSession<'a>,
    ids: RecordIds,
    messages: Vec<Value>,
    /// The id of the last message of the user.
    prompt: Value,
}

impl Document<'_> {
    /// Adds a message of one part.
    fn push(&mut self, identity: u64, time: i64, role: &str, part: Value) {
        let number = self.messages.len();
        let id = sorted_id("msg", self.new.now, number, &self.ids.next(identity));
        let time = time / 1000;
        let provider = self.conversation.provider.as_str();
        let model = self.conversation.model.as_deref().unwrap_or("unknown");
        let mut info = json!({
            "id": id, "sessionID": self.new.id, "role": role, "agent": "build", "time": { "created": time },
        });
        if role == "user" {
            self.prompt = info["id"].clone();
            info["model"] = json!({ "providerID": provider, "modelID": model });
        } else {
            info["parentID"] = self.prompt.clone();
            info["mode"] = "build".into();
            info["path"] = json!({ "cwd": self.new.folder, "root": self.new.folder });
            info["cost"] = 0.into();
            let cache = json!({ "read": 0, "write": 0 });
            info["tokens"] = json!({ "input": 0, "output": 0, "reasoning": 0, "cache": cache });
            info["providerID"] = provider.into();
            info["modelID"] = model.into();
            info["time"]["completed"] = time.into();
            info["finish"] = if part["type"] == "tool" { "tool-calls" } else { "stop" }.into();
        }
        let mut part = part;
        part["id"] = sorted_id("prt", self.new.now, number, "copied00000000").into();
        part["sessionID"] = self.new.id.as_str().into();
        part["messageID"] = id.into();
        self.messages.push(json!({ "info": info, "parts": [part] }));
    }
}

/// Returns the id of a new session. Ids of later sessions sort first.
pub(super) fn session_id(now_us: i64, uuid: &str) -> String {
    let units = !(now_us / 1000).cast_unsigned().wrapping_mul(4096) & 0xffff_ffff_ffff;
    // The end of the UUID is random.
    let random: String = uuid.chars().filter(char::is_ascii_hexdigit).skip(18).collect();
    format!("ses_{units:012x}{random}")
}

/// Returns an id that sorts after those of lower numbers, and before those that OpenCode gives later. They begin
/// with the time in units of 1/4096 ms.
fn sorted_id(kind: &str, now_us: i64, number: usize, end: &str) -> String {
    let units = (now_us / 1000).cast_unsigned().wrapping_mul(4096).wrapping_add(number as u64);
    format!("{kind}_{:012x}{end}", units & 0xffff_ffff_ffff)
}
