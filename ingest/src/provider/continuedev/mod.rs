//! Reads the sessions of Continue, the editor extension and the CLI, from
//! `~/.continue/sessions/<id>.json` (docs/formats.md#continue).
//!
//! ```text
//! {"sessionId":"...","title":"...","workspaceDirectory":"file:///...","history":[
//!   {"message":{"role":"user","content":[{"type":"text","text":"..."}],"id":"..."},
//!    "contextItems":[...]},
//!   {"message":{"role":"assistant","content":"...","id":"...","toolCalls":[...]},
//!    "promptLogs":[{"modelTitle":"...","prompt":"..."}],
//!    "toolCallStates":[{"toolCallId":"c1","status":"done","output":[{"content":"..."}]}]}]}
//! ```
//!
//! `sessions.json` next to them lists the sessions with the times at which they began. Messages have
//! no times.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use schemas::session::SHUTDOWN_SUM;
use schemas::{EventType, Provider, Usage};

use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::document::{Document, DocumentLayout};
use crate::provider::shared::file_uri::file_uri_path;
use crate::provider::shared::identity::{begin_header_record, uuid_identity};
use crate::provider::shared::{chat, sidecar};
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Continue,
    has_unique_ids: true,
    decoder_version: 2,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { is_sidecar: Some(|name, _| name == INDEX), ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// The list of the sessions in a folder.
pub(super) const INDEX: &str = "sessions.json";

/// Maximum size in bytes of that list.
const MAX_INDEX_BYTES: u64 = 16 << 20;

/// The field of a session that holds its messages.
const HISTORY: &str = "history";

const LAYOUT: DocumentLayout = DocumentLayout {
    list: Some(HISTORY),
    header: &["title", "workspaceDirectory", "chatModelTitle", "usage"],
};

/// Titles that Continue gives to sessions without one.
const PLACEHOLDER_TITLES: &[&str] = &["New Session", "Untitled Session"];

/// States of a call that has a result.
const DONE: &[&str] = &["done", "errored", "canceled"];

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let home = places.env_path("CONTINUE_GLOBAL_DIR");
    vec![home.unwrap_or_else(|| places.home_path(".continue")).join("sessions")]
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let fields = head.document()?;
    let id = fields.get("sessionId")?.as_str().filter(|id| !id.is_empty())?;
    let is_session = fields.contains_key("workspaceDirectory")
        && (fields.contains_key(HISTORY) || fields.contains_key("title"));
    let first = fields.get(HISTORY).and_then(|history| history[0]["message"]["id"].as_str());
    is_session.then(|| SessionClaim {
        first_record: uuid_identity(first),
        ..SessionClaim::new(Provider::Continue, id)
    })
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let session = Document::read(bytes, &LAYOUT, out, tally);
    let path = PathBuf::from(&out.session.source_path);
    let mut decoder = ContinueDecoder { start: start_time(&path), ..ContinueDecoder::default() };
    match decoder.start {
        Some(start) => out.extend_time_range(Some(start)),
        None => out.set_file_time(sidecar::file_time(&path)),
    }
    // Newer versions of the CLI count each response, and the session as a whole.
    let has_sum = !session.has_record("\"promptTokens\"", |item| {
        let usage = item.object("message").unwrap_or(item).object("usage");
        usage.is_some_and(|usage| usage.int("promptTokens").is_some())
    });
    let start = decoder.start;
    session.with_header(|header| decode_header(header, has_sum, start, out));
    session.for_each_record(out, tally, &mut |item, raw, at, out| {
        decoder.decode_item(item, raw, at, out)
    });
    if has_sum {
        out.count_earlier_steps();
    }
}

/// Returns when a session began, which only the list of sessions says.
fn start_time(log: &Path) -> Option<i64> {
    let id = log.file_stem()?.to_str()?;
    let index = sidecar::read_json(&log.with_file_name(INDEX), MAX_INDEX_BYTES)?;
    let entry = index.as_array()?.iter().find(|entry| entry["sessionId"] == id)?;
    let created = &entry["dateCreated"];
    let millis = match created.as_str() {
        Some(text) => text.parse::<i64>().ok()?,
        None => created.as_i64()?,
    };
    (millis > 0).then(|| millis.saturating_mul(1000))
}

/// Reads the fields that describe a session. If `has_sum` is true, only they have token counts.
fn decode_header(header: Value<'_>, has_sum: bool, start: Option<i64>, out: &mut Stream) {
    let title = header.text("title").unwrap_or("");
    if !PLACEHOLDER_TITLES.contains(&title) {
        out.offer_title(TitleFrom::Agent, title);
    }
    let folder = header.text("workspaceDirectory").filter(|folder| !folder.is_empty());
    let path = folder.and_then(file_uri_path);
    out.set_cwd(path.as_deref().or(folder));
    out.set_model(header.text("chatModelTitle"));
    if has_sum && let Some(usage) = header.object("usage") {
        begin_header_record(start, out);
        push_usage(usage, Some(SHUTDOWN_SUM), out);
    }
}

