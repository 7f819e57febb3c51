//! Claude Code: `~/.claude/projects/<cwd>/<sessionId>.jsonl` (docs/formats.md#claude-code).

mod head;
mod known;
mod printed;
mod queue;
mod subagent;
mod user;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use schemas::{Confidence, EventType, Provider, Usage};
use serde::{Deserialize, Serialize};

use self::printed::Printed;
use self::queue::Queue;
use self::subagent::Subagents;
use crate::provider::format::{Format, LineDecoder, Outcome, Places, Quirks, Reader};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::identity::{begin, uuid_identity};
use crate::provider::shared::{drift, prompt};
use crate::stream::{Draft, RecordAt, Stream, TitleFrom, micros};
use crate::text::json::{Fields, Value};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::Claude,
    unique_ids: true,
    roots,
    sniff: head::sniff,
    quirks: Quirks {
        is_beside_log: Some(|name, has| {
            // Describes the subagent whose log is next to it.
            let agent = name.strip_suffix(".meta.json");
            agent.is_some_and(|agent| agent.starts_with("agent-") && has(&format!("{agent}.jsonl")))
        }),
        ..Quirks::NONE
    },
    reader: Reader::Lines(|claim, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        let (agent_file, subagents) = (claim.agent_id.is_some(), Subagents::default());
        Box::new(Decoder { state, agent_file, subagents, text: String::new() })
    }),
};

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    match places.set("CLAUDE_CONFIG_DIR") {
        // Several folders, with commas between them.
        Some(list) => list
            .to_string_lossy()
            .split(',')
            .map(|dir| Path::new(dir.trim()).join("projects"))
            .collect(),
        None => vec![places.home(".claude/projects"), places.config("claude/projects")],
    }
}

/// Fields of a notice about a refused answer that are appended to its text.
const REFUSAL: [&str; 4] =
    ["apiRefusalCategory", "apiRefusalExplanation", "originalModel", "fallbackModel"];

/// Envelope fields of a record, which are left out of the text of notifications.
const ENVELOPE: &[&str] = &[
    "type",
    "subtype",
    "uuid",
    "parentUuid",
    "sessionId",
    "session_id",
    "timestamp",
    "cwd",
    "version",
    "isSidechain",
    "userType",
    "gitBranch",
    "slug",
    "entrypoint",
    "promptId",
    "agentId",
    "isMeta",
    "logicalParentUuid",
    "leafUuid",
    "messageId",
    "toolUseID",
    "parentToolUseID",
    "level",
    "sourceToolAssistantUUID",
    "requestId",
];

/// Maximum number of API messages that are remembered. The lines of one message are close together.
const MESSAGES: usize = 64;

/// One API message. Its lines share the id, the step and the usage.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ApiMessage {
    id: String,
    step: i32,
    usage: Usage,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    messages: VecDeque<ApiMessage>,
    #[serde(default)]
    queue: Queue,
    #[serde(default)]
    printed: Printed,
}

