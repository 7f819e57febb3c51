//! Cursor's agent: `~/.cursor/projects/<cwd>/agent-transcripts/<id>/<id>.jsonl` and
//! `<id>/subagents/<id>.jsonl` (docs/formats.md#cursor).
//!
//! The records have no ids, no model, no tokens and no tool results. The only times are those that
//! newer versions put around a prompt. The editor's own chats (`state.vscdb`, `store.db`) are
//! databases and are not read here.

use std::path::Path;

use schemas::event::Relation;
use schemas::{EventType, Provider};

use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Quirks, Reader};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::is_uuid;
use crate::provider::shared::{chat, user_query};
use crate::stream::{Draft, RecordAt, Stream};
use crate::text::json::{Fields, Value, string};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::Cursor,
    unique_ids: false,
    roots: |places| vec![places.home(".cursor/projects")],
    sniff,
    quirks: Quirks::NONE,
    reader: Reader::Lines(|_, _| Box::new(Decoder::default())),
};

/// Placeholder for reasoning that Cursor does not record.
const REDACTED: &str = "[REDACTED]";

fn sniff(head: &Head<'_>) -> Option<Claim> {
    if !head.objects.iter().any(is_record) {
        return None;
    }
    let name = |dir: Option<&Path>| dir?.file_name()?.to_str().map(str::to_owned);
    let folder = head.path.parent();
    let is_agent = name(folder).as_deref() == Some("subagents");
    let parent = folder.filter(|_| is_agent).and_then(|dir| name(dir.parent()));
    // Copies of a log have a longer name: `<id> (1).jsonl`, `<id>.jsonl.bak`.
    let stem = head.stem();
    let id = stem.get(..36).filter(|id| is_uuid(id)).unwrap_or(stem);
    Some(Claim {
        provider: Provider::Cursor,
        native_id: id.to_owned(),
        agent_id: is_agent.then(|| id.to_owned()),
        parent: parent.filter(|id| is_uuid(id)),
        relation: is_agent.then_some(Relation::SubagentOf),
        first_record: None,
    })
}

/// Returns whether a record was written by Cursor: it has a role and a message, but not the
/// envelope of other agents that use the same message.
fn is_record(object: &serde_json::Value) -> bool {
    let has = |key: &str| object.get(key).is_some();
    if has("uuid") || has("sessionId") || has("id") {
        return false;
    }
    let content = &object["message"]["content"];
    let said = object["role"].is_string() && (content.is_array() || content.is_string());
    let marker = object["type"] == "turn_ended" && object["status"].is_string();
    (said && !has("type")) || marker
}

#[derive(Default)]
struct Decoder {
    text: String,
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let time = object.field("timestamp").and_then(chat::instant);
        let message = object.object("message").unwrap_or(object);
        self.text.clear();
        match object.text("role") {
            Some("user" | "human") => self.user(message, raw, at, time, out),
            role => {
                out.begin_unnamed(at, raw, time);
                out.set_model(object.text("model"));
                match role {
                    Some("assistant" | "model") => self.reply(message, out),
                    Some("tool") => {
                        for block in message.items("content") {
                            self.block(block, out);
                        }
                    }
                    _ => self.other(object, role, out),
                }
            }
        }
        if out.pushed() > 0 { Outcome::Events } else { Outcome::Merged("empty_message") }
    }

    fn save(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

impl Decoder {
    /// Decodes a typed prompt together with the context that the client added. Other logs of the
    /// same shape also have tool results here.
    fn user(
        &mut self,
        message: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        time: Option<i64>,
        out: &mut Stream,
    ) {
        let (results, said): (Vec<_>, Vec<_>) =
            message.items("content").into_iter().partition(|block| is_result(*block));
        for block in &said {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            chat::part(*block, &mut self.text);
        }
        message.text("content").inspect(|content| self.text.push_str(content));
        let words = user_query::take_apart(&self.text);
        out.begin_unnamed(at, raw, time.or(words.time));
        for block in results {
            self.block(block, out);
        }
        out.set_cwd(words.workspace.as_deref());
        if !words.context.is_empty() {
            let subtype = Some(words.subtype);
            let draft = Draft { subtype, text: &words.context, ..Draft::default() };
            out.push(EventType::Notification, draft);
        }
        if !words.prompt.is_empty() {
            out.prompt(&words.prompt);
        }
    }

    /// Decodes one response of the model.
    fn reply(&mut self, message: Value<'_>, out: &mut Stream) {
        let blocks = message.items("content");
        let plain = message.non_empty("content");
        if blocks.is_empty() && plain.is_none() {
            return;
        }
        out.begin_step();
        if let Some(text) = plain {
            out.push(EventType::Message, Draft { text, ..Draft::default() });
        }
        for block in blocks {
            self.block(block, out);
        }
    }

    fn block(&mut self, block: Value<'_>, out: &mut Stream) {
        let said = |key: &str| block.text(key).unwrap_or("");
        match block.text("type") {
            Some("text") => {
                let text = said("text");
                let hidden = text.trim() == REDACTED;
                let kind = if hidden { EventType::Reasoning } else { EventType::Message };
                out.push(kind, Draft { text, ..Draft::default() });
            }
            Some("thinking" | "reasoning") => {
                let text = block.text("thinking").unwrap_or_else(|| said("text"));
                out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
            }
            Some("tool_use" | "tool-use" | "tool_call" | "tool-call") => call(block, out),
            _ if is_result(block) => self.result(block, out),
            kind => {
                let kind = kind.unwrap_or("untyped");
                out.drift("block", kind);
                self.text.clear();
                render::fields(block, &["type"], &mut self.text);
                let draft = Draft { subtype: Some(kind), text: &self.text, ..Draft::default() };
                out.push(EventType::Notification, draft);
            }
        }
    }

    fn result(&mut self, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        block.field("content").inspect(|content| chat::content(*content, &mut self.text));
        let draft = Draft {
            text: &self.text,
            tool_name: block.text("name"),
            tool_call_id: block.non_empty("tool_use_id"),
            is_error: block.flag("is_error"),
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }

    /// Decodes the end of a turn, or a record without a rule of its own.
    fn other(&mut self, object: Value<'_>, role: Option<&str>, out: &mut Stream) {
        let kind = object.text("type").or(role).unwrap_or("untyped");
        if !matches!(kind, "turn_ended" | "system") {
            out.drift("record", kind);
        }
        render::fields(object, &["type", "role"], &mut self.text);
        let is_error = (object.text("status") == Some("error")).then_some(true);
        let draft = Draft { subtype: Some(kind), text: &self.text, is_error, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}

fn is_result(block: Value<'_>) -> bool {
    matches!(block.text("type"), Some("tool_result" | "tool-result"))
}

fn call(block: Value<'_>, out: &mut Stream) {
    let mut arguments = Arguments::default();
    if let Some(input) = ["input", "args", "arguments"].iter().find_map(|key| block.field(key)) {
        match string(input) {
            Some(text) => arguments.plain(text),
            None => arguments.read(input),
        }
    }
    let tool_name = block.text("name");
    let tool_call_id = block.non_empty("id");
    let draft = Draft { tool_name, tool_call_id, ..arguments.draft() };
    out.push(EventType::ToolCall, draft);
}
