//! Grok's agent: `~/.grok/sessions/<cwd, percent-encoded>/<id>/chat_history.jsonl`
//! (docs/formats.md#grok). The same conversation is also in `updates.jsonl` in the same folder,
//! which is a thousand times as long and is not read. `summary.json` describes the session.
//!
//! The records have neither times nor tokens. The summary has the times at which the session began
//! and ended. Without a summary, the session's id, a uuid of version 7, has the time of the
//! beginning.

use std::path::{Path, PathBuf};

use schemas::event::Relation;
use schemas::{EventType, Provider};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Quirks, Reader};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::is_uuid;
use crate::provider::shared::{beside, chat, user_query};
use crate::stream::{Draft, RecordAt, Stream, TitleFrom, micros};
use crate::text::json::{Fields, Parser, Value, string};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::Grok,
    unique_ids: false,
    roots: |places| {
        vec![places.set("GROK_HOME").unwrap_or_else(|| places.home(".grok")).join("sessions")]
    },
    sniff,
    quirks: Quirks {
        companion: Some(|log| Some(summary_path(log))),
        is_beside_log: Some(|name, has| {
            matches!(name, "updates.jsonl" | "events.jsonl") && has("chat_history.jsonl")
        }),
        ..Quirks::NONE
    },
    reader: Reader::Lines(|claim, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        let start = uuid_time(&claim.native_id);
        let (text, inner) = (String::new(), Parser::default());
        Box::new(Decoder { state, start, looked: false, text, inner })
    }),
};

/// Maximum size in bytes of a summary, which has a few lines. Larger files are not summaries.
const SUMMARY_BYTES: u64 = 1 << 20;

fn sniff(head: &Head<'_>) -> Option<Claim> {
    if !head.objects.iter().any(|object| is_record(object, head.stem())) {
        return None;
    }
    let folder = head.path.parent().and_then(|dir| dir.file_name()).and_then(|name| name.to_str());
    let summary = summary(head.path).unwrap_or_default();
    let id = summary["info"]["id"].as_str().filter(|id| !id.is_empty());
    let native_id = folder.filter(|name| is_uuid(name)).or(id).or(folder).unwrap_or(head.stem());
    let is_agent = summary["session_kind"] == "subagent";
    let parent = summary["parent_session_id"].as_str().filter(|id| *id != native_id);
    let relation = match (is_agent, parent) {
        (true, _) => Some(Relation::SubagentOf),
        (false, Some(_)) => Some(Relation::ForkedFrom),
        (false, None) => None,
    };
    Some(Claim {
        provider: Provider::Grok,
        native_id: native_id.to_owned(),
        agent_id: is_agent.then(|| native_id.to_owned()),
        parent: parent.map(str::to_owned),
        relation,
        first_record: None,
    })
}

/// Returns whether a record has fields that only Grok writes, or begins a file with Grok's name.
fn is_record(object: &Json, stem: &str) -> bool {
    let has = |key: &str| object.get(key).is_some();
    match object["type"].as_str() {
        Some("system") => stem == "chat_history" && object["content"].is_string() && !has("uuid"),
        Some("user") => has("content") && (has("prompt_index") || has("synthetic_reason")),
        Some("assistant") => {
            object["content"].is_string() && (has("model_id") || has("model_fingerprint"))
        }
        _ => false,
    }
}

/// Returns the path of the session's summary.
pub(super) fn summary_path(log: &Path) -> PathBuf {
    log.with_file_name("summary.json")
}

/// Reads the summary next to the log.
fn summary(log: &Path) -> Option<Json> {
    beside::json(&summary_path(log), SUMMARY_BYTES)
}

/// Sets the facts about the session that the summary reports.
fn tell(summary: &Json, out: &mut Stream) {
    out.set_repository(summary["git_remotes"][0].as_str());
    out.set_cwd(summary["info"]["cwd"].as_str());
    out.set_branch(summary["head_branch"].as_str());
    out.set_model(summary["current_model_id"].as_str());
    let root = summary["git_root_dir"].as_str();
    out.set_repository(root.map(|root| root.trim_end_matches('/')));
    let title =
        ["generated_title", "session_summary"].iter().find_map(|key| summary[*key].as_str());
    out.title(TitleFrom::Agent, title.unwrap_or(""));
    for key in ["created_at", "last_active_at", "updated_at"] {
        out.widen(micros(summary[key].as_str()));
    }
}

/// Returns the time in a uuid of version 7 in microseconds. The first 48 bits of the uuid are
/// milliseconds.
fn uuid_time(id: &str) -> Option<i64> {
    let versioned = is_uuid(id) && id.as_bytes().get(14) == Some(&b'7');
    let digits = format!("{}{}", id.get(..8)?, id.get(9..13)?);
    let milliseconds = i64::from_str_radix(&digits, 16).ok().filter(|_| versioned)?;
    milliseconds.checked_mul(1000)
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// True once the first record was read.
    begun: bool,
    /// True while a model response is under way: its reasoning comes before it.
    in_response: bool,
}

