//! Logs of home-made agents: JSON lines that any program can write. CONTRIBUTING.md, "Logs of your
//! own agent", describes them for their authors; see also docs/formats.md#generic-lines.
//!
//! The first line is a header, `{"format":"sessions","version":1,...}`. A later header changes the
//! fields that it names. Every other line is an event whose `type` is one of the seven event types.
//! Without a header, such a log cannot be told from others. Then only chat messages (`role` and
//! `content`) are read, and only from files that no other provider claims (`message.rs`).
//!
//! A turn begins at a `user` event, unless the event has `"turn": false`. A step is a run of
//! `reasoning`, `message` and `tool_call` events, up to a result or a prompt. `"step": true` always
//! begins one.

mod message;
mod state;

use schemas::event::Relation;
use schemas::{EventType, Provider, Usage};
use serde::Deserialize as _;

use self::state::State;
use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Quirks, Reader};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::uuid_identity;
use crate::provider::shared::{chat, prompt};
use crate::stream::{Draft, RecordAt, Stream, TitleFrom};
use crate::text::json::{Fields, Parser, Value, string};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::Generic,
    unique_ids: true,
    roots: |places| vec![places.data("agent-sessions")],
    sniff,
    quirks: Quirks::NONE,
    reader: Reader::Lines(|_, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        Box::new(Decoder { state, text: String::new(), inner: Parser::default() })
    }),
};

/// The newest version of the format that is read here. A higher one counts as drift.
const VERSION: i64 = 1;

/// Fields of an event that are left out when a notification without text is rendered from its
/// fields.
const ENVELOPE: &[&str] =
    &["type", "subtype", "id", "timestamp", "model", "git_branch", "sidechain", "turn", "step"];

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let header = head.objects.first()?;
    if header["format"] != "sessions" || !header["version"].is_i64() {
        return message::sniff(head);
    }
    let text = |key: &str| header[key].as_str().filter(|text| !text.is_empty());
    let parent = text("parent_session_id").map(str::to_owned);
    let relation = text("relation").and_then(|name| name.parse::<Relation>().ok());
    let agent_id = text("agent_id").map(str::to_owned);
    let default = if agent_id.is_some() { Relation::SubagentOf } else { Relation::ContinuedFrom };
    Some(Claim {
        provider: Provider::Generic,
        native_id: text("session_id").unwrap_or_else(|| head.stem()).to_owned(),
        agent_id,
        relation: parent.as_ref().map(|_| relation.unwrap_or(default)),
        parent,
        first_record: None,
    })
}

struct Decoder {
    state: State,
    text: String,
    /// Parser for JSON inside strings.
    inner: Parser,
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        if object.text("format") == Some("sessions") {
            out.begin_record(at, None, None);
            return header(object, out);
        }
        let message = message::message(object);
        let (id, time) = match message {
            Some(_) => (object.text("uuid"), message::time(object)),
            None => (object.text("id"), object.field("timestamp").and_then(chat::instant)),
        };
        // Runs of one script have logs of the same name, and begin with the same text.
        match (uuid_identity(id), time) {
            (None, Some(_)) => out.begin_unnamed(at, raw, time),
            (id, _) => {
                out.begin_record(at, id, time);
                if id.is_none() && out.position() == 0 {
                    out.set_copied(false);
                }
            }
        }
        match message {
            Some(message) => {
                message::decode(object, message, &mut self.state, &mut self.inner, out)
            }
            None => self.event(object, out),
        }
        if out.pushed() == 0 { Outcome::Merged("empty_event") } else { Outcome::Events }
    }

    fn save(&self) -> serde_json::Value {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}

/// Reads the header's facts about the session.
fn header(object: Value<'_>, out: &mut Stream) -> Outcome {
    if object.int("version").is_some_and(|version| version > VERSION) {
        out.drift("field", "version");
    }
    let named = [object.non_empty("agent"), object.non_empty("agent_version")];
    let agent = named.into_iter().flatten().collect::<Vec<_>>().join(" ");
    out.set_version(Some(&agent));
    out.set_cwd(object.text("cwd"));
    out.set_branch(object.text("git_branch"));
    out.set_repository(object.text("repository"));
    out.set_model(object.text("model"));
    out.title(TitleFrom::Agent, object.text("title").unwrap_or(""));
    out.widen(object.field("timestamp").and_then(chat::instant));
    Outcome::Merged("header")
}

