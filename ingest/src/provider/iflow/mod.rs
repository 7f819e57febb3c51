//! iFlow CLI: `~/.iflow/projects/<cwd>/session-<uuid>.jsonl` (docs/formats.md#iflow). A fork of
//! Gemini CLI that writes Claude's records. Its session ids begin with `session-`, Claude's do not.
//!
//! While a response streams in, each `assistant` record shows a window of it, so two or three
//! records repeat the same call. Calls count once, by their id. All records up to the next result
//! or prompt are one response.

use std::collections::VecDeque;

use schemas::{EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Quirks, Reader};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::{begin, uuid_identity};
use crate::provider::shared::{function_response, prompt};
use crate::stream::{Draft, RecordAt, Stream, micros};
use crate::text::json::{Fields, Value};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::IFlow,
    unique_ids: true,
    roots: |places| vec![places.home(".iflow/projects")],
    sniff,
    quirks: Quirks::NONE,
    reader: Reader::Lines(|_, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        Box::new(Decoder { state, text: String::new() })
    }),
};

/// Beginnings of machine text in the user's role, each with the subtype that it gets.
const MACHINE: &[(&str, &str)] = &[
    ("[Request interrupted", "interrupted"),
    ("<state_snapshot>", "compact_summary"),
    ("<system-reminder>", "system_reminder"),
    ("<local-command-", "local_command_output"),
];

/// Fields of a record's envelope, which no notification repeats.
const ENVELOPE: &[&str] = &[
    "type",
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "isSidechain",
    "userType",
    "cwd",
    "gitBranch",
    "version",
];

/// Most call ids remembered. A window reaches back only a few records.
const CALLS: usize = 64;

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let first = head.objects.iter().find(|object| is_record(object))?;
    Some(Claim {
        provider: Provider::IFlow,
        native_id: first["sessionId"].as_str()?.to_owned(),
        agent_id: None,
        parent: None,
        relation: None,
        first_record: uuid_identity(first["uuid"].as_str()),
    })
}

/// True if a record is one of iFlow's. Claude's session ids are bare uuids.
fn is_record(object: &serde_json::Value) -> bool {
    object["sessionId"].as_str().is_some_and(|id| id.starts_with("session-"))
        && ["uuid", "userType"].iter().all(|key| object[key].is_string())
        && object["isSidechain"].is_boolean()
        && object["message"]["role"].is_string()
        && object["message"].get("content").is_some()
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Ids of the last calls.
    calls: VecDeque<String>,
    /// Hashes of the texts of the response under way.
    texts: Vec<u64>,
    /// Tokens of the response under way that were already counted.
    usage: Usage,
    in_response: bool,
}

struct Decoder {
    state: State,
    text: String,
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let id = object.text("uuid");
        begin((id, uuid_identity(id)), raw, at, micros(object.text("timestamp")), out);
        out.set_cwd(object.text("cwd"));
        out.set_branch(object.text("gitBranch"));
        out.set_version(object.text("version"));
        let sidechain = object.flag("isSidechain") == Some(true);
        if sidechain {
            out.set_sidechain(None);
        }
        match (object.text("type"), object.object("message")) {
            (Some("user"), Some(message)) => {
                self.state.in_response = false;
                self.user(object, message, !sidechain, out);
            }
            (Some("assistant"), Some(message)) => self.assistant(message, out),
            (kind, _) => {
                let kind = kind.unwrap_or("untyped");
                out.drift("record", kind);
                self.text.clear();
                render::fields(object, ENVELOPE, &mut self.text);
                self.notify(kind, out);
            }
        }
        // A window may show nothing new.
        if out.pushed() == 0 { Outcome::Merged("repeated_blocks") } else { Outcome::Events }
    }

    fn save(&self) -> serde_json::Value {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}

impl Decoder {
    /// Decodes a user record: a prompt is a string, results are a list of blocks.
    fn user(&mut self, object: Value<'_>, message: Value<'_>, starts_turn: bool, out: &mut Stream) {
        let blocks = message.items("content");
        for block in blocks.iter().filter(|block| is_result(block)) {
            self.result(object, *block, out);
        }
        self.text.clear();
        if blocks.is_empty() {
            message.field("content").inspect(|content| render::content(*content, &mut self.text));
        }
        for block in blocks.iter().filter(|block| !is_result(block)) {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            render::block(*block, &mut self.text);
        }
        if self.text.is_empty() {
            return;
        }
        let start = self.text.trim_start();
        let machine = MACHINE.iter().find(|(beginning, _)| start.starts_with(beginning));
        if let Some((_, subtype)) = machine {
            self.notify(subtype, out);
        } else if object.flag("isMeta") == Some(true) {
            self.notify("meta", out);
        } else {
            prompt::typed(&self.text, starts_turn, out);
        }
    }

