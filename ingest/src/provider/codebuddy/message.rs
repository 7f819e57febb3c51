//! Decodes the records of CodeBuddy Code and of WorkBuddy (docs/formats.md#codebuddy).

use std::collections::VecDeque;

use schemas::{EventType, Usage};
use serde::{Deserialize, Serialize};

use crate::provider::format::{LineDecoder, RecordOutcome, state_json};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::identity::begin_uuid_record;
use crate::provider::shared::machine_text::{MachineText, split_machine_text};
use crate::provider::shared::user_query::split_user_text;
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom, push_bounded};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded};
use crate::text::render;

/// Text in the user's role that no user typed.
pub(super) const MACHINE_TEXTS: &[MachineText] = &[
    MachineText::documented("<system-reminder", "</system-reminder>", "system_reminder"),
    MachineText::documented("<local-command-stdout>", "", "local_command_output"),
    MachineText::documented("<local-command-stderr>", "", "local_command_output"),
    MachineText::documented("<command-name>", "", "command"),
    MachineText::documented("<command-message>", "", "command"),
    MachineText::documented("<task-notification", "", "task_notification"),
];

/// The tag around the order of a parent to its subagent.
const ORDER_TAG: &str = "<teammate-message";

/// Marks of text in the user's role that no user typed, in a record or its `providerData`, each with
/// the subtype of its notification.
const MACHINE_MARKS: &[(&str, &str)] = &[
    ("isSummary", "compact_summary"),
    ("isCompacted", "compact_summary"),
    ("isCompactInternal", "compact"),
    ("compactType", "compact"),
    ("isMeta", "meta"),
    ("skipRun", "client"),
];

/// Records that say nothing about the conversation, each with the reason why it gives no event.
const SIDE_RECORDS: &[(&str, &str)] = &[
    ("file-history-snapshot", "file_history"),
    ("session-meta", "session_meta"),
    ("turn-metrics", "turn_metrics"),
];

/// Titles, each with the field of its record and its source.
const TITLES: &[(&str, &str, TitleFrom)] = &[
    ("custom-title", "customTitle", TitleFrom::User),
    ("ai-title", "aiTitle", TitleFrom::Agent),
    ("topic", "topic", TitleFrom::Summary),
];

/// Maximum number of responses that are remembered. The records of one are near each other.
const MAX_RESPONSES: usize = 64;

/// Fields of a record around what it says.
const ENVELOPE: &[&str] = &["id", "parentId", "timestamp", "type", "sessionId", "cwd"];

/// The state of the decoder between two records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CodeBuddyState {
    /// The id of the response under way; empty if it has none.
    response: String,
    /// True while a response of the model is under way.
    in_response: bool,
    /// Responses whose tokens were counted.
    counted: VecDeque<String>,
}

/// Decoder of one log.
pub(super) struct CodeBuddyDecoder {
    state: CodeBuddyState,
    /// True if the log is that of a subagent, whose prompts another model wrote.
    is_subagent: bool,
    text: String,
    inner: Parser,
}

impl CodeBuddyDecoder {
    pub(super) fn new(state: CodeBuddyState, is_subagent: bool) -> Self {
        Self { state, is_subagent, text: String::new(), inner: Parser::default() }
    }
}