/// Decodes the messages of one session in order.
#[derive(Default)]
struct ContinueDecoder {
    /// The start of the session, until the first message takes it as its time.
    start: Option<i64>,
    text: String,
    inner: Parser,
}

impl ContinueDecoder {
    /// Decodes an item of the history: a message with what belongs to it.
    fn decode_item(
        &mut self,
        item: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let message = item.object("message").unwrap_or(item);
        let id = message.non_empty("id");
        out.begin_message(id);
        match uuid_identity(id) {
            Some(identity) => out.begin_record(at, Some(identity), self.start.take()),
            None => out.begin_record_by_content(at, raw, self.start.take()),
        }
        let role = message.text("role").unwrap_or("untyped");
        self.text.clear();
        chat::append_field(message, "content", &mut self.text);
        match role {
            "user" => self.push_prompt(item, out),
            "assistant" | "thinking" => self.decode_response(role, item, message, out),
            "tool" => push_result(&self.text, message.non_empty("toolCallId"), None, out),
            role => {
                if role != "system" {
                    out.count_unknown("record", role);
                }
                out.push_shortened(role, &self.text);
            }
        }
        if let Some(summary) = item.non_empty("conversationSummary") {
            out.push_notification("compact_summary", summary);
        }
        RecordOutcome::Events
    }

    fn push_prompt(&mut self, item: Value<'_>, out: &mut Stream) {
        if !self.text.trim().is_empty() {
            out.push_prompt(&self.text);
        }
        self.text.clear();
        for context in item.items("contextItems") {
            if let Some(name) = context.non_empty("name") {
                render::append_line(name, &mut self.text);
            }
        }
        if !self.text.is_empty() {
            out.push_notification("attachments", &self.text);
        }
    }

    /// Decodes one response with its calls and their results.
    fn decode_response(
        &mut self,
        role: &str,
        item: Value<'_>,
        message: Value<'_>,
        out: &mut Stream,
    ) {
        let log = item.items("promptLogs").into_iter().next_back();
        out.set_model(log.and_then(|log| log.text("modelTitle")));
        if role == "thinking" {
            out.begin_step();
            return out.push_text(EventType::Reasoning, &self.text);
        }

        out.begin_step();
        let reasoning = item.object("reasoning").and_then(|reasoning| reasoning.non_empty("text"));
        if let Some(text) = reasoning {
            out.push_text(EventType::Reasoning, text);
        }
        out.push_text(EventType::Message, &self.text);

        let states = item.items("toolCallStates");
        let old_state = item.object("toolCallState");
        let states: Vec<_> = states.into_iter().chain(old_state).collect();
        let shown: HashSet<Option<&str>> =
            states.iter().map(|state| state.text("toolCallId")).collect();
        for call in message.items("toolCalls") {
            if !shown.contains(&call.text("id")) {
                self.push_call(call, out);
            }
        }
        for state in &states {
            if let Some(call) = state.object("toolCall") {
                self.push_call(call, out);
            }
        }
        for state in &states {
            let status = state.text("status").unwrap_or("");
            if DONE.contains(&status) {
                self.text.clear();
                for output in state.items("output") {
                    render::append_line(output.text("content").unwrap_or(""), &mut self.text);
                }
                push_result(&self.text, state.non_empty("toolCallId"), Some(status), out);
            }
        }
        if let Some(usage) = message.object("usage") {
            push_usage(usage, None, out);
        }
    }

    fn push_call(&mut self, call: Value<'_>, out: &mut Stream) {
        let function = call.object("function").unwrap_or(call);
        let arguments = Arguments::of_input(function.field("arguments"), &mut self.inner);
        arguments.push_call(function.text("name"), call.non_empty("id"), out);
    }
}

fn push_result(text: &str, id: Option<&str>, status: Option<&str>, out: &mut Stream) {
    let decoded = DecodedEvent {
        subtype: (status == Some("canceled")).then_some("cancelled"),
        text,
        tool_call_id: id,
        is_error: status.map(|status| status != "done"),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}

/// Pushes token counts. The prompt includes the tokens of the cache.
fn push_usage(usage: Value<'_>, subtype: Option<&str>, out: &mut Stream) {
    let prompt = usage.object("promptTokensDetails");
    let cache_read = prompt.and_then(|details| details.int("cachedTokens"));
    let cache_write = prompt.and_then(|details| details.int("cacheWriteTokens"));
    let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
    let details = usage.object("completionTokensDetails");
    let counts = Usage {
        input: usage.int("promptTokens").map(|prompt| prompt.saturating_sub(cached).max(0)),
        output: usage.int("completionTokens"),
        cache_read,
        cache_write,
        reasoning: details.and_then(|details| details.int("reasoningTokens")),
        ..Usage::default()
    };
    if counts.total() > 0 {
        let cost = ["totalCost", "cost"].iter().find_map(|key| usage.cost(key));
        let decoded = DecodedEvent { subtype, usage: counts, cost, ..DecodedEvent::default() };
        out.push(EventType::TokenUsage, decoded);
    }
}
