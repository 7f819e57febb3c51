//! Reads the line format of `sessions`, which any program can write. CONTRIBUTING.md, "Logs of your
//! own agent", describes it for authors of agents; see also docs/formats.md#generic-lines.
//!
//! ```text
//! {"format":"sessions","version":1,"session_id":"...","cwd":"..."}
//! {"type":"user","text":"...","timestamp":"..."}
//! {"type":"tool_call","tool_name":"...","tool_call_id":"...","input":{...}}
//! ```
//!
//! The first line is a header. A later header changes the fields that it names. Every other line is
//! an event whose `type` is one of the seven event types. A file without a header is read only if
//! it holds chat messages (`role` and `content`) and no other provider claims it (`message.rs`).
//!
//! A turn begins at a `user` event, unless the event has `"turn": false`. A step is a run of
//! `reasoning`, `message` and `tool_call` events, up to a result or a prompt. `"step": true` always
//! begins one.

mod message;

use schemas::event::Relation;
use schemas::{EventType, Provider, Usage};
use serde::Deserialize as _;
use serde_json::Value as Json;

use self::message::GenericState;
use crate::provider::format::{
    LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim, state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::uuid_identity;
use crate::provider::shared::{chat, prompt};
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Generic,
    has_unique_ids: true,
    decoder_version: 1,
    roots: |places| vec![places.data_path("agent-sessions")],
    sniff: claim_log,
    quirks: Quirks::NONE,
    reader: LogReader::Lines(|_, state| {
        let state =
            state.and_then(|state| GenericState::deserialize(state).ok()).unwrap_or_default();
        Box::new(GenericDecoder { state, text: String::new(), inner: Parser::default() })
    }),
};

/// The newest version of the format that is read here. A higher one counts as drift.
const NEWEST_VERSION: i64 = 1;

/// Fields of an event that are left out when a notification without text is rendered from its
/// fields.
const ENVELOPE: &[&str] =
    &["type", "subtype", "id", "timestamp", "model", "git_branch", "sidechain", "turn", "step"];

/// Claims a log by its header, or by its chat messages if it has no header.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let header = head.objects.first()?;
    if header["format"] != "sessions" || !header["version"].is_i64() {
        return message::claim_chat_log(head);
    }

    let parent = non_empty(header, "parent_session_id").map(str::to_owned);
    let relation = non_empty(header, "relation").and_then(|name| name.parse::<Relation>().ok());
    let agent_id = non_empty(header, "agent_id").map(str::to_owned);
    let default = if agent_id.is_some() { Relation::SubagentOf } else { Relation::ContinuedFrom };
    Some(SessionClaim {
        agent_id,
        relation: parent.as_ref().map(|_| relation.unwrap_or(default)),
        parent,
        ..SessionClaim::new(
            Provider::Generic,
            non_empty(header, "session_id").unwrap_or_else(|| head.file_stem()),
        )
    })
}

/// Returns a field of the header that is a non-empty string.
fn non_empty<'h>(header: &'h Json, key: &str) -> Option<&'h str> {
    header[key].as_str().filter(|text| !text.is_empty())
}

/// Decoder of a log of either form.
struct GenericDecoder {
    state: GenericState,
    /// Text of the current event.
    text: String,
    /// Parser for JSON inside strings.
    inner: Parser,
}

impl LineDecoder for GenericDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        if object.text("format") == Some("sessions") {
            out.begin_record(at, None, None);
            return decode_header(object, out);
        }

        let message = message::message_in_line(object);
        let id = object.text(if message.is_some() { "uuid" } else { "id" });
        let time = match message {
            Some(_) => message::line_time(object),
            None => object.field("timestamp").and_then(chat::parse_time),
        };
        let identity = uuid_identity(id);
        if identity.is_none() && time.is_some() {
            out.begin_record_by_content(at, raw, time);
        } else {
            out.begin_record(at, identity, time);
            // Runs of one script have logs of the same name, and begin with the same text.
            if identity.is_none() && out.position() == 0 {
                out.set_copied(false);
            }
        }

        match message {
            Some(message) => {
                message::decode_message(object, message, &mut self.state, &mut self.inner, out);
            }
            None => self.decode_event(object, out),
        }
        RecordOutcome::of_pushed(out, "empty_event")
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

/// Reads the header's facts about the session.
fn decode_header(object: Value<'_>, out: &mut Stream) -> RecordOutcome {
    if object.int("version").is_some_and(|version| version > NEWEST_VERSION) {
        out.count_unknown("field", "version");
    }
    let agent_names = [object.non_empty("agent"), object.non_empty("agent_version")];
    let agent = agent_names.into_iter().flatten().collect::<Vec<_>>().join(" ");
    out.set_version(Some(&agent));
    out.set_cwd(object.text("cwd"));
    out.set_branch(object.text("git_branch"));
    out.set_repository(object.text("repository"));
    out.set_model(object.text("model"));
    out.offer_title(TitleFrom::Agent, object.text("title").unwrap_or(""));
    out.extend_time_range(object.field("timestamp").and_then(chat::parse_time));
    RecordOutcome::Merged("header")
}

