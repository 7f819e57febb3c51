//! Reads the session logs of DeepSeek Harness from `~/.dsh/sessions/--<cwd>--/<id>/session.jsonl.zstd`
//! (docs/formats.md#deepseek-harness).
//!
//! ```text
//! {"type":"session","version":0,"id":"...","createdAt":1790000000000,"cwd":"/...","parentSession":"..."}
//! {"type":"user/message","seq":2,"time":1790000000100,"data":{"id":"...","role":"user",
//!  "source":{"kind":"user"},"content":[{"type":"text","text":"..."}]},"surfaceOp":"append"}
//! {"type":"assistant/message","seq":9,"time":...,"data":{"turn":1,"step":1,"message":{...},"usage":{...}}}
//! ```
//!
//! A response streams in as chunks before its message. The text of a response that was interrupted is
//! only there.

use schemas::event::Relation;
use schemas::{EventType, Provider, Usage};
use serde::{Deserialize, Serialize};

use crate::provider::format::{
    LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim, state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::{chat, drift};
use crate::source::candidate::Container;
use crate::source::container::has_log;
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Dsh,
    has_unique_ids: false,
    decoder_version: 1,
    roots: |places| {
        let home = places.env_path("DSH_HOME").unwrap_or_else(|| places.home_path(".dsh"));
        vec![home.join("sessions")]
    },
    sniff: claim_log,
    quirks: Quirks { is_sidecar: Some(is_earlier_version), ..Quirks::NONE },
    reader: LogReader::Lines(|_, state| {
        let state = state.and_then(|state| DshState::deserialize(state).ok()).unwrap_or_default();
        Box::new(DshDecoder { state, text: String::new(), inner: Parser::default() })
    }),
};

/// Maximum number of a version of the format that is looked for.
const MAX_VERSION: u32 = 9;

/// Types of records about the course of a session that say nothing by themselves.
const MARKERS: &[&str] = &[
    "agent/inbox/spliced",
    "llm/retry-started",
    "request/context",
    "session/end-seed",
    "session/title-llm-request",
    "step/start",
    "turn/start",
    "tool/code-dispatch-start",
    "tool-workflow/agent-start",
    "tool-workflow/run-start",
    "web/deepseek-search-llm-request",
];

/// Types of records that become notifications.
const NOTED: &[&str] = &[
    "agent-preset/selected",
    "approval/asked",
    "approval/decided",
    "approval/policy",
    "command/done",
    "command/run",
    "compaction/end",
    "compaction/prune",
    "compaction/start",
    "feedback/record",
    "goal/change",
    "hook/invoked",
    "hook/result",
    "llm/retry",
    "permission/preset",
    "plan/mode",
    "sandbox/mode",
    "schedule/change",
    "subagent/descriptor",
    "todo/write",
    "tool/code-dispatch",
    "tool-workflow/agent-end",
    "tool-workflow/run-end",
];

/// Returns whether a file holds an earlier version of the log next to it: `session.v2.jsonl` next to
/// `session.v3.jsonl`.
fn is_earlier_version(name: &str, has: &dyn Fn(&str) -> bool) -> bool {
    let (_, name) = Container::of_name(name);
    let version = match name.strip_prefix("session.") {
        Some("jsonl") => Some(0),
        Some(rest) => rest
            .strip_suffix(".jsonl")
            .and_then(|version| version.strip_prefix('v'))
            .and_then(|version| version.parse::<u32>().ok()),
        None => None,
    };
    version.is_some_and(|version| {
        (version + 1..=MAX_VERSION).any(|later| has(&format!("session.v{later}.jsonl")))
    })
}

/// Claims a log by its header. A session without a parent that has a `seedLength` is not a fork.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let first = head.objects.first()?;
    let has = |log: &str| has_log(&head.path.with_file_name(log));
    let name = head.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if is_earlier_version(name, &has) {
        return None;
    }
    let is_header = first["type"] == "session"
        && first["version"].is_number()
        && first["createdAt"].is_number()
        && first.get("timestamp").is_none();
    let id = first["id"].as_str().filter(|id| is_header && !id.is_empty())?;
    let parent = first["parentSession"].as_str().filter(|parent| !parent.is_empty());
    let is_subagent = parent.is_some() && first["origin"] == "subagent";
    let relation = if is_subagent { Relation::SubagentOf } else { Relation::ForkedFrom };
    Some(SessionClaim {
        agent_id: is_subagent.then(|| id.to_owned()),
        parent: parent.map(str::to_owned),
        relation: parent.map(|_| relation),
        ..SessionClaim::new(Provider::Dsh, id)
    })
}