impl LineDecoder for CodeBuddyDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = object.text("id");
        let time = chat::read_millis(Some(object), "timestamp");
        begin_uuid_record(id, raw, at, time, out);
        out.set_cwd(object.non_empty("cwd"));
        let data = object.object("providerData");
        let kind = object.text("type").unwrap_or("untyped");
        if let Some((_, field, source)) = TITLES.iter().find(|(known, ..)| *known == kind) {
            let title = [*field, "title"].iter().find_map(|field| object.non_empty(field));
            out.offer_title(*source, title.unwrap_or(""));
            return RecordOutcome::Merged("title");
        }
        if let Some((_, reason)) = SIDE_RECORDS.iter().find(|(known, _)| *known == kind) {
            return RecordOutcome::Merged(reason);
        }

        self.text.clear();
        match (kind, object.text("role")) {
            ("message", Some("user")) => {
                self.state.in_response = false;
                self.push_user_message(object, data, out);
            }
            ("message", Some("assistant")) => {
                self.begin_response(data, out);
                append_parts(object, "content", &mut self.text);
                if !self.text.is_empty() {
                    out.push_text(EventType::Message, &self.text);
                }
                self.push_usage(data, out);
            }
            ("reasoning", _) => {
                self.begin_response(data, out);
                append_parts(object, "rawContent", &mut self.text);
                if self.text.is_empty() {
                    append_parts(object, "content", &mut self.text);
                }
                if !self.text.is_empty() {
                    out.push_text(EventType::Reasoning, &self.text);
                }
            }
            ("function_call", _) => {
                self.begin_response(data, out);
                let arguments = Arguments::of_input(object.field("arguments"), &mut self.inner);
                arguments.push_call(object.text("name"), object.non_empty("callId"), out);
                self.push_usage(data, out);
            }
            ("function_call_result", _) => {
                self.state.in_response = false;
                self.push_result(object, data, out);
            }
            (kind, role) => {
                render::append_notification(object, ENVELOPE, &mut self.text);
                if kind == "summary" {
                    out.push_notification("compact_summary", &self.text);
                } else {
                    // A message of an unknown role.
                    let name = role.filter(|_| kind == "message").unwrap_or(kind);
                    out.count_unknown("record", name);
                    out.push_notification(name, &self.text);
                }
            }
        }
        RecordOutcome::Events.merged_if_empty(out)
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl CodeBuddyDecoder {
    /// Begins a step at the first record of a response.
    fn begin_response(&mut self, data: Option<Value<'_>>, out: &mut Stream) {
        out.set_model(data.and_then(|data| data.non_empty("model")));
        let id = data.and_then(|data| data.text("messageId")).unwrap_or("");
        if !self.state.in_response || id != self.state.response {
            out.begin_step();
            self.state.in_response = true;
            id.clone_into(&mut self.state.response);
        }
    }

    /// Pushes a prompt, and notifications for what the client added to it.
    fn push_user_message(&mut self, object: Value<'_>, data: Option<Value<'_>>, out: &mut Stream) {
        let is_marked = |mark: &str| {
            let fields = [Some(object), data].into_iter().flatten();
            fields
                .into_iter()
                .any(|fields| fields.flag(mark) == Some(true) || fields.non_empty(mark).is_some())
        };
        if let Some((_, subtype)) = MACHINE_MARKS.iter().find(|(mark, _)| is_marked(mark)) {
            append_parts(object, "content", &mut self.text);
            return out.push_shortened(subtype, &self.text);
        }

        let plain = object.text("content").into_iter();
        let parts = object.items("content");
        for text in parts.iter().filter_map(|part| part.text("text")).chain(plain) {
            let mut rest = text;
            while let Some(block) = split_machine_text(MACHINE_TEXTS, rest) {
                out.push_notification(block.subtype, block.text);
                rest = block.rest;
            }
            if !rest.trim().is_empty() {
                render::append_line(rest, &mut self.text);
            }
        }
        if self.text.contains("<user_query>") {
            let words = split_user_text(&self.text);
            words.push_context(out);
            self.text = words.prompt;
        }
        for part in parts {
            render::note_block(part);
            if part.text("type") == Some("image_blob_ref") {
                let kind = part.text("mime").unwrap_or("image");
                let bytes = part.int("size").unwrap_or(0);
                render::append_line(&format!("[{kind} {bytes} bytes]"), &mut self.text);
            } else if part.text("text").is_none() {
                render::begin_new_line(&mut self.text);
                render::append_block(part, &mut self.text);
            }
        }
        if self.text.trim().is_empty() {
            return;
        }
        if self.is_subagent || self.text.trim_start().starts_with(ORDER_TAG) {
            out.push_text(EventType::User, &self.text);
        } else {
            out.push_prompt(&self.text);
        }
    }

    /// Pushes the result of a call.
    fn push_result(&mut self, object: Value<'_>, data: Option<Value<'_>>, out: &mut Stream) {
        if let Some(output) = object.field("output") {
            render::append_content(output, &mut self.text);
        }
        let details = data.and_then(|data| data.object("toolResult"));
        let error = details.and_then(|details| details.non_empty("error"));
        if let Some(error) = error.filter(|_| self.text.is_empty()) {
            self.text.push_str(error);
        }
        // The screen shows which agent a call started.
        let renderer = details.and_then(|details| details.object("renderer"));
        let mut spawned = None;
        let shown = renderer.and_then(|renderer| renderer.text("value")).unwrap_or("");
        decode_embedded(shown, &mut self.inner, |value| {
            spawned = value.non_empty("taskId").map(str::to_owned);
        });
        let status = object.text("status").unwrap_or("completed");
        let decoded = DecodedEvent {
            text: &self.text,
            tool_name: object.non_empty("name"),
            tool_call_id: object.non_empty("callId"),
            spawned_agent_id: spawned.as_deref(),
            is_error: Some(error.is_some() || status != "completed"),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }

    /// Pushes the counts of a response, unless an earlier record of it had them.
    fn push_usage(&mut self, data: Option<Value<'_>>, out: &mut Stream) {
        let Some(data) = data else { return };
        let usage = match (data.object("rawUsage"), data.object("usage")) {
            (Some(usage), _) => read_raw_usage(usage),
            (None, Some(usage)) => read_usage(usage),
            (None, None) => return,
        };
        let response = data.non_empty("messageId");
        if response.is_some_and(|id| self.state.counted.iter().any(|known| known == id)) {
            return;
        }
        if out.push_usage(usage, None, response)
            && let Some(id) = response
        {
            push_bounded(&mut self.state.counted, MAX_RESPONSES, id.to_owned());
        }
    }
}

/// Appends the texts of a list of parts, or a text.
fn append_parts(object: Value<'_>, key: &str, text: &mut String) {
    if let Some(plain) = object.text(key) {
        text.push_str(plain);
    }
    for part in object.items(key) {
        render::begin_new_line(text);
        render::append_block(part, text);
    }
}

/// Reads counts as the API of OpenAI names them. The prompt includes the tokens of the cache, read
/// and written, which are under one of three names.
fn read_raw_usage(usage: Value<'_>) -> Usage {
    let prompt_details = usage.object("prompt_tokens_details");
    let cached = [
        usage.int("cache_read_input_tokens"),
        prompt_details.and_then(|details| details.int("cached_tokens")),
        usage.int("prompt_cache_hit_tokens"),
    ];
    let details = usage.object("completion_tokens_details");
    Usage {
        output: usage.int("completion_tokens"),
        reasoning: details.and_then(|details| details.int("reasoning_tokens")),
        ..chat::without_cache(
            usage.int("prompt_tokens"),
            [cached.into_iter().flatten().max(), usage.int("cache_creation_input_tokens")],
        )
    }
}

/// Reads counts as CodeBuddy names them. Details may be in a list with one element.
fn read_usage(usage: Value<'_>) -> Usage {
    let detail = |list: &str, key: &str| {
        let details = usage.object(list).or_else(|| usage.items(list).first().copied());
        details.and_then(|details| details.int(key))
    };
    let cached = [usage.int("cacheReadInputTokens"), detail("inputTokensDetails", "cached_tokens")];
    Usage {
        output: usage.int("outputTokens"),
        reasoning: detail("outputTokensDetails", "reasoning_tokens"),
        ..chat::without_cache(
            usage.int("inputTokens"),
            [cached.into_iter().flatten().max(), usage.int("cacheCreationInputTokens")],
        )
    }
}
