//! Decodes the messages of ZCode and their parts (docs/formats.md#zcode).

use schemas::{EventType, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::provider::shared::identity::{begin_identified_record, hash_id};
use crate::stream::{DecodedEvent, RecordAt, Stream};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded};
use crate::text::render;

/// The table of messages.
pub(super) const MESSAGES: &str = "message";

/// The kind of a message of the user that the user typed. Older ones have no kind.
const TYPED: &str = "user_prompt";

/// Known types of parts that become notifications.
const SIDE_PARTS: &[&str] = &["compaction", "file", "patch", "retry", "timeline"];

/// Types of parts that only mark a place.
const MARKS: &[&str] = &["step-start", "step-finish", "snapshot"];

/// Providers of the agents that ZCode runs (Claude Code, Codex and Gemini CLI). Their tokens are in
/// their own logs as well.
const OTHER_AGENTS: &[&str] = &["anthropic", "openai", "google"];

/// The parent of the first message of a session.
const ROOT: u64 = 0;

/// Who wrote the parts of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Author {
    /// The user; nothing of the prompt was read yet.
    User,
    /// The user; a part of the prompt was read.
    UserAgain,
    Model,
    /// A machine, with the subtype of its notifications.
    Machine(String),
    #[default]
    Unknown,
}

/// The messages that the user undid by going back: from `first` to the one before `next`.
#[derive(Debug, Default)]
struct Rewind {
    first: String,
    /// The first message after those that were undone.
    next: Option<String>,
    /// The last message that was undone, if the next one is not known.
    last: Option<String>,
    /// The entry before the first one.
    parent: Option<u64>,
}

/// Decodes the messages of one session in order.
#[derive(Default)]
pub(super) struct ZcodeDecoder {
    rewind: Option<Rewind>,
    /// The entry of the tree before the next message.
    before: u64,
    author: Author,
    text: String,
}

impl ZcodeDecoder {
    pub(super) fn new(info: Value<'_>) -> Self {
        let mut rewind = None;
        decode_embedded(info.text("revert").unwrap_or(""), &mut Parser::default(), |revert| {
            let field = |name: &str| revert.non_empty(name).map(str::to_owned);
            rewind = field("targetMessageID").map(|first| Rewind {
                first,
                next: field("createdMessageID"),
                last: field("branchCutAfterMessageID"),
                parent: None,
            });
        });
        Self { rewind, ..Self::default() }
    }

    /// Decodes one message, or a part of the message before it.
    pub(super) fn decode_record(
        &mut self,
        record: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = record.non_empty("id");
        let data = record.object("data");
        let time = data.and_then(|data| data.object("time"));
        let created = ["created", "start"].iter().find_map(|key| chat::read_millis(time, key));
        let identity = id.map(hash_id);
        let is_message = record.text("table") == Some(MESSAGES);
        if is_message {
            out.begin_message(id);
        }
        begin_identified_record((id, identity), raw, at, created, out);
        if is_message {
            self.add_to_tree(id.unwrap_or_default(), out);
        }
        self.text.clear();
        match data {
            Some(data) if is_message => self.decode_message(id, data, out),
            Some(data) => self.decode_part(data, out),
            None if record.text("type") == Some(OVERSIZED_RECORD) => {
                if is_message {
                    self.author = Author::Unknown;
                }
                let what = if is_message { "message" } else { "part of a message" };
                push_oversized(what, record.int("bytes").unwrap_or(0), at, out);
            }
            None => {
                out.count_unknown("field", "data");
                render::append_notification(record, &["table", "id"], &mut self.text);
                out.push_notification("untyped", &self.text);
            }
        }
        RecordOutcome::Events.merged_if_empty(out)
    }

    /// Adds a message to the tree of the session. The first one after those that were undone follows
    /// the one before them.
    fn add_to_tree(&mut self, id: &str, out: &mut Stream) {
        let entry = xxh3_64(id.as_bytes()) | 1;
        let mut parent = self.before;
        if let Some(rewind) = &mut self.rewind {
            if rewind.first == id {
                rewind.parent = Some(parent);
            }
            let undone = rewind.parent;
            if rewind.next.as_deref() == Some(id)
                && let Some(undone) = undone
            {
                parent = undone;
            }
        }
        out.add_tree_entry(entry, parent);
        self.before = entry;
        if let Some(rewind) = &self.rewind
            && rewind.next.is_none()
            && rewind.last.as_deref() == Some(id)
        {
            self.before = rewind.parent.unwrap_or(ROOT);
        }
    }