impl Decoder {
    fn event(&mut self, object: Value<'_>, out: &mut Stream) {
        out.set_branch(object.text("git_branch"));
        out.set_model(object.text("model"));
        let sidechain = object.flag("sidechain") == Some(true);
        if sidechain {
            out.set_sidechain(None);
        }
        let anew = object.flag("step") == Some(true);
        self.text.clear();
        object.field("text").inspect(|text| chat::content(*text, &mut self.text));
        let kind = object.text("type").unwrap_or("untyped");
        match kind.parse::<EventType>() {
            Ok(EventType::User) => {
                self.state.ask();
                let starts_turn = !sidechain && object.flag("turn") != Some(false);
                prompt::typed(&self.text, starts_turn, out);
            }
            Ok(EventType::Reasoning) => {
                self.state.respond(anew, out);
                out.push(EventType::Reasoning, self.draft(object));
            }
            Ok(EventType::Message) => {
                self.state.respond(anew, out);
                out.push(EventType::Message, self.draft(object));
            }
            Ok(EventType::ToolCall) => {
                self.state.respond(anew, out);
                self.call(object, out);
            }
            Ok(EventType::ToolResult) => {
                self.state.rest();
                if self.text.is_empty() {
                    object.field("output").inspect(|said| chat::content(*said, &mut self.text));
                }
                out.push(EventType::ToolResult, self.draft(object));
            }
            // Tokens belong to the response before them, or to a response without text.
            Ok(EventType::TokenUsage) => {
                if anew || self.state.after_prompt {
                    self.state.respond(anew, out);
                }
            }
            Ok(EventType::Notification) => self.notification(object, None, out),
            Err(_) => {
                out.drift("record", kind);
                self.notification(object, Some(kind), out);
            }
        }
        let usage = object.object("usage").map(usage).unwrap_or_default();
        if !usage.is_unknown() {
            let draft = Draft {
                usage,
                request_id: object.non_empty("request_id"),
                duration_ms: object.int("duration_ms"),
                subtype: object.non_empty("subtype"),
                ..Draft::default()
            };
            out.push(EventType::TokenUsage, draft);
        }
    }

    /// Returns a draft with the fields that every kind of event may have.
    fn draft<'d>(&'d self, object: Value<'d>) -> Draft<'d> {
        Draft {
            subtype: object.non_empty("subtype"),
            text: &self.text,
            tool_name: object.non_empty("tool_name"),
            tool_call_id: object.non_empty("tool_call_id"),
            is_error: object.flag("is_error"),
            exit_code: object.int("exit_code").and_then(|code| i32::try_from(code).ok()),
            duration_ms: object.int("duration_ms"),
            ..Draft::default()
        }
    }

    /// Decodes a call. `input` is an object, or a string with JSON or other text.
    fn call(&mut self, object: Value<'_>, out: &mut Stream) {
        let mut arguments = Arguments::default();
        match object.field("input") {
            Some(input) => match string(input) {
                Some(text) => arguments.read_json_text(text, &mut self.inner),
                None => arguments.read(input),
            },
            None => arguments.plain(&self.text),
        }
        let draft = Draft {
            subtype: object.non_empty("subtype"),
            tool_name: object.non_empty("tool_name"),
            tool_call_id: object.non_empty("tool_call_id"),
            ..arguments.draft()
        };
        out.push(EventType::ToolCall, draft);
    }

    fn notification(&mut self, object: Value<'_>, kind: Option<&str>, out: &mut Stream) {
        if self.text.is_empty() {
            render::fields(object, ENVELOPE, &mut self.text);
        }
        render::cut(&mut self.text);
        let subtype = kind.or_else(|| object.non_empty("subtype"));
        out.push(EventType::Notification, Draft { subtype, ..self.draft(object) });
    }
}

/// Parses token counts, under the names that the tools of `sessions` use in their answers.
fn usage(usage: Value<'_>) -> Usage {
    Usage {
        input: usage.int("input_tokens"),
        output: usage.int("output_tokens"),
        cache_read: usage.int("cache_read_tokens"),
        cache_write: usage.int("cache_write_tokens"),
        cache_write_1h: usage.int("cache_write_1h_tokens"),
        reasoning: usage.int("reasoning_tokens"),
    }
}