struct Decoder {
    state: State,
    /// Time in microseconds at which the session began.
    start: Option<i64>,
    /// True if the summary was already read in this reading of the log.
    looked: bool,
    text: String,
    /// Parser for JSON inside strings.
    inner: Parser,
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let first = !std::mem::replace(&mut self.state.begun, true);
        self.look(out);
        out.begin_unnamed(at, raw, self.start.filter(|_| first));
        self.text.clear();
        let kind = object.text("type").unwrap_or("untyped");
        match kind {
            "user" => self.user(object, out),
            "assistant" => self.reply(object, out),
            "reasoning" => self.reasoning(object, out),
            "backend_tool_call" => self.backend_call(object, out),
            "tool_result" => self.result(object, out),
            "system" => {
                object.field("content").inspect(|text| chat::content(*text, &mut self.text));
                render::cut(&mut self.text);
                notify("system_prompt", &self.text, out);
            }
            _ => {
                out.drift("record", kind);
                render::fields(object, &["type"], &mut self.text);
                notify(kind, &self.text, out);
            }
        }
        if matches!(kind, "user" | "assistant" | "tool_result") {
            self.state.in_response = false;
        }
        Outcome::Events
    }

    fn end(&mut self, _: RecordAt, out: &mut Stream) {
        if self.state.begun {
            self.look(out);
        }
    }

    fn save(&self) -> Json {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}

fn notify(subtype: &str, text: &str, out: &mut Stream) {
    let draft = Draft { subtype: Some(subtype), text, ..Draft::default() };
    out.push(EventType::Notification, draft);
}

impl Decoder {
    /// Reads the summary next to the log, once per reading.
    fn look(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.looked, true) {
            let summary = summary(Path::new(&out.session.source_path)).unwrap_or_default();
            self.start = micros(summary["created_at"].as_str()).or(self.start);
            tell(&summary, out);
        }
    }

    /// Decodes a prompt, which may also be typed while the agent works. All other text from the
    /// client has a `synthetic_reason`.
    fn user(&mut self, object: Value<'_>, out: &mut Stream) {
        object.field("content").inspect(|content| chat::content(*content, &mut self.text));
        let words = user_query::take_apart(&self.text);
        out.set_cwd(words.workspace.as_deref());
        let reason = object.non_empty("synthetic_reason");
        if let Some(reason) = reason.filter(|reason| *reason != "interjection") {
            return notify(reason, &self.text, out);
        }
        if let Some(interrupt) = object.non_empty("prior_turn_interrupt") {
            notify("interrupted", &out.words_of_name(interrupt), out);
        }
        if !words.context.is_empty() {
            notify(words.subtype, &words.context, out);
        }
        if !words.prompt.is_empty() {
            out.prompt(&words.prompt);
        }
    }

    /// Begins a model response unless one is under way.
    fn respond(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.state.in_response, true) {
            out.begin_step();
        }
    }

    /// Decodes an answer and its calls. Older versions keep the reasoning in the same record.
    fn reply(&mut self, object: Value<'_>, out: &mut Stream) {
        out.set_model(object.text("model_id"));
        let thought = object.object("reasoning").and_then(|reasoning| reasoning.non_empty("text"));
        if let Some(text) = thought {
            self.respond(out);
            out.push(EventType::Reasoning, Draft { text, ..Draft::default() });
        }
        object.field("content").inspect(|content| chat::content(*content, &mut self.text));
        if !self.text.is_empty() {
            self.respond(out);
            out.push(EventType::Message, Draft { text: &self.text, ..Draft::default() });
        }
        for call in object.items("tool_calls") {
            self.respond(out);
            self.call(call.text("name"), call.non_empty("id"), call.field("arguments"), out);
        }
    }

    fn reasoning(&mut self, object: Value<'_>, out: &mut Stream) {
        self.respond(out);
        for key in ["summary", "content"] {
            object.field(key).inspect(|parts| chat::content(*parts, &mut self.text));
        }
        out.push(EventType::Reasoning, Draft { text: &self.text, ..Draft::default() });
    }

    /// Decodes a tool that ran on the server. Its answer is not recorded.
    fn backend_call(&mut self, object: Value<'_>, out: &mut Stream) {
        self.respond(out);
        let kind = object.object("kind").unwrap_or(object);
        let input = ["action", "input", "code"].iter().find_map(|key| kind.field(key));
        self.call(kind.text("tool_type"), kind.non_empty("id"), input, out);
    }

    fn call(
        &mut self,
        tool_name: Option<&str>,
        tool_call_id: Option<&str>,
        input: Option<Value<'_>>,
        out: &mut Stream,
    ) {
        let mut arguments = Arguments::default();
        if let Some(input) = input {
            match string(input) {
                Some(text) => arguments.read_json_text(text, &mut self.inner),
                None => arguments.read(input),
            }
        }
        let draft = Draft { tool_name, tool_call_id, ..arguments.draft() };
        out.push(EventType::ToolCall, draft);
    }

    fn result(&mut self, object: Value<'_>, out: &mut Stream) {
        for key in ["content", "images"] {
            object.field(key).inspect(|content| chat::content(*content, &mut self.text));
        }
        let tool_call_id = object.non_empty("tool_call_id");
        let draft = Draft { text: &self.text, tool_call_id, ..Draft::default() };
        out.push(EventType::ToolResult, draft);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_tell_when_the_session_began() {
        let time = uuid_time("01a13941-6cb9-7f1e-a741-65890d73c8a5");
        assert_eq!(time, Some(0x01a1_3941_6cb9 * 1000));
        assert_eq!(uuid_time("9ae82b3a-fd82-48da-afd8-479f58648cbe"), None);
        assert_eq!(uuid_time("session"), None);
    }
}