impl GenericDecoder {
    /// Decodes an event, and the token counts in it.
    fn decode_event(&mut self, object: Value<'_>, out: &mut Stream) {
        out.set_branch(object.text("git_branch"));
        out.set_model(object.text("model"));
        let is_sidechain = object.flag("sidechain") == Some(true);
        if is_sidechain {
            out.set_sidechain(None);
        }

        let starts_step = object.flag("step") == Some(true);
        self.text.clear();
        chat::append_field(object, "text", &mut self.text);
        let kind = object.text("type").unwrap_or("untyped");
        match kind.parse::<EventType>() {
            Ok(EventType::User) => {
                self.state.record_prompt();
                let starts_turn = !is_sidechain && object.flag("turn") != Some(false);
                prompt::push_prompt(&self.text, starts_turn, out);
            }
            Ok(EventType::Reasoning) => {
                self.state.record_output(starts_step, out);
                out.push(EventType::Reasoning, self.decoded_event(object));
            }
            Ok(EventType::Message) => {
                self.state.record_output(starts_step, out);
                out.push(EventType::Message, self.decoded_event(object));
            }
            Ok(EventType::ToolCall) => {
                self.state.record_output(starts_step, out);
                self.push_tool_call(object, out);
            }
            Ok(EventType::ToolResult) => {
                self.state.end_response();
                if self.text.is_empty()
                    && let Some(output) = object.field("output")
                {
                    chat::append_content(output, &mut self.text);
                }
                out.push(EventType::ToolResult, self.decoded_event(object));
            }
            // Tokens belong to the response before them, or to a response without text.
            Ok(EventType::TokenUsage) => {
                if starts_step || self.state.after_prompt {
                    self.state.record_output(starts_step, out);
                }
            }
            Ok(EventType::Notification) => self.push_notification(object, None, out),
            Err(_) => {
                out.count_unknown("record", kind);
                self.push_notification(object, Some(kind), out);
            }
        }
        push_usage(object, out);
    }

    /// Returns a decoded event with the fields that every kind of event may have.
    fn decoded_event<'d>(&'d self, object: Value<'d>) -> DecodedEvent<'d> {
        DecodedEvent {
            subtype: object.non_empty("subtype"),
            text: &self.text,
            tool_name: object.non_empty("tool_name"),
            tool_call_id: object.non_empty("tool_call_id"),
            is_error: object.flag("is_error"),
            exit_code: object.int32("exit_code"),
            duration_ms: object.int("duration_ms"),
            ..DecodedEvent::default()
        }
    }

    /// Decodes a call. Its `input` is an object, or a string with JSON or other text. If there is
    /// no input, the text of the event takes its place.
    fn push_tool_call(&mut self, object: Value<'_>, out: &mut Stream) {
        let input = object.field("input");
        let mut arguments = Arguments::of_input(input, &mut self.inner);
        if input.is_none() {
            arguments.read_plain_text(&self.text);
        }
        let decoded = DecodedEvent {
            subtype: object.non_empty("subtype"),
            tool_name: object.non_empty("tool_name"),
            tool_call_id: object.non_empty("tool_call_id"),
            ..arguments.decoded()
        };
        out.push(EventType::ToolCall, decoded);
    }

    /// Pushes a notification. `kind` is the type of an unknown event and becomes the subtype.
    fn push_notification(&mut self, object: Value<'_>, kind: Option<&str>, out: &mut Stream) {
        if self.text.is_empty() {
            render::append_notification(object, ENVELOPE, &mut self.text);
        }
        render::truncate_notification(&mut self.text);
        let subtype = kind.or_else(|| object.non_empty("subtype"));
        out.push(EventType::Notification, DecodedEvent { subtype, ..self.decoded_event(object) });
    }
}

/// Pushes the token counts of an event, if it has any.
fn push_usage(object: Value<'_>, out: &mut Stream) {
    let usage = object.object("usage").map(read_usage).unwrap_or_default();
    if usage.is_unknown() {
        return;
    }
    let decoded = DecodedEvent {
        usage,
        request_id: object.non_empty("request_id"),
        duration_ms: object.int("duration_ms"),
        subtype: object.non_empty("subtype"),
        ..DecodedEvent::default()
    };
    out.push(EventType::TokenUsage, decoded);
}

/// Reads token counts with the names that the tools of `sessions` use in their answers.
fn read_usage(usage: Value<'_>) -> Usage {
    Usage {
        input: usage.int("input_tokens"),
        output: usage.int("output_tokens"),
        cache_read: usage.int("cache_read_tokens"),
        cache_write: usage.int("cache_write_tokens"),
        cache_write_1h: usage.int("cache_write_1h_tokens"),
        reasoning: usage.int("reasoning_tokens"),
        ..Usage::default()
    }
}
