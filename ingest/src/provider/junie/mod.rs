//! Reads the sessions of the Junie CLI from `~/.junie/sessions/<id>/events.jsonl`
//! (docs/formats.md#junie).
//!
//! ```text
//! {"kind":"UserPromptEvent","requestId":"...","prompt":"...","timestampMs":1793000000000}
//! {"kind":"SessionA2uxEvent","taskId":"...","timestampMs":1793000000000,"event":{"agentEvent":
//!   {"kind":"MarkdownBlockUpdatedEvent","stepId":"s1","text":"..."}}}
//! ```
//!
//! While a block grows, each event has all of it again. A block is read at the place of its first event,
//! with what its last one says (`blocks.rs`). `agent.rs` decodes what the agent did. The folder and the
//! name of a session are in `index.jsonl` above the folders of the sessions.

mod agent;
mod blocks;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use schemas::Provider;
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::agent::AgentDecoder;
use self::blocks::Blocks;
use crate::provider::format::{
    LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::document::{self, RecordSpan};
use crate::provider::shared::refusal::USER_WORDS;
use crate::provider::shared::{chat, drift};
use crate::source::bounded_file::read_bounded_file;
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Junie,
    has_unique_ids: false,
    decoder_version: 1,
    roots: |places| vec![places.home_path(".junie/sessions")],
    sniff: claim_log,
    quirks: Quirks { is_stored_elsewhere: Some(is_index), ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// File name of the events of a session.
const EVENTS: &str = "events.jsonl";

/// The list of all sessions.
const INDEX: &str = "index.jsonl";

/// Maximum size in bytes of that list.
const MAX_INDEX_BYTES: u64 = 16 << 20;

/// Fields of every event, which no notification repeats.
const ENVELOPE: &[&str] = &["kind", "requestId", "taskId", "timestampMs"];

/// The kinds of events that only report a state.
const STATES: &[&str] = &[
    "SendToAgentEvent",
    "SkillsStatusEvent",
    "TaskContinueStopped",
    "TaskStartedEvent",
    "TaskState",
    "UserMessagesCommittedToHistory",
    "UserMessagesDroppedFromHistory",
    "UserMessagesFailedInHistory",
];

/// The kinds of events that become a notification with their fields.
const KNOWN_NOTICES: &[&str] = &["AgentTaskFailedEvent", "CancelAgentEvent", "SystemMessageEvent"];

/// Returns whether a file is the list of the sessions.
fn is_index(path: &Path) -> bool {
    path.ends_with(INDEX) && path.parent().is_some_and(|folder| folder.ends_with(".junie/sessions"))
}

/// Claims a log by one of its first events. The folder is named after the session.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let is_event = |event: &Json| match event["kind"].as_str() {
        Some("UserPromptEvent") => event["prompt"].is_string(),
        Some("SessionA2uxEvent") => event["event"]["agentEvent"]["kind"].is_string(),
        _ => false,
    };
    let is_log = head.path.ends_with(EVENTS) && head.objects.iter().any(is_event);
    let id = head.path.parent()?.file_name()?.to_str()?;
    is_log.then(|| SessionClaim::new(Provider::Junie, id))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let path = PathBuf::from(&out.session.source_path);
    if let Some(entry) = read_index_entry(&path) {
        decode_index_entry(&entry, out);
    }
    let blocks = Blocks::read(bytes);
    let mut agent = AgentDecoder::default();
    let mut seen = HashSet::new();
    document::for_each_line(bytes, out, tally, &mut |event, span, out, tally| {
        let time = chat::read_millis(Some(event), "timestampMs");
        let raw = span.record_bytes(bytes);
        // Events of a block repeat it anyway.
        let is_repeated = time.is_some() && !seen.insert(xxh3_64(raw));
        if is_repeated && !blocks.include(event) {
            return tally.count_object(RecordOutcome::Merged("repeated_event"));
        }
        out.begin_record_by_content(span.position(), raw, time);
        tally.count_object(decode_event(event, span, &blocks, &mut agent, out));
    });
}

/// Returns the entry of a session in the list of all.
fn read_index_entry(log: &Path) -> Option<Json> {
    let folder = log.parent()?;
    let id = folder.file_name()?.to_str()?;
    let index = read_bounded_file(&folder.with_file_name(INDEX), MAX_INDEX_BYTES)?;
    let lines = index.split(|byte| *byte == b'\n').rev();
    lines
        .filter(|line| memchr::memmem::find(line, id.as_bytes()).is_some())
        .filter_map(|line| serde_json::from_slice::<Json>(line).ok())
        .find(|entry| entry["sessionId"] == id)
}

fn decode_index_entry(entry: &Json, out: &mut Stream) {
    out.set_cwd(entry["projectDir"].as_str());
    out.offer_title(TitleFrom::Agent, entry["taskName"].as_str().unwrap_or(""));
    for key in ["createdAt", "updatedAt"] {
        let millis = entry[key].as_i64().filter(|millis| *millis > 0);
        out.extend_time_range(millis.map(|millis| millis.saturating_mul(1000)));
    }
}

/// Decodes one event at `span`.
fn decode_event(
    event: Value<'_>,
    span: RecordSpan,
    blocks: &Blocks<'_>,
    agent: &mut AgentDecoder,
    out: &mut Stream,
) -> RecordOutcome {
    let kind = event.text("kind").unwrap_or("untyped");
    match kind {
        "UserPromptEvent" => {
            agent.end_response();
            blocks.with_text_block(event, span, &mut |latest| decode_prompt(latest, blocks, out));
        }
        "SessionA2uxEvent" => {
            let Some(inner) = event.object("event").and_then(|inner| inner.object("agentEvent"))
            else {
                out.count_unknown("record", kind);
                return RecordOutcome::Merged("unknown_record");
            };
            return agent.decode_event(inner, event, span, blocks, out);
        }
        "UserResponseEvent" => {
            out.push_notification(USER_WORDS, event.text("prompt").unwrap_or(""));
        }
        "UserAsyncResponseEvent" => {
            for entry in event.items("entries") {
                out.push_notification(USER_WORDS, entry.text("answer").unwrap_or(""));
            }
        }
        "SessionTitleSetEvent" => {
            out.offer_title(TitleFrom::User, event.text("name").unwrap_or(""));
            return RecordOutcome::Merged("title");
        }
        _ if STATES.binary_search(&kind).is_ok() => return RecordOutcome::Merged("state"),
        _ => {
            drift::count_unknown_type(kind, KNOWN_NOTICES, out);
            let mut text = String::new();
            render::append_notification(event, ENVELOPE, &mut text);
            out.push_notice(kind, &text, (kind == "AgentTaskFailedEvent").then_some(true));
        }
    }
    RecordOutcome::Events.merged_if_empty(out)
}

/// Decodes a prompt. One that the agent never got is none.
fn decode_prompt(event: Value<'_>, blocks: &Blocks<'_>, out: &mut Stream) {
    let shown = event.non_empty("presentablePrompt");
    let text = shown.unwrap_or_else(|| event.text("prompt").unwrap_or(""));
    let is_dropped = event.text("delivery") == Some("Failed")
        || event.text("requestId").is_some_and(|id| blocks.is_dropped(id));
    if is_dropped {
        out.push_notification("dropped_prompt", text);
    } else {
        out.push_prompt(text);
    }
}