/// The state of the decoder between two records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
struct DshState {
    /// Number of the first record that is not a copy of one of the parent.
    seed_length: i64,
    /// True for the log of a subagent.
    is_subagent: bool,
    /// What streamed in of the response under way.
    streamed: StreamedResponse,
}

/// What the chunks of a response say until its message does.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StreamedResponse {
    reasoning: String,
    text: String,
    usage: Option<Usage>,
}

struct DshDecoder {
    state: DshState,
    text: String,
    inner: Parser,
}

impl LineDecoder for DshDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let kind = object.text("type").unwrap_or("untyped");
        if kind == "session" {
            self.decode_header(object, out);
            return RecordOutcome::Merged("header");
        }
        let time = chat::read_millis(Some(object), "time");
        out.begin_record_by_content(at, raw, time);
        if object.int("seq").is_some_and(|seq| seq < self.state.seed_length) {
            out.set_copied(true);
        }
        if self.state.is_subagent {
            out.set_sidechain(None);
        }
        let Some(data) = object.object("data") else {
            return self.decode_other_record(kind, object, out);
        };
        // Compaction writes messages again that the model is to see in place of others.
        if object.object("surfaceOp").is_some() {
            return RecordOutcome::Merged("replaced_message");
        }
        self.text.clear();
        match kind {
            "user/message" => self.decode_user_message(data, out),
            "assistant/message" => self.decode_response(data, out),
            "assistant/chunk" => {
                self.add_chunk(data, out);
                return RecordOutcome::Merged("chunk");
            }
            "text-chunks" | "reasoning-chunks" | "tool-call-chunks" => {
                let streamed = &mut self.state.streamed;
                let target = match kind {
                    "text-chunks" => &mut streamed.text,
                    "reasoning-chunks" => &mut streamed.reasoning,
                    _ => return RecordOutcome::Merged("chunk"),
                };
                for part in data.items("texts") {
                    target.push_str(string_value(part).unwrap_or(""));
                }
                return RecordOutcome::Merged("chunk");
            }
            "tool/call" => {
                let id = data.non_empty("callId");
                if id.is_some_and(|id| out.has_open_call(id)) {
                    return RecordOutcome::Merged("repeated_call");
                }
                self.push_call(data, id, out);
            }
            "tool/result" => self.decode_tool_result(data, out),
            "session/title" => {
                out.offer_title(TitleFrom::Agent, data.text("title").unwrap_or(""));
                return RecordOutcome::Merged("title");
            }
            "request/header" => {
                let config = data.object("header").and_then(|header| header.object("config"));
                out.set_model(config.and_then(|config| config.text("model")));
                return RecordOutcome::Merged("request");
            }
            "compaction/summary" => {
                chat::append_field(data, "summary", &mut self.text);
                out.push_shortened("compact_summary", &self.text);
                let usage = data.object("usage").map(read_usage).unwrap_or_default();
                out.push_usage(usage, None, None);
            }
            "step/end" | "turn/end" => {
                self.push_streamed(out);
                let reason = data.object("reason").and_then(|reason| reason.text("kind"));
                if let Some(reason) = reason.filter(|reason| *reason != "completed") {
                    let is_error = (reason == "error").then_some(true);
                    out.push_notice("turn_end", reason, is_error);
                }
            }
            kind => {
                if kind == "llm/retry" {
                    self.state.streamed = StreamedResponse::default();
                }
                return self.decode_other_record(kind, object, out);
            }
        }
        RecordOutcome::Events
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl DshDecoder {
    fn decode_header(&mut self, header: Value<'_>, out: &mut Stream) {
        out.extend_time_range(chat::read_millis(Some(header), "createdAt"));
        out.set_cwd(header.text("cwd"));
        let has_parent = header.non_empty("parentSession").is_some();
        self.state.is_subagent = header.text("origin") == Some("subagent");
        if has_parent {
            self.state.seed_length = header.int("seedLength").unwrap_or(0);
        }
    }

    /// Decodes a message of the user, or of a plugin in the user's role.
    fn decode_user_message(&mut self, data: Value<'_>, out: &mut Stream) {
        chat::append_field(data, "content", &mut self.text);
        let source = data.object("source").and_then(|source| source.text("kind"));
        if source == Some("user") {
            // An answer was interrupted.
            self.push_streamed(out);
        }
        if source == Some("user") && !self.state.is_subagent {
            out.push_prompt(&self.text);
        } else if source == Some("user") {
            out.push_text(EventType::User, &self.text);
        } else {
            out.push_shortened(source.unwrap_or("untyped"), &self.text);
        }
    }

    /// Decodes a response. Its tokens count, those of its chunks only if it has none.
    fn decode_response(&mut self, data: Value<'_>, out: &mut Stream) {
        let streamed = std::mem::take(&mut self.state.streamed);
        let Some(message) = data.object("message") else { return };
        let source = message.object("source");
        out.set_model(source.and_then(|source| source.text("model")));
        out.begin_step();
        for block in message.items("content") {
            match block.text("type") {
                Some("text") => {
                    out.push_text(EventType::Message, block.text("text").unwrap_or(""));
                }
                Some("reasoning") => {
                    out.push_text(EventType::Reasoning, block.text("text").unwrap_or(""));
                }
                Some("tool-call") => self.push_call(block, block.non_empty("id"), out),
                Some("image") => out.push_text(EventType::Message, "[image]"),
                kind => drift::push_unknown_block(kind.unwrap_or("untyped"), block, out),
            }
        }
        let usage = data.object("usage").map(read_usage).or(streamed.usage);
        out.push_usage(usage.unwrap_or_default(), None, message.non_empty("id"));
    }

    /// Pushes a call, whose arguments are JSON in a string.
    fn push_call(&mut self, call: Value<'_>, id: Option<&str>, out: &mut Stream) {
        let arguments = Arguments::of_input(call.field("arguments"), &mut self.inner);
        arguments.push_call(call.non_empty("name"), id, out);
    }

    /// Decodes the result of a call, the one block of a message.
    fn decode_tool_result(&mut self, data: Value<'_>, out: &mut Stream) {
        let Some(message) = data.object("message") else { return };
        let blocks = message.items("content");
        let block = blocks.iter().find(|block| block.text("type") == Some("tool-result"));
        let result = block.copied().unwrap_or(message);
        chat::append_field(result, "content", &mut self.text);
        let error = data.object("error");
        if self.text.is_empty()
            && let Some(error) = error
        {
            render::append_value(error, &mut self.text);
        }
        let source = message.object("source");
        let id = result.non_empty("toolCallId");
        let decoded = DecodedEvent {
            text: &self.text,
            tool_call_id: id.or_else(|| source.and_then(|source| source.non_empty("callId"))),
            is_error: Some(result.flag("isError") == Some(true) || error.is_some()),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }

    /// Keeps what a chunk says until the message of its response does.
    fn add_chunk(&mut self, data: Value<'_>, out: &mut Stream) {
        let Some(chunk) = data.object("chunk") else { return };
        let streamed = &mut self.state.streamed;
        let text = chunk.text("text").unwrap_or("");
        match chunk.text("type") {
            Some("text-delta") => streamed.text.push_str(text),
            Some("reasoning-delta") => streamed.reasoning.push_str(text),
            Some("usage") => streamed.usage = chunk.object("usage").map(read_usage),
            Some("block-start" | "block-end" | "tool-call-delta" | "finish") => {}
            kind => out.count_unknown("block", kind.unwrap_or("untyped")),
        }
    }

    /// Pushes what streamed in of a response that has no message, because it was interrupted.
    fn push_streamed(&mut self, out: &mut Stream) {
        let StreamedResponse { reasoning, text, usage } = std::mem::take(&mut self.state.streamed);
        if reasoning.is_empty() && text.is_empty() && usage.is_none() {
            return;
        }
        out.begin_step();
        if !reasoning.is_empty() {
            out.push_text(EventType::Reasoning, &reasoning);
        }
        if !text.is_empty() {
            out.push_text(EventType::Message, &text);
        }
        out.push_usage(usage.unwrap_or_default(), None, None);
    }

    /// Decodes a record without a rule of its own.
    fn decode_other_record(
        &mut self,
        kind: &str,
        object: Value<'_>,
        out: &mut Stream,
    ) -> RecordOutcome {
        if MARKERS.contains(&kind) {
            return RecordOutcome::Merged("marker");
        }
        if !NOTED.contains(&kind) {
            out.count_unknown("record", kind);
        }
        self.text.clear();
        let content = object.object("data").unwrap_or(object);
        render::append_notification(content, &["type", "seq", "time"], &mut self.text);
        out.push_notification(&kind.replace('/', "_"), &self.text);
        RecordOutcome::Events
    }
}

/// Reads token counts. Input is without the cache, and output includes the reasoning.
fn read_usage(usage: Value<'_>) -> Usage {
    Usage {
        input: usage.int("inputTokens"),
        output: usage.int("outputTokens"),
        cache_read: usage.int("cacheReadTokens"),
        cache_write: usage.int("cacheWriteTokens"),
        reasoning: usage.int("reasoningTokens"),
        ..Usage::default()
    }
}