struct Decoder {
    state: State,
    /// True if the whole log belongs to a subagent. Its prompts then begin turns.
    agent_file: bool,
    subagents: Subagents,
    text: String,
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let snapshot_time = || object.object("snapshot").and_then(|s| micros(s.text("timestamp")));
        let time = micros(object.text("timestamp")).or_else(snapshot_time);
        let inner = self.subagents.message(object, out);
        if let Some((agent, _)) = inner {
            for said in subagent::said(object) {
                let uuid = uuid_identity(said.text("uuid"));
                if uuid.is_some_and(|uuid| !out.has_read(uuid)) {
                    out.begin_record(at, uuid, micros(said.text("timestamp")).or(time));
                    self.subagent(said, agent, out);
                }
            }
        }
        let id = inner.map_or(object, |(_, inner)| inner).text("uuid");
        let uuid = uuid_identity(id);
        // A record of a fork names its original. Copies made by the Agent SDK have uuids of their
        // own, and copies of such a copy name the copy.
        let original = object.object("forkedFrom");
        let original = original.and_then(|original| uuid_identity(original.text("messageUuid")));
        let copied = original.is_some_and(|original| out.repeats(original));
        let identity = if copied { uuid } else { original.or(uuid) };
        begin((id, identity), raw, at, time, out);
        if copied {
            out.set_copied(true);
        }
        if let Some((agent, inner)) = inner {
            self.subagent(inner, agent, out);
            return Outcome::Events;
        }
        drift::fields(object, known::FIELDS, out);
        drift::record(object.text("type").unwrap_or("untyped"), known::RECORDS, out);
        out.hangs_on(uuid_identity(object.text("parentUuid")));
        out.set_cwd(object.text("cwd"));
        out.set_branch(object.text("gitBranch"));
        out.set_version(object.text("version"));
        let sidechain = !self.agent_file && object.flag("isSidechain") == Some(true);
        if sidechain {
            out.set_sidechain(object.non_empty("agentId"));
        }
        match object.text("type") {
            Some("assistant") if object.object("message").is_some() => {
                self.state.queue.answered();
                self.assistant(object, out);
            }
            Some("user") if object.object("message").is_some() => {
                if self.state.queue.sent(object, out) {
                    return Outcome::Merged("twin_of_prompt");
                }
                user::record(object, !sidechain, &mut self.text, out);
                self.state.printed.answered(object, &mut self.text, out);
                if self.subagents.lacks_counts(object, out) {
                    out.set_confidence(Confidence::Partial);
                }
            }
            // Commands that the client itself runs.
            Some("system") if object.text("subtype") == Some("local_command") => {
                user::typed(object.text("content").unwrap_or(""), None, !sidechain, out);
            }
            Some("progress") => {
                self.side_record("progress", object, out);
                self.state.printed.progress(object, at, out);
            }
            Some("attachment") => self.attachment(object, out),
            Some("queue-operation") => {
                self.side_record("queue-operation", object, out);
                self.state.queue.operation(object, at, out);
            }
            kind => self.side_record(kind.unwrap_or("untyped"), object, out),
        }
        Outcome::Events
    }

    fn save(&self) -> serde_json::Value {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}

impl Decoder {
    /// Decodes a message of a subagent that has no log of its own.
    fn subagent(&mut self, message: Value<'_>, agent: &str, out: &mut Stream) {
        out.set_sidechain(Some(agent).filter(|agent| !agent.is_empty()));
        out.set_confidence(Confidence::Partial);
        if message.text("type") == Some("assistant") {
            self.assistant(message, out);
        } else {
            user::record(message, false, &mut self.text, out);
        }
    }

    fn assistant(&mut self, object: Value<'_>, out: &mut Stream) {
        let Some(message) = object.object("message") else { return };
        // Text that the client itself wrote in the assistant's role is not a model response.
        let api_error = object.flag("isApiErrorMessage") == Some(true);
        if api_error || message.text("model") == Some("<synthetic>") {
            self.text.clear();
            message.field("content").inspect(|content| render::content(*content, &mut self.text));
            let subtype = Some(if api_error { "api_error" } else { "synthetic" });
            let draft = Draft {
                subtype,
                text: &self.text,
                is_error: api_error.then_some(true),
                ..Draft::default()
            };
            return out.push(EventType::Notification, draft);
        }
        out.set_model(message.text("model"));
        let request = match (message.non_empty("id"), object.non_empty("requestId")) {
            (None, _) => None,
            (Some(id), None) => Some(id.to_owned()),
            (Some(id), Some(request)) => Some(format!("{id}:{request}")),
        };
        let known =
            request.as_ref().and_then(|id| self.state.messages.iter().position(|m| m.id == *id));
        let step = known.map_or_else(|| out.begin_step(), |at| self.state.messages[at].step);
        let blocks = message.items("content");
        for block in &blocks {
            self.block(*block, step, out);
        }
        if blocks.is_empty() {
            let text = message.text("content").unwrap_or("");
            out.push_in(EventType::Message, step, Draft { text, ..Draft::default() });
        }
        // Every line of a request repeats its usage, and the largest record counts. An event holds
        // only the increase over the lines before (docs/formats.md#claude-code).
        let usage = message.object("usage").map(usage).unwrap_or_default();
        let before = known.map(|at| self.state.messages[at].usage).unwrap_or_default();
        let news = !usage.is_unknown() && (known.is_none() || usage.total() > before.total());
        if news {
            let draft = Draft {
                usage: usage.minus(before),
                request_id: request.as_deref(),
                ..Draft::default()
            };
            out.push_in(EventType::TokenUsage, step, draft);
        }
        match (known, request) {
            (Some(at), _) if news => self.state.messages[at].usage = usage,
            (None, Some(id)) => {
                if self.state.messages.len() == MESSAGES {
                    self.state.messages.pop_front();
                }
                self.state.messages.push_back(ApiMessage { id, step, usage });
            }
            _ => {}
        }
    }