    /// Decodes one result. The tool's output is wrapped as in Gemini CLI, once or twice.
    fn result(&mut self, object: Value<'_>, block: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let content = block.field("content");
        let wrapped = content.map(|content| {
            let listed = || content.items("responseParts").first().copied();
            content.object("responseParts").or_else(listed).unwrap_or(content)
        });
        let response = wrapped.and_then(|wrapped| wrapped.object("functionResponse"));
        let mut failed = block.flag("is_error") == Some(true);
        match (response, content) {
            (Some(response), _) => failed |= function_response::read(response, &mut self.text),
            (None, Some(content)) => render::content(content, &mut self.text),
            (None, None) => {}
        }
        if self.text.is_empty() {
            let shown = content.and_then(|content| content.text("resultDisplay"));
            self.text.push_str(shown.unwrap_or(""));
        }
        let summary = object.object("toolUseResult");
        let status = summary.and_then(|summary| summary.text("status"));
        let exit_code = function_response::exit_code(&self.text);
        failed |= matches!(status, Some("error" | "failed"));
        failed |= exit_code.is_some_and(|code| code != 0);
        let draft = Draft {
            subtype: status.filter(|status| *status == "cancelled"),
            text: &self.text,
            tool_name: summary.and_then(|summary| summary.text("toolName")),
            tool_call_id: block.non_empty("tool_use_id"),
            is_error: Some(failed),
            exit_code,
            ..Draft::default()
        };
        out.push(EventType::ToolResult, draft);
    }

    fn assistant(&mut self, message: Value<'_>, out: &mut Stream) {
        out.set_model(message.text("model"));
        if !self.state.in_response {
            out.begin_step();
            self.state.in_response = true;
            self.state.texts.clear();
            self.state.usage = Usage::default();
        }
        for block in message.items("content") {
            self.block(block, out);
        }
        self.said(EventType::Message, message.text("content").unwrap_or(""), out);
        // Both counts are zero if the model's provider gave none.
        let usage = message.object("usage").map(usage).unwrap_or_default();
        if usage.total() > self.state.usage.total() {
            let draft = Draft {
                usage: usage.minus(self.state.usage),
                request_id: message.non_empty("id"),
                ..Draft::default()
            };
            out.push(EventType::TokenUsage, draft);
            self.state.usage = usage;
        }
    }

    fn block(&mut self, block: Value<'_>, out: &mut Stream) {
        match block.text("type") {
            Some("text") => self.said(EventType::Message, block.text("text").unwrap_or(""), out),
            Some("thinking") => {
                self.said(EventType::Reasoning, block.text("thinking").unwrap_or(""), out);
            }
            Some("tool_use") => self.call(block, out),
            kind => {
                let kind = kind.unwrap_or("block");
                out.drift("block", kind);
                self.text.clear();
                render::fields(block, &["type"], &mut self.text);
                self.notify(kind, out);
            }
        }
    }

    /// Appends a text of a response, unless an earlier window showed it.
    fn said(&mut self, kind: EventType, text: &str, out: &mut Stream) {
        let hash = xxh3_64(text.as_bytes());
        if text.is_empty() || self.state.texts.contains(&hash) {
            return;
        }
        self.state.texts.push(hash);
        out.push(kind, Draft { text, ..Draft::default() });
    }

    /// Appends a call, unless an earlier window showed it.
    fn call(&mut self, block: Value<'_>, out: &mut Stream) {
        let id = block.non_empty("id");
        if let Some(id) = id {
            if self.state.calls.iter().any(|known| known == id) {
                return;
            }
            if self.state.calls.len() == CALLS {
                self.state.calls.pop_front();
            }
            self.state.calls.push_back(id.to_owned());
        }
        let mut arguments = Arguments::default();
        if let Some(input) = block.field("input") {
            arguments.read(input);
        }
        let draft = Draft { tool_name: block.text("name"), tool_call_id: id, ..arguments.draft() };
        out.push(EventType::ToolCall, draft);
    }

    fn notify(&self, subtype: &str, out: &mut Stream) {
        let draft = Draft { subtype: Some(subtype), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}

fn is_result(block: &Value<'_>) -> bool {
    block.text("type") == Some("tool_result")
}

/// Reads the token counts of one record.
fn usage(usage: Value<'_>) -> Usage {
    Usage {
        input: usage.int("input_tokens"),
        output: usage.int("output_tokens"),
        cache_read: usage.int("cache_read_input_tokens"),
        cache_write: usage.int("cache_creation_input_tokens"),
        ..Usage::default()
    }
}