    fn decode_message(&mut self, id: Option<&str>, data: Value<'_>, out: &mut Stream) {
        let kind = data.object("semantics").and_then(|semantics| semantics.non_empty("kind"));
        let source = data.object("metadata").and_then(|metadata| metadata.non_empty("source"));
        let role = data.text("role").unwrap_or("untyped");
        self.author = match role {
            "assistant" => Author::Model,
            "user" if data.flag("synthetic") == Some(true) || source == Some("rewind") => {
                Author::Machine(kind.or(source).unwrap_or("synthetic").to_owned())
            }
            "user" => match kind.filter(|kind| *kind != TYPED) {
                Some(kind) => Author::Machine(kind.to_owned()),
                None => Author::User,
            },
            role => {
                if role != "system" {
                    out.count_unknown("record", role);
                }
                Author::Machine(role.to_owned())
            }
        };
        if self.author != Author::Model {
            return;
        }
        out.set_model(data.non_empty("modelID").or_else(|| data.non_empty("modelId")));
        out.set_cwd(data.object("path").and_then(|path| path.non_empty("cwd")));
        out.begin_step();
        let is_other_agent = OTHER_AGENTS.contains(&data.text("providerID").unwrap_or_default());
        if let Some(tokens) = data.object("tokens").filter(|_| !is_other_agent) {
            out.push_usage(read_usage(tokens), data.cost("cost"), id);
        }
        if let Some(error) = data.object("error") {
            let message = error.object("data").and_then(|data| data.non_empty("message"));
            match message.or_else(|| error.non_empty("message")) {
                Some(message) => self.text.push_str(message),
                None => render::append_notification(error, &[], &mut self.text),
            }
            out.push_notice(error.text("name").unwrap_or("error"), &self.text, Some(true));
        }
    }

    fn decode_part(&mut self, part: Value<'_>, out: &mut Stream) {
        let kind = part.text("type").unwrap_or("untyped");
        let text = part.non_empty("text");
        let is_machine = part.flag("synthetic") == Some(true) || part.flag("ignored") == Some(true);
        match (kind, &self.author) {
            ("text" | "reasoning", Author::Machine(subtype)) => {
                self.text.push_str(text.unwrap_or(""));
                out.push_shortened(subtype, &self.text);
            }
            ("text", _) if is_machine => {
                self.text.push_str(text.unwrap_or(""));
                out.push_shortened("synthetic", &self.text);
            }
            ("text", Author::User) => {
                if let Some(text) = text {
                    out.push_prompt(text);
                    self.author = Author::UserAgain;
                }
            }
            ("text", Author::UserAgain) => {
                if let Some(text) = text {
                    out.push_text(EventType::User, text);
                }
            }
            ("text", Author::Model) => {
                if let Some(text) = text {
                    out.push_text(EventType::Message, text);
                }
            }
            ("reasoning", _) => {
                if let Some(text) = text {
                    out.push_text(EventType::Reasoning, text);
                }
            }
            ("tool", _) => self.push_call(part, out),
            _ if MARKS.contains(&kind) => {}
            _ => {
                if !SIDE_PARTS.contains(&kind) && kind != "text" {
                    out.count_unknown("block", kind);
                }
                render::append_notification(part, &["type", "id"], &mut self.text);
                out.push_notification(kind, &self.text);
            }
        }
    }

    /// Pushes a call, and its result if it has one.
    fn push_call(&mut self, part: Value<'_>, out: &mut Stream) {
        let state = part.object("state");
        let time = state.and_then(|state| state.object("time"));
        let (name, id) = (part.text("tool"), part.non_empty("callID"));
        let arguments = Arguments::of_value(state.and_then(|state| state.field("input")));
        let timestamp = chat::read_millis(time, "start");
        let call =
            DecodedEvent { tool_name: name, tool_call_id: id, timestamp, ..arguments.decoded() };
        out.push(EventType::ToolCall, call);

        let status = state.and_then(|state| state.text("status"));
        if !matches!(status, Some("completed" | "error")) {
            return;
        }
        let answers = ["output", "error"];
        for answer in answers.iter().filter_map(|key| state.and_then(|state| state.non_null(key))) {
            render::begin_new_line(&mut self.text);
            chat::append_content(answer, &mut self.text);
        }
        let metadata = state.and_then(|state| state.object("metadata"));
        let spawned = metadata.and_then(|metadata| metadata.non_empty("sessionId"));
        let result = DecodedEvent {
            text: &self.text,
            tool_name: name,
            tool_call_id: id,
            is_error: Some(status == Some("error")),
            spawned_agent_id: spawned,
            timestamp: chat::read_millis(time, "end"),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, result);
    }
}

/// Reads token counts. The input includes the cache, and the output includes the reasoning.
fn read_usage(tokens: Value<'_>) -> Usage {
    let cache = tokens.object("cache");
    let cached = ["read", "write"].map(|key| cache.and_then(|cache| cache.int(key)));
    Usage {
        output: tokens.int("output"),
        reasoning: tokens.int("reasoning"),
        ..chat::without_cache(tokens.int("input"), cached)
    }
}