    fn block(&mut self, block: Value<'_>, step: i32, out: &mut Stream) {
        self.text.clear();
        let tool_call_id = block.non_empty("id");
        match block.text("type") {
            Some("text") => {
                let text = block.text("text").unwrap_or("");
                out.push_in(EventType::Message, step, Draft { text, ..Draft::default() });
            }
            Some("thinking") => {
                let text = block.text("thinking").unwrap_or("");
                out.push_in(EventType::Reasoning, step, Draft { text, ..Draft::default() });
            }
            Some("redacted_thinking") => {
                let bytes = block.text("data").map_or(0, str::len);
                let text = format!("[encrypted reasoning, {bytes} bytes]");
                out.push_in(EventType::Reasoning, step, Draft { text: &text, ..Draft::default() });
            }
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                let mut arguments = Arguments::default();
                block.field("input").inspect(|input| arguments.read(*input));
                let tool_name = block.text("name");
                let draft = Draft { tool_name, tool_call_id, ..arguments.draft() };
                out.push_in(EventType::ToolCall, step, draft);
            }
            Some(kind) if kind.ends_with("_tool_result") => {
                block.field("content").inspect(|content| render::content(*content, &mut self.text));
                let tool_call_id = block.non_empty("tool_use_id");
                let draft = Draft { text: &self.text, tool_call_id, ..Draft::default() };
                out.push_in(EventType::ToolResult, step, draft);
            }
            kind => {
                if kind != Some("fallback") {
                    out.drift("block", kind.unwrap_or("untyped"));
                }
                render::fields(block, &["type"], &mut self.text);
                let draft = Draft {
                    subtype: Some(kind.unwrap_or("block")),
                    text: &self.text,
                    ..Draft::default()
                };
                out.push_in(EventType::Notification, step, draft);
            }
        }
    }

    /// Decodes context that the client attached. A prompt typed while the agent worked arrives here
    /// too.
    fn attachment(&mut self, object: Value<'_>, out: &mut Stream) {
        let Some(attachment) = object.object("attachment") else {
            return self.side_record("attachment", object, out);
        };
        self.text.clear();
        let kind = attachment.text("type").unwrap_or("attachment");
        if kind == "queued_command" && attachment.text("commandMode") == Some("prompt") {
            attachment.field("prompt").inspect(|prompt| render::content(*prompt, &mut self.text));
            if !self.state.queue.attached(&self.text, out) {
                return prompt::typed(&self.text, true, out);
            }
        }
        render::fields(attachment, &["type", "toolUseID"], &mut self.text);
        let is_error = kind.ends_with("_error").then_some(true);
        let draft = Draft { subtype: Some(kind), text: &self.text, is_error, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }

    /// Decodes a record that is not part of the conversation, of a known or unknown type.
    fn side_record(&mut self, kind: &str, object: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let text = &mut self.text;
        let mut subtype = kind;
        let mut is_error = None;
        let (mut tool_call_id, mut spawned_agent_id) = (None, None);
        match kind {
            "system" => {
                subtype = object.text("subtype").unwrap_or("system");
                is_error = subtype.ends_with("_error").then_some(true);
                match object.non_empty("content") {
                    Some(content) => {
                        text.push_str(content);
                        // Adds why an answer was refused, and which model took over.
                        for key in REFUSAL {
                            let fact = object.non_empty(key).map(|fact| format!("\n{key}: {fact}"));
                            text.extend(fact);
                        }
                    }
                    None => render::fields(object, ENVELOPE, text),
                }
                // Adds how large the context was, and why it was compacted.
                for key in ["compactMetadata", "microcompactMetadata"] {
                    let lists = ["compactedToolIds", "clearedAttachmentUUIDs"];
                    object.object(key).inspect(|facts| render::fields(*facts, &lists, text));
                }
            }
            "progress" => {
                // Partial output and a subagent's messages are complete in records of their own.
                if let Some(data) = object.object("data") {
                    subtype = data.text("type").unwrap_or("progress");
                    // The result of an interrupted agent does not name the agent.
                    spawned_agent_id = data.non_empty("agentId");
                    let call = object.non_empty("parentToolUseID");
                    tool_call_id = call.filter(|_| spawned_agent_id.is_some());
                    let skip =
                        ["type", "message", "prompt", "normalizedMessages", "output", "fullOutput"];
                    render::fields(data, &skip, text);
                }
            }
            "summary" => {
                let summary = object.text("summary").unwrap_or("");
                text.push_str(summary);
                // The title belongs to the session whose log has this message, which is often
                // another session.
                let leaf = uuid_identity(object.text("leafUuid"));
                if leaf.is_some_and(|leaf| out.has_read(leaf)) {
                    out.title(TitleFrom::Summary, summary);
                }
            }
            "ai-title" | "custom-title" => {
                let title =
                    object.text("customTitle").or_else(|| object.text("aiTitle")).unwrap_or("");
                text.push_str(title);
                let from =
                    if kind == "custom-title" { TitleFrom::Person } else { TitleFrom::Agent };
                out.title(from, title);
            }
            "file-history-snapshot" => {
                let files = object.object("snapshot").and_then(|s| s.object("trackedFileBackups"));
                for (path, _) in files.and_then(|files| files.as_object()).iter().flatten() {
                    text.push_str(path);
                    text.push('\n');
                }
            }
            // The prompt itself is in a record of its own.
            "last-prompt" => {}
            _ => render::fields(object, ENVELOPE, text),
        }
        render::cut(text);
        let subtype = Some(subtype);
        let draft =
            Draft { subtype, text, is_error, tool_call_id, spawned_agent_id, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}

/// Parses the token counts of one line. Cache writes are the sum of the two lifetimes if those are
/// given.
fn usage(usage: Value<'_>) -> Usage {
    let lifetime = |key: &str| usage.object("cache_creation").and_then(|parts| parts.int(key));
    let five_minutes = lifetime("ephemeral_5m_input_tokens");
    let one_hour = lifetime("ephemeral_1h_input_tokens");
    let lifetimes =
        five_minutes.or(one_hour).map(|_| five_minutes.unwrap_or(0) + one_hour.unwrap_or(0));
    Usage {
        input: usage.int("input_tokens"),
        output: usage.int("output_tokens"),
        cache_read: usage.int("cache_read_input_tokens"),
        cache_write: lifetimes.or_else(|| usage.int("cache_creation_input_tokens")),
        cache_write_1h: one_hour,
        reasoning: usage.object("output_tokens_details").and_then(|d| d.int("thinking_tokens")),
    }
}
